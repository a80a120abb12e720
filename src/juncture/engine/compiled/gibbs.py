"""Compiled: Gibbs sweeps over records, one or two attributes at a time.

Each draw is made of a hash of a key, the record and the block, so a record does not depend on how
the records are divided between threads.
"""

from __future__ import annotations

from juncture.engine.compiled.elementwise import FAST, U, flushed_exp, inner
from juncture.engine.compiled.sampling import uniform


@inner(fastmath=FAST)
def _add_row(row, tables, base):
    for k in range(U(len(row))):
        row[k] += tables[base + k]


@inner(fastmath=FAST)
def _draw(logits, share):
    """A cell drawn with the exponentials of the logits as weights; the logits are overwritten."""
    n = U(len(logits))
    top = logits[0]
    for k in range(n):
        top = max(top, logits[k])
    whole = 0.0
    for k in range(n):
        logits[k] = flushed_exp(logits[k] - top)
        whole += logits[k]
    left, last = share * whole, 0
    for k in range(n):
        if logits[k] > 0.0:
            last = int(k)
            left -= logits[k]
            if left < 0.0:
                break
    return last


@inner()
def sweep(codes, first, last, offset, blocks, entries, axes, strides, tables, scratch, key):
    """Draw every block of attributes in turn, given all others, for a range of records.

    A row of `blocks` is: its one or two attributes (minus one for none) with their sizes, and where
    its entries begin and end. A row of `entries` is: which of the block's attributes it has (0, 1,
    or 2 for both), where its table begins, and where its other attributes begin and end in `axes`
    and `strides`. The tables have the block's attributes last.
    """
    n_blocks = len(blocks)
    for block in range(n_blocks):
        one, two, n_one, n_two = (
            blocks[block, 0],
            blocks[block, 1],
            blocks[block, 2],
            blocks[block, 3],
        )
        rows, columns = scratch[:n_one], scratch[n_one : n_one + n_two]
        joint = scratch[n_one + n_two : n_one + n_two + n_one * n_two]
        for i in range(first, last):
            for k in range(U(n_one + n_two + n_one * n_two)):
                scratch[k] = 0.0
            for entry in range(blocks[block, 4], blocks[block, 5]):
                base = U(entries[entry, 1])
                for axis in range(entries[entry, 2], entries[entry, 3]):
                    base += U(codes[axes[axis], i]) * U(strides[axis])
                if entries[entry, 0] == 0:
                    _add_row(rows, tables, base)
                elif entries[entry, 0] == 1:
                    _add_row(columns, tables, base)
                else:
                    _add_row(joint, tables, base)
            share = uniform(key, U(offset + i) * U(n_blocks) + U(block))
            if two < 0:
                codes[one, i] = _draw(rows, share)
            else:
                for j in range(U(n_one)):
                    for k in range(U(n_two)):
                        joint[j * U(n_two) + k] += rows[j] + columns[k]
                cell = _draw(joint, share)
                codes[one, i] = cell // n_two
                codes[two, i] = cell % n_two
