"""Compiled: how many records fall into each cell of cliques."""

from __future__ import annotations

import numpy as np

from juncture.engine.compiled.elementwise import U, inner


@inner()
def _locate(codes, positions, strides, first, n_axes, begin, cells):
    """The cell of some records in the table of a clique, axis by axis: in vector registers."""
    for i in range(U(len(cells))):
        cells[i] = 0
    for axis in range(first, first + n_axes):
        column, stride = codes[positions[axis]], np.int32(strides[axis])
        for i in range(U(len(cells))):
            cells[i] += np.int32(column[U(begin) + i]) * stride


@inner()
def count_cells(codes, cliques, positions, strides, tables, space):
    """Count every clique into its own stretch of `tables`.

    A row of `cliques` is: where its attributes begin in `positions` and `strides`, how many there
    are, where its counts begin, and its number of cells. Two tables are filled in turn, because a
    count that was just written cannot be read again at once; so the stretch is twice as long.
    `space` has room for the cells of the records that are looked at together.
    """
    n = codes.shape[1]
    for c in range(len(cliques)):
        first, n_axes, start, n_cells = cliques[c, 0], cliques[c, 1], cliques[c, 2], cliques[c, 3]
        one, two = U(start), U(start + n_cells)
        for begin in range(0, n, len(space)):
            cells = space[: min(len(space), n - begin)]
            _locate(codes, positions, strides, first, n_axes, begin, cells)
            half = len(cells) // 2
            for i in range(U(half)):
                tables[one + U(cells[i])] += 1
                tables[two + U(cells[i + U(half)])] += 1
            for i in range(U(2 * half), U(len(cells))):
                tables[one + U(cells[i])] += 1
        for k in range(U(n_cells)):
            tables[one + k] += tables[two + k]
