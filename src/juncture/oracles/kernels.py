"""The compiled routines of exact message passing.

One program, compiled once, runs every structure: which tables to multiply, along which axes,
is data (`juncture.oracles.program`), not code. All of it lies in this one file, because the
compiler's cache notices changes of the file that holds the entry point and of no other.

Numbers. A table is held as ordinary numbers scaled so that its largest entry is 1, and the
logarithm of the scale is kept apart. Entries that are far below the largest lose nothing that
matters to it, but they may matter to a later product that suppresses the large ones. So after
each product every entry below `TINY` is computed again from the logarithms of its operands,
exactly, and a table that has entries too small for a floating-point number carries its
logarithms along (it is "wide"). With operands below 1 and entries flushed at e^-708, an entry
of at least `TINY` = 1e-280 has a relative error of no more than 1e-20 per term from flushing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# Columns of the table of operations.
KIND, LEFT, RIGHT, RESULT, ADJOINT, COLLECTED, FIRST_LOOP, N_LOOPS = range(8)
# Kinds of operations.
EXPONENTIATE, CONTRACT, ABSORB, FINISH = range(4)
# Columns of the table of loops: extent, then the strides of the three operands.
# Columns of the table of tables: in potentials' space or not, offset, cells.
# Outcomes.
DONE, NEEDS_LOGARITHMS, IMPOSSIBLE = range(3)

TINY = 1e-280
FLUSHED = -708.0
SMALLEST_MASS = 1e-250
MAX_LOOPS = 64

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer
_EXPONENT_OF_ONE = 0x3FF0000000000000
_ALL_BUT_SIGN = 0x7FFFFFFFFFFFFFFF
_LOWEST = -(2**63)

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


@njit
def _maximum(values, start, stop):
    """The largest entry. Floats are compared as integers, which compiles to vector code."""
    best = _LOWEST
    for i in range(U(start), U(stop)):
        bits = _bits(values[i])
        best = max(best, bits ^ ((bits >> 63) & _ALL_BUT_SIGN))
    return _from_bits(best ^ ((best >> 63) & _ALL_BUT_SIGN))


@njit(fastmath={"contract"})
def _exponentiate(potentials, out, start, stop, shift):
    """out = exp(potentials - shift), entries below e^-708 flushed to zero."""
    for i in range(U(start), U(stop)):
        x = potentials[i] - shift
        y = fast_exp(max(x, FLUSHED))
        out[i] = y if x > FLUSHED else 0.0


@njit(fastmath=_FAST)
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


@njit(fastmath=_FAST)
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


@njit(fastmath=_FAST)
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


@njit(fastmath=_FAST)
def _add_sums(p, p_at, s, s_at, r, r_at, n1, p1, s1, r1, n0):
    """r[i] += s[i] * sum(p[i, :])."""
    for i in range(n1):
        a = U(p_at + i * p1)
        total = 0.0
        for j in range(U(n0)):
            total += p[a + j]
        r[U(r_at + i * r1)] += total * s[U(s_at + i * s1)]


@njit
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


@njit
def _contract(p, p_at, q, q_at, r, r_at, loops, first, n_loops, odometer):
    """r += p * q along all loops."""
    count, at = odometer
    at[0], at[1], at[2] = p_at, q_at, r_at
    i, j = first + n_loops - 2, first + n_loops - 1
    more = True
    while more:
        _add_products(
            p, at[0], q, at[1], r, at[2],
            loops[i, 0], loops[i, 1], loops[i, 2], loops[i, 3],
            loops[j, 0], loops[j, 1], loops[j, 2], loops[j, 3],
        )  # fmt: skip
        more = _advance(count, loops, first, n_loops - 2, at)


@njit(fastmath=_FAST)
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


@njit
def _absorb(x, x_at, q, q_at, c, c_at, d, d_at, loops, first, n_loops, scale, keep, odometer):
    """Turn the table x into its marginal in place, and collect the derivative d of q."""
    count, at = odometer
    at[0], at[1], at[2] = x_at, q_at, c_at
    i, j = first + n_loops - 2, first + n_loops - 1
    more = True
    while more:
        _absorb_rows(
            x, at[0], q, at[1], c, at[2], d, d_at + at[1] - q_at,
            loops[i, 0], loops[i, 1], loops[i, 2], loops[i, 3],
            loops[j, 0], loops[j, 2], loops[j, 3], scale, keep,
        )  # fmt: skip
        more = _advance(count, loops, first, n_loops - 2, at)


@njit
def _logarithm(slot, at, tables, potentials, shifts, work, logs, wide):
    """The logarithm of one entry of a table, exactly."""
    if tables[slot, 0] == 1:
        return potentials[at] - shifts[slot]
    if wide[slot]:
        return logs[at]
    return math.log(work[at]) if work[at] > 0.0 else -np.inf


@njit
def _by_result(loops, first, n_loops, left, right, result):
    """A copy of the loops with those of the result first; returns it and their number."""
    ordered = np.empty((n_loops, 4), np.int64)
    place = n_result = 0
    for summed in range(2):
        for row in range(first, first + n_loops):
            if (loops[row, result] == 0) == (summed == 1):
                ordered[place, 0] = loops[row, 0]
                ordered[place, 1] = loops[row, left]
                ordered[place, 2] = loops[row, right]
                ordered[place, 3] = loops[row, result]
                place += 1
        if summed == 0:
            n_result = place
    return ordered, n_result


@njit
def _log_sum(p_slot, q_slot, at, inner, n_inner, tables, potentials, shifts, work, logs, wide):
    """log(sum(exp(log p + log q))) over the inner loops, at fixed outer position."""
    count = np.zeros(MAX_LOOPS, np.int64)
    here = at.copy()
    peak, total = -np.inf, 0.0
    more = True
    while more:
        x = _logarithm(p_slot, here[0], tables, potentials, shifts, work, logs, wide)
        if x > -np.inf:
            x += _logarithm(q_slot, here[1], tables, potentials, shifts, work, logs, wide)
        if x > peak:
            total = total * math.exp(peak - x) + 1.0
            peak = x
        elif x > -np.inf:
            total += math.exp(x - peak)
        more = _advance(count, inner, 0, n_inner, here)
    return peak + math.log(total) if peak > -np.inf else -np.inf


@njit
def _repair(
    p_slot, q_slot, r_slot, ordered, n_result,
    tables, potentials, shifts, work, logs, wide,
):  # fmt: skip
    """Compute the entries of r below TINY again from logarithms.

    Returns whether r has become wide, or -1 when the space for logarithms is missing.
    """
    start = tables[r_slot, 1]
    count = np.zeros(MAX_LOOPS, np.int64)
    at = np.empty(3, np.int64)
    at[0], at[1], at[2] = tables[p_slot, 1], tables[q_slot, 1], start
    inner, n_inner = ordered[n_result:], len(ordered) - n_result
    found, more = 0, True
    while more:
        if work[at[2]] < TINY:
            value = _log_sum(
                p_slot, q_slot, at, inner, n_inner,
                tables, potentials, shifts, work, logs, wide,
            )  # fmt: skip
            work[at[2]] = -1.0
            if value > -np.inf and len(logs) == 0:
                return -1
            if value > -np.inf:
                found = 1
                logs[at[2]] = value
            else:
                work[at[2]] = 0.0
        more = _advance(count, ordered, 0, n_result, at)
    if found:
        for i in range(start, start + tables[r_slot, 2]):
            if work[i] >= 0.0:
                logs[i] = math.log(work[i]) if work[i] > 0.0 else -np.inf
    return found


@njit
def _normalise_logs(start, size, work, logs):
    """Shift the logarithms so that the largest is 0, and set the ordinary numbers from them."""
    peak = _maximum(logs, start, start + size)
    for i in range(start, start + size):
        logs[i] -= peak
        work[i] = math.exp(logs[i]) if logs[i] > FLUSHED else 0.0
    return peak


@njit
def _extremes(values, start, stop):
    """The smallest and the largest of entries that are not negative (see _maximum)."""
    low, high = _ALL_BUT_SIGN, _LOWEST
    for i in range(U(start), U(stop)):
        bits = _bits(values[i])
        low = min(low, bits)
        high = max(high, bits)
    return _from_bits(low), _from_bits(high)


@njit
def _settle(
    p_slot, q_slot, r_slot, loops, first, n_loops, columns,
    tables, potentials, shifts, work, logs, wide, scales,
):  # fmt: skip
    """Repair and scale a fresh product; returns outcome and the logarithm of its scale."""
    start, size = tables[r_slot, 1], tables[r_slot, 2]
    low, high = _extremes(work, start, start + size)
    wide[r_slot] = 0
    if low < TINY:
        ordered, n_result = _by_result(loops, first, n_loops, columns[0], columns[1], columns[2])
        found = _repair(
            p_slot, q_slot, r_slot, ordered, n_result,
            tables, potentials, shifts, work, logs, wide,
        )  # fmt: skip
        if found < 0:
            return NEEDS_LOGARITHMS, 0.0
        if found:
            wide[r_slot] = 1
            peak = _normalise_logs(start, size, work, logs)
            scales[r_slot] = math.exp(peak)
            return DONE, peak
    if high == 0.0:
        return IMPOSSIBLE, 0.0
    scales[r_slot] = high
    inverse = 1.0 / high
    for i in range(U(start), U(start + size)):
        work[i] *= inverse
    return DONE, math.log(high)


@njit(fastmath=_FAST)
def _dot(p, p_at, q, q_at, n):
    total, a, b = 0.0, U(p_at), U(q_at)
    for i in range(U(n)):
        total += p[a + i] * q[b + i]
    return total


@njit(fastmath=_FAST)
def _scale_by(x, x_at, d, d_at, n, scale):
    """x *= d * scale."""
    a, b = U(x_at), U(d_at)
    for i in range(U(n)):
        x[a + i] *= d[b + i] * scale


@njit
def _fill_zero(values, start, size):
    for i in range(U(start), U(start + size)):
        values[i] = 0.0


@njit
def _log_marginal(
    x_slot, q_slot, c_slot, out, loops, first, n_loops, total,
    tables, potentials, shifts, work, logs, wide,
):  # fmt: skip
    """The marginal of a given table from logarithms alone, for when its mass underflows."""
    start, size = tables[x_slot, 1], tables[x_slot, 2]
    count = np.zeros(MAX_LOOPS, np.int64)
    at = np.empty(3, np.int64)
    at[0], at[1], at[2] = start, tables[q_slot, 1], tables[c_slot, 1]
    more = True
    while more:
        x = _logarithm(x_slot, at[0], tables, potentials, shifts, work, logs, wide)
        if x > -np.inf:
            x += _logarithm(q_slot, at[1], tables, potentials, shifts, work, logs, wide)
        if x > -np.inf:
            x += _logarithm(c_slot, at[2], tables, potentials, shifts, work, logs, wide)
        out[at[0]] = x
        more = _advance(count, loops, first, n_loops, at)
    peak = _maximum(out, start, start + size)
    mass = 0.0
    for i in range(start, start + size):
        out[i] = math.exp(out[i] - peak)
        mass += out[i]
    for i in range(start, start + size):
        out[i] *= total / mass


@njit(nogil=True, cache=True)
def run(
    begin, end, operations, loops, tables, total,
    potentials, out, work, logs, wide, shifts, scales, log_scales,
):  # fmt: skip
    """Run the operations from `begin` to `end`; `out` ends as the marginals of the potentials."""
    odometer = (np.zeros(MAX_LOOPS, np.int64), np.empty(3, np.int64))
    forward = np.array((1, 2, 3))
    backward = np.array((1, 3, 2))
    for at in range(begin, end):
        row = operations[at]
        kind, left, right, result = row[KIND], row[LEFT], row[RIGHT], row[RESULT]
        first, n_loops = row[FIRST_LOOP], row[N_LOOPS]
        if kind == EXPONENTIATE:
            start, stop = tables[left, 1], tables[left, 1] + tables[left, 2]
            shift = _maximum(potentials, start, stop)
            if shift == -np.inf:
                return IMPOSSIBLE
            shifts[left] = shift
            _exponentiate(potentials, out, start, stop, shift)
            log_scales[at] = shift
        elif kind == CONTRACT:
            p = out if tables[left, 0] else work
            q = out if tables[right, 0] else work
            r_at = tables[result, 1]
            _fill_zero(work, r_at, tables[result, 2])
            _contract(
                p, tables[left, 1], q, tables[right, 1], work, r_at, loops, first, n_loops, odometer
            )
            outcome, scale = _settle(
                left, right, result, loops, first, n_loops, forward,
                tables, potentials, shifts, work, logs, wide, scales,
            )  # fmt: skip
            if outcome != DONE:
                return outcome
            log_scales[at] = scale
        elif kind == ABSORB:
            # left is the given table, right the other operand, result the step's result.
            adjoint, collected = row[ADJOINT], row[COLLECTED]
            c_at = tables[adjoint, 1]
            mass = scales[result] * _dot(work, tables[result, 1], work, c_at, tables[result, 2])
            keep = collected >= 0
            d_at = tables[collected, 1] if keep else 0
            if keep:
                _fill_zero(work, d_at, tables[collected, 2])
            if mass >= SMALLEST_MASS:
                q = out if tables[right, 0] else work
                _absorb(
                    out, tables[left, 1], q, tables[right, 1], work, c_at, work, d_at,
                    loops, first, n_loops, total / mass, keep, odometer,
                )  # fmt: skip
            if keep:
                outcome, _ = _settle(
                    left, adjoint, collected, loops, first, n_loops, backward,
                    tables, potentials, shifts, work, logs, wide, scales,
                )  # fmt: skip
                if outcome != DONE:
                    return outcome
            if mass < SMALLEST_MASS:
                _log_marginal(
                    left, right, adjoint, out, loops, first, n_loops, total,
                    tables, potentials, shifts, work, logs, wide,
                )  # fmt: skip
        else:
            # FINISH: left is the given table, right its derivative, cell by cell.
            start, size, d_at = tables[left, 1], tables[left, 2], tables[right, 1]
            mass = _dot(out, start, work, d_at, size)
            if mass >= SMALLEST_MASS:
                _scale_by(out, start, work, d_at, size, total / mass)
            else:
                _log_marginal(
                    left, result, right, out, loops, first, n_loops, total,
                    tables, potentials, shifts, work, logs, wide,
                )  # fmt: skip
    return DONE


@njit
def _best_over(p, q, at, inner):
    """The largest p + q over the inner loops from a fixed position, and both addresses there."""
    count = np.zeros(MAX_LOOPS, np.int64)
    here = at.copy()
    best, p_best, q_best = -np.inf, at[0], at[1]
    last = len(inner) - 1
    more = True
    while more:
        a, b = here[0], here[1]
        for _ in range(inner[last, 0]):
            value = p[a] + q[b]
            if value > best:
                best, p_best, q_best = value, a, b
            a += inner[last, 1]
            b += inner[last, 2]
        more = _advance(count, inner, 0, last, here)
    return best, p_best, q_best


@njit
def _split_loops(loops, first, n_loops):
    """Loops of the result, and loops that are maximised over (at least one of extent 1)."""
    ordered, n_result = _by_result(loops, first, n_loops, 1, 2, 3)
    if n_result < n_loops:
        return ordered[:n_result], ordered[n_result:]
    single = np.zeros((1, 4), np.int64)
    single[0, 0] = 1
    return ordered, single


@njit(nogil=True, cache=True)
def maximise(operations, loops, tables, potentials, peaks, chosen):
    """Max-product up the tree, then the choices down: `chosen` ends as an address per slot."""
    for at in range(len(operations)):
        if operations[at, KIND] != CONTRACT:
            continue
        left, right, result = operations[at, LEFT], operations[at, RIGHT], operations[at, RESULT]
        outer, inner = _split_loops(loops, operations[at, FIRST_LOOP], operations[at, N_LOOPS])
        p = potentials if tables[left, 0] else peaks
        q = potentials if tables[right, 0] else peaks
        here = np.array((tables[left, 1], tables[right, 1], tables[result, 1]))
        count = np.zeros(MAX_LOOPS, np.int64)
        more = True
        while more:
            peaks[here[2]] = _best_over(p, q, here, inner)[0]
            more = _advance(count, outer, 0, len(outer), here)
        chosen[result] = tables[result, 1]
    for at in range(len(operations) - 1, -1, -1):
        if operations[at, KIND] != CONTRACT:
            continue
        left, right, result = operations[at, LEFT], operations[at, RIGHT], operations[at, RESULT]
        outer, inner = _split_loops(loops, operations[at, FIRST_LOOP], operations[at, N_LOOPS])
        p = potentials if tables[left, 0] else peaks
        q = potentials if tables[right, 0] else peaks
        here = np.array((tables[left, 1], tables[right, 1], 0))
        offset = chosen[result] - tables[result, 1]
        for row in range(len(outer)):
            code = (offset // outer[row, 3]) % outer[row, 0]
            here[0] += code * outer[row, 1]
            here[1] += code * outer[row, 2]
        _, chosen[left], chosen[right] = _best_over(p, q, here, inner)
