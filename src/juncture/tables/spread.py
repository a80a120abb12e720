"""How the numbers in an interval are spread: evenly, as evenly as their mean allows, or by steps.

The model knows how many records an interval holds, not where in it they lie. Of all distributions
with a given mean, the one with the largest entropy has the density exp(tilt * u) at the share u of
the way; it is even where the tilt is 0, which puts the mean in the middle. Whole numbers are taken
as cells of width 1 around them: the interval of 3, 4 and 5 reaches from 2.5 to 5.5.

Where a fine histogram of the column is known, its pieces inside the interval are the steps: the
numbers of each piece are spread evenly over it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from juncture.tables.layout import Vector

# A mean this close to an end, as a share of the width, is as good as the end.
_MIN_SHARE = 0.01
_MAX_TILT = 1.01 / _MIN_SHARE
_SMALL = 1e-4
# A tilt that is inferred puts the mean no nearer to an end than a twentieth of the width.
_MAX_INFERRED = 20.0
# Whole numbers up to this many in a piece are its points, each with its own weight.
_MAX_LISTED = 64


@dataclass(frozen=True)
class Steps:
    """Pieces of an interval: their edges, and the share of the records below each edge."""

    edges: tuple[float, ...]
    below: tuple[float, ...]


@dataclass(frozen=True)
class Spread:
    """The distribution of the numbers in an interval.

    >>> Spread(0.0, 100.0).share(0.0, 25.0)
    0.25
    >>> tilted = Spread.with_mean(0.0, 100.0, 20.0)
    >>> round(tilted.mean(0.0, 100.0), 9), round(tilted.share(0.0, 25.0), 3)
    (20.0, 0.705)
    """

    low: float
    high: float
    tilt: float = 0.0
    steps: Steps | None = None
    """Where the shares of pieces are known; the tilt is then 0."""

    @classmethod
    def stepped(cls, edges: Vector, masses: Vector) -> Spread:
        """The spread over pieces between edges; even where they hold nothing.

        >>> Spread.stepped(np.array([0.0, 1.0, 11.0]), np.array([9.0, 1.0])).share(0.0, 6.0)
        0.95
        """
        low, high, total = float(edges[0]), float(edges[-1]), float(masses.sum())
        if len(masses) == 1 or total <= 0.0:
            return cls(low, high)
        below = np.concatenate([[0.0], np.cumsum(masses) / total])
        below[-1] = 1.0
        return cls(low, high, steps=Steps(tuple(edges.tolist()), tuple(below.tolist())))

    @classmethod
    def with_mean(cls, low: float, high: float, mean: float) -> Spread:
        """The spread whose mean lies between the ends."""
        share = min(max((mean - low) / (high - low), _MIN_SHARE), 1.0 - _MIN_SHARE)
        if abs(share - 0.5) < 1e-12:
            return cls(low, high)
        return cls(low, high, _find_tilt(share))

    def share(self, left: float, right: float) -> float:
        """The share of the records between two numbers inside the interval."""
        return self._below(right) - self._below(left)

    def mean(self, left: float, right: float) -> float:
        """The mean of the numbers between two numbers inside the interval."""
        if self.steps is not None:
            points, shares = self._pieces(left, right)
            total = sum(shares)
            weighted = sum(p * s for p, s in zip(points, shares, strict=True))
            return weighted / total if total else 0.5 * (left + right)
        width = right - left
        return left + width * _mean(self.tilt * width / (self.high - self.low))

    def points(self, left: float, right: float, n_points: int) -> tuple[list[float], list[float]]:
        """Numbers in a piece and their shares of the interval's records.

        Sums over one point are exact for lines; over n, for polynomials of degree 2 n - 1 if the
        spread is even, and nearly if not.
        """
        share, width = self.share(left, right), right - left
        if n_points == 1:
            return [self.mean(left, right)], [share]
        if self.steps is not None:
            return self._pieces(left, right)
        points, weights = np.polynomial.legendre.leggauss(n_points)
        points = (points + 1.0) / 2.0
        tilt = self.tilt * width / (self.high - self.low)
        weights = weights * np.exp(tilt * points - max(tilt, 0.0))
        return (left + width * points).tolist(), (share * weights / weights.sum()).tolist()

    def whole_points(
        self, left: float, right: float, n_points: int
    ) -> tuple[list[float], list[float]]:
        """The same for whole numbers: one by one where there are few, and their mean is enough."""
        first, n_numbers = round(left + 0.5), round(right - left)
        if n_numbers == 1:
            return [float(first)], [self.share(left, right)]
        if n_points == 1 or n_numbers > _MAX_LISTED:
            return self.points(left, right, n_points)
        numbers = [float(first + k) for k in range(n_numbers)]
        return numbers, [self.share(number - 0.5, number + 0.5) for number in numbers]

    def _pieces(self, left: float, right: float) -> tuple[list[float], list[float]]:
        """The middles of the steps between two numbers, and their shares."""
        assert self.steps is not None  # by the callers
        inner = [edge for edge in self.steps.edges if left < edge < right]
        pieces = list(pairwise([left, *inner, right]))
        return [0.5 * (a + b) for a, b in pieces], [self.share(a, b) for a, b in pieces]

    def _below(self, number: float) -> float:
        if self.steps is not None:
            return float(np.interp(number, self.steps.edges, self.steps.below))
        share = (number - self.low) / (self.high - self.low)
        return float(spread_below(np.array(share), np.array(self.tilt)))


def infer_means(edges: Sequence[float], counts: Sequence[float], floor: float) -> list[float]:
    """The likely mean of each bin between edges, from how the counts of its neighbours compare.

    Where the density falls from bin to bin, it also falls inside a bin: its numbers are taken to
    have the slope that the logarithms of neighbouring densities have, the smaller of both sides
    counting more, and none at a peak. `floor` is added to the counts, so that noise makes no slope.

    >>> [round(mean, 1) for mean in infer_means([0, 10, 20, 30], [900, 90, 9], 0.0)]
    [3.2, 13.2, 23.2]
    >>> infer_means([0, 10, 20], [5, 5], 1.0)
    [5.0, 15.0]
    """
    ends = np.asarray(edges, dtype=np.float64)
    width, middle = np.diff(ends), 0.5 * (ends[1:] + ends[:-1])
    density = np.log(np.maximum(np.asarray(counts, dtype=np.float64), 0.0) + max(floor, 1e-9))
    slope = np.diff(density - np.log(width)) / np.diff(middle)
    left, right = np.append(slope[:1], slope), np.append(slope, slope[-1:])
    sizes = np.abs(left) + np.abs(right)
    agreeing = left * right > 0.0
    joint = np.where(agreeing, 2.0 * left * np.abs(right) / np.where(agreeing, sizes, 1.0), 0.0)
    tilts = np.clip(joint * width, -_MAX_INFERRED, _MAX_INFERRED)
    return [float(e + w * _mean(float(t))) for e, w, t in zip(ends, width, tilts, strict=False)]


def spread_below(share: Vector, tilt: Vector) -> Vector:
    """The part of the records within this share of the way, for each interval with a tilt."""
    # A tilt upwards is one downwards seen from the other end, where no number overflows.
    mirrored = tilt > 0.0
    way, down = np.where(mirrored, 1.0 - share, share), -np.abs(tilt)
    is_even = down > -_SMALL
    safe = np.where(is_even, -1.0, down)
    # Near 0 the first terms of the series are enough.
    part = np.where(
        is_even, way * (1.0 + down * (way - 1.0) / 2.0), np.expm1(safe * way) / np.expm1(safe)
    )
    return np.asarray(np.where(mirrored, 1.0 - part, part))


def draw_shares(uniform: Vector, tilt: Vector) -> Vector:
    """Shares of the way whose distribution has these tilts, from numbers spread evenly in [0, 1).

    >>> draw_shares(np.array([0.25, 0.75]), np.array([0.0, 0.0]))
    array([0.25, 0.75])
    """
    mirrored = tilt > 0.0
    part, down = np.where(mirrored, 1.0 - uniform, uniform), -np.abs(tilt)
    is_even = down > -_SMALL
    safe = np.where(is_even, -1.0, down)
    way = np.where(is_even, part, np.log1p(part * np.expm1(safe)) / safe)
    return np.asarray(np.where(mirrored, 1.0 - way, way))


def _mean(tilt: float) -> float:
    """The mean share of the way under a tilt."""
    if abs(tilt) < _SMALL:
        return 0.5 + tilt / 12.0
    return -1.0 / math.expm1(-tilt) - 1.0 / tilt


def _find_tilt(mean: float) -> float:
    """The tilt that gives a mean share of the way, by bisection: the mean grows with the tilt."""
    low, high = -_MAX_TILT, _MAX_TILT
    while high - low > 1e-13 * _MAX_TILT:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _mean(middle) < mean else (low, middle)
    return 0.5 * (low + high)
