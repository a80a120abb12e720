"""The peer's side of the comparison: mbi 2.0.0, on JAX, in an environment of its own.

Written as a good user of the peer would: one compiled loop around the peer's exact oracle, in
64-bit floats, which it recommends itself. Its estimators choose the oracle `hugin`;
`message_passing_fast` leaves log space, may give not-a-number on potentials of wide range, and
is faster where large cliques come from small tables.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import harness
import numpy as np
from numpy.typing import NDArray

with warnings.catch_warnings():  # the peer warns, as it is imported, of the setting made below
    warnings.simplefilter("ignore")
    import jax
    import mbi

jax.config.update("jax_enable_x64", True)


class Descent:
    """Gradient descent on the potentials with a constant step, from zero."""

    def __init__(self, problem: harness.Problem, options: argparse.Namespace) -> None:
        self.problem = problem
        self.domain = mbi.Domain.fromdict(problem.domain)
        tables = {
            clique: mbi.Factor(self.domain.project(clique), table)
            for clique, table in problem.targets().items()
        }
        self.targets = jax.device_put(mbi.CliqueVector(self.domain, problem.cliques, tables))
        self.potentials = mbi.CliqueVector.zeros(self.domain, problem.cliques)
        self.oracle = chosen_oracle(problem, self.domain, options.oracle)
        self.compiled = jax.jit(self.looped, donate_argnums=0)

    def looped(self, potentials: Any, targets: Any, iterations: int) -> Any:  # noqa: ANN401
        """The loop that is compiled, iterations and all."""

        def step(_: int, theta: Any) -> Any:  # noqa: ANN401
            return theta - self.problem.rate * (self.oracle(theta, self.problem.total) - targets)

        return jax.lax.fori_loop(0, iterations, step, potentials)

    def run(self, iterations: int) -> None:
        """Marginals, then a step down the gradient, so many times."""
        self.potentials = self.compiled(self.potentials, self.targets, iterations)
        jax.block_until_ready(self.potentials)

    def first_marginal(self) -> NDArray[np.float64]:
        """The marginal of the first clique at the present potentials."""
        marginals = jax.jit(self.oracle)(self.potentials, self.problem.total)
        return np.asarray(marginals[self.problem.cliques[0]].values)


def chosen_oracle(problem: harness.Problem, domain: Any, name: str) -> Any:  # noqa: ANN401
    """The oracle that the peer's estimators would choose, or its fast one."""
    oracles = mbi.marginal_oracles
    if name == "fast":
        return oracles.message_passing_fast
    return oracles.default_oracle(problem.cliques, domain, has_constraints=False)


if __name__ == "__main__":
    harness.main(Descent, oracles=("default", "fast"))
