"""Compiled: drawing records from the tables of a tree, cell by cell of a node given its separator.

Random numbers are a hash of a key and a counter, so a record does not depend on how the work is
divided into chunks and threads.
"""

from __future__ import annotations

from juncture.oracles.vector import U, inner

_GOLDEN = U(0x9E3779B97F4A7C15)
_FIRST = U(0xBF58476D1CE4E5B9)
_SECOND = U(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53
# A target this near to an integer is that integer.
_NEAR = 1e-9


@inner()
def uniform(key, counter):
    """A number in [0, 1), with all 53 bits: the splitmix64 generator, entered anywhere."""
    z = key + counter * _GOLDEN
    z = (z ^ (z >> U(30))) * _FIRST
    z = (z ^ (z >> U(27))) * _SECOND
    z ^= z >> U(31)
    return float(z >> U(11)) * _TO_UNIT


@inner()
def make_aliases(weights, share, alias, waiting):
    """For every row of weights, tables by which one draw takes constant time (Vose's method).

    Cell k of a row keeps a draw that falls on it with probability share[k], and else hands it to
    alias[k]. A cell without weight never keeps one.
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
        while small > 0:  # what is left here is left by rounding alone
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
def _select(priority, cells, n, most):
    """Reorder so that the `most` largest priorities come first (quickselect)."""
    low, high = 0, n - 1
    while low < high:
        pivot = priority[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while priority[i] > pivot:
                i += 1
            while priority[j] < pivot:
                j -= 1
            if i <= j:
                priority[i], priority[j] = priority[j], priority[i]
                cells[i], cells[j] = cells[j], cells[i]
                i += 1
                j -= 1
        if most - 1 <= j:
            high = j
        elif most - 1 >= i:
            low = i
        else:
            return


@inner()
def apportion(weights, members, strides, sizes, counts, carried, priority, cells):
    """Divide the members of every row among its cells, as nearly in proportion as integers go.

    Each cell gets its share rounded down or up. Which are rounded up is decided by what is left
    over: in this row, and in all rows before that share the value of one of the row's attributes
    (`carried`, a table of left-overs for each attribute). So not only rows come out right, but
    also the sums over all rows that agree in one attribute.
    """
    n_rows, n_cells = weights.shape
    n_known = len(sizes)
    for row in range(n_rows):
        total = 0.0
        for k in range(n_cells):
            total += weights[row, k]
            counts[row, k] = 0
        if members[row] == 0 or total <= 0.0:
            continue
        left, n = members[row], 0
        for k in range(n_cells):
            if weights[row, k] <= 0.0:
                continue
            target = members[row] * (weights[row, k] / total)
            whole = int(target + _NEAR)
            counts[row, k] = whole
            left -= whole
            rest, over, start = target - whole, 0.0, 0
            for j in range(n_known):
                at = (start + (row // strides[j]) % sizes[j]) * n_cells + k
                carried[at] += rest
                over += carried[at]
                start += sizes[j]
            if rest > _NEAR:
                priority[n], cells[n] = over if n_known else rest + carried[k], k
                n += 1
        if left > n:  # by rounding alone: whatever has weight may take the rest
            n = 0
            for k in range(n_cells):
                if weights[row, k] > 0.0:
                    priority[n], cells[n] = weights[row, k], k
                    n += 1
        if left > 0:
            _select(priority, cells, n, left)
        for chosen in range(left):
            k, start = cells[chosen % n], 0
            counts[row, k] += 1
            for j in range(n_known):
                carried[(start + (row // strides[j]) % sizes[j]) * n_cells + k] -= 1.0
                start += sizes[j]


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
    """How many records each row of a node's table has."""
    for row in range(len(members)):
        members[row] = 0
    for i in range(codes.shape[1]):
        row = 0
        for j in range(len(known)):
            row += codes[known[j], i] * strides[j]
        members[row] += 1
