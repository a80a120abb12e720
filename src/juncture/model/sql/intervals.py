"""What a question may do with numbers that are known by their interval, and how they are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.attributes import Interval
from juncture.model.sql.steps import find_jumps
from juncture.model.sql.syntax import PAIRS, RANKS, SPREADS, Expr

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_LINEAR = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren, exp.If, exp.Case, exp.Coalesce)
_CURVED = (exp.Div, exp.Pow, exp.Sqrt, exp.Ln, exp.Log, exp.Exp, exp.Cast, exp.TryCast)
_BENT = (exp.Greatest, exp.Least)
# Exact for polynomials of degree 7 and 31.
_FEW_POINTS, _MANY_POINTS = 4, 16
_MAX_OCCURRENCES = 3

ToNumber = Callable[[Expr], float | None]
"""The number that an expression without columns stands for."""


class Use(NamedTuple):
    """An expression, and the aggregate that it is in; none for conditions and groups."""

    node: Expr
    aggregate: Expr | None = None


def plan_intervals(
    uses: Iterable[Use], bounds: Mapping[str, tuple[float, float]], to_number: ToNumber
) -> dict[str, Interval]:
    """How each attribute with intervals is taken apart; refused where that would not be right.

    `bounds` are the least and the largest number of each.
    """
    cuts: dict[str, set[float]] = {name: set() for name in bounds}
    points = dict.fromkeys(bounds, 1)
    for use in uses:
        columns = [c for c in use.node.find_all(exp.Column) if c.name in cuts]
        for column in columns:
            found, curved = _follow(column, use, bounds[column.name], to_number)
            cuts[column.name] |= found
            same = sum(other.name == column.name for other in columns)
            n_points = _n_points(use, same, curved)
            points[column.name] = max(points[column.name], n_points)
    return {name: Interval(tuple(sorted(cuts[name])), points[name]) for name in bounds}


def _n_points(use: Use, n_occurrences: int, curved: bool) -> int:
    if use.aggregate is None:
        return 1
    squared = isinstance(use.aggregate, (*SPREADS, *PAIRS))
    if curved or n_occurrences > _MAX_OCCURRENCES:
        return _MANY_POINTS
    return _FEW_POINTS if squared or n_occurrences > 1 else 1


def _follow(
    column: Expr, use: Use, bounds: tuple[float, float], to_number: ToNumber
) -> tuple[set[float], bool]:
    """The cuts that a column's place in an expression asks for, and whether that is curved."""
    jumps = find_jumps(column, use.node, bounds, to_number)
    if jumps is not None and not isinstance(use.aggregate, RANKS):
        return jumps, False
    node, root, curved = column, use.node, False
    while node is not root and isinstance(node.parent, exp.Paren):
        node = node.parent
    is_added_up = use.aggregate is not None and not isinstance(use.aggregate, RANKS)
    if node is root and not is_added_up:
        return set(), False
    cuts = None if node is root else _cuts_around(node, to_number)
    if cuts is not None:
        node = node.parent
        if not isinstance(node, _BENT):
            return cuts, False
    while node is not root and _is_smooth(node):
        curved |= isinstance(node.parent, _CURVED) and not _is_scaling(node)
        node = node.parent
    if node is not root or not is_added_up:
        raise InvalidInput(
            f"`sql` must compare {column.name} as it is with constants; got {use.node.sql()}. "
            "Its numbers come in intervals: solve the condition for the column."
        )
    return cuts or set(), curved


def _cuts_around(node: Expr, to_number: ToNumber) -> set[float] | None:
    """The numbers that a column is compared with where it stands; None for anything else."""
    parent = node.parent
    if isinstance(parent, exp.Is) and isinstance(parent.expression, exp.Null):
        return set()
    others = [part for part in parent.iter_expressions() if part is not node]
    if not isinstance(parent, (*_COMPARISONS, *_BENT)) or any(p.find(exp.Column) for p in others):
        return None
    return {number for part in others if (number := to_number(part)) is not None}


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
