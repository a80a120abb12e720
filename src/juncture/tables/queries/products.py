"""Linear queries on the table of a clique.

A query is a description without sizes; `bind` fits it to a clique's domain and gives an
operator that can be applied. A query is one of these:

- a block, which acts on the clique's cells in their order (on a single attribute, on its values);
- `Kron`, a block for each attribute; attributes it leaves out are summed out;
- `Stack`, several queries on the same clique, one after another;
- `Scaled`, a number times a query.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.tables import spectrum
from juncture.tables.domain import Domain
from juncture.tables.queries.blocks import Block, Total

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Kron:
    """A product of blocks, one for each attribute; an attribute without a block is summed out.

    >>> from juncture.tables.queries.blocks import Identity, Prefix
    >>> query = Kron({"age": Prefix(), "sex": Identity()})
    >>> bind(query, Domain({"age": 2, "sex": 2})).apply(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([1., 2., 4., 6.])
    """

    blocks: Mapping[str, Block]


@dataclass(frozen=True, eq=False)
class Stack:
    """Several queries on one clique, their answers one after another.

    >>> from juncture.tables.queries.blocks import Identity
    >>> bind(Stack([Total(), Identity()]), Domain({"sex": 2})).apply(np.array([3.0, 4.0]))
    array([7., 3., 4.])
    """

    queries: Sequence[Query]


@dataclass(frozen=True, eq=False)
class Scaled:
    """A query whose answers are multiplied by a weight.

    >>> bind(Scaled(0.5, Total()), Domain({"sex": 2})).apply(np.array([3.0, 4.0]))
    array([3.5])
    """

    weight: float
    query: Query

    def __post_init__(self) -> None:
        if not math.isfinite(self.weight) or self.weight == 0:
            raise InvalidInput(
                f"`weight` must be finite and not zero; got {self.weight}. "
                "Leave a query out instead of giving it no weight."
            )


Query = Block | Kron | Stack | Scaled
"""A linear query on the table of a clique."""


class Operator(ABC):
    """A query bound to the domain of a clique."""

    shape: tuple[int, ...]
    """The shape of the tables that it takes."""
    n_rows: int
    """The number of answers that it gives."""

    @abstractmethod
    def apply(self, table: Array) -> Array:
        """The answers of a table, as a flat vector."""

    @abstractmethod
    def adjoint(self, answers: Array) -> Array:
        """The transposed map: a table from a flat vector of answers."""

    @abstractmethod
    def column_sums(self) -> Array:
        """For each cell, how much one record in it changes the answers, in L1."""

    @abstractmethod
    def column_squares(self) -> Array:
        """For each cell, how much one record in it changes the answers, in squared L2."""

    @cached_property
    def l1_sensitivity(self) -> float:
        """The most that adding or removing one record changes the answers, in L1."""
        return float(self.column_sums().max())

    @cached_property
    def l2_sensitivity(self) -> float:
        """The most that adding or removing one record changes the answers, in L2."""
        return math.sqrt(float(self.column_squares().max()))

    @cached_property
    def largest_eigenvalue(self) -> float:
        """The largest eigenvalue of the query's transposed matrix times the matrix."""
        size = math.prod(self.shape)
        return spectrum.largest_eigenvalue(lambda x: self.adjoint_flat(self.apply_flat(x)), size)

    @cached_property
    def total_weights(self) -> Array | None:
        """The smallest weights on the answers that give the total, or None if none do."""
        size = math.prod(self.shape)
        return spectrum.total_weights(self.apply_flat, self.adjoint_flat, self.n_rows, size)

    def apply_flat(self, table: Array) -> Array:
        """`apply` on a flat table."""
        return self.apply(table.reshape(self.shape))

    def adjoint_flat(self, answers: Array) -> Array:
        """`adjoint` as a flat table."""
        return self.adjoint(answers).reshape(-1)


def bind(query: Query, domain: Domain) -> Operator:
    """The operator of a query on a clique with this domain, in this order of attributes."""
    match query:
        case Block():
            return _Product([query], (domain.size,), domain.shape)
        case Kron():
            unknown = [name for name in query.blocks if name not in domain]
            if unknown:
                raise InvalidInput(
                    f"`query` must be over attributes of the clique {domain.attributes}; "
                    f"got {unknown}. Add them to the clique or take them out of the query."
                )
            blocks = [query.blocks.get(name, Total()) for name in domain]
            return _Product(blocks, domain.shape, domain.shape)
        case Stack():
            return _Stacked([bind(each, domain) for each in query.queries])
        case Scaled():
            return _Weighted(query.weight, bind(query.query, domain))


BlockList = tuple[float, Sequence[Block], tuple[int, ...]]


def list_blocks(operator: Operator) -> list[BlockList]:
    """The products that an operator consists of: weight, blocks, and the sizes of their axes."""
    match operator:
        case _Product():
            return [(1.0, operator.blocks, operator.sizes)]
        case _Stacked():
            return [each for part in operator.operators for each in list_blocks(part)]
        case _Weighted():
            parts = list_blocks(operator.inner)
            return [(operator.weight * weight, blocks, sizes) for weight, blocks, sizes in parts]
    raise TypeError(f"an operator of its own kind: {operator!r}")


class _Product(Operator):
    """Blocks along the axes of a table; sizes may join several axes of the table into one."""

    def __init__(
        self, blocks: Sequence[Block], sizes: tuple[int, ...], shape: tuple[int, ...]
    ) -> None:
        self.shape = shape
        self.blocks, self.sizes = blocks, sizes
        self._rows = tuple(b.n_rows(n) for b, n in zip(blocks, sizes, strict=True))
        self.n_rows = math.prod(self._rows)

    def apply(self, table: Array) -> Array:
        answers = table.reshape(self.sizes)
        for axis, block in enumerate(self.blocks):
            answers = block.apply(answers.swapaxes(axis, -1)).swapaxes(axis, -1)
        return answers.reshape(-1)

    def adjoint(self, answers: Array) -> Array:
        table = answers.reshape(self._rows)
        for axis, (block, size) in enumerate(zip(self.blocks, self.sizes, strict=True)):
            table = block.adjoint(table.swapaxes(axis, -1), size).swapaxes(axis, -1)
        return table.reshape(self.shape)

    def column_sums(self) -> Array:
        return self._outer([b.column_sums(n) for b, n in self._pairs()]).reshape(self.shape)

    def column_squares(self) -> Array:
        return self._outer([b.column_squares(n) for b, n in self._pairs()]).reshape(self.shape)

    @cached_property
    def l1_sensitivity(self) -> float:
        return math.prod(float(b.column_sums(n).max()) for b, n in self._pairs())

    @cached_property
    def l2_sensitivity(self) -> float:
        return math.sqrt(math.prod(float(b.column_squares(n).max()) for b, n in self._pairs()))

    @cached_property
    def largest_eigenvalue(self) -> float:
        return math.prod(block.largest_eigenvalue(size) for block, size in self._pairs())

    @cached_property
    def total_weights(self) -> Array | None:
        weights = [block.total_weights(size) for block, size in self._pairs()]
        known = [w for w in weights if w is not None]
        return self._outer(known).reshape(-1) if len(known) == len(weights) else None

    def _pairs(self) -> list[tuple[Block, int]]:
        return list(zip(self.blocks, self.sizes, strict=True))

    @staticmethod
    def _outer(vectors: list[Array]) -> Array:
        result = np.ones(())
        for vector in vectors:
            result = np.multiply.outer(result, vector)
        return result


class _Stacked(Operator):
    """Operators one after another on the same table."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        if not operators:
            raise InvalidInput("`queries` must not be empty; got none.")
        self.shape = operators[0].shape
        self.n_rows = sum(each.n_rows for each in operators)
        self.operators = operators
        self._ends = np.cumsum([each.n_rows for each in operators])[:-1]

    def apply(self, table: Array) -> Array:
        return np.concatenate([each.apply(table) for each in self.operators])

    def adjoint(self, answers: Array) -> Array:
        pieces = zip(self.operators, np.split(answers, self._ends), strict=True)
        return np.asarray(sum(each.adjoint(piece) for each, piece in pieces))

    def column_sums(self) -> Array:
        return np.asarray(sum(each.column_sums() for each in self.operators))

    def column_squares(self) -> Array:
        return np.asarray(sum(each.column_squares() for each in self.operators))


class _Weighted(Operator):
    """An operator with its answers multiplied by a number."""

    def __init__(self, weight: float, inner: Operator) -> None:
        self.shape, self.n_rows = inner.shape, inner.n_rows
        self.weight, self.inner = weight, inner

    def apply(self, table: Array) -> Array:
        return self.weight * self.inner.apply(table)

    def adjoint(self, answers: Array) -> Array:
        return self.weight * self.inner.adjoint(answers)

    def column_sums(self) -> Array:
        return abs(self.weight) * self.inner.column_sums()

    def column_squares(self) -> Array:
        return self.weight**2 * self.inner.column_squares()

    @cached_property
    def largest_eigenvalue(self) -> float:
        return self.weight**2 * self.inner.largest_eigenvalue

    @cached_property
    def total_weights(self) -> Array | None:
        weights = self.inner.total_weights
        return None if weights is None else weights / self.weight
