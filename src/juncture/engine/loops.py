"""Nested loops over the axes of a product of two tables, as rows of extents and strides.

Each row is one loop: its extent, then how far one tick moves in the left operand, the right
operand and the result. The last row is the innermost loop. Axes that lie next to each other
in all three tables become one longer loop. There are always at least two rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Axes = tuple[int, ...]
Loop = tuple[int, int, int, int]

_SINGLE: Loop = (1, 0, 0, 0)


class LoopTable:
    """All loops of a program; products of the same shape share their rows."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._cache: dict[tuple[object, ...], tuple[int, int]] = {}
        self.rows: list[Loop] = []

    def nest(self, order: Axes, operands: tuple[Axes, Axes, Axes]) -> tuple[int, int]:
        """The first row and the number of rows of the loops over `order` for all three tables."""
        index_of = {axis: position for position, axis in enumerate(order)}
        shape = tuple(self._sizes[axis] for axis in order)
        key = (shape, *(tuple(index_of[axis] for axis in axes) for axes in operands))
        if key not in self._cache:
            left, right, result = (self._strides(axes) for axes in operands)
            rows = [
                (self._sizes[a], left.get(a, 0), right.get(a, 0), result.get(a, 0)) for a in order
            ]
            self._cache[key] = self._add(_arrange(_collapse(rows)))
        return self._cache[key]

    def flat(self, cells: int) -> tuple[int, int]:
        """The loop over all cells of two tables with the same axes; the right operand is one."""
        if (cells,) not in self._cache:
            self._cache[(cells,)] = self._add([(cells, 1, 0, 1)])
        return self._cache[(cells,)]

    def _add(self, rows: list[Loop]) -> tuple[int, int]:
        padded = [_SINGLE] * (2 - len(rows)) + rows
        self.rows += padded
        return len(self.rows) - len(padded), len(padded)

    def _strides(self, axes: Axes) -> dict[int, int]:
        sizes = [self._sizes[axis] for axis in axes]
        return {axis: math.prod(sizes[index + 1 :]) for index, axis in enumerate(axes)}


def loop_order(left: Axes, right: Axes, result: Axes) -> Axes:
    """The left table's axes in memory order, the right table's own ones before the last run.

    The last run consists of the left table's last axes that occur in the same other tables; the
    plan has put them last in those tables too, so the innermost loop is contiguous everywhere.
    """
    own = tuple(axis for axis in right if axis not in left)
    if not own or not left:
        return left + own
    start = len(left) - 1
    while start and _role(left[start - 1], right, result) == _role(left[-1], right, result):
        start -= 1
    return left[:start] + own + left[start:]


def _role(axis: int, right: Axes, result: Axes) -> tuple[bool, bool]:
    return axis in right, axis in result


def _collapse(rows: list[Loop]) -> list[Loop]:
    """Join neighbouring loops where all three tables allow it."""
    joined: list[Loop] = []
    for row in rows:
        if joined and all(a == b * row[0] for a, b in zip(joined[-1][1:], row[1:], strict=True)):
            joined[-1] = (joined[-1][0] * row[0], row[1], row[2], row[3])
        else:
            joined.append(row)
    return joined


def _arrange(rows: list[Loop]) -> list[Loop]:
    """Put the loop that the innermost kernel can unroll next to the innermost one."""
    if len(rows) < 3:
        return rows
    *outer, inner = rows
    _, left, right, result = inner
    if result and left != right:
        useful = [row for row in outer if row[3] == 0]
    elif not result and left and right:
        useful = [row for row in outer if row[3] and not (row[1] and row[2])]
    else:
        useful = []
    if not useful:
        return rows
    best = max(useful)
    outer.remove(best)
    return [*outer, best, inner]
