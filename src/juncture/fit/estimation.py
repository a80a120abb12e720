"""The one loop: from noisy measurements to the model that fits them best."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from juncture._util.notebook import list_html
from juncture._util.text import count_noun
from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.errors import InvalidInput
from juncture.fit.loss import CustomLoss, FitLoss, Kind, LossFunction
from juncture.fit.misfit import Misfit, find_misfits
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.fit.solvers.problem import CallCounter, Problem, Solver
from juncture.fit.solvers.proximal import Proximal
from juncture.fit.solvers.sequential import Sequential
from juncture.fit.solvers.smoothed import Smoothed
from juncture.fit.total import estimate_total
from juncture.model.model import Model
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout, Vector
from juncture.tables.measurement import Measurement

Constraints = Mapping[Clique, ArrayLike]
Callback = Callable[["Statistics"], None]
_NO_CONSTRAINTS: Constraints = {}


class Status(Enum):
    """Why the fit ended."""

    CERTIFIED = "The certified gap to the optimum is below the tolerance."
    STALLED = "Further steps hardly lower the loss. Lower `tolerance` to go on."
    AT_NOISE = "Fitting further would only fit the noise."
    OUT_OF_STEPS = "All allowed steps are used up. Raise `max_steps` to go on."


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """What the fit reached and what it took."""

    loss: float
    lower_bound: float
    """No model has a smaller loss than this: certified by max-product."""
    oracle_calls: int
    seconds: float
    trace: tuple[tuple[int, float], ...]
    """Oracle calls and loss, each time the solver had a better model."""

    def __repr__(self) -> str:
        gap = f", within {self.gap:.4g} of the optimum" if math.isfinite(self.gap) else ""
        steps = count_noun(self.oracle_calls, "step")
        return f"Statistics(loss {self.loss:.6g}{gap}; {steps} in {self.seconds:.2f} s)"

    @property
    def gap(self) -> float:
        """How far the loss can at most be above the optimum."""
        return self.loss - self.lower_bound

    def summary(self) -> dict[str, float]:
        """The figures by name, for a report or a release."""
        return {
            "loss": self.loss,
            "lower_bound": self.lower_bound,
            "oracle_calls": self.oracle_calls,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The outcome of a fit."""

    model: Model
    status: Status
    statistics: Statistics
    measurements: tuple[Measurement, ...] = ()
    """What the model was fitted to."""

    @cached_property
    def misfits(self) -> list[Misfit]:
        """The measurements that contradict their own noise: see `find_misfits`.

        Where all is well there are none. Otherwise the stated noise is too small, the answers
        belong to another clique or order, or the total is wrong.
        """
        return find_misfits(self.model, self.measurements)

    def __repr__(self) -> str:
        return f"Estimate({self.status.name}, {self.model!r}, {self.statistics!r})"

    def _repr_html_(self) -> str:
        figures = self.statistics
        facts = [
            ("ended", self.status.value),
            ("loss", f"{figures.loss:,.6g}"),
            ("steps", f"{figures.oracle_calls:,} in {figures.seconds:.2f} s"),
        ]
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
    max_steps: int = 5000,
    tolerance: float = 2e-3,
    callback: Callback | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Estimate:
    """The distribution of maximum entropy among those that fit the measurements best.

    - `total`: the number of records; estimated from the measurements when not given.
    - `loss`: "l2" for squared residuals over their variances, "l1" for absolute residuals over
      their scales, "likelihood" for the one that suits each measurement's noise; or a convex
      function of the measured cliques' marginals that returns its value and gradient.
    - `solver`: by default the accelerated one; where the loss has kinks, on rounded-off losses,
      then the proximal one. `Sequential(Accelerated(), Proximal())` gives a tight certificate.
    - `constraints`: for some cliques, a table that is true where a cell is impossible.
    - `start`: a model to begin from, of whatever structure.
    - `cliques`: more cliques for the model; a `loss` that is a function gets their marginals too.
    - `max_steps`: oracle calls. The fit ends earlier when the certified gap, or the solver's
      latest progress, is below `tolerance` times the loss.
    - `callback`: called with the statistics so far each time the solver has a point to show.
    - `watch`: called at every step with the steps so far and the most that are allowed.
    """
    measured = list(measurements)
    if max_steps < 1:
        raise InvalidInput(
            f"`max_steps` must be at least 1; got {max_steps}. Each step is one oracle call."
        )
    if not tolerance >= 0.0:
        raise InvalidInput(
            f"`tolerance` must not be negative; got {tolerance}. It is a share of the loss: 0.002 "
            "stops when the certified gap or the last progress is below 0.2 percent."
        )
    extra_cliques = [tuple(clique) for clique in cliques]
    if not measured and not (extra_cliques and callable(loss) and total is not None):
        raise InvalidInput("`measurements` must not be empty; got none. Measure something first.")
    measured_cliques = [*(m.clique for m in measured), *extra_cliques]
    all_cliques = [*measured_cliques, *constraints, *(start.cliques if start else ())]
    oracle = Propagation(Plan.build(domain, all_cliques))
    fit = (
        CustomLoss(oracle.layout, measured_cliques, loss)
        if callable(loss)
        else FitLoss(oracle.layout, measured, loss)
    )
    mass = max(1.0, estimate_total(domain, measured).total) if total is None else total
    problem = Problem(oracle, fit, mass, CallCounter(max_steps, watch))
    potentials = _initial_potentials(oracle.layout, start) + _constraint_potentials(
        oracle.layout, constraints
    )
    chosen = solver or (Accelerated() if fit.is_smooth else Sequential(Smoothed(), Proximal()))
    loop = _Fit(problem, chosen, tolerance, callback or _ignore, tuple(measured))
    return loop.run(potentials)


