"""The proximal point method in the entropy geometry, each step solved in its dual.

A step minimises the loss plus a divergence from the last model, whose weight shrinks from step to
step. Its dual has one multiplier for each answer (confined to an interval where the residual's
absolute value counts, so kinks are no obstacle) and is smooth: its gradient is the residuals at
the potentials that the multipliers lead to. Any multipliers also certify: the least value, over
all tables, of the linear function that they make is a lower bound on the loss, and at the optimum
it is the loss. So this is the method for high accuracy and for tight certificates, from a start
that a faster method has brought close.

For one answer of 10 with a standard deviation of 1, where the last model says 40, the residual is
30. A plain gradient step would move its potential by the full 30 lengths and overshoot: after the
move the model may say almost 0. In the dual, the multiplier u must equal the residual where the
move ends, that is, at the potential moved by -length * u: perhaps u = 3, where the model says 13.
With an absolute value in place of the square, u may be anything between -sqrt(2) and sqrt(2):
inside if the residual is zero, at an end otherwise. The kink has become a bound on a variable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from juncture.engine import vector_ops
from juncture.errors import InvalidInput
from juncture.fit.loss import FitLoss
from juncture.fit.solvers.problem import Candidate, Iterate, Iterates, Problem
from juncture.tables.layout import Vector

# The residual, in standard deviations, within which a multiplier is at first not at its limit.
_FIRST_WIDTH = 0.1
_LIMIT = math.sqrt(2.0)
# By how much to shorten the step when only a small part of a long one helps: long steps make tight
# certificates, short ones exact models.
_BACK = 1e-4
# How much shorter to try a step that does not help, and how often.
_SHORTER, _MAX_SHORTER = 0.2, 8


@dataclass(frozen=True, kw_only=True)
class Proximal:
    """The solver for high accuracy and tight certificates; it takes losses with kinks too.

    Use it after a faster one: `Sequential(Accelerated(), Proximal())`. The loss must be made of
    measurements, not a function.

    >>> from juncture import Domain, Measurement, estimate
    >>> tables = [Measurement(("a",), counts, stddev=1.0) for counts in ([6.0, 4.0], [8.0, 2.0])]
    >>> fit = estimate(Domain({"a": 2}), tables, solver=Proximal(), tolerance=1e-6)
    >>> fit.status.headline, round(fit.summary.lower_bound, 3)
    ('The fit is certified.', 2.0)
    """

    first_length: float | None = None
    """The length of the first step; by default such that potentials move by about one."""
    growth: float = 3.0
    """How many times longer each step is than the one before."""
    inner_steps: int = 100
    """How many iterations the dual of one step may take."""
    memory: int = 20
    """How many past slopes the method in the dual keeps."""
    patience: int = 12
    """How many points without progress mean that it has stalled."""

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The start, then the best point after each step, with the best bound so far."""
        dual = _Dual(problem, potentials)
        centre, bound = dual.start, dual.bound()
        yield Iterate(centre, bound)
        length = shortest = self.first_length or dual.unit_length()
        while True:
            dual.ascend(centre, length, self.inner_steps, self.memory)
            centre, helpful = dual.backtrack(centre, length)
            bound = max(bound, dual.bound())
            yield Iterate(centre, bound)
            overshot = helpful < 0.1 * length and length > shortest / _BACK
            length *= _BACK if overshot else self.growth


class _Dual:
    """The multipliers of a problem, and what they lead to.

    With residuals r = A m - goal (over their standard deviations) of the marginals m, and u one
    multiplier for each: r**2 / 2 is the largest u r - u**2 / 2 of all u, and sqrt(2) |r| the
    largest u r with |u| <= sqrt(2). So for any u within its limits, at every table,

        loss >= (A' u) . m - cost(u),    cost(u) = u . goal + sum of u**2 / 2 (squared ones only)

    and the least right-hand side over all tables, at one record, is a certificate (`bound`). A
    step adds a divergence from its centre; the least right-hand side is then reached at the
    potentials centre - length * A' u, and its derivative in u is the residuals there, less u for
    squared ones. `ascend` maximises that; the sign is turned because SciPy minimises.
    """

    def __init__(self, problem: Problem, potentials: Vector) -> None:
        if not isinstance(problem.loss, FitLoss):
            raise InvalidInput(
                "`loss` must be made of measurements for the proximal method; got another kind. "
                "Use Accelerated if it is smooth, otherwise MirrorDescent(rule='decreasing')."
            )
        self.problem, self.loss = problem, problem.loss
        self.start = problem.evaluate(potentials)
        self.squared = self.loss.squared
        self.goal = -self.loss.residuals(np.zeros_like(potentials))
        self.limit = np.where(self.squared, np.inf, _LIMIT)
        residuals = self.loss.residuals(self.start.marginals)
        confined = np.clip(residuals / _FIRST_WIDTH, -1.0, 1.0) * _LIMIT
        self.multipliers = np.where(self.squared, residuals, confined)

    def unit_length(self) -> float:
        """The step that moves potentials by about one."""
        return 1.0 / math.sqrt(sum(term.heaviest_record for term in self.loss.terms))

    def ascend(self, centre: Candidate, length: float, steps: int, memory: int) -> None:
        """Improve the multipliers for a step of this length from the centre."""
        from scipy.optimize import Bounds, minimize  # noqa: PLC0415  (slow to import)

        problem, mass = self.problem, self.problem.total / length

        def descent(multipliers: Vector) -> tuple[float, Vector]:
            if problem.is_exhausted:
                raise _Exhausted
            moved = centre.potentials - length * self.loss.adjoint(multipliers)
            if problem.goes_too_far(moved):
                raise _TooFar
            marginals, log_partition = problem.marginals(moved)
            value = self._cost(multipliers) + mass * (log_partition - centre.log_partition)
            slope = np.where(self.squared, multipliers, 0.0) - self.loss.residuals(marginals)
            self.multipliers = multipliers
            return value, slope

        options = {
            "maxiter": steps, "maxfun": 2 * steps, "maxcor": memory, "ftol": 1e-16, "gtol": 1e-10,
        }  # fmt: skip
        try:
            solution = minimize(
                descent, self.multipliers, jac=True, method="L-BFGS-B",
                bounds=Bounds(-self.limit, self.limit), options=options,
            )  # fmt: skip
            self.multipliers = solution.x
        except (_Exhausted, _TooFar):
            pass

    def backtrack(self, centre: Candidate, length: float) -> tuple[Candidate, float]:
        """A better point in the direction of the multipliers, and how far from the centre it is.

        With inexact multipliers a long step may overshoot where a part of it still helps.
        """
        slope = self.loss.adjoint(self.multipliers)
        for _ in range(_MAX_SHORTER):
            if self.problem.is_exhausted:
                break
            moved = centre.potentials - length * slope
            if not self.problem.goes_too_far(moved):
                reached = self.problem.evaluate(moved)
                if reached.loss < centre.loss:
                    return reached, length
            length *= _SHORTER
        return centre, length

    def bound(self) -> float:
        """A lower bound on the loss of any model, from the present multipliers."""
        lowest = self.problem.minimise_linear(
            self.loss.adjoint(self.multipliers), self.start.potentials
        )
        return lowest - self._cost(self.multipliers)

    def _cost(self, multipliers: Vector) -> float:
        bent = np.where(self.squared, multipliers, 0.0)
        return vector_ops.dot(multipliers, self.goal) + 0.5 * vector_ops.dot(bent, bent)


class _Exhausted(Exception):
    """No oracle calls are left."""


class _TooFar(Exception):
    """The multipliers lead to potentials that mean nothing."""
