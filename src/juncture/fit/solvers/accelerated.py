"""The default solver: accelerated dual averaging that needs no constant, with matching.

Each cycle is an accelerated scheme in the entropy geometry. It keeps averaged marginals x, whose
loss falls like one over the steps squared, and potentials whose own marginals z lag behind. The
step length is found by comparing the loss with the exact Bregman divergence, which the
log-partition function gives for free.

A model needs potentials, and x has none at hand. But x lies in the marginal polytope, so some
potentials have it as their marginals: a few steps of generalised iterative scaling move the
potentials towards them. Their loss then falls to that of x and below, and the next, longer cycle
starts from there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from juncture.engine import vector_ops
from juncture.fit.solvers.matching import match_average
from juncture.fit.solvers.problem import Candidate, Iterate, Iterates, Problem
from juncture.tables.layout import Vector

_EPSILON = float(np.finfo(np.float64).eps)
_RELATIVE_ROUNDING = 1e-12
# The first step moves no potential by more than the inverse of this.
_CAUTION = 0.1
# Doublings of the curvature within one step.
_MAX_TRIES = 40


@dataclass(frozen=True, kw_only=True)
class Accelerated:
    """The default solver for smooth losses: fast, and it needs no constant of the loss.

    It runs accelerated dual averaging in cycles and ends each by matching potentials to the
    averaged marginals.

    >>> from juncture import Domain, Measurement, estimate
    >>> tables = [Measurement(("a",), counts, stddev=1.0) for counts in ([6.0, 4.0], [8.0, 2.0])]
    >>> fit = estimate(Domain({"a": 2}), tables, solver=Accelerated())
    >>> fit.model.project(("a",)).values.round(2)
    array([7., 3.])
    """

    works_on_card: ClassVar = True

    first_cycle: int = 50
    """The oracle calls of the first cycle."""
    growth: float = 1.4
    """How many times longer each later cycle is."""
    matching_steps: int = 8
    """The oracle calls of each matching."""
    patience: int = 1
    """How many points without progress mean that it has stalled."""

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The start, then the matched point at the end of every cycle."""
        best = problem.evaluate(potentials)
        yield Iterate(best)
        length, curvature, share = float(self.first_cycle), first_curvature(problem, best), 0.1
        while True:
            last_call, improving, bound = problem.calls + length, True, -math.inf
            while improving and problem.calls < last_call and not problem.is_exhausted:
                cycle = Cycle(problem, best, curvature)
                while problem.calls < last_call and not problem.is_exhausted and cycle.step():
                    pass
                matched, share = match_average(
                    problem, cycle.own_candidate(), cycle.average, lambda point: point.loss,
                    steps=self.matching_steps, share=max(share, 0.1), max_failures=2,
                )  # fmt: skip
                improving = matched.loss < best.loss * (1.0 - _RELATIVE_ROUNDING)
                best = min(best, matched, key=lambda point: point.loss)
                curvature = cycle.curvature if cycle.weight > 0.0 else curvature
                bound = cycle.bound()
            yield Iterate(best, bound)
            length *= self.growth


