"""No mechanism takes money and then refuses: what can be foreseen is refused before it is paid."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from juncture.errors import BudgetExceeded, InvalidInput, JunctureError
from juncture.mechanisms.dual_query import DualQuery
from juncture.mechanisms.mwem import MWEM
from juncture.mechanisms.registry import offers, prepare
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.privacy.price import Pure
from juncture.privacy.score import DependenceScore, MarginalError, RowError, Score
from juncture.private.curator import Curator
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.queries.blocks import Prefix
from juncture.tables.workload import Workload

SMALL = Domain({"a": 2, "b": 3, "c": 2})
DOMAINS = {"small": SMALL, "ones": Domain({"a": 1, "b": 1}), "column": Domain({"a": 4})}
BUDGETS = [
    Budget(epsilon=1.0), Budget(epsilon=1e-6), Budget(epsilon=1e6), Budget(rho=1e-9),
    Budget(epsilon=1.0, delta=1e-6),
]  # fmt: skip


def table(domain: Domain, n: int) -> CodedTable:
    """A table of so many records."""
    rng = np.random.default_rng(0)
    return CodedTable(domain, {name: rng.integers(0, size, n) for name, size in domain.items()})


@pytest.mark.slow
@pytest.mark.parametrize("name", offers())
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_what_is_begun_is_completed(name: str, domain: Domain, tmp_path: Path) -> None:
    """On tables with no records and with two, with hardly any budget and with far too much."""
    workload = Workload.all_marginals(domain, min(2, len(domain)))
    for number, budget in enumerate(BUDGETS):
        for neighbours in (Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE):
            for n in (0, 2):
                path = tmp_path / f"{number} {neighbours} {n}"
                ledger = Ledger.create(path, budget, neighbours)
                rng = np.random.default_rng(0)
                curator = SimulatedCurator(table(domain, n), ledger, rng=rng)
                try:
                    run = prepare(name, budget, workload, neighbours, curator.public_n_records)
                except JunctureError:
                    assert not ledger.events
                    continue
                run(curator).release()
                assert ledger.spent <= budget.limit * (1.0 + 1e-9)
                assert not ledger.reserved


def test_noise_that_hides_a_large_marginal_ends_nothing(tmp_path: Path) -> None:
    """Its penalty is beyond what a score can hold: it is then never chosen, and others are."""
    domain = Domain({"a": 3000, "b": 400, "c": 2})
    budget = Budget(epsilon=0.02)
    ledger = Ledger.create(tmp_path / "l", budget)
    curator = SimulatedCurator(table(domain, 50), ledger, rng=np.random.default_rng(0))
    workload = Workload.of_marginals(domain, [("a", "b"), ("b", "c")])
    result = MWEM(budget, rounds=2, max_steps=5).run(curator, workload)
    assert ledger.spent == pytest.approx(0.02)
    assert ("a", "b") not in [measured.clique for measured in result.measurements]


def test_a_table_without_records_is_refused_where_that_is_public(tmp_path: Path) -> None:
    """By every mechanism, before anything is paid; where it is private nobody can tell."""
    workload = Workload.all_marginals(SMALL, 2)
    for name in offers():
        with pytest.raises(JunctureError):
            prepare(name, Budget(rho=1.0), workload, Neighbours.REPLACE, 0)
    ledger = Ledger.create(tmp_path / "l", Budget(epsilon=1.0))
    curator = SimulatedCurator(table(SMALL, 0), ledger, rng=np.random.default_rng(0))
    prepare("hdmm", Budget(epsilon=1.0), workload, Neighbours.ADD_OR_REMOVE)(curator).release()


def test_dual_query_stays_within_the_limits_of_draws() -> None:
    """So many rounds, and an eta, as the curator will take; and its costs fit its budget."""
    workload = Workload.all_marginals(SMALL, 1)
    with pytest.raises(InvalidInput, match="`eta` must be positive and at most 100"):
        DualQuery(Budget(rho=1.0), eta=101.0).prepare(workload, Neighbours.REPLACE, 100)
    assert DualQuery(Budget(rho=1e9), eta=1e-6).count_rounds(10**6) == 100_001
    for n in (1, 1000, 10**8):
        budget = Budget(rho=1e-6)
        run = DualQuery(budget, max_rounds=2000).prepare(workload, Neighbours.REPLACE, n)
        assert budget.allows(run.costs)


def test_choices_check_their_arguments_before_they_are_paid(tmp_path: Path) -> None:
    """Whatever a score cannot do is refused without a trace in the ledger."""
    ledger = Ledger.create(tmp_path / "l", Budget(epsilon=1.0), Neighbours.REPLACE)
    curator = Curator(table(SMALL, 20), ledger)
    before = ledger.path.read_bytes()
    bad: list[Callable[[], Score[Any]]] = [
        lambda: DependenceScore([("nobody", ("a",))]),
        lambda: DependenceScore([("a", ("a",))]),
        lambda: DependenceScore([("a", ("b", "b"))]),
        lambda: DependenceScore([]),
        lambda: MarginalError({("a", "x"): [0.0, 1.0]}),
        lambda: MarginalError({("a",): [0.0, float("nan")]}),
        lambda: RowError([(("a",), Prefix())], [[0.0]]),
    ]
    for make in bad:
        with pytest.raises(InvalidInput):
            curator.select(make(), Pure(0.1))
        assert ledger.path.read_bytes() == before


def test_releases_at_once_are_completed_or_never_begun(tmp_path: Path) -> None:
    """Of two runs that share a budget for one, the second is refused before its first event."""
    ledger = Ledger.create(tmp_path / "l", Budget(epsilon=1.0))
    workload = Workload.all_marginals(SMALL, 2)
    run = prepare("mwem", Budget(epsilon=0.6), workload, Neighbours.ADD_OR_REMOVE)
    second = SimulatedCurator(table(SMALL, 50), ledger, rng=np.random.default_rng(1))
    refused: list[bool] = []

    class Meanwhile(CodedTable):
        def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
            if not refused:
                with pytest.raises(BudgetExceeded):
                    run(second)
                refused.append(True)
            return super().exact_counts(cliques)

    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, size, 50) for name, size in SMALL.items()}
    run(SimulatedCurator(Meanwhile(SMALL, columns), ledger, rng=rng))
    assert refused
    assert not second.events
    assert ledger.spent == pytest.approx(0.6)
    assert ledger.remaining == pytest.approx(0.4)
