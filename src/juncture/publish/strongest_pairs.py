"""The pairs of attributes that depend on each other most, for pages that show a few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from juncture.model.information import entropy
from juncture.model.model import Model
from juncture.tables.domain import Clique
from juncture.tables.factor import Factor

_MAX_PAIRS = 5000
# Up to this many cells in the tree and in all pairs, all pairs can be compared quickly.
_SMALL_TREE, _SMALL_PAIRS = 100_000, 2_000_000
# Up to this many cells in the tree, the pairs inside its cliques can.
_LARGE_TREE = 20_000_000
# Pairs that share less are not worth showing.
_MIN_BITS = 0.005


class Pair(NamedTuple):
    """Two attributes: their joint table, and how many bits one tells about the other."""

    joint: Factor
    bits: float


class StrongestPairs(NamedTuple):
    """Pairs, the strongest first, and a sentence about which pairs were compared."""

    pairs: list[Pair]
    scope: str


def find_strongest_pairs(
    model: Model, limit: int, *, max_values: int | None = None
) -> StrongestPairs:
    """The strongest pairs by mutual information, without those that share next to nothing.

    - `limit`: how many pairs at most.
    - `max_values`: consider only attributes with at most this many values.

    In a large model not all pairs are compared, only those for which it takes little time.
    """
    candidates, scope = _choose_candidates(model)
    if max_values is not None:
        candidates = [p for p in candidates if max(model.domain[n] for n in p) <= max_values]
    joints = _make_joint_tables(model, candidates)
    scored = (Pair(joint, measure_mutual_bits(joint)) for joint in joints)
    best = nlargest(limit, scored, key=lambda pair: pair.bits)
    return StrongestPairs([pair for pair in best if pair.bits > _MIN_BITS], scope)


def measure_mutual_bits(joint: Factor) -> float:
    """The mutual information of a two-attribute table, in bits."""
    table = joint.values
    parts = entropy(table.sum(axis=0)) + entropy(table.sum(axis=1))
    return max(0.0, parts - entropy(table)) / float(np.log(2.0))


def _choose_candidates(model: Model) -> tuple[list[Clique], str]:
    """The pairs to compare, and a sentence about which they are."""
    domain, plan = model.domain, model.plan
    cells = sum(domain.shape) ** 2 // 2
    if plan.cells <= _SMALL_TREE and cells <= _SMALL_PAIRS:
        return list(islice(combinations(domain, 2), _MAX_PAIRS)), "All pairs were compared."
    if plan.has_tree and plan.cells <= _LARGE_TREE:
        cliques: Iterator[Clique] = (node.clique for node in plan.nodes)
        scope = "Pairs within a clique of the tree were compared."
    else:
        cliques, scope = iter(plan.cliques), "Pairs that were measured together were compared."
    inside = (domain.canonical(pair) for clique in cliques for pair in combinations(clique, 2))
    return list(islice(dict.fromkeys(inside), _MAX_PAIRS)), scope


def _make_joint_tables(model: Model, pairs: Sequence[Clique]) -> Iterator[Factor]:
    """The joint tables of the pairs, sharing work where the tree is not too large."""
    if model.plan.cells > _LARGE_TREE:
        return (model.project(pair) for pair in pairs)
    return model.project_many(pairs)
