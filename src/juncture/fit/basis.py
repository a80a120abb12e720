"""What an answer rests on: a measurement, several of them, or an assumption.

It is decided from the measurements' cliques and queries alone, by linear algebra, and never from
an answer. A factored question is a product of one row for each of its attributes. If no row is
constant, the product depends on all of its attributes together, and no sum of functions of fewer
attributes equals it. So a question that no measured clique holds is never a matter of arithmetic:
it rests on how the model joins what was measured.

    measured (a, b) and (b, c), every cell
       count of a = 0 and b = 1    in the span of (a, b)      measured
       count of c = 2              in the span of (b, c)      measured
       count of a = 0 and c = 2    in no measured clique      assumed

What was measured of a clique need not be its cells: of two columns, it may be only what they say
together. With what was measured of the columns, every cell follows, and is implied.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from juncture.tables.domain import Clique, Domain
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Block, Identity, Total
from juncture.tables.queries.products import Kron, Query, Scaled, Stack

Grades = NDArray[np.int8]
Mask = NDArray[np.bool_]

# Matrices of measurements are formed up to so many cells, and questions up to so many answers.
_MAX_CELLS, _MAX_ANSWERS = 2048, 4096
# Of the cliques that hold a question, the smallest are looked at with those inside them.
_MAX_HOLDERS = 3
# A row lies in a span if less than this share of it lies outside.
_OUTSIDE = 1e-6


class Basis(IntEnum):
    """What an answer rests on; a larger number is a weaker basis.

    >>> str(Basis.MEASURED), max(Basis.MEASURED, Basis.ASSUMED)
    ('measured', <Basis.ASSUMED: 2>)
    """

    MEASURED = 0
    """In the span of what was measured on one clique."""
    IMPLIED = 1
    """Follows from several measurements together, by arithmetic alone."""
    ASSUMED = 2
    """Rests on an independence that nobody measured."""

    def __str__(self) -> str:
        return self.name.lower()

    @property
    def words(self) -> str:
        """What that means, in one sentence."""
        return _WORDS[self]


_WORDS = {
    Basis.MEASURED: "It was measured, with noise.",
    Basis.IMPLIED: "It follows from several measurements together.",
    Basis.ASSUMED: "Its columns were never measured together: it rests on their independence given "
    "what was measured, which nobody measured.",
}


class Bases:
    """What the answers to questions rest on, given what was measured."""

    def __init__(
        self,
        domain: Domain,
        measurements: Iterable[Measurement],
        known: Iterable[Clique] = (),
    ) -> None:
        self._domain = domain
        self._known = [frozenset(clique) for clique in known]
        self._groups: dict[Clique, list[Measurement]] = {}
        for each in measurements:
            self._groups.setdefault(domain.canonical(each.clique), []).append(each)
        self._spans: dict[tuple[Clique, ...], Vector | None] = {}

    def find(self, question: Kron) -> Grades:
        """The basis of every answer of a factored question, an axis for each attribute."""
        blocks = {name: question.blocks[name] for name in self._domain.project(question.blocks)}
        shape = [block.n_rows(self._domain[name]) for name, block in blocks.items()]
        needed = self.find_needed(question)
        if self.is_known(question):
            return np.full(shape, Basis.MEASURED, dtype=np.int8)
        holders = [clique for clique in self._groups if needed.issubset(clique)]
        grades = np.full(shape, Basis.ASSUMED, dtype=np.int8)
        for clique in holders:
            grades[self._find_held(clique, blocks, shape)] = Basis.MEASURED
            if not grades.any():
                return grades
        for together in self._list_together(holders):
            held = self._find_in_span(together, blocks, shape)
            grades[held & (grades == Basis.ASSUMED)] = Basis.IMPLIED
            if not (grades == Basis.ASSUMED).any():
                break
        return grades

    def _list_together(self, holders: list[Clique]) -> Iterator[tuple[Clique, ...]]:
        """Cliques that may tell together what none does alone: holders, or one and those inside."""
        if len(holders) > 1:
            yield tuple(holders)
        for holder in sorted(holders, key=self._domain.size_of)[:_MAX_HOLDERS]:
            inside = tuple(clique for clique in self._groups if set(clique) <= set(holder))
            if len(inside) > 1:
                yield inside

    def find_holder(self, question: Kron) -> Clique | None:
        """The smallest measured clique that has all attributes that matter, if there is one."""
        needed = self.find_needed(question)
        holders = [clique for clique in self._groups if needed.issubset(clique)]
        return min(holders, key=self._domain.size_of, default=None)

    def is_known(self, question: Kron) -> bool:
        """Whether a table of counts that is public has all attributes that matter."""
        return any(map(self.find_needed(question).issubset, self._known))

    def find_needed(self, question: Kron) -> set[str]:
        """The attributes that matter."""
        blocks = question.blocks.items()
        return {name for name, block in blocks if not is_constant(block, self._domain[name])}

    def _find_held(self, clique: Clique, blocks: Mapping[str, Block], shape: list[int]) -> Mask:
        """Which answers lie in the span of what was measured on one clique."""
        held = np.zeros(shape, dtype=np.bool_)
        for query in self._list_products(clique):
            held |= self._find_in_product(query, clique, blocks)
            if held.all():
                return held
        return held | self._find_in_span((clique,), blocks, shape)

    def _list_products(self, clique: Clique) -> list[Mapping[str, Block]]:
        """What was measured on a clique as products of blocks; an attribute left out is a sum."""
        found: list[Mapping[str, Block]] = []
        waiting: list[Query] = [each.query for each in self._groups[clique]]
        while waiting:
            query = waiting.pop()
            if isinstance(query, Scaled):
                waiting.append(query.query)
            elif isinstance(query, Stack):
                waiting += query.queries
            elif isinstance(query, Identity):
                found.append(dict.fromkeys(clique, query))
            elif isinstance(query, Kron):
                found.append(query.blocks)
            elif len(clique) == 1:
                found.append({clique[0]: query})
        return found

    def _find_in_product(
        self, measured: Mapping[str, Block], clique: Clique, blocks: Mapping[str, Block]
    ) -> Mask:
        """Which answers lie in the span of one product: row by row, attribute by attribute."""
        held = np.ones((), dtype=np.bool_)
        for name, block in blocks.items():
            rows = block.n_rows(self._domain[name])
            inside = (
                self._find_rows_inside(name, measured.get(name, Total()), block)
                if name in clique
                else np.ones(rows, dtype=np.bool_)
            )
            held = held[..., None] & inside
        others = (name for name in clique if name not in blocks)
        summed = all(
            self._find_rows_inside(name, measured.get(name, Total()), Total()).all()
            for name in others
        )
        return np.asarray(held & summed)

    def _find_rows_inside(self, name: str, measured: Block, asked: Block) -> Mask:
        """Which rows of a block lie in the row space of another."""
        size = self._domain[name]
        if isinstance(measured, Identity) or measured is asked:
            return np.ones(asked.n_rows(size), dtype=np.bool_)
        rows = asked.adjoint(np.eye(asked.n_rows(size)), size)
        return _find_inside(_span(measured.matrix(size)), rows)

    def _find_in_span(
        self, cliques: tuple[Clique, ...], blocks: Mapping[str, Block], shape: Sequence[int]
    ) -> Mask:
        """Which answers lie in the span of all measured on some cliques, if it is small."""
        union = self._domain.canonical({*blocks}.union(*cliques))
        large = self._domain.size_of(union) > _MAX_CELLS or math.prod(shape) > _MAX_ANSWERS
        if large or not any(
            len(self._groups[clique]) > 1 or len(cliques) > 1 for clique in cliques
        ):
            return np.zeros(shape, dtype=np.bool_)
        key = (*cliques, union)
        if key not in self._spans:
            self._spans[key] = _span(np.concatenate([self._expand(c, union) for c in cliques]))
        rows = [self._rows_of(name, blocks.get(name, Total())) for name in union]
        asked = [name for name in union if name in blocks]
        table: Vector = np.ones((1, 1))
        for each in rows:
            table = np.asarray(np.kron(table, each), dtype=np.float64)
        inside = _find_inside(self._spans[key], table)
        order = [asked.index(name) for name in blocks]
        sizes = [blocks[name].n_rows(self._domain[name]) for name in asked]
        return inside.reshape(sizes).transpose(order)

    def _rows_of(self, name: str, block: Block) -> Vector:
        size = self._domain[name]
        return block.adjoint(np.eye(block.n_rows(size)), size)

    def _expand(self, clique: Clique, union: Clique) -> Vector:
        """The rows of what was measured on a clique, as functions of more attributes."""
        parts = []
        for each in self._groups[clique]:
            operator, own = each.operator(self._domain), self._domain.project(each.clique)
            table = np.array([operator.adjoint(row) for row in np.eye(operator.n_rows)])
            table = table.reshape([-1, *own.shape])
            order = [tuple(own).index(name) for name in union if name in own]
            table = table.transpose([0, *(1 + axis for axis in order)])
            sizes = [self._domain[name] if name in own else 1 for name in union]
            full = [len(table), *(self._domain[name] for name in union)]
            parts.append(np.broadcast_to(table.reshape([-1, *sizes]), full).reshape(len(table), -1))
        return np.concatenate(parts)


def is_constant(block: Block, size: int) -> bool:
    """Whether the rows of a block do not depend on the value.

    >>> is_constant(Total(), 3), is_constant(Identity(), 3)
    (True, False)
    """
    if isinstance(block, Total) or size == 1:
        return True
    if block.n_rows(size) > 1:
        return False
    row = block.adjoint(np.ones(1), size)
    return bool(np.ptp(row) == 0.0)


def _span(rows: Vector) -> Vector:
    """Orthonormal rows that span the same space."""
    _, values, basis = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(basis[values > values.max(initial=0.0) * 1e-9])


def _find_inside(span: Vector | None, rows: Vector) -> Mask:
    """Which rows lie in a span."""
    assert span is not None
    outside = rows - (rows @ span.T) @ span
    return np.asarray(
        np.linalg.norm(outside, axis=1) <= _OUTSIDE * np.linalg.norm(rows, axis=1), dtype=np.bool_
    )
