"""Arithmetic on flat vectors: each routine reads and writes every cell once.

Vectors of millions of cells do not fit the caches, so what a solver costs beside its oracle is
the number of times it walks over them, and the pages that new vectors take. Every routine here
is one walk, into a vector that the caller provides. None hands its work to a BLAS, whose threads
would wait for each other on a busy machine. Vectors on a card are handed to
`juncture.engine.gpu.arithmetic`, which does the same there.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from juncture.engine.compiled.loader import Cell, pointer, routine
from juncture.errors import InvalidInput
from juncture.tables.layout import Vector

if TYPE_CHECKING:
    from juncture.engine.gpu.arithmetic import CardArithmetic

_DOUBLE = np.dtype(np.float64)


def mix(left: Vector, right: Vector, share: float, out: Vector) -> None:
    """Compute out = left + share * (right - left)."""
    if not isinstance(left, np.ndarray):
        _find_card_arithmetic().mix(left, right, share, out)
        return
    n = out.size
    routine("mix")(
        _vector_pointer(left, n), _vector_pointer(right, n), share, _vector_pointer(out, n), n
    )


def descend(vector: Vector, slope: Vector, length: float, out: Vector) -> None:
    """Compute out = vector - length * slope."""
    if not isinstance(vector, np.ndarray):
        _find_card_arithmetic().descend(vector, slope, length, out)
        return
    n = out.size
    routine("descend")(
        _vector_pointer(vector, n), _vector_pointer(slope, n), length, _vector_pointer(out, n), n
    )


def dot(left: Vector, right: Vector) -> float:
    """The inner product."""
    if not isinstance(left, np.ndarray):
        return _find_card_arithmetic().dot(left, right)
    n = left.size
    return float(routine("dot")(_vector_pointer(left, n), _vector_pointer(right, n), n))


def quadratic(vector: Vector, centre: Vector, precision: Vector, gradient: Vector) -> float:
    """Half the weighted squared distance from the centre; its gradient goes to `gradient`."""
    if not isinstance(vector, np.ndarray):
        return _find_card_arithmetic().quadratic(vector, centre, precision, gradient)
    n = vector.size
    pointers = (_vector_pointer(each, n) for each in (vector, centre, precision, gradient))
    return float(routine("quadratic")(*pointers, n))


def quadratic_value(vector: Vector, centre: Vector, precision: Vector) -> float:
    """Half the weighted squared distance from the centre."""
    if not isinstance(vector, np.ndarray):
        return _find_card_arithmetic().quadratic_value(vector, centre, precision)
    n = vector.size
    pointers = (_vector_pointer(each, n) for each in (vector, centre, precision))
    return float(routine("quadratic_value")(*pointers, n))


def find_largest(vector: Vector) -> float:
    """The largest absolute value of the entries that are finite."""
    if not isinstance(vector, np.ndarray):
        return _find_card_arithmetic().find_largest(vector)
    return float(np.max(np.abs(vector), where=np.isfinite(vector), initial=0.0))


def find_distance(left: Vector, right: Vector) -> float:
    """The sum of absolute differences."""
    if not isinstance(left, np.ndarray):
        return _find_card_arithmetic().find_distance(left, right)
    return float(np.abs(left - right).sum())


def take_logarithms(vector: Vector, least: float, out: Vector) -> None:
    """Compute out = log(max(vector, least))."""
    if not isinstance(vector, np.ndarray):
        _find_card_arithmetic().take_logarithms(vector, least, out)
        return
    np.log(np.maximum(vector, least, out=out), out=out)


def rescale_towards(
    potentials: Vector, goal: Vector, marginals: Vector, share: float, least: float, out: Vector
) -> None:
    """Compute out = potentials + share * (goal - log(max(marginals, least)))."""
    if not isinstance(potentials, np.ndarray):
        arithmetic = _find_card_arithmetic()
        arithmetic.rescale_towards(potentials, goal, marginals, share, least, out)
        return
    take_logarithms(marginals, least, out)
    np.subtract(goal, out, out=out)
    out *= share
    out += potentials


def direct_away(slope: Vector, excluded: Vector, out: Vector) -> None:
    """Compute out = -slope, and minus infinity where that is what `excluded` has."""
    if not isinstance(slope, np.ndarray):
        _find_card_arithmetic().direct_away(slope, excluded, out)
        return
    np.copyto(out, np.where(excluded == -np.inf, -np.inf, -slope))


@cache
def _find_card_arithmetic() -> CardArithmetic:
    from juncture.engine.gpu.arithmetic import CardArithmetic  # noqa: PLC0415 - imports CuPy
    from juncture.engine.gpu.card import CupyBackend, import_cupy  # noqa: PLC0415

    return CardArithmetic(CupyBackend(import_cupy()))


def _vector_pointer(vector: Vector, size: int) -> Cell | None:
    """A pointer to a vector, which must hold `size` numbers of type float64."""
    if vector.size != size or vector.dtype != _DOUBLE:
        raise InvalidInput(
            f"`vector` must hold {size} numbers of type float64; got {vector.size} of type "
            f"{vector.dtype}. Pass it through layout.as_vector() first."
        )
    return pointer(vector)
