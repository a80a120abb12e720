"""Every solver fits around the cells that constraints exclude."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dense_optimum import bracket_optimum
from juncture.fit.estimation import estimate
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.dual_averaging import DualAveraging
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.fit.solvers.interior_gradient import InteriorGradient
from juncture.fit.solvers.lbfgs import LBFGS
from juncture.fit.solvers.mirror_descent import MirrorDescent
from juncture.fit.solvers.problem import Solver
from juncture.fit.solvers.proximal import Proximal
from juncture.fit.solvers.sequential import Sequential
from juncture.fit.solvers.smoothed import Smoothed
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement
from random_fits import FitProblem, as_linear

DOMAIN = Domain({"a": 3, "b": 2, "c": 3})
TOTAL = 100.0
SOLVERS: list[Solver] = [
    Accelerated(),
    DualAveraging(),
    InteriorGradient(),
    LBFGS(),
    MirrorDescent(),
    Proximal(),
    Sequential(Accelerated(), Proximal()),
    Smoothed(),
]


def zeros_problem() -> FitProblem:
    """Two overlapping tables, and impossible cells in both and across them."""
    rng = np.random.default_rng(4)
    return FitProblem(
        DOMAIN,
        (
            Measurement(("a", "b"), rng.uniform(0, 40, 6), stddev=3.0),
            Measurement(("c", "b"), rng.uniform(0, 40, 6), stddev=2.0),
        ),
        TOTAL,
        "l2",
        {
            ("a", "b"): np.array([[True, False], [False, False], [False, True]]),
            ("a", "c"): np.eye(3, dtype=bool),
        },
    )


@pytest.mark.parametrize("solver", [*SOLVERS, EarlyStopping()], ids=str)
def test_excluded_cells_stay_empty_and_numbers_finite(solver: Solver) -> None:
    """Potentials are minus infinity where a constraint says so, and finite everywhere else."""
    problem = zeros_problem()
    fit = estimate(
        DOMAIN, problem.measurements, total=TOTAL, constraints=problem.constraints, solver=solver
    )
    assert math.isfinite(fit.summary.loss)
    assert not np.isnan(fit.model.potentials).any()
    assert not np.isposinf(fit.model.potentials).any()
    assert np.isneginf(fit.model.potentials).sum() == sum(
        int(mask.sum()) for mask in problem.constraints.values()
    )
    for clique, mask in problem.constraints.items():
        table = fit.model.project(clique).values
        assert (table[mask] == 0.0).all()
        assert table.sum() == pytest.approx(TOTAL)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_the_optimum_around_the_zeros_is_reached(solver: Solver) -> None:
    """The loss is that of an independent solver over the records that are possible."""
    problem = zeros_problem()
    best = bracket_optimum(as_linear(problem)).upper
    fit = estimate(
        DOMAIN, problem.measurements, total=TOTAL, constraints=problem.constraints, solver=solver,
        tolerance=1e-4,
    )  # fmt: skip
    assert fit.summary.loss == pytest.approx(best, rel=0.01)
