"""A curator for experiments and tests: its noise comes from a seeded generator.

It protects nobody. What it gives has the distribution of a release, and can be repeated; so a
release must never come from it, and nothing on the way to a release imports this module.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from juncture.privacy.ledger import Ledger
from juncture.private.door import Door
from juncture.private.sources.source import Source
from juncture.tables.noise import Noise

Integers = NDArray[np.int64]


class SimulatedCurator(Door):
    """Not private: repeatable noise for experiments."""

    def __init__(self, source: Source, ledger: Ledger, *, rng: np.random.Generator) -> None:
        super().__init__(source, ledger)
        self._rng = rng

    def _add_noise(self, values: Integers, kind: Noise, scale: float) -> Integers:
        if kind is Noise.LAPLACE:
            # A discrete Laplace variable is the difference of two geometric ones.
            stop = -math.expm1(-1.0 / scale)
            drawn = self._rng.geometric(stop, (2, len(values)))
            return np.asarray(values + drawn[0] - drawn[1], dtype=np.int64)
        drawn_normal = np.round(self._rng.normal(0.0, scale, len(values)))
        return np.asarray(values + drawn_normal, dtype=np.int64)

    def _draw(self, exponents: NDArray[np.float64], draws: int) -> Integers:
        chances = np.exp(exponents - exponents.max())
        return self._rng.choice(len(exponents), draws, p=chances / chances.sum())

    def _select(
        self, scores: Integers, sensitivity: int, epsilon: float | None, rho: float | None
    ) -> int:
        price = epsilon if rho is None else math.sqrt(8.0 * rho)
        gumbel = self._rng.gumbel(size=len(scores))
        return int(np.argmax((price or 0.0) * scores / (2.0 * sensitivity) + gumbel))
