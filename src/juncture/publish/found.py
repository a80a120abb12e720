"""What a release found about its columns before it was measured: bins and values, and their price.

It is part of the release file, so that readers know what the bins rest on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from juncture.privacy.accounting import Cost


class Found(StrEnum):
    """What was found of a column."""

    BINS = "bins"
    VALUES = "values"


@dataclass(frozen=True, kw_only=True)
class FoundColumn:
    """How the codes of one column were found privately, and what that cost.

    >>> found = FoundColumn(name="age", what=Found.BINS, how="74 cells one by one", n_found=20,
    ...                     noise=12.0, cost=Cost.pure(0.02), n_events=1)
    >>> FoundColumn.from_json(found.to_json()) == found
    True
    """

    name: str
    what: Found
    how: str
    """What was measured, in words."""
    n_found: int
    """How many bins or values there are."""
    noise: float
    """The standard deviation of the noise: on the count of a random range, or of a value."""
    cost: Cost
    n_events: int
    threshold: float | None = None
    """The noisy count from which on a value is known."""

    @property
    def price_words(self) -> str:
        """What it cost, in its strongest notion."""
        if math.isfinite(self.cost.epsilon):
            return f"epsilon {self.cost.epsilon:.3g}"
        delta = f", delta {self.cost.delta:.3g}" if self.cost.delta else ""
        return f"rho {self.cost.rho:.3g}{delta}"

    def to_json(self) -> dict[str, Any]:
        """The facts as plain data."""
        return {
            "name": self.name, "what": str(self.what), "how": self.how, "n_found": self.n_found,
            "noise": self.noise, "n_events": self.n_events, "threshold": self.threshold,
            "epsilon": self.cost.epsilon if math.isfinite(self.cost.epsilon) else None,
            "rho": self.cost.rho if math.isfinite(self.cost.rho) else None,
            "delta": self.cost.delta,
        }  # fmt: skip

    @classmethod
    def from_json(cls, text: Mapping[str, Any]) -> FoundColumn:
        """The facts from plain data; raises an error if the data does not describe any."""
        costs = {name: math.inf if text[name] is None else float(text[name])
                 for name in ("epsilon", "rho")}  # fmt: skip
        threshold = text["threshold"]
        return cls(
            name=str(text["name"]), what=Found(text["what"]), how=str(text["how"]),
            n_found=int(text["n_found"]), noise=float(text["noise"]),
            cost=Cost(**costs, delta=float(text["delta"])), n_events=int(text["n_events"]),
            threshold=None if threshold is None else float(threshold),
        )  # fmt: skip
