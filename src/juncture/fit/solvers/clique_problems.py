"""The part of a fit that one clique has, solved on the clique's own table.

Let `base` be the marginal that all other cliques imply, n the counts sought. A clique's problem is
to minimise the loss of its own measurements at n, plus tau times the divergence of n from base. Its
solution is base times the exponential of minus the slope of the loss over tau: that exponent is the
change of the clique's potentials since the path's last anchor.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from juncture.engine.compiled.loader import pointer, routine
from juncture.fit.loss import FitLoss, add_table
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Buckets, Identity, Total
from juncture.tables.queries.products import Operator, list_blocks

# Absolute residuals of other queries than counts are rounded off within so many deviations.
_ROUNDED = 0.05
_INNER_STEPS = 15
# Matrices of more entries are not written out; nor is room made for more numbers on the way.
_MAX_ENTRIES, _MAX_ROOM = 100_000, 10_000_000


class CliqueProblem(Protocol):
    """One clique's measurements."""

    @property
    def expected(self) -> float:
        """The mean of the loss at the truth."""

    def loss(self, counts: Vector) -> float:
        """The loss of the clique's own measurements."""

    def balance(self, base: Vector, change: Vector, tau: float, total: float) -> Vector:
        """The change of potentials that balances loss and divergence; `change` is a first guess."""


def make_problem(loss: FitLoss, clique: Clique) -> CliqueProblem | None:
    """The problem of one clique of the layout; None where nothing is measured on it."""
    own = loss.restrict(clique)
    if not own.terms:
        return None
    if all(term.plain for term in own.terms):
        return SquaredCounts(own)
    if len(own.terms) == 1 and own.terms[0].counts_cells:
        return AbsoluteCounts(own)
    if len(own.terms) == 1 and own.terms[0].squared and _is_partition(own.terms[0].operator):
        return GroupedCounts(own)
    if len(own.terms) == 1 and own.terms[0].squared:
        matrices = _list_matrices(own.terms[0].operator)
        if matrices is not None:
            return Products(own, matrices)
    return AnyQueries(own if own.is_smooth else own.round_off(_ROUNDED))


class _Restricted:
    def __init__(self, loss: FitLoss) -> None:
        self._loss = loss
        self.expected = loss.expected_at_truth

    def loss(self, counts: Vector) -> float:
        return self._loss.value(counts)


class SquaredCounts(_Restricted):
    """Counts of cells with squared residuals: solved in closed form but for one number."""

    def balance(self, base: Vector, change: Vector, tau: float, total: float) -> Vector:
        """The change of potentials that balances loss and divergence."""
        del change
        centre, precision = self._loss.quadratic
        return _balance_counts(total * base, centre, precision / tau, total)


def _balance_counts(expected: Vector, centre: Vector, pull: Vector, total: float) -> Vector:
    """The change of potentials where each count is drawn to its centre."""
    expected, centre = np.ascontiguousarray(expected), np.ascontiguousarray(centre)
    pull = np.ascontiguousarray(pull)
    counts, sums = np.empty(len(expected)), np.empty(2)
    routine("balance_clique")(
        pointer(expected), pointer(centre), pointer(pull), total,
        pointer(counts), pointer(sums), len(expected),
    )  # fmt: skip
    return np.asarray(-pull * (counts - centre))


class GroupedCounts(_Restricted):
    """Counts of groups of cells, each cell in one: solved as if the groups were the cells."""

    def __init__(self, loss: FitLoss) -> None:
        super().__init__(loss)
        (term,) = loss.terms
        groups, numbers = loss.layout.zeros(), np.arange(len(term.values), dtype=np.float64)
        add_table(loss.layout, groups, term.clique, term.operator.adjoint(numbers))
        self._groups = np.round(groups).astype(np.int64)
        self._values, self._precision = term.values, 1.0 / term.stddev**2

    def balance(self, base: Vector, change: Vector, tau: float, total: float) -> Vector:
        """The change of potentials that balances loss and divergence."""
        del change
        n_groups = len(self._values)
        sums = np.bincount(self._groups, weights=base, minlength=n_groups).astype(np.float64)
        shift = _balance_counts(total * sums, self._values, self._precision / tau, total)
        return np.asarray(shift[self._groups])


def _is_partition(operator: Operator) -> bool:
    """Whether each cell is in exactly one answer."""
    (_, blocks, _), *others = list_blocks(operator)
    return not others and all(isinstance(block, Identity | Buckets | Total) for block in blocks)


