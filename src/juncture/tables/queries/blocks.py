"""Linear queries on one attribute: the building blocks of every factored query.

A block acts on the last axis of an array. `Prefix()` does not know the attribute's size until it
meets a table, so a block is a description; each method takes the size it needs. Applying a block
never forms its matrix: a prefix costs a cumulative sum.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.tables import spectrum

Array = NDArray[np.float64]

# This many columns are formed at a time of a matrix that is given only as a function.
_CHUNK = 256
# Squares of larger entries overflow.
_MAX_ENTRY = 1e100


class Block(ABC):
    """A matrix over the values of one attribute, applied along the last axis.

    To make a block of your own, define `n_rows`, `apply` and `adjoint`; the other methods follow
    from them, and may be replaced by faster ones.

    >>> Prefix().matrix(3)
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """

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
        """The largest eigenvalue of the transposed matrix times the matrix."""
        return spectrum.largest_eigenvalue(lambda x: self.adjoint(self.apply(x), size), size)

    def total_weights(self, size: int) -> Array | None:
        """The smallest weights on the answers that give the total, or None if none do."""
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
    """The count of every value.

    >>> Identity().apply(np.array([3.0, 1.0, 2.0]))
    array([3., 1., 2.])
    """

    def n_rows(self, size: int) -> int:
        """One answer for each value."""
        return size

    def apply(self, table: Array) -> Array:
        """The table itself."""
        return table

    def adjoint(self, answers: Array, size: int) -> Array:  # noqa: ARG002
        """The answers themselves."""
        return answers

    def column_sums(self, size: int) -> Array:
        """Each value is in one answer."""
        return np.ones(size)

    column_squares = column_sums

    def largest_eigenvalue(self, size: int) -> float:  # noqa: ARG002
        """The eigenvalues are all 1."""
        return 1.0

    def total_weights(self, size: int) -> Array:
        """The answers add up to the total."""
        return np.ones(size)


@dataclass(frozen=True)
class Prefix(Block):
    """How many records have each value or a lower one: the cumulative distribution.

    >>> Prefix().apply(np.array([3.0, 1.0, 2.0]))
    array([3., 4., 6.])
    """

    def n_rows(self, size: int) -> int:
        """One answer for each value."""
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
        """A closed form."""
        return 1.0 / (4.0 * math.sin(math.pi / (4 * size + 2)) ** 2)

    def total_weights(self, size: int) -> Array:
        """The last answer is the total; the matrix has an inverse, so no other weights give it."""
        return np.asarray(np.eye(size)[-1])


@dataclass(frozen=True)
class AllRanges(Block):
    """The count between every two values, both included.

    The ranges are ordered by their lower end, then by their upper end.

    >>> AllRanges().apply(np.array([3.0, 1.0, 2.0]))
    array([3., 4., 6., 1., 3., 2.])
    """

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
        """A value is in every range that begins at or below it and ends at or above it."""
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
        """One answer."""
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
        """Only a constant row gives the total."""
        weights = self.weights(size)
        constant = bool(np.all(weights == weights[0])) and weights[0] != 0
        return np.array([1.0 / weights[0]]) if constant else None


@dataclass(frozen=True)
class Total(OneRow):
    """The count of all values together: marginalises the attribute out.

    >>> Total().apply(np.array([3.0, 1.0, 2.0]))
    array([6.])
    """

    def check_size(self, size: int) -> None:
        """Fits every size."""

    def weights(self, size: int) -> Array:
        """A one for each value."""
        return np.ones(size)


@dataclass(frozen=True)
class Subset(OneRow):
    """The count of several values together, given by their codes.

    >>> Subset([0, 2]).apply(np.array([3.0, 1.0, 2.0]))
    array([5.])
    """

    codes: tuple[int, ...]

    def __init__(self, codes: Iterable[int]) -> None:
        object.__setattr__(self, "codes", tuple(sorted({int(code) for code in codes})))

    def check_size(self, size: int) -> None:
        """The codes must be below the size."""
        if not self.codes or self.codes[0] < 0 or self.codes[-1] >= size:
            raise InvalidInput(
                f"`codes` must be one or more of 0 to {size - 1}; got {list(self.codes)}."
            )

    def weights(self, size: int) -> Array:
        """A one at each of the codes."""
        self.check_size(size)
        row = np.zeros(size)
        row[list(self.codes)] = 1.0
        return row


class Point(Subset):
    """The count of one value, given by its code.

    >>> Point(2).apply(np.array([3.0, 1.0, 2.0]))
    array([2.])
    """

    def __init__(self, code: int) -> None:
        super().__init__([code])


class Range(Subset):
    """The count from a lower code to a higher one, both included.

    >>> Range(0, 1).apply(np.array([3.0, 1.0, 2.0]))
    array([4.])
    """

    def __init__(self, low: int, high: int) -> None:
        super().__init__(range(low, high + 1))


@dataclass(frozen=True)
class WeightedSum(OneRow):
    """The sum of a number over the records (divide by the total for its mean).

    `values` are the numbers that the codes stand for; by default, the codes 0, 1, ... themselves.

    >>> WeightedSum((10, 20, 30)).apply(np.array([3.0, 1.0, 2.0]))
    array([110.])
    """

    values: tuple[float, ...] | None = None

    def check_size(self, size: int) -> None:
        """There must be a number for each code."""
        _check_numbers(self.values, size)

    def weights(self, size: int) -> Array:
        """The numbers themselves."""
        return _numbers(self.values, size)


class Dense(Block):
    """A block that is defined by its matrix."""

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
    """The sums of the first `count` powers of a number over the records.

    `values` are the numbers that the codes stand for; by default, the codes 0, 1, ... themselves.

    >>> Moments(2, (10, 20)).apply(np.array([3.0, 1.0]))
    array([ 50., 700.])
    """

    count: int
    values: tuple[float, ...] | None = None

    def n_rows(self, size: int) -> int:
        """One answer for each power."""
        _check_numbers(self.values, size)
        return self.count

    def matrix(self, size: int) -> Array:
        """One row per power, from the first."""
        powers = np.arange(1, self.count + 1)[:, None]
        return np.asarray(_numbers(self.values, size) ** powers)


@dataclass(frozen=True)
class Buckets(Block):
    """The counts of groups of values: `assignment` gives the bucket of each value.

    >>> Buckets([0, 1, 0]).apply(np.array([3.0, 1.0, 2.0]))
    array([5., 1.])
    """

    assignment: tuple[int, ...]

    def __init__(self, assignment: Iterable[int]) -> None:
        object.__setattr__(self, "assignment", tuple(int(bucket) for bucket in assignment))
        if set(self.assignment) != set(range(len(set(self.assignment)))):
            raise InvalidInput(
                "`assignment` must use the buckets 0, 1, ... without a gap; got "
                f"{sorted(set(self.assignment))}."
            )

    def n_rows(self, size: int) -> int:
        """The number of buckets."""
        self._check_size(size)
        return max(self.assignment) + 1

    def apply(self, table: Array) -> Array:
        """Sums within the buckets."""
        self._check_size(table.shape[-1])
        order, starts = self._sorted
        return np.add.reduceat(table[..., order], starts, axis=-1)

    def adjoint(self, answers: Array, size: int) -> Array:
        """Each value receives its bucket's answer."""
        self._check_size(size)
        return np.asarray(answers[..., self._codes])

    def column_sums(self, size: int) -> Array:
        """Each value is in one bucket."""
        return np.ones(size)

    column_squares = column_sums

    def largest_eigenvalue(self, size: int) -> float:
        """The size of the largest bucket."""
        self._check_size(size)
        return float(np.bincount(self.assignment).max())

    def total_weights(self, size: int) -> Array:
        """The buckets add up to the total."""
        return np.ones(self.n_rows(size))

    @cached_property
    def _codes(self) -> NDArray[np.int64]:
        return np.array(self.assignment, dtype=np.int64)

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The values in the order of their buckets, and where each bucket begins."""
        order = np.argsort(self._codes, kind="stable")
        starts = np.searchsorted(self._codes[order], np.arange(max(self.assignment) + 1))
        return order, starts

    def _check_size(self, size: int) -> None:
        if len(self.assignment) != size:
            raise InvalidInput(
                f"`assignment` must have one bucket for each of the {size} values; "
                f"got {len(self.assignment)}."
            )


def _read_matrix(entries: Any) -> Array:  # noqa: ANN401
    try:
        return np.asarray(entries, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            "`entries` must be numbers in rows of equal length; got something else. Put one query "
            "in each row and one value in each column."
        ) from None


def _stored(entries: Any) -> Array | None:  # noqa: ANN401
    """The numbers that a sparse matrix stores; None for an object that does not show them."""
    data = getattr(entries, "data", None)
    return data if isinstance(data, np.ndarray) and data.dtype.kind in "fiub" else None


@dataclass(frozen=True, eq=False)
class Matrix(Block):
    """Any matrix: an array, a SciPy sparse one, or any object with `shape`, `@` and `.T`.

    >>> Matrix([[1, 0, -1]]).apply(np.array([3.0, 1.0, 2.0]))
    array([1.])
    """

    entries: Any

    def __post_init__(self) -> None:
        if not hasattr(self.entries, "shape"):
            object.__setattr__(self, "entries", _read_matrix(self.entries))
        shape = self.entries.shape
        if len(shape) != 2 or 0 in shape:
            raise InvalidInput(
                f"`entries` must be a matrix with at least one row; got shape {shape}. "
                "Put one query in each row and one value in each column."
            )
        # Those of a sparse matrix are in `data`; an object that only multiplies shows none.
        stored = self.entries if isinstance(self.entries, np.ndarray) else _stored(self.entries)
        if stored is not None and not (np.abs(stored) <= _MAX_ENTRY).all():
            raise InvalidInput(
                f"`entries` must be finite numbers of at most {_MAX_ENTRY:g}; got others. Look for "
                "a division by zero or a missing value in what produced them."
            )

    def __repr__(self) -> str:
        return "Matrix({} by {})".format(*self.entries.shape)

    def n_rows(self, size: int) -> int:
        """The rows of the matrix."""
        rows, columns = self.entries.shape
        if columns != size:
            raise InvalidInput(
                f"`entries` must have one column for each of the {size} values; got {columns}."
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
            f"`values` must be {size} finite numbers, one for each code; got {len(values)}."
        )
