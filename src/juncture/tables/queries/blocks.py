"""Linear queries on one attribute: the building blocks of every factored query.

A block acts on the last axis of an array. `Prefix()` does not know the attribute's size until it
meets a table, so a block is a description; each method takes the size it needs. Blocks never
form their matrix to be applied: a prefix costs a cumulative sum.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.tables import spectrum

Array = NDArray[np.float64]

# Columns of a matrix that is known only by what it does are looked at this many at a time.
_CHUNK = 256


class Block(ABC):
    """A matrix over the values of one attribute, applied along the last axis."""

    @abstractmethod
    def n_rows(self, size: int) -> int:
        """The number of answers; refuses sizes that the block does not fit."""

    @abstractmethod
    def apply(self, table: Array) -> Array:
        """The answers: the last axis of values becomes one of answers."""

    @abstractmethod
    def adjoint(self, answers: Array, size: int) -> Array:
        """The transposed matrix: the last axis of answers becomes one of values."""

    def column_sums(self, size: int) -> Array:
        """The sum of absolute entries in each column: what one record can change in L1."""
        return np.concatenate([np.abs(chunk).sum(axis=-1) for chunk in self._columns(size)])

    def column_squares(self, size: int) -> Array:
        """The sum of squared entries in each column."""
        return np.concatenate([(chunk**2).sum(axis=-1) for chunk in self._columns(size)])

    def largest_eigenvalue(self, size: int) -> float:
        """Of the transposed matrix times the matrix."""
        return spectrum.largest_eigenvalue(lambda x: self.adjoint(self.apply(x), size), size)

    def total_weights(self, size: int) -> Array | None:
        """The smallest weights on the answers that add up to the total, if there are any."""
        rows = self.n_rows(size)
        return spectrum.total_weights(self.apply, lambda y: self.adjoint(y, size), rows, size)

    def matrix(self, size: int) -> Array:
        """The matrix itself, answers by values: for small sizes and for tests."""
        return self.apply(np.eye(size)).T

    def _columns(self, size: int) -> Iterator[Array]:
        """The columns of the matrix as rows, a few at a time."""
        for start in range(0, size, _CHUNK):
            stop = min(size, start + _CHUNK)
            yield self.apply(np.eye(stop - start, size, start))


@dataclass(frozen=True)
class Identity(Block):
    """Every value's own count."""

    def n_rows(self, size: int) -> int:
        """As many answers as values."""
        return size

    def apply(self, table: Array) -> Array:
        """The table as it is."""
        return table

    def adjoint(self, answers: Array, size: int) -> Array:  # noqa: ARG002
        """The answers as they are."""
        return answers

    def column_sums(self, size: int) -> Array:
        """One each."""
        return np.ones(size)

    column_squares = column_sums

    def largest_eigenvalue(self, size: int) -> float:  # noqa: ARG002
        """One."""
        return 1.0

    def total_weights(self, size: int) -> Array:
        """One each."""
        return np.ones(size)


@dataclass(frozen=True)
class Prefix(Block):
    """How many records have this value or a lower one: the cumulative distribution."""

    def n_rows(self, size: int) -> int:
        """As many answers as values."""
        return size

    def apply(self, table: Array) -> Array:
        """Cumulative sums."""
        return np.cumsum(table, axis=-1)

    def adjoint(self, answers: Array, size: int) -> Array:  # noqa: ARG002
        """Cumulative sums from the end."""
        return np.asarray(np.cumsum(answers[..., ::-1], axis=-1)[..., ::-1])

    def column_sums(self, size: int) -> Array:
        """A value is counted in its own answer and all later ones."""
        return np.arange(size, 0.0, -1.0)

    column_squares = column_sums

    def largest_eigenvalue(self, size: int) -> float:
        """In closed form."""
        return 1.0 / (4.0 * math.sin(math.pi / (4 * size + 2)) ** 2)

    def total_weights(self, size: int) -> Array:
        """The last answer is the total, and the matrix has an inverse, so nothing else is."""
        return np.asarray(np.eye(size)[-1])


