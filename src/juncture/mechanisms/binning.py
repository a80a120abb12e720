"""Bins of a column from the noisy counts of a fine grid: all of it is post-processing.

Counts become non-negative by making their running sums rise: isotonic regression moves no running
sum further from the truth than the worst of them was (it never increases the largest error), so
counts of ranges keep their accuracy. Then

- a cell that holds as many records as a bin should, and far more than those beside it, gets a bin
  of its own: 0 among capital gains;
- other cells are put together into bins that are narrow where records are many, but not as narrow
  as bins of equal mass would be: most of a bin's width follows the density to the power of -1/3,
  which leaves the least error of a histogram, the rest is the same everywhere. Bins of equal mass
  are so wide in the tails that what lies inside them matters more than the noise on them, and a
  smooth column would be known less well than by bins of one width;
- what is far below the noise on a range is never a bin, but part of its smaller neighbour.

Inside bins, cells are put together into pieces over which counts are spread evenly, as far as the
noise can tell: a smooth density needs none, and is not made rough by noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Span = tuple[int, int]

# A bin holds at least this many standard deviations of the noise on a range. Where a running sum
# leaves a straight line by so many, densities are taken to differ when widths are chosen; inside a
# bin it takes more: what the counts of bins say of its inside is better than a piece made of noise.
# All of these, and the power, were tuned on made-up columns (by simulation, and
# experiments/private_bins.py).
_BIN_NOISE, _DENSITY_NOISE, _PIECE_NOISE = 0.25, 1.5, 2.5
_POWER = 1.0 / 3.0
# The share of the bins that would have one width.
_EVEN = 0.4
# A cell with this share of what a bin should hold stands alone, if it has so many times the records
# of each cell beside it.
_ALONE, _SPIKE = 0.7, 2.0
_ROUNDS = 20


@dataclass(frozen=True)
class Bins:
    """Spans of cells: bins, and the pieces that they are made of."""

    bins: tuple[Span, ...]
    pieces: tuple[Span, ...]


def make_nonnegative(estimate: Array) -> Array:
    """The nearest counts whose running sums rise from 0.

    >>> make_nonnegative(np.array([5.0, -2.0, 3.0])).round(6)
    array([4., 0., 2.])
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415  slow to import

    rising = np.maximum(isotonic_regression(np.cumsum(estimate)).x, 0.0)
    return np.diff(np.concatenate([[0.0], rising]))


def choose_bins(masses: Array, max_bins: int, *, range_noise: float) -> Bins:
    """Bins that are narrow where records are many, and pieces inside them.

    - `masses`: the estimated records of each cell, none negative.
    - `range_noise`: the standard deviation of the noise on a range.

    >>> masses = np.array([900.0, 10.0, 20.0, 30.0, 20.0, 10.0, 10.0])
    >>> choose_bins(masses, 3, range_noise=5.0).bins
    ((0, 1), (1, 4), (4, 7))
    """
    below = np.concatenate([[0.0], np.cumsum(masses)])
    weights = _weigh(masses, below, max_bins, _DENSITY_NOISE * range_noise)
    spans = _gather(weights, _find_target(weights, max_bins))
    bins = _limit(spans, masses, max_bins, _BIN_NOISE * range_noise)
    tolerance = _PIECE_NOISE * range_noise
    pieces = [piece for span in bins for piece in _divide_evenly(below, span, tolerance)]
    return Bins(tuple(bins), tuple(pieces))


def _weigh(masses: Array, below: Array, max_bins: int, tolerance: float) -> Array:
    """What each cell takes of a bin: by a power of the density around it, as far as noise can tell.

    A cell that should stand alone takes more than a bin.
    """
    weights = np.zeros_like(masses)
    for first, stop in _divide_evenly(below, (0, len(masses)), tolerance):
        density = float(below[stop] - below[first]) / (stop - first)
        weights[first:stop] = max(density, 0.0) ** _POWER
    weights = (1.0 - _EVEN) * weights / max(float(weights.sum()), 1e-300) + _EVEN / len(weights)
    beside = np.maximum(np.append(0.0, masses[:-1]), np.append(masses[1:], 0.0))
    alone = (masses >= _ALONE * _find_target(masses, max_bins)) & (masses > _SPIKE * beside)
    return np.where(alone, 1.0 + weights.sum(), weights)


def _divide_evenly(below: Array, span: Span, tolerance: float) -> list[Span]:
    """Pieces of a span inside which counts are spread evenly, as far as the noise can tell.

    A span is divided where its running sum is furthest from a straight line, if it is further than
    the tolerance; and so on with the parts.

    >>> _divide_evenly(np.array([0.0, 50.0, 60.0, 70.0, 80.0]), (0, 4), tolerance=20.0)
    [(0, 1), (1, 4)]
    """
    found, waiting = list[Span](), [span]
    while waiting:
        first, stop = waiting.pop()
        line = np.linspace(below[first], below[stop], stop - first + 1)
        apart = np.abs(below[first : stop + 1] - line)
        index = int(np.argmax(apart))
        if apart[index] <= tolerance:
            found.append((first, stop))
        else:
            waiting += [(first + index, stop), (first, first + index)]
    return found


def _find_target(masses: Array, max_bins: int) -> float:
    """What a bin should hold, once cells that stand alone have theirs."""
    target = float(masses.sum()) / max_bins
    for _ in range(_ROUNDS):
        alone = masses >= _ALONE * target
        n_left = max_bins - int(alone.sum())
        if n_left <= 0:
            break
        smaller = float(masses[~alone].sum()) / n_left
        if smaller >= target * (1.0 - 1e-9):
            break
        target = smaller
    return target


def _gather(masses: Array, target: float) -> list[Span]:
    """Spans of cells in a row that hold at least the target; heavy cells stand alone.

    What is left before a heavy cell, and is too little, joins the span before it, if it may; else
    it stays.
    """
    spans, first, held = list[Span](), 0, 0.0

    def end(stop: int, *, whole: bool) -> None:
        nonlocal first, held
        if stop == first:
            return
        joinable = bool(spans) and not _is_alone(masses, spans[-1], target)
        if not whole and joinable:
            spans[-1] = (spans[-1][0], stop)
        else:
            spans.append((first, stop))
        first, held = stop, 0.0

    for index, mass in enumerate(masses.tolist()):
        if mass >= _ALONE * target and first < index:
            end(index, whole=held >= 0.5 * target)
        held += mass
        if mass >= _ALONE * target or held >= target:
            end(index + 1, whole=held >= 0.5 * target)
    end(len(masses), whole=held >= 0.5 * target)
    return spans


def _is_alone(masses: Array, span: Span, target: float) -> bool:
    return span[1] == span[0] + 1 and bool(masses[span[0]] >= _ALONE * target)


def _limit(spans: Sequence[Span], masses: Array, max_bins: int, least: float) -> list[Span]:
    """Spans of which none holds too little and there are not too many: the smallest are joined."""
    below = np.concatenate([[0.0], np.cumsum(masses)])
    kept = list(spans)
    while len(kept) > 1:
        held = [float(below[stop] - below[first]) for first, stop in kept]
        index = int(np.argmin(held))
        if held[index] >= least and len(kept) <= max_bins:
            break
        sides = [side for side in (index - 1, index + 1) if 0 <= side < len(kept)]
        other = min(sides, key=lambda side: held[side])
        low, high = min(index, other), max(index, other)
        kept[low : high + 1] = [(kept[low][0], kept[high][1])]
    return kept
