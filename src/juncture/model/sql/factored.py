"""The quick way: where every part of a question is about one attribute, sums are factored queries.

Then an aggregate is a product of functions of single attributes, which is a `Kron`, and no table of
several attributes is formed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from juncture.model.sql.aggregates import MIN_SHARE, Aggregate, Term, Total, compute, expand
from juncture.model.sql.attributes import (
    HIGH_PREFIX,
    KEY_PREFIX,
    LOW_PREFIX,
    Interval,
    is_special,
    make_pieces,
)
from juncture.model.sql.groups import GroupTable, known_column, round_off
from juncture.model.sql.outside import OUTSIDE_PREFIX
from juncture.model.sql.question import Question
from juncture.model.sql.ranges import Bounds, Extreme, find_bin_notes, find_bounds_of
from juncture.model.sql.syntax import Expr, Value, write
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Block, Buckets, Identity, Matrix
from juncture.tables.queries.products import Kron

# A matrix with more entries than this is kept sparse: most of them are zero.
_MAX_DENSE = 1 << 20


class NotFinite(Exception):
    """An expression is infinite or not a number somewhere, where there may be no records."""


def is_factored(question: Question) -> bool:
    """Whether every group, condition and factor is about one attribute."""
    if question.sets is not None:
        return False
    parts: list[Expr] = list(question.conditions)
    for aggregate in question.aggregates.values():
        if aggregate.is_rank:
            return False
        parts += aggregate.conditions
        is_sum = isinstance(aggregate.node, exp.Sum | exp.Avg)
        for argument in aggregate.arguments:
            parts += _atoms(argument, question) if is_sum else [argument]
    several = any(len(question.attributes(part)) > 1 for part in parts)
    return not several and all(len(question.attributes(key)) == 1 for key in question.keys)


def _atoms(node: Expr, question: Question) -> list[Expr]:
    terms = expand(node, lambda part: len(question.attributes(part)))
    return [factor for term in terms for factor in term.factors]


class AttributePart:
    """One attribute of a question: its pieces, its groups, and values of its expressions."""

    def __init__(self, name: str, question: Question, key_nodes: Sequence[Expr]) -> None:
        self._question = question
        coding = question.codebook[name]
        self._pieces = make_pieces(name, coding, question.intervals.get(name, Interval()))
        self._table = self._pieces.table
        self._size = coding.size
        self._cache: dict[str, pa.ChunkedArray] = {}
        texts = [key_text(node, question) for node in key_nodes]
        columns = [self._column(text).to_pylist() for text in texts]
        tuples = list(zip(*columns, strict=True)) if columns else [()] * len(self._pieces.codes)
        indices: dict[Any, int] = {}
        self._rows = np.array([indices.setdefault(_hashable(t), len(indices)) for t in tuples])
        firsts = np.unique(self._rows, return_index=True)[1]
        self.keys = [self._column(text).take(firsts) for text in texts]
        self.n_groups = len(indices)

    def _column(self, text: str) -> pa.ChunkedArray:
        if text not in self._cache:
            result = self._question.engine.run(
                f"SELECT {text} AS value FROM cells", cells=self._table
            )
            self._cache[text] = result["value"]
        return self._cache[text]

    def _numbers(self, text: str) -> Vector:
        numbers: Vector = self._column(text).to_numpy().astype(np.float64)
        return numbers

    def block(self, total: Total) -> Block:
        """This attribute's part of a total: an answer for each group."""
        weights, is_plain = self._pieces.shares, True
        if total.conditions:
            text = " AND ".join(f"({write(each)})" for each in total.conditions)
            weights, is_plain = weights * self._numbers(f"COALESCE({text}, FALSE)"), False
        for node in total.known:
            text = known_text(node, self._table.column_names, total.counts_outside)
            weights, is_plain = weights * self._numbers(text), False
        for node in total.factors:
            values = self._numbers(f"COALESCE(CAST({write(node)} AS DOUBLE), 0)")
            with np.errstate(invalid="ignore"):
                weights, is_plain = np.where(weights != 0, weights * values, 0.0), False
        if not np.isfinite(weights).all():
            raise NotFinite
        return (self._group_block() if is_plain else None) or self._matrix(weights)

    def extreme_block(self, total: Total, extreme: Extreme) -> Matrix | None:
        """The same, with all records of a code in the piece that makes the answer extreme.

        None where an entry is negative: products of such extremes bound nothing.
        """
        weights = self._held(total)
        for node in total.factors:
            weights = weights * self._ends(node)[extreme is Extreme.LARGEST]
        matrix = self._extreme_matrix(weights, extreme)
        return None if matrix.min(initial=0.0) < 0.0 else Matrix(matrix)

    def extent(self, total: Total) -> tuple[float, float]:
        """The least and the largest number that a sum of this attribute adds up."""
        low, high = self._ends(total.factors[0])
        held = self._held(total) > 0.0
        return float(low[held].min(initial=np.inf)), float(high[held].max(initial=-np.inf))

    def _held(self, total: Total) -> Vector:
        """A one for each piece that meets the conditions of a total, else a zero."""
        texts = [f"COALESCE({write(each)}, FALSE)" for each in total.conditions]
        columns = self._table.column_names
        texts += [known_text(each, columns, total.counts_outside) for each in total.known]
        held = np.ones(len(self._pieces.codes))
        for text in texts:
            held = held * self._numbers(text)
        return held

    def _ends(self, node: Expr) -> tuple[Vector, Vector]:
        """The numbers at both ends of each piece."""
        ends = [prefix + node.name for prefix in (LOW_PREFIX, HIGH_PREFIX)]
        ends = ends if ends[0] in self._table.column_names else [node.name] * 2
        columns = [write(exp.column(end, quoted=True)) for end in ends]
        low, high = (self._numbers(f"COALESCE(CAST({each} AS DOUBLE), 0)") for each in columns)
        return low, high

    def _extreme_matrix(self, weights: Vector, extreme: Extreme) -> Vector:
        choose = np.minimum if extreme is Extreme.LEAST else np.maximum
        start = np.inf if extreme is Extreme.LEAST else -np.inf
        matrix = np.full((self.n_groups, self._size), start)
        choose.at(matrix, (self._rows, self._pieces.codes), weights)
        n_pieces = np.zeros(matrix.shape)
        np.add.at(n_pieces, (self._rows, self._pieces.codes), 1.0)
        is_part = n_pieces < n_pieces.sum(axis=0)  # other pieces of the code are in other groups
        bounded = np.where(n_pieces > 0, matrix, 0.0)
        return np.asarray(np.where(is_part, choose(bounded, 0.0), bounded))

    def add_up(self, weights: Vector, axis: int) -> Vector:
        """Weights of this attribute's pieces, added up over its groups."""
        moved = np.moveaxis(weights, axis, 0)
        sums = np.zeros((self.n_groups, *moved.shape[1:]))
        np.add.at(sums, self._rows, moved)
        return np.moveaxis(sums, 0, axis)

    def _group_block(self) -> Block | None:
        """The counts of groups where each code belongs to one of them, else None.

        Such a block needs no matrix; where each code is a group of its own, it is the identity,
        and the answer a marginal that the model may know as it stands.
        """
        rows = np.full(self._size, -1, dtype=np.intp)
        rows[self._pieces.codes] = self._rows
        if (rows[self._pieces.codes] != self._rows).any():
            return None
        if self.n_groups == self._size:
            return Identity()
        return Buckets(rows.tolist())

    def _matrix(self, weights: Vector) -> Matrix:
        shape = (self.n_groups, self._size)
        indices = (self._rows, self._pieces.codes)
        if math.prod(shape) > _MAX_DENSE:
            from scipy.sparse import coo_array  # noqa: PLC0415  (slow to import)

            return Matrix(coo_array((weights, indices), shape=shape).tocsr())
        matrix = np.zeros(shape)
        np.add.at(matrix, indices, weights)
        return Matrix(matrix)


