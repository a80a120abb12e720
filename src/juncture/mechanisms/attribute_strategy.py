"""What to measure on one attribute so that its queries have the smallest error.

A strategy is a matrix A whose columns have norm 1: the L1 norm for Laplace noise, the L2 norm for
Gaussian noise. With noise of variance v on its rows, the expected squared error of queries with
Gram matrix V = W'W is v tr[(A'A)^-1 V]. For Laplace noise, strategies A = [I; T] D, with T a few
rows without negative entries and D dividing each column by its sum, are optimised by gradients
(McKenna, Miklau, Hay and Machanavajjhala 2018). For Gaussian noise any matrix is allowed, and the
problem is convex in A'A. Nothing here looks at data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from juncture.tables.queries.blocks import Block, Identity, Matrix, Total

Array = NDArray[np.float64]

# One extra row for this many values, at least one: the published rule of the method's authors.
_VALUES_PER_ROW = 16
# Rows with smaller entries add nothing to the identity, and would vanish on a coarse lattice.
_MIN_ENTRY = 0.01
# Beyond this size a square matrix for Gaussian noise takes too long to optimise.
_MAX_SQUARE = 256


@dataclass(frozen=True, eq=False)
class AttributeStrategy:
    """A block to measure on one attribute, and its error on the attribute's workload."""

    block: Block
    error: float
    """The trace of the inverse Gram matrix times the workload's, times the squared norm."""


def gram(block: Block, size: int) -> Array:
    """The Gram matrix of a block: its transposed matrix times the matrix."""
    matrix = block.matrix(size)
    return np.asarray(matrix.T @ matrix)


def trace_error(strategy: Array, workload_gram: Array) -> float:
    """The squared L1 norm of a strategy times its trace; infinite where it cannot answer."""
    inverse = np.linalg.pinv(strategy.T @ strategy)
    supported = np.allclose(workload_gram @ inverse @ (strategy.T @ strategy), workload_gram)
    norm = float(np.abs(strategy).sum(axis=0).max())
    return norm**2 * float(np.trace(inverse @ workload_gram)) if supported else math.inf


def p_identity(theta: Array) -> Array:
    """The identity with the rows of theta below it, and columns divided by their sums."""
    stacked = np.vstack([np.eye(theta.shape[1]), theta])
    return np.asarray(stacked / stacked.sum(axis=0))


def p_identity_error(theta: Array, workload_gram: Array) -> tuple[float, Array]:
    """The trace of a p-identity strategy, and its gradient, in closed form."""
    p = len(theta)
    sums = 1.0 + theta.sum(axis=0)
    scaled = workload_gram * np.multiply.outer(sums, sums)
    small = np.eye(p) + theta @ theta.T
    inner = np.linalg.solve(small, theta)
    b = inner @ scaled
    diagonal = (np.diag(scaled) - (theta * b).sum(axis=0)) / sums
    value = float(np.trace(scaled) - (theta * b).sum())
    return value, -2.0 * (b - (b @ theta.T) @ inner) + 2.0 * diagonal[None, :]


def normalised_error(free: Array, workload_gram: Array) -> tuple[float, Array]:
    """The trace of a square matrix with columns scaled to L2 norm 1, and its gradient."""
    norms = np.sqrt((free**2).sum(axis=0))
    strategy = free / norms
    try:
        inverse = np.linalg.inv(strategy.T @ strategy)
    except np.linalg.LinAlgError:
        return math.inf, np.zeros_like(free)
    value = float((inverse * workload_gram).sum())
    if not (math.isfinite(value) and value > 0.0):
        return math.inf, np.zeros_like(free)
    slope = -2.0 * strategy @ (inverse @ workload_gram @ inverse)
    return value, (slope - strategy * (strategy * slope).sum(axis=0)) / norms


