"""The dual of a proximal step with its second derivative, and the barrier at its limits.

The notation is that of `Proximal`: multipliers u of the residuals r, which lead from a centre to
the potentials centre - length * A' u. The dual of a step, turned so that it is to be minimised, has

    gradient            u - r             for a squared residual
                        push(u) - r       for an absolute one
    second derivative   diagonal + length * A Cov A'

where Cov is the covariance of the cells at those potentials.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from juncture.engine import vector_ops as flat
from juncture.engine.plan import Plan
from juncture.errors import InvalidInput
from juncture.fit.loss import FitLoss
from juncture.fit.solvers.covariance import TreeCovariance
from juncture.fit.solvers.problem import Problem
from juncture.fit.solvers.rows import Matrix, Rows
from juncture.tables.layout import Vector

LIMIT = math.sqrt(2.0)
# Of the way to the nearest limit of a multiplier, how much one Newton step may go.
_NEARLY = 0.99
# A row whose curvature is below this share of its diagonal is solved by itself.
_NEGLIGIBLE = 1e-13
_ROUNDING = 1e-15
# Added to the diagonal, relative to it, until the matrix is positive definite in rounded numbers.
_FIRST_SHIFT, _MAX_SHIFT = 1e-14, 1.0
# The pressure is this part of the gap for each multiplier. One lower than the second number times
# the largest residual would leave no digits between a multiplier and its limit.
_PRESSURE, _LEAST_PRESSURE = 0.05, 1e-13


class Exhausted(Exception):
    """No oracle calls are left."""


class Point(NamedTuple):
    """Multipliers, and where they lead from a centre with a length."""

    multipliers: Vector
    slope: Vector
    """Over the measured cells."""
    potentials: Vector
    beliefs: Vector
    """The marginals of the measured cliques, then those of the other maximal cliques."""
    residuals: Vector


class Gap(NamedTuple):
    """The loss of a point's marginals, and how far it is above the bound of its multipliers."""

    loss: float
    width: float


class Barrier:
    """What keeps the multipliers of absolute residuals within their limits.

    A multiplier u is pushed away from the limits by pressure / (limit - u) and, the other way, by
    pressure / (limit + u). Both quotients are also kept as numbers of their own, `over` and
    `under`, that follow by Newton's method: with them as slopes, a step that lowers the pressure
    is a good one at once (a primal-dual method).
    """

    def __init__(self, n: int, pressure: float) -> None:
        self.pressure = pressure
        self._over, self._under = np.full(n, 1.0), np.full(n, 1.0)

    def push(self, multipliers: Vector) -> Vector:
        """The push towards the middle."""
        return self.pressure * (1.0 / (LIMIT - multipliers) - 1.0 / (LIMIT + multipliers))

    def stiffness(self, multipliers: Vector) -> Vector:
        """How fast the push grows."""
        above, below = LIMIT - multipliers, LIMIT + multipliers
        self._over = _near(self._over, self.pressure / above)
        self._under = _near(self._under, self.pressure / below)
        return self._over / above + self._under / below

    def reach(self, multipliers: Vector, move: Vector) -> float:
        """Which part of the move stays within the limits."""
        room = np.where(move > 0, LIMIT - multipliers, LIMIT + multipliers)
        parts = np.divide(room, np.abs(move), out=np.full(len(move), np.inf), where=move != 0)
        return min(1.0, _NEARLY * float(parts.min(initial=np.inf)))

    def follow(self, multipliers: Vector, move: Vector) -> None:
        """Let the quotients follow a move of the multipliers."""
        above, below = LIMIT - multipliers, LIMIT + multipliers
        self._over = np.maximum(self.pressure / above + self._over / above * move, 0.0)
        self._under = np.maximum(self.pressure / below - self._under / below * move, 0.0)

    def relax(self, width: float, largest: float) -> None:
        """Lower the pressure to a small part of the gap."""
        goal = min(self.pressure, _PRESSURE * width / max(1, len(self._over)))
        self.pressure = max(goal, _LEAST_PRESSURE * largest, np.finfo(np.float64).tiny)


def _near(values: Vector, quotients: Vector) -> Vector:
    return np.clip(values, 0.1 * quotients, 10.0 * quotients)


