"""The loss of a fit whose vectors lie on a card: the same terms, with all their numbers there.

Plain counts are one quadratic over the whole vector, small queries one sparse matrix. Of any other
query, each block is applied along its axis: identities and prefix sums as they are, everything else
as a matrix, sparse where it was given so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from juncture.engine import vector_ops
from juncture.engine.gpu.runner import Array, Modules
from juncture.fit.loss import FitLoss, Quadratic, Term
from juncture.fit.sparse_queries import SparseQueries
from juncture.tables.domain import Clique
from juncture.tables.layout import Layout, Vector
from juncture.tables.queries.blocks import Block, Identity, Matrix, Prefix
from juncture.tables.queries.products import list_blocks


class CardLoss(FitLoss):
    """`FitLoss` over vectors that a device holds.

    Values and gradients are those of the loss that it is made from; what changes the loss, such as
    other values or rounded-off kinks, makes another one on the same device.
    """

    def __init__(self, loss: FitLoss, modules: Modules, dtype: np.dtype[Any]) -> None:
        self.layout, self._width = loss.layout, loss._width
        self._modules, self._number = modules, dtype
        self._set_terms(loss.terms)

    def _set_terms(self, terms: list[Term]) -> None:
        super()._set_terms(terms)
        number = self._number
        self._card_terms = [_CardTerm(self.layout, t, self._modules, number) for t in self._others]
        self._card_batches = [
            (_CardQueries(batch, self.layout.size, self._modules, number), squared)
            for batch, squared in self._batches
        ]

    def _make_quadratic(self, terms: Sequence[Term]) -> Quadratic:
        """The quadratic of the processor, copied to the card."""
        centre, precision, constant = super()._make_quadratic(terms)
        put, number = self._modules.put, self._number
        return Quadratic(put(centre, number), put(precision, number), constant)

    def value(self, marginals: Vector) -> float:
        """See `Loss.value`."""
        centre, precision, value = self._plain
        value += vector_ops.quadratic_value(marginals, centre, precision)
        for error, squared, _ in self._errors(marginals):
            value += self._add_up(error, squared)
        return value

    def value_and_gradient(
        self, marginals: Vector, out: Vector | None = None
    ) -> tuple[float, Vector]:
        """See `Loss.value_and_gradient`."""
        gradient = self._modules.arrays.empty_like(marginals) if out is None else out
        centre, precision, value = self._plain
        value += vector_ops.quadratic(marginals, centre, precision, gradient)
        for error, squared, part in self._errors(marginals):
            value += self._add_up(error, squared)
            part.add_slope(gradient, error if squared else self._bend(error) * math.sqrt(2.0))
        return value, gradient

    def _errors(self, marginals: Vector) -> list[tuple[Array, bool, _CardTerm | _CardQueries]]:
        parts: list[tuple[_CardTerm | _CardQueries, bool]] = list(self._card_batches)
        parts += [(part, part.squared) for part in self._card_terms]
        return [(part.errors(marginals), squared, part) for part, squared in parts]

    def _add_up(self, error: Array, squared: bool) -> float:
        if squared:
            return 0.5 * float((error * error).sum())
        size, bend = abs(error), abs(self._bend(error))
        return math.sqrt(2.0) * float((bend * (size - 0.5 * self._width * bend)).sum())

    def _bend(self, error: Array) -> Array:
        """The sign of the error, rising linearly where the error is smaller than the width."""
        arrays = self._modules.arrays
        return arrays.sign(error) if self._width == 0.0 else (error / self._width).clip(-1.0, 1.0)


class _Spot:
    """Where a clique's table lies in a vector, and how its axes are turned."""

    def __init__(self, layout: Layout, clique: Clique) -> None:
        canonical = layout.domain.canonical(clique)
        index = layout.positions[canonical]
        self.span = slice(layout.offsets[index], layout.offsets[index + 1])
        self._canonical = tuple(layout.domain[name] for name in canonical)
        self._order = tuple(canonical.index(name) for name in clique)
        self._back = tuple(int(axis) for axis in np.argsort(self._order))
        self.shape = tuple(self._canonical[axis] for axis in self._order)

    def view(self, vector: Array) -> Array:
        """The clique's table, its axes in the clique's own order."""
        return vector[self.span].reshape(self._canonical).transpose(self._order)

    def add(self, vector: Array, table: Array) -> None:
        """Add a table, given in the clique's own order."""
        view = vector[self.span].reshape(self._canonical)
        view += table.reshape(self.shape).transpose(self._back)


