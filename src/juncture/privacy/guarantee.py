"""What a release promises: what was spent, of which budget, and which tables are protected.

The release file keeps one `Guarantee`, and everything people read is made from it: the report, the
explorer, the command line and `repr` all say what `Guarantee.state` gives. A file may come from
anywhere, so costs are read with care: an event without a valid cost leaves no guarantee at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from juncture._util.text import count_noun
from juncture.errors import InvalidInput
from juncture.privacy.accounting import Cost, Neighbours, compose_epsilon
from juncture.privacy.budget import Budget
from juncture.privacy.events import Entry


class Unit(StrEnum):
    """How much data of a person a guarantee covers."""

    RECORD = "one record"
    """A person with k records is protected less: epsilon counts k times, rho k squared times."""
    PERSON = "one person"
    """All rows of a person: at most so many of them were counted."""


class Notion(StrEnum):
    """Which definition of privacy a statement uses."""

    PURE = "epsilon"
    """Pr[M(D) in S] <= e^epsilon Pr[M(D') in S] for every set S of releases."""
    ZCDP = "rho"
    """The Renyi divergence of order a between M(D) and M(D') is at most rho a, for every a > 1."""
    APPROXIMATE = "epsilon, delta"
    """Pr[M(D) in S] <= e^epsilon Pr[M(D') in S] + delta for every set S of releases."""


@dataclass(frozen=True)
class Statement:
    """What a guarantee says, in figures. `delta` is 0 where epsilon is pure.

    >>> print(Statement(Notion.APPROXIMATE, epsilon=1.0, delta=1e-6, rho=0.02))
    ε = 1, δ = 1e-06
    """

    notion: Notion
    """The notion of the budget, or the strongest that the events have."""
    epsilon: float
    delta: float
    rho: float
    """Infinite where some event has no such guarantee."""

    @property
    def value(self) -> float:
        """The figure of the notion: rho, or epsilon."""
        return self.rho if self.notion is Notion.ZCDP else self.epsilon

    @property
    def symbol(self) -> str:
        """The letter of that figure."""
        return "ρ" if self.notion is Notion.ZCDP else "ε"

    @property
    def best_guess(self) -> float:
        """The highest probability of guessing right which of two tables is the true one.

        This is for someone to whom two neighbouring tables are equally likely beforehand, and who
        then sees one release. The total variation between M(D) and M(D') is at most
        (e^epsilon - 1 + 2 delta) / (e^epsilon + 1), and half of one plus that is this probability.

        >>> round(Statement(Notion.PURE, math.log(3), delta=0.0, rho=math.inf).best_guess, 3)
        0.75
        """
        odds = math.exp(min(self.epsilon, 700.0))
        return min(1.0, (odds + self.delta) / (1.0 + odds))

    def of_group(self, size: int) -> Statement:
        """The statement for so many records that change together, by steps from one to the next.

        What is (epsilon, delta) for one is (k epsilon, k e^((k - 1) epsilon) delta) for k of them.

        >>> print(Statement(Notion.APPROXIMATE, epsilon=1.0, delta=1e-6, rho=0.02).of_group(2))
        ε = 2, δ = 5.43656e-06
        """
        growth = math.exp(min((size - 1) * self.epsilon, 700.0))
        delta = min(1.0, size * growth * self.delta)
        return replace(self, epsilon=size * self.epsilon, delta=delta, rho=math.inf)

    def __str__(self) -> str:
        figures = f"{self.symbol} = {self.value:.4g}"
        return (
            figures if self.notion is not Notion.APPROXIMATE else f"{figures}, δ = {self.delta:g}"
        )


@dataclass(frozen=True)
class Guarantee:
    """The events behind a release, the budget they were paid from, and what is protected.

    >>> event = Entry("every count of sex", "discrete laplace", Cost.pure(0.5), {},
    ...               number=1, time="2024-05-01", total=0.5)
    >>> print(Guarantee((event,), Neighbours.ADD_OR_REMOVE, Budget(epsilon=1.0)))
    ε = 0.5 (add or remove one record), spent in 1 event
    """

    events: tuple[Entry, ...]
    neighbours: Neighbours | None = None
    """Which tables count as neighbours; None where a file does not say."""
    budget: Budget | None = None
    """The most that could be spent; None where a file does not say."""
    ledger_hash: str | None = None
    """The running hash of the ledger at the last of these events: the ledger that paid has it."""

    @property
    def unit(self) -> Unit:
        """How much data of a person is covered."""
        is_person = self.neighbours is not None and self.neighbours.person is not None
        return Unit.PERSON if is_person else Unit.RECORD

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """The cost of every event."""
        return tuple(entry.cost for entry in self.events)

    @cached_property
    def epsilon(self) -> float:
        """The sum of the epsilons of all events; infinite where one has none."""
        return math.fsum(cost.epsilon for cost in self.costs)

    @cached_property
    def rho(self) -> float:
        """The sum of the rhos of all events; infinite where one has none."""
        return math.fsum(cost.rho for cost in self.costs)

    def epsilon_for(self, delta: float) -> float:
        """The epsilon of all events together, for a delta."""
        return compose_epsilon(self.costs, delta)

    @property
    def is_pure(self) -> bool:
        """Whether all events together have a pure epsilon."""
        return math.isfinite(self.epsilon)

    @property
    def holds(self) -> bool:
        """Whether the events give a guarantee in any notion."""
        return bool(self.events) and (self.is_pure or math.isfinite(self.rho))

    def state(self, n_records: float, group_size: int = 1) -> Statement:
        """The guarantee in figures, in the notion of the budget where it is known.

        Where the budget has no delta but a statement needs one, it is a power of ten, at most a
        millionth and well below one in the number of records.

        `group_size` asks about that many records, or persons, that change together, such as those
        of a family. Tables that differ in k of them are k steps of neighbours apart: an epsilon
        counts k times, a rho k squared times (Bun and Steinke 2016).
        """
        if group_size > 1 and any(cost.delta > 0.0 for cost in self.costs):
            return self.state(n_records).of_group(group_size)
        budget, costs = self.budget, [_scale_cost(cost, group_size) for cost in self.costs]
        rho = math.fsum(cost.rho for cost in costs)
        if budget is not None and budget.delta is not None:
            epsilon = compose_epsilon(costs, budget.delta)
            return Statement(Notion.APPROXIMATE, epsilon, budget.delta, rho)
        if self.is_pure and (budget is None or budget.rho is None):
            return Statement(Notion.PURE, math.fsum(cost.epsilon for cost in costs), 0.0, rho)
        delta = choose_delta(n_records)
        return Statement(Notion.ZCDP, compose_epsilon(costs, delta), delta, rho)

    @property
    def days(self) -> tuple[str, str] | None:
        """The first and the last day of the events, if they are dated."""
        days = sorted(entry.day for entry in self.events if entry.day)
        return (days[0], days[-1]) if days else None

    @property
    def n_earlier(self) -> int:
        """How many events the ledger had before the first of these."""
        return max(0, self.events[0].number - 1) if self.events else 0

    def __str__(self) -> str:
        if not self.holds:
            return "no guarantee"
        protected = f" ({self.neighbours})" if self.neighbours else ""
        return f"{self.state(1.0)}{protected}, spent in {count_noun(len(self.events), 'event')}"

    def __repr__(self) -> str:
        return f"Guarantee({self})"

    def to_json(self) -> dict[str, Any]:
        """The guarantee as plain data, for a file."""
        return {
            "budget": None if self.budget is None else self.budget.to_json(),
            "neighbours": None,
            **({} if self.neighbours is None else self.neighbours.to_json()),
            "unit": str(self.unit),
            "events": [entry.to_json() for entry in self.events],
            "ledger_hash": self.ledger_hash,
        }

    @classmethod
    def from_json(cls, text: Mapping[str, Any]) -> Guarantee:
        """A guarantee from plain data; raises an error if the data does not describe one."""
        budget, neighbours = text["budget"], text["neighbours"]
        read = cls(
            events=read_entries(text["events"]),
            neighbours=None if neighbours is None else Neighbours.from_json(text),
            budget=None if budget is None else Budget(**budget),
            ledger_hash=None if text.get("ledger_hash") is None else str(text["ledger_hash"]),
        )
        if Unit(text["unit"]) is not read.unit:
            raise ValueError(text["unit"])
        return read


def _scale_cost(cost: Cost, group_size: int) -> Cost:
    """What an event costs a group of records that change together."""
    if group_size < 1:
        raise InvalidInput(f"`group_size` must be at least 1; got {group_size}.")
    # A delta has no such rule of its own: `Guarantee.state` scales what the whole comes to.
    return Cost(epsilon=group_size * cost.epsilon, rho=group_size**2 * cost.rho, delta=cost.delta)


def read_entries(events: Iterable[Mapping[str, Any]]) -> tuple[Entry, ...]:
    """Events from a file; an invalid cost counts as infinite."""
    return tuple(
        Entry.from_json(event, default_number=number) for number, event in enumerate(events, 1)
    )


def choose_delta(n_records: float) -> float:
    """A power of ten, at most a millionth and well below one in the number of records."""
    digits = math.ceil(math.log10(max(n_records, 1.0))) + 1
    return 10.0 ** -min(15, max(6, digits))
