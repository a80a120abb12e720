"""How large the noise of counts is, by the measurements that they come from.

Every measurement that has the attributes of a count estimates it by least squares, with an error
that follows from its own noise; the errors of several measurements are independent, so they are
combined by their variances. What is asked of one attribute alone is combined with all else by one
least squares: contrasts and the number of records make counts that neither of them tells. A model
knows more (counts are not negative, other attributes help), so this is what its counts may be off
by at most, as a rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from juncture.tables.domain import Domain
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Block, Identity, Total
from juncture.tables.queries.products import Kron, Query, Scaled, Stack, bind

# Larger matrices of blocks are not inverted: it would take long.
_MAX_ENTRIES = 4_000_000
_ROUNDING = 1e-6


class _Product(NamedTuple):
    """Answers to a product of blocks, one for each attribute."""

    domain: Domain
    blocks: Sequence[Block]
    variances: Vector
    """Of each answer, or one number for all."""


class CountNoise:
    """The standard deviation of counts, as the measurements of a release tell.

    >>> domain = Domain({"age": 3, "sex": 2})
    >>> both = Measurement(("age", "sex"), np.zeros(6), stddev=3.0)
    >>> alone = Measurement(("sex",), [0.0, 0.0], stddev=4.0)
    >>> noise = CountNoise(domain, [both, alone])
    >>> noise.stddevs(("age",)).round(3)
    array([4.243, 4.243, 4.243])
    >>> noise.stddevs(("sex",)).round(3)
    array([3.17, 3.17])
    """

    def __init__(self, domain: Domain, measurements: Sequence[Measurement]) -> None:
        self._domain, self._inverses = domain, dict[tuple[int, int], Vector | None]()
        self._products = [
            product for each in measurements for product in _find_products(each, domain)
        ]
        self._joint = dict[str, Vector | None]()

    def stddevs(self, names: Sequence[str]) -> Vector | None:
        """The noise of every count of a marginal, axes in the order of the names.

        Without names, it is the noise of the number of all records.

        It is infinite where no measurement tells a count, and None where none tells any.
        """
        shape = tuple(self._domain[name] for name in names)
        if len(names) == 1 and (joint := self._join(names[0])) is not None:
            found = _find_deviations(joint, np.eye(shape[0]))
            return found if np.isfinite(found).any() else None
        precision = np.zeros(shape)
        for product in self._products:
            if set(names) <= set(product.domain):
                with np.errstate(divide="ignore"):
                    precision += 1.0 / self._find_variances(product, names)
        if not precision.any():
            return None
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / np.sqrt(precision))

    def stddev_of_sum(self, name: str, weights: Vector) -> float | None:
        """The noise of a weighted sum over the counts of an attribute; None if nothing tells it."""
        if (joint := self._join(name)) is not None:
            stddev = float(_find_deviations(joint, weights[None])[0])
            return stddev if math.isfinite(stddev) else None
        precision = 0.0
        for product in self._products:
            if name in product.domain:
                variance = self._find_variance_of_sum(product, name, weights)
                precision += 1.0 / variance if variance > 0.0 else 0.0
        return 1.0 / math.sqrt(precision) if precision > 0.0 else None

    def _join(self, name: str) -> Vector | None:
        """See `_find_joint_precision`: computed once for each attribute."""
        if name not in self._joint:
            self._joint[name] = self._find_joint_precision(name)
        return self._joint[name]

    def _find_joint_precision(self, name: str) -> Vector | None:
        """What all measurements tell of an attribute's counts together, as the inverse covariance.

        Where some ask the attribute alone how its values differ, they tell nothing of the number of
        records, which others do. None where no such measurement is there, or it is too large.
        """
        size = self._domain[name]
        alone = [p for p in self._products if p.domain.attributes == (name,) and not _is_plain(p)]
        if not alone or any(size * p.blocks[0].n_rows(size) > _MAX_ENTRIES for p in alone):
            return None
        precision = np.zeros((size, size))
        for product in alone:
            rows = product.blocks[0].matrix(size)
            precision += rows.T @ (rows / np.broadcast_to(product.variances, len(rows))[:, None])
        for product, of_total in zip(self._products, self._total_precisions, strict=True):
            if name not in product.domain:
                precision += of_total
            elif product.domain.attributes != (name,) or _is_plain(product):
                with np.errstate(divide="ignore"):
                    precision += np.diag(1.0 / self._find_variances(product, (name,)))
        return precision

    @cached_property
    def _total_precisions(self) -> list[float]:
        """How precisely each product tells the number of records."""
        with np.errstate(divide="ignore"):
            return [float(1.0 / self._find_variances(product, ())) for product in self._products]

    def _find_variances(self, product: _Product, names: Sequence[str]) -> Vector:
        if _is_plain(product):
            others = tuple(i for i, name in enumerate(product.domain) if name not in names)
            kept = [name for name in product.domain if name in names]
            if product.variances.ndim == 0:
                n_cells = math.prod(product.domain.shape[axis] for axis in others)
                return np.full([self._domain[name] for name in names], n_cells * product.variances)
            table = product.variances.reshape(product.domain.shape).sum(axis=others)
            return np.asarray(np.transpose(table, [kept.index(name) for name in names]))
        table = np.full((), float(product.variances.max()))
        for name, block in zip(product.domain, product.blocks, strict=True):
            if name not in names:
                table = table * self._invert_sum(block, np.ones(product.domain[name]))
        for name in names:
            block = product.blocks[product.domain.attributes.index(name)]
            table = np.multiply.outer(table, self._invert_cells(block, self._domain[name]))
        return np.asarray(table)

    def _find_variance_of_sum(self, product: _Product, name: str, weights: Vector) -> float:
        if _is_plain(product):
            return float(weights**2 @ self._find_variances(product, (name,)))
        variance = float(product.variances.max())
        for other, block in zip(product.domain, product.blocks, strict=True):
            chosen = weights if other == name else np.ones(product.domain[other])
            variance *= self._invert_sum(block, chosen)
        return variance

    def _invert_cells(self, block: Block, size: int) -> Vector:
        """The variance of each value's count, where each answer has variance 1."""
        if isinstance(block, Identity):
            return np.ones(size)
        inverse = self._invert(block, size)
        if inverse is None:
            return np.full(size, np.inf)
        known = np.abs(np.einsum("ij,ji->i", inverse, block.matrix(size)) - 1.0) < _ROUNDING
        return np.where(known, (inverse**2).sum(axis=1), np.inf)

    def _invert_sum(self, block: Block, weights: Vector) -> float:
        """The variance of a weighted sum of counts, where each answer has variance 1."""
        if isinstance(block, Identity):
            return float(weights @ weights)
        if isinstance(block, Total) and np.ptp(weights) == 0.0:
            return float(weights[0]) ** 2
        inverse = self._invert(block, len(weights))
        if inverse is None:
            return math.inf
        answers = weights @ inverse
        missed = np.abs(answers @ block.matrix(len(weights)) - weights).max()
        known = missed < _ROUNDING * max(float(np.abs(weights).max()), 1e-300)
        return float(answers @ answers) if known else math.inf

    def _invert(self, block: Block, size: int) -> Vector | None:
        """The pseudo-inverse of a block, or None where it would be too large."""
        key = (id(block), size)
        if key not in self._inverses:
            fits = size * block.n_rows(size) <= _MAX_ENTRIES
            self._inverses[key] = np.asarray(np.linalg.pinv(block.matrix(size))) if fits else None
        return self._inverses[key]


