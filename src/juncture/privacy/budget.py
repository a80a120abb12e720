"""Budgets: limits on what all events together may cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from juncture.errors import InvalidInput
from juncture.privacy.accounting import Cost, compose_epsilon, rho_of_epsilon
from juncture.privacy.price import ZCDP, Price, Pure

# Sums of costs may exceed a budget by this share of it: the rounding of a few thousand terms.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Budget:
    """The most that all events together may cost: epsilon, rho, or epsilon with delta.

    - `epsilon` alone: pure differential privacy, paid for with Laplace noise.
    - `rho`: zCDP, with Gaussian noise.
    - `epsilon` and `delta`: the largest rho of zCDP that stays within both, with Gaussian noise.

    >>> Budget(epsilon=1.0).price
    Pure(1.0)
    >>> Budget(rho=0.1).price.share(0.5)
    ZCDP(0.05)
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        stated = self.to_json()
        if set(stated) not in ({"epsilon"}, {"rho"}, {"epsilon", "delta"}):
            raise InvalidInput(
                f"`budget` must be an epsilon, a rho, or an epsilon with a delta; got "
                f"{', '.join(stated) or 'nothing'}."
            )
        for name, value in stated.items():
            if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                raise InvalidInput(
                    f"`{name}` must be a positive number; got {value!r}. Typical epsilons are 0.1 "
                    "to 10, typical deltas below one in the number of records."
                )
        if self.delta is not None and self.delta >= 1:
            raise InvalidInput(
                f"`delta` must be below 1; got {self.delta}. Choose it well below one in the "
                "number of records."
            )

    @property
    def price(self) -> Price:
        """The whole budget as one price."""
        if self.rho is not None:
            return ZCDP(self.rho)
        assert self.epsilon is not None  # by the rules above
        if self.delta is not None:
            return ZCDP(rho_of_epsilon(self.epsilon, self.delta))
        return Pure(self.epsilon)

    def compose(self, costs: Sequence[Cost]) -> float:
        """What these events cost together, in the budget's own unit."""
        if self.delta is None and any(cost.delta > 0.0 for cost in costs):
            return math.inf
        if self.rho is not None:
            return math.fsum(cost.rho for cost in costs)
        if self.delta is None:
            return math.fsum(cost.epsilon for cost in costs)
        return compose_epsilon(costs, self.delta)

    @property
    def limit(self) -> float:
        """The most that may be spent, in the budget's own unit."""
        limit = self.epsilon if self.rho is None else self.rho
        assert limit is not None  # by the rules above
        return float(limit)

    def allows(self, costs: Sequence[Cost]) -> bool:
        """Whether these events stay within the budget."""
        return self.compose(costs) <= self.limit * (1.0 + ROUNDING)

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:g}" for name, value in self.to_json().items())

    def to_json(self) -> dict[str, Any]:
        """The budget as plain data."""
        return {name: value for name, value in asdict(self).items() if value is not None}
