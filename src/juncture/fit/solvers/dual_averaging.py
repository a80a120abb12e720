"""Accelerated dual averaging with a known constant: Algorithm 2 of McKenna et al. (ICML 2019).

The constant bounds the curvature of the loss. The paper takes the largest eigenvalue of the
queries over the tables of the maximal cliques; a measurement inside a larger clique inflates it.
The entropy is strongly convex in the L1 norm of the full distribution, so the constant may be
taken in that geometry instead: the largest weight of one record in all measurements together.
For any cliques that is at most the sum of the queries' squared L2 sensitivities over their
variances; it is the default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from juncture.engine.plan import Plan
from juncture.errors import InvalidInput
from juncture.fit.loss import FitLoss
from juncture.fit.solvers.problem import Iterate, Iterates, Problem
from juncture.tables.layout import Vector


@dataclass(frozen=True, kw_only=True)
class DualAveraging:
    """Accelerated dual averaging with a fixed constant, for comparison with the paper.

    `Accelerated` needs no constant and is faster.

    >>> from juncture import Domain, Measurement, estimate
    >>> tables = [Measurement(("a",), counts, stddev=1.0) for counts in ([6.0, 4.0], [8.0, 2.0])]
    >>> fit = estimate(Domain({"a": 2}), tables, solver=DualAveraging())
    >>> fit.model.project(("a",)).values.round(2)
    array([7., 3.])
    """

    works_on_card: ClassVar = True

    constant: float | None = None
    """A bound on the curvature of the loss; by default, computed for the geometry."""
    geometry: Literal["record", "clique"] = "record"
    """How the constant is computed: in L1 over records, or over the maximal cliques' tables."""
    report_every: int = 50
    """How many oracle calls pass between two points that are yielded."""
    patience: int = 10
    """How many points without progress mean that it has stalled."""

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The start, then the point of the latest potentials, once every `report_every` calls."""
        constant = self.constant or self._constant(problem)
        start = problem.evaluate(potentials)
        yield Iterate(start)
        own = start.marginals
        average, slopes = own, np.zeros_like(own)
        step = 0
        while True:
            step += 1
            share = 2.0 / (step + 1)
            middle = (1.0 - share) * average + share * own
            _, slope = problem.loss.value_and_gradient(middle)
            slopes = (1.0 - share) * slopes + share * slope
            scale = step * (step + 1) / (4.0 * constant * problem.total)
            latest = potentials - scale * slopes
            own, _ = problem.marginals(latest)
            average = (1.0 - share) * average + share * own
            if step % self.report_every == 0 or problem.is_exhausted:
                yield Iterate(problem.evaluate(latest))

    def _constant(self, problem: Problem) -> float:
        if self.geometry == "record":
            return record_constant(problem.loss)
        return clique_constant(problem.loss, problem.oracle.plan)


def clique_constant(loss: object, plan: Plan) -> float:
    """The paper's constant: a bound on the largest eigenvalue over the maximal cliques' tables.

    A measurement inside a larger clique counts once for each cell of the clique that is summed
    into one of its own cells.
    """
    heaviest: dict[int, float] = {}
    for term in _require_squared(loss).terms:
        host = plan.hosts[plan.domain.canonical(term.clique)]
        inflation = plan.domain.size_of(plan.nodes[host].clique) / plan.domain.size_of(term.clique)
        weight = term.operator.largest_eigenvalue / float(term.stddev.min()) ** 2
        heaviest[host] = heaviest.get(host, 0.0) + weight * inflation
    return max(heaviest.values())


def record_constant(loss: object) -> float:
    """An upper bound on the weight of one record in all measurements together."""
    return float(sum(term.heaviest_record for term in _require_squared(loss).terms))


def _require_squared(loss: object) -> FitLoss:
    if not isinstance(loss, FitLoss) or not loss.is_smooth:
        raise InvalidInput(
            "`constant` must be given for this loss, because its curvature is not known; "
            "got None. Use the default solver, or MirrorDescent for a loss with kinks."
        )
    return loss
