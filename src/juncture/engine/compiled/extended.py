"""Compiled: tables of numbers with an exponent each, for potentials that are widely spread.

An entry is x * 2**e, with x in [1, 2) and an integer e that may be as low as it likes. So products
and sums neither overflow nor lose terms, and neither logarithm nor exponential is taken. An entry
is a true zero if and only if its exponent is `LOWEST`.

The numbers x of a table lie where its ordinary numbers would: in `work`, or in `out` for a given
table. Its exponents lie at the same addresses of `exponents`, or `given_exponents`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import carray

from juncture.engine.compiled.elementwise import (
    LN2,
    LN2_HIGH,
    LN2_LOW,
    LOG2E,
    ROUND,
    U,
    advance,
    bits_of,
    clear,
    extremes,
    fast_exp,
    fill,
    from_bits,
    inner,
    rescale,
    stack_cells,
)
from juncture.engine.compiled.extended_rows import (
    DEEPEST,
    LOWEST,
    dot_row,
    finish_rows,
    lower,
    merge_rows,
)
from juncture.engine.compiled.opcodes import DONE, IMPOSSIBLE, MAX_LOOPS, NEEDS_EXPONENTS

# A table whose exponents differ by no more has ordinary numbers above 1e-280.
_ORDINARY_RANGE = 920
# Exponents below this are those of zero, or of sums and products of zeros.
_ZERO = LOWEST // 4
_BIAS = 1023


@inner()
def _find_entries(state, slot):
    """The arrays that hold the numbers and the exponents of an extended table."""
    if state.slots[slot, 0]:
        return state.out, state.given_exponents
    return state.work, state.exponents


@inner()
def _extend(state, slot):
    """Give every entry of a table of ordinary numbers an exponent of its own.

    A single entry stays as it is, with exponent 0: the number one is shared between threads.
    Returns whether all is well: no potential is not-a-number.
    """
    start, size = state.slots[slot, 1], state.slots[slot, 2]
    if state.extended[slot]:
        return True
    if state.slots[slot, 0]:
        state.extended[slot] = True
        return _extend_potentials(state, slot)
    fill(state.exponents, start, size, 0)
    if size > 1:
        _normalise(state.work, state.exponents, start, size)
        state.extended[slot] = True
    return True


@inner()
def _extend_potentials(state, slot):
    """Set the entries of a given table; returns whether no potential is not-a-number."""
    start, stop, nonsense = state.slots[slot, 1], state.slots[slot, 1] + state.slots[slot, 2], 0
    for i in range(U(start), U(stop)):
        x = state.potentials[i] - state.shifts[slot]
        t = x * LOG2E
        t = _ZERO if t < _ZERO else t
        k = (t + ROUND) - ROUND
        rest = (x - k * LN2_HIGH) - k * LN2_LOW
        rest = -1.0 if rest < -1.0 else rest  # only below 2**48 nats, where no digit is left
        state.out[i] = 1.0 if x == -np.inf else fast_exp(rest)
        e = bits_of(k + ROUND) - bits_of(ROUND)
        state.given_exponents[i] = LOWEST if x == -np.inf else e
        nonsense += np.isnan(x)
    return nonsense == 0


@inner()
def _normalise(numbers, exponents, start, size):
    """Bring all numbers into [1, 2), their exponents adjusted; returns the range of exponents.

    The lowest one is that of an entry other than zero.
    """
    high, low = LOWEST, -LOWEST
    for i in range(U(start), U(start + size)):
        x = numbers[i]
        places = (bits_of(x) >> 52) - _BIAS
        e = exponents[i] + places
        zero = (x == 0.0) | (e < _ZERO)
        numbers[i] = 1.0 if zero else from_bits(bits_of(x) - (places << 52))
        exponents[i] = LOWEST if zero else e
        high = max(high, LOWEST if zero else e)
        low = min(low, -LOWEST if zero else e)
    return high, low


@inner()
def _multiply(state, left, right, result, nest):
    """Multiply two extended tables; returns the range of the product's exponents."""
    n = len(nest)
    if nest[n - 1, 1] == 0 and nest[n - 1, 2] == 1:
        left, right = right, left
        for row in range(n):
            nest[row, 1], nest[row, 2] = nest[row, 2], nest[row, 1]
    x, f = _find_entries(state, left)
    y, g = _find_entries(state, right)
    start, size = state.slots[result, 1], state.slots[result, 2]
    count, at = carray(stack_cells(), MAX_LOOPS), carray(stack_cells(), 3)
    clear(count)
    fill(state.work, start, size, 1.0)
    fill(state.exponents, start, size, LOWEST)
    at[0], at[1], at[2] = state.slots[left, 1], state.slots[right, 1], start
    more = True
    while more:
        merge_rows(
            x, f, y, g, state.work, state.exponents, at,
            nest[n - 2, 0], nest[n - 2, 1], nest[n - 2, 2], nest[n - 2, 3],
            nest[n - 1, 0], nest[n - 1, 1], nest[n - 1, 2], nest[n - 1, 3],
        )  # fmt: skip
        more = advance(count, nest, 0, n - 2, at)
    return _normalise(state.work, state.exponents, start, size)