class Products(_Restricted):
    """One product of small matrices with squared residuals, as contrasts are: it is compiled."""

    def __init__(self, loss: FitLoss, matrices: list[Vector]) -> None:
        super().__init__(loss)
        (term,), (clique,) = loss.terms, loss.layout.cliques
        # The table is in the layout's order of columns, and so must the answers be.
        order = [term.clique.index(name) for name in clique]
        shape = [len(matrix) for matrix in matrices]
        matrices = [matrices[axis] for axis in order]
        self._matrices = np.concatenate([matrix.reshape(-1) for matrix in matrices])
        self._n_rows, self._sizes = np.array([matrix.shape for matrix in matrices]).T.copy()
        self._values, self._precision = (
            np.ascontiguousarray(numbers.reshape(shape).transpose(order)).reshape(-1)
            for numbers in (term.values, 1.0 / term.stddev**2)
        )
        self._tables = np.empty((5, loss.layout.size))
        # Along the way from cells to answers, each axis has as many as it has of either.
        self._room = np.empty((2, math.prod(max(matrix.shape) for matrix in matrices)))

    def loss(self, counts: Vector) -> float:
        """The loss of the clique's own measurements."""
        counts = np.ascontiguousarray(counts)
        value = routine("measure_products")(
            pointer(counts), len(counts), *self._query,
            pointer(self._tables), pointer(self._room), self._room.shape[1],
        )  # fmt: skip
        return float(value)

    def balance(self, base: Vector, change: Vector, tau: float, total: float) -> Vector:
        """The change of potentials that balances loss and divergence."""
        base, moved = np.ascontiguousarray(base), change - change.max()
        routine("balance_products")(
            pointer(base), len(base), *self._query, tau, total, pointer(moved),
            pointer(self._tables), pointer(self._room), self._room.shape[1],
        )  # fmt: skip
        return np.asarray(moved)

    @property
    def _query(self) -> tuple[object, ...]:
        return (
            pointer(self._matrices), len(self._matrices), pointer(self._n_rows),
            pointer(self._sizes), len(self._sizes), pointer(self._values),
            pointer(self._precision), len(self._values),
        )  # fmt: skip


def _list_matrices(operator: Operator) -> list[Vector] | None:
    """The matrices that an operator is the product of; None where it is none of small ones."""
    (weight, blocks, sizes), *others = list_blocks(operator)
    if others or weight != 1.0 or len(sizes) != len(operator.shape):
        return None
    shapes = [(block.n_rows(size), size) for block, size in zip(blocks, sizes, strict=True)]
    if max(map(math.prod, shapes)) > _MAX_ENTRIES or math.prod(map(max, shapes)) > _MAX_ROOM:
        return None
    return [np.asarray(b.matrix(n), dtype=np.float64) for b, n in zip(blocks, sizes, strict=True)]


class AbsoluteCounts(_Restricted):
    """Counts of cells with absolute residuals: each count is the measured one, or at a bound."""

    def __init__(self, loss: FitLoss) -> None:
        super().__init__(loss)
        (term,) = loss.terms
        self._values, self._slope = loss.layout.zeros(), loss.layout.zeros()
        add_table(loss.layout, self._values, term.clique, term.values)
        add_table(loss.layout, self._slope, term.clique, math.sqrt(2.0) / term.stddev)

    def balance(self, base: Vector, change: Vector, tau: float, total: float) -> Vector:
        """The change of potentials that balances loss and divergence."""
        del change
        # Beyond this many nats a record's weight is gone anyway.
        reach, values = np.minimum(self._slope / tau, 300.0), self._values
        low, high = -50.0 - reach.max(), 50.0 + reach.max()
        expected = total * base
        for _ in range(80):
            shift = 0.5 * (low + high)
            middle = expected * math.exp(min(700.0, max(-700.0, -shift)))
            counts = np.clip(values, middle * np.exp(-reach), middle * np.exp(reach))
            if counts[base > 0].sum() > total:
                low = shift
            else:
                high = shift
        ratio = np.divide(counts, middle, out=np.ones(len(base)), where=middle > 0)
        unseen = np.where(values > 0, reach, -reach)
        return np.where(middle > 0, np.clip(np.log(ratio), -reach, reach), unseen)


class AnyQueries(_Restricted):
    """Any queries and smooth losses, by steps of mirror descent with a length that is tried out."""

    def balance(self, base: Vector, change: Vector, tau: float, total: float) -> Vector:
        """The change of potentials that balances loss and divergence."""
        point, step = change - change.max(), 1.0 / tau
        counts, log_mass = _imply(base, point, total)
        value, slope = self._loss.value_and_gradient(counts)
        for _ in range(_INNER_STEPS):
            toward = -slope / tau
            moved = False
            for _ in range(30):
                share = min(1.0, step * tau)
                trial = point + share * (toward - point)
                new, new_mass = _imply(base, trial, total)
                new_value, new_slope = self._loss.value_and_gradient(new)
                divergence = float(new @ (trial - point)) - total * (new_mass - log_mass)
                linear = value + float(slope @ (new - counts))
                if new_value <= linear + tau / share * divergence + 1e-12 * abs(value):
                    moved = True
                    break
                step *= 0.5
            if not moved:
                break
            done = float(np.abs(new - counts).sum()) < 1e-7 * total
            point, counts, log_mass, value, slope = trial, new, new_mass, new_value, new_slope
            step *= 1.5
            if done:
                break
        return np.asarray(np.where(base > 0, point, -slope / tau))


def _imply(base: Vector, change: Vector, total: float) -> tuple[Vector, float]:
    """The counts that a change of potentials makes, and the logarithm of its mean factor."""
    top = float(change[base > 0].max())
    weights = base * np.exp(np.minimum(change - top, 0.0))
    mass = float(weights.sum())
    return np.asarray(total / mass * weights), math.log(mass) + top