def optimise_attribute(
    block: Block, size: int, *, gaussian: bool = False, restarts: int = 5, seed: int = 0
) -> AttributeStrategy:
    """The best strategy found for one attribute."""
    if isinstance(block, Identity):
        return AttributeStrategy(block, float(size))
    if isinstance(block, Total):
        return AttributeStrategy(block, 1.0)
    if isinstance(block, Matrix):
        return optimise_gram(gram(block, size), gaussian=gaussian, restarts=restarts, seed=seed)
    return _optimise_cached(block, size, gaussian, restarts, seed)


@lru_cache(maxsize=256)
def _optimise_cached(
    block: Block, size: int, gaussian: bool, restarts: int, seed: int
) -> AttributeStrategy:
    return optimise_gram(gram(block, size), gaussian=gaussian, restarts=restarts, seed=seed)


def optimise_gram(
    workload_gram: Array, *, gaussian: bool = False, restarts: int = 5, seed: int = 0,
    rows: int | None = None,
) -> AttributeStrategy:  # fmt: skip
    """The best strategy found for a Gram matrix: the identity, the total, or an optimised one."""
    size = len(workload_gram)
    best = AttributeStrategy(Identity(), float(np.trace(workload_gram)))
    ones = trace_error(np.ones((1, size)), workload_gram)
    if ones < best.error:
        best = AttributeStrategy(Total(), ones)
    # Scaled, so that the solver's tolerances mean the same for every workload.
    unit = float(np.trace(workload_gram)) or 1.0
    if gaussian and size <= _MAX_SQUARE:
        strategy = _optimise_gaussian(workload_gram / unit)
    else:
        p = max(1, size // _VALUES_PER_ROW) if rows is None else rows
        strategy = _optimise_p_identity(workload_gram / unit, p, restarts, seed)
        # Columns of L1 norm 1 have an L2 norm of at most 1: scaled up to it, they err less.
        strategy = strategy / np.sqrt((strategy**2).sum(axis=0)).max() if gaussian else strategy
    norm = np.sqrt((strategy**2).sum(axis=0)).max() if gaussian else strategy.sum(axis=0).max()
    error = float(norm) ** 2 * float(
        np.trace(np.linalg.solve(strategy.T @ strategy, workload_gram))
    )
    return AttributeStrategy(Matrix(strategy), error) if error < best.error * (1 - 1e-9) else best


def _optimise_p_identity(target: Array, p: int, restarts: int, seed: int) -> Array:
    """The best of several starts: the problem is not convex."""
    from scipy.optimize import minimize  # noqa: PLC0415  slow to import

    size, rng = len(target), np.random.default_rng(seed)

    def objective(flat: Array) -> tuple[float, Array]:
        value, slope = p_identity_error(flat.reshape(p, size), target)
        return value, slope.reshape(-1)

    results = [
        minimize(
            objective, rng.random(p * size), jac=True, method="L-BFGS-B",
            bounds=[(0.0, None)] * (p * size), options={"maxiter": 2000, "ftol": 1e-9},
        )
        for _ in range(max(1, restarts))
    ]  # fmt: skip
    theta = np.asarray(min(results, key=lambda each: float(each.fun)).x).reshape(p, size)
    return p_identity(theta[theta.max(axis=1) >= _MIN_ENTRY])


def _optimise_gaussian(target: Array) -> Array:
    """Optimise from the square root of the Gram matrix, which is optimal up to column scales."""
    from scipy.optimize import minimize  # noqa: PLC0415  slow to import

    size = len(target)
    values, vectors = np.linalg.eigh(target)
    # A fourth root: the strategy's Gram matrix is the square root of the workload's.
    roots = np.maximum(values, 1e-8 * values.max()) ** 0.25
    start = roots[:, None] * vectors.T

    def objective(flat: Array) -> tuple[float, Array]:
        value, slope = normalised_error(flat.reshape(size, size), target)
        return value, slope.reshape(-1)

    result = minimize(
        objective, start.reshape(-1), jac=True, method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-10},
    )  # fmt: skip
    free = np.asarray(result.x).reshape(size, size)
    return np.asarray(free / np.sqrt((free**2).sum(axis=0)))