def _hashable(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key by which equal values are equal: not-a-number too, and true is not 1."""
    return tuple((type(part), "nan" if _is_nan(part) else part) for part in key)


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def key_text(node: Expr, question: Question) -> str:
    """The text of a group: an attribute with intervals goes by its codes."""
    if isinstance(node, exp.Column) and is_special(question.codebook[node.name]):
        return f'"{(KEY_PREFIX + node.name).replace(chr(34), 2 * chr(34))}"'
    return write(node)


def known_text(node: Expr, columns: Iterable[str], counts_outside: bool) -> str:
    """The condition that an expression is not missing."""
    mark = OUTSIDE_PREFIX + node.name if isinstance(node, exp.Column) else ""
    if counts_outside and mark in set(columns):
        return f"({write(node)} IS NOT NULL OR {write(exp.column(mark, quoted=True))})"
    return f"({write(node)}) IS NOT NULL"


class Factored:
    """The groups of a question whose parts are about one attribute each."""

    def __init__(self, question: Question, ask: Callable[[Kron], Vector], n_records: float) -> None:
        self._question, self._ask, self.n_records = question, ask, n_records
        keys: dict[str, list[Expr]] = {}
        for node in question.keys:
            keys.setdefault(question.attributes(node)[0], []).append(node)
        self._grouped = keys
        self._attributes: dict[str, AttributePart] = {}
        self._totals: dict[Total, Vector] = {}

    def attribute(self, name: str) -> AttributePart:
        """One attribute's part."""
        if name not in self._attributes:
            keys = self._grouped.get(name, [])
            self._attributes[name] = AttributePart(name, self._question, keys)
        return self._attributes[name]

    @property
    def shape(self) -> list[int]:
        """The number of groups of each attribute that is grouped by."""
        return [self.attribute(name).n_groups for name in self._grouped]

    def total(self, total: Total) -> Vector:
        """A sum for every combination of groups, for one record: an axis for each attribute."""
        if total not in self._totals:
            self._totals[total] = self._compute(total)
        return self._totals[total]

    def _compute(self, total: Total) -> Vector:
        query, constant = self.make_query(total)
        return (constant * self._ask(query)).reshape(self.shape)

    def make_query(self, total: Total) -> tuple[Kron, float]:
        """The factored query of a sum, and a constant that its answers are multiplied by."""
        parts, constant = self._parts(total)
        blocks = {name: self.attribute(name).block(part) for name, part in parts.items()}
        return Kron(blocks), constant

    def bound(self, total: Total, extreme: Extreme) -> Vector | None:
        """The least or largest sum for every combination of groups, for one record."""
        parts, constant = self._parts(total)
        blocks = {n: self.attribute(n).extreme_block(part, extreme) for n, part in parts.items()}
        known = {name: block for name, block in blocks.items() if block is not None}
        if len(known) < len(blocks) or constant < 0.0:
            return None
        return (constant * self._ask(Kron(known))).reshape(self.shape)

    def find_extent(self, total: Total) -> tuple[float, float]:
        """The least and the largest number that a sum of a column adds up."""
        parts, _ = self._parts(total)
        name = self._question.attributes(total.factors[0])[0]
        return self.attribute(name).extent(parts[name])

    def _parts(self, total: Total) -> tuple[dict[str, Total], float]:
        """A total as one for each attribute, and a constant that they are multiplied by."""
        question, constant = self._question, 1.0
        parts: dict[str, Total] = {name: Total() for name in self._grouped}
        for field in ("factors", "known", "conditions"):
            for node in getattr(total, field):
                names = question.attributes(node)
                if names:
                    part = parts.get(names[0], Total())
                    nodes: dict[str, Any] = {field: (*getattr(part, field), node)}
                    parts[names[0]] = part._replace(**nodes)
                else:
                    constant *= _constant(field, write(node), question)
        outside = total.counts_outside
        return {n: part._replace(counts_outside=outside) for n, part in parts.items()}, constant

    def table(self) -> GroupTable:
        """The groups that have records, with their keys and aggregates."""
        question = self._question
        shares = self.total(Total((), (), question.conditions)).reshape(-1)
        indices = np.flatnonzero(shares > MIN_SHARE) if question.keys else np.zeros(1, np.intp)
        axes = np.unravel_index(indices, [1, *self.shape])[1:]
        columns = [self._key(node, axes) for node in question.keys]
        aggregates = [self._aggregate(each, indices) for each in question.aggregates.values()]
        bounds = [self._bounds(each, indices) for each in question.aggregates.values()]
        return GroupTable(columns, aggregates, [], len(indices), bounds, indices)

    def _bounds(self, aggregate: Aggregate, indices: NDArray[np.intp]) -> Bounds | None:
        if not any(find_bin_notes(self._question)):
            return None
        bounds = find_bounds_of(aggregate, self.bound, self.find_extent, self.n_records)
        return bounds and Bounds(*(each.reshape(-1)[indices] for each in bounds))

    def _key(self, node: Expr, axes: Sequence[NDArray[np.intp]]) -> pa.ChunkedArray:
        name = self._question.attributes(node)[0]
        axis = axes[list(self._grouped).index(name)]
        index = next(i for i, each in enumerate(self._grouped[name]) if each is node)
        return self.attribute(name).keys[index].take(axis)

    def _aggregate(self, aggregate: Aggregate, indices: NDArray[np.intp]) -> pa.Array:
        values, known = compute(aggregate, self.split, self.total, self.n_records)
        return known_column(round_off(values.reshape(-1)[indices]), known.reshape(-1)[indices])

    def split(self, node: Expr) -> list[Term]:
        """An expression as a sum of products of expressions of one attribute each."""
        return expand(node, lambda part: len(self._question.attributes(part)))


def _constant(field: str, text: str, question: Question) -> float:
    """What an expression without columns makes of a sum: a factor."""
    value = question.evaluate(f"CAST({text} AS DOUBLE)" if field == "factors" else text)
    if field == "known":
        return float(value is not None)
    return 0.0 if value is None else float(value) if field == "factors" else float(bool(value))
