"""The fit: from noisy measurements to the model that fits them best, in one loop."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from juncture._util.notebook import list_html
from juncture._util.watch import Watch, ignore_progress
from juncture.engine.gpu.propagation import GpuPropagation
from juncture.engine.oracle import OracleFactory, make_oracle
from juncture.engine.oracle_choice import choose_oracle
from juncture.engine.particles import RecordOracle
from juncture.engine.plan import Plan
from juncture.engine.plan_text import abbreviate
from juncture.engine.propagation import Propagation
from juncture.errors import InvalidInput
from juncture.fit.card_loss import CardLoss
from juncture.fit.loss import CustomLoss, FitLoss, Kind, LossFunction
from juncture.fit.misfit import Misfit, find_misfits
from juncture.fit.solvers.default import default_solver
from juncture.fit.solvers.problem import CallCounter, Candidate, Problem, Solver, works_on_card
from juncture.fit.summary import FitSummary, Status
from juncture.fit.total import estimate_total
from juncture.model.distribution import Distribution
from juncture.model.model import Model
from juncture.model.record_distribution import RecordDistribution
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout, Vector
from juncture.tables.measurement import Measurement

# Of the loss: a gap up to which a fit without progress is said to have settled.
_NEAR = 0.5
_ROUNDING = 1e-6
# Of the number of records or the largest answer: doubles do not tell smaller residuals from none.
_RESOLUTION = 1e-13
Constraints = Mapping[Clique, ArrayLike]
_NO_CONSTRAINTS: Constraints = {}


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The result of `estimate`: the model, how the fit ended, and what it was fitted to.

    >>> from juncture import Domain, Measurement, estimate
    >>> counts = Measurement(("a",), [6.0, 4.0], stddev=1.0)
    >>> fit = estimate(Domain({"a": 2}), [counts])
    >>> fit.model
    Model(10 records over 1 attribute, 1 clique)
    >>> fit.status.headline
    'The fit is certified.'
    >>> fit.misfits
    []
    """

    model: Model
    summary: FitSummary
    trace: tuple[tuple[int, float], ...]
    """The oracle calls and the least loss so far, for each point that the solver yielded."""
    measurements: tuple[Measurement, ...] = ()
    """What the model was fitted to."""

    @property
    def status(self) -> Status:
        """Why the fit ended."""
        return self.summary.status

    @cached_property
    def misfits(self) -> list[Misfit]:
        """The measurements that contradict their own noise: see `find_misfits`.

        There are none where all is well. Otherwise the stated noise is too small, the answers
        belong to another clique or order, or the total is wrong.
        """
        return find_misfits(self.model, self.measurements)

    def __repr__(self) -> str:
        return f"Estimate({self.model!r}, {self.summary!r})"

    def _repr_html_(self) -> str:
        figures = self.summary
        facts = [
            ("ended", self.status.headline),
            ("loss", f"{figures.loss:,.6g}"),
            ("steps", f"{figures.oracle_calls:,} in {figures.seconds:.2f} s"),
        ]
        if figures.oracle_error is not None:
            facts.append(("error of the records", figures.record_words))
        if math.isfinite(figures.gap):
            facts.insert(2, ("above the optimum by at most", f"{figures.gap:,.4g}"))
        return list_html("Estimate", facts) + self.model._repr_html_()


