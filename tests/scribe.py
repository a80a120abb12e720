"""Samplers that write down what they are asked, and that answer again what they have answered.

The answers of one table are forced on another: everything that is made of them must then be equal,
and what the samplers are asked may differ only by what was paid for. That is checked for the worst
outcome, not for the one that came: see `Call.loss`. No outcome is rare here, so a few runs show
what thousands of runs would only hint at.

    find_violations(first.calls, second.calls)      what is lost without having been paid for
    transcript = find_transcript(mechanism, workload, (left, right), neighbours)
    assert transcript.worst <= 1                    each event's loss as a part of its charge
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from juncture.mechanisms.mechanism import Mechanism
from juncture.privacy.accounting import Cost, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.events import Entry, Event
from juncture.privacy.ledger import Ledger, Ticket
from juncture.privacy.price import Price
from juncture.private.journal import Outcome
from juncture.private.simulated import SeededSampler, SimulatedCurator
from juncture.private.sources.source import CodedTable, Source
from juncture.tables.noise import Noise
from juncture.tables.workload import Workload

Integers = np.ndarray


@dataclass(frozen=True)
class Call:
    """What a sampler was asked, in which events, and what it answered."""

    kind: str
    """The kind of noise, or "choice", or "draws"."""
    given: np.ndarray
    """Exact answers, or the exponents of all candidates: what must stay hidden."""
    scale: float
    events: tuple[Event, ...]
    answer: Any

    def loss(self, other: Call) -> tuple[float, float]:
        """The largest epsilon, and the rho, of this call between two tables, over all outcomes.

        Laplace noise: the L1 distance over the scale. Gaussian noise: no epsilon, and half the
        squared L2 distance over the variance. Choices and draws: the logarithm of the ratio of two
        probabilities is the move of one exponent less a mean of all moves, so at most the range of
        the moves, whatever the outcome and whichever candidates fit; rho is its square over 8.
        """
        moves = np.asarray(self.given, dtype=float) - np.asarray(other.given, dtype=float)
        if self.kind == Noise.LAPLACE.name:
            epsilon = float(np.abs(moves).sum()) / self.scale
            return epsilon, epsilon**2 / 2.0
        if self.kind == Noise.GAUSSIAN.name:
            squared = float((moves**2).sum())
            return (math.inf if squared else 0.0), squared / (2.0 * self.scale**2)
        spread = float(np.ptp(moves))
        many = len(np.atleast_1d(self.answer))
        return many * spread, many * spread**2 / 8.0


@dataclass
class Scribe(SeededSampler):
    """A sampler that writes down its calls; with `forced`, it gives the answers of those calls."""

    rng: np.random.Generator
    forced: Sequence[Call] | None = None
    calls: list[Call] = field(default_factory=list)
    events: tuple[Event, ...] = ()
    """What was paid for by those who ask now."""
    noise_factor: float = 1.0
    exponent_factor: float = 1.0

    def __post_init__(self) -> None:
        super().__init__(self.rng)

    def _note(self, kind: str, given: np.ndarray, scale: float, drawn: Any) -> Any:
        if self.forced is not None:
            drawn = self.forced[len(self.calls)].answer
        self.calls.append(Call(kind, given.copy(), scale, self.events, drawn))
        return drawn

    def add_noise(self, values: Integers, noise: Noise, scale: float) -> Integers:
        """See `Sampler.add_noise`."""
        used = scale * self.noise_factor
        fresh = super().add_noise(values, noise, used)
        return np.array(self._note(noise.name, values, used, fresh))

    def select(self, scores: Integers, sensitivity: int, price: Price) -> int:
        """See `Sampler.select`."""
        exponents = self.exponent_factor * price.selection_epsilon * scores / (2.0 * sensitivity)
        gumbel = self.rng.gumbel(size=len(scores))
        return int(self._note("choice", exponents, 1.0, int(np.argmax(exponents + gumbel))))

    def draw(self, exponents: np.ndarray, draws: int) -> Integers:
        """See `Sampler.draw`."""
        given = self.exponent_factor * exponents
        return np.array(self._note("draws", given, 1.0, super().draw(given, draws)))


class Transcribed(SimulatedCurator):
    """A curator whose sampler knows which events are being paid for."""

    def __init__(self, source: Source, ledger: Ledger, scribe: Scribe) -> None:
        super().__init__(source, ledger, rng=scribe.rng)
        self._sampler = self.scribe = scribe

    def _access(self, events: Sequence[Event], look: Any) -> Outcome:
        def noted() -> Outcome:
            self.scribe.events = tuple(events)
            try:
                return look()  # type: ignore[no-any-return]
            finally:
                self.scribe.events = ()

        return super()._access(events, noted)


def find_violations(one: Sequence[Call], other: Sequence[Call]) -> list[str]:
    """What is lost without having been paid for, in a transcript on two neighbouring tables."""
    found, charged = [], dict[int, list[tuple[Call, float, float]]]()
    for call, same in zip(one, other, strict=True):
        if call.kind != same.kind or call.scale != same.scale:
            found.append("the tables are asked for different things")
        if not call.events:
            found.append("a look at the data that nobody paid for")
            continue
        charged.setdefault(id(call.events), []).append((call, *call.loss(same)))
    for losses in charged.values():
        events = losses[0][0].events
        epsilon = sum(event.cost.epsilon for event in events)
        rho = sum(event.cost.rho for event in events)
        # A choice among those that fit tells its last draw alone; all others tell every call.
        walks = losses[0][0].kind == "choice" and "draws" not in events[0].parameters
        join = max if walks else sum
        lost = join(each[1] for each in losses), join(each[2] for each in losses)
        # Pure costs promise an epsilon; others a rho, and where both are finite, both.
        if math.isfinite(epsilon) and lost[0] > epsilon * (1.0 + 1e-9):
            found.append(f"{events[0].what}: epsilon {lost[0]} for {epsilon}")
        if lost[1] > rho * (1.0 + 1e-9):
            found.append(f"{events[0].what}: rho {lost[1]} for {rho}")
    return found


class FreeLedger(Ledger):
    """A ledger without a file, which refuses nothing."""

    def __init__(self, neighbours: Neighbours, budget: Budget | None = None) -> None:
        self.budget, self.neighbours = budget or Budget(rho=1e12), neighbours

    @property
    def events(self) -> list[Entry]:
        """None are kept."""
        return []

    def spend(self, *events: Event, ticket: Ticket | None = None) -> list[Entry]:  # noqa: ARG002
        """Nothing to pay."""
        return []

    def begin(self, ticket: Ticket, costs: object, **_: object) -> None:
        """Nothing to reserve."""

    def end(self, ticket: Ticket) -> None:
        """Nothing to give back."""


@dataclass(frozen=True)
class Transcript:
    """The exact losses of a run's events as parts of what they were charged, and all charges."""

    measured: tuple[float, ...]
    chosen: tuple[float, ...]
    costs: tuple[Cost, ...]

    @property
    def worst(self) -> float:
        """The largest: above 1, a promise is broken."""
        return max(self.measured + self.chosen)


