"""Bounds on the error of whole marginals, that hold whatever the table is like.

A marginal that some measurement holds is *supported*: its plain estimate y (`plain_estimates`) is
the true table plus noise z of known distribution. By the triangle inequality

    |model - truth|_1  <=  |model - y|_1 + |z|_1

and |z|_1 is below its own quantile as often as asked for. The quantile is that of draws of the same
noise: of N draws and z, all alike, z is the largest but j with the same chance for each j, so z is
at most the k-th smallest of the draws with probability k / (N + 1) or more, whatever the
distribution. The seed of the draws is fixed, so they do not depend on the noise in y. (McKenna and
others 2022 bound the quantile in closed form instead, which is wider.) A mechanism may make later
noise smaller by what it saw earlier; as in that paper, the noise of several measurements that are
averaged is taken as given.

A marginal that none holds may have been left by a private choice, which proves a bound
(`selection_proof`). Otherwise nothing is known, but that distances of two tables of n records are
at most 2 n.

One count, or any sum over some of the cells, is off by no more than all cells together; by half of
that where both tables have the same number of records, since what is too much in some cells is
missing in others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from juncture.fit.plain_estimates import PlainEstimates, WeightedRows, contract
from juncture.fit.selection_proof import SelectionProof
from juncture.model.model import Model
from juncture.tables.domain import Clique
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Kron

# Draws of the noise of a table, and the numbers that they may take together.
_N_DRAWS, _MAX_NUMBERS = 399, 20_000_000


class Support(StrEnum):
    """What a bound on the error of a marginal comes from."""

    MEASURED = "measured"
    """From measurements that hold it: it is supported."""
    CHOICE = "choice"
    """From a private choice that left it."""
    NONE = "none"
    """From nothing but the number of records."""


@dataclass(frozen=True, eq=False)
class MarginalBound:
    """What the error of a marginal is below, in `level` of all releases, whatever the table.

    >>> from juncture import Domain, Measurement, Release, estimate
    >>> counts = Measurement(("age",), [60.0, 40.0], stddev=2.0)
    >>> fit = estimate(Domain({"age": 2}), [counts])
    >>> bound = Release(model=fit.model, measurements=[counts]).bound_error(("age",))
    >>> str(bound.support), 4.0 < bound.error < 10.0, bool((bound.lower < 60.0).all())
    ('measured', True, True)
    """

    table: Factor
    """The released marginal."""
    support: Support
    error: float
    """The bound on the sum of all cells' absolute errors; infinite where nothing is known."""
    cell_error: float
    """The bound on the error of each cell, and of each sum over some of them."""
    level: float

    @property
    def clique(self) -> Clique:
        """The columns of the marginal."""
        return self.table.domain.attributes

    @property
    def lower(self) -> Vector:
        """What each cell is at least."""
        return np.maximum(self.table.values - self.cell_error, 0.0)

    @property
    def upper(self) -> Vector:
        """What each cell is at most."""
        return np.asarray(self.table.values + self.cell_error)


@dataclass(frozen=True, eq=False)
class ErrorBounds:
    """Bounds on the errors of the marginals of one release."""

    model: Model
    plain: PlainEstimates
    proofs: Sequence[SelectionProof] = ()
    same_total: bool = False
    """Whether the model has exactly the table's number of records."""

    def find(self, attributes: Iterable[str], level: float) -> MarginalBound:
        """The bound for one marginal."""
        table = self.model.project(attributes)
        clique = table.domain.attributes
        error, support = self._find_supported(table, level), Support.MEASURED
        if error is None:
            error, support = self.find_proved(clique, level), Support.CHOICE
        most = 2.0 * self.model.total if self.same_total else math.inf
        if error is None:
            error, support = most, Support.NONE
        error = min(error, most)
        return MarginalBound(table, support, error, self.find_cell_error(error), level)

    def find_cell_error(self, error: float) -> float:
        """The most that a sum over some cells of a marginal is off."""
        return self.find_sum_error(error, 0.0, 1.0)

    def find_sum_error(self, error: float, low: float, high: float) -> float:
        """The most that a sum of weights, from low to high, over the records is off."""
        if self.same_total:  # what is too much in some cells is missing in others
            return (high - low) * error / 2.0
        return max(abs(low), abs(high)) * error

    def find_proved(self, attributes: Iterable[str], level: float) -> float | None:
        """What private choices prove of a marginal; None if none does."""
        clique = tuple(attributes)
        proved = (proof.bound(clique, level) for proof in self.proofs)
        return min((each for each in proved if each is not None), default=None)

    def _find_supported(self, table: Factor, level: float) -> float | None:
        question = Kron({name: Identity() for name in table.domain})
        rows = [each for each in self.plain.list_rows(question) if each.held.all()]
        if not rows:
            return None
        shares = _share_precision(rows)
        combined = _combine([each.values for each in rows], rows, shares)
        distance = float(np.abs(combined - table.values).sum())
        return distance + find_noise_quantile(rows, level)


def find_noise_quantile(rows: Sequence[WeightedRows], level: float) -> float:
    """What the noise of a combined table adds up to at most, as absolute values, so often."""
    shares = _share_precision(rows)
    cells = sum(each.values.size for each in rows)
    least = math.ceil(1.0 / (1.0 - level))
    n = max(least, min(_N_DRAWS, _MAX_NUMBERS // max(1, cells)))
    rng = np.random.default_rng([n, *shares[0].shape])
    sums = np.sort([_draw_noise(rows, shares, rng) for _ in range(n)])
    index = min(n, math.ceil(level * (n + 1)))
    return float(sums[index - 1])


def _draw_noise(
    rows: Sequence[WeightedRows], shares: Sequence[Vector], rng: np.random.Generator
) -> float:
    drawn = [
        each.noise.draw(rng, each.stddev.reshape(-1), each.values.size).reshape(each.values.shape)
        for each in rows
    ]
    return float(np.abs(_combine(drawn, rows, shares)).sum())


def _share_precision(rows: Sequence[WeightedRows]) -> list[Vector]:
    """The weight of each estimate, for each cell."""
    precisions = [each.estimate().stddev ** -2.0 for each in rows]
    whole = np.sum(precisions, axis=0)
    return [each / whole for each in precisions]


def _combine(
    tables: Sequence[Vector], rows: Sequence[WeightedRows], shares: Sequence[Vector]
) -> Vector:
    """Noisy answers as one table of estimates."""
    parts = [
        share * contract(table, each.weights).reshape(each.held.shape)
        for table, each, share in zip(tables, rows, shares, strict=True)
    ]
    return np.asarray(np.sum(parts, axis=0))
