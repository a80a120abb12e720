"""Arithmetic on flat vectors: each routine reads and writes every cell once.

Vectors of millions of cells do not fit the caches, so what a solver costs beside its oracle is
the number of times it walks over them, and the pages that new vectors take. Every routine here
is one walk, into a vector that the caller provides. None hands its work to a BLAS, whose threads
would wait for each other on a busy machine.
"""

from __future__ import annotations

import numpy as np

from juncture.engine.compiled.loader import Cell, pointer, routine
from juncture.errors import InvalidInput
from juncture.tables.layout import Vector

_DOUBLE = np.dtype(np.float64)


def mix(left: Vector, right: Vector, share: float, out: Vector) -> None:
    """Compute out = left + share * (right - left)."""
    n = out.size
    routine("mix")(
        _vector_pointer(left, n), _vector_pointer(right, n), share, _vector_pointer(out, n), n
    )


def descend(vector: Vector, slope: Vector, length: float, out: Vector) -> None:
    """Compute out = vector - length * slope."""
    n = out.size
    routine("descend")(
        _vector_pointer(vector, n), _vector_pointer(slope, n), length, _vector_pointer(out, n), n
    )


def dot(left: Vector, right: Vector) -> float:
    """The inner product."""
    n = left.size
    return float(routine("dot")(_vector_pointer(left, n), _vector_pointer(right, n), n))


def quadratic(vector: Vector, centre: Vector, precision: Vector, gradient: Vector) -> float:
    """Half the weighted squared distance from the centre; its gradient goes to `gradient`."""
    n = vector.size
    pointers = (_vector_pointer(each, n) for each in (vector, centre, precision, gradient))
    return float(routine("quadratic")(*pointers, n))


def quadratic_value(vector: Vector, centre: Vector, precision: Vector) -> float:
    """Half the weighted squared distance from the centre."""
    n = vector.size
    pointers = (_vector_pointer(each, n) for each in (vector, centre, precision))
    return float(routine("quadratic_value")(*pointers, n))


def _vector_pointer(vector: Vector, size: int) -> Cell | None:
    """A pointer to a vector, which must hold `size` numbers of type float64."""
    if vector.size != size or vector.dtype != _DOUBLE:
        raise InvalidInput(
            f"`vector` must hold {size} numbers of type float64; got {vector.size} of type "
            f"{vector.dtype}. Pass it through layout.as_vector() first."
        )
    return pointer(vector)
