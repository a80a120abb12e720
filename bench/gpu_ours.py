"""Juncture's side of the comparison on a card: every vector stays there."""

from __future__ import annotations

import argparse

import harness
import numpy as np
from numpy.typing import NDArray

from juncture import Domain, Factor, Plan
from juncture.engine.gpu.propagation import GpuPropagation


class Descent:
    """Gradient descent on the potentials with a constant step, from zero."""

    def __init__(self, problem: harness.Problem, options: argparse.Namespace) -> None:
        import cupy  # noqa: PLC0415 - only where there is a card

        domain = Domain(problem.domain)
        self.problem, self.cupy = problem, cupy
        single = options.oracle == "single"
        self.oracle = GpuPropagation(
            Plan.build(domain, problem.cliques), precision="single" if single else "double"
        )
        self.layout = self.oracle.layout
        tables = problem.targets().items()
        targets = self.layout.pack(Factor(domain.project(c), table) for c, table in tables)
        self.targets = self.oracle.put(targets)
        self.potentials = self.oracle.put(self.layout.zeros())
        self.marginals = self.oracle.put(self.layout.zeros())
        self.step = cupy.ElementwiseKernel(
            "T marginal, T target, float64 rate", "T potential",
            "potential = potential - rate * (marginal - target)", "bench_step",
        )  # fmt: skip
        self.with_steps = options.oracle != "calls"

    def run(self, iterations: int) -> None:
        """Marginals, then a step down the gradient, so many times."""
        for _ in range(iterations):
            self.oracle.marginals(self.potentials, self.problem.total, out=self.marginals)
            if self.with_steps:
                self.step(self.marginals, self.targets, self.problem.rate, self.potentials)
        self.cupy.cuda.get_current_stream().synchronize()

    def first_marginal(self) -> NDArray[np.float64]:
        """The marginal of the first clique at the present potentials."""
        beliefs = self.oracle.marginals(self.potentials, self.problem.total)
        values = self.oracle.fetch(beliefs.marginals)
        return self.layout.factor(values, self.problem.cliques[0]).values


if __name__ == "__main__":
    harness.main(Descent, oracles=("double", "calls", "single"))
