"""Compiled: how many cells a junction tree has with one more clique (see `engine/growth.py`).

Vertices are numbered in the order of their elimination, so the parent of a bucket is the first of
its neighbours. Sets of vertices are rows of bits, as in `ordering`.
"""

from __future__ import annotations

from collections import namedtuple

from juncture.engine.compiled.elementwise import U, inner, trailing_zeros
from juncture.engine.compiled.ordering import S, Search, count_vertices, search_order, weigh

# Searching a larger region again would no longer be cheap.
MAX_REGION = 48

# The order that is kept. `neighbours` are the buckets without their vertex; -1 stands for no vertex
# in `parents`, `first_children` and `siblings`, which make a tree of them. `weights` are the cells
# of the buckets that lie inside no other, `all_cells` those of all. `members` are the cliques of
# each vertex, from `starts` on.
Order = namedtuple(
    "Order",
    "neighbours parents first_children siblings used lengths sizes weights cliques starts members "
    "cells all_cells n_words",
)
# Working space. `chain` are the vertices that change, in their new order, and `scopes` their new
# neighbours; `ranks` is their place in that order, `inside` says which vertices are `reached` (0),
# and lie inside a child (1): both are -1 between calls. The rest is for a search: the vertices by
# their `local` numbers and back, and the fields of `ordering.Search`.
Space = namedtuple(
    "Space",
    "chain scopes ranks reached inside names local region vertices scope rows closed below "
    "best_closed touched pending columns best_order local_sizes spent",
)


@inner()
def _find_first(bits, row, n_words):
    """The first vertex of a row, or -1."""
    for word in range(n_words):
        if bits[row + word]:
            return 64 * word + S(trailing_zeros(bits[row + word]))
    return -1


@inner()
def _has(bits, vertex):
    return (bits[vertex >> 6] >> (vertex & 63)) & 1


@inner()
def _propagate(order, space, clique):
    """Find the new neighbours of all vertices that the clique reaches; returns their number."""
    n_words, scope, n_changed = order.n_words, space.scope, 0
    for word in range(n_words):
        scope[word] = clique[word]
    vertex = _find_first(scope, 0, n_words)
    while vertex >= 0:
        scope[vertex >> 6] &= ~(1 << (vertex & 63))
        row, added = vertex * n_words, 1 - order.used[vertex]
        for word in range(n_words):
            added |= scope[word] & ~order.neighbours[row + word]
        if added == 0:
            break
        for word in range(n_words):
            scope[word] |= order.neighbours[row + word]
            space.scopes[row + word] = scope[word]
        space.chain[n_changed] = vertex
        n_changed += 1
        vertex = _find_first(scope, 0, n_words)
    return n_changed


@inner()
def _reach(space, vertex, n_reached):
    """Remember that the weight of a vertex may change; returns how many there are."""
    if vertex < 0 or space.inside[vertex] >= 0:
        return n_reached
    space.inside[vertex] = 0
    space.reached[n_reached] = vertex
    return n_reached + 1


@inner()
def _measure(order, space, vertex):
    """The number of new neighbours of a vertex."""
    if space.ranks[vertex] < 0:
        return order.lengths[vertex]
    return count_vertices(space.scopes, vertex * order.n_words, order.n_words)


@inner()
def _adopt(order, space, bits, vertex, n_reached):
    """Give a bucket to its new parent: of its neighbours, the first in the new order."""
    n_words, first, best = order.n_words, -1, -1
    row = vertex * n_words
    for word in range(n_words):
        rest = bits[row + word]
        while rest:
            other = 64 * word + S(trailing_zeros(rest))
            rest &= rest - 1
            rank = space.ranks[other]
            if rank < 0:
                first = other if first < 0 else first
            elif best < 0 or rank < space.ranks[best]:
                best = other
    parent = first if best < 0 else best
    if parent < 0:
        return n_reached
    n_reached = _reach(space, parent, n_reached)
    if count_vertices(bits, row, n_words) == _measure(order, space, parent) + 1:
        space.inside[parent] = 1
    return n_reached


