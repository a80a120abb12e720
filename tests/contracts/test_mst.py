"""MST: the tree that it finds, and rare values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chain_table import DOMAIN, WORKLOAD, simulate, table
from juncture.mechanisms.mst import MST
from juncture.privacy.budget import Budget
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.workload import Workload


def test_mst_finds_the_tree_of_a_tree(tmp_path: Path) -> None:
    """With next to no noise, the pairs that it chooses are those that made the records."""
    result = simulate(MST(Budget(rho=1e6)), table(), tmp_path / "ledger", WORKLOAD)
    assert {frozenset(edge) for edge in result.details["tree"]} == {
        frozenset("ab"),
        frozenset("bc"),
        frozenset("cd"),
    }


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_mst_of_few_columns(n_columns: int, tmp_path: Path) -> None:
    """All of the budget is spent, and as many pairs measured as a tree has edges."""
    domain = Domain(dict(list(DOMAIN.items())[:n_columns]))
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, size, 100) for name, size in domain.items()}
    mechanism = MST(Budget(rho=0.3))
    workload = Workload.all_marginals(domain, 1)
    result = simulate(mechanism, CodedTable(domain, columns), tmp_path / "ledger", workload)
    assert len(result.measurements) == 2 * n_columns - 1
    paid = [entry.cost for entry in result.guarantee.events]
    assert mechanism.budget.compose(paid) == pytest.approx(0.3)


def test_rare_values_are_measured_together(tmp_path: Path) -> None:
    """In pairs they are one answer; the model still has every value, and keeps the records."""
    domain = Domain({"a": 40, "b": 2, "c": 2})
    rng = np.random.default_rng(0)
    a = np.where(rng.random(2000) < 0.98, rng.integers(0, 3, 2000), rng.integers(3, 40, 2000))
    source = CodedTable(domain, {"a": a, "b": a % 2, "c": rng.integers(0, 2, 2000)})
    workload = Workload.all_marginals(domain, 2)
    result = simulate(MST(Budget(rho=0.1)), source, tmp_path / "ledger", workload)
    assert result.details["merged"] == ["a"]
    (pair,) = (m for m in result.measurements if set(m.clique) == {"a", "b"})
    assert 2 * 4 <= pair.n_rows < 2 * 10
    values = result.project(("a", "b")).values
    assert values.shape == (40, 2)
    assert values.sum() == pytest.approx(2000)
