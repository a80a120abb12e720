"""Arithmetic on flat vectors that lie on a card: see `juncture.engine.vector_ops`.

The kernels are those of `kernels.cu`. A reduction leaves a sum for each block, in double precision
whatever the vectors hold, and these few are added here.
"""

from __future__ import annotations

import numpy as np

from juncture.engine.gpu.kernel_runner import Backend
from juncture.engine.gpu.opcodes import LANES
from juncture.engine.gpu.runner import Array

# Blocks of a kernel over a whole vector.
_MAX_BLOCKS = 1056
_NOTHING = np.int64(0)


class CardArithmetic:
    """The routines of `vector_ops`, for the arrays of one backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._parts = backend.make(_MAX_BLOCKS, np.dtype(np.float64))

    def mix(self, left: Array, right: Array, share: float, out: Array) -> None:
        """Compute out = left + share * (right - left)."""
        self._start("mix", out, left, right, np.float64(share), out)

    def descend(self, vector: Array, slope: Array, length: float, out: Array) -> None:
        """Compute out = vector - length * slope."""
        self._start("descend", out, vector, slope, np.float64(length), out)

    def dot(self, left: Array, right: Array) -> float:
        """The inner product."""
        return float(self._reduce("dot", left, left, right).sum())

    def quadratic(self, vector: Array, centre: Array, precision: Array, gradient: Array) -> float:
        """Half the weighted squared distance from the centre; its gradient goes to `gradient`."""
        return float(self._reduce("quadratic", vector, vector, centre, precision, gradient).sum())

    def quadratic_value(self, vector: Array, centre: Array, precision: Array) -> float:
        """Half the weighted squared distance from the centre."""
        return float(self._reduce("quadratic", vector, vector, centre, precision, _NOTHING).sum())

    def find_largest(self, vector: Array) -> float:
        """The largest absolute value of the entries that are finite."""
        return float(self._reduce("find_largest", vector, vector).max(initial=0.0))

    def find_distance(self, left: Array, right: Array) -> float:
        """The sum of absolute differences."""
        return float(self._reduce("distance", left, left, right).sum())

    def take_logarithms(self, vector: Array, least: float, out: Array) -> None:
        """Compute out = log(max(vector, least))."""
        self._start("take_logarithms", out, vector, np.float64(least), out)

    def rescale_towards(
        self, potentials: Array, goal: Array, marginals: Array, share: float, least: float,
        out: Array,
    ) -> None:  # fmt: skip
        """Compute out = potentials + share * (goal - log(max(marginals, least)))."""
        numbers = np.float64(share), np.float64(least)
        self._start("rescale_towards", out, potentials, goal, marginals, *numbers, out)

    def direct_away(self, slope: Array, excluded: Array, out: Array) -> None:
        """Compute out = -slope, and minus infinity where that is what `excluded` has."""
        self._start("direct_away", out, slope, excluded, out)

    def _start(self, kernel: str, vector: Array, *arguments: Array) -> int:
        """Start a kernel for the kind of numbers of a vector; returns its blocks."""
        kind = "float" if vector.dtype == np.float32 else "double"
        blocks = max(1, min(_MAX_BLOCKS, -(-int(vector.size) // LANES)))
        self._backend.start(f"{kernel}_{kind}", blocks, *arguments, np.int64(vector.size))
        return blocks

    def _reduce(self, kernel: str, vector: Array, *arguments: Array) -> np.ndarray:
        blocks = self._start(kernel, vector, *arguments, self._parts)
        return self._backend.fetch(self._parts)[:blocks]