@inner()
def _shorten(state, slot, peak):
    """Turn an extended table back into ordinary numbers, scaled by 2**-peak."""
    start = state.slots[slot, 1]
    for i in range(U(start), U(start + state.slots[slot, 2])):
        places = state.exponents[i] - peak
        state.work[i] = lower(state.work[i], places) if places > DEEPEST else 0.0
    state.extended[slot] = False


@inner()
def _dot(state, left, right):
    """The inner product of two extended tables with the same axes: a number and its exponent."""
    x, f = _find_entries(state, left)
    y, g = _find_entries(state, right)
    a, b = U(state.slots[left, 1]), U(state.slots[right, 1])
    return dot_row(x, f, a, y, g, b, U(state.slots[left, 2]))


@inner()
def _absorb(state, table, right, top, first, n_loops, factor, exponent):
    """Turn an extended given table into its marginal: times q, c and factor / 2**exponent."""
    x, f = _find_entries(state, table)
    y, g = _find_entries(state, right)
    z, h = _find_entries(state, top)
    slots, loops, i, j = state.slots, state.loops, first + n_loops - 2, first + n_loops - 1
    count, at = carray(stack_cells(), MAX_LOOPS), carray(stack_cells(), 3)
    clear(count)
    at[0], at[1], at[2] = slots[table, 1], slots[right, 1], slots[top, 1]
    more = True
    while more:
        finish_rows(
            x, f, y, g, z, h, at, loops[i, 0], loops[i, 1], loops[i, 2], loops[i, 3],
            loops[j, 0], loops[j, 2], loops[j, 3], factor, exponent,
        )  # fmt: skip
        more = advance(count, loops, first, n_loops - 2, at)
    state.extended[table] = False


@inner()
def copy_nest(loops, first, n_loops, swapped, nest):
    """Copy loops to `nest`; swapped, what was the right operand becomes the result."""
    for row in range(n_loops):
        nest[row, 0], nest[row, 1] = loops[first + row, 0], loops[first + row, 1]
        nest[row, 2 + swapped] = loops[first + row, 2]
        nest[row, 3 - swapped] = loops[first + row, 3]


@inner()
def _count_ticks(loops, first, n_loops):
    """How often the innermost loop ticks in all."""
    ticks = 1
    for row in range(first, first + n_loops):
        ticks *= loops[row, 0]
    return ticks


@inner()
def contract_extended(state, left, right, result, first, n_loops, swapped):
    """Multiply two tables with an exponent for each entry; returns outcome and log-scale."""
    if len(state.exponents) == 0:
        return NEEDS_EXPONENTS, 0.0
    nest = carray(stack_cells(), (n_loops, 4))
    copy_nest(state.loops, first, n_loops, swapped, nest)
    if not (_extend(state, left) and _extend(state, right)):
        return IMPOSSIBLE, 0.0
    peak, low = _multiply(state, left, right, result, nest)
    state.repeated[result] += _count_ticks(nest, 0, n_loops)
    state.extended[result], state.shifts[result], state.scales[result] = True, 0.0, 1.0
    if peak == LOWEST:
        return IMPOSSIBLE, 0.0
    if peak - low > _ORDINARY_RANGE:
        return DONE, 0.0
    _shorten(state, result, peak)
    state.shifts[result] = peak
    return DONE, peak * LN2 + _scale_down(state, result)


@inner()
def _scale_down(state, slot):
    """Scale a table so that its largest entry is 1; returns the logarithm of the scale."""
    start, size = state.slots[slot, 1], state.slots[slot, 2]
    _, high = extremes(state.work, start, size)
    state.scales[slot] = high
    rescale(state.work, start, size, 1.0 / high)
    return math.log(high)


@inner()
def finish_extended(state, table, right, top, result, first, n_loops, total):
    """Turn a given table into its marginal where ordinary numbers do not do.

    Its mass is the inner product of `top` with `result`: a product of the table, or the table.
    """
    if len(state.exponents) == 0:
        return NEEDS_EXPONENTS
    for slot in (table, right, top, result):
        if not _extend(state, slot):
            return IMPOSSIBLE
    mass, exponent = _dot(state, result, top)
    if result != table:
        mass, exponent = mass * state.scales[result], exponent + np.int64(state.shifts[result])
    # Scales may be as low as 1e-280, and `_absorb` flushes by exponents alone.
    places = (bits_of(mass) >> 52) - _BIAS
    mass, exponent = from_bits(bits_of(mass) - (places << 52)), exponent + places
    _absorb(state, table, right, top, first, n_loops, total / mass, exponent)
    state.repeated[table] += _count_ticks(state.loops, first, n_loops)
    return DONE
