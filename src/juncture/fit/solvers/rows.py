"""The answers of all measurements as explicit rows over the cells: few, and as matrices.

A second-order method needs the queries as matrices, and its work grows with the cube of their rows.
So rows with a squared term are replaced by fewer that say the same: counts of single cells are
combined by their precision, and of other rows on one clique there are never more than it has cells
(the triangular factor of their QR decomposition). What is lost is a constant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture.fit.loss import FitLoss, Term
from juncture.tables.domain import Clique
from juncture.tables.layout import Layout, Vector
from juncture.tables.queries.products import Operator

Matrix = NDArray[np.float64]


class Block(NamedTuple):
    """Rows over the cells of one clique."""

    clique: Clique
    cells: slice
    matrix: Matrix
    """Two-dimensional; or the diagonal of a matrix, where each row counts one cell."""
    goal: Vector
    squared: bool

    @property
    def counts_cells(self) -> bool:
        """Whether each row counts one cell."""
        return self.matrix.ndim == 1

    def apply(self, table: Vector) -> Vector:
        """The answers of the clique's table."""
        return self.matrix * table if self.counts_cells else self.matrix @ table

    def adjoint(self, multipliers: Vector) -> Vector:
        """The sum of the rows, each times its multiplier."""
        return self.matrix * multipliers if self.counts_cells else self.matrix.T @ multipliers

    def multiply(self, tables: Matrix) -> Matrix:
        """The answers of many tables, one in each column."""
        return self.matrix[:, None] * tables if self.counts_cells else self.matrix @ tables


class Rows:
    """Residuals `rows @ cells - goal` over the noise, that add up to the loss less a constant."""

    def __init__(self, loss: FitLoss) -> None:
        self.layout, self.constant = loss.layout, 0.0
        self.blocks: list[Block] = []
        for clique, terms in _by_clique(loss).items():
            self._add_clique(clique, terms)
        goals = [block.goal for block in self.blocks]
        self.goal = np.concatenate(goals)
        self.squared = np.concatenate(
            [np.full(len(block.goal), block.squared) for block in self.blocks]
        )
        self._ends = np.cumsum([len(goal) for goal in goals])[:-1]

    def residuals(self, marginals: Vector) -> Vector:
        """The residual of each row."""
        return (
            np.concatenate([block.apply(marginals[block.cells]) for block in self.blocks])
            - self.goal
        )

    def adjoint(self, multipliers: Vector) -> Vector:
        """The slope over the cells when each residual is multiplied by a number.

        It is centred, clique by clique: a constant on a clique changes no distribution, and large
        ones would hide the differences that count.
        """
        slope = self.layout.zeros()
        for block, piece in zip(self.blocks, np.split(multipliers, self._ends), strict=True):
            slope[block.cells] += block.adjoint(piece)
        for clique in self.layout.cliques:
            view = self.layout.view(slope, clique)
            view -= view.mean()
        return slope

    def unit_length(self, multipliers: Vector) -> float:
        """The length with which these multipliers move no potential by more than about one."""
        slope = self.adjoint(multipliers)
        spread = [np.ptp(self.layout.view(slope, clique)) for clique in self.layout.cliques]
        weight = max(float(np.abs(block.matrix).max(initial=0.0)) for block in self.blocks)
        largest = max(*spread, 1e-3 * weight)
        return 1.0 / largest if largest > 0.0 else 1.0

    def _add_clique(self, clique: Clique, terms: list[Term]) -> None:
        position = self.layout.positions[clique]
        cells = slice(self.layout.offsets[position], self.layout.offsets[position + 1])
        counts = [term for term in terms if term.plain]
        if counts:
            weights, goal, constant = _combine_counts(self.layout, clique, counts)
            self.constant += constant
            self.blocks.append(Block(clique, cells, weights, goal, True))
        for squared in (True, False):
            group = [t for t in terms if t.squared is squared and not t.plain]
            for term in [t for t in group if t.counts_cells]:
                order = _own_order(self.layout, term.clique)
                weights, goal = 1.0 / term.stddev, term.values / term.stddev
                self.blocks.append(Block(clique, cells, weights[order], goal[order], squared))
            others = [t for t in group if not t.counts_cells]
            if others:
                self._add_rows(clique, cells, others, squared)

    def _add_rows(self, clique: Clique, cells: slice, terms: list[Term], squared: bool) -> None:
        matrix = np.vstack([_matrix(self.layout, term) for term in terms])
        goal = np.concatenate([term.values / term.stddev for term in terms])
        if squared and len(goal) > matrix.shape[1]:
            matrix, goal, constant = _compress(matrix, goal)
            self.constant += constant
        self.blocks.append(Block(clique, cells, matrix, goal, squared))


