"""Synthetic records of a model that is itself made of weighted records.

`sample` draws records by weight and moves each by Gibbs sweeps of its own, so that any number can
be drawn and none is a copy. `synthesize` takes several times as many records as are wanted, each as
often as its weight says, and halves them until they are as many: see `thinning`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from juncture.engine.gibbs import EXCLUDED, Sweeper, mix_key
from juncture.engine.population import Population
from juncture.errors import ImpossibleModel
from juncture.model.halving import WeightedRecords
from juncture.model.thinning import Thinner, sort_similar
from juncture.tables.layout import Vector
from juncture.tables.records import Codes

# Sweeps of a drawn record, and of one of which some columns are given.
_SWEEPS, _GIVEN_SWEEPS = 3, 50
# Codes of a pool that may be in memory, twice.
_MAX_CODES = 1 << 27


class RecordSampler:
    """What draws records from a population.

    - `population`: the weighted records; they are not changed.
    - `given`: the attributes whose columns are given with every draw.
    """

    def __init__(self, population: Population, given: tuple[str, ...] = ()) -> None:
        self._population, self._given = population, given
        self._domain = population.layout.domain
        self._held = [self._domain.positions[name] for name in given]
        self._ends = np.cumsum(population.weights)
        records = WeightedRecords(population.codes, population.weights)
        self._thinner = Thinner(self._domain, population.layout.cliques, records)

    def sample(
        self, n: int, key: int, columns: Mapping[str, Codes] | None = None, first: int = 0
    ) -> Codes:
        """Draws by weight, each moved on its own; `first` is the first record's number."""
        shares = _uniform(key, first, n) * self._ends[-1]
        chosen = np.searchsorted(self._ends, shares, side="right")
        codes = np.take(self._population.codes, np.minimum(chosen, len(self._ends) - 1), axis=1)
        return self._move(codes, key, columns, _SWEEPS, first)

    def synthesize(self, n: int, key: int, columns: Mapping[str, Codes] | None = None) -> Codes:
        """Records with counts close to the model's, in random order."""
        if self._given:
            return self.sample(n, key, columns)
        rng, n_halvings = np.random.default_rng(key), self._choose_halvings(n)
        codes = self._spread(n << n_halvings, rng)
        # More records than there are would be copies of each other.
        n_sweeps = _SWEEPS if n > self._population.effective_number else 0
        codes = self._move(codes, key, None, n_sweeps, 0)
        return self._thinner.thin(codes, n_halvings, rng)

    def _spread(self, n: int, rng: np.random.Generator) -> Codes:
        """Each record as often as its weight says, up to rounding; similar ones are neighbours."""
        population = self._population
        order, ends = self._sorted
        points = (np.arange(n) + rng.random()) * (ends[-1] / max(n, 1))
        index = np.minimum(np.searchsorted(ends, points, side="right"), len(ends) - 1)
        return np.asarray(np.take(population.codes, order[index], axis=1))

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.intp], Vector]:
        """An order in which similar records are neighbours, and their summed weights."""
        order = sort_similar(self._population.codes)
        return order, np.cumsum(self._population.weights[order])

    def _choose_halvings(self, n: int) -> int:
        """How often a pool is halved: once at least, where there is memory."""
        if 2 * n * len(self._domain) > _MAX_CODES:
            return 0
        return max(1, self._thinner.choose_halvings(n, self._population.effective_number))

    def _move(
        self, codes: Codes, key: int, columns: Mapping[str, Codes] | None, n_sweeps: int, first: int
    ) -> Codes:
        potentials = self._population.potentials
        for name in self._given:
            codes[self._domain.positions[name]] = (columns or {})[name]
        sweeper = self._population.sweeper
        if self._held:
            sweeper, n_sweeps = Sweeper(sweeper.layout, sweeper.pairs, self._held), _GIVEN_SWEEPS
        sweeper.sweep(codes, potentials, mix_key(key, 1), n_sweeps, first)
        if self._held and codes.size and np.isneginf(potentials).any():
            moved = Population(sweeper.layout, codes, potentials, key)
            n_impossible = int((moved.score(potentials) < 0.5 * EXCLUDED).sum())
            if n_impossible:
                raise ImpossibleModel(
                    "`given` must be records that are possible in the model; got "
                    f"{n_impossible} whose combination of values has no mass. Leave those out, or "
                    "give fewer columns."
                )
        return codes


def _uniform(key: int, first: int, n: int) -> np.ndarray:
    """A random number for each record by its own number: chunks change no record."""
    counters = np.arange(first, first + n, dtype=np.uint64)
    z = np.uint64(mix_key(key, 0)) + counters * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).astype(np.float64) * 2.0**-64
