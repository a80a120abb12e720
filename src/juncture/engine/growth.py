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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from juncture._util.threads import run_parallel, split_range
from juncture.engine.compiled.loader import pointer, routine
from juncture.engine.junction import parent_of
from juncture.engine.order_search import Bucket

Bits = NDArray[np.int64]
# Below this many cliques, waking a second thread costs more than it saves.
_WORTH_THREADS = 256
# Larger numbers count as this: sums and products of them stay numbers.
_HUGE = 10**300
_NO_LIMIT = -1.0


class IncrementalElimination:
    """An elimination order of given cliques that can be extended by one more clique.

    The compiled routine knows vertices by their place in the order.
    """

    def __init__(
        self, buckets: Sequence[Bucket], cliques: Sequence[Sequence[int]], sizes: Sequence[int]
    ) -> None:
        used = {vertex for clique in cliques for vertex in clique}
        # Vertices that no clique mentions yet come first: they are simplicial when they join.
        self._order = sorted(buckets, key=lambda bucket: bucket.vertex in used)
        self._place = {bucket.vertex: index for index, bucket in enumerate(self._order)}
        parents = [parent_of(bucket, self._place) for bucket in self._order]
        self._children = _invert({b.vertex: p for b, p in zip(self._order, parents, strict=True)})
        every = [
            sizes[v] * math.prod(sizes[other] for other in near) if v in used else 0
            for v, near in self._order
        ]
        outside = [
            0 if self._lies_inside(b) else n for b, n in zip(self._order, every, strict=True)
        ]
        self.cells = sum(outside)
        # An upper bound: of all buckets, also those that lie inside others.
        self._all_cells = sum(every)
        self._n_words = (len(self._order) + 63) // 64
        self._neighbours = self._pack(bucket.neighbours for bucket in self._order)
        self._links = self._link(parents, used)
        own = [sizes[bucket.vertex] for bucket in self._order]
        self._numbers = np.array([[min(n, _HUGE) for n in each] for each in (own, outside)], float)
        self._cliques = self._pack(cliques)
        self._starts, self._members = self._find_members(cliques)

    def cells_with(self, clique: Iterable[int]) -> int:
        """The cells of a junction tree that holds the clique as well."""
        answers, _ = self._grow([[*clique]], _NO_LIMIT)
        return int(min(answers[0, 0], _HUGE))

    def which_fit(self, cliques: Sequence[Collection[int]], max_cells: int) -> list[bool]:
        """Whether those are at most so many, for each: searched for only where that decides."""

        def test(span: tuple[int, int]) -> list[bool]:
            answers, _ = self._grow(cliques[span[0] : span[1]], float(max_cells))
            fits: list[bool] = (answers[0] <= max_cells).tolist()
            return fits

        return [*chain(*run_parallel(test, split_range(len(cliques), _WORTH_THREADS)))]

    def buckets_with(self, clique: Iterable[int]) -> list[Bucket]:
        """The buckets of that junction tree's elimination order.

        Vertices that hand their neighbours, directly or through others, to a changed one must be
        eliminated before it; all others may come after. So the order is: what lies below, as
        before; the changed vertices, in the order just searched; the rest, as before.
        """
        answers, (order, scopes) = self._grow([[*clique]], _NO_LIMIT)
        changed = order[: int(answers[1, 0])].tolist()
        names = [bucket.vertex for bucket in self._order]
        fresh = {names[at]: frozenset(names[i] for i in _unpack(scopes[at])) for at in changed}
        below, waiting = set(fresh), list(fresh)
        for vertex in waiting:  # grows while it is walked
            children = [child for child in self._children.get(vertex, ()) if child not in below]
            below.update(children)
            waiting += children
        first = [b for b in self._order if b.vertex in below and b.vertex not in fresh]
        last = [b for b in self._order if b.vertex not in below]
        return [*first, *(Bucket(*item) for item in fresh.items()), *last]

    def _grow(
        self, cliques: Sequence[Collection[int]], limit: float
    ) -> tuple[NDArray[np.float64], tuple[Bits, Bits]]:
        """The cells with each clique, and how many vertices change; of the last one, which."""
        n, n_words, n_asked = len(self._order), self._n_words, len(cliques)
        asked, answers = self._pack(cliques), np.empty((2, n_asked))
        matrices = np.empty((5, n, n_words), dtype=np.int64)
        words, columns = np.empty((5, n_words), np.int64), np.full((13, n), -1, dtype=np.int64)
        local_sizes, spent = np.empty(n), np.empty(2, dtype=np.int64)
        cells, all_cells = (float(min(each, _HUGE)) for each in (self.cells, self._all_cells))
        routine("grow")(
            n, n_words, cells, all_cells, pointer(self._neighbours), pointer(self._links),
            pointer(self._numbers), pointer(self._cliques), len(self._cliques),
            pointer(self._starts), pointer(self._members), len(self._members), pointer(asked),
            n_asked, limit, pointer(answers), pointer(matrices), pointer(words), pointer(columns),
            pointer(local_sizes), pointer(spent),
        )  # fmt: skip
        return answers, (columns[0], matrices[0])

    def _lies_inside(self, bucket: Bucket) -> bool:
        """Whether a child with one neighbour more contains a bucket."""
        children = self._children.get(bucket.vertex, ())
        lengths = {len(self._order[self._place[child]].neighbours) for child in children}
        return len(bucket.neighbours) + 1 in lengths

    def _link(self, parents: Sequence[int | None], used: Collection[int]) -> Bits:
        """For each place those of the parent, the first child and the next sibling; -1 for none.

        And whether it is used, and its number of neighbours.
        """
        links = np.full((5, len(self._order)), -1, dtype=np.int64)
        for at, (bucket, parent) in enumerate(zip(self._order, parents, strict=True)):
            if parent is not None:
                above = self._place[parent]
                links[0, at], links[2, at], links[1, above] = above, links[1, above], at
            links[3, at], links[4, at] = bucket.vertex in used, len(bucket.neighbours)
        return links

    def _find_members(self, cliques: Sequence[Sequence[int]]) -> tuple[Bits, Bits]:
        """The cliques of each place, one after another, and where those of each begin."""
        holding: list[list[int]] = [[] for _ in self._order]
        for index, clique in enumerate(cliques):
            for vertex in clique:
                holding[self._place[vertex]].append(index)
        starts = list(accumulate(map(len, holding), initial=0))
        return np.array(starts, dtype=np.int64), np.array([*chain(*holding)], dtype=np.int64)

    def _pack(self, sets: Iterable[Collection[int]]) -> Bits:
        """Sets of vertices as rows of bits, by their places."""
        bit = {vertex: 1 << place for vertex, place in self._place.items()}
        masks = (sum({bit[vertex] for vertex in each}) for each in sets)
        packed = b"".join(mask.to_bytes(8 * self._n_words, "little") for mask in masks)
        return (
            np.frombuffer(packed, dtype="<i8").astype(np.int64).reshape(-1, max(1, self._n_words))
        )


def _unpack(row: Bits) -> Iterator[int]:
    """The places whose bits are set in a row."""
    bits = np.unpackbits(row.astype("<i8").view(np.uint8), bitorder="little")
    yield from np.flatnonzero(bits).tolist()


def _invert(parents: Mapping[int, int | None]) -> dict[int, list[int]]:
    """The children of each parent."""
    children: dict[int, list[int]] = {}
    for child, parent in parents.items():
        if parent is not None:
            children.setdefault(parent, []).append(child)
    return children
