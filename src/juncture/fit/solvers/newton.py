"""Second-order fits of small models: proximal steps, each solved by Newton's method in its dual.

First-order methods need many steps where the noise is small beside the total: the loss is then a
narrow valley. Newton's method sees its shape. The steps and their dual are those of `Proximal`,
which says what multipliers, centre and length are; here the dual is solved with its exact second
derivative, which the covariance of the answers under the present model gives. The work grows with
the cube of the number of answers, so this is for a few thousand of them at most.

Two things decide whether this works when counts are ten million noise scales large. A step counts
as solved when what is left of the dual's gradient is small beside the loss itself, not beside the
dual, whose numbers are larger by many orders. And a step that was too long to be solved is taken
back, and a shorter one is tried: its length grows only as fast as Newton's method can follow.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass

import numpy as np

from juncture.fit.loss import FitLoss
from juncture.fit.solvers.newton_dual import LIMIT, Barrier, Exhausted, Gap, NewtonDual, Point
from juncture.fit.solvers.problem import Iterate, Iterates, Problem
from juncture.fit.solvers.rows import count_rows
from juncture.fit.summary import Status
from juncture.tables.layout import Vector

# A step is solved when the rest of its gradient is worth this share of the loss and of the gap.
_SOLVED = 0.01
# Newton steps after which a proximal step is taken to be too long, and that make one easy.
_MAX_NEWTON, _EASY = 20, 8
# How the growth of the length recovers after an easy step, falls after a hard one, and its least.
_RECOVERY, _CAUTION, _MIN_GROWTH = 1.5, 0.7, 1.1
# Trials of a line search; the slope at its end, relative to that at its start, that is enough.
_MAX_TRIES, _FLAT_BEFORE, _FLAT_BEYOND, _SHORTER = 40, 0.5, 0.3, 0.3
# What adding a number at an address takes, in operations of a product of matrices.
_SCATTERED = 50.0
# Steps in a row that narrow the gap by less than this share, after which nothing is left to gain.
_IDLE, _MAX_IDLE = 0.01, 40


@dataclass(frozen=True, kw_only=True)
class Newton:
    """Proximal steps by Newton's method, for small models and any noise.

    It begins anew from the uniform distribution, less what constraints exclude: potentials that
    another method has driven far out would hold it up. By default a fit takes it only where the
    accelerated method does not certify the result and the model is small.

    >>> from juncture import Domain, Measurement, estimate
    >>> domain = Domain({"a": 2, "b": 2})
    >>> table = Measurement(("a", "b"), [90_000.0, 7.0, -3.0, 9_999.0], stddev=1.0)
    >>> fit = estimate(domain, [table], total=100_000, solver=Newton(), tolerance=1e-9)
    >>> fit.status.headline
    'The fit is certified.'
    >>> fit.model.project(("a", "b")).values.round().astype(int)
    array([[89998,     5],
           [    0,  9997]])
    """

    growth: float = 4.0
    """How many times longer each step is than the one before, where that goes well."""
    patience: int = 10**9
    """It ends by itself, when rounding errors are all that is left."""

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The start, then the best point after each step, with the best bound so far."""
        dual = NewtonDual(problem, potentials)
        best = problem.evaluate(potentials)
        yield Iterate(best)
        bound = -math.inf
        try:
            path = _Path(dual, self.growth)
            while path.n_idle < _MAX_IDLE:
                point, bound = path.advance(), path.bound
                if point is not None:
                    reached = problem.evaluate(point.potentials)
                    best = min(best, reached, key=lambda each: each.loss)
                yield Iterate(best, bound)
        except Exhausted:
            yield Iterate(best, bound)
            return Status.OUT_OF_STEPS
        return Status.STALLED


def predict_work(problem: Problem) -> float:
    """About how many operations a Newton step takes; infinite where the method does not apply."""
    loss, plan = problem.loss, problem.oracle.plan
    if not (isinstance(loss, FitLoss) and problem.oracle.is_exact):
        return math.inf
    n, n_dense = count_rows(loss)
    separators = [plan.domain.size_of(node.separator) for node in plan.nodes if node.separator]
    passing = n * sum(separators) * max(separators, default=0)
    summing = _SCATTERED * plan.cells * (n_dense + len(plan.cliques) ** 2)
    return n**3 / 3.0 + float(n_dense) * n * loss.layout.size + passing + summing


