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
# A target this near to an integer is that integer.
_NEAR = 1e-9


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
def _scale_chances(chances, total):
    """Scale chances so that they add up to the total and none is above 1; False if impossible."""
    for _ in range(50):
        certain, rest = 0, 0.0
        for k in range(len(chances)):
            if chances[k] >= 1.0:
                chances[k] = 1.0
                certain += 1
            else:
                rest += chances[k]
        if rest <= 0.0:
            return certain == total
        factor = (total - certain) / rest
        if abs(factor - 1.0) < _NEAR:
            return True
        for k in range(len(chances)):
            if chances[k] < 1.0:
                chances[k] *= factor
    return True


@inner()
def apportion(weights, members, strides, sizes, counts, carried, chances, starts):
    """Divide the members of every row among its cells, as nearly in proportion as integers go.

    Each cell gets its share rounded down or up. It is rounded up with a chance that is the fraction
    cut off, plus what earlier rows have left over: on average over all rows that share the value of
    one of the row's attributes (`carried`, a table of left-overs for each attribute). So counts
    are right on average (except for chances that had to be clipped at 0 or 1), rows add up exactly,
    and all rows that agree in one attribute nearly do. The cells are drawn together, by one random
    start for the row.

    For example, two rows that share the value of their one attribute, five members each, weights
    .5, .3, .2:

        row 1   targets 2.5 1.5 1.0   whole 2 1 1   chances .5 .5 0    start .3: the second gets one
        carried          .5 -.5 0     what the value's rows have been given too little or too much
        row 2   targets 2.5 1.5 1.0   whole 2 1 1   chances 1 0 0      the first gets one
        sum              5   3   2    exactly .5, .3 and .2 of the ten

    Rounding each row by itself would be right on average too, but over a thousand rows the sums
    would be off by some fifteen records.
    """
    n_rows, n_cells = weights.shape
    n_known = len(sizes)
    for row in range(n_rows):
        total = 0.0
        for k in range(n_cells):
            counts[row, k] = 0
            if weights[row, k] > 0.0:
                total += weights[row, k]
        left = members[row]
        if left == 0 or total <= 0.0:
            continue
        for k in range(n_cells):
            chances[k] = 0.0
            if weights[row, k] > 0.0:
                target = members[row] * (weights[row, k] / total)
                whole = min(int(target + _NEAR), left)
                counts[row, k] = whole
                left -= whole
                chances[k] = _carry(carried, row, k, n_cells, strides, sizes, target - whole)
                if n_known == 0:
                    chances[k] = target - whole
                chances[k] = max(0.0, chances[k])
        if left == 0:
            continue
        if not _scale_chances(chances, left):  # only rounding leads here: use the weights
            for k in range(n_cells):
                chances[k] = left * max(0.0, weights[row, k]) / total
        # The chances lie end to end on a line of length `left`. Points at distance one from each
        # other, the first at random, hit each cell with its chance, and `left` cells in all.
        passed = starts[row]
        for k in range(n_cells):
            before = int(passed)
            passed += chances[k]
            for _ in range(int(passed + _NEAR) - before):
                if left > 0 and weights[row, k] > 0.0:
                    counts[row, k] += 1
                    left -= 1
                    _carry(carried, row, k, n_cells, strides, sizes, -1.0)
        for k in range(n_cells):  # what rounding has left
            if left > 0 and weights[row, k] > 0.0 and chances[k] > 0.0:
                counts[row, k] += left
                left = 0


@inner()
def _carry(carried, row, k, n_cells, strides, sizes, amount):
    """Add to what a cell's rows have left over; returns the mean over the row's attributes."""
    over, start = 0.0, 0
    for j in range(len(sizes)):
        at = (start + (row // strides[j]) % sizes[j]) * n_cells + k
        carried[at] += amount
        over += carried[at]
        start += sizes[j]
    return over / max(1, len(sizes))


@inner()
def hand_out(codes, known, strides, added, decoded, counts, at, slots, key, counter):
    """Give every record a cell of its row, at random, until each cell's count is used."""
    begin = 0
    for row in range(len(at)):
        end = begin
        for k in range(counts.shape[1]):
            for _ in range(counts[row, k]):
                slots[end] = k
                end += 1
        for i in range(end - begin - 1, 0, -1):
            j = int(uniform(key, U(counter) + U(begin + i)) * (i + 1))
            slots[begin + i], slots[begin + j] = slots[begin + j], slots[begin + i]
        at[row] = begin
        begin = end
    for i in range(codes.shape[1]):
        row = 0
        for j in range(len(known)):
            row += codes[known[j], i] * strides[j]
        k = slots[at[row]]
        at[row] += 1
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
