"""How wide an interval must be: the errors of replicas, held against what was measured.

The errors of replicas say how far an answer may be off if the table is like the model: their
deviation, and their mean, which is the bias that a fit has. No count is negative, so noise in the
empty cells of a table becomes records there; a sum or an average over such cells is off to one
side, run after run. An interval reaches further to that side. Replicas are drawn from a model that
is less sparse than the table, so their bias is smaller than the real one: how many times, is
measured (`fit/strain.py`). In an average the bias of all cells counts together, and counts more.
Both ends allow for half of it.

What the measurements say by themselves (`fit/plain_estimates.py`) shows where a table is not like
the model:

- An interval never takes the model surer than a small share of the plain estimate's deviation: a
  model may put nothing where there are a few records, and all its replicas then agree.
- A model that does not fit what was measured is off by more than its replicas are: errors grow with
  the strain.
- An answer that its own plain estimate contradicts has an interval that reaches that estimate's; an
  average is drawn towards it earlier, by what lies beyond one deviation.
- A count that replicas find a tenth too large, and that its plain estimate does not tell from zero,
  may all be noise that became records: its interval reaches down to zero.

A model that stopped at the noise is off by what stopping has left out too. A fit of the same
measurements to the end shows how much: that difference is one more part of the bias.

    errors of replicas 4, 6, 8 (mean 6, deviation 2), a measured factor of 1.5, no plain estimate
       a bias of 9, unsure by hypot(2, 9 / 2) = 4.9, Student's quantile q:
       from answer - 4.9 q - 9 to answer + 4.9 q
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.fit.plain_estimates import PlainEstimate, PlainEstimates
from juncture.fit.replicas import Replicas
from juncture.fit.strain import Strain, find_strain
from juncture.tables.layout import Vector

# A spread below this share of the records is that of a number that is known.
_KNOWN = 1e-6


class Kind(Enum):
    """What an answer is, as far as its width goes."""

    COUNT = "count"
    """A number of records, so never below zero."""
    SUM = "sum"
    """A weighted sum over records."""
    RATIO = "ratio"
    """An average, a share, or anything else that is not a sum over records."""


# All of these were chosen on the data sets Titanic, Stroke and Adult (triples), but what is said of
# zero, after a look at Loans.
# How many times its bias an interval reaches further to one side.
_BIAS = {Kind.COUNT: 1.0, Kind.SUM: 1.0, Kind.RATIO: 1.6}
# The share of the bias that nobody is sure of.
_UNSURE = 0.5
# The least spread, as a share of the plain estimate's deviation.
_LEAST = 0.12
# Beyond so many deviations, ratios are drawn towards their plain estimates.
_DRAWN = 1.0
# An answer so many deviations from its plain estimate is contradicted by it; zero is too.
_CONTRADICTED = 2.5
# Parts of the spread are known better than from the deviation of a few replicas: it has so many
# times their degrees of freedom.
_FREEDOM = 2
# The share of a count that must be bias for all of it to be in doubt.
_DOUBTFUL = 0.1


def check_level(level: float, argument: str = "interval") -> float:
    """A level, or a clear error."""
    try:
        value = float(level)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 < value < 1.0 or isinstance(level, bool):
        raise InvalidInput(
            f"`{argument}` must lie between 0 and 1; got {level!r}. It is how often the interval "
            "holds the true answer: 0.95 is usual."
        )
    return value


class Reach(NamedTuple):
    """How far intervals reach below and above their answers."""

    down: Vector
    up: Vector


class _Moments(NamedTuple):
    """What replicas say of the errors of answers."""

    bias: Vector
    spread: Vector
    replicas_bias: Vector
    """That of the replicas themselves."""


@dataclass(frozen=True, eq=False)
class Widths:
    """How far the intervals of one release reach."""

    replicas: Replicas
    plain: PlainEstimates

    @cached_property
    def strain(self) -> Strain:
        """What the measurements say of the replicas."""
        return find_strain(self.replicas, self.plain)

    def find(
        self, answers: Vector, errors: Vector, level: float, kind: Kind,
        plain: PlainEstimate | None = None,
    ) -> Reach:  # fmt: skip
        """How far the intervals of answers reach.

        - `errors`: of the replicas, on the first axis. One that is not a number is left out; where
          most are, there is no interval. The last is how far a fit to the end is from the model.
        - `plain`: what measurements alone say of the answers, where they do.
        """
        moments = self._find_moments(errors)
        factor = student_quantile(level, _FREEDOM * (self.replicas.recipe.n_replicas - 1))
        least = 0.0 if plain is None else _LEAST * np.nan_to_num(plain.stddev)
        scale = np.abs(answers) if kind is Kind.RATIO else self.replicas.total
        loose = moments.spread > _KNOWN * scale
        wide = factor * np.where(loose, np.hypot(moments.spread, least), moments.spread)
        further = _BIAS[kind] * moments.bias
        reach = Reach(wide + np.maximum(further, 0.0), wide + np.maximum(-further, 0.0))
        if plain is None:
            return reach
        if kind is Kind.COUNT:
            doubtful = moments.replicas_bias > _DOUBTFUL * answers
            near_zero = answers < _CONTRADICTED * plain.stddev
            whole = np.where(loose & doubtful & near_zero, answers, 0.0)
            reach = Reach(np.maximum(reach.down, whole), reach.up)
        return _reach_plain(reach, plain, answers, factor, loose, kind)

    def _find_moments(self, errors: Vector) -> _Moments:
        """The bias of answers, and how far they lie around it; not a number if nobody knows."""
        errors, moved = errors[:-1], np.nan_to_num(errors[-1])
        known = np.isfinite(errors)
        n = known.sum(axis=0)
        mean = np.where(known, errors, 0.0).sum(axis=0) / np.maximum(n, 1)
        squares = np.where(known, errors - mean, 0.0) ** 2
        variance = squares.sum(axis=0) / np.maximum(n - 1, 1)
        bias = self.strain.bias_factor * mean
        spread = np.sqrt(self.strain.spread**2 * variance + _UNSURE**2 * (bias**2 + moved**2))
        return _Moments(bias - moved, np.where(2 * n >= len(errors), spread, np.nan), mean)


def _reach_plain(
    reach: Reach, plain: PlainEstimate, answers: Vector, factor: float,
    loose: NDArray[np.bool_], kind: Kind,
) -> Reach:  # fmt: skip
    """Intervals that reach what measurements alone say, where they contradict the answers."""
    down, up = reach
    gap = plain.values - answers
    if kind is Kind.RATIO:
        beyond = np.abs(gap) - _DRAWN * plain.stddev
        beyond = np.where(loose & (beyond > 0.0), beyond, 0.0)
        down, up = down + beyond * (gap < 0.0), up + beyond * (gap > 0.0)
    far = loose & (np.abs(gap) > _CONTRADICTED * plain.stddev)
    wide = factor * plain.stddev
    return Reach(
        np.where(far, np.maximum(down, wide - gap), down),
        np.where(far, np.maximum(up, wide + gap), up),
    )


@lru_cache(maxsize=256)
def student_quantile(level: float, freedom: int) -> float:
    """The two-sided quantile of Student's distribution."""
    from scipy.stats import t  # noqa: PLC0415  (slow to import)

    return float(t.ppf(0.5 + level / 2.0, freedom))


@lru_cache(maxsize=256)
def normal_quantile(level: float) -> float:
    """The two-sided quantile of the normal distribution.

    >>> round(normal_quantile(0.95), 3)
    1.96
    """
    return -NormalDist().inv_cdf((1.0 - level) / 2.0)  # never of 1, however near the level is
