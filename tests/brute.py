"""The answers by writing out every record: plain NumPy, and nothing of ours is imported.

A model is a list of (name, size) pairs and a table of potentials per clique; the axes of a
table are in the clique's own order. A record's score is the sum of its potentials, and its
probability is proportional to exp(score). All sums run over scores relative to the best one,
so minus infinity and spreads of thousands of nats are harmless. Every function takes the dense
table of scores that `scores` makes.

Three structures too large to write out have closed forms here: a chain of equal tables
(powers of the transfer matrix), a hub whose children are independent given it, and the number
of monotone sequences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Clique = tuple[str, ...]
Array = NDArray[np.float64]
Sizes = Sequence[tuple[str, int]]
Tables = Mapping[Clique, Array]


class Answer(NamedTuple):
    """What an oracle must say: log Z, marginals that sum to one, and the best score."""

    log_partition: float
    marginals: dict[Clique, Array]
    score: float


def scores(sizes: Sizes, tables: Tables) -> Array:
    """The sum of potentials of every record, one axis per attribute."""
    names = [name for name, _ in sizes]
    total = np.zeros([size for _, size in sizes])
    for clique, table in tables.items():
        places = [names.index(name) for name in clique]
        shape = [1] * len(names)
        for place, size in zip(places, table.shape, strict=True):
            shape[place] = size
        total = total + table.transpose(np.argsort(places)).reshape(shape)
    return total


def log_sum_exp(values: Array) -> float:
    """log(sum(exp(values))) over all entries, relative to the largest one."""
    peak = float(values.max())
    return peak if math.isinf(peak) else peak + math.log(float(np.exp(values - peak).sum()))


def marginal(sizes: Sizes, dense: Array, clique: Clique, total: float = 1.0) -> Array:
    """The probabilities of the clique's cells times the total, axes in the clique's order."""
    names = [name for name, _ in sizes]
    mass = np.exp(dense - dense.max())
    places = [names.index(name) for name in clique]
    rest = tuple(place for place in range(len(names)) if place not in places)
    summed: Array = np.asarray(mass.sum(axis=rest)) * (total / float(mass.sum()))
    kept = sorted(places)
    return summed.transpose([kept.index(place) for place in places])


def best_record(sizes: Sizes, dense: Array) -> dict[str, int]:
    """The first record with the highest score."""
    codes = np.unravel_index(int(np.argmax(dense)), dense.shape)
    return {name: int(code) for (name, _), code in zip(sizes, codes, strict=True)}


def score_of(tables: Tables, record: Mapping[str, int]) -> float:
    """The sum of potentials of one record."""
    cells = (table[tuple(record[name] for name in clique)] for clique, table in tables.items())
    return math.fsum(map(float, cells))


def solve(sizes: Sizes, tables: Tables) -> Answer:
    """All answers, by writing out every record."""
    dense = scores(sizes, tables)
    marginals = {clique: marginal(sizes, dense, clique) for clique in tables}
    return Answer(log_sum_exp(dense), marginals, float(dense.max()))


def solve_uniform_chain(tables: Tables) -> Answer:
    """A chain whose tables are all the same matrix, by powers of its exponential.

    Z is the sum of all entries of A^n; the marginal of the i-th edge is A with its rows
    weighted by the column sums of A^i and its columns by the row sums of A^(n-1-i).
    """
    table, n_edges = next(iter(tables.values())), len(tables)
    peak = float(table.max())
    matrix = np.exp(table - peak)
    powers = [np.linalg.matrix_power(matrix, exponent) for exponent in range(n_edges + 1)]
    mass = float(powers[n_edges].sum())
    marginals = {
        clique: powers[i].sum(axis=0)[:, None]
        * matrix
        * powers[n_edges - 1 - i].sum(axis=1)[None, :]
        / mass
        for i, clique in enumerate(tables)
    }
    return Answer(math.log(mass) + n_edges * peak, marginals, _heaviest_walk(table, n_edges))


def _heaviest_walk(table: Array, n_edges: int) -> float:
    """The largest sum of entries along a walk of so many edges."""
    best = np.zeros(table.shape[0])
    for _ in range(n_edges):
        best = (best[:, None] + table).max(axis=0)
    return float(best.max())


def solve_hub(tables: Tables) -> Answer:
    """A hub, the first attribute of every clique: given its value, its children are independent."""
    rows = {clique: _row_log_sums(table) for clique, table in tables.items()}
    hub = np.sum(list(rows.values()), axis=0)
    log_partition = log_sum_exp(hub)
    at_hub = np.exp(hub - log_partition)
    marginals = {
        clique: np.exp(table - rows[clique][:, None]) * at_hub[:, None]
        for clique, table in tables.items()
    }
    best = np.sum([table.max(axis=1) for table in tables.values()], axis=0)
    return Answer(log_partition, marginals, float(best.max()))


def _row_log_sums(table: Array) -> Array:
    return np.array([log_sum_exp(row) for row in table])


def n_monotone(length: int, n_values: int) -> int:
    """The number of sequences of codes that never decrease."""
    return math.comb(length + n_values - 1, length)


def einsum(operands: Sequence[tuple[Array, Sequence[int]]], result: Sequence[int]) -> Array:
    """The product of tables with numbered axes, summed onto the result's axes, all at once."""
    arguments: list[Any] = []
    for table, axes in operands:
        arguments += [table, list(axes)]
    return np.asarray(np.einsum(*arguments, list(result)))
