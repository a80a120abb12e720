"""The solver for an oracle made of records: clique by clique, along a path from independence.

A stage of the path minimises the loss plus tau times the divergence from the stage before. It goes
over the cliques in turn: what the others imply for a clique's table is its weighted count, less its
own potentials; the clique's problem is solved on that table alone, and the records' weights follow.
That is raking, or iterative proportional fitting, with noise in the margins. Each clique's turn is
a step of coordinate ascent in the dual, and ten stages do what takes hundreds of gradient steps.

The sum of all 1/tau is the clock of the path. Its unit is the noise: at a clock of one, the noise
of a cell has moved its potential by about one. A fit that stops at the noise finds its clock by
splitting the noise; any other goes on until the loss no longer falls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from juncture._util.randomness import Random
from juncture.engine.particles import RecordOracle
from juncture.errors import InvalidInput
from juncture.fit.loss import FitLoss
from juncture.fit.solvers.noise_splitting import (
    Curve,
    find_best_clock,
    make_generator,
    require_fit_loss,
    split_noise,
)
from juncture.fit.solvers.problem import Iterate, Iterates, Problem
from juncture.fit.solvers.raking_path import Path, find_pace
from juncture.fit.summary import Status
from juncture.tables.layout import Vector

_MAX_STAGES = 200
# The stages in turn without progress that end a fit: on the same records, and on any.
_STALLED_STAGES, _IDLE_STAGES = 3, 4
# A run on split noise ends when its clock is this many times that of its best point.
_BEYOND = 2.5
# The loss along such a run is itself left to chance by about this share: the earlier point wins.
_SLACK = 5e-4
# The oracle calls of a run, where nothing else is known: for those who watch the progress.
_USUAL_CALLS = 60
# The records of fits to split noise.
_SPLIT_RECORDS = 30_000


@dataclass(frozen=True, kw_only=True)
class Raking:
    """The solver for an oracle made of records: see `Particles`.

    >>> from juncture import Domain, Measurement, estimate
    >>> from juncture.engine import Particles
    >>> table = Measurement(("a",), [60.0, 40.0], stddev=2.0)
    >>> fit = estimate(Domain({"a": 2}), [table], oracle=Particles(n_records=1000), solver=Raking())
    >>> fit.model.project(("a",)).values.round(1)
    array([60., 40.])
    """

    stop_at_noise: bool = False
    """Whether to stop before the noise is fitted, as `EarlyStopping` does; needs the loss "l2"."""
    tolerance: float = 2e-3
    """The fit has settled where three stages in turn lower the loss by less than this share."""
    draws: int = 2
    """How many times the noise is split, to find where to stop; once where cliques are many."""
    division: float = 1.0
    """How the noise is split: the half that is fitted has 1 + division**2 times the variance."""
    rng: Random = 0
    """The source of the fresh noise: a generator, a seed, or None for a random seed."""
    patience: int = 1_000_000
    """It ends by itself and must not count as stalled."""

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The start, then a point for each stage."""
        oracle, loss = _require_records(problem)
        excluded = np.isneginf(potentials)
        clock_limit = math.inf
        if self.stop_at_noise:
            problem.expect_calls(_USUAL_CALLS * (1 + self.draws))
            clock_limit = self._find_clock(problem, oracle, excluded)
        path = Path(problem, loss, oracle, potentials, patient=self.stop_at_noise)
        problem.expect_calls(path.count_calls(clock_limit) if self.stop_at_noise else _USUAL_CALLS)
        yield Iterate(path.candidate())
        last, best, n_stalled, n_since_best, settled = math.inf, math.inf, 0, 0, False
        for _ in range(_MAX_STAGES):
            renewed = path.advance(clock_limit - path.clock)
            point = path.candidate()
            # Fresh records have another loss, which says little about progress.
            progress = math.inf if renewed else last - point.loss
            small = self.tolerance * max(abs(point.loss), loss.negligible)
            n_stalled = n_stalled + 1 if progress < small and path.is_full else 0
            n_since_best = 0 if best - point.loss > small else n_since_best + 1
            last, best = point.loss, min(best, point.loss)
            if path.clock >= clock_limit * (1 - 1e-9) or path.is_short:
                break
            settled = n_stalled >= _STALLED_STAGES or n_since_best >= _IDLE_STAGES
            if not self.stop_at_noise and settled:
                break
            yield Iterate(point)
        path.finish()
        yield Iterate(path.candidate())
        if not path.is_mixed:
            return Status.NOT_MIXED
        if path.is_short and path.clock < clock_limit and not settled:
            return Status.OUT_OF_STEPS
        return Status.AT_NOISE if self.stop_at_noise else Status.UNCERTIFIED

    def _find_clock(
        self, problem: Problem, oracle: RecordOracle, excluded: NDArray[np.bool_]
    ) -> float:
        """Where to stop, by the loss on one half of the split noise along a fit to the other."""
        loss = require_fit_loss(problem)
        rng, start = make_generator(self.rng, loss), np.where(excluded, -np.inf, 0.0)
        curves = []
        n_splits = min(self.draws, find_pace(len(oracle.layout.cliques)).n_splits)
        for done in range(n_splits):
            problem.expect_calls(_USUAL_CALLS * (1 + n_splits - done))
            fitted, holdout = split_noise(loss, self.division, rng)
            path = Path(
                problem, fitted, oracle, start, patient=True, n_records=_SPLIT_RECORDS,
                noise=1.0 + self.division**2,
            )  # fmt: skip
            curves.append(list(_judge(path, holdout)))
        return find_best_clock(curves, _SLACK) * math.sqrt(1.0 + self.division**2)


def _judge(path: Path, holdout: FitLoss) -> Iterator[tuple[float, float]]:
    """The clock and the loss on a measurement with other noise, stage by stage."""
    curve: Curve = []
    for _ in range(_MAX_STAGES):
        path.advance(math.inf)
        curve.append((path.clock, holdout.value(path.total * path.population.marginals())))
        yield curve[-1]
        best = min(curve, key=lambda pair: pair[1])
        if path.clock > _BEYOND * best[0] or path.is_short:
            return


def _require_records(problem: Problem) -> tuple[RecordOracle, FitLoss]:
    if not isinstance(problem.oracle, RecordOracle):
        raise InvalidInput(
            "`solver` must not be Raking without an oracle made of records; got "
            f"{type(problem.oracle).__name__}. Use `oracle='records'`, or another solver."
        )
    if not isinstance(problem.loss, FitLoss):
        raise InvalidInput(
            "`solver` must not be Raking for a loss that is a function; got Raking. "
            "Leave it out, or use MirrorDescent()."
        )
    return problem.oracle, problem.loss
