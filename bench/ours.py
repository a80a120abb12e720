"""Juncture's side of the comparison."""

from __future__ import annotations

import argparse

import harness
import numpy as np
from numpy.typing import NDArray

from juncture import Domain, Factor, Plan
from juncture.engine import Propagation


class Descent:
    """Gradient descent on the potentials with a constant step, from zero."""

    def __init__(self, problem: harness.Problem, _options: argparse.Namespace) -> None:
        domain = Domain(problem.domain)
        self.problem = problem
        self.oracle = Propagation(Plan.build(domain, problem.cliques))
        tables = problem.targets().items()
        self.layout = self.oracle.layout
        self.targets = self.layout.pack(Factor(domain.project(c), table) for c, table in tables)
        self.potentials = self.layout.zeros()
        self.marginals = self.layout.zeros()

    def run(self, iterations: int) -> None:
        """Marginals, then a step down the gradient, so many times."""
        for _ in range(iterations):
            self.oracle.marginals(self.potentials, self.problem.total, out=self.marginals)
            gradient = np.subtract(self.marginals, self.targets, out=self.marginals)
            gradient *= self.problem.rate
            self.potentials -= gradient

    def first_marginal(self) -> NDArray[np.float64]:
        """The marginal of the first clique at the present potentials."""
        beliefs = self.oracle.marginals(self.potentials, self.problem.total)
        return self.layout.factor(beliefs.marginals, self.problem.cliques[0]).values


if __name__ == "__main__":
    harness.main(Descent, oracles=("propagation",))
