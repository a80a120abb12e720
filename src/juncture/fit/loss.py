"""Convex losses over the marginals: how badly they fit the measurements.

A loss takes the marginals of all cliques as one flat vector and gives its value and gradient.
`FitLoss` adds a term for each measurement: half the squared residual over the variance (L2, the
likelihood of Gaussian noise), or the absolute residual over the Laplace scale (L1, the likelihood
of Laplace noise). `CustomLoss` wraps any convex function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from juncture.engine import vector_ops
from juncture.errors import InvalidInput
from juncture.fit.sparse_queries import SparseQueries, SparseQuery, find_entries
from juncture.tables.domain import Clique
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout, Vector
from juncture.tables.measurement import Measurement
from juncture.tables.noise import Noise
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Operator

# Of the loss at the truth: a hundredth of it is a tenth of a standard deviation for each answer.
_NEGLIGIBLE = 0.01
Marginals = Mapping[Clique, Factor]
LossFunction = Callable[[Marginals], tuple[float, Marginals]]


class Kind(StrEnum):
    """How residuals are turned into a loss."""

    L2 = "l2"
    """Half the squared residual over the variance."""
    L1 = "l1"
    """The absolute residual over the scale of Laplace noise."""
    LIKELIHOOD = "likelihood"
    """Whichever of the two suits the noise of each measurement."""


class Loss(Protocol):
    """A convex function of the marginals."""

    is_smooth: bool
    """Whether its gradient is continuous."""

    @property
    def negligible(self) -> float:
        """A difference of two losses that means nothing, whatever the losses are."""

    def value(self, marginals: Vector) -> float:
        """The loss alone."""

    def value_and_gradient(
        self, marginals: Vector, out: Vector | None = None
    ) -> tuple[float, Vector]:
        """The loss and its gradient, which goes to `out` or to a new vector."""


class Term(NamedTuple):
    """One measurement's contribution to the loss, bound to a layout."""

    clique: Clique
    operator: Operator
    values: Vector
    stddev: Vector
    squared: bool
    noise: Noise
    counts_cells: bool
    """Whether its answers are the counts of the clique's cells, in their order."""

    @property
    def plain(self) -> bool:
        """Whether it is squared and counts cells: then it is part of the one quadratic."""
        return self.squared and self.counts_cells

    @property
    def heaviest_record(self) -> float:
        """An upper bound on what one record adds to the squared answers over their variances."""
        return self.operator.l2_sensitivity**2 / float(self.stddev.min()) ** 2


class Quadratic(NamedTuple):
    """The sum of plain squared terms: half the weighted squared distance, and a constant."""

    centre: Vector
    precision: Vector
    constant: float