def find_transcript(
    mechanism: Mechanism,
    workload: Workload,
    tables: tuple[CodedTable, CodedTable],
    neighbours: Neighbours,
    *,
    noise_factor: float = 1.0,
    exponent_factor: float = 1.0,
) -> Transcript:
    """Run on the first table, replay on the second, and compare each event.

    The factors are those of a `Scribe` that does not do what it is paid for.
    """
    n_records = tables[0].exact_n_records if neighbours is Neighbours.REPLACE else None
    run, scribes = mechanism.prepare(workload, neighbours, n_records), list[Scribe]()
    for table in tables:
        forced = scribes[0].calls if scribes else None
        scribe = Scribe(
            np.random.default_rng(0), forced,
            noise_factor=noise_factor, exponent_factor=exponent_factor,
        )  # fmt: skip
        scribes.append(scribe)
        run(Transcribed(table, FreeLedger(neighbours), scribes[-1]))
    groups = dict[int, list[tuple[Call, Call]]]()
    for call, other in zip(*(scribe.calls for scribe in scribes), strict=True):
        assert [event.what for event in call.events] == [event.what for event in other.events]
        groups.setdefault(id(call.events), []).append((call, other))
    measured, chosen, costs = list[float](), list[float](), list[Cost]()
    for pairs in groups.values():
        events = pairs[0][0].events
        costs += [event.cost for event in events]
        if pairs[0][0].kind == "choice":  # several choices of one event have equal parts of it
            paid = events[0].cost.epsilon / int(events[0].parameters.get("draws", 1))
            chosen += [call.loss(other)[0] / paid for call, other in pairs]
        else:
            charges = [event.cost for event in events]
            measured += [_compare(*pair, paid) for pair, paid in zip(pairs, charges, strict=True)]
    return Transcript(tuple(measured), tuple(chosen), tuple(costs))


def _compare(call: Call, other: Call, paid: Cost) -> float:
    """The part of its charge that a measurement loses."""
    epsilon, rho = call.loss(other)
    return epsilon / paid.epsilon if call.kind == Noise.LAPLACE.name else rho / paid.rho
