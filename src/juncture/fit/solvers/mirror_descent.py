"""Mirror descent in the entropy geometry: Algorithm 1 of McKenna et al. (ICML 2019).

The potentials move down the gradient of the loss at their own marginals. With a line search, a
step is accepted when the loss falls by at least half of what its linearisation predicts; the step
grows after each success. For a loss with kinks there is no such prediction: steps decrease.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from juncture.engine import vector_ops
from juncture.errors import InvalidInput
from juncture.fit.solvers.problem import Candidate, Iterate, Iterates, Problem
from juncture.fit.summary import Status
from juncture.tables.layout import Vector

# Of the first step's length: shorter ones cannot change the loss.
_SHORTEST = 1e-40
# No step moves a potential further: beyond it one value has all the mass, and digits are lost.
_MAX_MOVE = 1e4


@dataclass(frozen=True, kw_only=True)
class MirrorDescent:
    """Plain mirror descent: slow, but it takes any convex loss.

    >>> from juncture import Domain, Measurement, estimate
    >>> tables = [Measurement(("a",), counts, stddev=1.0) for counts in ([6.0, 4.0], [8.0, 2.0])]
    >>> fit = estimate(Domain({"a": 2}), tables, solver=MirrorDescent())
    >>> fit.model.project(("a",)).values.round(2)
    array([7., 3.])
    """

    works_on_card: ClassVar = True

    rule: Literal["search", "constant", "decreasing"] = "search"
    """How long steps are: "search" for smooth losses, "decreasing" for losses with kinks."""
    step_length: float | None = None
    """The length of the first step, in potential per gradient; by default one over the total, so
    that a gradient of one record's weight moves the potentials by little."""
    report_every: int = 50
    """How many oracle calls pass between two points that are yielded."""
    patience: int = 10
    """How many points without progress mean that it has stalled."""

    def __post_init__(self) -> None:
        if self.rule not in ("search", "constant", "decreasing"):
            raise InvalidInput(
                f"`rule` must be search, constant or decreasing; got {self.rule!r}. "
                "Use 'search' for smooth losses and 'decreasing' for others."
            )

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The start, then the best point so far, once every `report_every` calls."""
        current = best = problem.evaluate(potentials)
        yield Iterate(best)
        first = length = self.step_length or 1.0 / problem.total
        shown, steps = problem.calls, 0
        while length > _SHORTEST * first:
            steps += 1
            if self.rule == "search":
                current, length = _line_search(problem, current, length, _SHORTEST * first)
            else:
                shrink = math.sqrt(steps) if self.rule == "decreasing" else 1.0
                current = problem.evaluate(_take_step(problem, current, length / shrink))
            best = min(best, current, key=lambda point: point.loss)
            if problem.calls - shown >= self.report_every or problem.is_exhausted:
                shown = problem.calls
                yield Iterate(best)
        yield Iterate(best)
        return Status.STALLED


def _take_step(problem: Problem, point: Candidate, length: float) -> Vector:
    _, slope = problem.loss.value_and_gradient(point.marginals)
    return point.potentials - min(length, _longest(slope)) * slope


def _longest(slope: Vector) -> float:
    """The longest step that moves no potential too far."""
    return _MAX_MOVE / max(float(np.abs(slope).max(initial=0.0)), 1e-300)


def _line_search(
    problem: Problem, point: Candidate, length: float, shortest: float
) -> tuple[Candidate, float]:
    """The next point, and the step length to try after it; the same point if none is better."""
    _, slope = problem.loss.value_and_gradient(point.marginals)
    length = min(length, _longest(slope))
    while length > shortest:
        tried = problem.evaluate(point.potentials - length * slope)
        predicted = float(vector_ops.dot(slope, point.marginals - tried.marginals))
        if point.loss - tried.loss >= 0.5 * predicted:
            return tried, 2.0 * length
        length *= 0.5
        if problem.is_exhausted:
            break
    return point, length
