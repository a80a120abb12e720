"""Compiled: records divided into two halves whose tables differ as little as possible.

Each record has a sign, and those with plus one are kept. `gaps` has for every cell of the watched
tables its weight times what the signs add up to, and thereby how far the half that is kept is off.
All are whole numbers: a choice is the same on every machine, and turning all signs and gaps around
turns every choice around.

The cell of a record in table t is starts[t] plus, for each j, its code of axes[j, t] times
strides[j, t]; there are at least three j, those beyond a table's attributes with stride zero. The
records that get signs are rows, so that one record's codes lie together.
"""

from __future__ import annotations

from juncture.engine.compiled.elementwise import U, inner
from juncture.engine.compiled.sampling import uniform


@inner()
def tally_cells(codes, units, axes, strides, starts, first, last, tables):
    """Add up the units of the records in every cell of the tables from `first` to `last`."""
    n_axes = U(axes.shape[0])
    for t in range(U(first), U(last)):
        start = U(starts[t])
        one, two, three = codes[U(axes[0, t])], codes[U(axes[1, t])], codes[U(axes[2, t])]
        a, b, c = U(strides[0, t]), U(strides[1, t]), U(strides[2, t])
        for i in range(U(len(units))):
            cell = start + U(one[i]) * a + U(two[i]) * b + U(three[i]) * c
            for j in range(U(3), n_axes):
                cell += U(codes[U(axes[j, t]), i]) * U(strides[j, t])
            tables[cell] += units[i]


@inner()
def _locate(record, axes, strides, starts, cells):
    """The cells of a record, one in each table."""
    for t in range(U(len(starts))):
        cells[t] = starts[t]
    for j in range(U(axes.shape[0])):
        for t in range(U(len(starts))):
            cells[t] += record[U(axes[j, t])] * strides[j, t]


@inner()
def _add(gaps, weights, cells, times):
    for t in range(U(len(cells))):
        cell = U(cells[t])
        gaps[cell] += times * weights[cell]


@inner()
def deal_pairs(rows, signs, gaps, weights, axes, strides, starts, cells, key):
    """Give one of each two neighbours plus, the other minus: the way that makes the gaps less.

    Where both ways are equal, a coin is tossed.
    """
    one, two = cells[0], cells[1]
    for pair in range(U(rows.shape[0] // 2)):
        i = U(2) * pair
        _locate(rows[i], axes, strides, starts, one)
        _locate(rows[i + U(1)], axes, strides, starts, two)
        over = 0
        for t in range(U(len(starts))):
            over += int(gaps[U(one[t])]) - int(gaps[U(two[t])])
        if over == 0:
            over = 1 if uniform(key, pair) < 0.5 else -1
        sign = -1 if over > 0 else 1
        signs[i], signs[i + U(1)] = sign, -sign
        _add(gaps, weights, one, sign)
        _add(gaps, weights, two, -sign)


@inner()
def flip_signs(rows, signs, gaps, weights, axes, strides, starts, cells, whole_weight, whole):
    """Flip every sign, in turn, whose flip makes the weighted squares of the gaps less.

    The sum of all signs, `whole`, is one more gap: it stays near zero.
    """
    here = cells[0]
    for i in range(U(len(signs))):
        _locate(rows[i], axes, strides, starts, here)
        over = whole_weight * whole[0]
        for t in range(U(len(starts))):
            over += int(gaps[U(here[t])])
        if over * signs[i] <= 0:
            continue
        own = whole_weight
        for t in range(U(len(starts))):
            own += int(weights[U(here[t])])
        if over * signs[i] > own:
            signs[i] = -signs[i]
            whole[0] += 2 * signs[i]
            _add(gaps, weights, here, 2 * signs[i])
