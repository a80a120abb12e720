"""AIM: candidates, costs, rounds, and the limit of its model."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from chain_table import DOMAIN, ONE, WORKLOAD, table
from juncture.errors import InvalidInput
from juncture.mechanisms.aim import AIM, leave_out_hopeless, weigh_candidates
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.workload import Workload


def test_candidates_lie_below_the_workload() -> None:
    """All subsets, weighted by the columns that they have in common with every task."""
    domain = Domain({"a": 2, "b": 3, "c": 2, "d": 2})
    workload = Workload.of_marginals(domain, [("c", "a"), ("a", "b", "c"), ("b",)])
    weights = weigh_candidates(workload)
    sums = {
        clique: sum(len(set(clique) & set(task.clique)) for task in workload.tasks)
        for clique in weights
    }
    assert set(weights) == {(*"a",), (*"b",), (*"c",), (*"ab",), (*"ac",), (*"bc",), (*"abc",)}
    largest = max(sums.values())
    assert weights == pytest.approx({clique: each / largest for clique, each in sums.items()})


def test_sets_that_no_table_could_make_worth_choosing_are_left_out() -> None:
    """At the limit, the penalty is the largest distance that there is."""
    domain, n_records, noise = Domain({"a": 10, "b": 10, "c": 3}), 100, 2.0
    cliques = [("a",), ("a", "b"), ("a", "b", "c")]
    cells = {clique: domain.size_of(clique) for clique in cliques}
    kept = leave_out_hopeless(cells, 2.0 * n_records / noise)
    assert kept == [("a",), ("a", "b")]
    # All records in one cell, and the model has all in another.
    counts, answers = np.zeros(300), np.zeros(300)
    counts[0] = answers[1] = n_records
    assert np.abs(counts - answers).sum() - noise * domain.size_of(cliques[2]) < 0.0
    assert np.abs(counts - answers).sum() - noise * domain.size_of(cliques[1]) >= 0.0
    assert leave_out_hopeless(cells, 5.0) == cliques


@pytest.mark.parametrize("price", [{"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}])
@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS)
def test_aim_spends_no_more_than_its_bound(
    price: dict[str, float], neighbours: Neighbours, tmp_path: Path
) -> None:
    """The costs stated beforehand and those paid both add up to the budget, never above it."""
    budget = Budget(**price)
    run = AIM(budget).prepare(WORKLOAD, neighbours)
    assert not run.costs_are_exact
    assert budget.compose(run.costs) == pytest.approx(budget.limit, rel=1e-6)
    for seed in range(3):
        ledger = Ledger.create(tmp_path / f"{seed}", budget, neighbours)
        curator = SimulatedCurator(table(300), ledger, rng=np.random.default_rng(seed))
        result = run(curator)
        paid = [entry.cost for entry in ledger.events]
        assert len(paid) <= len(run.costs)
        assert budget.limit * (1 - 1e-6) <= budget.compose(paid) <= budget.limit
        assert len(paid) == len(DOMAIN) + 2 * result.details["rounds"]


def test_aims_rounds_become_dearer_where_nothing_is_learned(tmp_path: Path) -> None:
    """On uniform records every measurement is noise: each round has half the noise of the last."""
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, size, 2000) for name, size in DOMAIN.items()}
    ledger = Ledger.create(tmp_path / "ledger", Budget(rho=0.001))
    curator = SimulatedCurator(CodedTable(DOMAIN, columns), ledger, rng=rng)
    result = AIM(Budget(rho=0.001)).run(curator, WORKLOAD)
    stddevs = [float(m.stddev) for m in result.measurements[len(DOMAIN) - 1 :]]
    halved = [late / early for early, late in pairwise(stddevs[:-1])]
    assert set(np.round(halved, 2)) <= {0.5, 1.0}
    assert sum(abs(each - 0.5) < 0.01 for each in halved) >= 2
    assert result.details["rounds"] < 16 * len(DOMAIN) // 4


def test_aim_keeps_its_model_within_the_limit(tmp_path: Path) -> None:
    """What would be larger is never chosen, but for the columns themselves."""
    cells = {}
    for limit in (1, 40, 4_000_000):
        budget = Budget(epsilon=1e6)
        ledger = Ledger.create(tmp_path / f"{limit}", budget, Neighbours.REPLACE)
        curator = SimulatedCurator(table(), ledger, rng=np.random.default_rng(0))
        outcome = AIM(budget, max_model_cells=limit).run(curator, WORKLOAD)
        assert outcome.model is not None
        cells[limit] = outcome.model.plan.cells
    assert cells[1] == sum(DOMAIN.shape)
    assert cells[40] <= 40 < cells[4_000_000]


def test_aim_learns_the_whole_table_where_it_may(tmp_path: Path) -> None:
    """With next to no noise and one task about all columns, the model is the table."""
    source = table(500)
    names = tuple(DOMAIN)
    workload = Workload.of_marginals(DOMAIN, [names])
    budget = Budget(rho=1e6)
    ledger = Ledger.create(tmp_path / "ledger", budget, Neighbours.REPLACE)
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(0))
    result = AIM(budget, max_steps=5000).run(curator, workload)
    exact = source.exact_counts([names])[0].values
    assert np.abs(result.project(names).values - exact).sum() <= 0.02 * exact.sum()


def test_aim_refuses_what_it_cannot_do() -> None:
    """Rounds that the columns would use up, a share that is none, a workload without columns."""
    for bad in (AIM(ONE, rounds=4), AIM(ONE, measured_fraction=1.0)):
        with pytest.raises(InvalidInput):
            bad.prepare(WORKLOAD, Neighbours.REPLACE)
    with pytest.raises(InvalidInput, match="about a column"):
        AIM(ONE).prepare(Workload.of_marginals(DOMAIN, [()]), Neighbours.REPLACE)
