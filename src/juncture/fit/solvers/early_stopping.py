"""Fitting that stops where further steps would only fit the noise.

With every step the loss falls, but from some point on the distance to the truth rises again,
the sooner the more the measurements overlap. That point can be found without the truth and
without spending privacy, by splitting the noise. If z is fresh noise of the same variance as that
of the measured values y, then y + a z and y - z / a are two measurements with uncorrelated noise:
fit the first and take the loss on the second. The accelerated scheme from the uniform start has a
natural clock, its accumulated weight. The weight at which the loss on the second measurement is
least, on average over a few draws of z, decides where the fit of y itself ends: noise moves a
potential by the weight times its standard deviation over the variance, and y has less noise than
what was fitted, so its weight may be larger in the same proportion. Its averaged marginals are then
matched by potentials. `experiments/stopping.py` shows how close this comes to the best point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from juncture._util.randomness import Random
from juncture.engine import vector_ops
from juncture.engine.particles import RecordOracle
from juncture.fit.loss import FitLoss
from juncture.fit.solvers.accelerated import Cycle, first_curvature
from juncture.fit.solvers.matching import match_average
from juncture.fit.solvers.noise_splitting import (
    Curve,
    find_best_clock,
    make_generator,
    require_fit_loss,
    split_noise,
)
from juncture.fit.solvers.problem import Candidate, Iterate, Iterates, Problem
from juncture.fit.solvers.raking import Raking
from juncture.fit.summary import Status
from juncture.tables.layout import Vector

# A run on split noise ends when its weight is this many times that of its best point.
_BEYOND = 3.0
# With momentum the loss rises for some steps now and then; a run that ended there would often end
# before it reaches the noise.
_PATIENCE = 50
# Closer than this, as a mean total variation distance, nobody sees a difference under usual noise.
_CLOSE = 1e-3


@dataclass(frozen=True, kw_only=True)
class EarlyStopping:
    """The solver for many overlapping measurements: it stops before it fits their noise.

    It is one run of the accelerated scheme, ended early, with its averaged marginals matched. It
    always starts from the uniform distribution (less what constraints exclude), because its
    clock counts from there; another start is ignored. It needs the loss "l2".

    >>> from juncture import Domain, Measurement, estimate
    >>> table = Measurement(("a",), [58.0, 11.0, 20.0, 11.0], stddev=5.0)
    >>> fit = estimate(Domain({"a": 4}), [table], solver=EarlyStopping())
    >>> fit.status.headline
    'The fit was ended on purpose, at the noise.'
    """

    works_on_card: ClassVar = True

    draws: int = 2
    """How many times the noise is split."""
    division: float = 1.0
    """How the noise is split: the half that is fitted has 1 + division**2 times the variance."""
    max_run_calls: int = 500
    """How many oracle calls one run may take."""
    matching_steps: int = 300
    """How many oracle calls the matching may take."""
    matching_accuracy: float = 0.1
    """Matching ends when the mean total variation distance to the average is below this share of
    what the noise makes, or below 0.001."""
    rng: Random = 0
    """The source of the fresh noise: a generator, a seed, or None for a random seed."""
    patience: int = 1_000_000
    """It ends by itself and must not count as stalled."""

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The uniform start, then the point where fitting ends."""
        loss = require_fit_loss(problem)
        if isinstance(problem.oracle, RecordOracle):
            path = Raking(
                stop_at_noise=True, draws=self.draws, division=self.division, rng=self.rng
            )
            return (yield from path.iterates(problem, potentials))
        uniform = np.where(potentials == -np.inf, -np.inf, 0.0)
        start = problem.evaluate(uniform)
        yield Iterate(start)
        rng = make_generator(self.rng, loss)
        curves = [self._validation_curve(problem, loss, start, rng) for _ in range(self.draws)]
        limit = find_best_clock(curves) * math.sqrt(1.0 + self.division**2)
        cycle = Cycle(problem, start, first_curvature(problem, start), patience=_PATIENCE)
        while not problem.is_exhausted and cycle.step(max_length=limit - cycle.weight):
            pass
        matched = match_average(
            problem, cycle.own_candidate(), cycle.average,
            lambda point: _distance(problem, point.marginals, cycle.average),
            steps=min(self.matching_steps, problem.calls_left),
            enough=min(_CLOSE, self.matching_accuracy * _find_noise(loss, problem.total)),
        ).candidate  # fmt: skip
        yield Iterate(matched, cycle.bound())
        return Status.AT_NOISE

    def _validation_curve(
        self, problem: Problem, loss: FitLoss, start: Candidate, rng: np.random.Generator
    ) -> Curve:
        """The weight, and the loss on one half of the split noise, along a run on the other."""
        noisier, holdout = split_noise(loss, self.division, rng)
        fitted = problem.with_loss(noisier)
        own = start._replace(loss=fitted.loss.value(start.marginals))
        cycle, last = (
            Cycle(fitted, own, first_curvature(fitted, own), patience=_PATIENCE),
            problem.calls + self.max_run_calls,
        )
        curve: Curve = []
        best = (0.0, holdout.value(start.marginals))
        while problem.calls < last and not problem.is_exhausted and cycle.step():
            curve.append((cycle.weight, holdout.value(cycle.average)))
            best = min(best, curve[-1], key=lambda pair: pair[1])
            if best[0] > 0.0 and cycle.weight > _BEYOND * best[0]:
                break
        return curve or [best]


def _find_noise(loss: FitLoss, total: float) -> float:
    """The mean total variation distance that noise makes of a measured table."""
    sums = [term.noise.mean_absolute(float(term.stddev.sum())) for term in loss.terms]
    return 0.5 * float(np.mean(sums)) / total


def _distance(problem: Problem, left: Vector, right: Vector) -> float:
    """The mean total variation distance over the cliques."""
    n_cliques = len(problem.oracle.layout.cliques)
    return 0.5 * vector_ops.find_distance(left, right) / (problem.total * n_cliques)
