"""What a mechanism is: it prepares a run without data, and the run measures and estimates.

`prepare` costs nothing and reads no data. It gives a `Run`: what every event will cost, what is
known about errors, and the run itself. So `juncture plan` shows what `juncture release` would do,
and a run that a ledger cannot pay for completely is refused before its first event.

    run = HDMM(Budget(epsilon=1.0)).prepare(workload, Neighbours.ADD_OR_REMOVE)
    print(run.costs, run.facts)
    result = run(curator)
    result.release().save("people.jct")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from juncture._util.watch import Watch, ignore_progress
from juncture.engine.oracle_choice import OracleChoice
from juncture.engine.plan import Plan
from juncture.errors import InvalidInput
from juncture.fit.column_counts import match_columns
from juncture.fit.public_facts import PublicFacts
from juncture.fit.selection_proof import Choice, SelectionProof
from juncture.fit.summary import FitSummary
from juncture.fit.total import estimate_total
from juncture.mechanisms.result import RunResult
from juncture.model.model import Model
from juncture.model.record_distribution import RecordDistribution
from juncture.privacy.accounting import Cost, Neighbours
from juncture.privacy.budget import Budget
from juncture.tables.domain import Clique, Domain, refuse_many_axes
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.schema import Schema
from juncture.tables.workload import Workload, check_same_domain

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator

# More noise makes any table useless, and soon exceeds the integers of the samplers.
_MAX_NOISE = 1e8


@dataclass(frozen=True)
class MarginalForecast:
    """What is known about one marginal of the workload before it is measured.

    >>> MarginalForecast(("age", "sex"), 6, share=0.5, stddev=2.8, error=2.8).cells
    6
    """

    clique: Clique
    cells: int
    share: float
    """What it may cost, in the unit of the price."""
    stddev: float
    """The standard deviation of the noise on each answer; not a number if none is measured on this
    clique."""
    error: float
    """The root of the expected mean squared error of a query, by least squares alone."""


@dataclass(frozen=True, eq=False)
class Findings:
    """What a mechanism's own code returns; the run makes a `RunResult` of it.

    >>> from juncture.tables.domain import Domain
    >>> table = Factor(Domain({"sex": 2}), [1.0, 2.0])
    >>> Findings(project=table.project, details={"rounds": 1}).project(("sex",)).values
    array([1., 2.])
    """

    project: Callable[[Clique], Factor]
    """The estimated counts of a clique of the workload."""
    model: Model | None = None
    measurements: Sequence[Measurement] = ()
    fit: FitSummary | None = None
    """How the fit of the model ended."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Facts of this mechanism alone, by name: plain numbers, texts and lists."""
    check: tuple[Measurement, ...] = ()
    """What was measured to check the model, which it is not fitted to."""
    choices: tuple[Choice, ...] = ()
    """Private choices that prove something of the candidates that they left."""

    def prove(self) -> tuple[SelectionProof, ...]:
        """What the choices prove of the model, which is the one that is released."""
        if self.model is None:
            return ()
        unmeasured = frozenset(self.model.unmeasured)
        proofs = (
            each.prove(self.measurements, self.model.project_many, unmeasured)
            for each in self.choices
        )
        return tuple(proof for proof in proofs if proof is not None)


@dataclass(frozen=True)
class Assignment:
    """What a mechanism is asked to do; all of it is public."""

    workload: Workload
    neighbours: Neighbours
    n_records: int | None = None
    """The number of records, if it is public."""

    @property
    def domain(self) -> Domain:
        """The workload's."""
        return self.workload.domain


