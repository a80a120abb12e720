"""Scores for private choices that are exact in floating point.

What scores are made of is rounded to multiples of a unit, and bounded, so that sums below the limit
of a score are exact in doubles; scores beyond it count as the limit. So a score moves between
neighbouring tables by no more than its sensitivity, and no overflow tells of the data.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture.errors import InvalidInput
from juncture.factor import Factor

# The unit is 2 to the minus this.
PLACES = 20
MOST_SCORE = 2.0**31
_MOST_GIVEN = 2.0**30


def rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiples of the scores' unit."""
    return np.asarray(np.round(values * 2.0**PLACES) * 2.0**-PLACES)


def given(values: ArrayLike) -> NDArray[np.float64]:
    """Numbers that a caller gives for scores: finite, bounded and rounded."""
    numbers = np.asarray(values, dtype=np.float64).reshape(-1)
    if not (np.abs(numbers) <= _MOST_GIVEN).all():
        raise InvalidInput(
            f"`answers` and `penalties` must be finite numbers of at most {_MOST_GIVEN:g}; got "
            "others. Give counts."
        )
    return rounded(numbers)


def total(values: NDArray[np.float64]) -> float:
    """A sum of multiples of the scores' unit: exact below the limit of a score."""
    return float(values.sum())


def dependence(table: Factor, n_records: int) -> float:
    """The number of records times half the distance between a joint table and independence."""
    joint = table.values.reshape(-1, table.values.shape[-1])
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / max(1, n_records)
    return 0.5 * float(np.abs(joint - product).sum())


def information(table: Factor, n_records: int) -> float:
    """The records times the mutual information, in bits, of the last axis and the rest."""
    joint = table.values.reshape(-1, table.values.shape[-1])
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / max(1, n_records)
    held = joint > 0
    return float((joint[held] * np.log2(joint[held] / product[held])).sum())


def information_sensitivity(n_records: int) -> float:
    """The most that a replaced record moves `information`."""
    n = n_records
    if n < 2:
        return 1.0
    return 2.0 * math.log2((n + 1) / 2) + (n - 1) * math.log2((n + 1) / (n - 1))


def drawn(
    exponents: NDArray[np.float64], draws: int, below: Callable[[int], int]
) -> NDArray[np.int64]:
    """Places drawn with probabilities that go as the exponentials of their exponents.

    The weights are whole numbers: the mantissa of the exponential, shifted by its exponent, so each
    is correct to one unit in its last place whatever their spread; `below` gives a whole number
    below a bound, and the draws are exact for these weights.
    """
    # e^x = 2^(k + f) with a whole k and f in [0, 1): no weight overflows or vanishes.
    doublings = exponents / np.log(2.0)
    whole = np.floor(doublings)
    mantissas = np.round(np.exp2(doublings - whole) * 2.0**52).astype(np.int64).tolist()
    shifts = (whole - whole.min()).astype(np.int64).tolist()
    ends = list(accumulate(m << s for m, s in zip(mantissas, shifts, strict=True)))
    places = [bisect_right(ends, below(ends[-1])) for _ in range(draws)]
    return np.array(places, dtype=np.int64)
