"""How many rounds MWEM has by default: by budget and workload, never by data."""

from __future__ import annotations

import pytest

from juncture.mechanisms import MWEM
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.tables.domain import Domain
from juncture.tables.workload import Workload


def pairs_of(n_attributes: int) -> Workload:
    """All pairs of so many attributes."""
    return Workload.all_marginals(Domain({f"x{i}": 3 for i in range(n_attributes)}), 2)


@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS)
@pytest.mark.parametrize("n_attributes", [2, 15, 41, 86])
@pytest.mark.parametrize("single_share", [0.0, 0.4])
def test_rounds_follow_the_budget(
    n_attributes: int, neighbours: Neighbours, single_share: float
) -> None:
    """A larger budget has no fewer rounds; rounds above the least keep the noise within 150."""
    workload, before = pairs_of(n_attributes), 0
    for epsilon in (0.01, 0.3, 1.0, 2.0, 5.0, 100.0):
        mechanism = MWEM(Budget(epsilon=epsilon), single_share=single_share)
        rounds = mechanism.count_rounds(workload, neighbours)
        enough = 0 if single_share else -(-n_attributes // 2)
        least = min(n_attributes, max(16, enough))
        assert least <= rounds <= n_attributes
        assert rounds >= before
        run = mechanism.prepare(workload, neighbours)
        measured = [cost.epsilon for cost in run.costs][-1]
        moves = 1.0 if neighbours == Neighbours.ADD_OR_REMOVE else 2.0
        stddev = 2.0**0.5 * moves / measured  # of Laplace noise
        assert rounds == least or stddev <= 150.0
        assert rounds == n_attributes or stddev * (rounds + 1) / rounds > 150.0
        before = rounds
    assert before == n_attributes


def test_few_columns_have_a_round_each() -> None:
    """Up to sixteen columns have a round each, whatever the budget."""
    for budget in (Budget(epsilon=0.01), Budget(epsilon=0.5, delta=1e-9)):
        mechanism = MWEM(budget)
        assert mechanism.count_rounds(pairs_of(15), Neighbours.REPLACE) == 15


def test_a_given_number_is_obeyed() -> None:
    """The rule is a default: a number of rounds that is given is the number of rounds."""
    mechanism = MWEM(Budget(epsilon=0.01), rounds=99)
    run = mechanism.prepare(pairs_of(30), Neighbours.REPLACE)
    assert mechanism.count_rounds(pairs_of(30), Neighbours.REPLACE) == 99
    assert len(run.costs) == 30 + 2 * 99
