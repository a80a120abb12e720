"""Round bounds and edges for drafts: numbers that a person could have written without the data."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

MAX_DRAFT_BINS = 32
"""A draft gives numbers at most this many regular codes."""
_FEW = 10
# Ranges that everybody knows: months, hours, days of a month.
_KNOWN_RANGES = {(1, 12), (0, 23), (1, 24), (1, 31)}
# Bins of one width are no use where one of them holds more than this share of all records.
_MAX_SHARE = 0.5
# A value that this share of all records has gets a bin of its own.
_MIN_ATOM = 0.2
_LEVELS = (*(level / 16 for level in range(1, 16)), 0.98, 0.99)


def round_range(low: int, high: int) -> tuple[int, int, int]:
    """A round range around two whole numbers, and how many numbers to put together.

    >>> round_range(17, 88)
    (15, 89, 5)
    >>> round_range(1, 12), round_range(0, 11)
    ((1, 12, 1), (0, 15, 1))
    """
    if high - low < _FEW or (low, high) in _KNOWN_RANGES:
        return low, high, 1
    first, last = math.floor(low / 5) * 5, math.ceil(high / 5) * 5
    if last - first < MAX_DRAFT_BINS:
        return first, last, 1
    for width in (int(step) for step in _round_steps(1) if step == int(step)):
        first, n_bins = low // width, high // width - low // width + 1
        if width > 1 and n_bins <= MAX_DRAFT_BINS:
            return first * width, (first + n_bins) * width - 1, width
    raise AssertionError  # steps grow without end


def even_edges(low: float, high: float) -> tuple[float, ...]:
    """Round edges of bins of one width around two numbers.

    >>> even_edges(0.03, 0.98)[:3], even_edges(0.03, 0.98)[-1]
    ((0.0, 0.05, 0.1), 1.0)
    """
    spread = high - low if high > low else max(abs(high), 1.0)
    for step in _round_steps(10.0 ** math.floor(math.log10(spread / MAX_DRAFT_BINS))):
        first, last = math.floor(low / step), math.ceil(high / step)
        last = max(last, first + 1)
        if last - first <= MAX_DRAFT_BINS:
            return tuple(_clean(index * step) for index in range(first, last + 1))
    raise AssertionError  # steps grow without end


def uneven_edges(
    low: float, high: float, quantiles: Sequence[float], *, whole: bool = False
) -> tuple[float, ...] | None:
    """Round edges that lie closer where most records are; None where bins of one width will do.

    - `quantiles`: evenly spaced ones, from the smallest to the largest value.

    >>> uneven_edges(0, 9000, [*range(0, 100), 9000], whole=True)[:4]
    (0.0, 6.0, 12.0, 19.0)
    """
    if not quantiles or max(_shares(even_edges(low, high), quantiles)) <= _MAX_SHARE:
        return None
    first = 0.0 if low >= 0 else -_round_up(-low)
    last = _round_up(high) if high > 0 else 0.0
    edges = {_round_to(float(np.quantile(quantiles, level)), 2) for level in _LEVELS}
    values, counts = np.unique(np.asarray(quantiles), return_counts=True)
    for atom in values[counts >= _MIN_ATOM * len(quantiles)].tolist():
        edges |= {atom, atom + 1} if whole else {atom}
    inner = sorted(float(math.floor(edge)) if whole else edge for edge in edges)
    result = sorted({first, last, *(edge for edge in inner if first < edge < last)})
    return tuple(result) if len(result) > 2 else None


def round_dates(low: dt.date, high: dt.date) -> tuple[dt.date, dt.date, str]:
    """Whole years around two dates, and a period that makes few codes of them.

    >>> round_dates(dt.date(2019, 2, 3), dt.date(2023, 5, 6))
    (datetime.date(2019, 1, 1), datetime.date(2023, 12, 31), 'quarter')
    """
    n_years = high.year - low.year + 1
    period = "month" if n_years <= 2 else "quarter" if n_years <= _FEW else "year"
    return dt.date(low.year, 1, 1), dt.date(high.year, 12, 31), period


def _shares(edges: Sequence[float], quantiles: Sequence[float]) -> list[float]:
    """The share of the quantiles in each bin."""
    counts, _ = np.histogram(np.asarray(quantiles), np.asarray(edges))
    return [float(count) / len(quantiles) for count in counts]


def _round_steps(smallest: float) -> Iterator[float]:
    """1, 2, 2.5, 5, 10, 20 and so on, times the smallest."""
    power = smallest
    while True:
        yield from (power, 2 * power, 2.5 * power, 5 * power)
        power *= 10


def _round_to(number: float, n_digits: int) -> float:
    return float(f"{number:.{n_digits}g}")


def _round_up(number: float) -> float:
    """The next round number: one digit and zeros."""
    power = 10.0 ** math.floor(math.log10(number))
    return _clean(math.ceil(number / power) * power)


def _clean(number: float) -> float:
    """A product without the last digits that multiplying leaves."""
    return float(f"{number:.12g}") + 0.0


def is_even(edges: Sequence[float]) -> bool:
    """Whether all bins have one width."""
    widths = [high - low for low, high in pairwise(edges)]
    return max(widths) <= 1.001 * min(widths)
