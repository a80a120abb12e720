"""Where a step function of a column jumps: FLOOR, CEIL, ROUND, TRUNC, // and casts to integers.

Between the jumps it is constant, so a column with intervals that is cut there can be grouped and
compared by it: `FLOOR(age / 10) * 10` has a jump at every tenth year.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.syntax import Expr

_MAX_JUMPS = 10_000
_MAX_NUMBER, _MAX_DIGITS = 1e100, 100
_STEPS = (exp.Floor, exp.Ceil, exp.Trunc, exp.Round, exp.IntDiv, exp.Cast)
_AFFINE = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren)


def find_jumps(
    column: Expr, root: Expr, bounds: tuple[float, float], to_number: Callable[[Expr], float | None]
) -> set[float] | None:
    """The jumps of the step function around a column, within bounds; None where there is none."""
    node = column
    while node is not root and _is_affine(node):
        node = node.parent
    step = None if node is root else node.parent
    unit = _find_unit(step, node, to_number)
    if step is None or unit is None:
        return None
    start, slope = _find_line(column, node, to_number)
    if not math.isfinite(start) or not math.isfinite(slope) or slope == 0:
        return None
    shift = 0.5 if isinstance(step, exp.Round | exp.Cast) else 0.0
    ends = sorted((start + slope * end) / unit - shift for end in bounds)
    first, last = math.ceil(ends[0]), math.floor(ends[1])
    if last - first > _MAX_JUMPS:
        raise InvalidInput(
            f"`sql` must cut {column.name} into at most {_MAX_JUMPS:,} steps; got "
            f"{last - first:,} in {step.sql()}. Take larger steps."
        )
    return {((n + shift) * unit - start) / slope for n in range(first, last + 1)}


def _is_affine(node: Expr) -> bool:
    """Whether the expression around a part is a line in it."""
    parent = node.parent
    if not isinstance(parent, _AFFINE) or (isinstance(parent, exp.Div) and node.arg_key != "this"):
        return False
    return not any(p.find(exp.Column) for p in parent.iter_expressions() if p is not node)


def _find_unit(step: Expr, node: Expr, to_number: Callable[[Expr], float | None]) -> float | None:
    """The distance of a step function's jumps in its argument; None for other expressions."""
    if not isinstance(step, _STEPS) or node.arg_key != "this":
        return None
    if isinstance(step, exp.Cast):
        return 1.0 if step.to.is_type(*exp.DataType.INTEGER_TYPES) else None
    is_division = isinstance(step, exp.IntDiv)
    parameter = step.expression if is_division else step.args.get("decimals")
    if parameter is None or parameter.find(exp.Column):
        return None if parameter else 1.0
    number = to_number(parameter)
    if number is None or abs(number) > (_MAX_NUMBER if is_division else _MAX_DIGITS):
        return None
    return abs(number) or None if is_division else 10.0**-number


def _find_line(
    column: Expr, node: Expr, to_number: Callable[[Expr], float | None]
) -> tuple[float, float]:
    """The value of an affine expression at zero, and its slope."""

    def value_at(number: int) -> float:
        literal = exp.cast(exp.Literal.number(number), "double")
        if node is column:
            return float(number)
        line = node.transform(lambda part: literal if isinstance(part, exp.Column) else part)
        value = to_number(line)
        return math.nan if value is None else value

    start = value_at(0)
    return start, value_at(1) - start
