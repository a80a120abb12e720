"""A loss with kinks, solved as a sequence of smooth ones.

Absolute values are rounded off within a width, the smooth solver runs until it stalls, and the
width shrinks. Each rounded loss lies below the true one, so its certified bounds hold for both.
It does not reach the last digits: `Sequential` hands the result over to the proximal method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from juncture.errors import InvalidInput
from juncture.fit.loss import FitLoss
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.problem import (
    Candidate,
    Iterate,
    Iterates,
    Problem,
    Solver,
    works_on_card,
)
from juncture.fit.summary import Status
from juncture.tables.layout import Vector


@dataclass(frozen=True, kw_only=True)
class Smoothed:
    """The solver for losses with kinks, such as "l1": a smooth solver on rounded-off losses.

    It stops short of the last digits: follow it by `Proximal`, as `estimate` does by default.

    >>> from juncture import Domain, Measurement, estimate
    >>> tables = [Measurement(("a",), [n, 10.0 - n], stddev=1.0) for n in (2.0, 6.0, 7.0)]
    >>> fit = estimate(Domain({"a": 2}), tables, loss="l1", total=10.0, solver=Smoothed())
    >>> fit.model.project(("a",)).values.round(1)  # the median of three
    array([6., 4.])
    """

    inner: Solver = field(default_factory=lambda: Accelerated(first_cycle=100))
    """The solver of each smooth loss."""
    first_width: float = 1.0
    """The width of the first rounding, in standard deviations of the noise."""
    shrinkage: float = 0.3
    """How many times smaller each width is than the one before."""
    last_width: float = 0.02
    """The solver ends below this width: the rounded loss is then as hard as the one with kinks."""
    progress: float = 1e-3
    """The next width begins when a round lowers the loss by less than this share times the width:
    what is left to gain is then smaller than the error of the rounding."""
    patience: int = 4
    """How many points without progress mean that it has stalled."""

    @property
    def works_on_card(self) -> bool:
        """See `works_on_card`."""
        return works_on_card(self.inner)

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The start, then the best point after each round, for one width after another."""
        if not isinstance(problem.loss, FitLoss):
            raise InvalidInput(
                "`loss` must be made of measurements to be rounded off; got another kind. "
                "Use MirrorDescent(rule='decreasing') for it."
            )
        best = problem.evaluate(potentials)
        yield Iterate(best)
        width = self.first_width
        while width >= self.last_width:
            rounded = problem.with_loss(problem.loss.round_off(width))
            last = math.inf
            for iterate in self.inner.iterates(rounded, best.potentials):
                best = min(best, _with_true_loss(problem, iterate.candidate), key=lambda p: p.loss)
                yield Iterate(best, iterate.bound)
                if last - iterate.candidate.loss <= self.progress * width * abs(
                    iterate.candidate.loss
                ):
                    break
                last = iterate.candidate.loss
            width *= self.shrinkage
        return Status.STALLED


def _with_true_loss(problem: Problem, point: Candidate) -> Candidate:
    return point._replace(loss=problem.loss.value(point.marginals))
