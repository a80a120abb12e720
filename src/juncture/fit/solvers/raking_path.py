"""One run along the path of a fit with records: stages, and the passes over all cliques.

See `raking` for what the path is. Each clique's turn changes the weights no more than they can
bear, and the records are renewed where too few carry the weight; their number grows where what they
leave to chance would show beside the noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from juncture.engine.mixing import measure_mixing, tie_stuck_attributes
from juncture.engine.particles import RecordOracle
from juncture.engine.population import MIN_EFFECTIVE, Population
from juncture.fit.loss import FitLoss
from juncture.fit.solvers.clique_problems import make_problem
from juncture.fit.solvers.independence import begin_independent
from juncture.fit.solvers.problem import Candidate, Problem
from juncture.fit.solvers.settling import measure_error, settle_records
from juncture.tables.layout import Vector

# The first stage's share of the clock, and how much longer each stage is than the one before.
_FIRST, _GROWTH, _FAST_GROWTH, _SHRINK = 1 / 64, 1.15, 1.3, 0.6
_PASSES, _MAX_PASSES = 3, 24
# Passes on fresh records in the end; then the most stages of a fit to convergence, which ends where
# one moves the answers by less than this share of what the records leave to chance.
_FEW_PASSES, _MAX_POLISHING, _POLISHED = 2, 20, 0.03
# About so many calls settle the records, for those who watch the progress.
_ENDING_CALLS = 6
# Such stages end after so many turns of a record and a clique: some seconds.
_MAX_WORK = 1.5e9
# A turn changes the weights by no more than this, as the mean square of their factors less one.
_MAX_CHANGE = 1.0
# The records of the first stages; the other stages have this part of those of the end, or so many.
_FIRST_RECORDS, _PATH_SHARE = 30_000, 4
# Records settle all together where those that must are more than this share.
_MUCH = 0.7
# What the records leave to chance should be at most this share of the noise.
_NOISE_SHARE = 0.09
# Of the loss that noise alone makes: all records join where the loss is below so many times it; and
# a fit to stop at the noise leaves a clique alone where its own loss is below this share.
_NEAR, _EXPLAINED = 2.0, 0.92
# A clique whose loss is so many deviations above what noise makes has a clock that runs faster.
_FLAG, _BOOST = 3.0, 4.0
# A cell that no record has may rise by so many nats until records are drawn anew: its count stays
# zero however high it is, so nothing else would hold it back.
_MAX_UNSEEN_RISE = 1.0
# With more cliques than this, renewing the records as often as usual takes nearly all the time.
_MANY_CLIQUES = 300


class Pace(NamedTuple):
    """How carefully the records of a path are kept: every renewal costs time."""

    min_path: int
    """The fewest records along the path, where the end has more."""
    min_effective: float
    """The effective share below which all records together are renewed."""
    checks_always: bool
    """Whether each renewal looks for attributes that are stuck, or the first of a pass."""
    n_splits: int
    """How many times the noise is split at most, to find where to stop."""


USUAL = Pace(100_000, 0.7, True, 1_000)
# A fit of 270 cliques was as close to the truth at this pace (0.5 %); with fewer passes, or
# longer stages, they were 3 % further from it. A split of the noise of so many answers says as much
# as several splits do where answers are few.
HURRY = Pace(50_000, 0.45, False, 1)


def find_pace(n_cliques: int) -> Pace:
    """The pace for so many cliques.

    >>> find_pace(200) is USUAL, find_pace(900) is HURRY
    (True, True)
    """
    return HURRY if n_cliques > _MANY_CLIQUES else USUAL


class Path:
    """One run along the path, with its own records."""

    def __init__(
        self, problem: Problem, loss: FitLoss, oracle: RecordOracle, start: Vector, *,
        patient: bool, n_records: int | None = None, noise: float = 1.0,
    ) -> None:  # fmt: skip
        self.problem, self.loss, self.total, self.clock = problem, loss, problem.total, 0.0
        self.oracle = oracle
        made = ((i, make_problem(loss, c)) for i, c in enumerate(oracle.layout.cliques))
        self.parts = {index: part for index, part in made if part is not None}
        self.patient, self.noise = patient, noise
        self.floor = _EXPLAINED * noise if patient else 0.0
        self.near = _NEAR * noise * loss.expected_at_truth
        self.pace = find_pace(len(self.parts))
        self.growth = _GROWTH if patient else _FAST_GROWTH
        self.length, self.unit = _FIRST, float(np.median([np.median(t.stddev) for t in loss.terms]))
        wanted = _find_number(loss, self.total)
        self.n_full = n_records or oracle.settings.limit_records(wanted, len(oracle.plan.domain))
        self.n_path = min(self.n_full, max(self.pace.min_path, self.n_full // _PATH_SHARE))
        first = min(_FIRST_RECORDS, self.n_full)
        excluded = np.isneginf(start)
        if np.where(excluded, 0.0, start).any() and not patient:
            oracle.begin(start, first)
        else:
            begin_independent(oracle, loss, excluded, self.total, first)
        self._rng = np.random.default_rng(oracle.settings.seed)
        self.anchor, self.is_mixed = oracle.population.potentials.copy(), True
        self.value, self.n_passes = math.inf, _PASSES

    @property
    def population(self) -> Population:
        """The records of this run."""
        return self.oracle.population

    @property
    def is_full(self) -> bool:
        """Whether all records of the path have joined; those of its end may be more."""
        return self.population.n_records >= self.n_path

    @property
    def is_short(self) -> bool:
        """Whether the calls that are left are few: the last ones are for the end of the path."""
        return self.problem.calls_left <= self.n_passes + 3

    @property
    def min_effective(self) -> float:
        """The effective share of the records below which they are renewed."""
        return self.pace.min_effective if self.is_full else MIN_EFFECTIVE

    def count_calls(self, clock: float) -> int:
        """About how many oracle calls there are until that clock, and in the end."""
        stages = math.log1p(clock * (self.growth - 1.0) / self.length) / math.log(self.growth)
        return math.ceil(stages) * self.n_passes + _ENDING_CALLS

    def advance(self, rest: float) -> bool:
        """One stage, at most what is left of the clock; gives whether the records were renewed."""
        n_renewals = self.population.n_renewals
        length = min(self.length, max(rest, 1e-9))
        self.anchor = self.population.potentials.copy()
        before = self.value
        for _ in range(self.n_passes):
            self.rake(length)
        self.clock += length
        if self.patient or self.value < before:
            self.length *= self.growth
        else:  # cliques that contradict each other pull in turn until they agree
            self.length *= _SHRINK
            self.n_passes = min(2 * self.n_passes, _MAX_PASSES)
        slow = self.value > 0.9 * before
        if not self.is_full and (self.value < self.near or slow or length == rest):
            self.population.renew(self.n_path)
            tie_stuck_attributes(self.population)
            self.rake(length)
        return self.population.n_renewals > n_renewals

    def rake(self, length: float) -> None:
        """One pass over all cliques."""
        population, tau = self.population, 1.0 / (length * self.unit)
        offsets, order = population.layout.offsets, self._rng.permutation(sorted(self.parts))
        self.value, looks = 0.0, self.is_full
        for index in order.tolist():
            shares, part = population.count(index), self.parts[index]
            if population.effective_share < self.min_effective:
                population.renew()
                if looks:
                    tie_stuck_attributes(population)
                    looks = self.pace.checks_always
                shares = population.count(index)
            own = part.loss(self.total * shares)
            self.value += own
            if own < self.floor * part.expected:
                continue
            now = population.table(index)
            open_cells = ~np.isneginf(now)
            anchor = self.anchor[offsets[index] : offsets[index + 1]]
            change = np.where(open_cells, now - np.where(open_cells, anchor, 0.0), 0.0)
            base = shares * np.exp(np.clip(-change, -700.0, 700.0))
            base /= base.sum()
            pressed = tau / (_BOOST if self._is_misfit(own, part.expected) else 1.0)
            goal = part.balance(base, change, pressed, self.total)
            step = _limit(shares, np.where(open_cells, goal - change, 0.0))
            unseen = open_cells & (shares == 0.0)
            risen = now[unseen] - population.drawn_at[offsets[index] : offsets[index + 1]][unseen]
            step[unseen] = np.minimum(step[unseen], np.maximum(_MAX_UNSEEN_RISE - risen, 0.0))
            population.move(index, step, shares)
        self.problem.count_call()

    def _is_misfit(self, own: float, expected: float) -> bool:
        """Whether a clique's loss shows more than noise where most others' no longer do."""
        usual = self.noise * expected
        return self.patient and self.is_full and own > usual + _FLAG * math.sqrt(usual)

    def finish(self) -> None:
        """Make sure that all records have joined in the end, and say how well they stand for it."""
        tie_stuck_attributes(self.population)
        wanted = _find_number(self.loss, self.total)
        chance, n_settled = wanted * _NOISE_SHARE**2, max(self.n_path, math.ceil(wanted))
        if n_settled > _MUCH * self.n_full:
            n_settled = self.n_full
        error = settle_records(
            self.population, self._residuals, self._correct, chance, n_settled, self.n_full
        )
        if not self.patient:
            self._polish(math.sqrt(chance / self.population.effective_number))
            error = measure_error(self.population, self._residuals, chance)
        self.oracle.error_beside_noise = error
        self.is_mixed = measure_mixing(self.population).is_mixed

    def _correct(self) -> bool:
        """Passes on the records at hand; gives whether more are allowed."""
        for _ in range(_FEW_PASSES):
            if self.problem.calls_left > 1:  # the last one belongs to whoever asked for the fit
                self.rake(self.length / self.growth)
        return self.problem.calls_left > 1

    def _polish(self, chance: float) -> None:
        """Stages on the last records until one moves the answers by little beside chance."""
        before, turns = self._residuals(self.population), self.problem.calls
        cost = self.population.n_records * len(self.parts)
        for _ in range(_MAX_POLISHING):
            if self.is_short or (self.problem.calls - turns) * cost > _MAX_WORK:
                return
            self.advance(math.inf)
            after = self._residuals(self.population)
            moved = math.sqrt(float(np.mean((after - before) ** 2)))
            if moved <= _POLISHED * chance:
                return
            before = after

    def _residuals(self, population: Population) -> Vector:
        return self.loss.residuals(self.total * population.marginals())

    def candidate(self) -> Candidate:
        """The present point."""
        marginals = self.total * self.population.marginals()
        value = self.loss.value(marginals)
        return Candidate(self.population.potentials.copy(), marginals, math.nan, value)


def _find_number(loss: FitLoss, total: float) -> float:
    """How many records leave little to chance beside the noise of the answers."""
    spread = total**2 * sum(term.heaviest_record for term in loss.terms)
    return spread / sum(len(term.values) for term in loss.terms) / _NOISE_SHARE**2


def _limit(shares: Vector, step: Vector) -> Vector:
    """The step without its mean, shortened until the weights can bear it."""
    step = step - float(shares @ step)
    for _ in range(30):
        factor = np.exp(np.minimum(step, 300.0))
        mean = float(shares @ factor)
        if float(shares @ (factor * factor)) <= (1.0 + _MAX_CHANGE) * mean * mean:
            break
        step = 0.7 * step
    return step
