"""Max-product on the same program: the most probable configuration and its score."""

from __future__ import annotations

import numpy as np
from numba import njit

from juncture.oracles.kernels import (
    CONTRACT,
    FIRST_LOOP,
    KIND,
    LEFT,
    MAX_LOOPS,
    N_LOOPS,
    RESULT,
    RIGHT,
    nest_of,
    result_first,
)
from juncture.oracles.stamp import SOURCES
from juncture.oracles.vector import advance, inner


@inner()
def _best_over(p, q, at, free):
    """The largest p + q over the free loops from a fixed position, and both addresses there."""
    count = np.zeros(MAX_LOOPS, np.int64)
    here = at.copy()
    best, p_best, q_best = -np.inf, at[0], at[1]
    last = len(free) - 1
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
def _operands(operation, slots, potentials, peaks):
    """The arrays of both operands, and the addresses where operands and result begin."""
    left, right, result = operation[LEFT], operation[RIGHT], operation[RESULT]
    p = potentials if slots[left, 0] else peaks
    q = potentials if slots[right, 0] else peaks
    return p, q, np.array((slots[left, 1], slots[right, 1], slots[result, 1]))


@inner()
def _find_peaks(operation, loops, slots, potentials, peaks):
    """Every entry of the result: the best sum of the operands over the free loops."""
    p, q, here = _operands(operation, slots, potentials, peaks)
    outer, free = result_first(nest_of(loops, operation[FIRST_LOOP], operation[N_LOOPS], False))
    count = np.zeros(MAX_LOOPS, np.int64)
    more = True
    while more:
        peaks[here[2]] = _best_over(p, q, here, free)[0]
        more = advance(count, outer, 0, len(outer), here)


@inner()
def _choose(operation, loops, slots, potentials, peaks, chosen):
    """Where the operands attain the entry of the result that has been chosen."""
    p, q, here = _operands(operation, slots, potentials, peaks)
    outer, free = result_first(nest_of(loops, operation[FIRST_LOOP], operation[N_LOOPS], False))
    offset = chosen[operation[RESULT]] - here[2]
    for row in range(len(outer)):
        code = (offset // outer[row, 3]) % outer[row, 0]
        here[0] += code * outer[row, 1]
        here[1] += code * outer[row, 2]
    _, chosen[operation[LEFT]], chosen[operation[RIGHT]] = _best_over(p, q, here, free)


def _entry_point(sources):
    """The routine that Python calls; it closes over the stamp for the cache's sake."""

    @njit(error_model="numpy", nogil=True, cache=True)
    def maximise(operations, loops, slots, potentials, peaks, chosen):
        """Max-product up the tree, then the choices down: `chosen` ends as an address per slot."""
        _ = sources
        for at in range(len(operations)):
            if operations[at, KIND] == CONTRACT:
                _find_peaks(operations[at], loops, slots, potentials, peaks)
                result = operations[at, RESULT]
                chosen[result] = slots[result, 1]
        for at in range(len(operations) - 1, -1, -1):
            if operations[at, KIND] == CONTRACT:
                _choose(operations[at], loops, slots, potentials, peaks, chosen)

    return maximise


maximise = _entry_point(SOURCES)
