"""What counts more is chosen first, and measured with less noise, by every mechanism that asks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from juncture.errors import InvalidInput
from juncture.mechanisms.aim import AIM, weigh_candidates
from juncture.mechanisms.baselines import Direct
from juncture.mechanisms.hdmm import HDMM, Template
from juncture.mechanisms.mechanism import Mechanism
from juncture.mechanisms.mwem import MWEM, Selection
from juncture.mechanisms.residual_planner import ResidualPlanner
from juncture.mechanisms.strategy import Shares
from juncture.mechanisms.tier_tables import TierCandidates
from juncture.mechanisms.tiers import Tiers
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.workload import Workload

DOMAIN = Domain({"a": 3, "b": 3, "c": 3, "d": 3})
EQUAL = Workload.all_marginals(DOMAIN, 2)
WEIGHTED = EQUAL.weigh({("c", "d"): 50.0})
BUDGET = Budget(rho=0.1)


def table() -> CodedTable:
    """Records in which `b` follows `a` and `d` follows `c`, equally closely."""
    rng, n = np.random.default_rng(0), 5000
    columns = {}
    for one, two in (("a", "b"), ("c", "d")):
        columns[one] = rng.integers(0, 3, n)
        columns[two] = np.where(rng.random(n) < 0.5, columns[one], rng.integers(0, 3, n))
    return CodedTable(DOMAIN, columns)


@pytest.mark.parametrize(
    "mechanism",
    [
        HDMM(BUDGET),
        HDMM(BUDGET, shares=Shares.TOTAL),
        HDMM(BUDGET, shares=Shares.RELATIVE),
        HDMM(BUDGET, template=Template.MARGINALS),
        ResidualPlanner(BUDGET),
        Direct(BUDGET),
    ],
    ids=["equal", "total", "relative", "marginals", "residual", "direct"],
)
def test_what_is_planned_knows_the_weights(mechanism: Mechanism) -> None:
    """The weighted sum of squared errors is less than that of a plan without weights."""

    def expect(workload: Workload) -> tuple[float, float]:
        run = mechanism.prepare(workload, Neighbours.ADD_OR_REMOVE)
        squares = {each.clique: each.error**2 for each in run.marginals}
        weighted = sum(w * squares[c] for c, w in WEIGHTED.clique_weights.items())
        return weighted, squares["c", "d"]

    (with_weights, own), (without, plain) = expect(WEIGHTED), expect(EQUAL)
    assert own < 0.6 * plain
    assert with_weights < 0.9 * without


@pytest.mark.parametrize("factor", [0.1, 7.0])
def test_weights_that_are_all_the_same_change_nothing(factor: float) -> None:
    """Only what counts more than others counts."""
    same = EQUAL.weigh({(name,): factor for name in DOMAIN})
    assert weigh_candidates(same) == pytest.approx(weigh_candidates(EQUAL))
    assert TierCandidates.of_workload(same).pairs == TierCandidates.of_workload(EQUAL).pairs


@pytest.mark.parametrize(
    "mechanism", [MWEM(BUDGET, rounds=1), AIM(BUDGET, rounds=5), Tiers(BUDGET, max_pairs=1)]
)
def test_what_counts_more_is_chosen_first(mechanism: Mechanism, tmp_path: Path) -> None:
    """Of two pairs that depend as much, the one that counts more."""
    chosen = []
    for seed in range(12):
        ledger = Ledger.create(tmp_path / f"{seed}", BUDGET, Neighbours.ADD_OR_REMOVE)
        curator = SimulatedCurator(table(), ledger, rng=np.random.default_rng(seed))
        result = mechanism.run(curator, WEIGHTED)
        chosen += [each.clique for each in result.measurements if len(each.clique) == 2][:1]
    assert chosen == [("c", "d")] * 12


def test_single_queries_know_no_weights() -> None:
    """The original form refuses what it could not respect."""
    with pytest.raises(InvalidInput, match="`selection` must be marginal"):
        MWEM(BUDGET, selection=Selection.QUERY).prepare(WEIGHTED, Neighbours.ADD_OR_REMOVE)
