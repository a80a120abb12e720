"""What events cost, how costs add up, and how much noise a cost buys.

Notions. Pure epsilon: no outcome is more than e^epsilon times likelier on one of two neighbouring
tables. zCDP with rho: the Renyi divergence of order a is at most rho * a, for every a > 1.
(epsilon, delta): no set of outcomes is more than e^epsilon times likelier, plus delta. That is
weaker than a pure epsilon that fails with probability delta; nothing here claims the latter.

Composition. Epsilons add up; so do rhos. An event of pure epsilon has rho at most epsilon^2 / 2
(Bun and Steinke 2016); selection by the exponential mechanism, whose privacy loss lies in a range
of width epsilon, at most epsilon^2 / 8 (Cesar and Rogers 2021). For (epsilon, delta) two bounds
hold, and the smaller counts: the conversion from zCDP (Canonne, Kamath and Steinke 2020) and the
sum of pure epsilons. Both hold also where events are chosen after seeing earlier answers, as the
holder of a curator may do. The composition of randomised responses, the worst that pure events can
be (Kairouz, Oh and Viswanath 2015; privacy-loss distributions by dp-accounting), is tighter, but
only for costs that are fixed beforehand: `compose_planned_epsilon` is for planning, not for
budgets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from juncture.errors import InvalidInput
from juncture.tables.queries.products import Operator


class Neighbours(StrEnum):
    """Which tables count as neighbours: what a release must not distinguish.

    >>> print(Neighbours.REPLACE)
    replace one record
    """

    ADD_OR_REMOVE = "add or remove one record"
    """The number of records is private."""
    REPLACE = "replace one record"
    """The number of records is public."""


DRAW_SLACK = 1e-9
"""Added to the epsilon of every weighted draw, whose weights are correct to fifteen digits."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What an event costs in each notion; infinite where it has no such guarantee.

    >>> Cost.pure(0.5)
    Cost(epsilon=0.5, rho=0.125)
    >>> Cost.concentrated(0.125)
    Cost(epsilon=inf, rho=0.125)
    """

    epsilon: float
    rho: float

    def __post_init__(self) -> None:
        for name, value in (("epsilon", self.epsilon), ("rho", self.rho)):
            if not value > 0.0:
                raise InvalidInput(f"`{name}` must be positive; got {value}.")

    @classmethod
    def pure(cls, epsilon: float) -> Cost:
        """The cost of an event with pure epsilon."""
        return cls(epsilon=epsilon, rho=epsilon**2 / 2.0)

    @classmethod
    def selection(cls, epsilon: float) -> Cost:
        """The cost of the exponential mechanism."""
        return cls(epsilon=epsilon, rho=epsilon**2 / 8.0)

    @classmethod
    def concentrated(cls, rho: float) -> Cost:
        """The cost of an event with zCDP alone."""
        return cls(epsilon=math.inf, rho=rho)


def compose_epsilon(costs: Sequence[Cost], delta: float) -> float:
    """The epsilon of these events together, for a delta."""
    if not costs:
        return 0.0
    bounds = [epsilon_of_rho(math.fsum(cost.rho for cost in costs), delta)]
    if all(math.isfinite(cost.epsilon) for cost in costs):
        bounds.append(math.fsum(cost.epsilon for cost in costs))
    return min(bounds)


def compose_planned_epsilon(costs: Sequence[Cost], delta: float) -> float:
    """The epsilon of events whose costs are all fixed before the first of them."""
    bound = compose_epsilon(costs, delta)
    if not costs or not all(math.isfinite(cost.epsilon) for cost in costs):
        return bound
    return min(bound, _compose_randomised_responses([cost.epsilon for cost in costs], delta))


def _compose_randomised_responses(epsilons: Sequence[float], delta: float) -> float:
    """The composition of the worst events with these pure epsilons."""
    from dp_accounting.pld import common, privacy_loss_distribution  # noqa: PLC0415  slow to import

    composed = privacy_loss_distribution.identity()
    for epsilon in epsilons:
        parameters = common.DifferentialPrivacyParameters(epsilon, 0.0)
        composed = composed.compose(privacy_loss_distribution.from_privacy_parameters(parameters))
    return float(composed.get_epsilon_for_delta(delta))


def epsilon_of_rho(rho: float, delta: float) -> float:
    """The smallest epsilon, for a delta, that zCDP with rho gives."""
    # Logarithms of the order minus one. A grid is enough: the bound is flat at its minimum.
    logs = np.linspace(-12.0, 12.0, 4001)
    orders = 1.0 + np.exp(logs)
    bound = (
        rho * orders + np.log1p(-1.0 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1.0)
    )
    return max(0.0, float(bound.min()))


def rho_of_epsilon(epsilon: float, delta: float) -> float:
    """The largest rho that stays within (epsilon, delta)."""
    low, high = 0.0, epsilon
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if epsilon_of_rho(middle, delta) <= epsilon else (low, middle)
    return low


def l1_sensitivity(operator: Operator, neighbours: Neighbours) -> float:
    """The most that a neighbouring table changes the answers in L1.

    Adding or removing a record changes them by a column of the query's matrix. Replacing one
    changes them by the difference of two columns: at most twice the largest norm, and for a single
    row the difference of its largest and smallest entry.
    """
    if neighbours is Neighbours.ADD_OR_REMOVE:
        return operator.l1_sensitivity
    if operator.n_rows == 1:
        return _spread(operator)
    return 2.0 * operator.l1_sensitivity


def l2_sensitivity(operator: Operator, neighbours: Neighbours) -> float:
    """The most that a neighbouring table changes the answers in L2.

    For a replaced record the squared norm of a difference of columns a, b is |a|^2 + |b|^2 - 2ab;
    without negative entries ab is not negative, so the square root of 2 times the largest norm is
    enough (and is attained by columns without a common row, such as different cells).
    """
    if neighbours is Neighbours.ADD_OR_REMOVE:
        return operator.l2_sensitivity
    if operator.n_rows == 1:
        return _spread(operator)
    factor = math.sqrt(2.0) if _is_nonnegative(operator) else 2.0
    return factor * operator.l2_sensitivity


def _spread(operator: Operator) -> float:
    row = operator.adjoint(np.ones(1))
    return float(row.max() - row.min()) or float(np.abs(row).max())


def _is_nonnegative(operator: Operator) -> bool:
    """Whether no entry is negative: then columns add up to their sums of absolute values."""
    plain = operator.adjoint(np.ones(operator.n_rows))
    return bool((plain >= operator.column_sums() * (1.0 - 1e-12)).all())
