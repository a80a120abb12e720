"""Products and marginals from the logarithms of tables, where ordinary numbers lose something.

An entry of a product far below the largest may have lost terms that were too small for ordinary
numbers, and it may matter to a later product that suppresses the large ones. So a product with an
entry below `TINY` that is not a true zero is computed again from the logarithms of its operands,
and carries its own logarithms along. With operands of at most 1 and entries flushed at
e^-708 = 3e-308, an entry of at least `TINY` = 1e-280 has lost no more than 1e-27 of itself per
term; so every entry of every table is accurate relative to itself.

An example of what would go wrong: a message with the logarithms (0, -800) becomes the numbers
(1, 0), since e^-800 is below the smallest float. Multiplied by a table with (-1000, 0), the true
product has the logarithms (-1000, -800), so the second entry has all the mass; from the numbers it
would be (0, 0), an impossible model. The zero is not a true one (its logarithm is finite), so the
product is computed again from logarithms. That is rare, and only then are logarithms stored.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
from numba import carray

from juncture.engine.compiled.elementwise import (
    U,
    advance,
    clear,
    exponentiate,
    fill,
    inner,
    maximum,
    rescale,
    stack_cells,
)
from juncture.engine.compiled.opcodes import DONE, MAX_LOOPS, NEEDS_LOGARITHMS
from juncture.engine.compiled.rows import add_exponentials, raise_peaks

TINY = 1e-280

# What all routines share. `logged` says which slots have their logarithms in `logs`.
State = namedtuple("State", "slots loops potentials out work logs logged shifts scales")


@inner()
def _find_logarithms(state, slot):
    """The array that holds a table's logarithms (for a given table, before its shift)."""
    if state.slots[slot, 0]:
        return state.potentials
    if not state.logged[slot]:
        start = state.slots[slot, 1]
        for i in range(U(start), U(start + state.slots[slot, 2])):
            x = state.work[i]
            state.logs[i] = math.log(x) if x > 0.0 else -np.inf
        state.logged[slot] = True
    return state.logs


@inner()
def _contract_logarithms(state, left, right, result, nest):
    """Compute a product again, from logarithms; returns the logarithm of its scale.

    Two walks over the same loops: the first finds the largest term of every entry, the second adds
    the exponentials of all terms relative to it. No sum can then overflow or vanish.
    """
    p, q = _find_logarithms(state, left), _find_logarithms(state, right)
    logs, work = state.logs, state.work
    start, size, n = state.slots[result, 1], state.slots[result, 2], len(nest)
    count, at = carray(stack_cells(), MAX_LOOPS), carray(stack_cells(), 3)
    clear(count)
    fill(logs, start, size, -np.inf)
    fill(work, start, size, 0.0)
    for summing in range(2):
        at[0], at[1], at[2] = state.slots[left, 1], state.slots[right, 1], start
        more = True
        while more:
            if summing:
                add_exponentials(
                    p, at[0], q, at[1], work, at[2], logs,
                    nest[n - 2, 0], nest[n - 2, 1], nest[n - 2, 2], nest[n - 2, 3],
                    nest[n - 1, 0], nest[n - 1, 1], nest[n - 1, 2], nest[n - 1, 3],
                )  # fmt: skip
            else:
                raise_peaks(
                    p, at[0], q, at[1], logs, at[2],
                    nest[n - 2, 0], nest[n - 2, 1], nest[n - 2, 2], nest[n - 2, 3],
                    nest[n - 1, 0], nest[n - 1, 1], nest[n - 1, 2], nest[n - 1, 3],
                )  # fmt: skip
            more = advance(count, nest, 0, n - 2, at)
        for i in range(U(start), U(start + size)):
            if summing:
                logs[i] = logs[i] + math.log(work[i]) if work[i] > 0.0 else -np.inf
            elif logs[i] == -np.inf:
                logs[i] = 0.0  # a true zero; minus infinity less itself would be not-a-number
    peak = maximum(logs, start, start + size)
    for i in range(U(start), U(start + size)):
        logs[i] -= peak
    exponentiate(logs, work, start, start + size, 0.0)
    state.logged[result] = True
    shift = state.shifts[left] * state.slots[left, 0] + state.shifts[right] * state.slots[right, 0]
    return peak - shift


