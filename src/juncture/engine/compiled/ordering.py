"""Compiled: the search for a cheap elimination order, by greedy heuristics with and without noise.

A graph is a matrix of bits: bit j of row i is set where j is i or adjacent to i. A row is some
64-bit words, so a union of neighbourhoods or a count of missing edges takes a few instructions.
Matrices are flat, row after row.

Scores are the bit patterns of floats that are not negative. Read as integers they are ordered like
the floats, and they grow like their logarithms, because the exponent comes first. So noise that is
added to a score multiplies the quantity. Only integers, and sums and products of floats in a fixed
order, decide: the order found does not depend on the machine.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from juncture.engine.compiled.elementwise import (
    LOG2E,
    U,
    bits_of,
    count_ones,
    fill,
    inner,
    trailing_zeros,
)
from juncture.engine.compiled.sampling import scramble, uniform

# Unsigned addresses become ordinary numbers again by this.
S = np.int64

# The quantities that a heuristic may keep small: edges that are added, cells of the bucket, cells
# of the tables of the added edges.
FILL, WEIGHT, WEIGHTED_FILL = range(3)
N_HEURISTICS = 3

# Larger buckets count as this large: sums of them stay finite.
HUGE = 1e300
# The noise of a repetition multiplies scores by up to e**1.5, or to half or a quarter of that
# exponent, in turn: which is best depends on the graph.
NOISE, N_LEVELS = 1.5 * LOG2E * 2.0**52, 3
ATTEMPTS_PER_VERTEX = 64
# Buckets inside others are no tables of the tree; they decide between trees of the same size.
INSIDE = 2.0**-10
ELIMINATED = np.iinfo(np.int64).max

# `rows` is the graph, of which the first `n_free` vertices are to be eliminated. The rest is
# working space: `closed` is what is left of the graph; bit j of row i of `below` says that j was
# eliminated while it was adjacent to i; `pending` are the eliminated vertices none of whose
# neighbours has been eliminated since; `degrees` are the numbers of vertices in the buckets;
# `first_scores` are those of each heuristic on the whole graph.
Search = namedtuple(
    "Search", "rows sizes n_free closed below touched pending scores degrees order first_scores"
)


@inner()
def count_vertices(rows, row, n_words):
    """The number of vertices in a row."""
    count = 0
    for word in range(row, row + n_words):
        count += count_ones(rows[word])
    return count


@inner()
def weigh(rows, row, n_words, sizes):
    """The number of cells of a table on the vertices of a row, at most HUGE."""
    cells, vertex = 1.0, U(0)
    for word in range(row, row + n_words):
        rest = rows[word]
        while rest:
            cells *= sizes[vertex + trailing_zeros(rest)]
            rest &= rest - 1
        vertex += U(64)
    return min(cells, HUGE)


@inner()
def _count_missing(rows, row, n_words):
    """The number of edges, in both directions, that the vertices of a row lack between them."""
    count, vertex = 0, U(0)
    for word in range(row, row + n_words):
        rest = rows[word]
        while rest:
            other = (vertex + trailing_zeros(rest)) * n_words
            rest &= rest - 1
            for k in range(n_words):
                count += count_ones(rows[row + k] & ~rows[other + k])
        vertex += U(64)
    return float(count)


@inner()
def _weigh_missing(rows, row, n_words, sizes):
    """The number of cells of tables on those edges, at most HUGE."""
    cells, vertex = 0.0, U(0)
    for word in range(row, row + n_words):
        rest = rows[word]
        while rest:
            one = vertex + trailing_zeros(rest)
            rest &= rest - 1
            values, begin = 0.0, U(0)
            for k in range(n_words):
                missing = rows[row + k] & ~rows[one * n_words + k]
                while missing:
                    values += sizes[begin + trailing_zeros(missing)]
                    missing &= missing - 1
                begin += U(64)
            cells += values * sizes[one]
        vertex += U(64)
    return min(cells, HUGE)


@inner()
def _score(rows, vertex, n_words, sizes, heuristic):
    """The score of a vertex, and the work that it took."""
    row = U(vertex) * n_words
    degree = count_vertices(rows, row, n_words)
    if heuristic == WEIGHT:
        return bits_of(weigh(rows, row, n_words, sizes)), degree + S(n_words)
    work = degree * S(n_words + U(2))
    if heuristic == FILL:
        return bits_of(_count_missing(rows, row, n_words)), work
    return bits_of(_weigh_missing(rows, row, n_words, sizes)), work


@inner()
def _is_inside_child(search, vertex, n_words, degree):
    """Whether a bucket below contains this one; the ones below are then no longer pending."""
    inside, begin, row = False, U(0), U(vertex) * n_words
    for word in range(n_words):
        rest = search.below[row + word] & search.pending[word]
        search.pending[word] &= ~rest
        while rest:
            inside |= search.degrees[begin + trailing_zeros(rest)] == degree + 1
            rest &= rest - 1
        begin += U(64)
    search.degrees[U(vertex)] = degree
    search.pending[U(vertex >> 6)] |= 1 << (vertex & 63)
    return inside


@inner()
def _remove(rows, below, touched, vertex, n_words):
    """Eliminate a vertex; `touched` becomes the vertices whose score may change. Returns the work.

    An edge that is added between two vertices changes their own scores and those of their common
    neighbours.
    """
    row, home, bit, work = U(vertex) * n_words, U(vertex >> 6), 1 << (vertex & 63), 0
    rows[row + home] &= ~bit
    for word in range(n_words):
        touched[word] = rows[row + word]
    begin = U(0)
    for word in range(row, row + n_words):
        rest = rows[word]
        while rest:
            one = (begin + trailing_zeros(rest)) * n_words
            rest &= rest - 1
            rows[one + home] &= ~bit
            below[one + home] |= bit
            work += S(n_words + U(2))
            inner_begin = U(0)
            for k in range(n_words):
                missing = rows[row + k] & ~rows[one + k]
                rows[one + k] |= missing
                while missing:
                    end = (inner_begin + trailing_zeros(missing)) * n_words
                    missing &= missing - 1
                    work += S(n_words)
                    for j in range(n_words):
                        touched[j] |= rows[one + j] & rows[end + j]
                inner_begin += U(64)
        begin += U(64)
    return work


@inner()
def _find_lowest(scores, n_free):
    """The vertex with the lowest score; ties go to the first."""
    best, lowest = S(0), ELIMINATED
    for vertex in range(U(n_free)):
        if scores[vertex] < lowest:
            best, lowest = S(vertex), scores[vertex]
    return best


@inner()
def _begin(search, n_words, heuristic, key, noise):
    """Set the working space to the whole graph and score all vertices; returns the work.

    Attempts without noise come first, and keep their scores for the others.
    """
    work, known = len(search.rows), search.first_scores[heuristic]
    for word in range(U(len(search.rows))):
        search.closed[word] = search.rows[word]
        search.below[word] = 0
    fill(search.pending, 0, len(search.pending), 0)
    for vertex in range(search.n_free):
        if noise == 0.0:
            known[vertex], steps = _score(search.closed, vertex, n_words, search.sizes, heuristic)
            work += steps
        search.scores[vertex] = known[vertex] + int(noise * uniform(key, U(vertex)))
    return work


@inner()
def _eliminate(search, heuristic, key, noise, limit):
    """Eliminate the free vertices by lowest score; returns the cells of the maximal buckets.

    Gives up, with a result of infinity, once they reach the limit. Returns the work as well.
    """
    closed, scores, sizes, n_words = (
        search.closed,
        search.scores,
        search.sizes,
        U(len(search.touched)),
    )
    work = _begin(search, n_words, heuristic, key, noise)
    counter, cost = U(search.n_free), 0.0
    for step in range(search.n_free):
        vertex = _find_lowest(scores, search.n_free)
        search.order[step], scores[vertex] = vertex, ELIMINATED
        row = U(vertex) * n_words
        inside = _is_inside_child(search, vertex, n_words, count_vertices(closed, row, n_words))
        cost += weigh(closed, row, n_words, sizes) * (INSIDE if inside else 1.0)
        if cost >= limit:
            return np.inf, work
        work += _remove(closed, search.below, search.touched, vertex, n_words) + (
            search.n_free >> 2
        )
        begin = 0
        for word in range(n_words):
            rest = search.touched[word]
            while rest:
                other = begin + S(trailing_zeros(rest))
                rest &= rest - 1
                if other < search.n_free and scores[U(other)] != ELIMINATED:
                    score, steps = _score(closed, other, n_words, sizes, heuristic)
                    scores[U(other)] = score + int(noise * uniform(key, counter))
                    counter += U(1)
                    work += steps
            begin += 64
    return cost, work


@inner()
def search_order(
    search, key, min_attempts, min_work, share, max_work, best_order, best_closed, spent
):
    """Repeat the heuristics with noise until the work is out of proportion to what is at stake.

    The first attempts are without noise. Then attempts go on, at least until there were
    `min_attempts` of them or `min_work` was spent, and until the work is `share` times the cells of
    the best order or `max_work`; but a small graph has few orders worth trying, whatever is at
    stake. `spent` receives the number of attempts and the work.
    """
    attempts, work, best = 0, 0, np.inf
    max_attempts = max(min_attempts, search.n_free * ATTEMPTS_PER_VERTEX)
    while (
        attempts < N_HEURISTICS
        or (attempts < min_attempts and work < min_work)
        or (attempts < max_attempts and work < min(share * best, max_work))
    ):
        noise = 0.0
        if attempts >= N_HEURISTICS:
            noise = NOISE / (1 << (attempts // N_HEURISTICS % N_LEVELS))
        own_key = scramble(key, U(attempts))  # every attempt has random numbers of its own
        cost, steps = _eliminate(search, attempts % N_HEURISTICS, own_key, noise, best)
        attempts += 1
        work += steps
        if cost < best:
            best = cost
            for step in range(search.n_free):
                best_order[step] = search.order[step]
            for word in range(len(best_closed)):
                best_closed[word] = search.closed[word]
    spent[0], spent[1] = attempts, work
