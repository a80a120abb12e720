"""Quasi-Newton descent on the potentials themselves: the direct method of the paper's supplement.

As a function of the potentials the loss is not convex, so this may end at a poor point; it is
here for comparison. The gradient goes through the oracle: the derivative of the marginals with
respect to the potentials is symmetric, so it suffices to know how the marginals change when the
potentials move along the loss's own gradient, which takes two more oracle calls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from juncture.fit.solvers.problem import Candidate, Iterate, Iterates, Problem
from juncture.tables.layout import Vector

# The largest change of a potential in the central difference.
_NUDGE = 1e-4


@dataclass(frozen=True, kw_only=True)
class LBFGS:
    """L-BFGS on the potentials, for comparison: it may end at a poor point.

    >>> from juncture import Domain, Measurement, estimate
    >>> tables = [Measurement(("a",), counts, stddev=1.0) for counts in ([6.0, 4.0], [8.0, 2.0])]
    >>> fit = estimate(Domain({"a": 2}), tables, solver=LBFGS())
    >>> fit.model.project(("a",)).values.round(2)
    array([7., 3.])
    """

    round_steps: int = 20
    """The iterations between two points that are yielded."""
    patience: int = 3
    """How many points without progress mean that it has stalled."""

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The start, then the best point after each round."""
        from scipy.optimize import minimize  # noqa: PLC0415  slow to import

        best = problem.evaluate(potentials)
        yield Iterate(best)
        options = {"maxiter": self.round_steps, "maxcor": 20}
        while True:
            descent = _Descent(problem, best)
            minimize(descent, descent.start, jac=True, method="L-BFGS-B", options=options)
            best = descent.best
            yield Iterate(best)


class _Descent:
    """The loss as a function of the possible cells' potentials; remembers the best point.

    Excluded cells are no variables: minus infinity has no difference from itself, and SciPy would
    make it not-a-number.
    """

    def __init__(self, problem: Problem, start: Candidate) -> None:
        self.problem = problem
        self.best = start
        self._possible = np.isfinite(start.potentials)
        self.start = start.potentials[self._possible]

    def __call__(self, variables: Vector) -> tuple[float, Vector]:
        value, gradient = self._descend(self._potentials(variables))
        return value, gradient[self._possible]

    def _potentials(self, variables: Vector) -> Vector:
        potentials = np.full(len(self._possible), -np.inf)
        potentials[self._possible] = variables
        return potentials

    def _descend(self, potentials: Vector) -> tuple[float, Vector]:
        point = self.problem.evaluate(potentials)
        self.best = min(self.best, point, key=lambda one: one.loss)
        _, slope = self.problem.loss.value_and_gradient(point.marginals)
        largest = float(np.abs(slope).max(initial=0.0))
        if largest == 0.0:
            return point.loss, np.zeros_like(slope)
        nudge = _NUDGE / largest
        above, _ = self.problem.marginals(point.potentials + nudge * slope)
        below, _ = self.problem.marginals(point.potentials - nudge * slope)
        return point.loss, (above - below) / (2.0 * nudge)
