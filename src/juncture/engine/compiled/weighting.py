"""Compiled: weights of records, and the weighted counts of their cells.

Counts are sums of whole numbers, weights in units of 2**-32: they do not depend on the order of the
records, and thereby not on the number of threads.
"""

from __future__ import annotations

from juncture.engine.compiled.elementwise import U, inner
from juncture.engine.compiled.opcodes import SQUARE_UNIT, WEIGHT_UNIT


@inner()
def weigh_records(
    codes, weights, first, last, moved, moved_strides, factor, counted, strides, table, sums
):
    """Multiply weights by a factor of one clique's cells, and count the cells of another.

    `sums` receives the sum of the squared weights; that of the weights is the table's.
    """
    squares = 0
    if len(moved) == 0 and len(counted) == 2:  # most cliques are only looked at
        c, d, stride = codes[counted[0]], codes[counted[1]], U(strides[0])
        for i in range(U(first), U(last)):
            weight = weights[i] * factor[0]
            squares += int(weight * weight * SQUARE_UNIT)
            table[U(c[i]) * stride + U(d[i])] += int(weight * WEIGHT_UNIT)
            weights[i] = weight
    elif len(moved) == 2 and len(counted) == 2:
        a, b, step = codes[moved[0]], codes[moved[1]], U(moved_strides[0])
        c, d, stride = codes[counted[0]], codes[counted[1]], U(strides[0])
        for i in range(U(first), U(last)):
            weight = weights[i] * factor[U(a[i]) * step + U(b[i])]
            weights[i] = weight
            squares += int(weight * weight * SQUARE_UNIT)
            table[U(c[i]) * stride + U(d[i])] += int(weight * WEIGHT_UNIT)
    else:
        for i in range(U(first), U(last)):
            cell = U(0)
            for axis in range(len(moved)):
                cell += U(codes[moved[axis], i]) * U(moved_strides[axis])
            weight = weights[i] * factor[cell]
            weights[i] = weight
            squares += int(weight * weight * SQUARE_UNIT)
            cell = U(0)
            for axis in range(len(counted)):
                cell += U(codes[counted[axis], i]) * U(strides[axis])
            table[cell] += int(weight * WEIGHT_UNIT)
    sums[0] = squares


@inner()
def add_potentials(codes, scores, first, last, axes, strides, table):
    """Add to the score of each record the potential of its cell of one clique."""
    for i in range(U(first), U(last)):
        cell = U(0)
        for axis in range(len(axes)):
            cell += U(codes[axes[axis], i]) * U(strides[axis])
        scores[i] += table[cell]
