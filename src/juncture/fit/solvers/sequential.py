"""One method after another: the second starts where the first one hardly gets any further."""

from __future__ import annotations

import math
from dataclasses import dataclass

from juncture.fit.solvers.problem import Iterates, Problem, Solver
from juncture.tables.layout import Vector


@dataclass(frozen=True)
class Sequential:
    """Two solvers in turn: `Sequential(Accelerated(), Proximal())` is fast, then exact."""

    first: Solver
    second: Solver
    progress: float = 2e-3
    """The first has done its part when, for as many points as its own patience, it has lowered
    the loss by less than this share each."""

    @property
    def patience(self) -> int:
        """That of the second, which must be given the time to begin."""
        return self.first.patience + self.second.patience

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The points of the first, then those of the second, which says why it ends."""
        last, n_stalled = math.inf, 0
        for iterate in self.first.iterates(problem, potentials):
            yield iterate
            potentials, loss = iterate.candidate.potentials, iterate.candidate.loss
            n_stalled = n_stalled + 1 if last - loss <= self.progress * abs(loss) else 0
            last = loss
            if n_stalled >= self.first.patience:
                break
        return (yield from self.second.iterates(problem, potentials))
