"""Scores for private choices that are exact in floating point.

What scores are made of is rounded to multiples of a unit, and bounded, so that sums below the limit
of a score are exact in doubles; scores beyond it count as the limit. So a score moves between
neighbouring tables by no more than its sensitivity, and no overflow tells of the data.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from enum import StrEnum
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture.errors import InvalidInput
from juncture.tables.factor import Factor

# The unit is 2 to the minus this.
PLACES = 20
MAX_SCORE = 2.0**31
_MAX_INPUT = 2.0**30


def round_to_unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiples of the scores' unit."""
    return np.asarray(np.round(values * 2.0**PLACES) * 2.0**-PLACES)


def validate(values: ArrayLike) -> NDArray[np.float64]:
    """Numbers that a caller gives for scores: finite, bounded and rounded."""
    numbers = np.asarray(values, dtype=np.float64).reshape(-1)
    if not (np.abs(numbers) <= _MAX_INPUT).all():
        raise InvalidInput(
            f"`answers` and `penalties` must be finite numbers of at most {_MAX_INPUT:g}; got "
            "others. Give counts."
        )
    return round_to_unit(numbers)


def total(values: NDArray[np.float64]) -> float:
    """A sum of multiples of the scores' unit: exact below the limit of a score."""
    return float(values.sum())


class Dependence(StrEnum):
    """How the dependence of an attribute on a set of others is scored: PrivBayes' three ways."""

    DISTANCE = "distance"
    """Half the L1 distance between the joint distribution and independence: for any domain."""
    INFORMATION = "information"
    """The mutual information in bits: tells more of strong dependences, and moves far more."""
    FIT = "fit"
    """Minus half the L1 distance to a distribution in which the set decides the attribute and both
    its values are as likely: for attributes of two values, and moves least."""


def dependence(table: Factor, n_records: int, by: Dependence) -> float:
    """The number of records times the score of the table's last attribute and the others."""
    joint = table.values.reshape(-1, table.values.shape[-1])
    if by is Dependence.FIT:
        return _fit_score(joint, n_records)
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / max(1, n_records)
    if by is Dependence.DISTANCE:
        return 0.5 * float(np.abs(joint - product).sum())
    held = joint > 0
    return float((joint[held] * np.log2(joint[held] / product[held])).sum())


def sensitivity(by: Dependence, n_records: int) -> float:
    """The most that a replaced record moves `dependence`; the curator's docstring proves it."""
    n = n_records
    if by is Dependence.FIT:
        return 1.0
    if by is Dependence.DISTANCE:
        return 3.0
    return 1.0 if n < 2 else 2.0 * math.log2((n + 1) / 2) + (n - 1) * math.log2((n + 1) / (n - 1))


def _fit_score(joint: NDArray[np.float64], n_records: int) -> float:
    """The best way to give each value of the set a value of the attribute: dynamic programming.

    `most[k]` is the most records that values given 1 can hold while those given 0 hold k, where
    half of all records counts as enough.
    """
    half = (n_records + 1) // 2
    best = np.full(half + 1, -np.inf)
    best[0] = 0.0
    for given_0, given_1 in joint:
        shift = min(int(given_0), half)
        moved = np.full(half + 1, -np.inf)
        moved[shift:] = best[: half + 1 - shift]
        moved[half] = best[half - shift :].max()
        best = np.maximum(best + given_1, moved)
    short = np.maximum(n_records / 2 - np.arange(half + 1), 0.0)
    return -float((short + np.maximum(n_records / 2 - best, 0.0)).min())


def draw(
    exponents: NDArray[np.float64], draws: int, randbelow: Callable[[int], int]
) -> NDArray[np.int64]:
    """Places drawn with probabilities that go as the exponentials of their exponents.

    The weights are whole numbers: the mantissa of the exponential, shifted by its exponent, so each
    is correct to one unit in its last place whatever their spread; `below` gives a whole number
    below a bound, and the draws are exact for these weights.
    """
    # e^x = 2^(k + f) with a whole k and f in [0, 1): no weight overflows or vanishes.
    doublings = exponents / np.log(2.0)
    integer_part = np.floor(doublings)
    mantissas = np.round(np.exp2(doublings - integer_part) * 2.0**52).astype(np.int64).tolist()
    shifts = (integer_part - integer_part.min()).astype(np.int64).tolist()
    ends = list(accumulate(m << s for m, s in zip(mantissas, shifts, strict=True)))
    indices = [bisect_right(ends, randbelow(ends[-1])) for _ in range(draws)]
    return np.array(indices, dtype=np.int64)
