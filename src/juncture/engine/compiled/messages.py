"""The operations of exact message passing, and the loop that runs a program of them.

One program, compiled once, runs every structure: which tables to multiply, along which axes,
is data (`juncture.engine.program`), not code.

Numbers. A table is held as ordinary numbers scaled so that its largest entry is 1, and the
logarithm of the scale is kept apart. An entry far below the largest may have lost terms that
were too small for ordinary numbers, and it may matter to a later product that suppresses the
large ones. So a product with an entry below `TINY`, unless all terms of its operands are larger, is
computed again with an exponent for each entry (`extended`), and so is every product of its result,
until one has ordinary numbers again. With operands of at most 1 and entries flushed at
e^-708 = 3e-308, an entry of at least `TINY` = 1e-280 has lost no more than 1e-27 of itself per
term; so every entry of every table is accurate relative to itself.

An example of what would go wrong: a message with the logarithms (0, -800) becomes the numbers
(1, 0), since e^-800 is below the smallest float. Multiplied by a table with (-1000, 0), the true
product has the logarithms (-1000, -800), so the second entry has all the mass; from the numbers it
would be (0, 0), an impossible model. The zero is not a true one (its logarithm is finite), so the
product is computed again with exponents. That is rare, and only then are exponents stored.

Scales cancel. A marginal is the table times its derivative, divided by its own sum and multiplied
by the total, so on the way down it does not matter by how much a derivative was scaled.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
from numba import carray

from juncture.engine.compiled.elementwise import (
    advance,
    clear,
    dot,
    exponentiate,
    extremes,
    fill,
    flushed_exp,
    inner,
    maximum,
    multiply,
    prefetch_table,
    rescale,
    smallest_finite,
    smallest_positive,
    stack_cells,
)
from juncture.engine.compiled.extended import contract_extended, finish_extended
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
    RESULT,
    RIGHT,
)
from juncture.engine.compiled.rows import absorb_rows, add_products

TINY = 1e-280
SMALLEST_MASS = 1e-250
# Potentials that fit into a core's own cache need no asking ahead.
PREFETCH_FROM = 1 << 17

# What all routines share. `extended` says which tables have an exponent for each entry. The scale
# of a product is `scales` times two to the `shifts`; for a given table, `shifts` is its largest
# potential. `repeated` counts the multiplications with exponents, for each table that they make.
State = namedtuple(
    "State",
    "slots loops potentials out work exponents given_exponents extended shifts scales repeated",
)


@inner()
def _find_floor(state, slot):
    """The smallest entry of a table of ordinary numbers that is not a true zero."""
    start, stop = state.slots[slot, 1], state.slots[slot, 1] + state.slots[slot, 2]
    if state.slots[slot, 0]:
        return flushed_exp(smallest_finite(state.potentials, start, stop) - state.shifts[slot])
    return smallest_positive(state.work, start, stop)


@inner()
def _rescale_product(state, left, right, result, first, n_loops, swapped):
    """Scale a fresh product, after computing it again if it may have lost anything.

    Returns the outcome and the logarithm of the scale.
    """
    start, size = state.slots[result, 1], state.slots[result, 2]
    low, high = extremes(state.work, start, size)
    if low < TINY and _find_floor(state, left) * _find_floor(state, right) < TINY:
        return contract_extended(state, left, right, result, first, n_loops, swapped)
    # A largest entry of zero, or a not-a-number, whose bits are at one end of the order.
    if not (high > 0.0 and low >= 0.0):
        return IMPOSSIBLE, 0.0
    state.extended[result], state.shifts[result], state.scales[result] = False, 0.0, high
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
    state.shifts[table], state.extended[table] = shift, False
    exponentiate(state.potentials, state.out, start, stop, shift)
    return DONE, shift


@inner()
def _contract(state, left, right, result, first, n_loops, odometer):
    """Multiply two tables and sum the product onto the axes of the result."""
    if state.extended[left] or state.extended[right]:
        return contract_extended(state, left, right, result, first, n_loops, 0)
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
    mass = 0.0
    extended = state.extended[left] or state.extended[right]
    # A later product may have extended the result, though its own operands were ordinary.
    if not (extended or state.extended[result] or state.extended[top]):
        mass = dot(work, slots[result, 1], work, slots[top, 1], slots[result, 2])
        mass *= state.scales[result]
    if mass >= SMALLEST_MASS:
        d_at = slots[collected, 1] if keep else 0
        if keep:
            fill(work, d_at, slots[collected, 2], 0.0)
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
        if outcome != DONE or not state.extended[left]:
            return outcome
    elif keep:
        outcome, _ = contract_extended(state, left, top, collected, first, n_loops, 1)
        if outcome != DONE:
            return outcome
    return finish_extended(state, left, right, top, result, first, n_loops, total)


@inner()
def _finish(state, operation, total):
    """Turn a given table into its marginal by its derivative, which has the same axes."""
    table, adjoint, one = operation[LEFT], operation[RIGHT], operation[RESULT]
    start, d_at, size = state.slots[table, 1], state.slots[adjoint, 1], state.slots[table, 2]
    if not (state.extended[table] or state.extended[adjoint]):
        mass = dot(state.out, start, state.work, d_at, size)
        if mass >= SMALLEST_MASS:
            multiply(state.out, start, state.work, d_at, size, total / mass)
            return DONE
    first, n_loops = operation[FIRST_LOOP], operation[N_LOOPS]
    return finish_extended(state, table, one, adjoint, table, first, n_loops, total)


@inner()
def run(
    begin, end, operations, loops, slots, total,
    potentials, out, work, exponents, given_exponents, extended, shifts, scales, log_scales,
    repeated,
):  # fmt: skip
    """Run the operations from `begin` to `end`; `out` ends as the marginals.

    The scale of each forward operation goes to `log_scales`, and their sum is the logarithm of the
    partition function. What backward operations write there is not part of it.
    """
    state = State(
        slots, loops, potentials, out, work, exponents, given_exponents,
        extended, shifts, scales, repeated,
    )  # fmt: skip
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