class _Step(NamedTuple):
    """One block along one axis."""

    axis: int
    block: Block
    matrix: Any
    """The matrix of the block, or None where it is applied without one."""


class _CardTerm:
    """One measurement's residuals, and the gradients that follow."""

    def __init__(self, layout: Layout, term: Term, modules: Modules, number: np.dtype[Any]) -> None:
        self.squared, self._modules = term.squared, modules
        self._spot = _Spot(layout, term.clique)
        self._values = modules.put(term.values, number)
        self._stddev = modules.put(term.stddev, number)
        self._parts = []
        for weight, blocks, sizes in list_blocks(term.operator):
            pairs = enumerate(zip(blocks, sizes, strict=True))
            steps = [self._prepare(axis, *pair, number) for axis, pair in pairs]
            self._parts.append((weight, sizes, steps))

    def _prepare(self, axis: int, block: Block, size: int, number: np.dtype[Any]) -> _Step:
        if isinstance(block, Identity | Prefix):
            return _Step(axis, block, None)
        if isinstance(block, Matrix) and hasattr(block.entries, "tocsr"):
            entries = self._modules.sparse.csr_matrix(block.entries.tocsr().astype(number))
            return _Step(axis, block, entries)
        return _Step(axis, block, self._modules.put(block.matrix(size), number))

    def errors(self, marginals: Array) -> Array:
        """The residuals over their standard deviations."""
        table = self._spot.view(marginals)
        answers = [
            weight * self._apply(table.reshape(sizes), steps)
            for weight, sizes, steps in self._parts
        ]
        joined = self._modules.arrays.concatenate(answers) if len(answers) > 1 else answers[0]
        return (joined - self._values) / self._stddev

    def add_slope(self, gradient: Array, slope: Array) -> None:
        """Add what a slope over the residuals amounts to over the cells."""
        scaled, begin = slope / self._stddev, 0
        for weight, sizes, steps in self._parts:
            rows = tuple(step.block.n_rows(size) for step, size in zip(steps, sizes, strict=True))
            end = begin + math.prod(rows)
            table = weight * self._adjoin(scaled[begin:end].reshape(rows), sizes, steps)
            self._spot.add(gradient, table)
            begin = end

    def _apply(self, table: Array, steps: list[_Step]) -> Array:
        for axis, block, matrix in steps:
            if isinstance(block, Prefix):
                table = self._modules.arrays.cumsum(table, axis=axis)
            elif matrix is not None:
                table = self._multiply(matrix, table, axis)
        return table.reshape(-1)

    def _adjoin(self, table: Array, sizes: tuple[int, ...], steps: list[_Step]) -> Array:
        arrays = self._modules.arrays
        for axis, block, matrix in steps:
            if isinstance(block, Prefix):
                table = arrays.flip(arrays.cumsum(arrays.flip(table, axis), axis=axis), axis)
            elif matrix is not None:
                table = self._multiply(matrix.T, table, axis)
        return table.reshape(sizes)

    def _multiply(self, matrix: Any, table: Array, axis: int) -> Array:  # noqa: ANN401
        """A matrix times a table along one axis."""
        arrays = self._modules.arrays
        moved = arrays.moveaxis(table, axis, 0)
        product = matrix @ arrays.ascontiguousarray(moved.reshape(moved.shape[0], -1))
        return arrays.moveaxis(product.reshape(matrix.shape[0], *moved.shape[1:]), 0, axis)


class _CardQueries:
    """Small queries on many cliques as one sparse matrix over the vector."""

    def __init__(
        self, queries: SparseQueries, size: int, modules: Modules, number: np.dtype[Any]
    ) -> None:
        matrix = queries.to_matrix(size).astype(number)
        self._matrix = modules.sparse.csr_matrix(matrix)
        self._transposed = modules.sparse.csr_matrix(matrix.T.tocsr())
        self._targets = modules.put(queries.targets, number)

    def errors(self, marginals: Array) -> Array:
        """See `SparseQueries.errors`."""
        return self._matrix @ marginals - self._targets

    def add_slope(self, gradient: Array, slope: Array) -> None:
        """See `SparseQueries.add_slope`."""
        gradient += self._transposed @ slope
