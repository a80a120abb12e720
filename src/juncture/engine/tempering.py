"""From one set of potentials to another, however far, in steps that the weights can bear.

Each step goes as far as leaves half of the records effective; then they are renewed. The mean of
the weights, step by step, is the ratio of the two partition functions.
"""

from __future__ import annotations

import math

import numpy as np

from juncture.engine.gibbs import EXCLUDED
from juncture.engine.oracle import IMPOSSIBLE_MESSAGE
from juncture.engine.population import MIN_EFFECTIVE, Population
from juncture.errors import ImpossibleModel
from juncture.tables.layout import Vector

# What a cell that becomes impossible has lost in the end, before its records are dropped.
_SOFT = -30.0
# A step is at least this share of the way, so that there are at most so many.
_MIN_STEP = 1 / 200
# The longest step where cells become impossible: three nats.
_EXCLUDING_STEP = 0.1


def move_to(population: Population, potentials: Vector, n_sweeps: int = 2) -> None:
    """Move a population to other potentials; a cell that is excluded now must stay excluded."""
    population.settle()
    excluded = np.isneginf(potentials)
    newly = excluded & ~np.isneginf(population.potentials)
    change = np.where(excluded, 0.0, potentials - np.where(excluded, 0.0, population.potentials))
    change[newly] = _SOFT
    if not change.any():
        return
    start, done = population.potentials.copy(), 0.0
    # Where all records have an excluded cell, all lose the same: no weight makes them move.
    longest = _EXCLUDING_STEP if newly.any() else 1.0
    while done < 1.0:
        scores = population.score(change)
        step = min(_find_step(population.weights, scores, 1.0 - done), longest)
        _reweigh(population, step * scores)
        done = 1.0 if step >= 1.0 - done else done + step
        population.potentials = start + done * change
        if done < 1.0:
            population.renew(n_sweeps=n_sweeps)
    population.potentials = potentials.copy()
    if newly.any():
        _drop_excluded(population)
    if population.effective_share < MIN_EFFECTIVE:
        population.renew(n_sweeps=n_sweeps)


def _find_step(weights: Vector, scores: Vector, rest: float) -> float:
    """The longest step that leaves half of the records effective."""
    if _effective(weights, rest * scores) >= MIN_EFFECTIVE:
        return rest
    low, high = 0.0, rest
    for _ in range(20):
        middle = 0.5 * (low + high)
        if _effective(weights, middle * scores) >= MIN_EFFECTIVE:
            low = middle
        else:
            high = middle
    return min(rest, max(low, _MIN_STEP))


def _effective(weights: Vector, scores: Vector) -> float:
    new = weights * np.exp(scores - scores.max())
    return float(new.sum() ** 2 / (new @ new)) / len(weights)


def _reweigh(population: Population, scores: Vector) -> None:
    top = scores.max()
    new = population.weights * np.exp(scores - top)
    mean = new.sum() / population.weights.sum()
    population.log_mass += float(top) + math.log(mean)
    population.weights = new * (len(new) / new.sum())
    population.effective_share = _effective(population.weights, np.zeros(len(new)))


def _drop_excluded(population: Population) -> None:
    """Take all weight from records with a cell that is excluded now."""
    allowed = population.score(population.potentials) > 0.5 * EXCLUDED
    kept = float(population.weights @ allowed) / float(population.weights.sum())
    if kept == 0.0:
        raise ImpossibleModel(IMPOSSIBLE_MESSAGE)
    population.weights *= allowed / kept
    population.log_mass += math.log(kept)
    population.effective_share = _effective(population.weights, np.zeros(len(allowed)))
