"""Compiled arithmetic on flat vectors: each routine reads and writes every cell once.

Vectors of millions of cells do not fit the caches, so what a solver costs beside its oracle is
the number of times it walks over them, and the pages that new vectors take. Every routine here
is one walk, into a vector that the caller provides.
"""

from __future__ import annotations

from numba import njit

from juncture.oracles.vector import FAST, U


@njit(error_model="numpy", fastmath=FAST, nogil=True, cache=True)
def mix(left, right, share, out):
    """out = left + share * (right - left)."""
    for i in range(U(len(out))):
        out[i] = left[i] + share * (right[i] - left[i])


@njit(error_model="numpy", fastmath=FAST, nogil=True, cache=True)
def descend(vector, slope, length, out):
    """out = vector - length * slope."""
    for i in range(U(len(out))):
        out[i] = vector[i] - length * slope[i]


@njit(error_model="numpy", fastmath=FAST, nogil=True, cache=True)
def dot(left, right):
    """The inner product.

    A BLAS would start threads of its own for it, which wait for each other on a busy machine.
    """
    total = 0.0
    for i in range(U(len(left))):
        total += left[i] * right[i]
    return total


@njit(error_model="numpy", fastmath=FAST, nogil=True, cache=True)
def quadratic(vector, centre, precision, gradient):
    """Half the weighted squared distance from the centre; its gradient goes to `gradient`."""
    total = 0.0
    for i in range(U(len(vector))):
        distance = vector[i] - centre[i]
        slope = precision[i] * distance
        gradient[i] = slope
        total += distance * slope
    return 0.5 * total


@njit(error_model="numpy", fastmath=FAST, nogil=True, cache=True)
def quadratic_value(vector, centre, precision):
    """Half the weighted squared distance from the centre."""
    total = 0.0
    for i in range(U(len(vector))):
        distance = vector[i] - centre[i]
        total += distance * distance * precision[i]
    return 0.5 * total