def _is_plain(product: _Product) -> bool:
    """Whether it counts every cell."""
    return all(isinstance(block, Identity) for block in product.blocks)


def _find_deviations(precision: Vector, rows: Vector) -> Vector:
    """The noise of weighted sums, by the inverse covariance; infinite where nothing tells one."""
    values, vectors = np.linalg.eigh(precision)
    known = values > _ROUNDING**2 * values[-1]
    parts = (rows @ vectors) ** 2
    outside = parts[:, ~known].sum(axis=1) > _ROUNDING * parts.sum(axis=1)
    variances = (parts[:, known] / values[known]).sum(axis=1)
    return np.asarray(np.where(outside, np.inf, np.sqrt(variances)))


def _find_products(measurement: Measurement, domain: Domain) -> Iterator[_Product]:
    """The products of blocks that a measurement consists of; other queries are left out."""
    clique = domain.project(measurement.clique)
    # A clique's own order is not that of the domain, and answers come in the clique's.
    ordered = Domain([(name, clique[name]) for name in measurement.clique])
    return _split(measurement.query, ordered, measurement.stddev**2)


def _split(query: Query, domain: Domain, variances: Vector) -> Iterator[_Product]:
    match query:
        case Scaled():
            yield from _split(query.query, domain, variances / query.weight**2)
        case Stack():
            rows = [bind(each, domain).n_rows for each in query.queries]
            for each, (low, high) in zip(
                query.queries, pairwise(accumulate(rows, initial=0)), strict=True
            ):
                yield from _split(
                    each, domain, variances[low:high] if variances.ndim else variances
                )
        case Kron():
            yield _Product(domain, [query.blocks.get(name, Total()) for name in domain], variances)
        case Identity() | Total():
            yield _Product(domain, [query] * len(domain), variances)
        case Block() if len(domain) == 1:
            yield _Product(domain, [query], variances)
