"""What a query says about one attribute: its codes in pieces, their groups, and the block of both.

An attribute whose codes stand for intervals is cut at the numbers that the query compares it with,
so that a condition counts the right share of an interval, and a sum takes the middle of that share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from juncture.errors import InvalidInput
from juncture.model.sql.scalar import Expr, Value, evaluate
from juncture.tables.codebook import Coding, Special
from juncture.tables.queries.blocks import Block, Buckets, Identity, Matrix

Key = tuple[Any, ...]

# A matrix with more entries than this is kept sparse: most of them are zero.
_MAX_DENSE = 1 << 20


class Piece(NamedTuple):
    """A code, or a stretch of the interval that it stands for."""

    code: int
    share: float
    value: Any


def cut_codes(coding: Coding, cuts: Sequence[float]) -> Iterator[Piece]:
    """The pieces of all codes; intervals are cut at the numbers inside them."""
    for code, meaning in enumerate(coding.meanings):
        if isinstance(meaning, tuple):
            low, high = meaning
            ends = [low, *(cut for cut in cuts if low < cut < high), high]
            for left, right in pairwise(ends):
                yield Piece(code, (right - left) / (high - low), 0.5 * (left + right))
        else:
            yield Piece(code, 1.0, meaning)


def group_block(pieces: Iterable[Piece], keys: Iterable[Key], size: int) -> Block | None:
    """The block that counts groups, if each code belongs to one group; else None.

    Such a block needs no matrix; where each code is a group of its own, it is the identity, and
    the answer is a marginal that the model may already have.
    """
    rows: dict[Key, int] = {}
    row_of_code: dict[int, int] = {}
    for piece, key in zip(pieces, keys, strict=True):
        row = rows.setdefault(key, len(rows))
        if row_of_code.setdefault(piece.code, row) != row:
            return None
    if len(rows) == size:
        return Identity()
    return Buckets(row_of_code[code] for code in range(size))


def weighted_block(
    pieces: Sequence[Piece],
    keys: Sequence[Key],
    size: int,
    factors: Sequence[Expr],
    conditions: Sequence[Expr],
    *,
    is_count: bool,
) -> Block:
    """A matrix with a row for each group and a column for each code.

    An entry is the share of the code's records that meet the conditions, times the product of the
    factors there; for a count, records where a factor is missing do not count.
    """
    rows = {key: row for row, key in enumerate(dict.fromkeys(keys))}
    entries = []
    for piece, key in zip(pieces, keys, strict=True):
        lookup = constant_lookup(piece.value)
        if all(evaluate(condition, lookup) for condition in conditions):
            values = [evaluate(factor, lookup) for factor in factors]
            outside = any(isinstance(value, Special) for value in values)
            if None not in values and (is_count or not outside):
                weight = 1.0 if is_count else math.prod(map(_as_number, values))
                entries.append((rows[key], piece.code, piece.share * weight))
    return _make_matrix(entries, (len(rows), size))


def _make_matrix(entries: Sequence[tuple[int, int, float]], shape: tuple[int, int]) -> Matrix:
    indices = np.array([entry[:2] for entry in entries], dtype=np.intp).reshape(-1, 2).T
    weights = np.array([entry[2] for entry in entries])
    if math.prod(shape) > _MAX_DENSE:
        from scipy.sparse import coo_array  # noqa: PLC0415  (slow to import)

        return Matrix(coo_array((weights, tuple(indices)), shape=shape).tocsr())
    matrix = np.zeros(shape)
    np.add.at(matrix, tuple(indices), weights)
    return Matrix(matrix)


def constant_lookup(value: Value) -> Callable[[Expr], Value]:
    """A lookup for an expression of one column, at one of the column's values."""
    return lambda _column: value


def _as_number(value: object) -> float:
    if not isinstance(value, int | float):
        raise InvalidInput(
            f"`sql` must add up numbers; got {value!r}. Count texts with COUNT(*) and WHERE."
        )
    return float(value)
