"""Max-product on the same program: the most probable configuration and its score."""

from __future__ import annotations

import numpy as np
from numba import carray

from juncture.engine.compiled.elementwise import advance, clear, inner, stack_cells
from juncture.engine.compiled.extended import copy_nest
from juncture.engine.compiled.opcodes import (
    CONTRACT,
    FIRST_LOOP,
    KIND,
    LEFT,
    MAX_LOOPS,
    N_LOOPS,
    RESULT,
    RIGHT,
)


@inner()
def _split_nest(nest, outer, summed):
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
def _maximise_sum(p, q, at, free, n_free):
    """The largest p + q over the free loops from a fixed position, and both addresses there."""
    count, here = carray(stack_cells(), MAX_LOOPS), carray(stack_cells(), 3)
    clear(count)
    here[0], here[1], here[2] = at[0], at[1], at[2]
    best, p_best, q_best = -np.inf, at[0], at[1]
    last = n_free - 1
    more = True
    while more:
        a, b = here[0], here[1]
        for _ in range(free[last, 0]):
            value = p[a] + q[b]
            if value > best:
                best, p_best, q_best = value, a, b
            a += free[last, 1]
            b += free[last, 2]
        more = advance(count, free, 0, last, here)
    return best, p_best, q_best


@inner()
def _find_operands(operation, slots, potentials, peaks, here):
    """The arrays of both operands; `here` receives where operands and result begin."""
    left, right, result = operation[LEFT], operation[RIGHT], operation[RESULT]
    p = potentials if slots[left, 0] else peaks
    q = potentials if slots[right, 0] else peaks
    here[0], here[1], here[2] = slots[left, 1], slots[right, 1], slots[result, 1]
    return p, q


@inner()
def _split_loops(operation, loops, outer, free):
    """Split loops into those of the result and the free ones; returns the number of each."""
    n_loops = operation[N_LOOPS]
    nest = carray(stack_cells(), (n_loops, 4))
    copy_nest(loops, operation[FIRST_LOOP], n_loops, 0, nest)
    return _split_nest(nest, outer, free)


@inner()
def _find_peaks(operation, loops, slots, potentials, peaks):
    """Set every entry of the result to the best sum of the operands over the free loops."""
    count, here = carray(stack_cells(), MAX_LOOPS), carray(stack_cells(), 3)
    outer, free = carray(stack_cells(), (MAX_LOOPS, 4)), carray(stack_cells(), (MAX_LOOPS, 4))
    n_outer, n_free = _split_loops(operation, loops, outer, free)
    p, q = _find_operands(operation, slots, potentials, peaks, here)
    clear(count)
    more = True
    while more:
        peaks[here[2]] = _maximise_sum(p, q, here, free, n_free)[0]
        more = advance(count, outer, 0, n_outer, here)


@inner()
def _choose(operation, loops, slots, potentials, peaks, chosen):
    """Choose the entries of the operands that give the chosen entry of the result."""
    here = carray(stack_cells(), 3)
    outer, free = carray(stack_cells(), (MAX_LOOPS, 4)), carray(stack_cells(), (MAX_LOOPS, 4))
    n_outer, n_free = _split_loops(operation, loops, outer, free)
    p, q = _find_operands(operation, slots, potentials, peaks, here)
    offset = chosen[operation[RESULT]] - here[2]
    for row in range(n_outer):
        code = (offset // outer[row, 3]) % outer[row, 0]
        here[0] += code * outer[row, 1]
        here[1] += code * outer[row, 2]
    _, chosen[operation[LEFT]], chosen[operation[RIGHT]] = _maximise_sum(p, q, here, free, n_free)


@inner()
def maximise(operations, loops, slots, potentials, peaks, chosen):
    """Max-product up the tree, then the choices down: `chosen` ends as an address per slot."""
    for at in range(len(operations)):
        if operations[at, KIND] == CONTRACT:
            _find_peaks(operations[at], loops, slots, potentials, peaks)
            result = operations[at, RESULT]
            chosen[result] = slots[result, 1]
    for at in range(len(operations) - 1, -1, -1):
        if operations[at, KIND] == CONTRACT:
            _choose(operations[at], loops, slots, potentials, peaks, chosen)
