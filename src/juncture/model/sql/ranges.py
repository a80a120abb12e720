"""What an answer can be at least and at most, where numbers are known by their bins only.

All records of a bin may lie in any one of its pieces. So a count is least where each bin puts its
records into a piece that does not count, if it has one, and largest where it puts them into one
that does; a sum is bounded by the ends of the pieces. For the products of factored questions this
bounds each factor by itself, which is right while none is negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from sqlglot import exp

from juncture.model.sql.aggregates import MIN_SHARE, Aggregate, Total
from juncture.model.sql.notes import InBins, Note
from juncture.model.sql.question import Question
from juncture.tables.codebook import Coding
from juncture.tables.layout import Vector


class Extreme(StrEnum):
    """Where in its bin every record is taken to lie."""

    LEAST = "least"
    LARGEST = "largest"


class Bounds(NamedTuple):
    """The least and the largest value of an aggregate in each group."""

    low: Vector
    high: Vector


Bound = Callable[[Total, Extreme], Vector | None]
"""The least or the largest sum in each group, for one record; None where that is not known."""


Extent = Callable[[Total], tuple[float, float]]
"""The least and the largest number that a sum of a column can add up."""


def find_bounds_of(
    aggregate: Aggregate, bound: Bound, extent: Extent, n_records: float
) -> Bounds | None:
    """The bounds of a count, or of the sum or mean of a column; None for other aggregates."""
    if not _is_plain(aggregate):
        return None
    conditions, arguments = aggregate.conditions, aggregate.arguments
    is_count = isinstance(aggregate.node, exp.Count)
    counted = Total((), arguments, conditions, counts_outside=is_count)
    counts = [bound(counted, extreme) for extreme in Extreme]
    added = Total(arguments, arguments, conditions)
    sums = [bound(added, extreme) for extreme in Extreme]
    if is_count:
        sums = counts
    (n_low, n_high), (low, high) = counts, sums
    if n_low is None or n_high is None or low is None or high is None:
        return None
    if isinstance(aggregate.node, exp.Avg):
        least, largest = extent(added)
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(n_high > MIN_SHARE, low / n_high, least)
            high = np.where(n_low > MIN_SHARE, high / n_low, largest)
        return Bounds(np.maximum(low, least), np.minimum(high, largest))
    return Bounds(n_records * low, n_records * high)


def find_bin_notes(question: Question) -> Iterator[Note]:
    """A note for each column whose bins a question divides or adds up."""
    for name, interval in question.intervals.items():
        coding = question.codebook[name]
        is_cut = is_divided(coding, interval.cuts)
        if is_cut or name in added_up(question):
            yield InBins(name, is_cut, coding.period is not None)


def is_divided(coding: Coding, cuts: tuple[float, ...]) -> bool:
    """Whether a cut lies inside an interval."""
    spreads = [spread for spread in coding.spreads if spread is not None]
    return any(spread.low < cut < spread.high for cut in cuts for spread in spreads)


def added_up(question: Question) -> set[str]:
    """The attributes with intervals whose numbers are added up."""
    arguments = [
        argument
        for each in question.aggregates.values()
        if not isinstance(each.node, exp.Count)
        for argument in each.arguments
    ]
    names = question.attributes_of_all(arguments)
    return {name for name in names if name in question.intervals}


def _is_plain(aggregate: Aggregate) -> bool:
    """Whether an aggregate is a count, or the sum or mean of a column."""
    plain = all(isinstance(each, exp.Column) for each in aggregate.arguments)
    return isinstance(aggregate.node, exp.Count | exp.Sum | exp.Avg) and plain
