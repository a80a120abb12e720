"""Compiled: how many records fall into each cell of cliques."""

from __future__ import annotations

from juncture.engine.compiled.elementwise import U, inner


@inner()
def count_cells(codes, cliques, positions, strides, tables):
    """Count every clique into its own stretch of `tables`.

    A row of `cliques` is: where its attributes begin in `positions` and `strides`, how many there
    are, where its counts begin, and its number of cells. Two tables are filled in turn, because a
    count that was just written cannot be read again at once; so the stretch is twice as long.
    """
    n = codes.shape[1]
    half = n // 2
    for c in range(len(cliques)):
        first, n_axes, start, n_cells = cliques[c, 0], cliques[c, 1], cliques[c, 2], cliques[c, 3]
        one, two, done = U(start), U(start + n_cells), 0
        if n_axes == 2:
            a, b = codes[positions[first]], codes[positions[first + 1]]
            step = U(strides[first])
            for i in range(U(half)):
                j = i + U(half)
                tables[one + U(a[i]) * step + U(b[i])] += 1
                tables[two + U(a[j]) * step + U(b[j])] += 1
            done = 2 * half
        for record in range(done, n):
            cell = one
            for axis in range(first, first + n_axes):
                cell += U(codes[positions[axis], record]) * U(strides[axis])
            tables[cell] += 1
        for k in range(U(n_cells)):
            tables[one + k] += tables[two + k]
