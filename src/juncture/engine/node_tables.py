"""The probabilities of every maximal clique, from the messages of one finished oracle call.

The table of a maximal clique is the product of the potentials that it hosts, of the messages from
its children and of the one from its parent, scaled to add up to one. After a call all of these lie
in the workspace, and only the table itself is new: it needs one number for each cell. To measure
the clique instead, by potentials of zero on it, needs eight.

Products are formed by adding logarithms, so nothing vanishes that matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from juncture.tables.layout import Vector

# NumPy adds fast if the innermost loop is at least this long in both operands.
_LONG_LOOP = 64
# Tables with fewer cells are not worth adding in slices.
_SMALL_TABLE = 1 << 16
# Small logarithms are added to each other first, if that leaves a table this much smaller.
_MERGED_SHARE = 4


def lift(
    values: Vector, axes: Sequence[int], clique: Sequence[int], sizes: Sequence[int]
) -> Vector:
    """A table with an axis for each attribute of the clique, of length one where it has none."""
    table = values.reshape([sizes[axis] for axis in axes])
    order = sorted(range(len(axes)), key=lambda index: clique.index(axes[int(index)]))
    table = table.transpose(order)
    return table.reshape([sizes[name] if name in axes else 1 for name in clique])


def normalise_product(shape: Sequence[int], logarithms: Iterable[Vector]) -> Vector:
    """The table proportional to the product of factors, given by logarithms, that adds up to one.

    Each factor has as many axes as the table; those of length one are repeated. All records
    possible in none of them are excluded; at least one record must be left.
    """
    table = np.zeros(shape)
    for part in _merge_small(table.size, logarithms):
        _add(table, part)
    table -= table.max()
    np.exp(table, out=table)
    table /= table.sum()
    return table


def _merge_small(cells: int, logarithms: Iterable[Vector]) -> list[Vector]:
    """The same factors, fewer of them: small ones added while their sum stays small."""
    merged: list[Vector] = []
    for part in sorted(logarithms, key=lambda part: part.size):
        if merged:
            joined = math.prod(np.broadcast_shapes(merged[-1].shape, part.shape))
            if joined * _MERGED_SHARE <= cells:
                merged[-1] = merged[-1] + part
                continue
        merged.append(part)
    return merged


def _add(table: Vector, part: Vector) -> None:
    """Add a factor in place, a slice at a time, so that no copy is as large as the table."""
    if table.size < _SMALL_TABLE:
        table += part
        return
    repeated = _widen(part[0], table.shape[1:]) if len(part) == 1 else None
    for index in range(len(table)):
        table[index] += _widen(part[index], table.shape[1:]) if repeated is None else repeated


def _widen(part: Vector, shape: Sequence[int]) -> Vector:
    """The factor repeated along its last axes: loops over two or three values are slow."""
    kept = len(shape)
    while kept and math.prod(shape[kept:]) < _LONG_LOOP:
        kept -= 1
    return np.ascontiguousarray(np.broadcast_to(part, [*part.shape[:kept], *shape[kept:]]))