def estimate(  # noqa: PLR0913
    domain: Domain,
    measurements: Iterable[Measurement],
    *,
    total: float | None = None,
    loss: str | LossFunction = Kind.L2,
    solver: Solver | None = None,
    constraints: Constraints = _NO_CONSTRAINTS,
    start: Model | None = None,
    cliques: Iterable[Clique] = (),
    plan: Plan | None = None,
    oracle: OracleFactory | str = Propagation,
    max_steps: int = 5000,
    tolerance: float = 2e-3,
    watch: Watch = ignore_progress,
) -> Estimate:
    """Fit a model to noisy measurements: of those that fit best, the one of maximum entropy.

    - `domain`: the attributes and their sizes.
    - `measurements`: noisy answers about some cliques; at least one.
    - `total`: the number of records; by default, estimated from the measurements. Noise below 1e-13
      of it, or of the largest answer, counts as that: doubles do not resolve less.
    - `loss`: "l2" for squared residuals over their variances, "l1" for absolute residuals over
      their scales, "likelihood" for the one that suits each measurement's noise; or a convex
      function of the measured cliques' marginals that returns its value and gradient.
    - `solver`: by default `Accelerated`; where the loss has kinks, `Smoothed`. Where that does not
      certify the fit, `Newton` goes on if the model is small, and `Proximal` if there are kinks.
      `Sequential(Accelerated(), Proximal())` gives a tight certificate of large models too.
    - `constraints`: for some cliques, a table that is true where a cell is impossible.
    - `start`: a model to begin from; it may have another structure.
    - `cliques`: more cliques for the model; a `loss` that is a function gets their marginals too.
    - `plan`: a plan made before, for all of these cliques or more; by default, one is made here.
    - `oracle`: what computes marginals; the model keeps it. "exact", the default, needs a junction
      tree that fits into memory. "records" estimates marginals from weighted records, whatever the
      cliques; `Particles(...)` is the same with options. "auto" is exact where the tree fits and
      is not predicted to be far slower (on a card, if there is one and the tree is large), and
      records elsewhere. "cpu" is exact on the processor and "gpu" on an NVIDIA card, if its memory
      is large enough. A function of a plan makes an oracle of your own.
    - `max_steps`: the oracle calls that are allowed. The fit ends earlier when the certified gap,
      or the solver's latest progress, is below `tolerance` times the loss (or times a hundredth of
      the loss that noise alone would make, where that is more).
    - `watch`: called as watch(what, done, total) at every step.

    Two noisy tables that share an attribute become one model, which answers about all three:

    >>> from juncture import Domain, Measurement
    >>> domain = Domain({"age": 2, "sex": 2, "work": 2})
    >>> age_sex = Measurement(("age", "sex"), [30.0, 10.0, 20.0, 40.0], stddev=1.0)
    >>> sex_work = Measurement(("sex", "work"), [25.0, 25.0, 10.0, 40.0], stddev=1.0)
    >>> fit = estimate(domain, [age_sex, sex_work])
    >>> fit.model.project(("age", "work")).values.round(1)
    array([[17., 23.],
           [18., 42.]])
    """
    measured, extra_cliques = list(measurements), [tuple(clique) for clique in cliques]
    _check_limits(max_steps, tolerance)
    if not measured and not (extra_cliques and callable(loss) and total is not None):
        raise InvalidInput("`measurements` must not be empty; got none.")
    measured_cliques = [*(m.clique for m in measured), *extra_cliques]
    all_cliques = [*measured_cliques, *constraints, *(start.cliques if start else ())]
    if plan is not None:
        _check_plan(plan, domain, all_cliques)
    choice = choose_oracle(oracle, domain, all_cliques, plan)
    factory = choice.factory
    engine = make_oracle(factory, choice.plan)
    mass = max(1.0, estimate_total(domain, measured).total) if total is None else total
    fit = (
        CustomLoss(engine.layout, measured_cliques, loss)
        if callable(loss)
        else FitLoss(engine.layout, _widen_noise(measured, mass), loss)
    )
    problem = Problem(engine, fit, mass, CallCounter(max_steps, watch), factory)
    potentials = _initial_potentials(engine.layout, start) + _constraint_potentials(
        engine.layout, constraints
    )
    chosen = solver or default_solver(problem, tolerance)
    if isinstance(engine, GpuPropagation) and works_on_card(chosen) and isinstance(fit, FitLoss):
        problem = problem.with_loss(CardLoss(fit, engine.device.modules, engine.dtype))
        potentials = engine.put(potentials)
    loop = _Fit(problem, chosen, tolerance, factory, tuple(measured))
    return loop.run(potentials)


def _widen_noise(measurements: Sequence[Measurement], total: float) -> list[Measurement]:
    """The measurements, with noise that doubles can tell from none.

    The marginals of a model are rounded to some 1e-16 of the total. With less noise than that, the
    loss would be made of rounding errors, and so would certificates.
    """
    largest = max((float(np.abs(m.values).max(initial=0.0)) for m in measurements), default=0.0)
    least = _RESOLUTION * max(largest, total)
    return [
        m
        if (m.stddev >= least).all()
        else Measurement(
            m.clique, m.values, stddev=np.maximum(m.stddev, least), query=m.query, noise=m.noise
        )
        for m in measurements
    ]


def _check_limits(max_steps: int, tolerance: float) -> None:
    if max_steps < 1:
        raise InvalidInput(
            f"`max_steps` must be at least 1; got {max_steps}. Each step is one oracle call."
        )
    if not tolerance >= 0.0:
        raise InvalidInput(
            f"`tolerance` must not be negative; got {tolerance}. It is a share of the loss: 0.002 "
            "stops when the certified gap or the last progress is below 0.2 percent."
        )


def _check_plan(plan: Plan, domain: Domain, needed: Iterable[Clique]) -> None:
    """Refuse a plan in which a potential would have no table."""
    if plan.domain != domain:
        raise InvalidInput("`plan` must be over the domain of the fit; got one over another.")
    known = set(plan.cliques)
    missing = [clique for clique in map(domain.canonical, needed) if clique not in known]
    if missing:
        raise InvalidInput(
            "`plan` must have every clique of the measurements, constraints, `cliques` and "
            f"`start`; got one without ({abbreviate(missing[0])}). Build it from all of these."
        )


def _initial_potentials(layout: Layout, start: Model | None) -> Vector:
    """The potentials of a model, which may have another structure, in this layout."""
    if start is None:
        return layout.zeros()
    return layout.pack(start.layout.factor(start.potentials, c) for c in start.cliques)


def _constraint_potentials(layout: Layout, constraints: Constraints) -> Vector:
    """Minus infinity where a constraint says that a cell is impossible, else zero."""
    factors = []
    for clique, impossible in constraints.items():
        subdomain = layout.domain.project(clique)
        mask = np.asarray(impossible)
        if mask.dtype != np.bool_ or mask.shape != subdomain.shape:
            raise InvalidInput(
                f"`constraints` must be true-or-false tables of the cliques' shapes; got "
                f"{mask.dtype} of shape {mask.shape} for {subdomain.attributes}. "
                "A cell is True where no record can be."
            )
        factors.append(Factor(subdomain, np.where(mask, -np.inf, 0.0)))
    return layout.pack(factors)


