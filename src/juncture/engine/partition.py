"""How the nodes of a tree are divided between threads."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

# The heaviest subtree is split at most this often in search of an even division.
_MAX_SPLITS = 64


class Partition(NamedTuple):
    """Nodes of whole subtrees for each thread, and the nodes above them; each in schedule order."""

    groups: tuple[tuple[int, ...], ...]
    top: tuple[int, ...]


def partition(parents: Sequence[int | None], work: Sequence[int], threads: int) -> Partition:
    """The division that takes least time: that of the heaviest group plus the nodes above all."""
    if threads < 2 or len(parents) < 2:
        return Partition((), tuple(range(len(parents))))
    below, children = list(work), [list[int]() for _ in parents]
    for node, parent in enumerate(parents):
        if parent is not None:
            below[parent] += below[node]
            children[parent].append(node)
    heap = [(-below[node], node) for node, parent in enumerate(parents) if parent is None]
    heapq.heapify(heap)
    top: list[int] = []
    best_time, best = sum(work), (list[int](), list[list[int]]())
    for _ in range(_MAX_SPLITS):
        if not heap:
            break
        bins = _pack(heap, threads)
        time = sum(work[node] for node in top) + max(sum(below[n] for n in b) for b in bins)
        if time < best_time:
            best_time, best = time, (list(top), bins)
        _, node = heapq.heappop(heap)
        top.append(node)
        for child in children[node]:
            heapq.heappush(heap, (-below[child], child))
    return _expand(best[0], best[1], children, len(parents))


def _pack(heap: list[tuple[int, int]], threads: int) -> list[list[int]]:
    """Distribute subtrees over one bin for each thread, heaviest first into the lightest bin."""
    loads = [(0, number) for number in range(threads)]
    bins: list[list[int]] = [[] for _ in range(threads)]
    for weight, node in sorted(heap):
        load, number = heapq.heappop(loads)
        bins[number].append(node)
        heapq.heappush(loads, (load - weight, number))
    return bins


def _expand(
    top: list[int], bins: list[list[int]], children: list[list[int]], n_nodes: int
) -> Partition:
    """All nodes of the chosen subtrees."""
    if not bins:
        return Partition((), tuple(range(n_nodes)))
    groups = []
    for group in bins:
        for node in group:  # grows while it is walked
            group.extend(children[node])
        groups.append(tuple(sorted(group)))
    return Partition(tuple(groups), tuple(sorted(top)))
