"""What is known before: costs as the ledger will have them, errors as they will be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from juncture.errors import BudgetExceeded, InvalidInput
from juncture.mechanisms.hdmm import HDMM, Estimation
from juncture.mechanisms.registry import make_mechanism, prepare
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.queries.blocks import Identity, Prefix
from juncture.tables.workload import Task, Workload

DOMAIN = Domain({"a": 4, "b": 3, "c": 2, "d": 5})
WORKLOAD = Workload.all_marginals(DOMAIN, 2)
N = 500
BUDGETS = {
    "pure": Budget(epsilon=2.0),
    "concentrated": Budget(rho=0.4),
    "approximate": Budget(epsilon=2.0, delta=1e-6),
}


def source() -> CodedTable:
    """A small table."""
    rng = np.random.default_rng(0)
    return CodedTable(DOMAIN, {name: rng.integers(0, size, N) for name, size in DOMAIN.items()})


ALL = [
    (n, b, r)
    for n in ("hdmm", "mwem")
    for b in BUDGETS
    for r in (Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE)
]
ALL += [("privbayes", budget, Neighbours.REPLACE) for budget in BUDGETS]
ALL += [("dualquery", b, Neighbours.REPLACE) for b in ("concentrated", "approximate")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "budget", "neighbours"), ALL)
def test_costs_are_those_that_the_ledger_will_have(
    name: str, budget: str, neighbours: Neighbours, tmp_path: Path
) -> None:
    """Every event costs what was predicted, in the same order."""
    n_records = N if neighbours == Neighbours.REPLACE else None
    run = prepare(name, BUDGETS[budget], WORKLOAD, neighbours, n_records)
    ledger = Ledger.create(tmp_path / "ledger", BUDGETS[budget], neighbours)
    result = run(SimulatedCurator(source(), ledger, rng=np.random.default_rng(0)))
    assert list(result.guarantee.events) == [event.publish() for event in ledger.events]
    assert len(ledger.events) == len(run.costs)
    for event, cost in zip(ledger.events, run.costs, strict=True):
        assert event.cost.rho == pytest.approx(cost.rho)
        assert event.cost.epsilon == pytest.approx(cost.epsilon)
    assert ledger.spent == pytest.approx(BUDGETS[budget].compose(run.costs))


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["pure", "concentrated"])
@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS)
def test_errors_are_those_of_least_squares(
    budget: str, neighbours: Neighbours, tmp_path: Path
) -> None:
    """The mean squared error of many runs, from each task's measurement, is what was predicted."""
    blocks = (Prefix(), Identity())
    domain = Domain({"x": 8, "y": 3})
    workload = Workload(domain, (Task(("x", "y"), blocks), Task(("y",), (Identity(),))))
    rng = np.random.default_rng(1)
    table = CodedTable(domain, {"x": rng.integers(0, 8, N), "y": rng.integers(0, 3, N)})
    mechanism = HDMM(BUDGETS[budget], estimation=Estimation.LOCAL)
    ahead = mechanism.prepare(workload, neighbours)
    truth = workload.answers(lambda clique: table.exact_counts([clique])[0])
    squares: list[list[float]] = [[], []]
    for run in range(300):
        ledger = Ledger.create(tmp_path / f"{run}", BUDGETS[budget], neighbours)
        outcome = mechanism.run(
            SimulatedCurator(table, ledger, rng=np.random.default_rng(run)), workload
        )
        for found, t, answer in zip(squares, truth, outcome.answers(workload), strict=True):
            found.append(float(np.mean((t - answer) ** 2)))
    for marginal, found in zip(ahead.marginals, squares, strict=True):
        assert marginal.error == pytest.approx(np.sqrt(np.mean(found)), rel=0.1)


def test_a_run_that_cannot_be_paid_is_refused_before_it_begins(tmp_path: Path) -> None:
    """A ledger refuses costs that go beyond what is left, and stays as it was."""
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1.0), Neighbours.ADD_OR_REMOVE)
    ahead = prepare("mwem", Budget(epsilon=1.01), WORKLOAD, ledger.neighbours)
    with pytest.raises(BudgetExceeded, match="total of 1.01"):
        ledger.refuse_unaffordable(ahead.costs)
    assert ledger.events == []


@pytest.mark.parametrize(
    ("name", "budget", "neighbours", "records", "words"),
    [
        ("dualquery", Budget(epsilon=1.0), Neighbours.REPLACE, 10, "Add a delta"),
        ("privbayes", Budget(epsilon=1.0), Neighbours.ADD_OR_REMOVE, 10, "replace one record"),
        ("privbayes", Budget(epsilon=1.0), Neighbours.REPLACE, None, "public number of records"),
        ("guessing", Budget(epsilon=1.0), Neighbours.REPLACE, 10, "must be one of hdmm"),
    ],
)
def test_what_cannot_be_predicted_is_refused(
    name: str, budget: Budget, neighbours: Neighbours, records: int | None, words: str
) -> None:
    """A mechanism without what it needs gets a clear error."""
    with pytest.raises(InvalidInput, match=words):
        make_mechanism(name, budget).prepare(WORKLOAD, neighbours, records)
