"""Compiled: drawing records from the tables of a tree, cell by cell of a node given its separator.

Random numbers are a hash of a key and a counter, so a record does not depend on how the work is
divided into chunks and threads.
"""

from __future__ import annotations

from juncture.engine.compiled.elementwise import U, inner

_GOLDEN = U(0x9E3779B97F4A7C15)
_FIRST = U(0xBF58476D1CE4E5B9)
_SECOND = U(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


@inner()
def scramble(key, counter):
    """A number of 64 random bits: the splitmix64 generator at any counter."""
    z = key + counter * _GOLDEN
    z = (z ^ (z >> U(30))) * _FIRST
    z = (z ^ (z >> U(27))) * _SECOND
    return z ^ (z >> U(31))


@inner()
def uniform(key, counter):
    """A random number in [0, 1) with all 53 bits."""
    return float(scramble(key, counter) >> U(11)) * _TO_UNIT


@inner()
def make_aliases(weights, share, alias, waiting):
    """Make tables with which a draw from a row of weights takes constant time (Vose's method).

    Cell k of a row keeps a draw that falls on it with probability share[k], and otherwise hands it
    to alias[k]. A cell without weight never keeps one.
    """
    n_rows, n_cells = weights.shape
    for row in range(n_rows):
        total, heaviest = 0.0, 0
        for k in range(n_cells):
            total += weights[row, k]
            if weights[row, k] > weights[row, heaviest]:
                heaviest = k
        small, large = 0, n_cells  # two stacks in one array, from both ends
        for k in range(n_cells):
            share[row, k] = weights[row, k] * n_cells / total if total > 0.0 else 1.0
            alias[row, k] = heaviest
            if share[row, k] < 1.0:
                waiting[small] = k
                small += 1
            else:
                large -= 1
                waiting[large] = k
        while small > 0 and large < n_cells:
            small -= 1
            k, giver = waiting[small], waiting[large]
            alias[row, k] = giver
            share[row, giver] -= 1.0 - share[row, k]
            if share[row, giver] < 1.0:
                large += 1
                waiting[small] = giver
                small += 1
        while large < n_cells:
            share[row, waiting[large]] = 1.0
            large += 1
        while small > 0:  # only rounding leaves anything here
            small -= 1
            if weights[row, waiting[small]] > 0.0:
                share[row, waiting[small]] = 1.0


@inner()
def draw(codes, first, last, offset, known, strides, added, decoded, share, alias, key, phase):
    """Draw a node's added attributes for the records from `first` to `last`."""
    n_cells = share.shape[1]
    for i in range(first, last):
        row = 0
        for j in range(len(known)):
            row += codes[known[j], i] * strides[j]
        counter = U(2) * (U(offset + i) * U(phase[1]) + U(phase[0]))
        k = int(uniform(key, counter) * n_cells)
        if uniform(key, counter + U(1)) >= share[row, k]:
            k = alias[row, k]
        for j in range(len(added)):
            codes[added[j], i] = decoded[j, k]


@inner()
def count_rows(codes, known, strides, members):
    """Count the records of each row of a node's table."""
    for row in range(len(members)):
        members[row] = 0
    for i in range(codes.shape[1]):
        row = 0
        for j in range(len(known)):
            row += codes[known[j], i] * strides[j]
        members[row] += 1
