"""Potentials for the averaged marginals of an accelerated run.

The average of models is in general not a model with the same cliques, but its marginals lie in the
marginal polytope, so some potentials have them as theirs. Generalised iterative scaling moves
towards those: each potential grows by a share of the logarithm of what its cell lacks.

    cell           average   own   gap = log(average / own)
    (young, poor)     40      20   +0.69: the potential rises
    (old, poor)       10      20   -0.69: the potential falls

A full step (a share of 1) would be right if no two cliques overlapped. Where they do, all of them
correct the same mistake at once and overshoot. So the share is searched: it grows while steps help
and shrinks when one does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from juncture.engine import vector_ops
from juncture.fit.solvers.problem import Candidate, Problem
from juncture.tables.layout import Vector

# Below this mass the logarithm of a cell carries no information.
_MIN_MASS = 1e-300
_GROW, _SHRINK = 1.3, 0.4


class Match(NamedTuple):
    """The best point of a matching, and the share to begin the next one with."""

    candidate: Candidate
    share: float


def match_average(
    problem: Problem,
    start: Candidate,
    average: Vector,
    measure: Callable[[Candidate], float],
    *,
    steps: int,
    share: float = 0.1,
    enough: float = -math.inf,
    max_failures: float = math.inf,
) -> Match:
    """Move potentials until their marginals are close to the average.

    - `start`: the point that the run's own potentials have reached.
    - `measure`: how bad a point is: its loss, or its distance from the average. A step that does
      not lower it is not taken.
    - `steps`: how many oracle calls are allowed.
    - `share`: the first step's share of the full correction.
    - `enough`: matching ends when the measure is below this.
    - `max_failures`: matching ends after this many steps that did not help, once one has helped:
      a share carried over from the last matching may be far too large, and shrinks until it fits.
    """
    least_mass = max(_MIN_MASS, float(np.finfo(average.dtype).tiny))
    goal = np.empty_like(average)
    vector_ops.take_logarithms(average, least_mass, goal)
    best, least, n_failures = start, measure(start), 0
    for _ in range(steps):
        if least < enough or (n_failures >= max_failures and best is not start):
            break
        moved = np.empty_like(goal)
        vector_ops.rescale_towards(best.potentials, goal, best.marginals, share, least_mass, moved)
        tried = problem.evaluate(moved)
        reached = measure(tried)
        if reached < least:
            best, least, share = tried, reached, share * _GROW
        else:
            n_failures, share = n_failures + 1, share * _SHRINK
    return Match(best, share)
