"""What measurements alone say: unbiased estimates with a known deviation, and no model.

A question is in the span of a measurement if weights on its noisy answers add up to it. Those with
the least noise give an estimate whose error is noise alone: its mean is zero and its variance is
known, whatever the table. Estimates of one question from several measurements are independent, and
are combined by the inverse of their variances. Cells may be negative: nothing is assumed.

    measured (a, b), every cell, deviation 3; asked: a = 0, where b has 4 values
       estimate: the sum of 4 noisy cells       deviation: 3 x 2 = 6

Where no single measurement holds a question but several within its columns do together, weights on
all of their answers are found by least squares; so they are for a column that was asked in several
ways.

A model's answers are usually far closer, since all measurements help and no count is negative; but
how close depends on the table. So plain estimates say what is certain, and models what is likely.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from juncture.fit.basis import is_constant
from juncture.tables.domain import Clique, Domain
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.noise import Noise
from juncture.tables.queries.blocks import Block, Identity, Total
from juncture.tables.queries.products import Kron, Query, Scaled, Stack, bind

# Measurements of several cliques are joined in tables of at most so many cells.
_MAX_JOINED = 1024
# A row lies in a span if less than this share of it lies outside.
_OUTSIDE = 1e-6
# A question without weights is known: its estimate has no noise, but a square that is not zero.
_NO_NOISE = 1e-100


class PlainEstimate(NamedTuple):
    """Estimates of the answers to a question; not a number where no measurement holds one."""

    values: Vector
    stddev: Vector


class WeightedRows(NamedTuple):
    """Noisy answers to a product of blocks, and the weights that make a question of them."""

    values: Vector
    """An axis for each attribute of the clique."""
    stddev: Vector
    noise: Noise
    weights: tuple[Vector | None, ...]
    """For each axis, a matrix from answers to questions; None where they are the same."""
    held: Vector
    """Whether each answer of the question lies in the span, as zeros and ones."""

    def estimate(self) -> PlainEstimate:
        """The estimates, where they are held."""
        squares = [None if each is None else each**2 for each in self.weights]
        variance = np.broadcast_to(self.stddev**2, self.values.shape)
        return PlainEstimate(
            contract(self.values, self.weights).reshape(self.held.shape),
            np.sqrt(contract(variance, squares)).reshape(self.held.shape),
        )


@dataclass(frozen=True, eq=False)
class _Product:
    """A part of a measurement: noisy answers to one product of blocks on a clique."""

    clique: Clique
    blocks: Mapping[str, Block]
    values: Vector
    stddev: Vector
    noise: Noise


class PlainEstimates:
    """Unbiased estimates of the answers to factored questions.

    >>> counts = Measurement(("a", "b"), [5.0, 1.0, 2.0, 4.0], stddev=3.0)
    >>> plain = PlainEstimates(Domain({"a": 2, "b": 2}), [counts])
    >>> found = plain.find(Kron({"a": Identity()}))
    >>> found.values, found.stddev.round(3)
    (array([6., 6.]), array([4.243, 4.243]))
    """

    def __init__(self, domain: Domain, measurements: Iterable[Measurement]) -> None:
        self._domain = domain
        self._products = [part for each in measurements for part in _split(domain, each)]
        self._inverses: dict[tuple[int, int], Vector] = {}
        self._joined: dict[Clique, tuple[Vector, Vector, Vector]] = {}

    def find(self, question: Kron) -> PlainEstimate:
        """The best estimate of every answer of a question, an axis for each of its attributes."""
        shape = [block.n_rows(self._domain[name]) for name, block in question.blocks.items()]
        pull, precision = np.zeros(shape), np.zeros(shape)
        for rows in self.list_rows(question):
            value, stddev = rows.estimate()
            weight = rows.held / np.maximum(stddev, _NO_NOISE) ** 2
            pull += np.where(rows.held > 0.0, value, 0.0) * weight
            precision += weight
        with np.errstate(divide="ignore", invalid="ignore"):
            return PlainEstimate(
                np.where(precision > 0.0, pull / precision, np.nan),
                np.where(precision > 0.0, precision**-0.5, np.nan),
            )

    def list_rows(self, question: Kron) -> Iterator[WeightedRows]:
        """For each measured product that holds any answer of a question, what makes it of them.

        The axes of what it makes are the attributes of the question, in its order.
        """
        domain = self._domain
        needed = tuple(
            n for n, block in question.blocks.items() if not is_constant(block, domain[n])
        )
        parts = [part for part in self._products if set(needed).issubset(part.clique)]
        made = {index: self._weigh(part, question) for index, part in enumerate(parts)}
        found = {index: rows for index, rows in made.items() if rows is not None}
        # Of a column that was counted, and asked how its values differ, neither says all.
        own = {index for index, part in enumerate(parts) if part.clique == needed}
        if not found or (len(needed) == 1 and not own <= found.keys()):
            joined = self._join(question, needed)
            if joined is not None:
                yield joined
                found = {index: rows for index, rows in found.items() if index not in own}
        yield from found.values()

    def _join(self, question: Kron, needed: Clique) -> WeightedRows | None:
        """The weights that make a question of all that was measured within its columns together.

        Of two columns, what they say together may have been measured, and each of them: no part
        tells a cell, all of them do. Weights are those of least squares, which have the least
        noise. None where the columns were not measured together, or the table is large.
        """
        parts = [part for part in self._products if set(part.clique) <= set(needed)]
        held = {frozenset(part.clique) for part in parts}
        if frozenset(needed) not in held or len({part.noise for part in parts}) > 1:
            return None
        if self._domain.size_of(needed) > _MAX_JOINED or len(parts) < 2:
            return None
        if needed not in self._joined:
            matrix = np.concatenate([self._expand(part, needed) for part in parts])
            stddev = np.concatenate([part.stddev.reshape(-1) for part in parts])
            solved = np.linalg.pinv(matrix / stddev[:, None]) / stddev
            self._joined[needed] = (matrix, stddev, np.asarray(solved, dtype=np.float64))
        matrix, stddev, solved = self._joined[needed]
        asked: Vector = np.ones((1, 1))
        for name in needed:
            rows = _rows_of(question.blocks[name], self._domain[name])
            asked = np.asarray(np.kron(asked, rows), dtype=np.float64)
        asked = asked * _find_constant(question, needed, self._domain)
        weights = asked @ solved
        outside = np.linalg.norm(weights @ matrix - asked, axis=1)
        inside = outside <= _OUTSIDE * np.maximum(np.linalg.norm(asked, axis=1), 1e-300)
        if not inside.any():
            return None
        shape = [block.n_rows(self._domain[name]) for name, block in question.blocks.items()]
        values = np.concatenate([part.values.reshape(-1) for part in parts])
        held_ones = inside.astype(np.float64).reshape(shape)
        return WeightedRows(values, stddev, parts[0].noise, (weights,), held_ones)

    def _expand(self, part: _Product, columns: Clique) -> Vector:
        """The rows of a part as functions of more columns, in their order."""
        table: Vector = np.ones((1, 1))
        for name in part.clique:  # an axis for its rows, then one for each column
            own_rows = part.blocks.get(name, Total()).matrix(self._domain[name])
            table = np.asarray(np.kron(table, own_rows), dtype=np.float64)
        own = [self._domain[name] for name in part.clique]
        axes = [part.clique.index(name) for name in columns if name in part.clique]
        turned = table.reshape(-1, *own).transpose(0, *(1 + axis for axis in axes))
        spread = [self._domain[name] if name in part.clique else 1 for name in columns]
        full = (len(table), *(self._domain[name] for name in columns))
        return np.broadcast_to(turned.reshape(-1, *spread), full).reshape(len(table), -1)

    def _weigh(self, part: _Product, question: Kron) -> WeightedRows | None:
        order = [name for name in question.blocks if name in part.clique]
        others = [name for name in part.clique if name not in question.blocks]
        axes = [part.clique.index(name) for name in (*order, *others)]
        weights, held = list[Vector | None](), np.ones((), dtype=np.float64)
        for name in (*order, *others):
            asked = question.blocks.get(name, Total())
            made, inside = self._invert(part.blocks.get(name, Total()), asked, self._domain[name])
            if not inside.any():
                return None
            weights.append(made)
            held = np.asarray(held[..., None] * inside, dtype=np.float64)
        shape = [block.n_rows(self._domain[name]) for name, block in question.blocks.items()]
        scale = _find_constant(question, part.clique, self._domain)
        if weights and scale != 1.0:
            first = weights[0]
            n_rows = part.values.shape[axes[0]]
            matrix: Vector = np.eye(n_rows) if first is None else first
            weights[0] = scale * matrix
        return WeightedRows(
            part.values.transpose(axes),
            np.broadcast_to(part.stddev, part.values.shape).transpose(axes),
            part.noise,
            tuple(weights),
            held.reshape(shape),
        )

    def _invert(self, measured: Block, asked: Block, size: int) -> tuple[Vector | None, Vector]:
        """The weights with the least noise that make the asked rows of the measured ones."""
        n_rows = asked.n_rows(size)
        if isinstance(measured, Identity):
            weights = None if isinstance(asked, Identity) else _rows_of(asked, size)
            return weights, np.ones(n_rows)
        key = (id(measured), size)
        if key not in self._inverses:
            inverse = np.linalg.pinv(measured.matrix(size))
            self._inverses[key] = np.asarray(inverse, dtype=np.float64)
        rows = _rows_of(asked, size)
        made = rows @ self._inverses[key]
        outside = np.linalg.norm(made @ measured.matrix(size) - rows, axis=1)
        inside = outside <= _OUTSIDE * np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
        return made, inside.astype(np.float64)


def contract(table: Vector, weights: Sequence[Vector | None]) -> Vector:
    """A table with a matrix applied to each axis; None leaves an axis as it is."""
    for axis, each in enumerate(weights):
        if each is not None:
            table = np.moveaxis(np.tensordot(table, each, (axis, 1)), -1, axis)
    return np.asarray(table)


def _find_constant(question: Kron, clique: Clique, domain: Domain) -> float:
    """What the attributes of a question that a clique does not have multiply it with."""
    constant = 1.0
    for name, block in question.blocks.items():
        if name not in clique:
            constant *= float(block.adjoint(np.ones(1), domain[name])[0])
    return constant


def _rows_of(block: Block, size: int) -> Vector:
    return block.adjoint(np.eye(block.n_rows(size)), size)


def _split(domain: Domain, measurement: Measurement) -> Iterator[_Product]:
    """The products that a measurement is made of."""
    stddev = np.broadcast_to(measurement.stddev, measurement.values.shape)
    waiting: list[tuple[Query, float, slice]] = [
        (measurement.query, 1.0, slice(0, measurement.n_rows))
    ]
    clique = measurement.clique
    while waiting:
        query, weight, rows = waiting.pop()
        if isinstance(query, Scaled):
            waiting.append((query.query, weight * query.weight, rows))
        elif isinstance(query, Stack):
            start = rows.start
            for each in query.queries:
                stop = start + bind(each, domain.project(clique)).n_rows
                waiting.append((each, weight, slice(start, stop)))
                start = stop
        else:
            blocks = _list_blocks(query, clique)
            if blocks is not None and weight != 0.0:
                shape = [blocks.get(n, Total()).n_rows(domain[n]) for n in clique]
                yield _Product(
                    clique,
                    blocks,
                    measurement.values[rows].reshape(shape) / weight,
                    stddev[rows].reshape(shape) / abs(weight),
                    measurement.noise,
                )


def _list_blocks(query: Query, clique: Clique) -> Mapping[str, Block] | None:
    if isinstance(query, Identity):
        return dict.fromkeys(clique, query)
    if isinstance(query, Kron):
        return query.blocks
    return {clique[0]: query} if len(clique) == 1 and isinstance(query, Block) else None
