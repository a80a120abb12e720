"""What is measured once: direct shares, and residuals with the best noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chain_table import DOMAIN, ONE, WORKLOAD
from juncture.errors import InvalidInput
from juncture.mechanisms.baselines import Direct, Division
from juncture.mechanisms.residual_planner import (
    ResidualPlanner,
    contrasts,
    weigh_residuals,
)
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.workload import Workload


def test_direct_shares_by_cells_are_the_best() -> None:
    """No other division of the budget has less total variance; equal noise with equal shares."""
    for budget, power in ((Budget(rho=0.1), 1), (Budget(epsilon=1.0), 2)):
        run = Direct(budget, division=Division.CELLS).prepare(WORKLOAD, Neighbours.REPLACE)
        total = sum(each.cells * each.stddev**2 for each in run.marginals)
        shares = np.array([each.share for each in run.marginals])
        for seed in range(20):
            other = shares * np.exp(0.1 * np.random.default_rng(seed).normal(size=len(shares)))
            factor = (shares / (other * shares.sum() / other.sum())) ** power
            cells = np.array([each.cells * each.stddev**2 for each in run.marginals])
            assert (cells * factor).sum() >= total * (1 - 1e-12)
        equal = Direct(budget).prepare(WORKLOAD, Neighbours.REPLACE)
        assert len({round(each.stddev, 9) for each in equal.marginals}) == 1


def test_large_trees_are_not_built_by_default() -> None:
    """Where an exact fit would be slow, a plan has records, unless an oracle is named."""
    wide = Workload.all_marginals(Domain({f"x{i}": 8 for i in range(12)}), 2)
    for make in (Direct, ResidualPlanner):
        runs = [make(ONE).prepare(each, Neighbours.REPLACE) for each in (wide, WORKLOAD)]
        runs.append(make(ONE, oracle="records").prepare(WORKLOAD, Neighbours.REPLACE))
        plans = [run.plan for run in runs]
        assert [plan is not None and plan.has_tree for plan in plans] == [False, True, False]


@pytest.mark.parametrize("size", [2, 3, 7, 50])
def test_contrasts_are_orthonormal(size: int) -> None:
    """Among each other and to the total; every column has the same norm."""
    rows = contrasts(size)
    np.testing.assert_allclose(rows @ rows.T, np.eye(size - 1), atol=1e-12)
    np.testing.assert_allclose(rows.T @ rows, np.eye(size) - 1 / size, atol=1e-12)


def test_residuals_reach_the_bound_of_every_linear_mechanism() -> None:
    """The total variance is the singular-value bound of the matrix mechanism, from the matrix."""
    rho = 0.4
    run = ResidualPlanner(Budget(rho=rho)).prepare(WORKLOAD, Neighbours.ADD_OR_REMOVE)
    total = sum(each.cells * each.error**2 for each in run.marginals)
    positions = np.arange(DOMAIN.size).reshape(DOMAIN.shape)
    rows = []
    for clique in WORKLOAD.cliques:
        for cell in np.ndindex(*[DOMAIN[name] for name in clique]):
            index = [slice(None)] * len(DOMAIN)
            for name, value in zip(clique, cell, strict=True):
                index[list(DOMAIN).index(name)] = value
            row = np.zeros(DOMAIN.size)
            row[positions[tuple(index)].reshape(-1)] = 1.0
            rows.append(row)
    singular = np.linalg.svd(np.array(rows), compute_uv=False)
    assert total == pytest.approx(singular.sum() ** 2 / DOMAIN.size / (2 * rho), rel=1e-9)


def test_residuals_have_the_errors_that_were_forecast(tmp_path: Path) -> None:
    """Least squares on many runs: the spread of a cell is what was known before."""
    domain = Domain({"a": 3, "b": 4})
    workload = Workload.all_marginals(domain, 2)
    mechanism = ResidualPlanner(Budget(rho=0.05), max_steps=1)
    run = mechanism.prepare(workload, Neighbours.ADD_OR_REMOVE)
    source = CodedTable(domain, {"a": np.zeros(50, dtype=int), "b": np.ones(50, dtype=int)})
    ledger = Ledger.create(tmp_path / "ledger", Budget(rho=1e6))
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(0))
    exact, errors = source.exact_counts([("a", "b")])[0].values.reshape(-1), []
    for _ in range(300):
        measured = run(curator).measurements
        matrix = np.concatenate([_dense(m, domain) / m.stddev for m in measured])
        values = np.concatenate([m.values / m.stddev for m in measured])
        errors.append(np.linalg.lstsq(matrix, values, rcond=None)[0] - exact)
    spread = float(np.sqrt(np.mean(np.square(errors))))
    assert spread == pytest.approx(run.marginals[0].error, rel=0.05)


def _dense(measured: Measurement, domain: Domain) -> np.ndarray:
    """The matrix of a measurement on the full table."""
    rows = []
    for cell in np.eye(domain.size).reshape(-1, *domain.shape):
        table = Factor(domain, cell).project(measured.clique)
        rows.append(measured.operator(domain).apply(table.values).reshape(-1))
    return np.array(rows).T


def test_residuals_leave_out_what_says_nothing() -> None:
    """Columns of one value have no contrast, and very long ones are refused."""
    domain = Domain({"a": 3, "one": 1, "b": 2})
    weights = weigh_residuals(Workload.all_marginals(domain, 2))
    assert set(weights) == {(), ("a",), ("b",), ("a", "b")}
    long = Workload.all_marginals(Domain({"a": 1001}), 1)
    with pytest.raises(InvalidInput, match="at most 1,000 values"):
        ResidualPlanner(ONE).prepare(long, Neighbours.REPLACE)
