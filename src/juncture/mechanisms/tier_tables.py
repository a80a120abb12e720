"""The tables of each tier of `Tiers`: which there are, and what noise would leave of them.

All of it is arithmetic on public numbers: the workload, and models fitted to what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from juncture.mechanisms.rare_forecast import MAX_WHOLE_CELLS
from juncture.mechanisms.rare_values import Merging
from juncture.model.model import Model
from juncture.tables.domain import Clique, Domain
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.noise import Noise
from juncture.tables.queries.blocks import Block, Identity, Matrix
from juncture.tables.queries.products import Kron, Query
from juncture.tables.workload import Workload

# Larger tables would be nearly all noise, and all tables of a choice together stay in memory.
_MAX_TRIPLE_CELLS, _MAX_CELLS = 20_000, 20_000_000
# A pair with more cells than this is not measured even with rare values together: its potentials
# have all of them.
_MAX_MERGED_CELLS = 150_000
MAX_TRIPLES = 2_000
"""The most triples that are looked at."""


@dataclass(frozen=True)
class TierCandidates:
    """The sets of one, two and three columns below those of a workload, with their weights.

    The weight of a set is the sum of those of the tasks that have it, over the largest of its tier.

    >>> domain = Domain({"age": 3, "sex": 2, "income": 2})
    >>> TierCandidates.of_workload(Workload.all_marginals(domain, 2)).pairs
    {('age', 'sex'): 1.0, ('age', 'income'): 1.0, ('sex', 'income'): 1.0}
    """

    singles: tuple[str, ...]
    pairs: dict[Clique, float]
    triples: dict[Clique, float]

    @classmethod
    def of_workload(cls, workload: Workload, *, merges: bool = False) -> TierCandidates:
        """The candidates for a workload, without tables that are too large.

        - `merges`: whether rare values may share counts: then larger pairs are candidates too.
        """
        domain = workload.domain
        cliques = workload.clique_weights
        used = {name for clique in cliques for name in clique}
        return cls(
            tuple(name for name in domain if name in used),
            _weigh(domain, cliques, 2, _MAX_MERGED_CELLS if merges else MAX_WHOLE_CELLS),
            _weigh(domain, cliques, 3, _MAX_TRIPLE_CELLS),
        )


def _weigh(
    domain: Domain, cliques: Mapping[Clique, float], size: int, max_cells: int
) -> dict[Clique, float]:
    uses = dict[Clique, float]()
    for clique, weight in cliques.items():
        for subset in combinations(clique, size):
            uses[subset] = uses.get(subset, 0.0) + weight
    small = {subset: n for subset, n in uses.items() if domain.size_of(subset) <= max_cells}
    largest = max(small.values(), default=1)
    return {subset: n / largest for subset, n in small.items()}


def expect_error(counts: Vector, noise: float) -> float:
    """How far a measured table will be off: each count by the noise, or by itself if that is less.

    >>> expect_error(np.array([100.0, 2.0, 0.0]), noise=10.0)
    12.0
    """
    return float(np.minimum(counts, noise).sum())


def find_joint_share(domain: Domain, clique: Clique) -> float:
    """The share of a table's numbers that no smaller table tells: those of its columns together.

    >>> find_joint_share(Domain({"sex": 2, "ill": 2, "age": 10}), ("sex", "ill"))
    0.25
    """
    return math.prod((domain[name] - 1) / domain[name] for name in clique)


def find_needs(
    tables: Mapping[Clique, Vector], weights: Mapping[Clique, float], noise: float
) -> dict[Clique, float]:
    """What each table needs: its weight, times how far off noise would leave it."""
    return {c: weights[c] * expect_error(table, noise) for c, table in tables.items()}


def find_pair_tables(
    model: Model, pairs: Mapping[Clique, float], merging: Merging
) -> dict[Clique, Vector]:
    """The tables of pairs whose columns are independent, up to so many cells in all.

    Where a rule ties both columns, it is the model's table, which has what the rule excludes as
    zeros. A pair is left out if even its merged table is too large.
    """
    ruled = {p for clique in model.cliques for p in combinations(clique, 2)}
    singles = {name: model.project((name,)) for pair in pairs for name in pair}
    tables, n_cells = dict[Clique, Vector](), 0
    for pair in sorted(pairs, key=model.domain.size_of):
        rare = merging.rare_in(pair)
        one, two = (rare.merge(singles[name].domain, singles[name].values) for name in pair)
        n_cells += len(one) * len(two)
        if n_cells > _MAX_CELLS:
            break
        if len(one) * len(two) > MAX_WHOLE_CELLS:
            continue
        if ruled.isdisjoint((pair, pair[::-1])):
            tables[pair] = np.outer(one, two / model.total).reshape(-1)
        else:
            tables[pair] = merging.count(model.project(pair))
    return {pair: tables[pair] for pair in pairs if pair in tables}


def find_triple_tables(
    model: Model,
    triples: Mapping[Clique, float],
    independent: Mapping[Clique, Vector],
    merging: Merging,
) -> dict[Clique, Vector]:
    """The model's tables of triples; if there are many, of those whose pairs depend the most."""
    pairs = list(independent)
    strengths = {
        pair: float(np.abs(merging.count(table) - independent[pair]).sum())
        for pair, table in zip(pairs, model.project_many(pairs), strict=True)
    }
    ranked = sorted(
        triples,
        key=lambda triple: -sum(strengths.get(pair, 0.0) for pair in combinations(triple, 2)),
    )[:MAX_TRIPLES]
    cells = np.cumsum([model.domain.size_of(triple) for triple in ranked])
    kept = [triple for triple, n in zip(ranked, cells, strict=True) if n <= _MAX_CELLS]
    tables = model.project_many(kept)
    return {triple: merging.count(t) for triple, t in zip(kept, tables, strict=True)}


