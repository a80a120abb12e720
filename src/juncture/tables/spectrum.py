"""Properties of linear maps that are given only as functions on vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Map = Callable[[Array], Array]

# Up to this size a matrix is formed and treated exactly.
_DENSE = 512
# Weights for the total are accepted when they reproduce the all-ones row this well.
_TOLERANCE = 1e-8


def largest_eigenvalue(gram: Map, size: int) -> float:
    """The largest eigenvalue of a symmetric map that has no negative ones."""
    if size <= _DENSE:
        return float(np.linalg.eigvalsh(_matrix(gram, size))[-1])
    from scipy.sparse.linalg import LinearOperator, eigsh  # noqa: PLC0415  slow to import

    operator = LinearOperator((size, size), matvec=gram, dtype=np.float64)
    start = np.random.default_rng(0).random(size)
    return float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0])


def total_weights(apply: Map, adjoint: Map, n_rows: int, size: int) -> Array | None:
    """The smallest weights whose adjoint is the all-ones vector, if there are any."""
    ones = np.ones(size)
    if size <= _DENSE:
        gram = _matrix(lambda x: adjoint(apply(x)), size)
        weights = apply(np.asarray(np.linalg.lstsq(gram, ones, rcond=None)[0], np.float64))
    else:
        from scipy.sparse.linalg import LinearOperator, lsqr  # noqa: PLC0415  slow to import

        operator = LinearOperator((size, n_rows), matvec=adjoint, rmatvec=apply, dtype=np.float64)
        weights = lsqr(operator, ones, atol=1e-13, btol=1e-13, iter_lim=20 * size)[0]
    exact = np.allclose(adjoint(weights), ones, rtol=0, atol=_TOLERANCE)
    return np.asarray(weights) if exact else None


def _matrix(linear: Map, size: int) -> Array:
    return np.array([linear(unit) for unit in np.eye(size)]).reshape(size, -1).T
