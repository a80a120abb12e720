"""How wide an interval must be: the errors of replicas, held against what was measured.

The spread of the replicas' errors says how far an answer may be off if the table is like the model.
What the measurements say by themselves (`fit/plain_estimates.py`) shows where it is not:

- An interval never takes the model surer than a small share of the plain estimate's deviation: a
  model may put nothing where there are a few records, and all its replicas then agree.
- A model that does not fit what was measured is off by more than its replicas are. Its strain, the
  root mean square of plain estimates less answers over their deviations, for random questions, is
  1 at most where the model fits; above, spreads grow with it.
- An answer that its own plain estimate contradicts has an interval that reaches that estimate's.

A model that stopped at the noise is off by what stopping has left out too. A fit of the same
measurements to the end shows how much: that difference is added as one more error.

Counts are skewed: fits put too much on some small counts and take it from many, so an answer is
more often too large by far than too small. Down is a little further than up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

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


# All of these were chosen on the data sets Titanic and Stroke.
# How many of Student's quantiles an interval reaches below and above its answer.
_DOWN = {Kind.COUNT: 1.15, Kind.SUM: 1.15, Kind.RATIO: 1.15}
_UP = {Kind.COUNT: 1.0, Kind.SUM: 1.15, Kind.RATIO: 1.15}
# The least spread, as a share of the plain estimate's deviation.
_LEAST = 0.05
# The power of the strain that spreads grow with.
_STRAIN_POWER = 1.5
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
        errors, moved = errors[:-1], np.nan_to_num(errors[-1])
        known = np.isfinite(errors)
        n = known.sum(axis=0)
        squares = np.where(known, errors, 0.0) ** 2
        spread = self.strain**_STRAIN_POWER * np.sqrt(squares.sum(axis=0) / np.maximum(n, 1))
        spread = np.where(2 * n >= len(errors), np.hypot(spread, moved), np.nan)
        factor = student_quantile(level, self.replicas.recipe.n_replicas)
        if plain is None:
            return Reach(factor * _DOWN[kind] * spread, factor * _UP[kind] * spread)
        loose = spread > _KNOWN * self.replicas.total
        spread = np.where(loose, np.hypot(spread, _LEAST * np.nan_to_num(plain.stddev)), spread)
        down, up = factor * _DOWN[kind] * spread, factor * _UP[kind] * spread
        gap = plain.values - answers
        far = loose & (np.abs(gap) > _CONTRADICTED * plain.stddev)
        reach = factor * plain.stddev
        return Reach(
            np.where(far, np.maximum(down, reach - gap), down),
            np.where(far, np.maximum(up, reach + gap), up),
        )

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


@lru_cache(maxsize=256)
def student_quantile(level: float, freedom: int) -> float:
    """The two-sided quantile of Student's distribution."""
    from scipy.stats import t  # noqa: PLC0415  (slow to import)

    return float(t.ppf(0.5 + level / 2.0, freedom))
