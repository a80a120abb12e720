"""The accelerated interior gradient method of Auslender and Teboulle, in the entropy geometry."""

from __future__ import annotations

import math
from dataclasses import dataclass

from juncture.fit.solvers.dual_averaging import record_constant
from juncture.fit.solvers.problem import Iterate, Iterates, Problem
from juncture.tables.layout import Vector


@dataclass(frozen=True, kw_only=True)
class InteriorGradient:
    """Steps of growing length; `constant` is by default that of dual averaging over records."""

    constant: float | None = None
    report_every: int = 50
    """How many oracle calls pass between two points that are yielded."""
    patience: int = 10

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
