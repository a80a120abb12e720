"""Elimination on graphs by the book: slow, plain, and nothing of ours is imported.

A graph is given by its vertices and by cliques, whose members are pairwise adjacent.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations, permutations

Scope = frozenset[int]
Adjacency = dict[int, set[int]]


def adjacency(vertices: Iterable[int], cliques: Iterable[Collection[int]]) -> Adjacency:
    """The neighbours of each vertex."""
    near: Adjacency = {vertex: set() for vertex in vertices}
    for clique in cliques:
        for one, other in combinations(clique, 2):
            near[one].add(other)
            near[other].add(one)
    return near


def eliminated(near: Adjacency, order: Sequence[int]) -> list[tuple[int, Scope]]:
    """Each vertex with the neighbours it has when its turn comes, the graph filled in between."""
    live = {vertex: set(others) for vertex, others in near.items()}
    found = []
    for vertex in order:
        others = live.pop(vertex)
        found.append((vertex, frozenset(others)))
        for other in others:
            live[other] |= others
            live[other] -= {vertex, other}
    return found


def maximal(sets: Iterable[Scope]) -> list[Scope]:
    """The sets that no other set contains, each once."""
    distinct = dict.fromkeys(sets)
    return [one for one in distinct if not any(one < other for other in distinct)]


def cells(scope: Iterable[int], sizes: Sequence[int]) -> int:
    """The number of cells of a table over the vertices."""
    return math.prod(sizes[vertex] for vertex in scope)


def tree_cells(buckets: Iterable[tuple[int, Scope]], sizes: Sequence[int]) -> int:
    """The cells of all maximal cliques that an elimination gives."""
    closed = (neighbours | {vertex} for vertex, neighbours in buckets)
    return sum(cells(clique, sizes) for clique in maximal(closed))


def least_tree_cells(near: Adjacency, sizes: Sequence[int]) -> int:
    """The fewest cells over all orders of elimination."""
    return min(tree_cells(eliminated(near, order), sizes) for order in permutations(near))


def is_chordal(near: Adjacency) -> bool:
    """Whether vertices whose neighbours are pairwise adjacent can be removed until none is left."""
    live = {vertex: set(others) for vertex, others in near.items()}
    while live:
        simplicial = next(
            (v for v, others in live.items() if all(others - {o} <= live[o] for o in others)), None
        )
        if simplicial is None:
            return False
        for other in live.pop(simplicial):
            live[other].discard(simplicial)
    return True


def n_components(near: Adjacency) -> int:
    """The number of connected components."""
    unseen, count = set(near), 0
    while unseen:
        frontier = [unseen.pop()]
        count += 1
        for vertex in frontier:  # grows while it is walked
            fresh = near[vertex] & unseen
            unseen -= fresh
            frontier += fresh
    return count
