"""Compiled arithmetic on flat vectors; `juncture.engine.vector_ops` is how Python calls it."""

from __future__ import annotations

from juncture.engine.compiled.elementwise import FAST, U, inner

SHORT = 64  # numbers; the widest step of a compiled loop takes 32


@inner(fastmath=FAST)
def mix(left, right, share, out):
    """Compute out = left + share * (right - left)."""
    for i in range(U(len(out))):
        out[i] = left[i] + share * (right[i] - left[i])


@inner(fastmath=FAST)
def descend(vector, slope, length, out):
    """Compute out = vector - length * slope."""
    for i in range(U(len(out))):
        out[i] = vector[i] - length * slope[i]


@inner(fastmath=FAST)
def dot(left, right):
    """The inner product."""
    total = 0.0
    for i in range(U(len(left))):
        total += left[i] * right[i]
    return total


@inner(fastmath=FAST)
def quadratic_value(vector, centre, precision):
    """Half the weighted squared distance from the centre."""
    total = 0.0
    for i in range(U(len(vector))):
        distance = vector[i] - centre[i]
        total += distance * distance * precision[i]
    return 0.5 * total


@inner(fastmath=FAST)
def quadratic(vector, centre, precision, gradient):
    """Half the weighted squared distance from the centre; its gradient goes to `gradient`.

    A loop that adds and writes is compiled twice, with vectors and without, and takes the second
    where `gradient` begins a few numbers behind `vector`. So short vectors are added by a loop that
    writes nothing: the order of a sum, and so its last bit, must not depend on addresses.
    """
    n = U(len(vector))
    if n < SHORT:
        descend(vector, centre, 1.0, gradient)
        for i in range(n):
            gradient[i] *= precision[i]
        return quadratic_value(vector, centre, precision)
    total = 0.0
    for i in range(n):
        distance = vector[i] - centre[i]
        slope = precision[i] * distance
        gradient[i] = slope
        total += distance * slope
    return 0.5 * total