@dataclass(frozen=True)
class AllRanges(Block):
    """The count between every two values, both included."""

    def n_rows(self, size: int) -> int:
        """One answer per pair of a lower and an upper end."""
        return size * (size + 1) // 2

    def apply(self, table: Array) -> Array:
        """Differences of cumulative sums."""
        low, high = np.triu_indices(table.shape[-1])
        sums = np.cumsum(table, axis=-1)
        before = np.concatenate([np.zeros_like(sums[..., :1]), sums], axis=-1)
        return np.asarray(before[..., high + 1] - before[..., low])

    def adjoint(self, answers: Array, size: int) -> Array:
        """Each value receives the answers that have begun, less those that have ended."""
        low, high = np.triu_indices(size)
        square = np.zeros((*answers.shape[:-1], size, size))
        square[..., low, high] = answers
        begun, ended = square.sum(axis=-1).cumsum(axis=-1), square.sum(axis=-2)
        return np.asarray(begun - (ended.cumsum(axis=-1) - ended))

    def column_sums(self, size: int) -> Array:
        """Lower ends up to the value times upper ends from it on."""
        positions = np.arange(size, dtype=np.float64)
        return np.asarray((positions + 1) * (size - positions))

    column_squares = column_sums


class OneRow(Block):
    """One answer: a weighted sum over the values."""

    @abstractmethod
    def weights(self, size: int) -> Array:
        """The only row of the matrix; refuses sizes that the block does not fit."""

    @abstractmethod
    def check_size(self, size: int) -> None:
        """Raise an error if the block does not fit the size; makes no array of that size."""

    def n_rows(self, size: int) -> int:
        """One."""
        self.check_size(size)
        return 1

    def apply(self, table: Array) -> Array:
        """The weighted sum."""
        return np.asarray(table @ self.weights(table.shape[-1]))[..., None]

    def adjoint(self, answers: Array, size: int) -> Array:
        """The weights, times the answer."""
        return np.asarray(answers * self.weights(size))

    def column_sums(self, size: int) -> Array:
        """The absolute weights."""
        return np.abs(self.weights(size))

    def column_squares(self, size: int) -> Array:
        """The squared weights."""
        return np.asarray(self.weights(size) ** 2)

    def largest_eigenvalue(self, size: int) -> float:
        """The squared length of the weights."""
        return float(self.column_squares(size).sum())

    def total_weights(self, size: int) -> Array | None:
        """Only a constant row knows the total."""
        weights = self.weights(size)
        constant = bool(np.all(weights == weights[0])) and weights[0] != 0
        return np.array([1.0 / weights[0]]) if constant else None


@dataclass(frozen=True)
class Total(OneRow):
    """All values together: marginalise the attribute out."""

    def check_size(self, size: int) -> None:
        """Fits every size."""

    def weights(self, size: int) -> Array:
        """Ones."""
        return np.ones(size)


@dataclass(frozen=True)
class Subset(OneRow):
    """The count of several values together."""

    codes: tuple[int, ...]

    def __init__(self, codes: Iterable[int]) -> None:
        object.__setattr__(self, "codes", tuple(sorted({int(code) for code in codes})))

    def check_size(self, size: int) -> None:
        """The codes must be among those of the size."""
        if not self.codes or self.codes[0] < 0 or self.codes[-1] >= size:
            raise InvalidInput(
                f"`codes` must be some of 0 to {size - 1}; got {list(self.codes)}. "
                "Check them against the attribute's size."
            )

    def weights(self, size: int) -> Array:
        """Ones at the codes."""
        self.check_size(size)
        row = np.zeros(size)
        row[list(self.codes)] = 1.0
        return row


class Point(Subset):
    """The count of one value."""

    def __init__(self, code: int) -> None:
        super().__init__([code])


