"""Every solver reaches the optimum that an independent solver finds on the dense table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import nnls

from juncture import block
from juncture.domain import Domain
from juncture.estimation import Estimate, Status, estimate
from juncture.measurement import Measurement
from juncture.query import Kron, Query, bind
from juncture.solvers.accelerated import Accelerated
from juncture.solvers.dual_averaging import DualAveraging
from juncture.solvers.mirror_descent import MirrorDescent
from juncture.solvers.problem import Solver

Array = NDArray[np.float64]
TOTAL = 200.0
DOMAIN = Domain({"a": 3, "b": 2, "c": 3, "d": 2})


@dataclass(frozen=True)
class Case:
    """Cliques with queries, and how noisy their answers are."""

    name: str
    queries: tuple[tuple[tuple[str, ...], Query], ...]
    stddevs: tuple[float, ...]

    def __str__(self) -> str:
        """Give the name, which pytest shows."""
        return self.name


def plain(*cliques: str) -> tuple[tuple[tuple[str, ...], Query], ...]:
    """Cliques written as letters, each cell counted."""
    return tuple((tuple(clique), block.Identity()) for clique in cliques)


CASES = [
    Case("chain", plain("ab", "bc", "cd"), (3.0, 3.0, 3.0)),
    Case("cycle", plain("ab", "bc", "cd", "da"), (5.0, 5.0, 5.0, 5.0)),
    Case("unequal noise", plain("abc", "cd", "a"), (1.0, 20.0, 4.0)),
    Case("repeated and nested", plain("ab", "ba", "b", "d"), (3.0, 9.0, 2.0, 5.0)),
    Case(
        "prefixes",
        ((("a", "c"), Kron({"a": block.Prefix(), "c": block.Prefix()})), *plain("bd")),
        (4.0, 4.0),
    ),
    Case(
        "random queries",
        ((("c", "a"), block.Matrix(np.random.default_rng(5).normal(size=(7, 9)))), *plain("ab")),
        (2.0, 2.0),
    ),
]
SOLVERS: list[tuple[Solver, float]] = [
    (Accelerated(), 1e-7),
    (DualAveraging(), 1e-3),
    (MirrorDescent(), 1e-2),
]


def measured(case: Case) -> list[Measurement]:
    """Noisy answers about a random table."""
    rng = np.random.default_rng(7)
    table = rng.multinomial(int(TOTAL), rng.dirichlet(np.ones(DOMAIN.size) * 0.3))
    found = []
    for (clique, query), stddev in zip(case.queries, case.stddevs, strict=True):
        answers = matrix_of(clique, query) @ table
        noisy = answers + rng.normal(size=len(answers)) * stddev
        found.append(Measurement(clique, noisy, stddev=stddev, query=query))
    return found


def matrix_of(clique: tuple[str, ...], query: Query) -> Array:
    """The query on the full table, a column for each record, one record at a time."""
    part = DOMAIN.project(clique)
    operator, columns = bind(query, part), []
    for record in product(*map(range, DOMAIN.shape)):
        one = np.zeros(part.shape)
        one[tuple(record[DOMAIN.positions[name]] for name in clique)] = 1.0
        columns.append(operator.apply(one))
    return np.array(columns).T


def optimum(measurements: list[Measurement]) -> float:
    """The least loss over all tables with the total, by active sets on the dense table."""
    rows = [matrix_of(m.clique, m.query) / m.stddev for m in measurements]
    goals = [m.values / m.stddev for m in measurements]
    heavy = 1e5
    matrix = np.vstack([*rows, np.full((1, DOMAIN.size), heavy)])
    table, _ = nnls(matrix, np.concatenate([*goals, [heavy * TOTAL]]))
    table *= TOTAL / table.sum()
    pairs = zip(rows, goals, strict=True)
    return sum(0.5 * float(np.sum((r @ table - g) ** 2)) for r, g in pairs)


def fitted(case: Case, solver: Solver) -> Estimate:
    """A long fit."""
    return estimate(
        DOMAIN, measured(case), total=TOTAL, solver=solver, tolerance=1e-9, max_steps=20_000
    )


@pytest.mark.parametrize(("solver", "accuracy"), SOLVERS, ids=["accelerated", "dual", "mirror"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_optimum_is_reached(case: Case, solver: Solver, accuracy: float) -> None:
    """The loss is that of the independent solver, up to the accuracy the method can give."""
    best = optimum(measured(case))
    assert fitted(case, solver).statistics.loss == pytest.approx(best, rel=accuracy, abs=accuracy)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_certificate_is_valid(case: Case) -> None:
    """The certified bound is never above the true optimum, and the loss never below it."""
    best, statistics = optimum(measured(case)), fitted(case, Accelerated()).statistics
    assert statistics.lower_bound <= best * (1 + 1e-7) + 1e-7
    assert statistics.loss >= best * (1 - 1e-6) - 1e-6
    assert statistics.gap >= statistics.loss - best - 1e-6
    assert math.isfinite(statistics.lower_bound)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_potentials_belong_to_the_marginals(case: Case) -> None:
    """The dense table of the returned potentials has the returned marginals and entropy."""
    model = fitted(case, Accelerated()).model
    log_table = np.zeros(DOMAIN.shape)
    for clique in model.cliques:
        potential = model.layout.factor(model.potentials, clique)
        log_table = log_table + potential.expand(DOMAIN).values
    weights = np.exp(log_table - log_table.max())
    weights /= weights.sum()
    for clique in model.cliques:
        dropped = tuple(i for i, name in enumerate(DOMAIN) if name not in clique)
        expected = TOTAL * weights.sum(axis=dropped)
        np.testing.assert_allclose(model.project(clique).values, expected, atol=1e-8)
    positive = weights[weights > 0]
    assert model.entropy == pytest.approx(-np.sum(positive * np.log(positive)), abs=1e-8)


def test_a_start_of_another_structure_is_taken_up() -> None:
    """With one more measurement, starting from the last model takes fewer calls."""
    measurements = measured(CASES[1])
    before = estimate(DOMAIN, measurements[:3], total=TOTAL).model
    cold = estimate(DOMAIN, measurements, total=TOTAL).statistics
    warm = estimate(DOMAIN, measurements, total=TOTAL, start=before).statistics
    assert warm.trace[0][1] < cold.trace[0][1]
    assert warm.loss == pytest.approx(cold.loss, rel=0.01)


def test_running_out_of_steps_is_a_status() -> None:
    """With few steps the status says so and advises more."""
    result = estimate(DOMAIN, measured(CASES[1]), total=TOTAL, max_steps=5)
    assert result.status is Status.OUT_OF_STEPS
    assert "Raise `max_steps`" in result.status.value