class Cycle:
    """One run of the accelerated scheme from a point.

    With step lengths l and the slopes s of the loss, after every step

        weight     = sum of l
        potentials = start - sum of l s            own: the marginals of these
        average    = sum of l own / weight         loss: that of the average
        intercept  = sum of l (loss - s . middle)  where each slope was taken, at `middle`

    and the loss of the average is at most that of the optimum plus its divergence from the start
    over the weight. So the weight is what a cycle works for. Lengths grow with it: with a curvature
    of 1 they are 1, 1.6, 2.2, 2.7 and the weights 1, 2.6, 4.8, 7.6, about a quarter of the squared
    number of steps. With a fixed length of 1 (mirror descent) the weight would only be that number.
    """

    def __init__(
        self, problem: Problem, start: Candidate, curvature: float, *, patience: int = 0
    ) -> None:
        self.problem, self.patience = problem, patience
        self.start = start
        self.log_partition, self.loss = start.log_partition, start.loss
        self.weight, self.curvature = 0.0, curvature
        self.intercept = 0.0
        self._n_steps, self._intercept_error = 0, 0.0
        self._lowest, self._n_idle = start.loss, 0
        # Everything is written into vectors of the cycle's own, which a step swaps.
        self.potentials = start.potentials.copy()
        self.own, self.average = start.marginals.copy(), start.marginals.copy()
        self._next = tuple(np.empty_like(start.marginals) for _ in range(3))
        self._middle, self._slope = (np.empty_like(start.marginals) for _ in range(2))

    def step(self, max_length: float = math.inf) -> bool:
        """Take one step, no longer than `max_length`.

        Returns False if `max_length` is used up, no length is acceptable, or the average got no
        better, after `patience` such steps in turn: with momentum the loss may rise for a while.

        A length is acceptable if the loss of the new average exceeds its linearisation at `middle`
        by no more than the divergence of the new marginals from the old, over the new weight; that
        is what keeps the bound above true. The divergence is exact, by the log-partition functions,
        so the curvature is that which the loss shows here, not the worst that it could show
        anywhere. It doubles while a step is too long and shrinks by a little after each success:
        without that, one bad step would slow down all later ones.
        """
        if max_length <= 0.0:
            return False
        problem, middle, slope = self.problem, self._middle, self._slope
        potentials, own, average = self._next
        for _ in range(_MAX_TRIES):
            length = min(max_length, _step_length(self.curvature, self.weight))
            share = length / (self.weight + length)
            vector_ops.mix(self.average, self.own, share, middle)
            value, _ = problem.loss.value_and_gradient(middle, slope)
            vector_ops.descend(self.potentials, slope, length, potentials)
            _, log_partition = problem.marginals(potentials, own)
            vector_ops.mix(self.average, own, share, average)
            loss = problem.loss.value(average)
            moved = vector_ops.dot(slope, own)
            divergence = -length * moved - problem.total * (log_partition - self.log_partition)
            excess = loss - value - share * (moved - vector_ops.dot(slope, self.own))
            rounding = _RELATIVE_ROUNDING * abs(value)
            if excess <= divergence / (self.weight + length) + rounding:
                break
            self.curvature *= 2.0
            if problem.is_exhausted:
                return False
        else:  # what is left to gain is smaller than the rounding errors
            return False
        if loss < self._lowest - rounding:
            self._lowest, self._n_idle = loss, 0
        elif self._n_idle >= self.patience:
            return False
        else:
            self._n_idle += 1
        self.intercept += length * (value - vector_ops.dot(slope, middle))
        self._n_steps += 1
        steepest = vector_ops.find_largest(slope) * self._mass
        self._intercept_error += length * _EPSILON * (abs(value) + steepest)
        self.weight += length
        self.curvature *= 0.95
        self._next = self.potentials, self.own, self.average
        self.potentials, self.own, self.average = potentials, own, average
        self.log_partition, self.loss = log_partition, loss
        return True

    def own_candidate(self) -> Candidate:
        """The potentials with their own marginals and loss; those of the average are better."""
        value = self.problem.loss.value(self.own)
        return Candidate(self.potentials, self.own, self.log_partition, value)

    def bound(self) -> float:
        """The least of the averaged linearisations, which lie below the loss everywhere.

        The potentials have moved by minus the weighted sum of the slopes, so that sum need not
        be kept. But they are rounded at every step, and a cycle of tiny steps moves them by hardly
        more than that. So what rounding may have added is taken off: a bound must hold.
        """
        if self.weight == 0.0:
            return -math.inf
        largest = vector_ops.find_largest(self.potentials)
        moved_error = self._n_steps * _EPSILON * largest * self._mass
        error = (moved_error + self._intercept_error) / self.weight
        slope = np.empty_like(self.potentials)
        vector_ops.descend(self.start.potentials, self.potentials, 1.0, slope)
        lowest = self.problem.minimise_linear(slope, self.start.potentials)
        return (self.intercept + lowest) / self.weight - error

    @property
    def _mass(self) -> float:
        """What the marginals of all cliques add up to."""
        return self.problem.total * len(self.problem.oracle.layout.cliques)


def first_curvature(problem: Problem, start: Candidate) -> float:
    """A curvature with which the first step moves no potential far, in any unit of the loss."""
    _, slope = problem.loss.value_and_gradient(start.marginals)
    return max(_CAUTION * vector_ops.find_largest(slope), 1e-3 / problem.total)


def _step_length(curvature: float, weight: float) -> float:
    """The longest step allowed by the curvature: curvature * length**2 = weight + length."""
    return (1.0 + math.sqrt(1.0 + 4.0 * curvature * weight)) / (2.0 * curvature)
