"""What a question may do with numbers that are known by their interval, and how they are cut.

Whole numbers can be taken one by one, where there are not too many: any question about them has an
answer then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.attributes import Interval, find_bounds
from juncture.model.sql.cuts import cut_around, cut_by_comparison
from juncture.model.sql.dates import find_date_cuts
from juncture.model.sql.steps import find_jumps
from juncture.model.sql.syntax import PAIRS, RANKS, SPREADS, Expr
from juncture.tables.codebook import Coding

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_LINEAR = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren, exp.If, exp.Case, exp.Coalesce)
_CURVED = (exp.Div, exp.Pow, exp.Sqrt, exp.Ln, exp.Log, exp.Exp, exp.Cast, exp.TryCast)
_BENT = (exp.Greatest, exp.Least)
# Exact for polynomials of degree 7 and 31.
_FEW_POINTS, _MANY_POINTS = 4, 16
_MAX_OCCURRENCES = 3
# Whole numbers of an attribute that may be taken one by one.
_MAX_NUMBERS = 10_000

ToNumber = Callable[[Expr], float | None]
"""The number that an expression without columns stands for."""


class Use(NamedTuple):
    """An expression, and the aggregate that it is in; none for conditions and groups."""

    node: Expr
    aggregate: Expr | None = None


class Constants(NamedTuple):
    """How expressions without columns are read."""

    to_number: ToNumber
    to_day: ToNumber
    """As a number of days from 1970-01-01."""


def plan_intervals(
    uses: Iterable[Use], codings: Mapping[str, Coding], constants: Constants
) -> dict[str, Interval]:
    """How each attribute with intervals is taken apart; refused where that would not be right."""
    cuts: dict[str, set[float]] = {name: set() for name in codings}
    points = dict.fromkeys(codings, 1)
    for use in uses:
        columns = [c for c in use.node.find_all(exp.Column) if c.name in cuts]
        for column in columns:
            found, curved = _follow(column, use, codings[column.name], constants)
            cuts[column.name] |= found
            same = sum(other.name == column.name for other in columns)
            n_points = _n_points(use, same, curved)
            points[column.name] = max(points[column.name], n_points)
    return {name: Interval(tuple(sorted(cuts[name])), points[name]) for name in codings}


def _n_points(use: Use, n_occurrences: int, curved: bool) -> int:
    if use.aggregate is None:
        return 1
    squared = isinstance(use.aggregate, (*SPREADS, *PAIRS))
    if curved or n_occurrences > _MAX_OCCURRENCES:
        return _MANY_POINTS
    return _FEW_POINTS if squared or n_occurrences > 1 else 1


def _follow(
    column: Expr, use: Use, coding: Coding, constants: Constants
) -> tuple[set[float], bool]:
    """The cuts that a column's place in an expression asks for, and whether that is curved."""
    bounds, is_rank = find_bounds(coding), isinstance(use.aggregate, RANKS)
    if coding.period is not None:
        return find_date_cuts(column, use.node, bounds, constants.to_day, is_rank), False
    jumps = find_jumps(column, use.node, bounds, constants.to_number)
    if jumps is not None and not is_rank:
        return cut_around(jumps, whole=coding.whole), False
    smooth = _follow_smooth(column, use, constants.to_number, coding.whole)
    if smooth is not None:
        return smooth
    if coding.whole and bounds[1] - bounds[0] <= _MAX_NUMBERS:
        numbers = range(round(bounds[0] + 0.5), round(bounds[1] + 0.5))
        return cut_around(numbers, whole=True), False
    raise InvalidInput(
        f"`sql` must compare {column.name} as it is with constants; got {use.node.sql()}. "
        "Its numbers come in intervals: solve the condition for the column."
    )


def _follow_smooth(
    column: Expr, use: Use, to_number: ToNumber, whole: bool
) -> tuple[set[float], bool] | None:
    """The same where the column is compared with constants, or added up without steps."""
    node, root, curved = column, use.node, False
    while node is not root and isinstance(node.parent, exp.Paren):
        node = node.parent
    is_added_up = use.aggregate is not None and not isinstance(use.aggregate, RANKS)
    if node is root and not is_added_up:
        return set(), False
    cuts = None if node is root else _cuts_around(node, to_number, whole)
    if cuts is not None:
        node = node.parent
        if not isinstance(node, _BENT):
            return cuts, False
    while node is not root and _is_smooth(node):
        curved |= isinstance(node.parent, _CURVED) and not _is_scaling(node)
        node = node.parent
    return (cuts or set(), curved) if node is root and is_added_up else None


def _cuts_around(node: Expr, to_number: ToNumber, whole: bool) -> set[float] | None:
    """The numbers that a column is compared with where it stands; None for anything else."""
    parent = node.parent
    if isinstance(parent, exp.Is) and isinstance(parent.expression, exp.Null):
        return set()
    others = [part for part in parent.iter_expressions() if part is not node]
    if not isinstance(parent, (*_COMPARISONS, *_BENT)) or any(p.find(exp.Column) for p in others):
        return None
    return cut_by_comparison(node, to_number, whole=whole)


def _is_smooth(node: Expr) -> bool:
    """Whether the expression around a part has no steps and no corners as the part changes."""
    parent = node.parent
    if isinstance(parent, exp.Cast):
        return bool(parent.to.is_type("double", "float"))
    if isinstance(parent, exp.If | exp.Case):
        return node.arg_key in ("true", "false", "default", "ifs")
    return isinstance(parent, (*_LINEAR, *_CURVED))


def _is_scaling(node: Expr) -> bool:
    """Whether the expression around a part only divides it by a constant, or casts it."""
    parent = node.parent
    divided = isinstance(parent, exp.Div) and node.arg_key == "this"
    return isinstance(parent, exp.Cast) or (divided and not parent.expression.find(exp.Column))
