"""A price buys the noise that its cost pays for, whatever the query and the neighbours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from juncture.errors import InvalidInput
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.price import ZCDP, Price, Pure
from juncture.tables.domain import Domain
from juncture.tables.noise import Noise, find_noise, register_noise
from juncture.tables.queries import AllRanges, Identity, Kron, Matrix, Prefix, Total
from juncture.tables.queries.products import bind

DOMAIN = Domain({"a": 3, "b": 2})
QUERIES = [
    Identity(),
    Kron({"a": Prefix(), "b": Identity()}),
    Kron({"a": AllRanges(), "b": Total()}),
    Matrix(np.random.default_rng(0).normal(size=(4, 6))),
]


def moved(query: Any, neighbours: Neighbours, norm: int) -> float:
    """The most that a neighbouring table moves the answers, by trying all of them."""
    columns = np.array([bind(query, DOMAIN).apply(e.reshape(DOMAIN.shape)) for e in np.eye(6)])
    changes = (
        columns
        if neighbours == Neighbours.ADD_OR_REMOVE
        else np.array([left - right for left in columns for right in columns])
    )
    return float(np.linalg.norm(changes, norm, axis=1).max())


@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
def test_noise_covers_what_a_neighbour_moves(query: Any, neighbours: Neighbours) -> None:
    """Laplace scales are at least the L1 change over epsilon, Gaussian ones the L2 change."""
    operator = bind(query, DOMAIN)
    pure, concentrated = Pure(0.7), ZCDP(0.2)
    scale = pure.scale(pure.sensitivity(operator, neighbours))
    assert scale >= moved(query, neighbours, 1) / 0.7 * (1 - 1e-12)
    assert pure.stddev(operator, neighbours) == pytest.approx(math.sqrt(2) * scale)
    stddev = concentrated.stddev(operator, neighbours)
    assert stddev >= moved(query, neighbours, 2) / math.sqrt(2 * 0.2) * (1 - 1e-12)


@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS)
@pytest.mark.parametrize("price", [Pure(0.7), ZCDP(0.2)])
def test_a_cell_is_a_count_of_any_table(price: Price, neighbours: Neighbours) -> None:
    """The noise on a cell does not depend on how many cells a table has."""
    for size in (2, 5, 60):
        operator = bind(Identity(), Domain({"x": size}))
        assert price.cell_stddev(neighbours) == pytest.approx(price.stddev(operator, neighbours))
        assert price.noise.stddev(price.cell_scale(neighbours)) == price.cell_stddev(neighbours)


@pytest.mark.parametrize(
    "budget", [Budget(epsilon=1.5), Budget(rho=0.3), Budget(epsilon=2, delta=1e-7)]
)
def test_shares_of_a_budget_cost_the_budget(budget: Budget) -> None:
    """All shares together cost what the budget allows, and no more."""
    fractions = np.random.default_rng(1).dirichlet(np.ones(6))
    costs = [budget.price.share(float(f)).cost for f in fractions]
    assert budget.compose(costs) == pytest.approx(budget.limit, rel=1e-6)
    assert budget.allows(costs)


def test_a_choice_costs_its_price() -> None:
    """In the notion of the price; the exponential mechanism at rho has a pure epsilon too."""
    assert Pure(0.4).selection_cost.epsilon == 0.4
    chosen = ZCDP(0.02).selection_cost
    assert chosen.rho == pytest.approx(0.02)
    assert chosen.epsilon == pytest.approx(math.sqrt(8 * 0.02))


class Uniform(Noise):
    """Evenly distributed noise: no likelihood of ours, but known in every other way."""

    name = "uniform in a test"
    squared_loss = True
    kurtosis = 1.8

    def draw(self, rng: np.random.Generator, stddev: Any, n: int) -> Any:
        """See `Noise.draw`."""
        return rng.uniform(-1, 1, n) * np.asarray(stddev) * math.sqrt(3.0)

    def mean_absolute(self, stddev: float) -> float:
        """See `Noise.mean_absolute`."""
        return stddev * math.sqrt(3.0) / 2.0

    def stddev(self, scale: float) -> float:
        """See `Noise.stddev`."""
        return scale / math.sqrt(3.0)

    def discrete_stddev(self, scale: float) -> float:
        """See `Noise.discrete_stddev`."""
        return math.sqrt(((2 * math.floor(scale) + 1) ** 2 - 1) / 12.0)


@pytest.mark.parametrize("noise", [Noise.GAUSSIAN, Noise.LAPLACE, Uniform()], ids=str)
def test_what_a_kind_says_of_itself_is_true(noise: Noise) -> None:
    """Standard deviation, mean absolute value and kurtosis are those of what it draws."""
    drawn = noise.draw(np.random.default_rng(0), 2.5, 400_000)
    assert drawn.std() == pytest.approx(2.5, rel=0.01)
    assert np.abs(drawn).mean() == pytest.approx(noise.mean_absolute(2.5), rel=0.01)
    assert np.mean(drawn**4) / 2.5**4 == pytest.approx(noise.kurtosis, rel=0.1)


def test_a_kind_that_nobody_registered_is_refused() -> None:
    """By name and as an object; a name is given only once."""
    with pytest.raises(InvalidInput, match="must be one of gaussian, laplace"):
        find_noise("cauchy")
    with pytest.raises(InvalidInput, match="register_noise"):
        find_noise(Uniform())

    class Impostor(Uniform):
        """Another kind under a known name."""

        name = "laplace"

    with pytest.raises(InvalidInput, match="a name of its own"):
        register_noise(Impostor())
