"""A curator for experiments and tests: its noise comes from a seeded generator.

It protects no one. Its answers have the distribution of a release but can be repeated, so a release
must never come from it. Beside experiments, only `workflow/forecast.py` imports this module, and
answers about tables that it made up.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from juncture.privacy.ledger import Ledger
from juncture.privacy.price import Price
from juncture.private.curator import Curator
from juncture.private.sources.source import Source
from juncture.tables.noise import Noise

Integers = NDArray[np.int64]


class SimulatedCurator(Curator):
    """Not private: a curator whose noise can be repeated, for experiments.

    >>> from tempfile import TemporaryDirectory
    >>> from juncture.privacy import Budget, Pure
    >>> from juncture.private.sources.source import CodedTable
    >>> from juncture.tables.domain import Domain
    >>> source = CodedTable(Domain({"sex": 2}), {"sex": [0, 1, 1]})
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(f"{folder}/people.ledger", Budget(epsilon=1))
    ...     curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(0))
    ...     curator.measure(["sex"], Pure(1.0)).values
    array([2., 2.])
    """

    def __init__(self, source: Source, ledger: Ledger, *, rng: np.random.Generator) -> None:
        super().__init__(source, ledger)
        self._sampler = SeededSampler(rng)


class SeededSampler:
    """Not private: noise from a generator of pseudo-random numbers."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def refuse_unknown(self, noise: Noise) -> None:
        """See `Sampler.refuse_unknown`: every kind can be simulated, by rounding if necessary."""

    def add_noise(self, values: Integers, noise: Noise, scale: float) -> Integers:
        """See `Sampler.add_noise`: exact for Laplace, otherwise the continuous form, rounded."""
        if noise is Noise.LAPLACE:
            # A discrete Laplace variable is the difference of two geometric ones.
            stop = -math.expm1(-1.0 / scale)
            drawn = self._rng.geometric(stop, (2, len(values)))
            return np.asarray(values + drawn[0] - drawn[1], dtype=np.int64)
        fresh = np.round(noise.draw(self._rng, noise.stddev(scale), len(values)))
        return np.asarray(values + fresh, dtype=np.int64)

    def select(self, scores: Integers, sensitivity: int, price: Price) -> int:
        """See `Sampler.select`: the largest score after Gumbel noise is added."""
        gumbel = self._rng.gumbel(size=len(scores))
        return int(np.argmax(price.selection_epsilon * scores / (2.0 * sensitivity) + gumbel))

    def draw(self, exponents: NDArray[np.float64], draws: int) -> Integers:
        """See `Sampler.draw`."""
        chances = np.exp(exponents - exponents.max())
        return self._rng.choice(len(exponents), draws, p=chances / chances.sum())
