"""Events: accesses to private data, as they are asked for and as a ledger has recorded them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from juncture.privacy.accounting import Cost

# No valid cost is larger; sums of valid costs stay finite.
_MAX_COST = 1e100


@dataclass(frozen=True)
class Event:
    """One access to private data, to be paid for from a ledger.

    >>> Event("every count of sex", "discrete laplace", Cost.pure(0.5), {"scale": 2.0}).cost
    Cost(epsilon=0.5, rho=0.125)
    """

    what: str
    """A description: the query and the clique, or what was chosen from."""
    mechanism: str
    """The kind of noise or of choice that protects it."""
    cost: Cost
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Entry(Event):
    """An event as a ledger has recorded it, with its number, its time and the running total.

    >>> cost = Cost.pure(0.5)
    >>> Entry("every count of sex", "discrete laplace", cost, {}, 1, "2024-05-01T10:00", 0.5).day
    '2024-05-01'
    """

    number: int
    time: str
    total: float
    """What was spent up to and including it, in the budget's unit; infinite if unbounded."""
    hash: str = ""
    """The running hash of the ledger up to and including it; empty where it has none."""

    @property
    def day(self) -> str:
        """The day of its time, or an empty text if the time is not valid."""
        try:
            return dt.datetime.fromisoformat(self.time).date().isoformat()
        except ValueError:
            return ""

    def publish(self) -> Entry:
        """The entry as a release may show it: with its day alone, and without its hash.

        The ledger's times tell how long exact counting took, which depends on the data.
        """
        return replace(self, time=self.day, hash="")

    def to_json(self) -> dict[str, Any]:
        """The entry as plain data: a line of the ledger without its hash."""
        return {
            "event": self.number,
            "time": self.time,
            "what": self.what,
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "epsilon": finite_or_none(self.cost.epsilon),
            "rho": finite_or_none(self.cost.rho),
            **({"delta": self.cost.delta} if self.cost.delta else {}),
            "total": finite_or_none(self.total),
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any], default_number: int = 0) -> Entry:
        """An entry from plain data that may come from anywhere.

        What is missing or invalid becomes an empty text or an infinite cost.
        """
        number, parameters = line.get("event"), line.get("parameters")
        if not isinstance(number, int) or isinstance(number, bool):
            number = default_number
        return cls(
            what=str(line.get("what", "")),
            mechanism=str(line.get("mechanism", "")),
            cost=Cost(epsilon=_positive_or_inf(line.get("epsilon")),
                      rho=_positive_or_inf(line.get("rho")),
                      delta=read_delta(line)),
            parameters=dict(parameters) if isinstance(parameters, Mapping) else {},
            number=number,
            time=str(line.get("time", "")),
            total=_positive_or_inf(line.get("total")),
            hash=str(line.get("hash", "")),
        )  # fmt: skip


def finite_or_none(value: float) -> float | None:
    """A number as JSON has it: None for an infinite one."""
    return value if math.isfinite(value) else None


def read_delta(line: Mapping[str, Any]) -> float:
    """The delta of an event: 0 where there is none; 1, which no budget allows, if it is invalid."""
    value = line.get("delta", 0.0)
    valid = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < 1.0
    return float(value) if valid else 1.0


def _positive_or_inf(value: object) -> float:
    """A cost as a number; infinite if it is missing or invalid."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.inf
    return float(value) if 0.0 < value < _MAX_COST else math.inf
