"""What a mechanism is: it prepares a run without data, and the run measures and estimates.

`prepare` costs nothing and reads nothing. It gives a `Run`: what every event will cost, what is
known about errors, and the run itself. So `juncture plan` shows what `juncture release` would do,
and a run that a ledger could not pay to its end is refused before its first event.

    run = HDMM(Budget(epsilon=1.0)).prepare(workload, Neighbours.ADD_OR_REMOVE)
    print(run.costs, run.facts)
    result = run(curator)
    result.release().save("people.jct")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from juncture._util.watch import Watch, ignore_progress
from juncture.engine.plan import Plan
from juncture.errors import InvalidInput
from juncture.fit.summary import FitSummary
from juncture.mechanisms.result import RunResult
from juncture.model.model import Model
from juncture.privacy.accounting import Cost, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.guarantee import Guarantee
from juncture.tables.domain import Clique
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.workload import Workload, check_same_domain

if TYPE_CHECKING:  # what a mechanism knows of the curator is what it is handed
    from juncture.private.curator import Curator

# Noise beyond this drowns any table, and the samplers' integers would not hold more much longer.
_MAX_NOISE = 1e8


@dataclass(frozen=True)
class MarginalForecast:
    """What is known of one marginal of the workload before it is measured."""

    clique: Clique
    cells: int
    share: float
    """What it may cost, in the unit of the price."""
    stddev: float
    """Of the noise on each answer that is measured; not a number where none is on this clique."""
    error: float
    """The root of the expected mean squared error of a query, by least squares alone."""


@dataclass(frozen=True, eq=False)
class Findings:
    """What the run of a mechanism hands over, before it is put into context."""

    project: Callable[[Clique], Factor]
    """The estimated counts of a clique of the workload."""
    model: Model | None = None
    measurements: Sequence[Measurement] = ()
    fit: FitSummary | None = None
    """How the fit of the model ended."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What this mechanism alone knows, by name: plain numbers, texts and lists."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """A mechanism that is ready to run: everything about it that no data is needed for."""

    mechanism: str
    workload: Workload
    budget: Budget
    neighbours: Neighbours
    n_records: int | None = None
    """The public number of records that it was prepared for, where it needs one."""
    costs: tuple[Cost, ...]
    """Of every event, in order; of as many as there can be, where the data decides."""
    costs_are_exact: bool = True
    """Whether exactly these are paid; otherwise their sum is a bound."""
    execute: Callable[[Curator, Watch], Findings]
    """The work itself; call the run instead."""
    plan: Plan | None = None
    """The structure of the model, where it is known beforehand."""
    marginals: tuple[MarginalForecast, ...] = ()
    """What to expect of each marginal, where all of the workload is measured."""
    facts: tuple[tuple[str, str], ...] = ()
    """What else is known beforehand, in words."""

    def __repr__(self) -> str:
        bound = "" if self.costs_are_exact else "at most "
        n, tasks = len(self.costs), len(self.workload.tasks)
        return f"Run({self.mechanism} for {tasks} tasks under {self.budget}: {bound}{n} events)"

    def __call__(self, curator: Curator, *, watch: Watch = ignore_progress) -> RunResult:
        """Measure and estimate, through a curator whose ledger can pay for all of it."""
        self._check(curator)
        curator.ledger.refuse_unaffordable(self.costs)
        n_before = len(curator.events)
        findings = self.execute(curator, watch)
        return RunResult(
            project=findings.project,
            model=findings.model,
            measurements=tuple(findings.measurements),
            fit=findings.fit,
            details=findings.details,
            mechanism=self.mechanism,
            workload=self.workload,
            schema=curator.schema,
            guarantee=Guarantee(
                events=curator.events[n_before:],
                neighbours=curator.neighbours,
                budget=self.budget,
            ),
        )

    def _check(self, curator: Curator) -> None:
        check_same_domain(curator.domain, self.workload)
        if curator.neighbours is not self.neighbours:
            raise InvalidInput(
                f"`curator` must protect what the run was prepared for ({self.neighbours}); got "
                f"{curator.neighbours}. Prepare the run with the neighbours of the ledger."
            )
        if self.n_records is not None and curator.public_n_records != self.n_records:
            raise InvalidInput(
                f"`curator` must have the {self.n_records} records that the run was prepared for; "
                f"got {curator.public_n_records}. Prepare it with curator.public_n_records."
            )


class Mechanism(Protocol):
    """A way to decide what to measure under a budget. Derive from it, or have its members.

    Privacy: all that a run learns about data comes through the curator, which charges every event
    to the ledger. The docstring of each mechanism proves that its events cost its budget at most.
    """

    name: ClassVar[str]
    """As the command line and release files call it."""

    budget: Budget
    """What a run may cost."""

    def prepare(
        self, workload: Workload, neighbours: Neighbours, n_records: int | None = None
    ) -> Run:
        """Everything that can be decided without data; refuses what could not run to its end.

        `n_records` is the number of records where it is public.
        """

    def run(
        self, curator: Curator, workload: Workload, *, watch: Watch = ignore_progress
    ) -> RunResult:
        """Prepare for what a curator protects, and run."""
        prepared = self.prepare(workload, curator.neighbours, curator.public_n_records)
        return prepared(curator, watch=watch)


def refuse_empty(workload: Workload) -> None:
    """A run needs something to answer."""
    if not workload.tasks:
        raise InvalidInput("`workload` must have a task; got none.")


def require_n_records(name: str, neighbours: Neighbours, n_records: int | None) -> int:
    """The number of records, for a mechanism that cannot go without."""
    if neighbours is not Neighbours.REPLACE:
        raise InvalidInput(
            f"`neighbours` must be those that replace one record for {name}: it needs the number "
            "of records as public knowledge. Use a ledger with `replace`, or take hdmm or mwem."
        )
    if n_records is None or n_records < 1:
        raise InvalidInput(
            f"`n_records` must be the public number of records for {name}, at least 1; got "
            f"{n_records}. Say how many there are, about."
        )
    return n_records


def refuse_useless(stddev: float) -> float:
    """Refuse, before anything is spent, noise that could not tell anything."""
    if stddev > _MAX_NOISE:
        raise InvalidInput(
            f"`budget` must buy noise of a standard deviation below {_MAX_NOISE:g}; got "
            f"{stddev:.3g}. Spend more, or ask for less."
        )
    return stddev
