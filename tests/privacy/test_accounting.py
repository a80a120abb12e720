"""Costs, their composition and calibration, against closed forms and independent calculations."""

from __future__ import annotations

import math
from itertools import permutations

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from juncture.errors import InvalidInput
from juncture.privacy.accounting import (
    Cost,
    Neighbours,
    compose_epsilon,
    compose_planned_epsilon,
    epsilon_of_rho,
    l1_sensitivity,
    l2_sensitivity,
    rho_of_epsilon,
)
from juncture.privacy.budget import Budget
from juncture.privacy.price import ZCDP, Pure
from juncture.tables.domain import Domain
from juncture.tables.queries import blocks
from juncture.tables.queries.products import Kron, Query, Scaled, Stack, bind

DOMAIN = Domain({"a": 3, "b": 4})
QUERIES: list[Query] = [
    Kron({"a": blocks.Identity(), "b": blocks.Identity()}),
    Kron({"a": blocks.Identity()}),
    Kron({"a": blocks.Prefix(), "b": blocks.Prefix()}),
    Kron({"a": blocks.Point(1)}),
    Kron({"a": blocks.WeightedSum((1.0, -2.0, 4.0))}),
    Kron({"b": blocks.Moments(2)}),
    Stack([Kron({"a": blocks.Identity()}), Kron({"b": blocks.AllRanges()})]),
    Scaled(-3.0, Kron({"a": blocks.Total(), "b": blocks.Range(1, 2)})),
    blocks.Matrix(np.random.default_rng(0).normal(size=(5, 12))),
    blocks.Matrix(np.abs(np.random.default_rng(0).normal(size=(5, 12)))),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: type(q).__name__)
@pytest.mark.parametrize("norm_order", [1, 2])
def test_sensitivities_bound_every_pair_of_neighbours(query: Query, norm_order: int) -> None:
    """Added records exactly; replaced ones from above, and exactly for counts and single rows."""
    operator = bind(query, DOMAIN)
    matrix = np.array([operator.apply(cell.reshape(DOMAIN.shape)) for cell in np.eye(12)]).T
    of = l1_sensitivity if norm_order == 1 else l2_sensitivity
    alone = max(np.linalg.norm(column, norm_order) for column in matrix.T)
    assert of(operator, Neighbours.ADD_OR_REMOVE) == pytest.approx(alone)
    swapped = max(np.linalg.norm(a - b, norm_order) for a, b in permutations(matrix.T, 2))
    bound = of(operator, Neighbours.REPLACE)
    assert swapped <= bound * (1 + 1e-12) <= 2 * alone * (1 + 1e-9)
    if operator.n_rows == 1 or query in QUERIES[:2]:
        assert bound == pytest.approx(swapped)


def gaussian_delta(rho: float, epsilon: float) -> float:
    """The exact delta of the Gaussian mechanism (Balle and Wang 2018)."""
    mean = math.sqrt(2 * rho)
    low = norm.cdf(mean / 2 - epsilon / mean)
    return float(low - math.exp(epsilon) * norm.cdf(-mean / 2 - epsilon / mean))


@pytest.mark.parametrize("rho", [0.001, 0.07, 0.5, 2.56, 20.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_the_conversion_from_zcdp(rho: float, delta: float) -> None:
    """Between the exact Gaussian and the first bound that was published; as dp-accounting says."""
    epsilon = epsilon_of_rho(rho, delta)
    assert gaussian_delta(rho, epsilon) <= delta
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))
    accountant = rdp.RdpAccountant(orders=1.0 + np.exp(np.linspace(-6, 10, 2000)))
    accountant.compose(dp_accounting.ZCDpEvent(rho))
    assert epsilon == pytest.approx(accountant.get_epsilon(delta), rel=1e-3)
    assert rho_of_epsilon(epsilon, delta) == pytest.approx(rho, rel=1e-6)