@inner()
def _count_cells(order, space, n_changed):
    """The cells of the tree after the vertices of the chain got new neighbours and positions.

    Only vertices whose bucket or children differ can weigh something else: the changed ones, their
    old parents (which lose a child) and the new parents of their buckets and of their old children.
    All others keep their weight, so the sum is corrected, not formed again.
    """
    n_words, n_reached = order.n_words, 0
    for at in range(n_changed):
        space.ranks[space.chain[at]] = at
    for at in range(n_changed):
        vertex = space.chain[at]
        n_reached = _reach(space, vertex, n_reached)
        n_reached = _reach(space, order.parents[vertex], n_reached)
        n_reached = _adopt(order, space, space.scopes, vertex, n_reached)
        child = order.first_children[vertex]
        while child >= 0:
            if space.ranks[child] < 0:
                n_reached = _adopt(order, space, order.neighbours, child, n_reached)
            child = order.siblings[child]
    before, after = 0.0, 0.0
    for at in range(n_reached):
        vertex = space.reached[at]
        row, kept = vertex * n_words, space.ranks[vertex] < 0
        child = order.first_children[vertex]
        while kept and child >= 0:
            if space.ranks[child] < 0 and order.lengths[child] == order.lengths[vertex] + 1:
                space.inside[vertex] = 1
            child = order.siblings[child]
        before += order.weights[vertex]
        if space.inside[vertex] == 0:
            bits = order.neighbours if kept else space.scopes
            after += order.sizes[vertex] * weigh(bits, row, n_words, order.sizes)
        space.inside[vertex] = -1
    for at in range(n_changed):
        space.ranks[space.chain[at]] = -1
    return order.cells - before + after


@inner()
def _find_region(order, space, n_changed):
    """The changed vertices and, while they are few, all that come after them in the tree.

    Fills `region` with them and `vertices` with their neighbours too; returns their number.
    """
    n_words, region, n_region = order.n_words, space.region, 0
    for word in range(n_words):
        region[word] = 0
    for at in range(n_changed):
        vertex = space.chain[at]
        region[vertex >> 6] |= 1 << (vertex & 63)
        for word in range(n_words):
            region[word] |= space.scopes[vertex * n_words + word]
    for word in range(n_words):
        space.vertices[word] = region[word]
    for word in range(n_words):
        seen = 0
        while region[word] & ~seen:
            rest = region[word] & ~seen
            seen |= rest & -rest
            n_region += 1
            row = (64 * word + S(trailing_zeros(rest))) * n_words
            for k in range(n_words):
                region[k] |= order.neighbours[row + k]
    if n_region <= MAX_REGION:
        for word in range(n_words):
            space.vertices[word] = region[word]
        return n_region
    for word in range(n_words):
        region[word] = 0
    for at in range(n_changed):
        region[space.chain[at] >> 6] |= 1 << (space.chain[at] & 63)
    return n_changed


@inner()
def _number_vertices(order, space):
    """Number the vertices of the graph to search, those of the region first; returns how many."""
    n_local = 0
    for turn in range(2):
        for word in range(order.n_words):
            rest = space.region[word]
            if turn:
                rest = space.vertices[word] & ~space.region[word]
            while rest:
                vertex = 64 * word + S(trailing_zeros(rest))
                rest &= rest - 1
                space.names[n_local], space.local[vertex] = vertex, n_local
                space.local_sizes[n_local] = order.sizes[vertex]
                n_local += 1
    return n_local


