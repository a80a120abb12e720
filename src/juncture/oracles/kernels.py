"""The compiled routines of exact message passing.

One program, compiled once, runs every structure: which tables to multiply, along which axes,
is data (`juncture.oracles.program`), not code. All of it lies in this one file, because the
compiler's cache notices changes of the file that holds the entry point and of no other.

Numbers. A table is held as ordinary numbers scaled so that its largest entry is 1, and the
logarithm of the scale is kept apart. An entry far below the largest may have lost terms that
were too small for ordinary numbers, and it may matter to a later product that suppresses the
large ones. So a product with an entry below `TINY` that is not a true zero is computed again
from the logarithms of its operands, and carries its own logarithms along. With operands of at
most 1 and entries flushed at e^-708 = 3e-308, an entry of at least `TINY` = 1e-280 has lost no
more than 1e-27 of itself per term; so every entry of every table is accurate relative to itself.
"""

from __future__ import annotations

import math
from collections import namedtuple
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# Columns of the table of operations.
KIND, LEFT, RIGHT, RESULT, ADJOINT, COLLECTED, FIRST_LOOP, N_LOOPS = range(8)
# Kinds of operations.
EXPONENTIATE, CONTRACT, ABSORB, FINISH = range(4)
# Columns of the table of loops: extent, then the strides of left operand, right one and result.
# Columns of the table of slots: whether among the potentials, offset, cells.
# Outcomes.
DONE, NEEDS_LOGARITHMS, IMPOSSIBLE = range(3)

TINY = 1e-280
FLUSHED = -708.0
SMALLEST_MASS = 1e-250
MAX_LOOPS = 64
# Cells of the next table to ask for while the present one is worked on.
PREFETCHED = 4096
# Potentials that fit into a core's own cache need no asking ahead.
PREFETCH_FROM = 1 << 17

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer
_EXPONENT_OF_ONE = 0x3FF0000000000000
_ALL_BUT_SIGN = 0x7FFFFFFFFFFFFFFF
_LOWEST = -(2**63)

# What all routines share. `logged` tells which slots have their logarithms in `logs`.
State = namedtuple("State", "slots loops potentials out work logs logged shifts scales")

# Routines that only other compiled routines call need no entry point, which saves a third of the
# compilation.
inner = partial(njit, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)

# Signed indices make the compiler test each one for being negative, which costs the vector
# instructions; so every address is unsigned where it meets an array.
U = np.uint64

# Sums may be reordered and products fused; infinities and not-a-number keep their meaning.
_FAST = {"reassoc", "contract", "nsz"}