class Range(Subset):
    """The count from a lower value to a higher one, both included."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__(range(low, high + 1))


@dataclass(frozen=True)
class WeightedSum(OneRow):
    """The sum of a number over the records (divide by the total for its mean).

    Values default to the codes 0, 1, ...
    """

    values: tuple[float, ...] | None = None

    def check_size(self, size: int) -> None:
        """There must be a number for each code."""
        _check_numbers(self.values, size)

    def weights(self, size: int) -> Array:
        """The numbers themselves."""
        return _numbers(self.values, size)


class Dense(Block):
    """A block that has its matrix at hand."""

    @abstractmethod
    def matrix(self, size: int) -> Array:
        """The matrix; refuses sizes that the block does not fit."""

    def n_rows(self, size: int) -> int:
        """The rows of the matrix."""
        return len(self.matrix(size))

    def apply(self, table: Array) -> Array:
        """The matrix times the values."""
        return np.asarray(table @ self.matrix(table.shape[-1]).T)

    def adjoint(self, answers: Array, size: int) -> Array:
        """The transposed matrix times the answers."""
        return np.asarray(answers @ self.matrix(size))


@dataclass(frozen=True)
class Moments(Dense):
    """The sums of the first few powers of a number over the records."""

    count: int
    values: tuple[float, ...] | None = None

    def n_rows(self, size: int) -> int:
        """One for each power."""
        _check_numbers(self.values, size)
        return self.count

    def matrix(self, size: int) -> Array:
        """One row per power, from the first."""
        powers = np.arange(1, self.count + 1)[:, None]
        return np.asarray(_numbers(self.values, size) ** powers)


@dataclass(frozen=True)
class Buckets(Block):
    """The domain compressed: each value belongs to a bucket, and each bucket has a count."""

    assignment: tuple[int, ...]

    def __init__(self, assignment: Iterable[int]) -> None:
        object.__setattr__(self, "assignment", tuple(int(bucket) for bucket in assignment))
        if set(self.assignment) != set(range(len(set(self.assignment)))):
            raise InvalidInput(
                "`assignment` must use the buckets 0, 1, ... without a gap; got "
                f"{sorted(set(self.assignment))}. Renumber them."
            )

    def n_rows(self, size: int) -> int:
        """The number of buckets."""
        self._check_size(size)
        return max(self.assignment) + 1

    def apply(self, table: Array) -> Array:
        """Sums within the buckets."""
        self._check_size(table.shape[-1])
        order = np.argsort(self.assignment, kind="stable")
        starts = np.searchsorted(np.sort(self.assignment), np.arange(max(self.assignment) + 1))
        return np.add.reduceat(table[..., order], starts, axis=-1)

    def adjoint(self, answers: Array, size: int) -> Array:
        """Each value receives its bucket's answer."""
        self._check_size(size)
        return np.asarray(answers[..., list(self.assignment)])

    def column_sums(self, size: int) -> Array:
        """One each."""
        return np.ones(size)

    column_squares = column_sums

    def largest_eigenvalue(self, size: int) -> float:
        """The size of the largest bucket."""
        self._check_size(size)
        return float(np.bincount(self.assignment).max())

    def total_weights(self, size: int) -> Array:
        """One each."""
        return np.ones(self.n_rows(size))

    def _check_size(self, size: int) -> None:
        if len(self.assignment) != size:
            raise InvalidInput(
                f"`assignment` must have one bucket for each of the {size} values; "
                f"got {len(self.assignment)}. Check it against the attribute's size."
            )


@dataclass(frozen=True, eq=False)
class Matrix(Block):
    """Any matrix: an array, a SciPy sparse one, or whatever has `shape`, `@` and `.T`."""

    entries: Any

    def __post_init__(self) -> None:
        if not hasattr(self.entries, "shape"):
            object.__setattr__(self, "entries", np.asarray(self.entries, dtype=np.float64))
        shape = self.entries.shape
        if len(shape) != 2 or 0 in shape:
            raise InvalidInput(
                f"`entries` must be a matrix with at least one row; got shape {shape}. "
                "Put one query in each row and one value in each column."
            )

    def __repr__(self) -> str:
        return "Matrix({} by {})".format(*self.entries.shape)

    def n_rows(self, size: int) -> int:
        """The rows of the matrix."""
        rows, columns = self.entries.shape
        if columns != size:
            raise InvalidInput(
                f"`entries` must have one column for each of the {size} values; got {columns}. "
                "Check the matrix against the size of the attribute or clique."
            )
        return int(rows)

    def apply(self, table: Array) -> Array:
        """The matrix times the values."""
        return self._multiply(self.entries, table)

    def adjoint(self, answers: Array, size: int) -> Array:  # noqa: ARG002
        """The transposed matrix times the answers."""
        return self._multiply(self.entries.T, answers)

    @staticmethod
    def _multiply(matrix: Any, array: Array) -> Array:  # noqa: ANN401
        columns = array.reshape(-1, array.shape[-1]).T
        product = np.asarray(matrix @ columns)
        return product.T.reshape(*array.shape[:-1], -1)


def _numbers(values: tuple[float, ...] | None, size: int) -> Array:
    _check_numbers(values, size)
    return np.arange(float(size)) if values is None else np.asarray(values, dtype=np.float64)


def _check_numbers(values: tuple[float, ...] | None, size: int) -> None:
    if values is not None and not (len(values) == size and np.isfinite(values).all()):
        raise InvalidInput(
            f"`values` must be {size} finite numbers, one for each code; got {len(values)}. "
            "Check them against the attribute's size."
        )
