"""From the buckets of an elimination order to a rooted junction tree, as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from juncture.engine.order_search import Bucket

ROOT = -1


class TreeNode(NamedTuple):
    """A maximal clique, what it shares with its parent, and the parent's index (or ROOT)."""

    clique: frozenset[int]
    separator: frozenset[int]
    parent: int


class JunctionTree(NamedTuple):
    """Nodes with every child before its parent, and the node that holds each vertex's bucket."""

    nodes: tuple[TreeNode, ...]
    home: dict[int, int]


EMPTY_CLIQUE_ALONE = JunctionTree((TreeNode(frozenset(), frozenset(), ROOT),), {})


def build_junction_tree(buckets: Sequence[Bucket], sizes: Sequence[int]) -> JunctionTree:
    """The junction tree of an elimination order, each component rooted at its centre of work."""
    cliques, home, edges = _merge_buckets(buckets)
    cells = [math.prod(sizes[vertex] for vertex in clique) for clique in cliques]
    schedule: list[tuple[int, int]] = []
    for component in _find_components(edges):
        schedule += _schedule_from(edges, _find_centre(edges, component, cells))
    index_of = {node: position for position, (node, _) in enumerate(schedule)}
    nodes = tuple(
        TreeNode(
            cliques[node],
            frozenset() if parent == ROOT else cliques[node] & cliques[parent],
            ROOT if parent == ROOT else index_of[parent],
        )
        for node, parent in schedule
    )
    return JunctionTree(nodes, {vertex: index_of[node] for vertex, node in home.items()})


def parent_of(bucket: Bucket, position: dict[int, int]) -> int | None:
    """The neighbour that is eliminated next, whose bucket receives this bucket's message."""
    return min(bucket.neighbours, key=position.__getitem__, default=None)


def _merge_buckets(
    buckets: Sequence[Bucket],
) -> tuple[list[frozenset[int]], dict[int, int], list[list[int]]]:
    """Merge each bucket into a child that contains it; returns cliques, homes and tree edges."""
    position = {bucket.vertex: index for index, bucket in enumerate(buckets)}
    children: dict[int, list[Bucket]] = {}
    cliques: list[frozenset[int]] = []
    home: dict[int, int] = {}
    edges: list[list[int]] = []
    for bucket in buckets:
        vertex, neighbours = bucket
        below = children.pop(vertex, [])
        absorbing = [c for c in below if len(c.neighbours) == len(neighbours) + 1]
        if absorbing:
            home[vertex] = home[absorbing[0].vertex]
        else:
            home[vertex] = len(cliques)
            cliques.append(neighbours | {vertex})
            edges.append([])
        for child in below:
            if home[child.vertex] != home[vertex]:
                edges[home[child.vertex]].append(home[vertex])
                edges[home[vertex]].append(home[child.vertex])
        parent = parent_of(bucket, position)
        if parent is not None:
            children.setdefault(parent, []).append(bucket)
    return cliques, home, edges


def _find_components(edges: list[list[int]]) -> list[list[tuple[int, int]]]:
    """Each tree of the forest, as a schedule rooted at its first node."""
    seen = [False] * len(edges)
    components = []
    for start in range(len(edges)):
        if not seen[start]:
            schedule = _schedule_from(edges, start)
            for node, _ in schedule:
                seen[node] = True
            components.append(schedule)
    return components


def _schedule_from(edges: list[list[int]], root: int) -> list[tuple[int, int]]:
    """(node, parent) pairs of the root's component, depth first, children before parents."""
    order: list[tuple[int, int]] = []
    waiting = [(root, ROOT)]
    while waiting:
        node, parent = waiting.pop()
        order.append((node, parent))
        waiting += [(other, node) for other in edges[node] if other != parent]
    order.reverse()
    return order


def _find_centre(edges: list[list[int]], schedule: list[tuple[int, int]], cells: list[int]) -> int:
    """The node whose heaviest branch is lightest, so that threads share the work evenly."""
    below = {node: cells[node] for node, _ in schedule}
    for node, parent in schedule:
        if parent != ROOT:
            below[parent] += below[node]
    root = schedule[-1][0]
    node, above, total = root, ROOT, below[root]
    while True:
        heavy = max((o for o in edges[node] if o != above), key=below.__getitem__, default=ROOT)
        if heavy == ROOT or 2 * below[heavy] <= total:
            return node
        node, above = heavy, node
