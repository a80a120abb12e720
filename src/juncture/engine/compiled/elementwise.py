"""Vector code: the exponential function, extremes and sums of stretches of an array.

Everything here is compiled. Two facts shape it. Signed indices make the compiler test each one
for being negative, which costs the vector instructions; so every address is unsigned where it
meets an array. And floats are compared as integers where a largest one is sought, because the
compiler keeps that in vector registers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from juncture.engine.compiled.opcodes import MAX_LOOPS

# Routines that only other compiled routines call need no entry point, which saves compiling one.
# They have no expressions of whole arrays, which rewriting would look for.
inner = partial(
    njit, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, no_rewrites=True
)

U = np.uint64

# Sums may be reordered and products fused; infinities and not-a-number keep their meaning.
FAST = {"reassoc", "contract", "nsz"}

# Numbers below e**FLUSHED count as zero.
FLUSHED = -708.0
# At most this many cells of a table are asked for ahead of its use.
MAX_PREFETCHED = 4096

LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer
EXPONENT_OF_ONE = 0x3FF0000000000000
_ALL_BUT_SIGN = 0x7FFFFFFFFFFFFFFF
_LOWEST = -(2**63)


@intrinsic
def bits_of(_typingctx: Any, _value: Any) -> Any:
    """The bit pattern of a float."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def count_ones(_typingctx: Any, _value: Any) -> Any:
    """The number of bits that are set in an integer."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        function = builder.module.declare_intrinsic("llvm.ctpop", [word])
        return builder.call(function, arguments)

    return types.int64(types.int64), generate


@intrinsic
def trailing_zeros(_typingctx: Any, _value: Any) -> Any:
    """The position of the lowest bit that is set in an integer other than zero."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word, flag = ir.IntType(64), ir.IntType(1)
        kind = ir.FunctionType(word, [word, flag])
        function = builder.module.declare_intrinsic("llvm.cttz", [word], kind)
        return builder.call(function, [arguments[0], flag(1)])

    return types.uint64(types.int64), generate


@intrinsic
def from_bits(_typingctx: Any, _value: Any) -> Any:
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


@intrinsic
def stack_cells(_typingctx: Any) -> Any:
    """Room for a few integers that lasts until the calling routine returns.

    Compiled routines allocate nothing, so that their machine code can stand alone.
    """

    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        return cgutils.alloca_once(builder, ir.IntType(64), size=4 * MAX_LOOPS)

    return types.CPointer(types.int64)(), generate


@inner()
def prefetch_table(values, start, size):
    """Ask for the first part of a table, a line of eight numbers at a time."""
    for line in range(min(size, MAX_PREFETCHED) >> 3):
        _prefetch(values, U(start + (line << 3)))


@njit(fastmath={"contract"})
def fast_exp(x):
    """e**x for x in [-708, 700], within two units in the last place; compiles to vector code.

    x = k ln 2 + r with |r| <= ln(2)/2; a polynomial of degree 11, interpolated at Chebyshev
    nodes (relative error 4e-18), gives e**r, and 2**k is written into the exponent bits.
    """
    t = x * LOG2E + ROUND
    k = t - ROUND
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r * 1.0) + r2 * (0.5000000000000019 + r * 0.1666666666666668)
    middle = (0.04166666666648738 + r * 0.008333333333319546) + r2 * (
        0.0013888888952505406 + r * 0.00019841269890193705
    )
    high = (2.4801485278370062e-05 + r * 2.7557240761739257e-06) + r2 * (
        2.7632715071632255e-07 + r * 2.5110095611886237e-08
    )
    return (low + r4 * (middle + r4 * high)) * from_bits((bits_of(t) << 52) + EXPONENT_OF_ONE)


@inner(fastmath={"contract"})
def flushed_exp(x):
    """e**x for x up to 700; below e^-708 it is zero."""
    y = fast_exp(FLUSHED if x < FLUSHED else x)  # in this form, not-a-number passes through
    return 0.0 if x < FLUSHED else y


@inner(fastmath={"contract"})
def exponentiate(potentials, out, start, stop, shift):
    """Compute out = exp(potentials - shift), entries below e^-708 flushed to zero."""
    for i in range(U(start), U(stop)):
        out[i] = flushed_exp(potentials[i] - shift)


@inner()
def order_key(x):
    """An integer for each float, in the same order; comparing them compiles to vector code."""
    key = bits_of(x)
    return key ^ ((key >> 63) & _ALL_BUT_SIGN)


@inner()
def from_key(key):
    """The float of an `order_key`."""
    return from_bits(key ^ ((key >> 63) & _ALL_BUT_SIGN))


@inner()
def maximum(values, start, stop):
    """The largest entry."""
    best = _LOWEST
    for i in range(U(start), U(stop)):
        best = max(best, order_key(values[i]))
    return from_key(best)


@inner()
def smallest_finite(values, start, stop):
    """The smallest entry other than minus infinity, or plus infinity if there is none."""
    best = _ALL_BUT_SIGN
    for i in range(U(start), U(stop)):
        x = values[i]
        best = min(best, order_key(np.inf if x == -np.inf else x))
    return from_key(best)


@inner()
def smallest_positive(values, start, stop):
    """The smallest entry other than zero, or plus infinity if there is none."""
    best = _ALL_BUT_SIGN
    for i in range(U(start), U(stop)):
        x = values[i]
        best = min(best, bits_of(np.inf if x == 0.0 else x))
    return from_bits(best)


@inner()
def extremes(values, start, size):
    """The smallest and the largest of entries that are not negative (see maximum)."""
    low, high = _ALL_BUT_SIGN, _LOWEST
    for i in range(U(start), U(start + size)):
        key = bits_of(values[i])
        low = min(low, key)
        high = max(high, key)
    return from_bits(low), from_bits(high)


@inner()
def fill(values, start, size, value):
    """Set a stretch of an array to a value."""
    for i in range(U(start), U(start + size)):
        values[i] = value


@inner()
def clear(values):
    """Set a small array to zero."""
    for i in range(len(values)):
        values[i] = 0


@inner(fastmath=FAST)
def dot(p, p_at, q, q_at, n):
    """The inner product of two stretches."""
    total, a, b = 0.0, U(p_at), U(q_at)
    for i in range(U(n)):
        total += p[a + i] * q[b + i]
    return total


@inner(fastmath=FAST)
def rescale(values, start, size, factor):
    """Multiply a stretch of an array by a factor."""
    for i in range(U(start), U(start + size)):
        values[i] *= factor


@inner(fastmath=FAST)
def multiply(x, x_at, d, d_at, n, factor):
    """Compute x *= d * factor on two stretches."""
    a, b = U(x_at), U(d_at)
    for i in range(U(n)):
        x[a + i] *= d[b + i] * factor


@inner()
def advance(count, loops, first, n_outer, at):
    """Move the outer loops by one tick, and the three addresses with them; False at the end."""
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
