"""The search for a cheap elimination order of a graph, and how long it may take.

The work of a search is counted in steps of its loops, never in seconds: the same problem has the
same order on any machine, however busy. A step takes about two nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture.engine.compiled.loader import pointer, routine

# Graphs of more vertices would need too much memory as matrices of bits.
MAX_VERTICES = 4096
# Sizes beyond this do not fit into floats; tables on them do not fit into any machine.
_MAX_SIZE = 10**300


class Effort(NamedTuple):
    """How much work a search may do for what is at stake: the cells of the tables that it finds."""

    min_attempts: int = 128
    """After so many attempts, or `min_work`, only what is at stake justifies another one."""
    min_work: int = 1_000_000
    share: float = 2.0
    """Steps for each cell; two take about as long as one or two oracle calls."""
    max_work: int = 200_000_000


USUAL_EFFORT = Effort()
NO_REPETITION = Effort(0, 0, 0.0, 0)
"""Each heuristic once, without noise."""


class Bucket(NamedTuple):
    """A vertex and the neighbours that it had when it was eliminated."""

    vertex: int
    neighbours: frozenset[int]


class FoundOrder(NamedTuple):
    """The buckets of an elimination order, and what the search for it took."""

    buckets: list[Bucket]
    attempts: int
    work: int


def search_order(
    graph: Mapping[int, Set[int]],
    vertices: Sequence[int],
    sizes: Sequence[int],
    effort: Effort,
    seed: int = 0,
) -> FoundOrder:
    """A cheap order that eliminates these vertices of the graph and no others."""
    free = set(vertices)
    names = [*vertices, *(vertex for vertex in graph if vertex not in free)]
    n, n_words = len(names), (len(names) + 63) // 64
    rows = _pack_bits(graph, names, n_words)
    numbers = np.array([min(sizes[name], _MAX_SIZE) for name in names], dtype=np.float64)
    closed, below, best_closed = (np.empty((n, n_words), dtype=np.int64) for _ in range(3))
    marks, columns = np.empty((2, n_words), dtype=np.int64), np.empty((6, n), dtype=np.int64)
    order, spent = np.empty(n, dtype=np.int64), np.empty(2, dtype=np.int64)
    outputs = (closed, below, marks, columns, order, best_closed, spent)
    routine("search_order")(
        pointer(rows), pointer(numbers), n, n_words, len(vertices), seed % 2**64, *effort,
        *map(pointer, outputs),
    )  # fmt: skip
    scopes = _unpack_bits(best_closed, names)
    buckets = [Bucket(names[index], scopes[index]) for index in order[: len(vertices)].tolist()]
    return FoundOrder(buckets, *spent.tolist())


def _pack_bits(
    graph: Mapping[int, Set[int]], names: Sequence[int], n_words: int
) -> NDArray[np.int64]:
    """The closed neighbourhoods as rows of bits, in the order of the names."""
    bit = {name: 1 << index for index, name in enumerate(names)}
    masks = (sum(map(bit.__getitem__, graph[name])) for name in names)
    packed = b"".join(mask.to_bytes(8 * n_words, "little") for mask in masks)
    return np.frombuffer(packed, dtype="<i8").astype(np.int64)


def _unpack_bits(rows: NDArray[np.int64], names: Sequence[int]) -> list[frozenset[int]]:
    """The sets of names whose bits are set in each row."""
    packed = rows.astype("<i8").view(np.uint8)
    which, bits = np.nonzero(np.unpackbits(packed, axis=1, bitorder="little"))
    ends = np.searchsorted(which, np.arange(len(rows) + 1)).tolist()
    members = [names[bit] for bit in bits.tolist()]
    return [frozenset(members[first:last]) for first, last in pairwise(ends)]
