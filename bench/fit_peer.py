"""The peer's side of the fitting comparison: mbi 2.0.0, on JAX, in an environment of its own.

Each of its estimators is stopped, where it calls back, as soon as the marginals that it shows
there reach the goal. That favours the peer: the accelerated ones show averaged marginals, and to
make a model of them they would start a second fit, of a thousand steps, which is not timed here.
A later round begins with the potentials of the last one, where the estimator has any: they are
taken from its state for the same reason.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import fit_problems
import numpy as np
from fit_problems import FitProblem, Marginal

with warnings.catch_warnings():  # the peer warns, as it is imported, of the setting made below
    warnings.simplefilter("ignore")
    import jax
    import mbi

jax.config.update("jax_enable_x64", True)

METHODS = (
    "UniversalAcceleratedMethod",
    "InteriorGradient",
    "MirrorDescent",
    "DualAveraging",
    "LBFGS",
)
ENDLESS = 10_000_000


class GoalReached(Exception):
    """The marginals shown are good enough."""


class Fit:
    """Each round by one of the peer's estimators."""

    def __init__(self, problem: FitProblem, method: str) -> None:
        self.problem = problem
        self.domain = mbi.Domain.fromdict(problem.setting.domain)
        self.estimator = showing_potentials(getattr(mbi.estimation, method))
        self.measurements = [
            mbi.LinearMeasurement(table, clique, problem.setting.stddev)
            for clique, table in problem.tables.items()
        ]

    def run(self) -> list[Marginal]:
        """Fit all rounds to their goals."""
        potentials, outcomes = None, []
        for place in range(len(self.problem.setting.rounds)):
            outcome, potentials = self.round(place, potentials)
            outcomes.append(outcome)
        return outcomes

    def round(self, place: int, potentials: Any) -> tuple[Marginal, Any]:  # noqa: ANN401
        """Fit one round to its goal."""
        setting, last = self.problem.setting, {}

        def stop_at_goal(shown: tuple[Any, Any]) -> None:
            last["marginals"], last["potentials"] = asked(shown[0]), shown[1]
            if self.problem.reached(place, self.problem.loss(place, last["marginals"])):
                raise GoalReached

        with suppress(GoalReached):
            self.estimator.estimate(
                self.domain,
                self.measurements[: setting.rounds[place]],
                known_total=setting.total,
                iters=ENDLESS,
                callback_fn=stop_at_goal,
                warm_start=potentials,
            )
        return last["marginals"], last["potentials"]


def showing_potentials(base: Any) -> Any:  # noqa: ANN401
    """An estimator that shows its potentials, if it has any, beside its marginals."""

    class Showing(base):  # type: ignore[misc]
        def _callback_value(self, state: Any, *rest: Any) -> tuple[Any, Any]:  # noqa: ANN401
            potentials = getattr(state, "potentials", getattr(state, "u", None))
            return super()._callback_value(state, *rest), potentials

    return Showing()


def asked(marginals: Any) -> Marginal:  # noqa: ANN401
    """The way to ask the peer's marginals for one of them."""
    # The buffers are handed to the next steps, so what is shown must be copied now.
    return {c: np.asarray(marginals[c].values) for c in marginals.cliques}.__getitem__


if __name__ == "__main__":
    fit_problems.main(Fit, methods=METHODS)
