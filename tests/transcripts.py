"""Exact privacy losses of whole runs: what each event tells at most, beside what it was charged.

A run is recorded on one table, then replayed on a neighbour with the same outcomes. A mechanism
decides by outcomes alone, so it asks for the same things: the exact answers and scores of both
tables stand side by side, and with them the exact loss of every event, over all its outcomes. No
outcome is rare here, so a few runs show what thousands of runs would only hint at.

    transcript = find_transcript(mechanism, workload, (left, right), neighbours)
    assert transcript.worst <= 1

- Laplace noise of scale b tells at most |q - q'|_1 / b, Gaussian noise of stddev s a rho of
  |q - q'|_2^2 / (2 s^2).
- Choices by exponents e and e' tell at most the range of e - e', over all candidates: epsilon, and
  a rho of its square over 8 (bounded range; Cesar and Rogers 2021). For several choices of one
  event, each has its share of the charge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from juncture.mechanisms.mechanism import Mechanism
from juncture.privacy.accounting import Cost, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.events import Entry, Event
from juncture.privacy.ledger import Ledger, Ticket
from juncture.privacy.price import Price
from juncture.private.simulated import SeededSampler, SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.noise import Noise
from juncture.tables.workload import Workload


@dataclass(frozen=True)
class Call:
    """One use of the sampler: what it was about, exactly, and what came out."""

    exact: np.ndarray
    """Exact answers over the scale of the noise, or the exponents of a choice."""
    noise: Noise | None
    """None for a choice."""
    outcome: Any


class TranscriptLedger(Ledger):
    """A ledger without a file: what was paid, and the calls that each payment led to."""

    def __init__(self, neighbours: Neighbours) -> None:
        self.budget, self.neighbours = Budget(rho=1e12), neighbours
        self.groups: list[tuple[Sequence[Event], list[Call]]] = []

    @property
    def events(self) -> list[Entry]:
        """None are kept."""
        return []

    def spend(self, *events: Event, ticket: Ticket | None = None) -> list[Entry]:  # noqa: ARG002
        """A new group."""
        self.groups.append((events, []))
        return []

    def begin(self, ticket: Ticket, costs: object, **_: object) -> None:
        """Nothing to reserve."""

    def end(self, ticket: Ticket) -> None:
        """Nothing to give back."""


class RecordingSampler(SeededSampler):
    """Keeps what a sampler does, or repeats what was kept. Broken copies have other factors."""

    noise_factor, exponent_factor = 1.0, 1.0

    def __init__(self, ledger: TranscriptLedger, known: Iterator[Call] | None) -> None:
        super().__init__(np.random.default_rng(0))
        self._ledger, self._known = ledger, known

    def add_noise(self, values: Any, noise: Noise, scale: float) -> Any:
        """See `Sampler.add_noise`."""
        used = scale * self.noise_factor
        fresh = next(self._known).outcome if self._known else super().add_noise(values, noise, used)
        self._ledger.groups[-1][1].append(Call(values / used, noise, fresh))
        return fresh

    def select(self, scores: Any, sensitivity: int, price: Price) -> int:
        """See `Sampler.select`."""
        used = sensitivity / self.exponent_factor
        exponents = price.selection_epsilon * scores / (2.0 * used)
        if self._known:
            chosen = next(self._known).outcome
        else:
            chosen = int(np.argmax(exponents + self._rng.gumbel(size=len(scores))))
        self._ledger.groups[-1][1].append(Call(exponents, None, chosen))
        return int(chosen)


class HalfNoise(RecordingSampler):
    """A broken copy: half the noise."""

    noise_factor = 0.5


class DoubledExponent(RecordingSampler):
    """A broken copy: choices as if scores moved half as much."""

    exponent_factor = 2.0


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
    kind: type[RecordingSampler] = RecordingSampler,
) -> Transcript:
    """Run on the first table, replay on the second, and compare."""
    n_records = tables[0].exact_n_records if neighbours is Neighbours.REPLACE else None
    run = mechanism.prepare(workload, neighbours, n_records)
    ledgers, known = [], None
    for table in tables:
        ledger = TranscriptLedger(neighbours)
        curator = SimulatedCurator(table, ledger, rng=np.random.default_rng(0))
        curator._sampler = kind(ledger, known)
        run(curator)
        known = iter([call for _, calls in ledger.groups for call in calls])
        ledgers.append(ledger)
    measured, chosen, costs = [], [], []
    for (events, calls), (again, others) in zip(*(each.groups for each in ledgers), strict=True):
        assert [event.what for event in events] == [event.what for event in again]
        costs += [event.cost for event in events]
        if calls[0].noise is None:
            chosen += [_compare_choice(events[0], a, b) for a, b in zip(calls, others, strict=True)]
        else:
            triples = zip(events, calls, others, strict=True)
            measured += [_compare_answers(event, a, b) for event, a, b in triples]
    return Transcript(tuple(measured), tuple(chosen), tuple(costs))


def _compare_answers(event: Event, call: Call, other: Call) -> float:
    if call.noise is Noise.LAPLACE:
        return float(np.abs(call.exact - other.exact).sum()) / event.cost.epsilon
    return float(np.square(call.exact - other.exact).sum()) / (2.0 * event.cost.rho)


def _compare_choice(event: Event, call: Call, other: Call) -> float:
    """The loss of one of an event's choices: its epsilon beside the one that was paid for it."""
    moved = call.exact - other.exact
    paid = event.cost.epsilon / int(event.parameters.get("draws", 1))
    return float(moved.max() - moved.min()) / paid
