"""What the ledger in a release says: its events, what they cost together, and who is protected.

A release may come from anywhere, so entries are read with care: what is not a sound cost counts as
no guarantee at all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from juncture.privacy.accounting import Cost, Neighbours, composed_epsilon

_NOTHING: Mapping[str, Any] = {}
# No sound cost is larger; sums of such ones stay finite.
_MOST = 1e100
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Entry:
    """One event of the ledger."""

    number: int | None
    date: str | None
    what: str
    mechanism: str
    details: str
    cost: Cost

    @property
    def priced(self) -> bool:
        """Whether it states a cost in any notion."""
        return math.isfinite(self.cost.epsilon) or math.isfinite(self.cost.rho)


@dataclass(frozen=True)
class Account:
    """All events, and how the tables that they protect differ."""

    entries: tuple[Entry, ...]
    neighbours: Neighbours | None
    """As the release states it, or as the noise of its full counts shows."""
    stated: bool
    """Whether the release itself states the neighbours."""
    budget: str | None = None
    """The most that could be spent, where the release states it."""

    @cached_property
    def epsilon(self) -> float:
        """Of all events together, by adding up; infinite where one has none."""
        return math.fsum(entry.cost.epsilon for entry in self.entries)

    @cached_property
    def rho(self) -> float:
        """Of all events together, in zCDP."""
        return math.fsum(entry.cost.rho for entry in self.entries)

    def epsilon_for(self, delta: float) -> float:
        """The epsilon of all events together, but for a probability delta."""
        return composed_epsilon([entry.cost for entry in self.entries], delta)

    @property
    def holds(self) -> bool:
        """Whether a guarantee follows from the events."""
        return bool(self.entries) and (math.isfinite(self.epsilon) or math.isfinite(self.rho))

    @property
    def pure(self) -> bool:
        """Whether there is a pure epsilon."""
        return math.isfinite(self.epsilon)

    @property
    def running(self) -> list[float]:
        """What was spent up to each event, in epsilon if it is pure, else in rho."""
        return list(accumulate(self.paid))

    @property
    def paid(self) -> list[float]:
        """What each event cost, in epsilon if all is pure, else in rho."""
        costs = [entry.cost for entry in self.entries]
        return [cost.epsilon if self.pure else cost.rho for cost in costs]

    @property
    def dates(self) -> tuple[str, str] | None:
        """The first and the last day of the events, where they are dated."""
        found = sorted(entry.date for entry in self.entries if entry.date)
        return (found[0], found[-1]) if found else None

    @property
    def earlier(self) -> int:
        """How many events the ledger had before the first of these."""
        first = self.entries[0].number if self.entries else None
        return max(0, first - 1) if first is not None else 0


def account_of(
    ledger: Sequence[Mapping[str, Any]], statistics: Mapping[str, Any] = _NOTHING
) -> Account:
    """The ledger of a release, read; the neighbours and the budget may stand in the statistics."""
    stated = _neighbours(statistics.get("neighbours"))
    budget = statistics.get("budget")
    return Account(
        entries=tuple(map(_entry, ledger)),
        neighbours=stated or _shown(ledger),
        stated=stated is not None,
        budget=budget if isinstance(budget, str) else None,
    )


def _neighbours(value: object) -> Neighbours | None:
    return next((each for each in Neighbours if str(each) == value), None)


def _shown(events: Sequence[Mapping[str, Any]]) -> Neighbours | None:
    """The neighbours that the noise of all full counts fits.

    Every cell's count changes by 1 in sum when a record comes or goes, and by 2 when one is
    replaced; the scale of the noise is that over epsilon.
    """
    found = {kind for event in events for kind in _kinds(event)}
    return found.pop() if len(found) == 1 else None


def _kinds(event: Mapping[str, Any]) -> Iterator[Neighbours | None]:
    parameters = event.get("parameters")
    if not isinstance(parameters, Mapping) or "every count of" not in str(event.get("what")):
        return
    scale, answers = _positive(parameters.get("scale")), _positive(parameters.get("answers"))
    if not (math.isfinite(scale) and 1 < answers < math.inf):
        return
    laplace = str(event.get("mechanism")) == "discrete laplace"
    epsilon, rho = _positive(event.get("epsilon")), _positive(event.get("rho"))
    change = scale * epsilon if laplace else 2.0 * rho * scale**2
    yield _near(change)


def _near(change: float) -> Neighbours | None:
    if math.isclose(change, 1.0, rel_tol=1e-6):
        return Neighbours.ADD_OR_REMOVE
    return Neighbours.REPLACE if math.isclose(change, 2.0, rel_tol=1e-6) else None


def _entry(event: Mapping[str, Any]) -> Entry:
    number, date = event.get("event"), _DATE.match(str(event.get("time", "")))
    parameters = event.get("parameters")
    return Entry(
        number=number if isinstance(number, int) and not isinstance(number, bool) else None,
        date=date.group() if date else None,
        what=str(event.get("what", "not stated")),
        mechanism=str(event.get("mechanism", "not stated")),
        details=_details(parameters) if isinstance(parameters, Mapping) else "",
        cost=Cost(epsilon=_positive(event.get("epsilon")), rho=_positive(event.get("rho"))),
    )


def _details(parameters: Mapping[Any, Any]) -> str:
    return ", ".join(f"{name} {_short(value)}" for name, value in parameters.items())


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _positive(value: object) -> float:
    """A cost as a number; infinite where none is stated."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.inf
    return float(value) if 0.0 < value < _MOST else math.inf
