"""Orders in which to eliminate the vertices of a graph, chosen for small cliques.

A graph maps each vertex to its closed neighbourhood: the set of itself and its neighbours.
Eliminating v makes its neighbours pairwise adjacent and removes it; its bucket is the closed
neighbourhood it had then. The cost of an order is the number of table cells in its buckets.

Two steps. Vertices whose neighbours are already pairwise adjacent (simplicial ones) go first:
their buckets lie inside cliques that every order has, and a chordal graph is empty after that.
What remains is split into its connected components, and on each of them several greedy heuristics
compete, then noisy repetitions of them (`order_search`); the order whose tree has the fewest cells
is kept. All ties are broken by vertex number, and noise is seeded, so the result depends on the
arguments alone.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Sequence

from juncture.engine.order_search import (
    MAX_VERTICES,
    NO_REPETITION,
    USUAL_EFFORT,
    Bucket,
    Effort,
    search_order,
)

Graph = dict[int, set[int]]
Score = Callable[[Graph, Sequence[int], int], float]


def eliminate(
    graph: Graph, sizes: Sequence[int], *, effort: Effort = USUAL_EFFORT, seed: int = 0
) -> list[Bucket]:
    """The buckets of a good elimination order, in that order; `graph` is consumed."""
    buckets = _strip_simplicial(graph)
    for component in _find_components(graph):
        alone = {vertex: graph[vertex] for vertex in component}
        buckets += eliminate_subset(alone, component, sizes, effort=effort, seed=seed)
    return buckets


def eliminate_subset(
    graph: Graph,
    vertices: Sequence[int],
    sizes: Sequence[int],
    *,
    effort: Effort = NO_REPETITION,
    seed: int = 0,
) -> list[Bucket]:
    """The buckets of a cheap order that eliminates these vertices and no others."""
    if len(graph) <= MAX_VERTICES:
        return search_order(graph, vertices, sizes, effort, seed).buckets
    # Too large for matrices of bits, and for repetitions: the plain heuristics, on sets.
    best: list[Bucket] = []
    best_cost: float | int = math.inf
    for score in _HEURISTICS:
        buckets, cost = _eliminate_greedily(graph, vertices, sizes, score, best_cost)
        if cost < best_cost:
            best, best_cost = buckets, cost
    return best


def build_graph(vertices: Iterable[int], cliques: Iterable[Collection[int]]) -> Graph:
    """The graph in which the vertices of every clique are pairwise adjacent."""
    graph = {vertex: {vertex} for vertex in vertices}
    for clique in cliques:
        for vertex in clique:
            graph[vertex].update(clique)
    return graph


def _strip_simplicial(graph: Graph) -> list[Bucket]:
    """Eliminate simplicial vertices until none is left."""
    buckets: list[Bucket] = []
    waiting = list(graph)
    queued = set(waiting)
    for vertex in waiting:  # grows while it is walked
        queued.discard(vertex)
        closed = graph.get(vertex)
        if closed is None or not all(closed <= graph[other] for other in closed):
            continue
        del graph[vertex]
        closed.discard(vertex)
        buckets.append(Bucket(vertex, frozenset(closed)))
        for other in sorted(closed):
            graph[other].discard(vertex)
            if other not in queued:
                queued.add(other)
                waiting.append(other)
    return buckets


def _find_components(graph: Graph) -> list[list[int]]:
    """The vertices that are left, grouped by connected component."""
    components: list[list[int]] = []
    seen: set[int] = set()
    for start in graph:
        if start in seen:
            continue
        component, frontier = {start}, [start]
        while frontier:
            fresh = graph[frontier.pop()] - component
            component |= fresh
            frontier.extend(fresh)
        seen |= component
        components.append(sorted(component))
    return components


def _eliminate_greedily(
    graph: Graph, vertices: Sequence[int], sizes: Sequence[int], score: Score, limit: float | int
) -> tuple[list[Bucket], float | int]:
    """Eliminate the vertices by lowest score; gives up once the cost reaches the limit."""
    local = {vertex: set(closed) for vertex, closed in graph.items()}
    current = {vertex: score(local, sizes, vertex) for vertex in vertices}
    heap = [(value, vertex) for vertex, value in current.items()]
    heapq.heapify(heap)
    buckets: list[Bucket] = []
    cost = 0
    while current and cost < limit:
        value, vertex = heapq.heappop(heap)
        if current.get(vertex) != value:
            continue
        del current[vertex]
        cost += math.prod(sizes[other] for other in local[vertex])
        for other in current.keys() & _remove(local, vertex, buckets):
            current[other] = score(local, sizes, other)
            heapq.heappush(heap, (current[other], other))
    return buckets, cost if not current else math.inf


def _remove(graph: Graph, vertex: int, buckets: list[Bucket]) -> set[int]:
    """Eliminate the vertex; returns the vertices whose score may have changed."""
    neighbours = graph[vertex]
    neighbours.discard(vertex)
    buckets.append(Bucket(vertex, frozenset(neighbours)))
    touched = set(neighbours)
    for other in neighbours:
        closed = graph[other]
        closed.discard(vertex)
        fill = neighbours - closed
        closed |= fill
        for end in fill:
            touched |= closed & graph[end]
    return touched


def _min_fill(graph: Graph, _sizes: Sequence[int], vertex: int) -> float:
    """The logarithm of the number of edges that eliminating the vertex would add."""
    closed = graph[vertex]
    return _log(sum(len(closed - graph[other]) for other in closed))


def _min_weight(graph: Graph, sizes: Sequence[int], vertex: int) -> float:
    """The logarithm of the bucket's number of cells."""
    return math.fsum(math.log(sizes[other]) for other in graph[vertex])


def _weighted_min_fill(graph: Graph, sizes: Sequence[int], vertex: int) -> float:
    """The score of min-fill where each edge counts as the number of cells of its table."""
    closed = graph[vertex]
    return _log(sum(sizes[a] * sum(sizes[b] for b in closed - graph[a]) for a in closed))


def _log(count: int) -> float:
    """The logarithm, which no size can overflow; minus infinity for zero."""
    return math.log(count) if count else -math.inf


_HEURISTICS: tuple[Score, ...] = (_min_fill, _min_weight, _weighted_min_fill)
