"""The operations of exact message passing, and the loop that runs a program of them.

One program, compiled once, runs every structure: which tables to multiply, along which axes,
is data (`juncture.engine.program`), not code.

Numbers. A table is held as ordinary numbers scaled so that its largest entry is 1, and the
logarithm of the scale is kept apart. An entry far below the largest may have lost terms that
were too small for ordinary numbers, and it may matter to a later product that suppresses the
large ones. So a product with an entry below `TINY` that is not a true zero is computed again
from the logarithms of its operands, and carries its own logarithms along. With operands of at
most 1 and entries flushed at e^-708 = 3e-308, an entry of at least `TINY` = 1e-280 has lost no
more than 1e-27 of itself per term; so every entry of every table is accurate relative to itself.

An example of what would go wrong: a message with the logarithms (0, -800) becomes the numbers
(1, 0), since e^-800 is below the smallest float. Multiplied by a table with (-1000, 0), the true
product has the logarithms (-1000, -800), so the second entry has all the mass; from the numbers it
would be (0, 0), an impossible model. The zero is not a true one (its logarithm is finite), so the
product is computed again from logarithms. That is rare, and only then are logarithms stored.

Scales cancel. A marginal is the table times its derivative, divided by its own sum and multiplied
by the total, so on the way down it does not matter by how much a derivative was scaled.
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
    dot,
    exponentiate,
    extremes,
    fill,
    inner,
    maximum,
    multiply,
    prefetch_table,
    rescale,
    stack_cells,
)
from juncture.engine.compiled.opcodes import (
    ABSORB,
    ADJOINT,
    COLLECTED,
    CONTRACT,
    DONE,
    EXPONENTIATE,
    FIRST_LOOP,
    IMPOSSIBLE,
    KIND,
    LEFT,
    MAX_LOOPS,
    N_LOOPS,
    NEEDS_LOGARITHMS,
    RESULT,
    RIGHT,
)
from juncture.engine.compiled.rows import absorb_rows, add_exponentials, add_products, raise_peaks

TINY = 1e-280
SMALLEST_MASS = 1e-250
# Potentials that fit into a core's own cache need no asking ahead.
PREFETCH_FROM = 1 << 17

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
def _recompute_small(state, left, right, result, first, n_loops, swapped):
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
def _rescale_product(state, left, right, result, first, n_loops, swapped):
    """Scale a fresh product, after computing it again if it has lost anything.

    Returns the outcome and the logarithm of the scale.
    """
    start, size = state.slots[result, 1], state.slots[result, 2]
    low, high = extremes(state.work, start, size)
    state.logged[result] = False
    if low < TINY:
        outcome, scale = _recompute_small(state, left, right, result, first, n_loops, swapped)
        if outcome != DONE or state.logged[result]:
            state.scales[result] = math.exp(scale)
            return outcome, scale
    if high == 0.0:
        return IMPOSSIBLE, 0.0
    state.scales[result] = high
    rescale(state.work, start, size, 1.0 / high)
    return DONE, math.log(high)


@inner()
def _prefetch_operands(state, operation):
    """Ask for the tables of an operation while the one before it runs."""
    kind, table = operation[KIND], operation[LEFT]
    if kind in (EXPONENTIATE, ABSORB):
        prefetch_table(state.out, state.slots[table, 1], state.slots[table, 2])
    if kind == EXPONENTIATE:
        prefetch_table(state.potentials, state.slots[table, 1], state.slots[table, 2])
    for column in (RIGHT, RESULT, COLLECTED):
        slot = operation[column]
        if slot >= 0 and state.slots[slot, 0] == 0:
            prefetch_table(state.work, state.slots[slot, 1], state.slots[slot, 2])


@inner()
def _exponentiate_input(state, table):
    """Turn the potentials of a given table into ordinary numbers; returns outcome and shift."""
    start, stop = state.slots[table, 1], state.slots[table, 1] + state.slots[table, 2]
    shift = maximum(state.potentials, start, stop)
    if shift == -np.inf:
        return IMPOSSIBLE, 0.0
    state.shifts[table] = shift
    exponentiate(state.potentials, state.out, start, stop, shift)
    return DONE, shift


@inner()
def _contract(state, left, right, result, first, n_loops, odometer):
    """Multiply two tables and sum the product onto the axes of the result."""
    slots, loops, work = state.slots, state.loops, state.work
    p = state.out if slots[left, 0] else work
    q = state.out if slots[right, 0] else work
    count, at = odometer
    at[0], at[1], at[2] = slots[left, 1], slots[right, 1], slots[result, 1]
    fill(work, at[2], slots[result, 2], 0.0)
    i, j = first + n_loops - 2, first + n_loops - 1
    more = True
    while more:
        add_products(
            p, at[0], q, at[1], work, at[2],
            loops[i, 0], loops[i, 1], loops[i, 2], loops[i, 3],
            loops[j, 0], loops[j, 1], loops[j, 2], loops[j, 3],
        )  # fmt: skip
        more = advance(count, loops, first, n_loops - 2, at)
    return _rescale_product(state, left, right, result, first, n_loops, 0)


@inner()
def _absorb(state, operation, total, odometer):
    """Turn a given table into its marginal, and collect the derivative of the other operand.

    With x the given table, q the other operand and c the derivative of their product, one pass
    computes d = sum of x c onto q's axes, then x = x c q scaled to the total. The scale must be
    known before the pass begins. It is: the sum of x c q is the inner product of the step's result
    with its derivative, both already there.
    """
    slots, loops, work = state.slots, state.loops, state.work
    left, right, result = operation[LEFT], operation[RIGHT], operation[RESULT]
    top, collected = operation[ADJOINT], operation[COLLECTED]
    first, n_loops, keep = operation[FIRST_LOOP], operation[N_LOOPS], operation[COLLECTED] >= 0
    d_at = slots[collected, 1] if keep else 0
    if keep:
        fill(work, d_at, slots[collected, 2], 0.0)
    mass = dot(work, slots[result, 1], work, slots[top, 1], slots[result, 2])
    mass *= state.scales[result]
    if mass >= SMALLEST_MASS:
        q = state.out if slots[right, 0] else work
        count, at = odometer
        at[0], at[1], at[2] = slots[left, 1], slots[right, 1], slots[top, 1]
        i, j = first + n_loops - 2, first + n_loops - 1
        more = True
        while more:
            absorb_rows(
                state.out, at[0], q, at[1], work, at[2], work, d_at + at[1] - slots[right, 1],
                loops[i, 0], loops[i, 1], loops[i, 2], loops[i, 3],
                loops[j, 0], loops[j, 2], loops[j, 3], total / mass, keep,
            )  # fmt: skip
            more = advance(count, loops, first, n_loops - 2, at)
    outcome = DONE
    if keep:
        outcome, _ = _rescale_product(state, left, top, collected, first, n_loops, 1)
    if mass < SMALLEST_MASS and outcome == DONE:
        outcome = _finish_from_logarithms(state, left, right, top, first, n_loops, total)
    return outcome


@inner()
def _finish(state, operation, total):
    """Turn a given table into its marginal by its derivative, which has the same axes."""
    table, adjoint, one = operation[LEFT], operation[RIGHT], operation[RESULT]
    start, d_at, size = state.slots[table, 1], state.slots[adjoint, 1], state.slots[table, 2]
    mass = dot(state.out, start, state.work, d_at, size)
    if mass >= SMALLEST_MASS:
        multiply(state.out, start, state.work, d_at, size, total / mass)
        return DONE
    first, n_loops = operation[FIRST_LOOP], operation[N_LOOPS]
    return _finish_from_logarithms(state, table, one, adjoint, first, n_loops, total)


@inner()
def _finish_from_logarithms(state, table, right, top, first, n_loops, total):
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


@inner()
def run(
    begin, end, operations, loops, slots, total,
    potentials, out, work, logs, logged, shifts, scales, log_scales,
):  # fmt: skip
    """Run the operations from `begin` to `end`; `out` ends as the marginals.

    The scale of each forward operation goes to `log_scales`, and their sum is the logarithm of the
    partition function. What backward operations write there is not part of it.
    """
    state = State(slots, loops, potentials, out, work, logs, logged, shifts, scales)
    odometer = (carray(stack_cells(), MAX_LOOPS), carray(stack_cells(), 3))
    clear(odometer[0])
    prefetching = len(potentials) >= PREFETCH_FROM
    for at in range(begin, end):
        operation = operations[at]
        kind = operation[KIND]
        if prefetching and at + 1 < end:
            _prefetch_operands(state, operations[at + 1])
        if kind == EXPONENTIATE:
            outcome, log_scales[at] = _exponentiate_input(state, operation[LEFT])
        elif kind == CONTRACT:
            outcome, log_scales[at] = _contract(
                state, operation[LEFT], operation[RIGHT], operation[RESULT],
                operation[FIRST_LOOP], operation[N_LOOPS], odometer,
            )  # fmt: skip
        elif kind == ABSORB:
            outcome = _absorb(state, operation, total, odometer)
        else:
            outcome = _finish(state, operation, total)
        if outcome != DONE:
            return outcome
    return DONE
