"""A guarantee says what its events and its budget give, and no more."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from guarantees import guarantee_of
from juncture.errors import InvalidInput
from juncture.privacy.accounting import Neighbours, epsilon_of_rho
from juncture.privacy.budget import Budget
from juncture.privacy.guarantee import Guarantee, Notion, Statement

GAUSSIAN = {"event": 1, "what": "counts", "epsilon": None, "rho": 0.1, "total": 0.1}
LAPLACE = {"event": 1, "what": "counts", "epsilon": 0.5, "rho": 0.125, "total": 0.5}


def test_the_notion_is_that_of_the_budget() -> None:
    """Epsilon with the budget's own delta, rho for a rho, pure epsilon where all events have it."""
    approximate = guarantee_of([GAUSSIAN], Budget(epsilon=2.0, delta=1e-9)).state(1e4)
    assert approximate.notion is Notion.APPROXIMATE
    assert approximate.epsilon == pytest.approx(epsilon_of_rho(0.1, 1e-9))
    assert approximate.delta == 1e-9
    pure = guarantee_of([LAPLACE, LAPLACE], Budget(epsilon=1.0)).state(1e4)
    assert (pure.notion, pure.value, pure.delta) == (Notion.PURE, 1.0, 0.0)
    concentrated = guarantee_of([LAPLACE], Budget(rho=1.0)).state(1e4)
    assert (concentrated.notion, concentrated.value) == (Notion.ZCDP, 0.125)
    assert concentrated.delta == 1e-6
    unknown = guarantee_of([GAUSSIAN]).state(1e9)
    assert unknown.notion is Notion.ZCDP
    assert unknown.delta == pytest.approx(1e-10)


@pytest.mark.parametrize("rho", [0.01, 0.5, 3.0])
def test_no_test_between_two_tables_beats_the_stated_chance(rho: float) -> None:
    """The best guess between two Gaussians at the distance that rho allows stays below it.

    With means a distance d apart and variance 1, rho is d squared over 2, and the best test is
    right with the probability Phi(d / 2).
    """
    best = float(norm.cdf(math.sqrt(2.0 * rho) / 2.0))
    for delta in (1e-9, 1e-6, 1e-3):
        stated = guarantee_of([{**GAUSSIAN, "rho": rho}], Budget(epsilon=50.0, delta=delta))
        assert best <= stated.state(1e4).best_guess <= 1.0


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_group_is_k_steps_of_neighbours(k: int) -> None:
    """No test between tables that differ in k records beats what is stated for such a group.

    Answers are k times as far apart: the best test between two Gaussians is then right with the
    probability Phi(k d / 2), and that between two Laplace ones, at scale 1 / epsilon, with
    1 - exp(-k epsilon / 2) / 2. A pure epsilon counts k times.
    """
    rho, epsilon = 0.02, 0.3
    for budget in (None, Budget(rho=1.0), Budget(epsilon=9.0, delta=1e-6)):
        gaussian = guarantee_of([{**GAUSSIAN, "rho": rho}], budget).state(1e4, group_size=k)
        assert float(norm.cdf(k * math.sqrt(2.0 * rho) / 2.0)) <= gaussian.best_guess
        assert gaussian.rho == pytest.approx(k**2 * rho)
        assert gaussian.epsilon == pytest.approx(epsilon_of_rho(k**2 * rho, gaussian.delta))
        laplace = [{**LAPLACE, "epsilon": epsilon, "rho": epsilon**2 / 2.0}]
        stated = guarantee_of(laplace, budget).state(1e4, group_size=k)
        assert 1.0 - math.exp(-k * epsilon / 2.0) / 2.0 <= stated.best_guess
    pure = guarantee_of(laplace).state(1e4, group_size=k)
    assert pure.best_guess == pytest.approx(1.0 / (1.0 + math.exp(-k * epsilon)))


def test_a_group_has_members() -> None:
    """Nobody asks about no records."""
    with pytest.raises(InvalidInput, match="`group_size` must be at least 1; got 0"):
        guarantee_of([GAUSSIAN]).state(1e4, group_size=0)


def test_the_stated_chance_is_reached_by_randomised_response() -> None:
    """With pure epsilon, telling the truth with odds e^epsilon is the worst case exactly."""
    epsilon = 1.3
    truth = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    assert guarantee_of([{**LAPLACE, "epsilon": epsilon}]).state(10).best_guess == pytest.approx(
        truth
    )


def test_a_delta_that_fails_openly_is_covered() -> None:
    """A mechanism that publishes the record with probability delta is no better guessed."""
    epsilon, delta = 0.0, 0.3
    # Nothing is told but with probability delta, all: right then, a coin otherwise.
    right = delta + (1.0 - delta) * 0.5
    statement = Statement(Notion.APPROXIMATE, epsilon, delta, math.inf)
    assert statement.best_guess == pytest.approx(right)


def test_it_goes_to_plain_data_and_back() -> None:
    """Budget, neighbours, unit and events survive; infinite costs too."""
    for budget in (None, Budget(rho=0.3), Budget(epsilon=1.0, delta=1e-6)):
        made = guarantee_of([GAUSSIAN, LAPLACE], budget, Neighbours.REPLACE)
        assert Guarantee.from_json(made.to_json()) == made
        assert math.isinf(made.epsilon)


@pytest.mark.parametrize("cost", [1e300, 10**400, -1.0, 0, float("nan"), True, "1", [1], None])
def test_a_cost_that_is_none_leaves_no_guarantee(cost: object) -> None:
    """One event without a valid cost, and nothing is promised."""
    broken = guarantee_of([LAPLACE, {**LAPLACE, "epsilon": cost, "rho": cost}])
    assert not broken.holds
    assert str(broken) == "no guarantee"
    assert guarantee_of([LAPLACE]).holds
    assert not guarantee_of([]).holds


def test_dates_and_earlier_events() -> None:
    """The first and last day, and how many events the ledger had before."""
    times = ["2031-05-07T01:02:03+00:00", "2031-05-06T01:02:03+00:00", "nonsense"]
    events = [{**LAPLACE, "event": 4 + i, "time": time} for i, time in enumerate(times)]
    made = guarantee_of(events)
    assert made.days == ("2031-05-06", "2031-05-07")
    assert made.n_earlier == 3
    assert guarantee_of([{**LAPLACE, "time": "nonsense"}]).days is None


def test_costs_add_up() -> None:
    """Epsilons and rhos are sums."""
    rng = np.random.default_rng(0)
    epsilons = rng.uniform(0.1, 1.0, 7)
    made = guarantee_of([{**LAPLACE, "epsilon": float(e), "rho": float(e**2)} for e in epsilons])
    assert made.epsilon == pytest.approx(epsilons.sum())
    assert made.rho == pytest.approx((epsilons**2).sum())
