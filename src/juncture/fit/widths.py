"""How wide an interval must be: the errors of replicas, held against what was measured.

The errors of replicas say how far an answer may be off if the table is like the model: their
deviation, and their mean, which is the bias that a fit has. No count is negative, so noise in the
empty cells of a table becomes records there; a sum or an average over such cells is off to one
side, run after run. An interval reaches further to that side, by a little more than the bias:
replicas are drawn from a model that is less sparse than the table, so theirs is smaller. In an
average the bias of all cells counts together, and counts twice. Both ends allow for half of it.

What the measurements say by themselves (`fit/plain_estimates.py`) shows where a table is not like
the model:

- An interval never takes the model surer than a small share of the plain estimate's deviation: a
  model may put nothing where there are a few records, and all its replicas then agree.
- A model that does not fit what was measured is off by more than its replicas are. Its strain, the
  root mean square of plain estimates less answers over their deviations, for random questions, is
  1 at most where the model fits; above, errors grow with it.
- An answer that its own plain estimate contradicts has an interval that reaches that estimate's; an
  average is drawn towards it earlier, by what lies beyond one deviation.

A model that stopped at the noise is off by what stopping has left out too. A fit of the same
measurements to the end shows how much: that difference is one more part of the bias.

    errors of replicas 4, 6, 8 (mean 6, deviation 2), no plain estimate, Student's quantile q
       unsure by hypot(2, 6 / 2) = 3.6: from answer - 3.6 q - 1.25 x 6 to answer + 3.6 q
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.fit.plain_estimates import PlainEstimate, PlainEstimates
from juncture.fit.random_questions import Form, draw_rows, weigh
from juncture.fit.replicas import Replicas
from juncture.model.model import Model
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Matrix
from juncture.tables.queries.products import Kron

# Questions that tell how well the model fits, and the cells of tables that they may take together.
_N_QUESTIONS, _MAX_WORK = 240, 400_000_000
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


# All of these were chosen on the data sets Titanic, Stroke and Adult (triples).
# How many times its bias an interval reaches further to one side.
_BIAS = {Kind.COUNT: 1.25, Kind.SUM: 1.25, Kind.RATIO: 2.0}
# The share of the bias that nobody is sure of.
_UNSURE = 0.5
# The least spread, as a share of the plain estimate's deviation.
_LEAST = 0.1
# Beyond so many deviations, ratios are drawn towards their plain estimates.
_DRAWN = 1.0
# An answer so many deviations from its plain estimate is contradicted by it.
_CONTRADICTED = 2.5
# Single questions that are far off say no more than so many deviations.
_MAX_STRAIN = 10.0


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


@dataclass(frozen=True, eq=False)
class Widths:
    """How far the intervals of one release reach."""

    model: Model
    replicas: Replicas
    plain: PlainEstimates

    def find(
        self, answers: Vector, errors: Vector, level: float, kind: Kind,
        plain: PlainEstimate | None = None,
    ) -> Reach:  # fmt: skip
        """How far the intervals of answers reach.

        - `errors`: of the replicas, on the first axis. One that is not a number is left out; where
          most are, there is no interval. The last is how far a fit to the end is from the model.
        - `plain`: what measurements alone say of the answers, where they do.
        """
        bias, spread = self._find_moments(errors)
        factor = student_quantile(level, self.replicas.recipe.n_replicas - 1)
        least = 0.0 if plain is None else _LEAST * np.nan_to_num(plain.stddev)
        scale = np.abs(answers) if kind is Kind.RATIO else self.replicas.total
        loose = spread > _KNOWN * scale
        wide = factor * np.where(loose, np.hypot(spread, least), spread)
        further = _BIAS[kind] * bias
        reach = Reach(wide + np.maximum(further, 0.0), wide + np.maximum(-further, 0.0))
        if plain is None:
            return reach
        return _reach_plain(reach, plain, answers, factor, loose, kind)

    def _find_moments(self, errors: Vector) -> tuple[Vector, Vector]:
        """The bias of answers, and how far they lie around it; not a number if nobody knows."""
        errors, moved = errors[:-1], np.nan_to_num(errors[-1])
        known = np.isfinite(errors)
        n = known.sum(axis=0)
        mean = np.where(known, errors, 0.0).sum(axis=0) / np.maximum(n, 1)
        squares = np.where(known, errors - mean, 0.0) ** 2
        variance = squares.sum(axis=0) / np.maximum(n - 1, 1)
        unsure = _UNSURE**2 * ((self.strain * mean) ** 2 + moved**2)
        spread = np.sqrt(self.strain**2 * variance + unsure)
        return self.strain * mean - moved, np.where(2 * n >= len(errors), spread, np.nan)

    @cached_property
    def strain(self) -> float:
        """How far the model is from what was measured, in deviations; at least 1."""
        layout, recipe = self.replicas.layout, self.replicas.recipe
        rng = recipe.generator(1_000_003)
        mean_cells = layout.size / max(1, len(layout.cliques))
        n = max(60, min(_N_QUESTIONS, int(_MAX_WORK / mean_cells)))
        tables = dict(zip(layout.cliques, self.model.project_many(layout.cliques), strict=True))
        forms = tuple(Form)
        squares = list[float]()
        for index, number in enumerate(rng.integers(len(layout.cliques), size=n)):
            clique = layout.cliques[number]
            rows = draw_rows(layout.domain.project(clique).shape, forms[index % len(forms)], rng)
            if all(row.all() for row in rows):
                continue  # the number of records, which is often known
            blocks = {name: Matrix(row[None]) for name, row in zip(clique, rows, strict=True)}
            value, stddev = (float(each.item()) for each in self.plain.find(Kron(blocks)))
            if math.isfinite(stddev):
                off = (value - float(weigh(tables[clique].values, rows))) / stddev
                squares.append(min(abs(off), _MAX_STRAIN) ** 2)
        return max(1.0, math.sqrt(math.fsum(squares) / max(1, len(squares))))


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
