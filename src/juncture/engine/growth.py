"""How much a junction tree grows when one more clique is added, without planning again.

The elimination order is kept and only the buckets that the new clique reaches are examined:
the bucket of its first vertex receives the others as new neighbours, hands them on to the
bucket eliminated next, and so on until nothing is new. Where that makes the tree larger, the
order of the reached vertices alone is searched again. That is valid because eliminating a set
of vertices leaves the same graph behind in any order, so all other buckets stay as they are. The
answer is the size of a tree that exists, so a fresh search can only find a smaller one.

For example, a chain a-b-c-d of ten values each, eliminated in this order, gets the clique ad:

    bucket   before     after
    a        {b}        {b, d}    the new neighbour d; b is eliminated next and receives {d}
    b        {c}        {c, d}    c is eliminated next and receives {d}
    c        {d}        {d}       nothing new: the walk ends; c's bucket now lies inside b's
    cells    300        2000      ab, bc, cd became abd, bcd
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter

from juncture.engine.elimination import Graph, build_graph, eliminate_subset
from juncture.engine.junction import parent_of
from juncture.engine.order_search import Bucket

VertexSet = frozenset[int]
Changes = dict[int, VertexSet]

# Searching a larger region again would no longer be cheap.
_MAX_REGION = 48


class IncrementalElimination:
    """An elimination order of given cliques that can be extended by one more clique."""

    def __init__(
        self, buckets: Sequence[Bucket], cliques: Sequence[Sequence[int]], sizes: Sequence[int]
    ) -> None:
        self._used = {vertex for clique in cliques for vertex in clique}
        # Vertices that no clique mentions yet come first: they are simplicial when they join.
        self._order = sorted(buckets, key=lambda bucket: bucket.vertex in self._used)
        self._sizes = sizes
        self._position = {bucket.vertex: index for index, bucket in enumerate(self._order)}
        self._neighbours = dict(self._order)
        self._cliques: dict[int, list[Sequence[int]]] = {vertex: [] for vertex in self._position}
        for clique in cliques:
            for vertex in clique:
                self._cliques[vertex].append(clique)
        self._parent = {bucket.vertex: parent_of(bucket, self._position) for bucket in self._order}
        self._children = _invert(self._parent)
        self.cells = sum(map(self._old_weight, self._position))
        # An upper bound: of all buckets, also those that lie inside others.
        self._all_cells = sum(self._weight(self._neighbours[v], v, set()) for v in self._used)

    def cells_with(self, clique: Iterable[int]) -> int:
        """The cells of a junction tree that holds the clique as well."""
        return self._find_best(frozenset(clique))[0]

    def fits_with(self, clique: Iterable[int], max_cells: int) -> bool:
        """Whether those are at most so many: counted, and searched for, only where it decides."""
        vertices = frozenset(clique)
        changed = self._propagate(vertices)
        # Every bucket of the new order is an old one, or one of those that changed.
        grown = (self._weight(scope, vertex, set()) for vertex, scope in changed.items())
        if self._all_cells + sum(grown) <= max_cells:
            return True
        kept = self._cells_after(changed)
        return kept <= max_cells or self._find_best(vertices)[0] <= max_cells

    def buckets_with(self, clique: Iterable[int]) -> list[Bucket]:
        """The buckets of that junction tree's elimination order.

        Vertices that hand their neighbours, directly or through others, to a changed one must be
        eliminated before it; all others may come after. So the order is: what lies below, as
        before; the changed vertices, in the order just searched; the rest, as before.
        """
        fresh = self._find_best(frozenset(clique))[1]
        below, waiting = set(fresh), list(fresh)
        for vertex in waiting:  # grows while it is walked
            children = [child for child in self._children.get(vertex, ()) if child not in below]
            below.update(children)
            waiting += children
        first = [b for b in self._order if b.vertex in below and b.vertex not in fresh]
        last = [b for b in self._order if b.vertex not in below]
        return [*first, *(Bucket(*item) for item in fresh.items()), *last]

    def _find_best(self, clique: VertexSet) -> tuple[int, Changes]:
        """The smaller of the tree with the order kept and that with it searched again."""
        kept = self._propagate(clique)
        cells = self._cells_after(kept)
        # Growth by no more than the clique's own table can hardly be improved on.
        if cells - self.cells <= math.prod(self._sizes[vertex] for vertex in clique):
            return cells, kept
        region = self._region(kept)
        searched = dict(eliminate_subset(self._graph(clique, region), [*region], self._sizes))
        return min((cells, kept), (self._cells_after(searched), searched), key=itemgetter(0))

    def _propagate(self, clique: VertexSet) -> Changes:
        """The new neighbours of all vertices that the clique reaches, in the order kept."""
        changed: dict[int, VertexSet] = {}
        waiting = {min(clique, key=self._position.__getitem__): clique} if clique else {}
        while waiting:
            vertex = min(waiting, key=self._position.__getitem__)
            scope = waiting.pop(vertex) - {vertex}
            if vertex in self._used and scope <= self._neighbours[vertex]:
                continue
            changed[vertex] = scope = self._neighbours[vertex] | scope
            parent = parent_of(Bucket(vertex, scope), self._position)
            if parent is not None:
                waiting[parent] = waiting.get(parent, frozenset()) | scope
        return changed

    def _region(self, reached: Changes) -> Changes:
        """The reached vertices and, while they are few, all that come after them in the tree."""
        region = dict(reached)
        waiting = [v for scope in reached.values() for v in scope]
        while waiting and len(region) <= _MAX_REGION:
            vertex = waiting.pop()
            if vertex not in region:
                region[vertex] = self._neighbours[vertex]
                waiting += self._neighbours[vertex]
        return reached if waiting else region

    def _graph(self, clique: VertexSet, reached: Changes) -> Graph:
        """The graph of the reached vertices once everything below them has been eliminated.

        Eliminating a child leaves its neighbours pairwise adjacent, whatever was below it; so the
        edges are those of the cliques themselves and of the children's neighbourhoods.
        """
        scopes: list[Collection[int]] = [clique]
        vertices = {*reached}.union(*reached.values())
        for vertex in reached:
            scopes += (vertices.intersection(other) for other in self._cliques[vertex])
            scopes += (
                self._neighbours[c] for c in self._children.get(vertex, ()) if c not in reached
            )
        return build_graph(sorted(vertices), scopes)

    def _cells_after(self, changed: Changes) -> int:
        """The cells of the junction tree after these vertices got new neighbours and positions.

        Only vertices whose bucket or children differ can weigh something else: the changed ones,
        their old parents (which lose a child) and the new parents of their buckets and of their
        old children. All others keep their weight, so the sum is corrected, not formed again.
        """
        # The changed vertices are eliminated first, in their new order. What was below them keeps
        # its neighbours but may get another parent: the first of those neighbours in this order.
        first = -len(changed)
        position = {**self._position, **{v: first + at for at, v in enumerate(changed)}}
        below = [c for v in changed for c in self._children.get(v, ()) if c not in changed]
        buckets = [Bucket(c, self._neighbours[c]) for c in below]
        buckets += (Bucket(*item) for item in changed.items())
        parents = {bucket.vertex: parent_of(bucket, position) for bucket in buckets}
        lengths = {bucket.vertex: len(bucket.neighbours) for bucket in buckets}
        adopted = _invert(parents)
        left = (parent for parent in map(self._parent.get, changed) if parent is not None)
        reached = {*changed, *adopted, *left}
        after = 0
        for vertex in sorted(reached):
            children = [c for c in self._children.get(vertex, ()) if c not in lengths]
            sizes = {len(self._neighbours[c]) for c in children}
            sizes.update(lengths[c] for c in adopted.get(vertex, ()))
            after += self._weight(changed.get(vertex, self._neighbours[vertex]), vertex, sizes)
        return self.cells + after - sum(map(self._old_weight, reached))

    def _old_weight(self, vertex: int) -> int:
        if vertex not in self._used:
            return 0
        sizes = {len(self._neighbours[child]) for child in self._children.get(vertex, ())}
        return self._weight(self._neighbours[vertex], vertex, sizes)

    def _weight(self, neighbours: VertexSet, vertex: int, children: set[int]) -> int:
        """The cells of a bucket, or nothing where a child with one neighbour more contains it."""
        if len(neighbours) + 1 in children:
            return 0
        return self._sizes[vertex] * math.prod(self._sizes[other] for other in neighbours)


def _invert(parents: Mapping[int, int | None]) -> dict[int, list[int]]:
    """The children of each parent."""
    children: dict[int, list[int]] = {}
    for child, parent in parents.items():
        if parent is not None:
            children.setdefault(parent, []).append(child)
    return children