@inner()
def _join(order, space, bits, row, n_local_words):
    """Make the vertices of a row pairwise adjacent, as far as they are in the graph."""
    joined = space.touched
    for word in range(n_local_words):
        joined[word] = 0
    for word in range(order.n_words):
        rest = bits[row + word] & space.vertices[word]
        while rest:
            local = space.local[64 * word + S(trailing_zeros(rest))]
            rest &= rest - 1
            joined[local >> 6] |= 1 << (local & 63)
    for word in range(n_local_words):
        rest = joined[word]
        while rest:
            local = 64 * word + S(trailing_zeros(rest))
            rest &= rest - 1
            for k in range(n_local_words):
                space.rows[local * n_local_words + k] |= joined[k]


@inner()
def _build_graph(order, space, clique, n_region, n_local, n_local_words):
    """The graph of the region once everything below it has been eliminated.

    Eliminating a child leaves its neighbours pairwise adjacent, whatever was below it; so the edges
    are those of the cliques themselves and of the children's neighbourhoods.
    """
    n_words = order.n_words
    for word in range(n_local * n_local_words):
        space.rows[word] = 0
    for local in range(n_local):
        space.rows[local * n_local_words + (local >> 6)] |= 1 << (local & 63)
    _join(order, space, clique, 0, n_local_words)
    for at in range(n_region):
        vertex = space.names[at]
        for member in range(order.starts[vertex], order.starts[vertex + 1]):
            row = order.members[member] * n_words
            for word in range(n_words):
                space.scope[word] = order.cliques[row + word] & space.region[word]
            if _find_first(space.scope, 0, n_words) == vertex:  # once is enough
                _join(order, space, order.cliques, row, n_local_words)
        child = order.first_children[vertex]
        while child >= 0:
            if not _has(space.region, child):
                _join(order, space, order.neighbours, child * n_words, n_local_words)
            child = order.siblings[child]


@inner()
def _search(order, space, clique, n_changed):
    """Search the order of the region again: it becomes the chain. Returns its length."""
    n_words, n_region = order.n_words, _find_region(order, space, n_changed)
    n_local = _number_vertices(order, space)
    n_local_words = (n_local + 63) >> 6
    _build_graph(order, space, clique, n_region, n_local, n_local_words)
    size = n_local * n_local_words
    columns = space.columns
    search = Search(
        space.rows[:size], space.local_sizes, n_region, space.closed[:size], space.below[:size],
        space.touched[:n_local_words], space.pending[:n_local_words], columns[0], columns[1],
        columns[2], columns[3:],
    )  # fmt: skip
    found = space.best_closed[:size]
    search_order(search, U(0), 0, 0, 0.0, 0, space.best_order, found, space.spent)
    for at in range(n_region):
        local = space.best_order[at]
        vertex = space.names[local]
        space.chain[at], row = vertex, vertex * n_words
        for word in range(n_words):
            space.scopes[row + word] = 0
        for word in range(n_local_words):
            rest = found[local * n_local_words + word]
            while rest:
                other = space.names[64 * word + S(trailing_zeros(rest))]
                rest &= rest - 1
                space.scopes[row + (other >> 6)] |= 1 << (other & 63)
    return n_region


@inner()
def grow(order, space, clique, limit):
    """The cells of the tree with a clique added, and how many vertices change for that.

    It is the smaller of the tree with the order kept and that with it searched again; where the
    limit is not negative, any number is enough that is at most the limit and not too small.
    """
    n_changed, bound = _propagate(order, space, clique), order.all_cells
    for at in range(n_changed):
        row = space.chain[at] * order.n_words
        bound += order.sizes[space.chain[at]] * weigh(space.scopes, row, order.n_words, order.sizes)
    # Every bucket of the new order is an old one, or one of those that changed.
    if bound <= limit:
        return bound, n_changed
    kept = _count_cells(order, space, n_changed)
    # Growth by no more than the clique's own table can hardly be improved on.
    if kept <= limit or kept - order.cells <= weigh(clique, 0, order.n_words, order.sizes):
        return kept, n_changed
    n_changed = _search(order, space, clique, n_changed)
    searched = _count_cells(order, space, n_changed)
    if searched < kept:
        return searched, n_changed
    return kept, _propagate(order, space, clique)
