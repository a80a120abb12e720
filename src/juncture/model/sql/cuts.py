"""Where an interval is cut by a comparison: at the number, or beside it if numbers are whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from sqlglot import exp

from juncture.model.sql.syntax import Expr

ORDERED = (exp.LT, exp.LTE, exp.GT, exp.GTE)
MIRRORED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}


def cut_by_comparison(
    node: Expr, to_number: Callable[[Expr], float | None], *, whole: bool
) -> set[float]:
    """The cuts that the comparison around a column needs.

    Whole numbers are cut half-way between two of them: `x < 5` cuts at 4.5, `x <= 5` at 5.5, and
    `x = 5` at both.
    """
    parent = node.parent
    kind = type(parent) if node.arg_key == "this" else MIRRORED.get(type(parent), type(parent))
    cuts: set[float] = set()
    for part in parent.iter_expressions():
        number = None if part is node else to_number(part)
        if number is None or not math.isfinite(number):
            continue
        if not whole:
            cuts.add(number)
            continue
        if kind not in (exp.GT, exp.LTE) and not (kind is exp.Between and part.arg_key == "high"):
            cuts.add(math.ceil(number) - 0.5)
        if kind not in (exp.LT, exp.GTE) and not (kind is exp.Between and part.arg_key == "low"):
            cuts.add(math.floor(number) + 0.5)
    return cuts


def cut_around(numbers: Iterable[float], *, whole: bool) -> set[float]:
    """Cuts at numbers; on both sides of each, if they are whole."""
    if not whole:
        return set(numbers)
    return {end for n in numbers for end in (math.ceil(n) - 0.5, math.floor(n) + 0.5)}