@pytest.mark.parametrize(
    ("k", "epsilon", "delta"), [(10, 0.1, 1e-5), (50, 0.05, 1e-6), (3, 1, 0.1)]
)
def test_pure_events_compose_as_randomised_responses(k: int, epsilon: float, delta: float) -> None:
    """The closed form of Kairouz, Oh and Viswanath for equal events, outcome by outcome."""
    found = compose_planned_epsilon([Cost.pure(epsilon)] * k, delta)
    assert found <= compose_epsilon([Cost.pure(epsilon)] * k, delta)
    ones = np.arange(k + 1)
    ways = np.array([math.comb(k, int(n)) for n in ones]) / (1 + math.exp(epsilon)) ** k
    left, right = ways * np.exp(epsilon * (k - ones)), ways * np.exp(epsilon * ones)

    def exact(at: float) -> float:
        return float(np.maximum(0.0, left - math.exp(at) * right).sum())

    assert found <= k * epsilon * (1 + 1e-9)
    by_zcdp = epsilon_of_rho(k * epsilon**2 / 2, delta)
    if found < by_zcdp * (1 - 1e-9):
        assert exact(found) <= delta * 1.001
        assert exact(found - 0.01) > delta


def test_calibration_goes_both_ways() -> None:
    """A scale costs what it was made for."""
    assert 3.0 / Pure(0.2).scale(3.0) == pytest.approx(0.2)
    assert 3.0**2 / (2 * ZCDP(0.2).scale(3.0) ** 2) == pytest.approx(0.2)
    for bad in (0.0, -1.0, math.nan, math.inf):
        for price in (Pure(1.0), ZCDP(1.0)):
            with pytest.raises(InvalidInput, match="must be positive and finite"):
                price.scale(bad)
        for kind in (Pure, ZCDP):
            with pytest.raises(InvalidInput, match="must be a positive number"):
                kind(bad)


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=6), st.sampled_from([1e-3, 1e-8]))
def test_composition_is_monotone_and_ordered(epsilons: list[float], delta: float) -> None:
    """More events cost more, and (epsilon, delta) never costs more than pure epsilon."""
    costs = [Cost.pure(epsilon) for epsilon in epsilons]
    whole = compose_epsilon(costs, delta)
    assert compose_epsilon(costs[:-1], delta) <= whole + 1e-9
    assert whole <= sum(epsilons) + 1e-9


def test_budgets_hold_for_events_chosen_on_the_way() -> None:
    """Costs that depend on earlier answers do not break the budget, as tighter bounds would.

    First a randomised response of 0.003; if it says one thing, one more of 0.9997, else twenty of
    0.0882. Each of the two sequences would fit the tighter bound for fixed costs at delta 0.001,
    and together they exceed it; the bounds of budgets refuse the second.
    """
    short = [Cost.pure(0.003), Cost.pure(0.9997)]
    long = [Cost.pure(0.003), *[Cost.pure(0.0882)] * 20]
    budget = Budget(epsilon=1.0, delta=0.001)
    assert compose_planned_epsilon(short, 0.001) <= 1.0
    assert not (budget.allows(short) and budget.allows(long))


def test_budgets_add_up_in_their_own_unit() -> None:
    """Pure epsilons, rhos; what has no pure epsilon does not fit a pure budget."""
    costs = [Cost.pure(0.3), Cost.selection(0.2)]
    assert Budget(epsilon=1.0).compose(costs) == pytest.approx(0.5)
    assert Budget(rho=1.0).compose(costs) == pytest.approx(0.3**2 / 2 + 0.2**2 / 8)
    assert not Budget(epsilon=1.0).allows([Cost.concentrated(1e-9)])
    assert Budget(epsilon=1.0, delta=1e-6).allows([Cost.concentrated(0.02)])
    assert Budget(epsilon=1.0).allows([Cost.pure(0.1)] * 10)
    assert not Budget(epsilon=1.0).allows([Cost.pure(0.1)] * 10 + [Cost.pure(1e-6)])


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"delta": 0.1},
        {"epsilon": 1.0, "rho": 1.0},
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"rho": 0.0},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": "much"},
    ],
)
def test_bad_budgets_are_refused(parameters: dict[str, float]) -> None:
    """Negative, absent, infinite or mixed ones."""
    with pytest.raises(InvalidInput, match="must be"):
        Budget(**parameters)
