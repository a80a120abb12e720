"""The peer's side of the inference comparison: mbi 2.0.0, in an environment of its own."""

from __future__ import annotations

import warnings

import inference_tasks
import numpy as np
from fit_problems import Array, Clique, FitProblem

with warnings.catch_warnings():  # the peer warns, as it is imported, of the setting made below
    warnings.simplefilter("ignore")
    import jax
    import mbi

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore")
STEPS = 300


class Asked:
    """The peer's model, by the estimator that takes the least time to make one."""

    def __init__(self, problem: FitProblem) -> None:
        setting = problem.setting
        measurements = [
            mbi.LinearMeasurement(table, clique, setting.stddev)
            for clique, table in problem.tables.items()
        ]
        domain = mbi.Domain.fromdict(setting.domain)
        self.model = mbi.estimation.MirrorDescent().estimate(
            domain, measurements, known_total=setting.total, iters=STEPS
        )

    def marginal(self, clique: Clique) -> Array:
        """The counts of a clique."""
        return np.asarray(self.model.project(clique).values)

    def records(self, n: int) -> None:
        """Synthetic records by rounding."""
        self.model.synthetic_data(rows=n, method="round")


if __name__ == "__main__":
    inference_tasks.main(Asked)
