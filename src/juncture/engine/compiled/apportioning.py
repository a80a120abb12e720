"""Compiled: dividing the records of every row among its cells, and handing the cells out.

A row's shares are no integers, so they are rounded, and three things are asked of the rounding. A
row's counts add up to its members, always. On average over the random numbers every count is its
share, exactly: no value is favoured, however few records a row has. And sums over rows that agree
in some attributes stay near the sums of their shares, though each row is rounded by itself.

Shares are rounded bit by bit. A share is first an integer number of 1/256 records, and then its
last bit is rounded away, eight times. Of a row's cells, an even number has that bit: its members
are whole records. These cells are taken in pairs, and of each pair one goes up by the bit and the
other down, either way with chance 1/2.

    row with 1 member, weights .5, .3, .2       in 1/256:  128  77  51
    last bit: 77 and 51 are odd, a pair                    128  78  50    or 128 76 52
    and so on, until one cell has 256 and the others none

Which way a pair goes decides nothing on average, so it is free to serve the sums. `carried` keeps,
for each of these sums and each bit, how many have gone up too many, and a pair goes the way that
makes this less; where it is even, a coin is tossed. Turning every such choice at one bit around
would turn every sum around, so both ways have the same chance: a choice that leans on those before
it is still fair by itself. (A carried sum begins at zero for each bit. What is left over at one bit
may not be made good at another: that would break the symmetry, and favour rare values.)

Every step makes the squares of the carried sums grow by no more than a coin would, so rounding is
never worse for them, taken together, than rounding each row by itself; and that is never worse than
drawing each record by itself. What the carried sums are spared goes to sums that are not carried.
Rows come in random order, which spreads it evenly: the square of such a sum grows by about the
number of carried sums divided by the number of rows.
"""

from __future__ import annotations

from juncture.engine.compiled.elementwise import U, inner
from juncture.engine.compiled.opcodes import SHARE_BITS
from juncture.engine.compiled.sampling import uniform

# What is below the last bit is cut by a random start. That is right on average too, and too small
# to matter: over a million rows, some two records.
_UNIT = 1 << SHARE_BITS


@inner()
def apportion(
    weights, members, strides, sizes, sum_strides, sum_starts, carried, units, groups, order, at,
    slots, key,
):  # fmt: skip
    """Fill `slots` with a cell for every record, row by row; `at` is where each row begins.

    The sums to keep: number s of a row lies in `carried` at sum_starts[s] plus, for each of the
    row's attributes, its code times sum_strides[s, attribute]. A row without weight is taken for
    one of equal weights. `units`, `groups` and `order` are room to work in.
    """
    n_cells, n_slots = weights.shape[1], len(slots)
    n_active = _shuffle_rows(members, order, at, key, n_slots)
    tossed = 3 * n_slots
    for i in range(n_active):
        row = order[i]
        _cut(weights, row, members[row], units, uniform(key, U(2 * n_slots + i)))
        for s in range(len(sum_starts)):
            groups[s] = sum_starts[s]
            for j in range(len(sizes)):
                groups[s] += (row // strides[j]) % sizes[j] * sum_strides[s, j]
        for level in range(SHARE_BITS):
            waiting = -1
            for k in range(n_cells):
                if not (units[k] >> level) & 1:
                    continue
                if waiting < 0:
                    waiting = k
                    continue
                over = 0
                for s in range(len(groups)):
                    start = groups[s] * n_cells
                    over += carried[(start + waiting) * SHARE_BITS + level]
                    over -= carried[(start + k) * SHARE_BITS + level]
                if over == 0:
                    over = 1 if uniform(key, U(tossed)) < 0.5 else -1
                    tossed += 1
                up, down = (k, waiting) if over > 0 else (waiting, k)
                waiting = -1
                units[up] += 1 << level
                units[down] -= 1 << level
                for s in range(len(groups)):
                    start = groups[s] * n_cells
                    carried[(start + up) * SHARE_BITS + level] += 1
                    carried[(start + down) * SHARE_BITS + level] -= 1
        end = at[row]
        for k in range(n_cells):
            for _ in range(units[k] >> SHARE_BITS):
                slots[end] = k
                end += 1


@inner()
def _shuffle_rows(members, order, at, key, n_slots):
    """Where each row's records begin, and the rows that have any, in random order: how many."""
    begin, n_active = 0, 0
    for row in range(len(members)):
        at[row] = begin
        begin += members[row]
        if members[row] > 0:
            order[n_active] = row
            n_active += 1
    for i in range(n_active - 1, 0, -1):
        j = int(uniform(key, U(n_slots + i)) * (i + 1))
        order[i], order[j] = order[j], order[i]
    return n_active


@inner()
def _cut(weights, row, n_members, units, start):
    """The shares of a row's cells as integers that add up to `_UNIT` for each member.

    The shares lie end to end on a line; marks at distance one, the first at a random start, fall
    into each share as often as it is long, on average. Weights are taken as parts of the largest,
    so that no sum of finite weights is infinite.
    """
    n_cells, heaviest = len(units), 0
    for k in range(n_cells):
        if weights[row, k] > weights[row, heaviest]:
            heaviest = k
    largest, total = weights[row, heaviest], 0.0
    for k in range(n_cells):
        total += weights[row, k] / largest if largest > 0.0 else 1.0
    whole = n_members * _UNIT
    passed, marks = 0.0, 0
    for k in range(n_cells):
        passed += weights[row, k] / largest if largest > 0.0 else 1.0
        reached = min(int(passed / total * whole + start), whole)
        units[k] = reached - marks
        marks = reached
    units[heaviest] += whole - marks  # none, but for what rounding of the sums may leave


@inner()
def hand_out(codes, known, strides, added, decoded, members, at, slots, key):
    """Give every record a cell of its row's slots, in random order."""
    for row in range(len(members)):
        begin = at[row]
        for i in range(members[row] - 1, 0, -1):
            j = int(uniform(key, U(begin + i)) * (i + 1))
            slots[begin + i], slots[begin + j] = slots[begin + j], slots[begin + i]
    for i in range(codes.shape[1]):
        row = 0
        for j in range(len(known)):
            row += codes[known[j], i] * strides[j]
        k = slots[at[row]]
        at[row] += 1
        for j in range(len(added)):
            codes[added[j], i] = decoded[j, k]
