"""The mean of an attribute with numbers: its noise, and what the bins leave open."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from juncture.model.sql.notes import Range
from juncture.publish.count_noise import CountNoise
from juncture.tables.codebook import Coding
from juncture.tables.layout import Vector


class Mean(NamedTuple):
    """The mean of the records that have a number."""

    value: float
    bins: Range | None
    """What it can be wherever in their bins the numbers lie; None where every number is known."""
    weights: Vector
    """How the mean changes with the count of each value."""


def find_mean(coding: Coding, masses: Vector) -> Mean | None:
    """The mean of an attribute; None where its values are not numbers, or no record has one.

    >>> find_mean(Coding(((0.0, 10.0), (10.0, 20.0))), np.array([1.0, 3.0]))[:2]
    (12.5, Range(low=7.5, high=17.5))
    """
    numbers = coding.numbers
    known = ~np.isnan(numbers)
    total = float(masses[known].sum())
    if coding.period is not None or not known.any() or total <= 0.0 or _has_texts(coding):
        return None
    shares = np.where(known, masses, 0.0) / total
    filled = np.where(known, numbers, 0.0)
    value = float(shares @ filled)
    weights = np.where(known, filled - value, 0.0) / total
    bins = None
    if coding.has_intervals:
        low, high = (_list_ends(coding, end) for end in (0, 1))
        bins = Range(float(shares @ low), float(shares @ high))
    return Mean(value, bins, weights)


def describe_mean(name: str, coding: Coding, masses: Vector, noise: CountNoise) -> str | None:
    """The mean in words; None where there is none."""
    mean = find_mean(coding, masses)
    if mean is None:
        return None
    stddev = noise.stddev_of_sum(name, mean.weights) if mean.weights.any() else None
    places = _count_places(mean.value, 4) if stddev is None else _count_places(stddev, 2)
    error = "" if stddev is None else f" ±{_round(stddev, places)}"
    if mean.bins is None:
        return f"Mean {_round(mean.value, places)}{error}"
    low, high = _round(mean.bins.low, places), _round(mean.bins.high, places)
    return (
        f"Mean {_round(mean.value, places)}{error}; between {low} and {high}, wherever in their "
        "bins the numbers lie"
    )


def _has_texts(coding: Coding) -> bool:
    return any(isinstance(meaning, str | bool) for meaning in coding.meanings)


def _list_ends(coding: Coding, end: int) -> Vector:
    """The least or the largest number of each code; zero where it has none."""
    ends = []
    for meaning in coding.values:
        if isinstance(meaning, tuple):
            # The largest whole number of an interval is one below its end.
            ends.append(meaning[end] - (1.0 if end and coding.whole else 0.0))
        else:
            ends.append(float(meaning) if isinstance(meaning, int | float) else 0.0)
    return np.array(ends)


def _count_places(value: float, digits: int) -> int:
    """How many decimals show so many digits of a number; negative for round thousands."""
    return digits if value == 0.0 else digits - 1 - math.floor(math.log10(abs(value)))


def _round(value: float, places: int) -> str:
    return f"{round(value, places):,.{max(0, places)}f}"
