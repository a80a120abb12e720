"""Many small queries on many cliques as one sparse matrix over the flat vector.

A mechanism that measures one query at a time ends with hundreds of them, and one that measures
counts of groups of values ends with dozens of small tables. Each alone costs little arithmetic and
many calls; together they cost one gather and one scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture.tables.domain import Clique
from juncture.tables.layout import Layout, Vector
from juncture.tables.queries.blocks import Block
from juncture.tables.queries.products import Operator, list_blocks

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Index = NDArray[np.intp]

# Of a query with more entries that are not zero, arithmetic costs more than calls do.
_MAX_ENTRIES = 20_000
# A block with more entries, zeros included, is not written out to look at them.
_MAX_WRITTEN = 100_000


class Entries(NamedTuple):
    """A matrix by its entries that are not zero."""

    rows: Index
    cells: Index
    weights: Vector


class SparseQuery(NamedTuple):
    """The answers to a query on a clique, the noise of each, and the query's matrix."""

    clique: Clique
    values: Vector
    stddev: Vector
    entries: Entries


def find_entries(operator: Operator) -> Entries | None:
    """The matrix of an operator over a clique's cells, if that is worth having.

    >>> from juncture.tables.domain import Domain
    >>> from juncture.tables.queries.products import bind
    >>> from juncture.tables.queries.blocks import Buckets
    >>> find_entries(bind(Buckets([0, 1, 0]), Domain({"age": 3}))).rows
    array([0, 0, 1])
    """
    if operator.n_rows == 1:
        row = operator.adjoint(np.ones(1)).reshape(-1)
        cells = np.flatnonzero(row)
        return Entries(np.zeros(len(cells), dtype=np.intp), cells, row[cells])
    joined, n_rows = list[Entries](), 0
    for weight, blocks, sizes in list_blocks(operator):
        part = Entries(np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp), np.array([weight]))
        n_answers = 1
        for block, size in zip(blocks, sizes, strict=True):
            own = _write_out(block, size)
            if own is None or len(own.weights) * len(part.weights) > _MAX_ENTRIES:
                return None
            part = _multiply(part, own, block.n_rows(size), size)
            n_answers *= block.n_rows(size)
        joined.append(part._replace(rows=part.rows + n_rows))
        n_rows += n_answers
    if sum(len(part.weights) for part in joined) > _MAX_ENTRIES:
        return None
    return Entries(*map(np.concatenate, zip(*joined, strict=True)))


def _write_out(block: Block, size: int) -> Entries | None:
    if block.n_rows(size) * size > _MAX_WRITTEN:
        return None
    matrix = np.asarray(block.matrix(size))
    rows, cells = np.nonzero(matrix)
    return Entries(rows, cells, matrix[rows, cells])


def _multiply(one: Entries, two: Entries, n_rows: int, size: int) -> Entries:
    """The Kronecker product with a matrix of so many rows and cells."""
    return Entries(
        np.add.outer(one.rows * n_rows, two.rows).reshape(-1),
        np.add.outer(one.cells * size, two.cells).reshape(-1),
        np.multiply.outer(one.weights, two.weights).reshape(-1),
    )


class _Sums:
    """Weighted numbers from one vector, added up where they go to the same index of another.

    >>> sums = _Sums(np.array([4, 1, 4]), np.array([0, 0, 2]), np.array([1.0, 5.0, 10.0]))
    >>> sums.into, sums.add_up(np.array([2.0, 9.0, 3.0]))
    (array([1, 4]), array([10., 32.]))
    """

    def __init__(self, into: Index, source: Index, weights: Vector) -> None:
        order = np.argsort(into, kind="stable")
        self.into, self._starts = np.unique(into[order], return_index=True)
        self._source, self._weights = source[order], weights[order]

    def add_up(self, vector: Vector) -> Vector:
        """The sum at each index of `into`."""
        return np.add.reduceat(self._weights * vector.take(self._source), self._starts)


class SparseQueries:
    """Small queries on many cliques: their residuals, and the gradients that follow."""

    def __init__(self, layout: Layout, queries: Sequence[SparseQuery]) -> None:
        addresses = np.arange(layout.size, dtype=np.float64)
        rows, cells, weights, n_rows = [], [], [], 0
        for each in queries:
            own = layout.factor(addresses, each.clique).values.reshape(-1).astype(np.intp)
            rows.append(each.entries.rows + n_rows)
            cells.append(own[each.entries.cells])
            weights.append(each.entries.weights / each.stddev[each.entries.rows])
            n_rows += len(each.values)
        joined = np.concatenate(rows), np.concatenate(cells), np.concatenate(weights)
        self._entries = Entries(*joined)
        self._to_answers = _Sums(self._entries.rows, self._entries.cells, self._entries.weights)
        self._to_cells = _Sums(self._entries.cells, self._entries.rows, self._entries.weights)
        self._targets = np.concatenate([each.values / each.stddev for each in queries])

    @property
    def targets(self) -> Vector:
        """The measured values, over their standard deviations."""
        return self._targets

    def to_matrix(self, size: int) -> csr_matrix:
        """The queries, over their standard deviations, as a matrix over `size` cells."""
        from scipy.sparse import csr_matrix  # noqa: PLC0415  slow to import

        rows, cells, weights = self._entries
        return csr_matrix((weights, (rows, cells)), shape=(len(self._targets), size))

    def errors(self, marginals: Vector) -> Vector:
        """The residual of every answer, over its standard deviation."""
        errors = -self._targets
        errors[self._to_answers.into] += self._to_answers.add_up(marginals)
        return errors

    def add_slope(self, gradient: Vector, slope: Vector) -> None:
        """Add to a gradient over the cells what a slope over the residuals amounts to there."""
        gradient[self._to_cells.into] += self._to_cells.add_up(slope)
