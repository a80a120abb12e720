"""How much an attribute depends on a set of others: PrivBayes' three scores."""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from juncture.tables.factor import Factor


class Dependence(StrEnum):
    """Which of the three scores measures how much an attribute depends on a set of others.

    >>> from juncture.tables.domain import Domain
    >>> table = Factor(Domain({"cough": 2, "flu": 2}), [[6, 0], [0, 2]])
    >>> Dependence.DISTANCE.score(table, n_records=8), Dependence.DISTANCE.sensitivity(8)
    (3.0, 3.0)
    """

    DISTANCE = "distance"
    """Half the L1 distance between the joint distribution and independence. For any domain."""
    INFORMATION = "information"
    """The mutual information in bits. Separates strong dependences better, but its sensitivity is
    far larger."""
    FIT = "fit"
    """Minus half the L1 distance to the nearest distribution in which the set decides the attribute
    and both its values are equally likely. Only for attributes of two values; the smallest
    sensitivity."""

    def score(self, table: Factor, n_records: int) -> float:
        """The number of records times the score of the table's last attribute and the others."""
        joint = table.values.reshape(-1, table.values.shape[-1])
        if self is Dependence.FIT:
            return _fit_score(joint, n_records)
        product = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / max(1, n_records)
        if self is Dependence.DISTANCE:
            return 0.5 * float(np.abs(joint - product).sum())
        held = joint > 0
        return float((joint[held] * np.log2(joint[held] / product[held])).sum())

    def sensitivity(self, n_records: int) -> float:
        """The most that one replaced record among n moves `score`, that is n times the score.

        DISTANCE: replacing a record moves the joint distribution by at most 2 / n in L1, and each
        factor of the product by at most 2 / n, so the product by at most 4 / n. The score moves by
        at most (2 + 4) / (2 n) = 3 / n; times n, by 3.

        INFORMATION: PrivBayes' authors (Zhang et al. 2017) show that it moves by at most
        (2 / n) log((n + 1) / 2) + ((n - 1) / n) log((n + 1) / (n - 1)), logarithms to base 2.

        FIT: the joint moves by at most 2 / n in L1, so its distance to any fixed distribution, and
        to the nearest of a set, by the same amount; half of that, times n, is 1.
        """
        n = n_records
        if self is Dependence.FIT:
            return 1.0
        if self is Dependence.DISTANCE:
            return 3.0
        if n < 2:
            return 1.0
        return 2.0 * math.log2((n + 1) / 2) + (n - 1) * math.log2((n + 1) / (n - 1))


def _fit_score(joint: NDArray[np.float64], n_records: int) -> float:
    """Find the best value of the attribute for each value of the set, by dynamic programming.

    `best[k]` is the most records that values given 1 can hold while those given 0 hold k, where
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