class _Path:
    """A sequence of proximal steps, each longer than the last one that could be solved."""

    def __init__(self, dual: NewtonDual, growth: float) -> None:
        self.dual, self._max_growth, self._growth = dual, growth, growth
        self.bound, self.n_idle = -math.inf, 0
        self._least, self._narrowest = math.inf, math.inf
        self._centre = dual.uniform
        start = dual.evaluate(self._centre, 0.0, np.zeros(len(dual.rows.goal)))
        inside = np.clip(start.residuals, -1.0, 1.0) * (0.9 * LIMIT)
        self._multipliers = np.where(dual.squared, start.residuals, inside)
        n_absolute = int(dual.absolute.sum())
        self._barrier = Barrier(n_absolute, dual.worth(start.residuals) / max(1, 2 * n_absolute))
        self._length = dual.rows.unit_length(self._multipliers) / growth

    def advance(self) -> Point | None:
        """Take a step; None if it could not be solved, which makes the next try shorter."""
        before = self._narrowest
        point = self._solve(self._length * self._growth)
        self.n_idle = 0 if self._narrowest < (1.0 - _IDLE) * before else self.n_idle + 1
        return point

    def _solve(self, length: float) -> Point | None:
        """Newton's method for a step of this length."""
        dual, barrier = self.dual, copy(self._barrier)
        point = dual.evaluate(self._centre, length, self._multipliers)
        for n_steps in range(_MAX_NEWTON + 1):
            gradient, gap = dual.gradient(point, barrier), self._measure(point)
            enough = max(_SOLVED * min(gap.width, gap.loss), dual.rounding(point))
            if n_steps > 0 and dual.worth(gradient) <= enough:
                self._accept(point, length, n_steps, barrier, gap)
                return point
            if n_steps < _MAX_NEWTON:
                move = dual.direction(point, length, gradient, barrier)
                point = self._search(point, length, gradient, move, barrier)
        long = self._growth > _MIN_GROWTH
        self._growth = math.sqrt(self._growth) if long else _SHORTER * self._growth
        return None

    def _measure(self, point: Point) -> Gap:
        """The gap of a point; remembers the best bound and the least loss."""
        gap = self.dual.gap(point)
        self.bound = max(self.bound, gap.loss - gap.width)
        self._least = min(self._least, gap.loss)
        self._narrowest = min(self._narrowest, self._least - self.bound)
        return gap

    def _accept(
        self, point: Point, length: float, n_steps: int, barrier: Barrier, gap: Gap
    ) -> None:
        """Make the point the next centre."""
        self._centre, self._multipliers, self._length = point.potentials, point.multipliers, length
        largest = float(np.abs(point.residuals[self.dual.absolute]).max(initial=0.0))
        self._barrier = barrier
        barrier.relax(min(gap.width, gap.loss), largest)
        change = _RECOVERY if n_steps < _EASY else _CAUTION
        self._growth = min(self._max_growth, max(_RECOVERY, self._growth * change))

    def _search(
        self, point: Point, length: float, gradient: Vector, move: Vector, barrier: Barrier
    ) -> Point:
        """The point along a move where the dual is about flat.

        Only slopes are compared: values of the dual are so large that their differences are lost.
        As the dual is convex, it has fallen wherever its slope still points down.
        """
        dual, promised = self.dual, float(gradient @ move)
        mine, moves = point.multipliers[dual.absolute], move[dual.absolute]
        low, part = 0.0, barrier.reach(mine, moves)
        high = furthest = part
        for _ in range(_MAX_TRIES):
            tried = dual.evaluate(self._centre, length, point.multipliers + part * move)
            slope = float(dual.gradient(tried, barrier) @ move)
            if slope <= 0.0:
                if part == furthest or slope >= _FLAT_BEFORE * promised:
                    break
                low = part
            elif slope <= -_FLAT_BEYOND * promised:
                break
            else:
                high = part
            part = 0.5 * (low + high) if low > 0.0 else _SHORTER * high
        barrier.follow(mine, part * moves)
        return tried
