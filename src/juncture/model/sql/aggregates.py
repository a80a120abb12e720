"""Aggregates as sums over records: counts, means and spreads are made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.syntax import (
    PAIRS,
    RANKS,
    SPREADS,
    Expr,
    conjuncts,
    reject_aggregates,
)
from juncture.tables.layout import Vector

Mask = NDArray[np.bool_]

MIN_SHARE = 1e-12
"""A smaller share of all records than this is none: such groups do not appear."""
_MAX_TERMS = 64
# Fewer records than this beyond one come from rounding.
_MIN_EXCESS = 1e-9


class Total(NamedTuple):
    """A sum over the records for which conditions hold and expressions are known."""

    factors: tuple[Expr, ...] = ()
    """What is added up is their product."""
    known: tuple[Expr, ...] = ()
    """Expressions that must not be missing, besides the factors."""
    conditions: tuple[Expr, ...] = ()
    counts_outside: bool = False
    """A column counts as known where its value is outside the domain."""


class Term(NamedTuple):
    """A part of a sum: a constant sign, and expressions that are multiplied."""

    sign: float
    factors: tuple[Expr, ...]


class Aggregate(NamedTuple):
    """An aggregate: its kind, its arguments, and the conditions of its FILTER and of WHERE."""

    node: Expr
    arguments: tuple[Expr, ...]
    conditions: tuple[Expr, ...]

    @property
    def is_rank(self) -> bool:
        """Whether it depends on the order of values, not on sums."""
        return isinstance(self.node, RANKS)


def read_aggregate(node: Expr, where: tuple[Expr, ...]) -> Aggregate:
    """The parts of an aggregate with or without FILTER."""
    conditions = where
    if isinstance(node, exp.Filter):
        conditions = (*where, *conjuncts(node.expression.this))
        node = node.this
    _check(node)
    if isinstance(node, exp.CountIf):  # as DuckDB: missing where nothing is known
        return Aggregate(exp.Sum(this=node.this.copy()), (node.this,), conditions)
    if isinstance(node, exp.WithinGroup):
        (ordered,) = node.expression.expressions
        return Aggregate(node, (ordered.this,), conditions)
    if node.this is None or isinstance(node.this, exp.Star):
        return Aggregate(node, (), conditions)
    both = (node.this, node.expression) if isinstance(node, PAIRS) else (node.this,)
    return Aggregate(node, both, conditions)


def _check(node: Expr) -> None:
    parts = [node]
    if isinstance(node, exp.WithinGroup):
        parts = [node.this, node.expression]
    for part in (inner for each in parts for inner in each.iter_expressions()):
        reject_aggregates(part, "an aggregate", "arithmetic around it")
    if node.find(exp.Distinct):
        raise InvalidInput(
            f"`sql` must not count distinct values; got {node.sql()}. A model gives every "
            "possible value some weight."
        )
    if node.expressions and not isinstance(node, exp.WithinGroup):
        raise InvalidInput(f"`sql` must have one expression in an aggregate; got {node.sql()}.")


def expand(node: Expr, count_columns: Callable[[Expr], int]) -> list[Term]:
    """An expression of several attributes as a sum of products of expressions of one each."""
    node = node.unnest()
    if count_columns(node) > 1:
        if isinstance(node, exp.Neg):
            return [Term(-sign, factors) for sign, factors in expand(node.this, count_columns)]
        if isinstance(node, exp.Add | exp.Sub | exp.Mul):
            left, right = expand(node.left, count_columns), expand(node.right, count_columns)
            if isinstance(node, exp.Add):
                return left + right
            if isinstance(node, exp.Sub):
                return left + [Term(-sign, factors) for sign, factors in right]
            if len(left) * len(right) <= _MAX_TERMS:
                return [Term(a.sign * b.sign, a.factors + b.factors) for a in left for b in right]
    return [Term(1.0, (node,))]


def compute(
    aggregate: Aggregate,
    split: Callable[[Expr], list[Term]],
    total: Callable[[Total], Vector],
    n_records: float,
) -> tuple[Vector, Mask]:
    """An aggregate that is made of sums: its value in each group, and whether it is known.

    `split` gives the terms of an expression; `total` gives the sums for all groups, for one record
    of the `n_records`: a mean does not depend on how many there are.
    """
    node, conditions = aggregate.node, aggregate.conditions
    if isinstance(node, exp.Count):
        n = total(Total((), aggregate.arguments, conditions, counts_outside=True))
        return n_records * n, np.ones(n.shape, dtype=bool)
    if isinstance(node, exp.Sum | exp.Avg):
        terms = split(aggregate.arguments[0])
        known = tuple(factor for term in terms for factor in term.factors)
        n = total(Total((), known, conditions))
        parts = (t.sign * total(Total(t.factors, known, conditions)) for t in terms)
        value: Vector = np.asarray(sum(parts), dtype=np.float64)
        there = n > MIN_SHARE
        is_mean = isinstance(node, exp.Avg)
        return (value / np.where(there, n, 1.0) if is_mean else n_records * value), there
    if isinstance(node, SPREADS):
        (x,) = aggregate.arguments
        sums = [total(Total((x,) * power, (x,), conditions)) for power in range(3)]
        return _spread(node, sums, n_records)
    y, x = aggregate.arguments
    factors = ((), (x,), (y,), (x, x), (x, y), (y, y))
    sums = [total(Total(each, (x, y), conditions)) for each in factors]
    return _pair(node, sums, n_records)


def _of_sample(moment: Vector, n: Vector) -> tuple[Vector, Mask]:
    """A moment of the population as estimated from a sample: of one record there is none."""
    there = n > 1.0 + _MIN_EXCESS
    return moment * np.where(there, n, 2.0) / np.where(there, n - 1.0, 1.0), there


def _spread(node: Expr, sums: Sequence[Vector], n_records: float) -> tuple[Vector, Mask]:
    n, first, second = sums
    there = n > MIN_SHARE
    safe = np.where(there, n, 1.0)
    variance = _clear(second - first * first / safe, second) / safe
    if not isinstance(node, exp.StddevPop | exp.VariancePop):
        variance, several = _of_sample(variance, n_records * n)
        there = there & several
    is_variance = isinstance(node, exp.Variance | exp.VariancePop)
    return (variance if is_variance else np.sqrt(variance)), there


def _pair(node: Expr, sums: Sequence[Vector], n_records: float) -> tuple[Vector, Mask]:
    n, sx, sy, sxx, sxy, syy = sums
    there = n > MIN_SHARE
    safe = np.where(there, n, 1.0)
    xx, yy = _clear(sxx - sx * sx / safe, sxx), _clear(syy - sy * sy / safe, syy)
    xy = sxy - sx * sy / safe
    if isinstance(node, exp.RegrCount):
        return n_records * n, np.ones(n.shape, dtype=bool)
    if isinstance(node, exp.CovarSamp):
        covariance, several = _of_sample(xy / safe, n_records * n)
        return covariance, there & several
    if isinstance(node, exp.CovarPop):
        return xy / safe, there
    return _regress(node, there, (xx, yy, xy), ((sy / safe), (sx / safe)))


def _regress(
    node: Expr, there: Mask, squares: tuple[Vector, Vector, Vector], means: tuple[Vector, Vector]
) -> tuple[Vector, Mask]:
    xx, yy, xy = squares
    flat = np.where(xx > 0, xx, np.nan)  # as DuckDB: not a number, where x does not vary
    if isinstance(node, exp.Corr):
        return np.clip(xy / np.sqrt(flat * np.where(yy > 0, yy, np.nan)), -1.0, 1.0), there
    if isinstance(node, exp.RegrR2):
        return np.where(yy > 0, xy * xy / (flat * np.where(yy > 0, yy, 1.0)), 1.0), there & (xx > 0)
    if isinstance(node, exp.RegrSlope):
        return xy / flat, there
    return means[0] - xy / flat * means[1], there & (xx > 0)


def _clear(squares: Vector, scale: Vector) -> Vector:
    """Squares around the mean; what rounding alone can have left is none."""
    result: Vector = np.where(squares > 1e-13 * np.abs(scale), squares, 0.0)
    return result