def divide_by_need(needs: Mapping[Clique, float]) -> dict[Clique, float]:
    """Shares that add up to one, as the roots of what each table needs.

    Noise on a table costs what it tells: twice the cells above the noise make twice the error. The
    sum of errors is least for shares near this power, and flat around it.
    """
    roots = {clique: max(need, 1e-12) ** 0.5 for clique, need in needs.items()}
    whole = sum(roots.values())
    return {clique: root / whole for clique, root in roots.items()}


def divide_what_is_left(
    shares: Mapping[Clique, float], spent: Mapping[Clique, float], left: float
) -> dict[Clique, float]:
    """How much more to spend on each table, so that all together come near to their shares.

    What was spent before is not taken back: those that had more than their share get nothing, and
    the others have the less.

    >>> divide_what_is_left({("a",): 0.5, ("b",): 0.5}, {("a",): 0.3}, left=0.5)
    {('a',): 0.1, ('b',): 0.4}
    """
    before = np.array([spent.get(clique, 0.0) for clique in shares])
    wanted = np.array(list(shares.values()))
    # Shares of a level at which exactly what is left is missing: found among those that get more.
    open_ones = np.ones(len(wanted), dtype=bool)
    level = 0.0
    while open_ones.any():
        level = (left + before[open_ones].sum()) / wanted[open_ones].sum()
        over = open_ones & (before > level * wanted)
        if not over.any():
            break
        open_ones &= ~over
    more = np.where(open_ones, level * wanted - before, 0.0)
    return {c: round(float(x), 15) for c, x in zip(shares, more, strict=True)}


def combine(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Tables that were measured more than once with Gaussian noise, as one with less noise.

    >>> once, again = ([4.0, 8.0], [6.0, 8.0])
    >>> (both,) = combine([Measurement(("a",), each, stddev=2.0) for each in (once, again)])
    >>> both.values, round(float(both.stddev), 3)
    (array([5., 8.]), 1.414)
    """
    groups: dict[tuple[object, ...], list[Measurement]] = {}
    others = list[Measurement]()
    for each in measurements:
        key = _key_of(each.query) if each.noise is Noise.GAUSSIAN else None
        (others if key is None else groups.setdefault((each.clique, key), [])).append(each)
    return [*map(_average, groups.values()), *others]


def _key_of(query: Query) -> tuple[object, ...] | None:
    """What equal queries have in common; None for kinds that a run does not ask twice."""
    match query:
        case Identity():
            return ()
        case Kron():
            return tuple((name, _key_of_block(block)) for name, block in query.blocks.items())
        case _:
            return None


def _key_of_block(block: Block) -> Hashable:
    return block.entries.tobytes() if isinstance(block, Matrix) else block


def _average(same: Sequence[Measurement]) -> Measurement:
    if len(same) == 1:
        return same[0]
    precision = sum(each.stddev**-2.0 for each in same)
    values = sum(each.values * each.stddev**-2.0 for each in same) / precision
    return Measurement(same[0].clique, values, stddev=precision**-0.5, query=same[0].query)