def count_rows(loss: FitLoss) -> tuple[int, int]:
    """How many rows there will be, and how many of them count more than one cell."""
    n_counts, n_others = 0, 0
    for clique, terms in _by_clique(loss).items():
        cells = loss.layout.domain.size_of(clique)
        n_counts += cells * (
            any(t.plain for t in terms)
            + sum(t.counts_cells and not t.squared for t in terms)
        )  # fmt: skip
        others = [t for t in terms if not t.counts_cells]
        n_squared = sum(len(t.values) for t in others if t.squared)
        n_others += min(n_squared, cells) + sum(len(t.values) for t in others if not t.squared)
    return n_counts + n_others, n_others


def _by_clique(loss: FitLoss) -> dict[Clique, list[Term]]:
    groups: dict[Clique, list[Term]] = {}
    for term in loss.terms:
        if len(term.values):
            groups.setdefault(loss.layout.domain.canonical(term.clique), []).append(term)
    return groups


def _combine_counts(
    layout: Layout, clique: Clique, terms: Iterable[Term]
) -> tuple[Vector, Vector, float]:
    """Weights, goal and constant of squared counts of the same cells."""
    orders = [(_own_order(layout, term.clique), term) for term in terms]
    precision = np.zeros(layout.domain.size_of(clique))
    pull = np.zeros_like(precision)
    for order, term in orders:
        precision += (1.0 / term.stddev**2)[order]
        pull += (term.values / term.stddev**2)[order]
    centre = pull / precision
    errors = [(centre - t.values[order]) / t.stddev[order] for order, t in orders]
    constant = 0.5 * sum(float(error @ error) for error in errors)
    weights = np.sqrt(precision)
    return weights, weights * centre, constant


def _own_order(layout: Layout, clique: Clique) -> NDArray[np.intp]:
    """For each cell in canonical order, its number in the clique's own order."""
    numbers = np.arange(layout.domain.size_of(clique)).reshape(layout.domain.project(clique).shape)
    canonical = layout.domain.canonical(clique)
    return np.transpose(numbers, [clique.index(name) for name in canonical]).reshape(-1)


def _matrix(layout: Layout, term: Term) -> Matrix:
    """The rows of a term over their standard deviations, cells in canonical order."""
    matrix = _dense(term.operator) / term.stddev[:, None]
    return matrix[:, _own_order(layout, term.clique)]


def _dense(operator: Operator) -> Matrix:
    n_cells = int(np.prod(operator.shape))
    if operator.n_rows <= n_cells:
        return np.array([operator.adjoint_flat(row) for row in np.eye(operator.n_rows)])
    return np.array([operator.apply_flat(cell) for cell in np.eye(n_cells)]).T


def _compress(matrix: Matrix, goal: Vector) -> tuple[Matrix, Vector, float]:
    """Fewer rows with the same sum of squares, up to a constant."""
    n = matrix.shape[1]
    _, triangle = np.linalg.qr(np.column_stack([matrix, goal]))
    rest = triangle[n:, n]
    return triangle[:n, :n], triangle[:n, n], 0.5 * float(rest @ rest)
