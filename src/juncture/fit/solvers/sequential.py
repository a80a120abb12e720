"""One method after another: the second starts where the first one hardly makes progress."""

from __future__ import annotations

import math
from dataclasses import dataclass

from juncture.fit.solvers.problem import Iterates, Problem, Solver
from juncture.tables.layout import Vector


@dataclass(frozen=True)
class Sequential:
    """Two solvers one after the other: `Sequential(Accelerated(), Proximal())` is fast, then exact.

    What the fit returns, and why it ended, is up to the second.

    >>> from juncture import Domain, Measurement, estimate
    >>> from juncture.fit.solvers import Accelerated, Proximal
    >>> tables = [Measurement(("a",), counts, stddev=1.0) for counts in ([6.0, 4.0], [8.0, 2.0])]
    >>> solver = Sequential(Accelerated(), Proximal())
    >>> fit = estimate(Domain({"a": 2}), tables, solver=solver, tolerance=1e-6)
    >>> fit.status.headline
    'The fit is certified.'
    """

    first: Solver
    second: Solver
    progress: float = 2e-3
    """The second begins when the first has lowered the loss by less than this share at every one
    of the last points, for a number of them that is its patience."""
    max_first_calls: int | None = None
    """The oracle calls after which the second begins in any case, at the first's next point."""

    @property
    def patience(self) -> int:
        """The patience of both: the second must have time to begin."""
        return self.first.patience + self.second.patience

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The points of the first, then those of the second, which says why it ends."""
        last, n_stalled, limit = math.inf, 0, problem.calls + (self.max_first_calls or math.inf)
        for iterate in self.first.iterates(problem, potentials):
            yield iterate
            potentials, loss = iterate.candidate.potentials, iterate.candidate.loss
            n_stalled = n_stalled + 1 if last - loss <= self.progress * abs(loss) else 0
            last = loss
            if n_stalled >= self.first.patience or problem.calls >= limit:
                break
        return (yield from self.second.iterates(problem, potentials))
