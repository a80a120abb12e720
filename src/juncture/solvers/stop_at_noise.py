"""Fitting that stops where going on would only fit the noise.

With every step the loss falls, but from some point on the distance to the truth rises again. The
accelerated scheme from the uniform start has a natural clock, its accumulated weight: after
weight S the potentials are minus S times an average gradient, so the noise of a count with
standard deviation s has moved its own potential by about S / s. On data sets of very different
size and shape, and over noise scales that differ thirtyfold, the averaged marginals are nearest
to the truth when that is a little above one nat (`experiments/stop_at_noise.py` prints the
table). So the rule needs no held-out data, no second fit and no constant of the problem: stop when
the noise amounts to `nats`, then move the potentials to those of the averaged marginals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from juncture.errors import InvalidInput
from juncture.layout import Vector
from juncture.loss import FitLoss
from juncture.solvers.accelerated import LEAST_MASS, Cycle
from juncture.solvers.problem import Iterate, Point, Problem


@dataclass(frozen=True, kw_only=True)
class StopAtNoise:
    """One run of the accelerated scheme, ended early, and its averaged marginals matched.

    It starts from the uniform distribution (less what constraints exclude), whatever start is
    given: its clock counts from there.
    """

    nats: float = 1.4
    """How far noise may move a potential."""
    matching_steps: int = 60
    matching_accuracy: float = 1e-3
    """Matching ends when the marginals' total variation distance to their goal is below this."""
    patience: int = 1

    def iterates(self, problem: Problem, potentials: Vector) -> Iterator[Iterate]:
        """The uniform start, then the one point where fitting shall end."""
        uniform = np.where(np.isneginf(potentials), -np.inf, 0.0)
        start = problem.point(uniform)
        yield Iterate(start)
        limit = self.nats / noise_rate(problem.loss)
        cycle = Cycle(problem, start, 1.0 / problem.total)
        while not problem.exhausted and cycle.step(most=limit - cycle.weight):
            pass
        yield Iterate(self._matched(problem, cycle), cycle.bound())

    def _matched(self, problem: Problem, cycle: Cycle) -> Point:
        """The potentials whose marginals are the cycle's average, by iterative scaling."""
        goal, share = cycle.average, 0.1
        logs = np.log(np.maximum(goal, LEAST_MASS))
        best = problem.point(cycle.potentials)
        least = _distance(problem, best.marginals, goal)
        for _ in range(self.matching_steps):
            if problem.exhausted or least < self.matching_accuracy:
                break
            lag = logs - np.log(np.maximum(best.marginals, LEAST_MASS))
            tried = problem.point(best.potentials + share * lag)
            reached = _distance(problem, tried.marginals, goal)
            if reached < least:
                best, least, share = tried, reached, share * 1.3
            else:
                share *= 0.4
        return best


def noise_rate(loss: object) -> float:
    """How many nats of noise a unit of weight gives a potential, on the average measurement."""
    if not isinstance(loss, FitLoss):
        raise InvalidInput(
            "`loss` must be made of measurements, whose noise is known; got another kind. "
            "Use the default solver for it."
        )
    return math.sqrt(sum(term.heaviest_record for term in loss.terms) / len(loss.terms))


def _distance(problem: Problem, left: Vector, right: Vector) -> float:
    """The mean total variation distance over the cliques."""
    n_cliques = len(problem.oracle.layout.cliques)
    return 0.5 * float(np.abs(left - right).sum()) / (problem.total * n_cliques)
