"""How much a junction tree grows when one more clique is added, without planning anew.

The elimination order is kept and only the buckets that the new clique reaches are looked at:
the bucket of its first vertex receives the others as new neighbours, hands them on to the
bucket eliminated next, and so on until nothing is new. The result is the exact size for that
order, hence an upper bound of what a fresh search for an order would find.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence

from juncture.elimination import Bucket
from juncture.junction import parent_of

Neighbours = frozenset[int]
_NOTHING: Mapping[int, Neighbours] = {}


class Growth:
    """A fixed elimination order, ready to be asked about more cliques."""

    def __init__(self, buckets: Sequence[Bucket], sizes: Sequence[int], used: set[int]) -> None:
        # Vertices that no clique mentions yet come first: they are simplicial when they join.
        order = [b for b in buckets if b.vertex not in used]
        order += [b for b in buckets if b.vertex in used]
        self._sizes = sizes
        self._used = used
        self._order = [bucket.vertex for bucket in order]
        self._position = {vertex: place for place, vertex in enumerate(self._order)}
        self._neighbours = {bucket.vertex: bucket.neighbours for bucket in order}
        self._parent = {b.vertex: parent_of(b, self._position) for b in order}
        self._children: dict[int, list[int]] = {vertex: [] for vertex in self._order}
        for child, parent in self._parent.items():
            if parent is not None:
                self._children[parent].append(child)
        self.cells = sum(map(self._weight, self._order))

    def cells_with(self, clique: Iterable[int]) -> int:
        """The cells of the junction tree once the clique is added."""
        changed = self._spread(frozenset(clique))
        adopted: dict[int, list[int]] = {}
        for vertex, neighbours in changed.items():
            parent = parent_of(Bucket(vertex, neighbours), self._position)
            if parent is not None:
                adopted.setdefault(parent, []).append(vertex)
        left = (parent for parent in map(self._parent.get, changed) if parent is not None)
        reached = {*changed, *adopted, *left}
        before = sum(map(self._weight, reached))
        after = sum(self._weight(v, changed, adopted.get(v, ())) for v in reached)
        return self.cells - before + after

    def buckets_with(self, clique: Iterable[int]) -> list[Bucket]:
        """The buckets of the same order once the clique is added."""
        changed = self._spread(frozenset(clique))
        return [Bucket(v, changed.get(v, self._neighbours[v])) for v in self._order]

    def _spread(self, clique: frozenset[int]) -> dict[int, Neighbours]:
        """The new neighbourhoods of all buckets that the clique changes."""
        changed: dict[int, Neighbours] = {}
        waiting: dict[int, Neighbours] = {}
        heap: list[int] = []

        def hand_on(scope: Neighbours) -> None:
            vertex = min(scope, key=self._position.__getitem__, default=None)
            if vertex is not None and not scope <= self._neighbours[vertex] | {vertex}:
                waiting[vertex] = waiting.get(vertex, frozenset()) | (scope - {vertex})
                heapq.heappush(heap, self._position[vertex])

        hand_on(clique)
        if not heap and len(clique) == 1 and not clique <= self._used:
            return {vertex: frozenset() for vertex in clique}
        while heap:
            vertex = self._order[heapq.heappop(heap)]
            if vertex in waiting:
                changed[vertex] = self._neighbours[vertex] | waiting.pop(vertex)
                hand_on(changed[vertex])
        return changed

    def _weight(
        self, vertex: int, changed: Mapping[int, Neighbours] = _NOTHING, adopted: Sequence[int] = ()
    ) -> int:
        """The cells of the vertex's bucket if it is a maximal clique in use, else nothing."""
        if vertex not in self._used and vertex not in changed:
            return 0
        neighbours = changed.get(vertex, self._neighbours[vertex])
        kept = (len(self._neighbours[c]) for c in self._children[vertex] if c not in changed)
        fresh = (len(changed[child]) for child in adopted)
        if len(neighbours) + 1 in {*kept, *fresh}:
            return 0
        return self._sizes[vertex] * math.prod(self._sizes[other] for other in neighbours)
