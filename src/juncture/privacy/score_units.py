"""The arithmetic of scores: numbers for private choices that are exact in floating point.

The inputs of scores are rounded to multiples of a unit, and bounded, so that sums below the limit
of a score are exact in doubles; scores beyond it count as the limit. So a score moves between
neighbouring tables by no more than its sensitivity, and no overflow depends on the data.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture.errors import InvalidInput

# The unit is 2 to the minus this.
PLACES = 20
MAX_SCORE = 2.0**31
_MAX_INPUT = 2.0**30


def round_to_unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values rounded to multiples of the scores' unit."""
    return np.asarray(np.round(values * 2.0**PLACES) * 2.0**-PLACES)


def validate(values: ArrayLike) -> NDArray[np.float64]:
    """Round the numbers that a caller gives for scores. Those beyond a limit count as the limit.

    Refusing them would come too late: a mechanism makes them of earlier answers, which were paid
    for. They are public, so bounding them costs no privacy.
    """
    numbers = np.asarray(values, dtype=np.float64).reshape(-1)
    if not np.isfinite(numbers).all():
        raise InvalidInput("`answers` and `penalties` must be finite numbers; got others.")
    return round_to_unit(np.clip(numbers, -_MAX_INPUT, _MAX_INPUT))


def total(values: NDArray[np.float64]) -> float:
    """A sum of multiples of the scores' unit: exact below the limit of a score."""
    return float(values.sum())


def totals(values: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The sums of consecutive parts of so many values each: exact as `total` is.

    >>> totals(np.array([1.0, 2.0, 4.0]), np.array([2, 0, 1]))
    array([3., 0., 4.])
    """
    sums, held = np.zeros(len(sizes)), sizes > 0
    if held.any():
        sums[held] = np.add.reduceat(values, (np.cumsum(sizes) - sizes)[held])
    return sums


def draw(
    exponents: NDArray[np.float64], draws: int, randbelow: Callable[[int], int]
) -> NDArray[np.int64]:
    """Draw indices with probabilities proportional to the exponentials of their exponents.

    `randbelow` gives a whole number below a bound, and the draws are exact for the weights.
    """
    ends = list(accumulate(weigh(exponents)))
    indices = [bisect_right(ends, randbelow(ends[-1])) for _ in range(draws)]
    return np.array(indices, dtype=np.int64)


def weigh(exponents: NDArray[np.float64]) -> list[int]:
    """Whole numbers in proportion to the exponentials of their exponents.

    Each is the mantissa of the exponential, shifted by its exponent, so it is correct to one unit
    in its last digit, however far apart they are.
    """
    # e^x = 2^(k + f) with a whole k and f in [0, 1): no weight overflows or vanishes.
    doublings = exponents / np.log(2.0)
    integer_part = np.floor(doublings)
    mantissas = np.round(np.exp2(doublings - integer_part) * 2.0**52).astype(np.int64).tolist()
    shifts = (integer_part - integer_part.min()).astype(np.int64).tolist()
    return [m << s for m, s in zip(mantissas, shifts, strict=True)]
