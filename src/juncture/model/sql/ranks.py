"""Aggregates that depend on the order of values: extremes, quantiles and modes, with weights.

A quantile of an expected number of records averages over the weight of one record around its
position; for whole weights that is DuckDB's interpolation between records.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.aggregates import Aggregate
from juncture.model.sql.attributes import HIGH_PREFIX, LOW_PREFIX
from juncture.model.sql.question import Question
from juncture.model.sql.syntax import Expr, Value, write
from juncture.tables.layout import Vector

# Positions that differ by less than this share of the records are the same.
_TOLERANCE = 1e-9


Ends = tuple[Any, Any]
"""A value twice, or the ends of the interval that it is in."""


class _Rank(NamedTuple):
    """Which quantile is asked for; none for a mode."""

    fraction: float | None
    is_discrete: bool


def _is_interval(aggregate: Aggregate, question: Question) -> bool:
    (node,) = aggregate.arguments
    return isinstance(node, exp.Column) and question.codebook[node.name].has_intervals


def write_rank(aggregate: Aggregate, question: Question, weight: str) -> str:
    """The text of such an aggregate: a value for MIN and MAX, else all values and weights."""
    if len(aggregate.arguments) != 1:
        raise InvalidInput(f"`sql` must have one expression in {aggregate.node.sql()}; got none.")
    (node,) = aggregate.arguments
    low = high = write(node)
    if _is_interval(aggregate, question):
        low = write(exp.column(LOW_PREFIX + node.name, quoted=True))
        high = write(exp.column(HIGH_PREFIX + node.name, quoted=True))
    if isinstance(aggregate.node, exp.Min):
        return f"MIN({low})"
    if isinstance(aggregate.node, exp.Max):
        return f"MAX({high})"
    _read(aggregate, question)  # refused before anything is computed
    return f"list({{'low': {low}, 'high': {high}, 'weight': {weight}}})"


def read_rank(
    aggregate: Aggregate, column: pa.ChunkedArray, question: Question, n_records: float
) -> pa.Array:
    """The aggregate's value in each group."""
    if isinstance(aggregate.node, exp.Min | exp.Max):
        return column
    rank = _read(aggregate, question)
    struct = column.type.value_type
    kind = struct.field("low").type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    values = []
    for group in column:
        weights = _add_up(group.values) if group.is_valid else {}
        values.append(_choose(weights, rank, numeric, n_records) if weights else None)
    is_number = numeric and rank.fraction is not None and not rank.is_discrete
    return pa.array(values, pa.float64() if is_number else kind)


def _add_up(records: pa.StructArray) -> dict[Ends, float]:
    """The weight of each value, or interval, that is not missing."""
    table = pa.table({name: records.field(name) for name in ("low", "high", "weight")})
    sums = table.filter(table["low"].is_valid()).group_by(["low", "high"], use_threads=False)
    low, high, weights = sums.aggregate([("weight", "sum")]).columns
    ends = zip(low.to_pylist(), high.to_pylist(), strict=True)
    return dict(zip(ends, weights.to_pylist(), strict=True))


def _choose(weights: dict[Ends, float], rank: _Rank, numeric: bool, n_records: float) -> Value:
    if rank.fraction is None:  # of several modes, the first
        largest = max(weights.values()) * (1.0 - _TOLERANCE)
        return next(ends[0] for ends, weight in weights.items() if weight >= largest)
    values = sorted(weights)
    ends = np.cumsum([weights[each] for each in values])
    if rank.is_discrete or not numeric:
        position = rank.fraction * ends[-1]
        index = np.searchsorted(ends, position - _TOLERANCE * ends[-1])
        return values[min(int(index), len(values) - 1)][0]
    low, high = np.array(values, dtype=np.float64).T
    record = 1.0 / n_records if n_records > 0 else math.inf
    return quantile(low, high, ends, rank.fraction, record)


def quantile(
    low: Vector, high: Vector, ends: Vector, fraction: float, record: float = 1.0
) -> float:
    """The quantile of numbers in order, spread evenly between two ends each.

    `ends` are the weights up to each of them, itself included; `record` is the weight of a record.

    >>> values = np.array([1.0, 2.0, 5.0])
    >>> quantile(values, values, np.array([1.0, 3.0, 4.0]), 0.5)
    2.0
    >>> quantile(np.array([0.0]), np.array([10.0]), np.array([100.0]), 0.25)
    2.525
    """
    width = min(record, ends[-1])
    first = fraction * (ends[-1] - width)
    starts = np.concatenate([[0.0], ends[:-1]])
    left, right = np.clip(first, starts, ends), np.clip(first + width, starts, ends)
    share = right - left
    share[share < _TOLERANCE * width] = 0.0
    weight = np.where(ends > starts, ends - starts, 1.0)
    middle = low + (high - low) * (0.5 * (left + right) - starts) / weight
    return float((share * middle).sum() / share.sum())


def _read(aggregate: Aggregate, question: Question) -> _Rank:
    node, is_descending = aggregate.node, False
    fraction: Expr = None
    interval = _is_interval(aggregate, question)
    if isinstance(node, exp.WithinGroup):
        (ordered,) = node.expression.expressions
        is_descending, node = bool(ordered.args.get("desc")), node.this
        fraction = node.this
    elif isinstance(node, exp.Quantile):
        fraction = node.args["quantile"]
    elif isinstance(node, exp.PercentileCont | exp.PercentileDisc):
        fraction = node.expression
    is_discrete = isinstance(node, exp.Quantile | exp.PercentileDisc)
    if interval and (is_discrete or isinstance(node, exp.Mode)):
        raise InvalidInput(
            f"`sql` must take the median or a continuous quantile of numbers in intervals; got "
            f"{aggregate.node.sql()}. Use QUANTILE_CONT, or GROUP BY the column."
        )
    if isinstance(node, exp.Mode):
        return _Rank(None, True)
    if isinstance(node, exp.Median):
        return _Rank(0.5, False)
    value = None if fraction is None or fraction.find(exp.Column) else question.to_number(fraction)
    if value is None or not 0.0 <= value <= 1.0 or (is_descending and is_discrete):
        raise InvalidInput(
            f"`sql` must have a number from 0 to 1 in a quantile; got {aggregate.node.sql()}. "
            "Write it out, in ascending order."
        )
    return _Rank(1.0 - value if is_descending else value, is_discrete)
