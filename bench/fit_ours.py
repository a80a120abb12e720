"""Juncture's side of the fitting comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import fit_problems
from fit_problems import Array, Clique, FitProblem, Marginal

from juncture import Domain, Measurement, Model, estimate
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.problem import Iterates, Problem
from juncture.fit.summary import Status
from juncture.tables.layout import Vector

MAX_STEPS = 100_000


@dataclass(frozen=True)
class UntilGoal:
    """The default solver, which has nothing more to show once its loss is low enough."""

    goal: float
    works_on_card: ClassVar = True
    patience: int = Accelerated.patience

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The solver's points up to the first that reaches the goal."""
        for iterate in Accelerated().iterates(problem, potentials):
            yield iterate
            if iterate.candidate.loss <= self.goal:
                break
        return Status.STALLED


class Fit:
    """Each round starts from the model of the last one."""

    def __init__(self, problem: FitProblem, method: str) -> None:
        self.problem = problem
        self.oracle = "gpu" if method == "gpu" else "exact"
        self.domain = Domain(problem.setting.domain)
        self.measurements = [
            Measurement(clique, table, stddev=problem.setting.stddev)
            for clique, table in problem.tables.items()
        ]

    def run(self) -> list[Marginal]:
        """Fit all rounds to their goals."""
        setting, model, models = self.problem.setting, None, []
        for n_measured, goal in zip(setting.rounds, setting.goals, strict=True):
            model = estimate(
                self.domain,
                self.measurements[:n_measured],
                total=setting.total,
                solver=UntilGoal(goal),
                start=model,
                max_steps=MAX_STEPS,
                tolerance=0.0,
                oracle=self.oracle,
            ).model
            models.append(asked(model))
        return models


def asked(model: Model) -> Marginal:
    """The way to ask a model for a marginal."""

    def marginal(clique: Clique) -> Array:
        return model.project(clique).values

    return marginal


if __name__ == "__main__":
    fit_problems.main(Fit, methods=("accelerated", "gpu"))
