"""Query matrices written out in plain NumPy; imports nothing of ours."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def prefix(size: int) -> Array:
    """Row i adds up the values 0 to i."""
    return np.tril(np.ones((size, size)))


def ranges(size: int) -> Array:
    """A row for each lower and upper end."""
    ends = combinations_with_replacement(range(size), 2)
    return np.array([[float(low <= k <= high) for k in range(size)] for low, high in ends])


def chosen(size: int, codes: set[int]) -> Array:
    """One row with ones at the codes."""
    return np.array([[float(k in codes) for k in range(size)]])


def buckets(assignment: list[int]) -> Array:
    """A row for each bucket with ones at its values."""
    return np.array([[float(b == row) for b in assignment] for row in range(max(assignment) + 1)])


def powers(values: list[float], count: int) -> Array:
    """Rows of the first, second, ... power of the values."""
    return np.array([[value**k for value in values] for k in range(1, count + 1)])


def total_weights(matrix: Array) -> Array | None:
    """By the pseudo-inverse: the smallest w with w @ matrix = 1, if there is one."""
    ones = np.ones(matrix.shape[1])
    weights = ones @ np.linalg.pinv(matrix)
    return weights if np.allclose(weights @ matrix, ones, atol=1e-8) else None


def largest_eigenvalue(matrix: Array) -> float:
    """The square of the largest singular value."""
    return float(np.linalg.norm(matrix, 2) ** 2)
