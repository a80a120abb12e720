"""The accelerated interior gradient method of Auslender and Teboulle, in the entropy geometry."""

from __future__ import annotations

import math
from dataclasses import dataclass

from juncture.fit.solvers.dual_averaging import record_constant
from juncture.fit.solvers.problem import Iterate, Iterates, Problem
from juncture.tables.layout import Vector


@dataclass(frozen=True, kw_only=True)
class InteriorGradient:
    """Accelerated steps of growing length with a fixed constant, for comparison.

    `Accelerated` needs no constant and is faster.

    >>> from juncture import Domain, Measurement, estimate
    >>> tables = [Measurement(("a",), counts, stddev=1.0) for counts in ([6.0, 4.0], [8.0, 2.0])]
    >>> fit = estimate(Domain({"a": 2}), tables, solver=InteriorGradient())
    >>> fit.model.project(("a",)).values.round(2)
    array([7., 3.])
    """

    constant: float | None = None
    """A bound on the curvature of the loss; by default, that of dual averaging over records."""
    report_every: int = 50
    """How many oracle calls pass between two points that are yielded."""
    patience: int = 10
    """How many points without progress mean that it has stalled."""

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The start, then the point of the latest potentials, once every `report_every` calls."""
        start = problem.evaluate(potentials)
        yield Iterate(start)
        curvature = problem.total**2 * (self.constant or record_constant(problem.loss))
        latest, own, average = potentials, start.marginals, start.marginals
        weight, shown = curvature, problem.calls
        while True:
            ratio = weight / curvature
            share = 0.5 * (math.sqrt(ratio * ratio + 4.0 * ratio) - ratio)
            middle = (1.0 - share) * average + share * own
            weight *= 1.0 - share
            _, slope = problem.loss.value_and_gradient(middle)
            latest = latest - (share / weight * problem.total) * slope
            own, _ = problem.marginals(latest)
            average = (1.0 - share) * average + share * own
            if problem.calls - shown >= self.report_every or problem.is_exhausted:
                shown = problem.calls
                yield Iterate(problem.evaluate(latest))
