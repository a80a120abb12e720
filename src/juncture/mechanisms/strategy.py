"""What to measure so that a workload is answered with the least error: HDMM's optimisation.

A strategy for one attribute is a matrix A whose columns have L1 norm 1. With Laplace noise of
scale b on its rows, the expected squared error of a workload with Gram matrix V = W'W is
2 b^2 tr[(A'A)^-1 V]. Strategies of the form A = [I; T] D, with T a few rows without negative
entries and D dividing each column by its sum, are optimised by gradients (McKenna, Miklau, Hay and
Machanavajjhala 2018); products of them serve products, and weighted stacks of those serve unions.
Nothing here looks at data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from juncture.block import Block, Identity, Matrix, Total
from juncture.domain import Domain
from juncture.errors import InvalidInput
from juncture.workload import Task

Array = NDArray[np.float64]

# One extra row for so many values, at least one: the public rule of the method's authors.
_VALUES_PER_ROW = 16


@dataclass(frozen=True, eq=False)
class AttributeStrategy:
    """A block to measure on one attribute, and its error on the attribute's workload."""

    block: Block
    error: float
    """The trace of the inverse Gram matrix times the workload's, times the squared L1 norm."""


@dataclass(frozen=True, eq=False)
class TaskStrategy:
    """What to measure for one task."""

    task: Task
    blocks: tuple[Block, ...]
    error: float

    def expected_squared_error(self, scale: float) -> float:
        """Over all answers of the task, when every row has Laplace noise of that scale."""
        return 2.0 * scale**2 * self.error


def gram(block: Block, size: int) -> Array:
    """The matrix of a block, transposed, times itself."""
    matrix = block.matrix(size)
    return np.asarray(matrix.T @ matrix)


def trace_error(strategy: Array, workload_gram: Array) -> float:
    """The squared L1 norm of a strategy times its trace; infinite where it cannot answer."""
    inverse = np.linalg.pinv(strategy.T @ strategy)
    supported = np.allclose(workload_gram @ inverse @ (strategy.T @ strategy), workload_gram)
    norm = float(np.abs(strategy).sum(axis=0).max())
    return norm**2 * float(np.trace(inverse @ workload_gram)) if supported else math.inf


def p_identity(theta: Array) -> Array:
    """The identity over some rows, with columns divided by their sums."""
    whole = np.vstack([np.eye(theta.shape[1]), theta])
    return np.asarray(whole / whole.sum(axis=0))


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


def optimise_attribute(
    block: Block, size: int, *, restarts: int = 5, seed: int = 0
) -> AttributeStrategy:
    """The best strategy found for one attribute: as it is, all together, or p-identity."""
    if isinstance(block, Identity):
        return AttributeStrategy(block, float(size))
    if isinstance(block, Total):
        return AttributeStrategy(block, 1.0)
    return optimise_gram(gram(block, size), restarts=restarts, seed=seed)


def optimise_gram(
    workload_gram: Array, *, restarts: int = 5, seed: int = 0, rows: int | None = None
) -> AttributeStrategy:
    """The best strategy found for a Gram matrix."""
    from scipy.optimize import minimize  # noqa: PLC0415  slow to import

    size = len(workload_gram)
    p = max(1, size // _VALUES_PER_ROW) if rows is None else rows
    # Scaled, so that the solver's tolerances mean the same for every workload.
    unit = float(np.trace(workload_gram)) or 1.0
    rng = np.random.default_rng(seed)
    best = AttributeStrategy(Identity(), float(np.trace(workload_gram)))
    ones = trace_error(np.ones((1, size)), workload_gram)
    if ones < best.error:
        best = AttributeStrategy(Total(), ones)

    def objective(flat: Array) -> tuple[float, Array]:
        value, slope = p_identity_error(flat.reshape(p, size), workload_gram / unit)
        return value, slope.reshape(-1)

    for _ in range(restarts):
        found = minimize(
            objective, rng.random(p * size), jac=True, method="L-BFGS-B",
            bounds=[(0.0, None)] * (p * size), options={"maxiter": 2000, "ftol": 1e-9},
        )  # fmt: skip
        if found.fun * unit < best.error * (1.0 - 1e-9):
            matrix = p_identity(np.asarray(found.x).reshape(p, size))
            best = AttributeStrategy(Matrix(matrix), float(found.fun) * unit)
    return best


def optimise_task(task: Task, domain: Domain, *, restarts: int = 5, seed: int = 0) -> TaskStrategy:
    """A strategy for a product: the product of the attributes' strategies."""
    parts = [
        _cached(block, domain[name], restarts, seed)
        for name, block in zip(task.clique, task.blocks, strict=True)
    ]
    error = math.prod(part.error for part in parts)
    return TaskStrategy(task, tuple(part.block for part in parts), error)


_CACHE: dict[tuple[str, int, int, int], AttributeStrategy] = {}


def _cached(block: Block, size: int, restarts: int, seed: int) -> AttributeStrategy:
    """Blocks without arrays are told apart by how they are written."""
    key = (repr(block), size, restarts, seed)
    if isinstance(block, Matrix):
        return optimise_attribute(block, size, restarts=restarts, seed=seed)
    if key not in _CACHE:
        _CACHE[key] = optimise_attribute(block, size, restarts=restarts, seed=seed)
    return _CACHE[key]


def shares(errors: Sequence[float], *, equal: bool, gaussian: bool) -> list[float]:
    """How to divide a budget between strategies of these errors: for the least total error.

    With Laplace noise and epsilon times a share for each, errors go as one over the squared share:
    shares go as the cube root of the errors. With Gaussian noise and rho times a share, errors go
    as one over the share: shares go as the square root.
    """
    if not errors:
        raise InvalidInput("`workload` must have a task; got none. Add at least one.")
    if equal:
        return [1.0 / len(errors)] * len(errors)
    weights = [error ** (1 / 2 if gaussian else 1 / 3) for error in errors]
    return [weight / math.fsum(weights) for weight in weights]