def _initial_potentials(layout: Layout, start: Model | None) -> Vector:
    """The potentials of a model of another structure, in this layout."""
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
                "Set a cell to True where no record can be."
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
        callback: Callback,
        measurements: tuple[Measurement, ...],
    ) -> None:
        self.problem, self.solver, self.measurements = problem, solver, measurements
        self.tolerance, self.callback = tolerance, callback
        self.bound, self.n_stalled, self.last = -math.inf, 0, math.inf
        self.trace: list[tuple[int, float]] = []
        self.start_time = time.perf_counter()

    def run(self, potentials: Vector) -> Estimate:
        """The best point of all, with the status that ended the loop."""
        iterates = self.solver.iterates(self.problem, potentials)
        best, status = next(iterates).candidate, self.final_status()
        for iterate in iterates:
            best = min(best, iterate.candidate, key=lambda point: point.loss)
            self.bound = max(self.bound, iterate.bound)
            self.trace.append((self.problem.calls, best.loss))
            self.callback(self.statistics(best.loss))
            reason = self.status(best.loss)
            if reason:
                status = reason
                break
        model = Model(
            self.problem.oracle.plan,
            best.potentials,
            best.marginals,
            best.log_partition,
            self.problem.total,
        )
        return Estimate(
            model=model,
            status=status,
            statistics=self.statistics(best.loss),
            measurements=self.measurements,
        )

    def final_status(self) -> Status:
        """Why a solver that ends by itself does so."""
        return Status.AT_NOISE if isinstance(self.solver, EarlyStopping) else Status.STALLED

    def status(self, loss: float) -> Status | None:
        """Why to stop now, if there is a reason."""
        allowed = self.tolerance * abs(loss)
        self.n_stalled = self.n_stalled + 1 if self.last - loss <= allowed else 0
        self.last = loss
        if loss - self.bound <= allowed:
            return Status.CERTIFIED
        if self.n_stalled >= self.solver.patience:
            return Status.STALLED
        return Status.OUT_OF_STEPS if self.problem.is_exhausted else None

    def statistics(self, loss: float) -> Statistics:
        """What has been reached so far."""
        return Statistics(
            loss=loss,
            lower_bound=self.bound,
            oracle_calls=self.problem.calls,
            seconds=time.perf_counter() - self.start_time,
            trace=tuple(self.trace),
        )


def _ignore(_statistics: Statistics) -> None:
    """The callback of those who gave none."""
