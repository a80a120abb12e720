"""How far apart two sets of counts are, marginal by marginal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector

Counts = Callable[[Sequence[Clique]], Iterable[Factor]]
"""What gives the counts on some cliques: a method of a model or of a table."""
# Pairs with more cells than this say little and take long.
MAX_CELLS = 1_000_000


@dataclass(frozen=True)
class Difference:
    """How far apart two tables of counts on one clique are."""

    clique: Clique
    cells: int
    error: float
    """Half the L1 distance, relative to the first: the share of records in another cell."""
    mean: float
    """The mean absolute difference of a cell, in records."""
    largest: float
    """The largest absolute difference of a cell, in records."""
    noise: float = 0.0
    """The error that the noise of the first would show by itself, if it has noise."""


@dataclass(frozen=True)
class Association:
    """How strongly two attributes depend on each other, in each of two sets of counts."""

    pair: Clique
    truth: float
    other: float


def list_small_cliques(domain: Domain, more: Iterable[Clique] = ()) -> list[Clique]:
    """Every attribute, every pair of a sensible size, and the cliques in `more`, each once."""
    pairs = [p for p in combinations(domain, 2) if domain.size_of(p) <= MAX_CELLS]
    extra = [clique for clique in map(domain.canonical, more) if clique]
    return list(dict.fromkeys([*((name,) for name in domain), *pairs, *extra]))


def compare_counts(cliques: Sequence[Clique], truth: Counts, other: Counts) -> list[Difference]:
    """The difference on every clique, relative to the first of the two."""
    pairs = zip(cliques, truth(cliques), other(cliques), strict=True)
    return [compare_tables(clique, t.values, o.values) for clique, t, o in pairs]


def compare_tables(
    clique: Clique, truth: Vector, other: Vector, mean_noise: float = 0.0
) -> Difference:
    """The difference of two tables; `mean_noise` is the mean absolute noise of a first cell."""
    gaps = np.abs(truth - other)
    mass = float(truth.sum())
    half = 1.0 / (2.0 * mass) if mass > 0 else float("inf")
    shown = mean_noise * truth.size * half if mean_noise else 0.0
    largest = float(gaps.max())
    return Difference(
        clique, truth.size, float(gaps.sum()) * half, float(gaps.mean()), largest, shown
    )


def measure_association(table: Vector) -> float:
    """Cramér's V of a table of two attributes: 0 if they are independent, 1 if one gives the other.

    >>> measure_association(np.array([[10.0, 0.0], [0.0, 30.0]]))
    1.0
    """
    counts = np.maximum(table, 0.0)
    total = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0))
    rows, columns = (int((counts.sum(axis=axis) > 0).sum()) for axis in (1, 0))
    if min(rows, columns) < 2:
        return 0.0
    squares = np.divide(counts**2 * total, expected, out=np.zeros_like(counts), where=expected > 0)
    chi_squared = max(0.0, float(squares.sum()) - total)
    return float(np.sqrt(chi_squared / (total * (min(rows, columns) - 1))))
