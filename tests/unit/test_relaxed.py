"""The relaxed oracle of the experiments, against exact inference and a general convex solver."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray
from relaxed import Relaxed, fit_relaxed
from scipy.linalg import null_space
from scipy.optimize import minimize

from juncture import Domain, Measurement, estimate
from juncture.engine import Plan, Propagation

TREE = [("a", "b"), ("b", "c"), ("b", "d", "e")]
CYCLE = [("a", "b"), ("b", "c"), ("a", "c")]


def test_counting_numbers_of_bethe_are_exact_on_a_tree() -> None:
    """There, messages are belief propagation and the marginals are those of the distribution."""
    domain = Domain({"a": 3, "b": 2, "c": 4, "d": 2, "e": 3})
    rng = np.random.default_rng(0)
    exact = Propagation(Plan.build(domain, TREE))
    potentials = rng.normal(0, 2, exact.layout.size)
    marginals = exact.marginals(potentials).marginals
    tables = [exact.layout.view(potentials, clique) for clique in TREE]
    found = Relaxed(domain, TREE, counting=None).find_marginals(tables)
    for clique, table in zip(TREE, found, strict=True):
        np.testing.assert_allclose(table, exact.layout.view(marginals, clique), atol=1e-8)


def test_tables_maximise_the_convex_entropy_on_a_cycle() -> None:
    """A general solver, which knows nothing of messages, finds no better tables that agree."""
    domain = Domain({"a": 2, "b": 2, "c": 2})
    potentials = np.random.default_rng(1).normal(0, 1.5, (3, 2, 2))

    def disagree(cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """What must be zero of three tables of pairs and the three singles between them."""
        tables, singles = cells[:12].reshape(3, 2, 2), cells[12:].reshape(3, 2)
        gaps = [table.sum() for table in tables]
        for pair, table in zip(CYCLE, tables, strict=True):
            first, second = (singles["abc".index(name)] for name in pair)
            gaps += [*(table.sum(axis=1) - first), *(table.sum(axis=0) - second)]
        return np.array(gaps)

    directions = null_space(np.array([disagree(unit) for unit in np.eye(18)]).T)
    uniform = np.r_[np.full(12, 0.25), np.full(6, 0.5)]

    def find_energy(steps: NDArray[np.float64]) -> float:
        cells = np.maximum(uniform + directions @ steps, 1e-12)
        return float((cells * np.log(cells)).sum() - potentials.reshape(-1) @ cells[:12])

    inside = {"type": "ineq", "fun": lambda steps: uniform + directions @ steps - 1e-9}
    best = minimize(
        find_energy, np.zeros(directions.shape[1]), method="SLSQP", constraints=inside,
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    found = Relaxed(domain, CYCLE).find_marginals(list(potentials))
    expected = (uniform + directions @ best.x)[:12].reshape(3, 2, 2)
    np.testing.assert_allclose(np.array(found), expected, atol=1e-5)


def test_a_fit_on_a_tree_is_the_exact_fit() -> None:
    """Tables that agree belong to a distribution there, so the least loss is the same."""
    domain, total = Domain({"a": 3, "b": 2, "c": 4, "d": 2, "e": 3}), 1000.0
    rng = np.random.default_rng(2)
    measurements = []
    for clique in TREE:
        shares = rng.dirichlet(np.ones(domain.size_of(clique)))
        measurements.append(Measurement(clique, total * shares, stddev=20.0))
    exact = estimate(domain, measurements, total=total, tolerance=1e-7)
    *_, last = islice(fit_relaxed(domain, measurements, total), 2000)
    assert last.loss == pytest.approx(exact.summary.loss, rel=1e-3)
    for clique, table in zip(TREE, last.tables, strict=True):
        expected = exact.model.project(clique).values / total
        np.testing.assert_allclose(table, expected, atol=2e-3)


def test_a_fit_on_a_cycle_finds_tables_of_no_distribution() -> None:
    """Three pairs that differ in pairs agree on singles, and exact inference cannot follow."""
    domain, total = Domain({"a": 2, "b": 2, "c": 2}), 1000.0
    measurements = [Measurement(clique, [0, 500, 500, 0], stddev=10.0) for clique in CYCLE]
    *_, last = islice(fit_relaxed(domain, measurements, total), 300)
    exact = estimate(domain, measurements, total=total)
    assert last.loss < 1e-3 * exact.summary.loss