@dataclass(frozen=True, eq=False, kw_only=True)
class Outline:
    """What a mechanism knows of a run before it sees data, and the run itself."""

    costs: tuple[Cost, ...]
    """The cost of every event, in order; if the data decides their number, of the most events."""
    costs_are_exact: bool = True
    """Whether exactly these costs are paid; if not, their sum is a bound."""
    execute: Callable[[Curator, Watch], Findings]
    """The work itself; call the run instead."""
    n_records: int | None = None
    """The public number of records that it was prepared for, if it needs one."""
    plan: Plan | None = None
    """The structure of the model, if it is known beforehand."""
    oracle: OracleChoice | None = None
    """What computes the model's marginals, why, and how long its fit takes, if it is known."""
    marginals: tuple[MarginalForecast, ...] = ()
    """What to expect of each marginal, if the whole workload is measured."""
    facts: tuple[tuple[str, str], ...] = ()
    """What else is known beforehand: pairs of a name and a text."""
    cell_stddev: float | None = None
    """The usual standard deviation of the noise on a measured count, if it is known."""
    max_chosen: int | None = None
    """How many sets of columns are measured at most, where the data decides which."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Run(Outline):
    """A prepared mechanism: everything that is known about its run without data.

    Call it with a curator to run it.

    >>> from juncture.mechanisms.mwem import MWEM
    >>> from juncture.tables.domain import Domain
    >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2}), 1)
    >>> run = MWEM(Budget(epsilon=1.0), rounds=2).prepare(workload, Neighbours.REPLACE)
    >>> [cost.epsilon for cost in run.costs]
    [0.2, 0.2, 0.15, 0.15, 0.15, 0.15]
    """

    mechanism: str
    workload: Workload
    budget: Budget
    neighbours: Neighbours
    earlier: tuple[Measurement, ...] = ()
    """What was measured of single columns of the table before: the model follows it too."""

    def __repr__(self) -> str:
        bound = "" if self.costs_are_exact else "at most "
        n, tasks = len(self.costs), len(self.workload.tasks)
        return f"Run({self.mechanism} for {tasks} tasks under {self.budget}: {bound}{n} events)"

    def __call__(self, curator: Curator, *, watch: Watch = ignore_progress) -> RunResult:
        """Measure and estimate through a curator; its ledger must be able to pay for everything."""
        self._check(curator)
        n_before = len(curator.events)
        with curator.reserve(self.costs, self.mechanism):
            fitted = _impose_facts(self.execute(curator, watch), curator.schema, watch)
        findings = _join_columns(fitted, curator, self.earlier)
        return RunResult(
            project=findings.project,
            model=findings.model,
            measurements=tuple(findings.measurements),
            fit=findings.fit,
            details=findings.details,
            check=findings.check,
            proofs=findings.prove(),
            mechanism=self.mechanism,
            workload=self.workload,
            schema=curator.schema,
            guarantee=curator.guarantee_since(n_before, self.budget),
        )

    def _check(self, curator: Curator) -> None:
        check_same_domain(curator.domain, self.workload)
        if curator.neighbours != self.neighbours:
            raise InvalidInput(
                f"`curator` must protect what the run was prepared for ({self.neighbours}); got "
                f"{curator.neighbours}. Prepare the run with the neighbours of the ledger."
            )
        if self.n_records is not None and curator.public_n_records != self.n_records:
            raise InvalidInput(
                f"`curator` must have the {self.n_records} records that the run was prepared for; "
                f"got {curator.public_n_records}. Prepare it with curator.public_n_records."
            )


def _impose_facts(findings: Findings, schema: Schema | None, watch: Watch) -> Findings:
    """The findings with a model in which the rules and the known totals of a schema hold.

    Measurements are fitted anew, with these facts; a model that has none is changed as little as
    they allow. Either way it is post-processing.
    """
    facts = None if schema is None else PublicFacts.of_schema(schema)
    if not facts or findings.model is None:
        return findings
    if not findings.measurements:
        model, summary = facts.impose(findings.model), findings.fit
    else:
        by_records = isinstance(findings.model.distribution, RecordDistribution)
        oracle = findings.model.distribution.oracle if by_records else "auto"
        total = findings.model.total
        fit = facts.fit(findings.measurements, total, oracle=oracle, watch=watch)
        model, summary = fit.model, fit.summary
    return replace(findings, model=model, project=model.project, fit=summary)


def _join_columns(findings: Findings, curator: Curator, earlier: Sequence[Measurement]) -> Findings:
    """The findings with what was measured before, and a model whose single columns follow it all.

    So does the number of records, unless it is public. Where totals are known to all, these go
    before: the model is left as it is.
    """
    measured = bool(findings.measurements) and findings.model is not None
    schema = curator.schema
    if not (earlier and measured) or (schema is not None and schema.known):
        return findings
    assert findings.model is not None
    names = dict.fromkeys(each.clique[0] for each in earlier)
    known, model = (*findings.measurements, *earlier), findings.model
    if curator.public_n_records is None:
        total = max(1.0, estimate_total(model.domain, known).total)
        model = replace(model, base_total=total, log_share=0.0)
    model = match_columns(model, names, known)
    return replace(findings, model=model, project=model.project, measurements=known)


class Mechanism(Protocol):
    """A way to decide what to measure under a budget. Inherit from it, or define its members.

    Privacy: all that a run learns about data comes through the curator, which charges every event
    to the ledger. The docstring of each mechanism proves that its events cost at most its budget.

    >>> from juncture.mechanisms.hdmm import HDMM
    >>> mechanism: Mechanism = HDMM(Budget(epsilon=1.0))
    >>> mechanism.name, str(mechanism.budget)
    ('hdmm', 'epsilon 1')
    """

    name: ClassVar[str]
    """Its name on the command line and in release files."""

    budget: Budget
    """What a run may cost."""

    def outline(self, assignment: Assignment) -> Outline:
        """Decide everything that needs no data; refuses a run that could not be completed."""

    def prepare(
        self, workload: Workload, neighbours: Neighbours, n_records: int | None = None
    ) -> Run:
        """The run for a workload, decided as far as it needs no data.

        `n_records` is the number of records if it is public.
        """
        if not workload.tasks:
            raise InvalidInput("`workload` must have a task; got none.")
        if n_records is not None and n_records < 1:
            raise InvalidInput(
                f"`n_records` must be at least 1: a table without records has nothing to release; "
                f"got {n_records}. Check that the right table was read."
            )
        # A run that chooses what to measure may join them all in one table, too late to refuse it.
        refuse_many_axes([name for name, size in workload.domain.items() if size == 1])
        outline = self.outline(Assignment(workload, neighbours, n_records))
        known = {each.name: getattr(outline, each.name) for each in fields(outline)}
        return Run(
            mechanism=self.name, workload=workload, budget=self.budget, neighbours=neighbours,
            **known,
        )  # fmt: skip

    def run(
        self, curator: Curator, workload: Workload, *, watch: Watch = ignore_progress
    ) -> RunResult:
        """Prepare a run for a curator, and run it."""
        prepared = self.prepare(workload, curator.neighbours, curator.public_n_records)
        return prepared(curator, watch=watch)


def require_n_records(name: str, assignment: Assignment) -> int:
    """The number of records, for a mechanism that needs it; refuses if it is not public."""
    if not assignment.neighbours.n_records_is_public:
        whose = " of a table without [person]" if assignment.neighbours.person else ""
        raise InvalidInput(
            f"`neighbours` must be those that replace one record{whose} for {name}: it needs the "
            "number of records as public knowledge. Use a ledger with `replace`, or hdmm or mwem."
        )
    n_records = assignment.n_records
    if n_records is None or n_records < 1:
        raise InvalidInput(
            f"`n_records` must be the public number of records for {name}, at least 1; got "
            f"{n_records}. An approximate number is enough for a plan."
        )
    return n_records


def refuse_useless(stddev: float) -> float:
    """Refuse, before anything is spent, noise that makes any answer useless."""
    if stddev > _MAX_NOISE:
        raise InvalidInput(
            f"`budget` must buy noise of a standard deviation below {_MAX_NOISE:g}; got "
            f"{stddev:.3g}. Spend more, or ask for less."
        )
    return stddev