class FitLoss:
    """The sum of all measurements' terms.

    Plain counts with a squared term make up one quadratic over the whole flat vector, so that a
    thousand of them cost no more than the numbers they hold; small queries make up one sparse
    matrix; all others are computed one by one.
    """

    def __init__(self, layout: Layout, measurements: Sequence[Measurement], kind: str) -> None:
        self.layout = layout
        self._width = 0.0
        self._set_terms([_make_term(layout, m, _parse_kind(kind)) for m in measurements])

    def _set_terms(self, terms: list[Term]) -> None:
        self.terms = terms
        self.is_smooth = all(term.squared for term in terms)
        self._others = list[Term]()
        small: dict[bool, list[SparseQuery]] = {True: [], False: []}
        for term in terms:
            entries = None if term.plain else find_entries(term.operator)
            if entries is not None:
                query = SparseQuery(term.clique, term.values, term.stddev, entries)
                small[term.squared].append(query)
            elif not term.plain:
                self._others.append(term)
        self._batches = [
            (SparseQueries(self.layout, group), squared)
            for squared, group in small.items()
            if group
        ]
        self._squares: Quadratic | None = None
        self._by_clique: dict[Clique, list[Term]] | None = None

    @property
    def _plain(self) -> Quadratic:
        """The quadratic of all plain counts, made when it is first needed."""
        if self._squares is None:
            self._squares = self._make_quadratic([term for term in self.terms if term.plain])
        return self._squares

    def _make_quadratic(self, terms: Sequence[Term]) -> Quadratic:
        return _quadratic(self.layout, terms)

    def shift_values(self, shifts: Iterable[Vector]) -> FitLoss:
        """The same loss with the measured values moved, measurement by measurement."""
        other = copy(self)
        pairs = zip(self.terms, shifts, strict=True)
        other._set_terms([term._replace(values=term.values + shift) for term, shift in pairs])
        return other

    def restrict(self, clique: Clique) -> FitLoss:
        """The loss of one clique's own measurements, over a layout of that clique alone."""
        canonical = self.layout.domain.canonical(clique)
        other = copy(self)
        other.layout = Layout(self.layout.domain, [canonical])
        if self._by_clique is None:
            self._by_clique = {}
            for term in self.terms:
                name = self.layout.domain.canonical(term.clique)
                self._by_clique.setdefault(name, []).append(term)
        other._set_terms(self._by_clique.get(canonical, []))
        return other

    @property
    def quadratic(self) -> tuple[Vector, Vector]:
        """The centre and the precision of all plain counts with squared residuals, cell by cell."""
        return self._plain.centre, self._plain.precision

    def round_off(self, width: float) -> FitLoss:
        """A smooth loss below this one: absolute values are rounded off within the width.

        The width is in standard deviations; the two losses differ by no more than 0.71 times the
        width for each answer that has an absolute term.
        """
        softer = copy(self)
        softer._width, softer.is_smooth = width, True
        return softer

    def value(self, marginals: Vector) -> float:
        """The loss alone."""
        centre, precision, constant = self._plain
        plain = vector_ops.quadratic_value(marginals, centre, precision)
        errors = [(self._error(term, marginals), term.squared) for term in self._others]
        errors += [(batch.errors(marginals), squared) for batch, squared in self._batches]
        return constant + float(plain) + sum(_value(*each, self._width) for each in errors)

    def value_and_gradient(
        self, marginals: Vector, out: Vector | None = None
    ) -> tuple[float, Vector]:
        """The loss and its gradient with respect to every cell of every clique."""
        gradient = np.empty_like(marginals) if out is None else out
        centre, precision, constant = self._plain
        value = constant + vector_ops.quadratic(marginals, centre, precision, gradient)
        for term in self._others:
            error = self._error(term, marginals)
            value += _value(error, term.squared, self._width)
            slope = self._slope(error, term.squared)
            add_table(
                self.layout, gradient, term.clique, term.operator.adjoint(slope / term.stddev)
            )
        for batch, squared in self._batches:
            error = batch.errors(marginals)
            value += _value(error, squared, self._width)
            batch.add_slope(gradient, self._slope(error, squared))
        return value, gradient

    def _slope(self, error: Vector, squared: bool) -> Vector:
        return error if squared else _soft_sign(error, self._width) * math.sqrt(2.0)

    def _error(self, term: Term, marginals: Vector) -> Vector:
        """The residuals of a term over their standard deviations."""
        table = self.layout.factor(marginals, term.clique).values
        return np.asarray((term.operator.apply(table) - term.values) / term.stddev)

    def residuals(self, marginals: Vector) -> Vector:
        """The residual of every answer over its standard deviation, measurement by measurement."""
        return np.concatenate([self._error(term, marginals) for term in self.terms])

    def adjoint(self, multipliers: Vector) -> Vector:
        """The slope over the cells of the sum of all residuals, each times its multiplier."""
        slope, ends = self.layout.zeros(), np.cumsum([len(term.values) for term in self.terms])
        for term, piece in zip(self.terms, np.split(multipliers, ends[:-1]), strict=True):
            add_table(self.layout, slope, term.clique, term.operator.adjoint(piece / term.stddev))
        return slope

    @property
    def squared(self) -> NDArray[np.bool_]:
        """For every answer, whether its residual is squared (or its absolute value counts)."""
        return np.concatenate([np.full(len(term.values), term.squared) for term in self.terms])

    @property
    def expected_at_truth(self) -> float:
        """The mean of the loss at the true marginals, where only noise is left."""
        return sum(len(term.values) * (0.5 if term.squared else 1.0) for term in self.terms)

    @property
    def negligible(self) -> float:
        """A small share of what noise alone makes of the loss at the truth."""
        return _NEGLIGIBLE * self.expected_at_truth


def _parse_kind(kind: str) -> Kind:
    try:
        return Kind(kind)
    except ValueError:
        raise InvalidInput(
            f"`loss` must be one of {', '.join(Kind)} or a function; got {kind!r}. "
            "Use 'likelihood' to follow the noise of each measurement."
        ) from None


