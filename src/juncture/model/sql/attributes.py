"""One attribute as a table for DuckDB: its codes in pieces, with their values.

An attribute whose codes stand for intervals is cut at the numbers that the query compares it with,
so that a condition counts the right share of an interval. Where the query adds up a curved
expression of it, each piece becomes the points of a quadrature, exact for polynomials. Both take
the numbers in an interval to be spread as the coding says: see `Spread`. Whole numbers and days are
cut between two of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from juncture.model.sql.outside import OUTSIDE_PREFIX
from juncture.tables.codebook import Coding, Meaning, Special
from juncture.tables.layout import Vector
from juncture.tables.periods import to_date
from juncture.tables.spread import Spread

KEY_PREFIX = "juncture_key_"
"""Before an attribute's name: the column of ranks that tells its codes apart."""
LOW_PREFIX, HIGH_PREFIX = "juncture_low_", "juncture_high_"
"""Before an attribute's name: the columns of the ends of its pieces."""
_INT64 = 1 << 63


class Interval(NamedTuple):
    """How an attribute with intervals is taken apart."""

    cuts: tuple[float, ...] = ()
    """Between whole numbers or days, half-way."""
    n_points: int = 1
    """Points of the quadrature in each piece."""


@dataclass(frozen=True)
class Pieces:
    """The codes of one attribute, whole or in parts, and their columns for DuckDB."""

    codes: NDArray[np.intp]
    shares: Vector
    columns: dict[str, pa.Array]

    @property
    def table(self) -> pa.Table:
        """The columns as a table."""
        return pa.table(self.columns)


def is_special(coding: Coding) -> bool:
    """Whether some codes stand for no value of one type: intervals, values outside, a mixture."""
    kinds = {_kind(meaning) for meaning in coding.meanings if meaning is not None}
    return bool(kinds & {tuple, Special}) or len(kinds) > 1


def find_bounds(coding: Coding) -> tuple[float, float]:
    """The least and the largest number of a coding's intervals."""
    ends = [end for spread in coding.spreads if spread for end in (spread.low, spread.high)]
    return min(ends), max(ends)


def has_outside(coding: Coding) -> bool:
    """Whether some codes stand for values that nothing is known of."""
    return any(map(_unknown_test(coding), coding.meanings))


def rank_codes(coding: Coding) -> list[int | None]:
    """For each code, its index in the order of values; none for missing ones."""
    known = [c for c, meaning in enumerate(coding.meanings) if meaning is not None]
    ranks: list[int | None] = [None] * coding.size
    for rank, code in enumerate(sorted(known, key=lambda c: _order(coding.meanings[c]))):
        ranks[code] = rank
    return ranks


def labels_by_rank(coding: Coding) -> list[Any]:
    """The label of each rank."""
    ranks = rank_codes(coding)
    pairs = [(rank, code) for code, rank in enumerate(ranks) if rank is not None]
    return [coding.labels[code] for _, code in sorted(pairs)]


def make_pieces(name: str, coding: Coding, interval: Interval) -> Pieces:
    """An attribute's codes as rows, those that stand for intervals in pieces."""
    is_unknown = _unknown_test(coding)
    rows = list(_cut(coding, interval))
    codes = np.array([row[0] for row in rows], dtype=np.intp)
    values = [None if is_unknown(row[2]) else row[2] for row in rows]
    columns = {name: _to_arrow(values)}
    if has_outside(coding):
        columns[OUTSIDE_PREFIX + name] = pa.array([is_unknown(row[2]) for row in rows], pa.bool_())
    if is_special(coding):
        ranks = rank_codes(coding)
        columns[KEY_PREFIX + name] = pa.array([ranks[code] for code in codes], pa.int64())
    if coding.has_intervals:
        kind = pa.date32() if coding.period is not None else pa.float64()
        columns[LOW_PREFIX + name] = pa.array([row[3] for row in rows], kind)
        columns[HIGH_PREFIX + name] = pa.array([row[4] for row in rows], kind)
    return Pieces(codes, np.array([row[1] for row in rows]), columns)


Piece = tuple[int, float, Any, Any, Any]
"""A code, the share of its records, a value, and the ends of the piece."""


def _cut(coding: Coding, interval: Interval) -> Iterator[Piece]:
    """The codes as rows, those of intervals in pieces."""
    for code, (meaning, spread) in enumerate(zip(coding.meanings, coding.spreads, strict=True)):
        if spread is not None:
            for _, share, *numbers in _cut_interval(code, spread, coding, interval):
                value, low, high = map(to_date, numbers) if coding.period else numbers
                yield code, share, value, low, high
        else:
            number = meaning if isinstance(meaning, int | float) else None
            yield code, 1.0, meaning, number, number


def _cut_interval(
    code: int, spread: Spread, coding: Coding, interval: Interval
) -> list[tuple[int, float, float, float, float]]:
    cuts = set(interval.cuts)
    if coding.counts_whole:  # numbers with codes of their own are left out
        single = [m for m in coding.meanings if isinstance(m, int | float)]
        cuts |= {number + side for number in single for side in (-0.5, 0.5)}
    ends = [spread.low, *sorted(c for c in cuts if spread.low < c < spread.high), spread.high]
    pieces: list[tuple[int, float, float, float, float]] = []
    for left, right in pairwise(ends):
        if coding.counts_whole:
            low, high = left + 0.5, right - 0.5
            if low == high and low in coding.meanings:
                continue
            values, shares = spread.whole_points(left, right, interval.n_points)
        else:
            low, high = left, right
            values, shares = spread.points(left, right, interval.n_points)
        pieces += [(code, s, v, low, high) for v, s in zip(values, shares, strict=True)]
    total = sum(piece[1] for piece in pieces)
    return [(code, share / total, *rest) for _, share, *rest in pieces]  # type: ignore[misc]


def _kind(meaning: Meaning) -> type[Any]:
    if isinstance(meaning, bool):
        return bool
    return float if isinstance(meaning, int | float) else type(meaning)


def _unknown_test(coding: Coding) -> Callable[[Meaning], bool]:
    """A test for meanings that no comparison is about: beside intervals, texts are such."""
    intervals = coding.has_intervals
    return lambda meaning: isinstance(meaning, Special) or (intervals and isinstance(meaning, str))


def _order(meaning: Meaning) -> tuple[int, Any]:
    if isinstance(meaning, tuple):
        return (0, meaning[0])
    if isinstance(meaning, int | float):
        return (0, meaning)
    return (1, str(meaning))


def _to_arrow(values: Sequence[Any]) -> pa.Array:
    """A column of the narrowest type that holds all values; texts, where nothing else does."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool} and kinds:
        return pa.array(values, pa.bool_())
    if kinds <= {dt.date} and kinds:
        return pa.array(values, pa.date32())
    if kinds <= {int} and all(-_INT64 <= v < _INT64 for v in values if v is not None):
        return pa.array(values, pa.int64())
    if kinds <= {int, float}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array([None if v is None else str(v) for v in values], pa.string())


def collides(names: Iterable[str]) -> bool:
    """Whether names differ in letter case only, which DuckDB does not tell apart."""
    lower = [name.lower() for name in names]
    return len(set(lower)) < len(lower)