class NewtonDual:
    """The multipliers of a problem: where they lead, what they prove, and how to improve them."""

    def __init__(self, problem: Problem, potentials: Vector) -> None:
        if not isinstance(problem.loss, FitLoss):
            raise InvalidInput(
                "`loss` must be made of measurements for Newton's method; got another kind. "
                "Use Accelerated if it is smooth, otherwise MirrorDescent(rule='decreasing')."
            )
        if not problem.oracle.is_exact:
            raise InvalidInput(
                "`oracle` must be exact for Newton's method; got one that estimates marginals. "
                "Use MirrorDescent."
            )
        plan = problem.oracle.plan
        grown = Plan.build(plan.domain, [*plan.cliques, *(node.clique for node in plan.nodes)])
        self.problem, self.total = problem, problem.total
        self._grown = problem.with_plan(grown)
        self.rows = Rows(problem.loss)
        self._covariance = TreeCovariance(grown, self.rows.blocks)
        self.squared, self.absolute = self.rows.squared, ~self.rows.squared
        self.uniform = np.where(np.isneginf(potentials), -np.inf, 0.0)

    def evaluate(self, centre: Vector, length: float, multipliers: Vector) -> Point:
        """The point to which multipliers lead; takes an oracle call."""
        if self.problem.is_exhausted:
            raise Exhausted
        slope = self.rows.adjoint(multipliers)
        potentials = centre - length * slope
        padded = np.zeros(self._grown.oracle.layout.size)
        padded[: len(potentials)] = potentials
        beliefs, _ = self._grown.marginals(padded)
        residuals = self.rows.residuals(beliefs[: len(potentials)])
        return Point(multipliers, slope, potentials, beliefs, residuals)

    def gap(self, point: Point) -> Gap:
        """What weak duality says, as a sum of parts that are not negative: nothing cancels."""
        u, r = point.multipliers, point.residuals
        misses, squares = (u - r)[self.squared], r[self.squared]
        sizes = LIMIT * np.abs(r[self.absolute])
        slack = sizes - (u * r)[self.absolute]
        lowest = self.problem.minimise_linear(point.slope, self.uniform)
        above = max(0.0, flat.dot(point.slope, point.beliefs[: len(point.slope)]) - lowest)
        loss = self.rows.constant + 0.5 * float(squares @ squares) + float(sizes.sum())
        return Gap(loss, 0.5 * float(misses @ misses) + float(slack.sum()) + above)

    def gradient(self, point: Point, barrier: Barrier) -> Vector:
        """The dual's gradient, with the barrier's push."""
        pull = np.where(self.squared, point.multipliers, 0.0)
        pull[self.absolute] = barrier.push(point.multipliers[self.absolute])
        return pull - point.residuals

    def worth(self, gradient: Vector) -> float:
        """What residuals of this size add to the loss."""
        squares = gradient[self.squared]
        sizes = np.abs(gradient[self.absolute])
        return 0.5 * float(squares @ squares) + LIMIT * float(sizes.sum())

    def rounding(self, point: Point) -> float:
        """What rounding errors alone may make of the gradient."""
        goal = self.rows.goal
        return self.worth(_ROUNDING * (np.abs(goal) + np.abs(point.residuals + goal)))

    def direction(self, point: Point, length: float, gradient: Vector, barrier: Barrier) -> Vector:
        """Newton's step of the multipliers."""
        diagonal = np.ones(len(gradient))
        diagonal[self.absolute] = barrier.stiffness(point.multipliers[self.absolute])
        matrix = self._covariance.matrix(point.beliefs, self.total)
        matrix *= length
        move = -gradient / diagonal
        active = np.flatnonzero(np.diag(matrix) > _NEGLIGIBLE * diagonal)
        if len(active) < len(gradient):
            matrix = matrix[np.ix_(active, active)]
        matrix[np.diag_indices(len(active))] += diagonal[active]
        move[active] = -_solve_positive(matrix, gradient[active])
        return move


def _solve_positive(matrix: Matrix, right: Vector) -> Vector:
    """The solution of a system whose matrix is positive definite but for rounding errors."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve  # noqa: PLC0415  slow to import

    scale = 1.0 / np.sqrt(np.diag(matrix))
    matrix *= scale
    matrix *= scale[:, None]
    diagonal, shift = np.diag_indices(len(right)), _FIRST_SHIFT
    while True:
        matrix[diagonal] = 1.0 + shift
        try:
            factor = cho_factor(matrix, check_finite=False)
            return np.asarray(scale * cho_solve(factor, scale * right, check_finite=False))
        except LinAlgError:
            if shift > _MAX_SHIFT * len(right):
                raise
            shift *= 10.0
