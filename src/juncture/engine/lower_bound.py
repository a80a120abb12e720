"""A lower bound of the memory of any junction tree, which is known at once.

Planning a model of every pair of a hundred attributes takes minutes, only to find that it needs
more memory than there is on earth. The bound says so first.

Why it holds. The sets of attributes that meet in the products of a plan are the bags of a tree
decomposition of the measured cliques' graph, however the plan was found. For every subgraph, a
decomposition has a bag with some vertex and all of its neighbours in that subgraph; so the largest
bag has at least as many cells as the least closed neighbourhood of any subgraph. The subgraphs
tried here are those that are left when the vertex with the least closed neighbourhood is taken
away, again and again (the degeneracy of the graph, with sizes as weights). In a product of two
tables, each attribute belongs to at least two of three tables: the two factors and the result. Both
factors and the result are stored, and so one of them has at least the cells of the bag to the power
of two thirds.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping, Sequence, Set
from typing import NamedTuple

from juncture.engine.elimination import build_graph
from juncture.engine.plan_text import abbreviate, format_bytes
from juncture.errors import ModelTooLarge
from juncture.tables.domain import Domain

# Exponentials of larger numbers do not fit into floats.
_MAX_LOG = 700.0


class TightCore(NamedTuple):
    """Vertices so tied to each other that some product of tables is large in every plan."""

    log_cells: float
    """The natural logarithm of the least number of cells of the largest stored table."""
    vertices: tuple[int, ...]


def find_tight_core(graph: Mapping[int, Set[int]], sizes: Sequence[int]) -> TightCore:
    """The bound of a graph of closed neighbourhoods, and the subgraph that gives it."""
    logs = {vertex: math.log(sizes[vertex]) for vertex in graph}
    weights = {vertex: math.fsum(logs[other] for other in graph[vertex]) for vertex in graph}
    heap = [(weight, vertex) for vertex, weight in weights.items()]
    heapq.heapify(heap)
    removed: list[int] = []
    best, n_removed = 0.0, 0
    while heap:
        weight, vertex = heapq.heappop(heap)
        if weights.get(vertex) != weight:
            continue  # an entry from before one of its neighbours was taken away
        if weight > best:
            best, n_removed = weight, len(removed)
        del weights[vertex]
        removed.append(vertex)
        for other in graph[vertex]:
            if other in weights:
                weights[other] -= logs[vertex]
                heapq.heappush(heap, (weights[other], other))
    return TightCore(2.0 / 3.0 * best, tuple(sorted(removed[n_removed:])))


def refuse_hopeless(
    domain: Domain, scopes: Sequence[Collection[int]], limit: int, bytes_per_cell: int
) -> None:
    """Refuse cliques, as positions in the domain, if every plan of them exceeds the limit."""
    core = find_tight_core(build_graph(range(len(domain)), scopes), domain.shape)
    log_bytes = core.log_cells + math.log(bytes_per_cell)
    if log_bytes <= math.log(max(1, limit)):
        return
    needed = format_bytes(int(math.exp(min(log_bytes, _MAX_LOG))))
    names = tuple(domain.attributes[vertex] for vertex in core.vertices)
    raise ModelTooLarge(
        f"`cliques` must give a model within {format_bytes(limit)}; got {len(scopes)} that need "
        f"at least {needed}, because {len(names)} attributes ({abbreviate(names)}) are measured "
        "with too many of the others. Measure fewer sets of attributes, merge values of the "
        "largest attributes, or raise `memory_limit`.",
        needed=f"at least {needed}",
        limit=format_bytes(limit),
    )
