"""Tables with named axes, their products, and a store of them that stays small.

The numbers are arrays of NumPy, or such as obey its protocols: those of a card do.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from juncture.tables.domain import Clique
from juncture.tables.layout import Vector

# With at least this many matrices in a batch, it is faster to loop over the batch innermost, unless
# each product has so many multiplications.
_LARGE_BATCH = 8
_LARGE_PRODUCT = 1 << 12


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Table(NamedTuple):
    """Numbers with a named axis for each attribute; an answered attribute's axis is its rows."""

    values: Vector
    axes: Clique

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each axis."""
        return dict(zip(self.axes, self.values.shape, strict=True))

    def sum_onto(self, keep: Iterable[str]) -> Table:
        """The table summed over all other axes."""
        kept = set(keep)
        summed = tuple(axis for axis, name in enumerate(self.axes) if name not in kept)
        if not summed:
            return self
        axes = tuple(name for name in self.axes if name in kept)
        sizes = self.sizes
        # One number without an axis would not be an array of NumPy; it becomes one.
        return Table(self.values.sum(axis=summed).reshape([sizes[name] for name in axes]), axes)

    def divide(self, divisor: Table) -> Table:
        """The table over one with some of its axes."""
        shape = [n if name in divisor.axes else 1 for name, n in self.sizes.items()]
        order = sorted(divisor.axes, key=self.axes.index)
        return Table(self.values / divisor.transpose(order).reshape(shape), self.axes)

    def transpose(self, axes: Sequence[str]) -> Vector:
        """The numbers with the axes in another order."""
        return self.values.transpose([self.axes.index(name) for name in axes])

    def as_blocks(self, *groups: Sequence[str]) -> Vector:
        """The numbers with each group of axes joined into one axis."""
        moved = self.transpose([name for group in groups for name in group])
        shape, start = list[int](), 0
        for group in groups:
            shape.append(math.prod(moved.shape[start : start + len(group)]))
            start += len(group)
        return moved.reshape(shape)


def multiply(left: Table, right: Table, summed: Iterable[str] = ()) -> Table:
    """The product of two tables, with some of the axes that both have summed out.

    For p(a, b, c) and m(b, c, d) with c to sum out: a batch over b of the products of the matrices
    (a, c) and (c, d). Without an axis to sum out it is an outer product instead.
    """
    gone = set(summed)
    shared = [name for name in left.axes if name in right.axes]
    batch = [name for name in shared if name not in gone]
    inner = [name for name in shared if name in gone]
    rows = [name for name in left.axes if name not in shared]
    columns = [name for name in right.axes if name not in shared]
    sizes = left.sizes | right.sizes
    if not inner:
        axes = (*batch, *rows, *columns)
        values = left.as_blocks(batch, rows)[:, :, None] * right.as_blocks(batch, columns)[:, None]
    elif (
        math.prod(sizes[name] for name in batch) < _LARGE_BATCH
        or math.prod(sizes[name] for name in (*rows, *inner, *columns)) >= _LARGE_PRODUCT
    ):
        axes = (*batch, *rows, *columns)
        values = left.as_blocks(batch, rows, inner) @ right.as_blocks(batch, inner, columns)
    else:
        axes = (*rows, *columns, *batch)
        a, b = left.as_blocks(rows, inner, batch), right.as_blocks(inner, columns, batch)
        values = np.einsum("rib,icb->rcb", a, b)
    return Table(values.reshape([sizes[name] for name in axes]), axes)


class BoundedStore(Generic[Key, Value]):
    """Values by key; the oldest ones go when all together are larger than a limit."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._values: dict[Key, tuple[Value, int]] = {}
        self._size_bytes = 0

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __getitem__(self, key: Key) -> Value:
        return self._values[key][0]

    def get(self, key: Key) -> Value | None:
        """The value of a key, if it is still there."""
        kept = self._values.get(key)
        return None if kept is None else kept[0]

    def put(self, key: Key, value: Value, size_bytes: int) -> Value:
        """Keep a value, if there is room for it; gives the value itself."""
        if size_bytes <= self._max_bytes and key not in self._values:
            self._values[key] = (value, size_bytes)
            self._size_bytes += size_bytes
            while self._size_bytes > self._max_bytes:
                oldest = next(iter(self._values))
                self._size_bytes -= self._values.pop(oldest)[1]
        return value