class _Fit:
    """The loop: takes points from the solver until there is a reason to stop."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        tolerance: float,
        oracle: OracleFactory,
        measurements: tuple[Measurement, ...],
    ) -> None:
        self.problem, self.solver, self.tolerance = problem, solver, tolerance
        self.oracle, self.measurements = oracle, measurements
        self.bound, self.n_stalled, self.last = -math.inf, 0, math.inf
        self.trace: list[tuple[int, float]] = []
        self.start_time = time.perf_counter()

    def run(self, potentials: Vector) -> Estimate:
        """Run the loop until there is a reason to stop, and return the model with that reason.

        If the loop stops the solver, the model is the best point of all. If the solver ends by
        itself, it is the solver's last point, whose loss need not be the least: a fit that stops
        at the noise must not return a point that lies beyond it.
        """
        iterates = self.solver.iterates(self.problem, potentials)
        best = latest = next(iterates).candidate
        reason: Status | None = None
        while reason is None:
            try:
                iterate = next(iterates)
            except StopIteration as end:
                return self.make_estimate(
                    latest, self.make_honest(_check_status(end.value), latest.loss)
                )
            latest = iterate.candidate
            best = min(best, latest, key=lambda point: point.loss)
            if iterate.bound <= best.loss + _ROUNDING * abs(best.loss):
                self.bound = max(self.bound, iterate.bound)  # others can only be rounding errors
            self.trace.append((self.problem.calls, best.loss))
            reason = self.find_reason_to_stop(best.loss)
        return self.make_estimate(best, reason)

    def find_reason_to_stop(self, loss: float) -> Status | None:
        """The reason to stop now, or None."""
        allowed = self.tolerance * max(abs(loss), self.problem.loss.negligible)
        self.n_stalled = self.n_stalled + 1 if self.last - loss <= allowed else 0
        self.last = loss
        if loss - self.bound <= allowed:
            return Status.CERTIFIED
        if self.n_stalled >= self.solver.patience:
            return self.make_honest(Status.STALLED, loss)
        return Status.OUT_OF_STEPS if self.problem.is_exhausted else None

    def make_honest(self, reason: Status, loss: float) -> Status:
        """The reason, but a fit has settled only where the bound proves that it is near.

        Small steps alone prove nothing: a slow method takes them far from the optimum too.
        """
        near = max(_NEAR * abs(loss), self.problem.loss.negligible)
        if reason is Status.STALLED and not loss - self.bound <= near:
            return Status.SLOW
        return reason

    def make_estimate(self, point: Candidate, status: Status) -> Estimate:
        """The point as a model, with the figures of the fit."""
        if not self.adds_up(point):
            status, self.bound = Status.SLOW, -math.inf
        model = Model(self.make_distribution(point), self.problem.total)
        engine = self.problem.oracle
        summary = FitSummary(
            status=status,
            loss=point.loss,
            lower_bound=self.bound,
            oracle_calls=self.problem.calls,
            seconds=time.perf_counter() - self.start_time,
            oracle_error=engine.error_beside_noise if isinstance(engine, RecordOracle) else None,
        )
        return Estimate(
            model=model,
            summary=summary,
            trace=tuple(self.trace),
            measurements=self.measurements,
        )

    def adds_up(self, point: Candidate) -> bool:
        """Whether every clique has the total; if not, nothing can be certified about the point."""
        layout, total = self.problem.oracle.layout, self.problem.total
        # Slices, since the vector may lie on a card; in doubles, whatever it holds.
        parts = (point.marginals[start:end] for start, end in pairwise(layout.offsets))
        sums = [float(part.sum(dtype=np.float64)) for part in parts]
        return bool(np.all(np.abs(np.array(sums) - total) <= _ROUNDING * total))

    def make_distribution(self, point: Candidate) -> Distribution | RecordDistribution:
        """The distribution at a point."""
        engine, plan = self.problem.oracle, self.problem.oracle.plan
        if isinstance(engine, RecordOracle):
            population = engine.bring_to(point.potentials)
            return RecordDistribution.of_population(plan, population, self.oracle)
        if isinstance(engine, GpuPropagation):
            # Answers are the processor's: a question is small beside a fit.
            shares = engine.fetch(point.marginals) / self.problem.total
            potentials = engine.fetch(point.potentials)
            return Distribution(plan, potentials, shares, point.log_partition, Propagation)
        shares = point.marginals / self.problem.total
        return Distribution(plan, point.potentials, shares, point.log_partition, self.oracle)


def _check_status(returned: object) -> Status:
    """The reason that a solver returned for ending by itself."""
    if not isinstance(returned, Status):
        raise InvalidInput(
            f"`solver` must return a Status when it ends by itself; got {returned!r}. "
            "Let its `iterates` end with, for example, `return Status.STALLED`."
        )
    return returned
