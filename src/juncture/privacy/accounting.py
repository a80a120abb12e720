"""What events cost, how costs add up, and how much noise a cost buys.

Notions. Pure epsilon: no outcome is more than e^epsilon times likelier on one of two neighbouring
tables. zCDP with rho: the Renyi divergence of order a is at most rho * a, for every a > 1.
(epsilon, delta): pure epsilon but for a probability delta.

Composition. Epsilons add up; so do rhos. An event of pure epsilon has rho at most epsilon^2 / 2
(Bun and Steinke 2016); selection by the exponential mechanism, whose privacy loss lies in a range
of width epsilon, at most epsilon^2 / 8 (Cesar and Rogers 2021). For (epsilon, delta) two bounds
hold, and the smaller counts: the conversion from zCDP (Canonne, Kamath and Steinke 2020) and the
sum of pure epsilons. Both hold however events are chosen in the light of those before, as whoever
holds a curator may. The composition of as many randomised responses, the worst that pure events can
be (Kairouz, Oh and Viswanath 2015; privacy-loss distributions by dp-accounting), is tighter, but
only for costs that are fixed beforehand: it is for planning (`planned_epsilon`), not for budgets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from juncture.errors import InvalidInput
from juncture.tables.queries.products import Operator

# Sums of costs may exceed a budget by so much, relatively: the rounding of a few thousand terms.
ROUNDING = 1e-9


class Neighbours(StrEnum):
    """Which tables are so alike that an outcome must not tell them apart."""

    ADD_OR_REMOVE = "add or remove one record"
    """The number of records is private."""
    REPLACE = "replace one record"
    """The number of records is public."""


DRAW_SLACK = 1e-9
"""Added to the epsilon of every weighted draw, whose weights are correct to fifteen digits."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What an event costs in each notion; infinite where it has no such guarantee."""

    epsilon: float
    rho: float

    def __post_init__(self) -> None:
        for name, value in (("epsilon", self.epsilon), ("rho", self.rho)):
            if not value > 0.0:
                raise InvalidInput(
                    f"`{name}` must be positive; got {value}. Nothing is released for nothing."
                )

    @classmethod
    def pure(cls, epsilon: float) -> Cost:
        """Of an event with pure epsilon."""
        return cls(epsilon=epsilon, rho=epsilon**2 / 2.0)

    @classmethod
    def selection(cls, epsilon: float) -> Cost:
        """Of the exponential mechanism."""
        return cls(epsilon=epsilon, rho=epsilon**2 / 8.0)

    @classmethod
    def concentrated(cls, rho: float) -> Cost:
        """Of an event with zCDP alone."""
        return cls(epsilon=math.inf, rho=rho)


@dataclass(frozen=True)
class Budget:
    """The most that all events together may cost: epsilon, rho, or epsilon with delta."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        stated = {name: value for name, value in asdict(self).items() if value is not None}
        if set(stated) not in ({"epsilon"}, {"rho"}, {"epsilon", "delta"}):
            raise InvalidInput(
                f"`budget` must be an epsilon, a rho, or an epsilon with a delta; got "
                f"{', '.join(stated) or 'nothing'}. Choose one of the three."
            )
        for name, value in stated.items():
            if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                raise InvalidInput(
                    f"`{name}` must be a positive number; got {value!r}. Typical epsilons are 0.1 "
                    "to 10, typical deltas below one in the number of records."
                )
        if self.delta is not None and self.delta >= 1:
            raise InvalidInput(
                f"`delta` must be below 1; got {self.delta}. It is a probability of failure."
            )

    def compose(self, costs: Sequence[Cost]) -> float:
        """What these events cost together, in the budget's own unit."""
        if self.rho is not None:
            return math.fsum(cost.rho for cost in costs)
        if self.delta is None:
            return math.fsum(cost.epsilon for cost in costs)
        return composed_epsilon(costs, self.delta)

    @property
    def limit(self) -> float:
        """The most that may be spent, in the budget's own unit."""
        return float(self.rho if self.rho is not None else self.epsilon or 0.0)

    def allows(self, costs: Sequence[Cost]) -> bool:
        """Whether these events stay within the budget."""
        return self.compose(costs) <= self.limit * (1.0 + ROUNDING)

    def __str__(self) -> str:
        stated = {name: value for name, value in asdict(self).items() if value is not None}
        return ", ".join(f"{name} {value:g}" for name, value in stated.items())

    def to_dict(self) -> dict[str, Any]:
        """The budget as plain data."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def composed_epsilon(costs: Sequence[Cost], delta: float) -> float:
    """The epsilon that these events have together, for a delta."""
    if not costs:
        return 0.0
    bounds = [epsilon_of_rho(math.fsum(cost.rho for cost in costs), delta)]
    if all(math.isfinite(cost.epsilon) for cost in costs):
        bounds.append(math.fsum(cost.epsilon for cost in costs))
    return min(bounds)


def planned_epsilon(costs: Sequence[Cost], delta: float) -> float:
    """The epsilon of events whose costs are all fixed before the first of them."""
    bound = composed_epsilon(costs, delta)
    if not costs or not all(math.isfinite(cost.epsilon) for cost in costs):
        return bound
    return min(bound, _randomised_responses([cost.epsilon for cost in costs], delta))


def _randomised_responses(epsilons: Sequence[float], delta: float) -> float:
    """The composition of the worst events with these pure epsilons."""
    from dp_accounting.pld import common, privacy_loss_distribution  # noqa: PLC0415  slow to import

    composed = privacy_loss_distribution.identity()
    for epsilon in epsilons:
        parameters = common.DifferentialPrivacyParameters(epsilon, 0.0)
        composed = composed.compose(privacy_loss_distribution.from_privacy_parameters(parameters))
    return float(composed.get_epsilon_for_delta(delta))


def epsilon_of_rho(rho: float, delta: float) -> float:
    """The least epsilon, for a delta, that zCDP with rho gives."""
    logs = np.linspace(-12.0, 12.0, 4001)  # of the order less one: the bound is flat at its best
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


def laplace_scale(sensitivity: float, epsilon: float) -> float:
    """The scale of Laplace noise that costs epsilon."""
    return _require_positive("sensitivity", sensitivity) / _require_positive("epsilon", epsilon)


def gaussian_stddev(sensitivity: float, rho: float) -> float:
    """The standard deviation of Gaussian noise that costs rho."""
    return _require_positive("sensitivity", sensitivity) / math.sqrt(
        2.0 * _require_positive("rho", rho)
    )


def _require_positive(name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise InvalidInput(f"`{name}` must be positive and finite; got {value}. Choose another.")
    return value


def l1_sensitivity(operator: Operator, neighbours: Neighbours) -> float:
    """The most that a neighbouring table changes the answers in L1.

    Adding or removing a record changes them by a column of the query's matrix. Replacing one
    changes them by the difference of two columns: at most twice the largest norm, and for a single
    row the difference of its largest and least entry.
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
