"""Whether Gibbs sweeps forget where a record came from, and which attributes to draw in pairs.

Some records are swept several times at fixed potentials. An attribute that has forgotten its value
keeps it as often as two independent draws agree; what it keeps beyond that is its memory, from 0
for a fresh draw to 1 for a value that never moves. A value that never moves is held by others that
nearly determine it, or shut in a mode of the whole distribution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from juncture.engine.gibbs import MAX_PAIR_CELLS, Pair, Sweeper
from juncture.engine.population import Population
from juncture.tables.layout import Vector
from juncture.tables.records import Codes

# Above this memory, an attribute counts as stuck.
MAX_MEMORY = 0.5
_N_RECORDS, _N_SWEEPS = 2_000, 10
# At most so many pairs are drawn together.
_MAX_PAIRS = 4


class Mixing(NamedTuple):
    """How much of a record is left after some sweeps."""

    memory: Vector
    """For each attribute, from 0 (forgotten) to 1 (never moves)."""

    @property
    def stuck(self) -> list[int]:
        """The attributes that hardly move, the worst first."""
        return [int(a) for a in np.argsort(-self.memory) if self.memory[a] > MAX_MEMORY]

    @property
    def is_mixed(self) -> bool:
        """Whether every attribute forgets its value."""
        return not self.stuck


def measure_mixing(population: Population) -> Mixing:
    """How much of some records is left after several sweeps; the population stays as it is."""
    population.settle()
    before = population.resample(min(_N_RECORDS, population.n_records), population.next_key())
    after = before.copy()
    population.sweeper.sweep(after, population.potentials, population.next_key(), _N_SWEEPS)
    shape = population.layout.domain.shape
    return Mixing(np.array([_memory(*pair) for pair in zip(before, after, shape, strict=True)]))


def tie_stuck_attributes(population: Population) -> Mixing:
    """Draw stuck attributes together with what holds them; gives the mixing that this makes."""
    mixing = measure_mixing(population)
    while not mixing.is_mixed:
        added = _find_pairs(population, mixing)
        if not added or len(population.sweeper.pairs) + len(added) > _MAX_PAIRS:
            break
        before = population.sweeper
        population.sweeper = before.with_pairs(added)
        better = measure_mixing(population)
        if better.memory.sum() > mixing.memory.sum() - 0.05:
            population.sweeper = before  # together they are held all the same
            break
        mixing = better
    return mixing


def _memory(before: Codes, after: Codes, size: int) -> float:
    """What two columns agree beyond chance."""
    ends = np.bincount(before, minlength=size), np.bincount(after, minlength=size)
    chance = float(ends[0] @ ends[1]) / len(before) ** 2
    same = float((before == after).mean())
    # An attribute that hardly varies has nothing to forget.
    return 0.0 if chance > 0.995 else max(0.0, (same - chance) / (1.0 - chance))


def _find_pairs(population: Population, mixing: Mixing) -> list[Pair]:
    """For each stuck attribute, the one that tells most about it."""
    sweeper: Sweeper = population.sweeper
    shape, pairs = population.layout.domain.shape, []
    n = min(20_000, population.n_records)
    codes = population.resample(n, population.next_key())
    for a in mixing.stuck:
        others = [b for b in range(len(shape)) if b != a and shape[a] * shape[b] <= MAX_PAIR_CELLS]
        told = [_tell(codes[a], codes[b], shape[a], shape[b]) for b in others]
        if others:
            b = others[int(np.argmax(told))]
            pairs.append((min(a, b), max(a, b)))
    return [pair for pair in dict.fromkeys(pairs) if pair not in sweeper.pairs]


def _tell(one: Codes, two: Codes, n_one: int, n_two: int) -> float:
    """The mutual information of two columns over the entropy of the first."""
    joint = np.bincount(one.astype(np.int64) * n_two + two, minlength=n_one * n_two) / len(one)
    table = joint.reshape(n_one, n_two)
    own = _entropy(table.sum(axis=1))
    return (own + _entropy(table.sum(axis=0)) - _entropy(joint)) / max(own, 1e-12)


def _entropy(shares: Vector) -> float:
    held = shares[shares > 0]
    return -float(held @ np.log(held))
