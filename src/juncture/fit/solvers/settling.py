"""The end of a fit with records: potentials and records are brought to agree, and how far they do.

Along the path records lag behind the potentials: a sweep after some steps does not make them those
of the present ones, and weights fit what is left to chance in the records at hand. Both show where
the signal is strong. So the last steps are rounds: fresh records at the present potentials, then
one pass that corrects these against them. They end where the two agree but for chance.

How far they agree is measured on other records, which are swept until they have forgotten where
they came from. They come in two halves: the chance of one is not that of the other, so the mean
product of their differences from the weighted records is the square of these records' own error,
free of what chance adds to each half.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from juncture.engine.population import Population
from juncture.tables.layout import Vector
from juncture.tables.records import Codes

# Rounds between two measurements of the error, and how often it is measured. The sweeps of a round
# double each time, up to so many.
_ROUNDS, _MAX_MEASURED, _MAX_SWEEPS = 2, 3, 8
# More records than have settled are copies at first: so many sweeps part them.
_LAST_SWEEPS = 6
# Records agree with potentials where their error is within so many times chance, or this share of
# the noise.
_CHANCE, _SMALL = 1.6, 0.2
# The sweeps until records that measure the error have forgotten where they came from; then they
# measure it so many times, some sweeps apart, which shows how far the figure itself is left to
# chance: it is stated with so many of its own standard errors on top.
_FORGETTING, _REPEATS, _APART, _DEVIATIONS = 16, 4, 4, 2.0
# What a population leaves to chance may be so many times its mean: few directions carry most of it.
_UNLUCKY = 1.3
# A half has at least so many records, and more of all the fewer the answers.
_MIN_HALF, _PRECISION = 5_000, 10.0

Residuals = Callable[[Population], Vector]
"""The residuals of all answers over their noise, by the weighted counts of a population."""


def settle_records(
    population: Population, residuals: Residuals, correct: Callable[[], bool], chance: float,
    n_records: int, n_last: int,
) -> float:  # fmt: skip
    """Renew the records and correct the potentials until the two agree; gives the error left.

    - `correct`: passes over all cliques, which move the potentials and the weights with them;
      gives whether it may be called again.
    - `chance`: the mean square of what one record leaves to chance, beside the noise.
    - `n_records`, `n_last`: how many records settle, and how many there are in the end. Sweeps take
      most of the time, so no more settle than chance asks for.
    """
    n_sweeps = 1
    for _ in range(_MAX_MEASURED):
        for _ in range(_ROUNDS):
            population.renew(n_records, n_sweeps)
            allowed = correct()
            if not allowed:
                break
            n_sweeps = min(2 * n_sweeps, _MAX_SWEEPS)
        error = measure_error(population, residuals, chance)
        enough = _CHANCE * math.sqrt(chance / population.effective_number)
        if error <= max(enough, _SMALL) or not allowed:
            break
    if n_last <= n_records:
        return error
    population.renew(n_last, _LAST_SWEEPS)
    correct()
    return measure_error(population, residuals, chance)


def measure_error(population: Population, residuals: Residuals, chance: float) -> float:
    """How far the weighted records are from their potentials' distribution; they stay as they are.

    The root of the mean square over all answers, beside the noise; not less than what so many
    records leave to chance: see `settle_records`.
    """
    before, n = residuals(population), population.n_records
    size = min(n // 2, max(_MIN_HALF, int(n * _PRECISION / math.sqrt(len(before)))))
    codes = population.resample(2 * size, population.next_key())
    halves = [_make_half(population, codes[:, part::2]) for part in (0, 1)]
    squares = []
    for n_sweeps in (_FORGETTING, *[_APART] * (_REPEATS - 1)):
        for half in halves:
            half.sweeper.sweep(half.codes, half.potentials, half.next_key(), n_sweeps)
        one, two = (residuals(half) - before for half in halves)
        squares.append(float(np.mean(one * two)))
    doubt = float(np.std(squares, ddof=1)) / math.sqrt(_REPEATS)
    square = float(np.mean(squares)) + _DEVIATIONS * doubt
    least = _UNLUCKY * math.sqrt(chance / population.effective_number)
    return max(least, math.sqrt(max(0.0, square)))


def _make_half(population: Population, codes: Codes) -> Population:
    half = Population(
        population.layout, np.ascontiguousarray(codes), population.potentials, population.next_key()
    )
    half.sweeper = population.sweeper
    return half