@intrinsic
def _bits(_typingctx: Any, _value: Any) -> Any:
    """The bit pattern of a float."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _from_bits(_typingctx: Any, _value: Any) -> Any:
    """The float of a bit pattern."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def _prefetch(_typingctx: Any, array: Any, index: Any) -> Any:
    """Ask for one cache line of an array ahead of its use."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.gep(data, [arguments[1]])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [pointer, number(0), number(2), number(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


@inner()
def _prefetch_table(values, start, size):
    """Ask for the first part of a table, a line of eight numbers at a time."""
    for line in range(min(size, PREFETCHED) >> 3):
        _prefetch(values, U(start + (line << 3)))


@njit(fastmath={"contract"})
def fast_exp(x):
    """e**x for x in [-708, 700], within two units in the last place; compiles to vector code.

    x = k ln 2 + r with |r| <= ln(2)/2; a polynomial of degree 11, interpolated at Chebyshev
    nodes (relative error 4e-18), gives e**r, and 2**k is written into the exponent bits.
    """
    t = x * _LOG2E + _ROUND
    k = t - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r * 1.0) + r2 * (0.5000000000000019 + r * 0.1666666666666668)
    middle = (0.04166666666648738 + r * 0.008333333333319546) + r2 * (
        0.0013888888952505406 + r * 0.00019841269890193705
    )
    high = (2.4801485278370062e-05 + r * 2.7557240761739257e-06) + r2 * (
        2.7632715071632255e-07 + r * 2.5110095611886237e-08
    )
    return (low + r4 * (middle + r4 * high)) * _from_bits((_bits(t) << 52) + _EXPONENT_OF_ONE)


@inner()
def _maximum(values, start, stop):
    """The largest entry. Floats are compared as integers, which compiles to vector code."""
    best = _LOWEST
    for i in range(U(start), U(stop)):
        bits = _bits(values[i])
        best = max(best, bits ^ ((bits >> 63) & _ALL_BUT_SIGN))
    return _from_bits(best ^ ((best >> 63) & _ALL_BUT_SIGN))


@inner()
def _extremes(values, start, size):
    """The smallest and the largest of entries that are not negative (see _maximum)."""
    low, high = _ALL_BUT_SIGN, _LOWEST
    for i in range(U(start), U(start + size)):
        bits = _bits(values[i])
        low = min(low, bits)
        high = max(high, bits)
    return _from_bits(low), _from_bits(high)


@inner(fastmath={"contract"})
def _flushed_exp(x):
    """e**x for x up to 700; below e^-708 it is zero."""
    y = fast_exp(FLUSHED if x < FLUSHED else x)  # in this form, not-a-number stays what it is
    return 0.0 if x < FLUSHED else y


@inner(fastmath={"contract"})
def _exponentiate(potentials, out, start, stop, shift):
    """out = exp(potentials - shift), entries below e^-708 flushed to zero."""
    for i in range(U(start), U(stop)):
        out[i] = _flushed_exp(potentials[i] - shift)


@inner(fastmath=_FAST)
def _add_products(p, p_at, q, q_at, r, r_at, n1, p1, q1, r1, n0, p0, q0, r0):
    """Two innermost loops of r += p * q; the last one has strides 0 or 1 in the fast cases."""
    if p0 == 1 and q0 == 0 and r0 == 1:
        _add_scaled(p, p_at, q, q_at, r, r_at, n1, p1, q1, r1, n0)
    elif p0 == 0 and q0 == 1 and r0 == 1:
        _add_scaled(q, q_at, p, p_at, r, r_at, n1, q1, p1, r1, n0)
    elif p0 == 1 and q0 == 1 and r0 == 0:
        _add_dots(p, p_at, q, q_at, r, r_at, n1, p1, q1, r1, n0)
    elif p0 == 1 and q0 == 1 and r0 == 1:
        for i in range(n1):
            a, b, c = U(p_at + i * p1), U(q_at + i * q1), U(r_at + i * r1)
            for j in range(U(n0)):
                r[c + j] += p[a + j] * q[b + j]
    elif p0 == 1 and q0 == 0 and r0 == 0:
        _add_sums(p, p_at, q, q_at, r, r_at, n1, p1, q1, r1, n0)
    elif p0 == 0 and q0 == 1 and r0 == 0:
        _add_sums(q, q_at, p, p_at, r, r_at, n1, q1, p1, r1, n0)
    else:
        for i in range(n1):
            a, b, c = U(p_at + i * p1), U(q_at + i * q1), U(r_at + i * r1)
            for j in range(U(n0)):
                r[c + j * U(r0)] += p[a + j * U(p0)] * q[b + j * U(q0)]


@inner(fastmath=_FAST)
def _add_scaled(x, x_at, s, s_at, r, r_at, n1, x1, s1, r1, n0):
    """r[i, :] += s[i] * x[i, :]; four rows at a time where they add to the same one."""
    i = 0
    if r1 == 0:
        e = U(r_at)
        while i + 4 <= n1:
            a = U(x_at + i * x1)
            b, c, d = a + U(x1), a + U(2 * x1), a + U(3 * x1)
            at = U(s_at + i * s1)
            s_a, s_b, s_c, s_d = s[at], s[at + U(s1)], s[at + U(2 * s1)], s[at + U(3 * s1)]
            for j in range(U(n0)):
                r[e + j] += (s_a * x[a + j] + s_b * x[b + j]) + (s_c * x[c + j] + s_d * x[d + j])
            i += 4
    while i < n1:
        a, e, factor = U(x_at + i * x1), U(r_at + i * r1), s[U(s_at + i * s1)]
        for j in range(U(n0)):
            r[e + j] += factor * x[a + j]
        i += 1


@inner(fastmath=_FAST)
def _add_dots(p, p_at, q, q_at, r, r_at, n1, p1, q1, r1, n0):
    """r[i] += p[i, :] . q[i, :]; four at a time where one of the two rows stays the same."""
    if p1 != 0 and q1 == 0:
        p, p_at, p1, q, q_at, q1 = q, q_at, q1, p, p_at, p1
    i = 0
    if p1 == 0:
        while i + 4 <= n1:
            a, e = U(q_at + i * q1), U(p_at)
            b, c, d = a + U(q1), a + U(2 * q1), a + U(3 * q1)
            s_a = s_b = s_c = s_d = 0.0
            for j in range(U(n0)):
                x = p[e + j]
                s_a += x * q[a + j]
                s_b += x * q[b + j]
                s_c += x * q[c + j]
                s_d += x * q[d + j]
            at = U(r_at + i * r1)
            r[at] += s_a
            r[at + U(r1)] += s_b
            r[at + U(2 * r1)] += s_c
            r[at + U(3 * r1)] += s_d
            i += 4
    while i < n1:
        a, b = U(p_at + i * p1), U(q_at + i * q1)
        total = 0.0
        for j in range(U(n0)):
            total += p[a + j] * q[b + j]
        r[U(r_at + i * r1)] += total
        i += 1


@inner(fastmath=_FAST)
def _add_sums(p, p_at, s, s_at, r, r_at, n1, p1, s1, r1, n0):
    """r[i] += s[i] * sum(p[i, :])."""
    for i in range(n1):
        a = U(p_at + i * p1)
        total = 0.0
        for j in range(U(n0)):
            total += p[a + j]
        r[U(r_at + i * r1)] += total * s[U(s_at + i * s1)]


@inner(fastmath=_FAST)
def _absorb_rows(x, x_at, q, q_at, c, c_at, d, d_at, n1, x1, q1, c1, n0, q0, c0, scale, keep):
    """Two innermost loops of: d += x * c (along q's axes), then x = x * c * q * scale."""
    n = U(n0)
    for i in range(n1):
        a, b = U(x_at + i * x1), U(q_at + i * q1)
        e, f = U(c_at + i * c1), U(d_at + i * q1)
        if q0 == 0 and c0 == 1:
            factor, total = q[b] * scale, 0.0
            for j in range(n):
                y = x[a + j] * c[e + j]
                total += y
                x[a + j] = y * factor
            if keep:
                d[f] += total
        elif q0 == 1 and c0 == 0:
            top = c[e]
            factor = top * scale
            for j in range(n):
                y = x[a + j]
                d[f + j] += y * top
                x[a + j] = y * (q[b + j] * factor)
        elif q0 == 1 and c0 == 1:
            for j in range(n):
                y = x[a + j] * c[e + j]
                d[f + j] += y
                x[a + j] = y * (q[b + j] * scale)
        elif c0 != 0:  # a copy in another axis order: q is the number one
            for j in range(n):
                x[a + j] *= c[e + j * U(c0)] * (q[b] * scale)
        else:
            top, total = c[e], 0.0
            factor = top * q[b] * scale
            for j in range(n):
                y = x[a + j]
                total += y
                x[a + j] = y * factor
            if keep:
                d[f] += total * top


@inner()
def _advance(count, loops, first, n_outer, at):
    """One tick of the outer loops; moves the three addresses, returns False at the end."""
    axis = n_outer - 1
    while axis >= 0:
        row = first + axis
        count[axis] += 1
        if count[axis] < loops[row, 0]:
            at[0] += loops[row, 1]
            at[1] += loops[row, 2]
            at[2] += loops[row, 3]
            return True
        count[axis] = 0
        back = loops[row, 0] - 1
        at[0] -= back * loops[row, 1]
        at[1] -= back * loops[row, 2]
        at[2] -= back * loops[row, 3]
        axis -= 1
    return False


@inner()
def _fill(values, start, size, value):
    for i in range(U(start), U(start + size)):
        values[i] = value


@inner(fastmath=_FAST)
def _dot(p, p_at, q, q_at, n):
    total, a, b = 0.0, U(p_at), U(q_at)
    for i in range(U(n)):
        total += p[a + i] * q[b + i]
    return total


@inner(fastmath=_FAST)
def _scale(values, start, size, factor):
    for i in range(U(start), U(start + size)):
        values[i] *= factor


@inner(fastmath=_FAST)
def _multiply(x, x_at, d, d_at, n, factor):
    """x *= d * factor."""
    a, b = U(x_at), U(d_at)
    for i in range(U(n)):
        x[a + i] *= d[b + i] * factor


# ---- Products from logarithms ----------------------------------------------------------------


@inner()
def _raise_peaks(p, p_at, q, q_at, r, r_at, n1, p1, q1, r1, n0, p0, q0, r0):
    """Two innermost loops of r = max(r, p + q)."""
    for i in range(n1):
        a, b, c = U(p_at + i * p1), U(q_at + i * q1), U(r_at + i * r1)
        if r0 == 0:
            best = r[c]
            for j in range(U(n0)):
                best = max(best, p[a + j * U(p0)] + q[b + j * U(q0)])
            r[c] = best
        else:
            for j in range(U(n0)):
                k = c + j * U(r0)
                r[k] = max(r[k], p[a + j * U(p0)] + q[b + j * U(q0)])


@inner(fastmath=_FAST)
def _add_exponentials(p, p_at, q, q_at, r, r_at, peaks, n1, p1, q1, r1, n0, p0, q0, r0):
    """Two innermost loops of r += exp(p + q - peaks); peaks has the addresses of r."""
    if p0 == 0 and q0 == 1:
        p, p_at, p1, p0, q, q_at, q1, q0 = q, q_at, q1, q0, p, p_at, p1, p0
    for i in range(n1):
        a, b, c = U(p_at + i * p1), U(q_at + i * q1), U(r_at + i * r1)
        if p0 == 1 and q0 == 0 and r0 == 1:
            y = q[b]
            for j in range(U(n0)):
                r[c + j] += _flushed_exp(p[a + j] + y - peaks[c + j])
        elif p0 == 1 and q0 == 1 and r0 == 1:
            for j in range(U(n0)):
                r[c + j] += _flushed_exp(p[a + j] + q[b + j] - peaks[c + j])
        elif p0 == 1 and q0 == 1 and r0 == 0:
            peak, total = peaks[c], 0.0
            for j in range(U(n0)):
                total += _flushed_exp(p[a + j] + q[b + j] - peak)
            r[c] += total
        elif p0 == 1 and q0 == 0 and r0 == 0:
            y, total = q[b] - peaks[c], 0.0
            for j in range(U(n0)):
                total += _flushed_exp(p[a + j] + y)
            r[c] += total
        else:
            for j in range(U(n0)):
                k = c + j * U(r0)
                r[k] += _flushed_exp(p[a + j * U(p0)] + q[b + j * U(q0)] - peaks[k])


@inner()
def _logarithms(state, slot):
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
    """The product once more, from logarithms; returns the logarithm of its scale."""
    p, q = _logarithms(state, left), _logarithms(state, right)
    logs, work = state.logs, state.work
    start, size, n = state.slots[result, 1], state.slots[result, 2], len(nest)
    count, at = np.zeros(MAX_LOOPS, np.int64), np.empty(3, np.int64)
    _fill(logs, start, size, -np.inf)
    _fill(work, start, size, 0.0)
    for summing in range(2):
        at[0], at[1], at[2] = state.slots[left, 1], state.slots[right, 1], start
        more = True
        while more:
            if summing:
                _add_exponentials(
                    p, at[0], q, at[1], work, at[2], logs,
                    nest[n - 2, 0], nest[n - 2, 1], nest[n - 2, 2], nest[n - 2, 3],
                    nest[n - 1, 0], nest[n - 1, 1], nest[n - 1, 2], nest[n - 1, 3],
                )  # fmt: skip
            else:
                _raise_peaks(
                    p, at[0], q, at[1], logs, at[2],
                    nest[n - 2, 0], nest[n - 2, 1], nest[n - 2, 2], nest[n - 2, 3],
                    nest[n - 1, 0], nest[n - 1, 1], nest[n - 1, 2], nest[n - 1, 3],
                )  # fmt: skip
            more = _advance(count, nest, 0, n - 2, at)
        for i in range(U(start), U(start + size)):
            if summing:
                logs[i] = logs[i] + math.log(work[i]) if work[i] > 0.0 else -np.inf
            elif logs[i] == -np.inf:
                logs[i] = 0.0  # a true zero: all of its terms are flushed, whatever the peak
    peak = _maximum(logs, start, start + size)
    for i in range(U(start), U(start + size)):
        logs[i] -= peak
    _exponentiate(logs, work, start, start + size, 0.0)
    state.logged[result] = True
    given = state.shifts[left] * state.slots[left, 0] + state.shifts[right] * state.slots[right, 0]
    return peak - given


# ---- Settling a product ----------------------------------------------------------------------


@inner()
def _nest(loops, first, n_loops, swapped):
    """A copy of the loops; swapped, what was the right operand becomes the result."""
    nest = loops[first : first + n_loops].copy()
    if swapped:
        for row in range(n_loops):
            nest[row, 2], nest[row, 3] = nest[row, 3], nest[row, 2]
    return nest


@inner()
def _result_first(nest):
    """The loops of the result, then the summed ones (at least one, perhaps of extent 1)."""
    n_result = 0
    for row in range(len(nest)):
        n_result += nest[row, 3] != 0
    outer = np.zeros((n_result, 4), np.int64)
    summed = np.zeros((max(1, len(nest) - n_result), 4), np.int64)
    summed[0, 0] = 1
    at_outer = at_summed = 0
    for row in range(len(nest)):
        kept = nest[row, 3] != 0
        for column in range(4):
            if kept:
                outer[at_outer, column] = nest[row, column]
            else:
                summed[at_summed, column] = nest[row, column]
        at_outer += kept
        at_summed += not kept
    return outer, summed


@inner()
def _is_positive(state, slot, at):
    """Whether an entry of a table is more than zero, however small."""
    if state.slots[slot, 0]:
        return state.potentials[at] > -np.inf
    if state.logged[slot]:
        return state.logs[at] > -np.inf
    return state.work[at] > 0.0


@inner()
def _has_lost(state, left, right, result, nest):
    """Whether an entry of the product is zero only because its terms are too small."""
    outer, summed = _result_first(nest)
    count, ticks = np.zeros(MAX_LOOPS, np.int64), np.zeros(MAX_LOOPS, np.int64)
    at = np.array((state.slots[left, 1], state.slots[right, 1], state.slots[result, 1]))
    more = True
    while more:
        if state.work[at[2]] == 0.0:
            here, searching = at.copy(), True
            while searching:
                if _is_positive(state, left, here[0]) and _is_positive(state, right, here[1]):
                    return True
                searching = _advance(ticks, summed, 0, len(summed), here)
        more = _advance(count, outer, 0, len(outer), at)
    return False


@inner()
def _settle_small(state, left, right, result, first, n_loops, swapped):
    """Compute a product with small entries again if it has lost anything; else the scale is 1."""
    nest = _nest(state.loops, first, n_loops, swapped)
    low, _ = _extremes(state.work, state.slots[result, 1], state.slots[result, 2])
    if low == 0.0 and not _has_lost(state, left, right, result, nest):
        return DONE, 0.0
    if len(state.logs) == 0:
        return NEEDS_LOGARITHMS, 0.0
    scale = _contract_logarithms(state, left, right, result, nest)
    return DONE, scale


@inner()
def _settle(state, left, right, result, first, n_loops, swapped):
    """Scale a fresh product, after computing it again if it has lost anything.

    Returns the outcome and the logarithm of the scale.
    """
    start, size = state.slots[result, 1], state.slots[result, 2]
    low, high = _extremes(state.work, start, size)
    state.logged[result] = False
    if low < TINY:
        outcome, scale = _settle_small(state, left, right, result, first, n_loops, swapped)
        if outcome != DONE or state.logged[result]:
            state.scales[result] = math.exp(scale)
            return outcome, scale
    if high == 0.0:
        return IMPOSSIBLE, 0.0
    state.scales[result] = high
    _scale(state.work, start, size, 1.0 / high)
    return DONE, math.log(high)


# ---- Operations ------------------------------------------------------------------------------


@inner()
def _prefetch_operands(state, operation):
    """Ask for the tables of an operation while the one before it runs."""
    kind, table = operation[KIND], operation[LEFT]
    if kind in (EXPONENTIATE, ABSORB):
        _prefetch_table(state.out, state.slots[table, 1], state.slots[table, 2])
    if kind == EXPONENTIATE:
        _prefetch_table(state.potentials, state.slots[table, 1], state.slots[table, 2])
    for column in (RIGHT, RESULT, COLLECTED):
        slot = operation[column]
        if slot >= 0 and state.slots[slot, 0] == 0:
            _prefetch_table(state.work, state.slots[slot, 1], state.slots[slot, 2])


@inner()
def _exponentiate_given(state, table):
    """Outcome and shift of turning the potentials of a given table into ordinary numbers."""
    start, stop = state.slots[table, 1], state.slots[table, 1] + state.slots[table, 2]
    shift = _maximum(state.potentials, start, stop)
    if shift == -np.inf:
        return IMPOSSIBLE, 0.0
    state.shifts[table] = shift
    _exponentiate(state.potentials, state.out, start, stop, shift)
    return DONE, shift


@inner()
def _contract(state, left, right, result, first, n_loops, odometer):
    """The product of two tables, summed onto the axes of the result."""
    slots, loops, work = state.slots, state.loops, state.work
    p = state.out if slots[left, 0] else work
    q = state.out if slots[right, 0] else work
    count, at = odometer
    at[0], at[1], at[2] = slots[left, 1], slots[right, 1], slots[result, 1]
    _fill(work, at[2], slots[result, 2], 0.0)
    i, j = first + n_loops - 2, first + n_loops - 1
    more = True
    while more:
        _add_products(
            p, at[0], q, at[1], work, at[2],
            loops[i, 0], loops[i, 1], loops[i, 2], loops[i, 3],
            loops[j, 0], loops[j, 1], loops[j, 2], loops[j, 3],
        )  # fmt: skip
        more = _advance(count, loops, first, n_loops - 2, at)
    return _settle(state, left, right, result, first, n_loops, False)


@inner()
def _absorb(state, operation, total, odometer):
    """Turn a given table into its marginal, and collect the derivative of the other operand."""
    slots, loops, work = state.slots, state.loops, state.work
    left, right, result = operation[LEFT], operation[RIGHT], operation[RESULT]
    top, collected = operation[ADJOINT], operation[COLLECTED]
    first, n_loops, keep = operation[FIRST_LOOP], operation[N_LOOPS], operation[COLLECTED] >= 0
    d_at = slots[collected, 1] if keep else 0
    if keep:
        _fill(work, d_at, slots[collected, 2], 0.0)
    mass = _dot(work, slots[result, 1], work, slots[top, 1], slots[result, 2])
    mass *= state.scales[result]
    if mass >= SMALLEST_MASS:
        q = state.out if slots[right, 0] else work
        count, at = odometer
        at[0], at[1], at[2] = slots[left, 1], slots[right, 1], slots[top, 1]
        i, j = first + n_loops - 2, first + n_loops - 1
        more = True
        while more:
            _absorb_rows(
                state.out, at[0], q, at[1], work, at[2], work, d_at + at[1] - slots[right, 1],
                loops[i, 0], loops[i, 1], loops[i, 2], loops[i, 3],
                loops[j, 0], loops[j, 2], loops[j, 3], total / mass, keep,
            )  # fmt: skip
            more = _advance(count, loops, first, n_loops - 2, at)
    outcome = DONE
    if keep:
        outcome, _ = _settle(state, left, top, collected, first, n_loops, True)
    if mass < SMALLEST_MASS and outcome == DONE:
        outcome = _marginal_from_logarithms(state, left, right, top, first, n_loops, total)
    return outcome


@inner()
def _finish(state, operation, total):
    """Turn a given table into its marginal by its derivative, which has the same axes."""
    table, adjoint, one = operation[LEFT], operation[RIGHT], operation[RESULT]
    start, d_at, size = state.slots[table, 1], state.slots[adjoint, 1], state.slots[table, 2]
    mass = _dot(state.out, start, state.work, d_at, size)
    if mass >= SMALLEST_MASS:
        _multiply(state.out, start, state.work, d_at, size, total / mass)
        return DONE
    first, n_loops = operation[FIRST_LOOP], operation[N_LOOPS]
    return _marginal_from_logarithms(state, table, one, adjoint, first, n_loops, total)


@inner()
def _marginal_from_logarithms(state, table, right, top, first, n_loops, total):
    """The marginal of a given table whose mass is too small for ordinary numbers."""
    if len(state.logs) == 0:
        return NEEDS_LOGARITHMS
    q, c, out = _logarithms(state, right), _logarithms(state, top), state.out
    start, size = state.slots[table, 1], state.slots[table, 2]
    count = np.zeros(MAX_LOOPS, np.int64)
    at = np.array((start, state.slots[right, 1], state.slots[top, 1]))
    last = first + n_loops - 1
    x1, q1, c1 = U(state.loops[last, 1]), U(state.loops[last, 2]), U(state.loops[last, 3])
    more = True
    while more:
        x_at, q_at, c_at = U(at[0]), U(at[1]), U(at[2])
        for j in range(U(state.loops[last, 0])):
            x = x_at + j * x1
            out[x] = (state.potentials[x] + q[q_at + j * q1]) + c[c_at + j * c1]
        more = _advance(count, state.loops, first, n_loops - 1, at)
    _exponentiate(out, out, start, start + size, _maximum(out, start, start + size))
    mass = 0.0
    for i in range(U(start), U(start + size)):
        mass += out[i]
    _scale(out, start, size, total / mass)
    return DONE


@njit(error_model="numpy", nogil=True, cache=True)
def run(
    begin, end, operations, loops, slots, total,
    potentials, out, work, logs, logged, shifts, scales, log_scales,
):  # fmt: skip
    """Run the operations from `begin` to `end`; `out` ends as the marginals of the potentials."""
    state = State(slots, loops, potentials, out, work, logs, logged, shifts, scales)
    odometer = (np.zeros(MAX_LOOPS, np.int64), np.empty(3, np.int64))
    prefetching = len(potentials) >= PREFETCH_FROM
    for at in range(begin, end):
        operation = operations[at]
        kind = operation[KIND]
        if prefetching and at + 1 < end:
            _prefetch_operands(state, operations[at + 1])
        if kind == EXPONENTIATE:
            outcome, log_scales[at] = _exponentiate_given(state, operation[LEFT])
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


# ---- Max-product -----------------------------------------------------------------------------


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
        more = _advance(count, free, 0, last, here)
    return best, p_best, q_best


@inner()
def _peak_loops(loops, operation):
    nest = _nest(loops, operation[FIRST_LOOP], operation[N_LOOPS], False)
    return _result_first(nest)


@njit(error_model="numpy", nogil=True, cache=True)
def maximise(operations, loops, slots, potentials, peaks, chosen):
    """Max-product up the tree, then the choices down: `chosen` ends as an address per slot."""
    for at in range(len(operations)):
        if operations[at, KIND] != CONTRACT:
            continue
        left, right, result = operations[at, LEFT], operations[at, RIGHT], operations[at, RESULT]
        outer, free = _peak_loops(loops, operations[at])
        p = potentials if slots[left, 0] else peaks
        q = potentials if slots[right, 0] else peaks
        here = np.array((slots[left, 1], slots[right, 1], slots[result, 1]))
        count = np.zeros(MAX_LOOPS, np.int64)
        more = True
        while more:
            peaks[here[2]] = _best_over(p, q, here, free)[0]
            more = _advance(count, outer, 0, len(outer), here)
        chosen[result] = slots[result, 1]
    for at in range(len(operations) - 1, -1, -1):
        if operations[at, KIND] != CONTRACT:
            continue
        left, right, result = operations[at, LEFT], operations[at, RIGHT], operations[at, RESULT]
        outer, free = _peak_loops(loops, operations[at])
        p = potentials if slots[left, 0] else peaks
        q = potentials if slots[right, 0] else peaks
        here = np.array((slots[left, 1], slots[right, 1], 0))
        offset = chosen[result] - slots[result, 1]
        for row in range(len(outer)):
            code = (offset // outer[row, 3]) % outer[row, 0]
            here[0] += code * outer[row, 1]
            here[1] += code * outer[row, 2]
        _, chosen[left], chosen[right] = _best_over(p, q, here, free)
