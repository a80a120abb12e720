"""One attribute as a table for DuckDB: its codes in pieces, with their values.

An attribute whose codes stand for intervals is cut at the numbers that the query compares it with,
so that a condition counts the right share of an interval. Where the query adds up a curved
expression of it, each piece becomes the points of a quadrature, exact for polynomials. Both take
the numbers in an interval to be spread evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from juncture.model.sql.rewrite import OUTSIDE_PREFIX
from juncture.tables.codebook import Coding, Meaning, Special, label_of
from juncture.tables.layout import Vector

KEY_PREFIX = "juncture_key_"
"""Before an attribute's name: the column of ranks that tells its codes apart."""
LOW_PREFIX, HIGH_PREFIX = "juncture_low_", "juncture_high_"
"""Before an attribute's name: the columns of the ends of its pieces."""
_INT64 = 1 << 63


class Interval(NamedTuple):
    """How an attribute with intervals is taken apart."""

    cuts: tuple[float, ...] = ()
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


def has_intervals(coding: Coding) -> bool:
    """Whether some codes stand for intervals of numbers."""
    return any(isinstance(meaning, tuple) for meaning in coding.meanings)


def find_bounds(coding: Coding) -> tuple[float, float]:
    """The least and the largest number of a coding's intervals."""
    ends = [end for meaning in coding.meanings if isinstance(meaning, tuple) for end in meaning]
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
    return [label_of(coding.meanings[code]) for _, code in sorted(pairs)]


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
    if has_intervals(coding):
        columns[LOW_PREFIX + name] = pa.array([row[3] for row in rows], pa.float64())
        columns[HIGH_PREFIX + name] = pa.array([row[4] for row in rows], pa.float64())
    return Pieces(codes, np.array([row[1] for row in rows]), columns)


def _cut(
    coding: Coding, interval: Interval
) -> Iterator[tuple[int, float, Any, float | None, float | None]]:
    """For each piece: the code, its share of the code's records, its value, and its ends."""
    points, weights = _quadrature(interval.n_points)
    for code, meaning in enumerate(coding.meanings):
        if isinstance(meaning, tuple):
            low, high = meaning
            ends = [low, *(cut for cut in interval.cuts if low < cut < high), high]
            for left, right in pairwise(ends):
                for point, weight in zip(points, weights, strict=True):
                    share = weight * (right - left) / (high - low)
                    yield code, share, left + point * (right - left), left, right
        else:
            number = meaning if isinstance(meaning, int | float) else None
            yield code, 1.0, meaning, number, number


def _quadrature(n_points: int) -> tuple[list[float], list[float]]:
    """Points between 0 and 1 and their weights: exact for polynomials of degree 2 n - 1."""
    points, weights = np.polynomial.legendre.leggauss(n_points)
    return ((points + 1.0) / 2.0).tolist(), (weights / 2.0).tolist()


def _kind(meaning: Meaning) -> type[Any]:
    if isinstance(meaning, bool):
        return bool
    return float if isinstance(meaning, int | float) else type(meaning)


def _unknown_test(coding: Coding) -> Callable[[Meaning], bool]:
    """A test for meanings that no comparison is about: beside intervals, texts are such."""
    intervals = has_intervals(coding)
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
    if kinds <= {int} and all(-_INT64 <= v < _INT64 for v in values if v is not None):
        return pa.array(values, pa.int64())
    if kinds <= {int, float}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array([None if v is None else str(v) for v in values], pa.string())


def collides(names: Iterable[str]) -> bool:
    """Whether names differ in letter case only, which DuckDB does not tell apart."""
    lower = [name.lower() for name in names]
    return len(set(lower)) < len(lower)
