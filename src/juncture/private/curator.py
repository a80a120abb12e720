"""The only door between private counts and the world.

A curator holds a source, a ledger and, through the ledger, the neighbour relation. Whoever holds a
curator can have noisy answers and private choices, each paid for in the ledger before its noise is
drawn, and nothing else: it hands out no rows, no exact counts, and takes no seed.
"""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from juncture.privacy import score
from juncture.private import noise
from juncture.private.door import Door
from juncture.private.measuring import Integers
from juncture.tables.noise import Noise


class Curator(Door):
    """The door for releases: noise from OpenDP's exact samplers, seeded by the system."""

    def _add_noise(self, values: Integers, kind: Noise, scale: float) -> Integers:
        add = noise.add_laplace if kind is Noise.LAPLACE else noise.add_gaussian
        return add(values, scale)

    def _draw(self, exponents: NDArray[np.float64], draws: int) -> Integers:
        return score.draw(exponents, draws, secrets.randbelow)

    def _select(
        self, scores: Integers, sensitivity: int, epsilon: float | None, rho: float | None
    ) -> int:
        if rho is not None:
            return noise.select_exponential(scores, sensitivity, rho)
        return noise.select_noisy_max(scores, sensitivity, epsilon or 0.0)
