"""Private choices by exact scores: one candidate, one of those that fit, or several.

The noisy order of the candidates stays in here: what leaves is what was paid for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture.errors import InvalidInput
from juncture.privacy import score_units
from juncture.privacy.accounting import MAX_DRAW_ROUNDS, MAX_ETA
from juncture.privacy.price import ZCDP, Price
from juncture.privacy.score import BoundScore
from juncture.private.noise import Integers, Sampler
from juncture.tables.factor import Factor
from juncture.tables.queries.products import Operator

# After so many candidates that do not fit, all others are tested: a draw takes longer than a test.
_MAX_WALK = 16
# Exponents are smaller by this share, so that no rounding makes them larger than what was paid for.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class UnitScores:
    """The scores of all candidates in whole units, and how many units a neighbour moves one."""

    units: Integers
    sensitivity: int

    def select(self, sampler: Sampler, price: Price) -> int:
        """The index of a high score, for a price."""
        return sampler.select(self.units, self.sensitivity, price)

    def keep(self, indices: Integers) -> UnitScores:
        """The scores of some candidates."""
        return UnitScores(self.units[indices], self.sensitivity)


def score_in_units(bound: BoundScore, tables: Sequence[Factor]) -> UnitScores:
    """Exact scores from exact counts. Those beyond the limit of a score count as the limit."""
    bounded = np.clip(bound.evaluate(tables), -score_units.MAX_SCORE, score_units.MAX_SCORE)
    units = np.round(bounded * 2.0**score_units.PLACES).astype(np.int64)
    return UnitScores(units, math.ceil(bound.sensitivity * 2**score_units.PLACES))


def choose_fitting(
    sampler: Sampler, scores: UnitScores, price: Price, fits: Callable[[int], bool]
) -> int:
    """The index of a high score among those that fit, testing few of them.

    A candidate is drawn by the exponential mechanism; one that does not fit is dropped, and another
    one drawn among the rest. That is one exponential mechanism among those that fit: adding Gumbel
    noise to all scores and taking them in their noisy order draws the same sequence (Yellott 1977),
    and the first of it that fits is the noisy maximum of those that fit. It costs what one choice
    costs, since what fits is public and only the last draw is told.

    This holds for the exponential mechanism, and not for noisy maxima with exponential noise; so a
    pure epsilon, too, buys the former here.
    """
    exponential = ZCDP((1.0 - _ROUNDING) * price.selection_epsilon**2 / 8.0)
    left = np.arange(len(scores.units))
    for _ in range(min(_MAX_WALK, len(left))):
        index = scores.keep(left).select(sampler, exponential)
        if fits(int(left[index])):
            return int(left[index])
        left = np.delete(left, index)
    left = np.array([index for index in left.tolist() if fits(index)], dtype=np.int64)
    if not len(left):
        raise InvalidInput("`fits` must hold for a candidate; got none that fits.")
    return int(left[scores.keep(left).select(sampler, exponential)])


def choose_many(
    sampler: Sampler, scores: UnitScores, k: int, share: Price, floor: float | None = None
) -> Integers:
    """The indices of k different high scores, in the order of their choice; each for `share`.

    With a floor, one more candidate has that score on every table; once it is drawn, no more are.
    """
    units, end = scores.units, len(scores.units)
    if floor is not None:
        units = np.append(units, round(floor * 2**score_units.PLACES))
    all_scores = UnitScores(units, scores.sensitivity)
    left, chosen = np.arange(len(units)), list[int]()
    for _ in range(k):
        index = all_scores.keep(left).select(sampler, share)
        if left[index] == end:
            break
        chosen.append(int(left[index]))
        left = np.delete(left, index)
    return np.array(chosen, dtype=np.int64)


def draw_exponents(
    shares: NDArray[np.float64], satisfied: NDArray[np.float64], n_earlier: int, eta: float
) -> NDArray[np.float64]:
    """The exponents of all queries, then of their complements."""
    exponents = eta * (n_earlier * shares - satisfied)
    return np.concatenate([exponents, -exponents])


def check_draws(
    operators: Sequence[Operator], satisfied: ArrayLike, n_earlier: int, eta: float, draws: int
) -> np.ndarray:
    """How many records satisfy each query; refuses numbers that `draw_queries` cannot use."""
    known = np.asarray(satisfied, dtype=np.float64).reshape(-1)
    if len(known) != sum(operator.n_rows for operator in operators):
        raise InvalidInput(
            f"`satisfied` must be a number for each query; got {len(known)} numbers."
        )
    valid = ((known >= 0) & (known <= n_earlier)).all() and 0 < n_earlier <= MAX_DRAW_ROUNDS
    if not (valid and 0.0 < eta <= MAX_ETA and draws > 0):
        raise InvalidInput(
            f"`satisfied` must lie between 0 and `n_earlier`, `n_earlier` between 1 and "
            f"{MAX_DRAW_ROUNDS:,}, `eta` between 0 and {MAX_ETA:g}, and `draws` above 0; got "
            f"{n_earlier}, {eta} and {draws} for the last three."
        )
    return known
