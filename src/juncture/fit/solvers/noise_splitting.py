"""Splitting the noise of measurements in two, to find where a fit begins to copy it.

If z is fresh noise of the same variance as that of the measured values y, then y + a z and
y - z / a are two measurements with uncorrelated noise: one is fitted, the other judges.
"""

from __future__ import annotations

import hashlib

import numpy as np

from juncture._util.randomness import Random
from juncture.errors import InvalidInput
from juncture.fit.loss import FitLoss, Term
from juncture.fit.solvers.problem import Problem
from juncture.tables.layout import Vector

Curve = list[tuple[float, float]]
"""Along a fit of one half: the clock, and the loss on the other half."""


def require_fit_loss(problem: Problem) -> FitLoss:
    """The loss of a problem, which must be squared."""
    if not isinstance(problem.loss, FitLoss) or not problem.loss.is_smooth:
        raise InvalidInput(
            "`loss` must be 'l2' to stop at the noise; got another kind. "
            "Use the default solver for other losses."
        )
    return problem.loss


def make_generator(rng: Random, loss: FitLoss) -> np.random.Generator:
    """The generator given, or one that depends on the seed and on the measured values.

    A seed alone could repeat the same noise that a simulation with this seed has added.
    """
    if not isinstance(rng, int | np.integer):
        return np.random.default_rng(rng)
    digest = hashlib.sha256(b"".join(term.values.tobytes() for term in loss.terms)).digest()
    return np.random.default_rng([int(rng), int.from_bytes(digest[:8])])


def split_noise(
    loss: FitLoss, division: float, rng: np.random.Generator
) -> tuple[FitLoss, FitLoss]:
    """The loss that is fitted, with more noise, and the one that judges, with noise of its own."""
    fresh = [_fresh_noise(term, rng) for term in loss.terms]
    return (
        loss.shift_values(division * noise for noise in fresh),
        loss.shift_values(-noise / division for noise in fresh),
    )


def find_best_clock(curves: list[Curve], slack: float = 0.0) -> float:
    """The clock with the least loss on average, over the range that all runs reached.

    With a slack, it is the first at which the loss is within this share of the least.
    """
    lowest = max(curve[0][0] for curve in curves)
    highest = min(curve[-1][0] for curve in curves)
    grid = np.geomspace(max(lowest, 1e-300), max(highest, lowest, 1e-300), 400)
    mean = np.zeros(len(grid))
    for curve in curves:
        clocks, losses = np.array(curve).T
        mean += np.interp(grid, clocks, losses)
    return float(grid[np.argmax(mean <= (1.0 + slack) * mean.min())])


def _fresh_noise(term: Term, rng: np.random.Generator) -> Vector:
    """Noise of the kind and scale of a measurement."""
    return term.noise.draw(rng, term.stddev, len(term.values))
