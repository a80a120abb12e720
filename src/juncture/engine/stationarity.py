"""Whether records are those of given potentials: sweeps must leave their marginals as they are.

A Gibbs sweep at the potentials turns records of the distribution into other records of it. What
the sweep changes in the marginals of an attribute, of two attributes of a clique, or of a clique is
therefore chance, however badly the sweeps mix. Records of another distribution move towards the one
of the potentials, and their marginals with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np

from juncture.engine.population import Population
from juncture.tables.domain import Clique, Domain
from juncture.tables.layout import Vector
from juncture.tables.records import Codes

# At most so many records are swept, and so many tables compared.
_N_RECORDS, _MAX_TABLES = 20_000, 2_000
# Larger tables say little about so few records.
_MAX_CELLS = 1_000_000
# What is put down to chance: so many times the expected statistic and its standard deviations
# beyond. The weights of few records make a sample of them up to twice as coarse as it looks.
_SCALE, _DEVIATIONS = 2.0, 12.0

# How far a fit's records may drift: their weights were fitted to them, so the fewer they are, the
# more they are off. Fits of random problems to convergence, stopped, out of steps and not mixed
# drift by up to 1.2 with 2,000 records, 0.25 with 24,000, and 0.07 with 94,000, where the noise is
# so small that far more records would be needed; others do not drift.
_LIMIT, _LIMIT_OF_ONE = 0.04, 10_000.0


def belong_to_potentials(population: Population) -> bool:
    """Whether the records may be those of a fit with these potentials.

    Records of other tables, shuffled columns and other potentials are told apart where that makes a
    difference to some marginal; with less than some 50,000 records, only if it is a large one.
    """
    limit = _LIMIT + _LIMIT_OF_ONE / max(1.0, population.effective_number)
    return measure_drift(population) <= limit


def measure_drift(population: Population) -> float:
    """How far a sweep moves the marginals of the records, beyond chance; 0 where all is chance.

    For the table that moves most: the sum of (p - q)**2 / (p + q) over its cells, for the shares p
    before and q after. It is 0 for equal shares, 2 for shares that have no cell in common, and at
    least twice the square of their total-variation distance. The population stays as it is.
    """
    population.settle()
    n = min(_N_RECORDS, int(population.effective_number))
    if n < 1:
        return 0.0
    before = population.resample(n, population.next_key())
    after = before.copy()
    population.sweeper.sweep(after, population.potentials, population.next_key())
    domain = population.layout.domain
    tables = _list_tables(domain, population.layout.cliques)
    drifts = [_compare(domain, table, before, after) for table in tables]
    return max(drifts, default=0.0)


def _list_tables(domain: Domain, cliques: Iterable[Clique]) -> list[Clique]:
    """The attributes, the pairs and the cliques to compare: all, or some evenly chosen."""
    every = dict.fromkeys(part for clique in cliques for part in _list_parts(clique))
    small = [part for part in every if domain.size_of(part) <= _MAX_CELLS]
    singles = [part for part in small if len(part) == 1]
    others = [part for part in small if len(part) > 1]
    room = max(1, _MAX_TABLES - len(singles))
    return singles + others[:: -(-len(others) // room) or 1]


def _list_parts(clique: Clique) -> Iterator[Clique]:
    for n in (1, 2):
        yield from combinations(clique, n)
    if len(clique) > 2:
        yield clique


def _compare(domain: Domain, clique: Clique, before: Codes, after: Codes) -> float:
    """The distance of two counts of a table, beyond chance."""
    counts = _count(domain, clique, before), _count(domain, clique, after)
    both = counts[0] + counts[1]
    filled = both > 0
    statistic = float(((counts[0] - counts[1])[filled] ** 2 / both[filled]).sum())
    # By chance, each filled cell adds one in the mean: its records are as often before as after.
    expected = float(filled.sum())
    chance = _SCALE * expected + _DEVIATIONS * math.sqrt(2.0 * expected)
    return max(0.0, statistic - chance) / int(before.shape[1])


def _count(domain: Domain, clique: Clique, codes: Codes) -> Vector:
    cells = np.zeros(codes.shape[1], dtype=np.int64)
    for name in clique:
        cells = cells * domain[name] + codes[domain.positions[name]]
    return np.bincount(cells, minlength=domain.size_of(clique)).astype(np.float64)