def _make_term(layout: Layout, measurement: Measurement, kind: Kind) -> Term:
    noise = measurement.noise
    squared = kind is Kind.L2 or (kind is Kind.LIKELIHOOD and noise.squared_loss)
    operator = measurement.operator(layout.domain)
    stddev = np.broadcast_to(measurement.stddev, measurement.values.shape)
    counts_cells = isinstance(measurement.query, Identity)
    return Term(
        measurement.clique, operator, measurement.values, stddev, squared, noise, counts_cells
    )


def _quadratic(layout: Layout, terms: Sequence[Term]) -> Quadratic:
    """The centre, precision and constant of the sum of plain squared terms.

    The constant is what the terms differ from their centre. Its closed form, a difference of
    squared counts, would leave rounding errors larger than the loss where the noise is small.
    """
    cliques = {layout.domain.canonical(term.clique) for term in terms}
    if len(cliques) == len(terms):
        return _join_apart(layout, terms)
    precision, pull, constant = layout.zeros(), layout.zeros(), 0.0
    for term in terms:
        weight = 1.0 / term.stddev**2
        add_table(layout, precision, term.clique, weight)
        add_table(layout, pull, term.clique, weight * term.values)
    centre = np.divide(pull, precision, out=layout.zeros(), where=precision > 0)
    for term in terms:
        error = (layout.factor(centre, term.clique).values.reshape(-1) - term.values) / term.stddev
        constant += 0.5 * float(error @ error)
    return Quadratic(centre, precision, constant)


def _join_apart(layout: Layout, terms: Sequence[Term]) -> Quadratic:
    """The same where no clique was measured twice: nothing has to be added up."""
    centre, precision = layout.zeros(), layout.zeros()
    for term in terms:
        names = term.clique
        canonical = layout.domain.canonical(names)
        shape = layout.domain.project(names).shape
        order = [names.index(name) for name in canonical]
        for vector, table in ((centre, term.values), (precision, 1.0 / term.stddev**2)):
            layout.view(vector, names)[...] = table.reshape(shape).transpose(order)
    return Quadratic(centre, precision, 0.0)


def add_table(layout: Layout, vector: Vector, clique: Clique, table: Vector) -> None:
    """Add a table, given in the clique's own order, to the clique's cells in the vector."""
    domain = layout.domain.project(clique)
    factor = Factor(domain, table.reshape(domain.shape))
    view = layout.view(vector, clique)
    view += factor.transpose(layout.domain.canonical(clique)).values


def _value(error: Vector, squared: bool, width: float) -> float:
    if squared:
        return 0.5 * float(error @ error)
    size, bend = np.abs(error), np.abs(_soft_sign(error, width))
    return math.sqrt(2.0) * float((bend * (size - 0.5 * width * bend)).sum())


def _soft_sign(error: Vector, width: float) -> Vector:
    """The sign of the error, rising linearly where the error is smaller than the width."""
    return np.sign(error) if width == 0.0 else np.clip(error / width, -1.0, 1.0)


class CustomLoss:
    """Any convex function of the marginals of some cliques.

    The function receives the marginals as factors by clique, each in the order in which the
    clique was given, and returns its value and the gradient as factors by clique.
    """

    def __init__(
        self,
        layout: Layout,
        cliques: Iterable[Iterable[str]],
        function: LossFunction,
        *,
        smooth: bool = True,
    ) -> None:
        self.layout = layout
        self.is_smooth = smooth
        self.negligible = 0.0
        self._cliques = [tuple(clique) for clique in cliques]
        self._function = function

    def value(self, marginals: Vector) -> float:
        """The function's value."""
        return self.value_and_gradient(marginals)[0]

    def value_and_gradient(
        self, marginals: Vector, out: Vector | None = None
    ) -> tuple[float, Vector]:
        """The function's value, and its gradient in the flat vector."""
        tables = {clique: self.layout.factor(marginals, clique) for clique in self._cliques}
        value, slopes = self._function(tables)
        packed = self.layout.pack(slopes.values())
        gradient = packed if out is None else out
        gradient[:] = packed
        if not math.isfinite(value):
            raise InvalidInput(
                f"`loss` must return a finite value; got {value}. "
                "Make the function finite for all marginals that are not negative."
            )
        return float(value), gradient
