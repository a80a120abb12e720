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


def list_small_cliques(domain: Domain, more: Iterable[Clique] = ()) -> list[Clique]:
    """Every attribute, every pair of a sensible size, and the cliques in `more`, each once."""
    pairs = [p for p in combinations(domain, 2) if domain.size_of(p) <= MAX_CELLS]
    extra = [clique for clique in map(domain.canonical, more) if clique]
    return list(dict.fromkeys([*((name,) for name in domain), *pairs, *extra]))


def compare_counts(cliques: Sequence[Clique], truth: Counts, other: Counts) -> list[Difference]:
    """The difference on every clique, relative to the first of the two."""
    pairs = zip(cliques, truth(cliques), other(cliques), strict=True)
    return [_compare_tables(clique, t.values, o.values) for clique, t, o in pairs]


def _compare_tables(clique: Clique, truth: Vector, other: Vector) -> Difference:
    gaps = np.abs(truth - other)
    mass = float(np.abs(truth).sum())
    error = float(gaps.sum()) / (2.0 * mass) if mass else float("inf")
    return Difference(clique, truth.size, error, float(gaps.mean()), float(gaps.max()))