@inner()
def copy_nest(loops, first, n_loops, swapped, nest):
    """Copy loops to `nest`; swapped, what was the right operand becomes the result."""
    for row in range(n_loops):
        nest[row, 0], nest[row, 1] = loops[first + row, 0], loops[first + row, 1]
        nest[row, 2 + swapped] = loops[first + row, 2]
        nest[row, 3 - swapped] = loops[first + row, 3]


@inner()
def split_nest(nest, outer, summed):
    """Split loops into those of the result and the summed ones; returns the number of each.

    There is at least one summed loop, perhaps of extent 1.
    """
    n_outer = n_summed = 0
    summed[0, 0], summed[0, 1], summed[0, 2], summed[0, 3] = 1, 0, 0, 0
    for row in range(len(nest)):
        kept = nest[row, 3] != 0
        for column in range(4):
            if kept:
                outer[n_outer, column] = nest[row, column]
            else:
                summed[n_summed, column] = nest[row, column]
        n_outer += kept
        n_summed += not kept
    return n_outer, max(1, n_summed)


@inner()
def _is_positive(state, slot, at):
    """Whether an entry of a table is more than zero, however small."""
    if state.slots[slot, 0]:
        return state.potentials[at] > -np.inf
    if state.logged[slot]:
        return state.logs[at] > -np.inf
    return state.work[at] > 0.0


@inner()
def _has_underflowed(state, left, right, result, nest):
    """Whether a small entry of the product may lack terms, that is, is not a true zero."""
    outer, summed = carray(stack_cells(), (MAX_LOOPS, 4)), carray(stack_cells(), (MAX_LOOPS, 4))
    n_outer, n_summed = split_nest(nest, outer, summed)
    count, ticks = carray(stack_cells(), MAX_LOOPS), carray(stack_cells(), MAX_LOOPS)
    at, here = carray(stack_cells(), 3), carray(stack_cells(), 3)
    clear(count)
    clear(ticks)
    at[0], at[1], at[2] = state.slots[left, 1], state.slots[right, 1], state.slots[result, 1]
    more = True
    while more:
        if 0.0 < state.work[at[2]] < TINY:
            return True
        if state.work[at[2]] == 0.0:
            here[0], here[1], here[2] = at[0], at[1], at[2]
            searching = True
            while searching:
                if _is_positive(state, left, here[0]) and _is_positive(state, right, here[1]):
                    return True
                searching = advance(ticks, summed, 0, n_summed, here)
        more = advance(count, outer, 0, n_outer, at)
    return False


@inner()
def recompute_small(state, left, right, result, first, n_loops, swapped):
    """Compute a product with small entries again if it has lost anything; else the scale is 1."""
    nest = carray(stack_cells(), (n_loops, 4))
    copy_nest(state.loops, first, n_loops, swapped, nest)
    if not _has_underflowed(state, left, right, result, nest):
        return DONE, 0.0
    if len(state.logs) == 0:
        return NEEDS_LOGARITHMS, 0.0
    scale = _contract_logarithms(state, left, right, result, nest)
    return DONE, scale


@inner()
def finish_from_logarithms(state, table, right, top, first, n_loops, total):
    """Turn a given table whose mass is too small for ordinary numbers into its marginal."""
    if len(state.logs) == 0:
        return NEEDS_LOGARITHMS
    q, c, out = _find_logarithms(state, right), _find_logarithms(state, top), state.out
    start, size = state.slots[table, 1], state.slots[table, 2]
    count, at = carray(stack_cells(), MAX_LOOPS), carray(stack_cells(), 3)
    clear(count)
    at[0], at[1], at[2] = start, state.slots[right, 1], state.slots[top, 1]
    last = first + n_loops - 1
    x1, q1, c1 = U(state.loops[last, 1]), U(state.loops[last, 2]), U(state.loops[last, 3])
    more = True
    while more:
        x_at, q_at, c_at = U(at[0]), U(at[1]), U(at[2])
        for j in range(U(state.loops[last, 0])):
            x = x_at + j * x1
            out[x] = (state.potentials[x] + q[q_at + j * q1]) + c[c_at + j * c1]
        more = advance(count, state.loops, first, n_loops - 1, at)
    exponentiate(out, out, start, start + size, maximum(out, start, start + size))
    mass = 0.0
    for i in range(U(start), U(start + size)):
        mass += out[i]
    rescale(out, start, size, total / mass)
    return DONE
