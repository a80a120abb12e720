"""Whole runs on neighbouring tables: no event tells more than it was charged, by exact losses."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from juncture.mechanisms.aim import AIM
from juncture.mechanisms.baselines import Direct
from juncture.mechanisms.hdmm import HDMM, Estimation
from juncture.mechanisms.mechanism import Mechanism
from juncture.mechanisms.mst import MST
from juncture.mechanisms.mwem import MWEM, Selection
from juncture.mechanisms.residual_planner import ResidualPlanner
from juncture.mechanisms.tiers import Tiers
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.workload import Workload
from scribe import Transcript, find_transcript

DOMAIN = Domain({"a": 3, "b": 2, "c": 2, "d": 2})
TRIPLES = Workload.all_marginals(DOMAIN, 3).weigh({("a", "b"): 2.0})
# Rounding of the scores, and of the shares of a budget.
SLACK = 1e-5
N_PAIRS, MAX_PAIRS, N_RECORDS = 5, 60, 300

CHOOSING: dict[str, Callable[[Budget], Mechanism]] = {
    "aim": lambda budget: AIM(budget, rounds=8, max_steps=5),
    "mst": lambda budget: MST(budget, max_steps=5),
    "tiers": lambda budget: Tiers(budget, max_steps=5),
    "tiers, some pairs": lambda budget: Tiers(budget, max_steps=5, max_pairs=3),
    "mwem": lambda budget: MWEM(budget, rounds=3, max_steps=5),
}
OTHERS: dict[str, Callable[[Budget], Mechanism]] = {
    "hdmm": lambda budget: HDMM(budget, estimation=Estimation.LOCAL),
    "direct": lambda budget: Direct(budget, max_steps=5),
    "residual": lambda budget: ResidualPlanner(budget, max_steps=5),
}
ALL = CHOOSING | OTHERS
# Much, so that Tiers finds a choice worth its price on a small table.
BUDGETS = {"pure": Budget(epsilon=150.0), "concentrated": Budget(rho=400.0)}


def make_tables(seed: int, neighbours: Neighbours) -> tuple[CodedTable, CodedTable]:
    """A random table, and one with another record, or one more."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.integers(0, size, N_RECORDS) for name, size in DOMAIN.items()}
    columns["b"] = np.where(rng.random(N_RECORDS) < 0.7, columns["a"] % 2, columns["b"])
    other = {
        name: column.copy() if neighbours is Neighbours.REPLACE else column[1:]
        for name, column in columns.items()
    }
    if neighbours is Neighbours.REPLACE:
        for name, size in DOMAIN.items():
            other[name][0] = (other[name][0] + rng.integers(1, size)) % size
    return CodedTable(DOMAIN, columns), CodedTable(DOMAIN, other)


def audit(name: str, budget: Budget, neighbours: Neighbours, **broken: float) -> list[Transcript]:
    """Some runs; of a broken copy, as many as it takes to catch it."""
    workload = Workload.of_marginals(DOMAIN, TRIPLES.cliques) if name in OTHERS else TRIPLES
    made, found = ALL[name](budget), list[Transcript]()
    for seed in range(MAX_PAIRS if broken else N_PAIRS):
        tables = make_tables(seed, neighbours)
        found.append(find_transcript(made, workload, tables, neighbours, **broken))
        if found[-1].worst > 1.0 + SLACK:
            break
    return found


@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS, ids=str)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("name", ALL)
def test_no_event_tells_more_than_it_was_charged(
    name: str, budget: Budget, neighbours: Neighbours
) -> None:
    """And all charges together are within the budget."""
    found = audit(name, budget, neighbours)
    assert len(found) == N_PAIRS
    assert max(each.worst for each in found) <= 1.0 + SLACK
    assert max(max(each.measured) for each in found) > 0.49
    assert any(each.chosen for each in found) == (name in CHOOSING)
    for each in found:
        if budget.rho is not None:
            assert math.fsum(cost.rho for cost in each.costs) <= budget.rho * (1 + 1e-9)
        else:
            assert math.fsum(cost.epsilon for cost in each.costs) <= 150.0 * (1 + 1e-9)


@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS, ids=str)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("name", ALL)
def test_half_the_noise_is_caught(name: str, budget: Budget, neighbours: Neighbours) -> None:
    """In a whole run of every mechanism."""
    caught = audit(name, budget, neighbours, noise_factor=0.5)[-1]
    assert max(caught.measured) > 1.0 + SLACK
    assert max(caught.chosen, default=0.0) <= 1.0 + SLACK


@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS, ids=str)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("name", CHOOSING)
def test_a_doubled_exponent_is_caught(name: str, budget: Budget, neighbours: Neighbours) -> None:
    """In a whole run of every mechanism that chooses."""
    caught = audit(name, budget, neighbours, exponent_factor=2.0)[-1]
    assert max(caught.chosen) > 1.0 + SLACK
    assert max(caught.measured) <= 1.0 + SLACK


def test_single_queries_are_audited_too() -> None:
    """The original form of mwem."""
    made = MWEM(BUDGETS["pure"], rounds=2, max_steps=5, selection=Selection.QUERY)
    workload = Workload.all_marginals(DOMAIN, 2)
    copies: list[dict[str, float]] = [{}, {"exponent_factor": 2.0}]
    worst = [
        max(
            find_transcript(
                made, workload, make_tables(seed, Neighbours.REPLACE), Neighbours.REPLACE, **broken
            ).worst
            for seed in range(8)
        )
        for broken in copies
    ]
    assert worst[0] <= 1.0 + SLACK < worst[1]
