"""Juncture's side of the inference comparison."""

from __future__ import annotations

import inference_tasks
from fit_problems import Array, Clique, FitProblem

from juncture import Domain, Measurement, estimate


class Asked:
    """Our model."""

    def __init__(self, problem: FitProblem) -> None:
        setting = problem.setting
        measurements = [
            Measurement(clique, table, stddev=setting.stddev)
            for clique, table in problem.tables.items()
        ]
        fit = estimate(Domain(setting.domain), measurements, total=setting.total, max_steps=300)
        self.model = fit.model

    def marginal(self, clique: Clique) -> Array:
        """The counts of a clique."""
        return self.model.project(clique).values

    def records(self, n: int) -> None:
        """Synthetic records by rounding."""
        self.model.synthesize(n, rng=0)


if __name__ == "__main__":
    inference_tasks.main(Asked)
