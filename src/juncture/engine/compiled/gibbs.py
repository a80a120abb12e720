"""Compiled: Gibbs sweeps over records, one or two attributes at a time.

Records are taken by the chunk: first the sums of potentials of every value of the attribute, table
by table, then the draws. The tables of an attribute stay in the cache for a span of records, and
the codes of a span for all attributes. Each draw is made of a hash of a key, the record and the
block, so a record does not depend on how the records are divided between threads.
"""

from __future__ import annotations

from juncture.engine.compiled.elementwise import FAST, U, flushed_exp, inner
from juncture.engine.compiled.opcodes import SWEEP_CHUNK, SWEEP_SPAN
from juncture.engine.compiled.sampling import uniform


@inner()
def _find_cells(codes, begin, n, axes, strides, first, last, start, cells):
    """Where each record's row begins in a table that begins at `start`."""
    for r in range(U(n)):
        cells[r] = start
    for axis in range(first, last):
        column, stride = codes[axes[axis]], strides[axis]
        for r in range(U(n)):
            cells[r] += stride * column[U(begin) + r]


@inner(fastmath=FAST)
def _add_rows(logits, tables, cells, n, size):
    """Add to each record's logits its row of a table; few values are written out."""
    if size == 2:
        for r in range(U(n)):
            cell = U(cells[r])
            logits[U(2) * r] += tables[cell]
            logits[U(2) * r + U(1)] += tables[cell + U(1)]
    elif size == 3:
        for r in range(U(n)):
            cell = U(cells[r])
            logits[U(3) * r] += tables[cell]
            logits[U(3) * r + U(1)] += tables[cell + U(1)]
            logits[U(3) * r + U(2)] += tables[cell + U(2)]
    else:
        for r in range(U(n)):
            cell, begin = U(cells[r]), r * U(size)
            for k in range(U(size)):
                logits[begin + k] += tables[cell + k]


@inner()
def _draw_flag(logits, r, share):
    """One of two values: the less probable one for small shares."""
    apart = logits[U(2) * r + U(1)] - logits[U(2) * r]
    rare = flushed_exp(-abs(apart))
    likely = 1 if apart > 0.0 else 0
    return 1 - likely if share * (1.0 + rare) < rare else likely


@inner(fastmath=FAST)
def _exponentiate(logits, n, size):
    """Turn each record's logits into weights, the largest one."""
    for r in range(U(n)):
        begin = r * U(size)
        top = logits[begin]
        for k in range(U(size)):
            top = max(top, logits[begin + k])
        for k in range(U(size)):
            logits[begin + k] -= top
    for k in range(U(n * size)):
        logits[k] = flushed_exp(logits[k])


@inner()
def _draw(weights, begin, size, share):
    """A cell by its weight: the first one at which the sum of weights passes the share."""
    whole = 0.0
    for k in range(U(size)):
        whole += weights[U(begin) + k]
    goal, reached, drawn = share * whole, 0.0, 0
    for k in range(U(size)):
        reached += weights[U(begin) + k]
        drawn += 1 if reached <= goal else 0
    if drawn == size:  # by rounding
        drawn = size - 1
        while weights[U(begin) + U(drawn)] == 0.0:
            drawn -= 1
    return drawn


@inner()
def _sweep_one(codes, begin, n, first_counter, step, block, entries, axes, strides, tables,
               logits, cells, key):  # fmt: skip
    """Draw one attribute of a chunk of records."""
    attribute, size = block[0], block[2]
    for k in range(U(n * size)):
        logits[k] = 0.0
    for entry in range(block[4], block[5]):
        _find_cells(codes, begin, n, axes, strides, entries[entry, 2], entries[entry, 3],
                    entries[entry, 1], cells)  # fmt: skip
        _add_rows(logits, tables, cells, n, size)
    column = codes[attribute]
    if size == 2:
        for r in range(U(n)):
            share = uniform(key, first_counter + r * step)
            column[U(begin) + r] = _draw_flag(logits, r, share)
        return
    _exponentiate(logits, n, size)
    for r in range(U(n)):
        share = uniform(key, first_counter + r * step)
        column[U(begin) + r] = _draw(logits, r * U(size), size, share)


@inner()
def _sweep_two(codes, i, counter, block, entries, axes, strides, tables, scratch, cells, key):
    """Draw two attributes of a record together."""
    one, two, n_one, n_two = block[0], block[1], block[2], block[3]
    n_cells = n_one * n_two
    joint, rows = scratch[:n_cells], scratch[n_cells : n_cells + n_one]
    columns = scratch[n_cells + n_one : n_cells + n_one + n_two]
    for k in range(U(n_cells + n_one + n_two)):
        scratch[k] = 0.0
    for entry in range(block[4], block[5]):
        _find_cells(codes, i, 1, axes, strides, entries[entry, 2], entries[entry, 3],
                    entries[entry, 1], cells)  # fmt: skip
        if entries[entry, 0] == 0:
            _add_rows(rows, tables, cells, 1, n_one)
        elif entries[entry, 0] == 1:
            _add_rows(columns, tables, cells, 1, n_two)
        else:
            _add_rows(joint, tables, cells, 1, n_cells)
    for j in range(U(n_one)):
        for k in range(U(n_two)):
            joint[j * U(n_two) + k] += rows[j] + columns[k]
    _exponentiate(joint, 1, n_cells)
    cell = _draw(joint, 0, n_cells, uniform(key, counter))
    codes[one, i] = cell // n_two
    codes[two, i] = cell % n_two


@inner()
def sweep(codes, first, last, offset, blocks, entries, axes, strides, tables, scratch, cells, key):
    """Draw every block of attributes in turn, given all others, for a range of records.

    A row of `blocks` is: its one or two attributes (minus one for none) with their sizes, and where
    its entries begin and end. A row of `entries` is: which of the block's attributes it has (0, 1,
    or 2 for both), where its table begins, and where its other attributes begin and end in `axes`
    and `strides`. The tables have the block's attributes last.
    """
    step = U(len(blocks))
    for start in range(first, last, SWEEP_SPAN):
        end = min(last, start + SWEEP_SPAN)
        for index in range(len(blocks)):
            block = blocks[index]
            for begin in range(start, end, SWEEP_CHUNK):
                n, counter = min(SWEEP_CHUNK, end - begin), U(offset + begin) * step + U(index)
                if block[1] < 0:
                    _sweep_one(codes, begin, n, counter, step, block, entries, axes, strides,
                               tables, scratch, cells, key)  # fmt: skip
                else:
                    for r in range(n):
                        _sweep_two(codes, begin + r, counter + U(r) * step, block, entries, axes,
                                   strides, tables, scratch, cells, key)  # fmt: skip
