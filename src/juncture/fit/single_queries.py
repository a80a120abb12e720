"""Many single queries on many cliques as one sparse matrix over the flat vector.

A mechanism that measures one query at a time ends with hundreds of them. Each alone costs little
arithmetic and many calls; together they cost one gather and one scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from juncture.tables.domain import Clique
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout, Vector
from juncture.tables.queries.products import Operator

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class SingleQuery(NamedTuple):
    """A query with one answer, on a clique."""

    clique: Clique
    operator: Operator
    value: float
    stddev: float


class SingleQueries:
    """Single queries on many cliques: their residuals, and the gradients that follow."""

    def __init__(self, layout: Layout, queries: Sequence[SingleQuery]) -> None:
        addresses = np.arange(layout.size, dtype=np.float64)
        columns, weights, lengths = [], [], []
        for each in queries:
            subdomain = layout.domain.project(each.clique)
            row = Factor(subdomain, each.operator.adjoint(np.ones(1)).reshape(subdomain.shape))
            entries = row.transpose(layout.domain.canonical(each.clique)).values / each.stddev
            held = entries != 0.0
            columns.append(layout.view(addresses, each.clique)[held].astype(np.intp))
            weights.append(entries[held])
            lengths.append(int(held.sum()))
        self._weights = np.concatenate(weights)
        self._rows = np.repeat(np.arange(len(queries)), lengths)
        self._cells, self._positions = np.unique(np.concatenate(columns), return_inverse=True)
        self._targets = np.array([each.value / each.stddev for each in queries])

    @property
    def targets(self) -> Vector:
        """The measured values, over their standard deviations."""
        return self._targets

    def to_matrix(self, size: int) -> csr_matrix:
        """The queries, over their standard deviations, as a matrix over `size` cells."""
        from scipy.sparse import csr_matrix  # noqa: PLC0415  slow to import

        columns = self._cells[self._positions]
        shape = (len(self._targets), size)
        return csr_matrix((self._weights, (self._rows, columns)), shape=shape)

    def errors(self, marginals: Vector) -> Vector:
        """The residual of every query, over its standard deviation."""
        terms = self._weights * marginals[self._cells][self._positions]
        return np.asarray(np.bincount(self._rows, terms, len(self._targets)) - self._targets)

    def add_slope(self, gradient: Vector, slope: Vector) -> None:
        """Add to a gradient over the cells what a slope over the residuals amounts to there."""
        terms = self._weights * slope[self._rows]
        gradient[self._cells] += np.bincount(self._positions, terms, len(self._cells))
