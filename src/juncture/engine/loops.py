"""Nested loops over the axes of a product of two tables, as rows of extents and strides.

Each row is one loop: its extent, then how far one tick moves in the left operand, the right
operand and the result. The last row is the innermost loop. Axes that lie next to each other
in all three tables become one longer loop. There are always at least two rows.
"""

from __future__ import annotations

from collections.abc import Sequence

Axes = tuple[int, ...]
Loop = tuple[int, int, int, int]
Span = tuple[int, int]

_SINGLE: Loop = (1, 0, 0, 0)


class LoopTable:
    """All loops of a program; products of the same shape share their rows."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._known: dict[tuple[Loop, ...], Span] = {}
        self.rows: list[Loop] = []

    def nest(self, order: Axes, operands: tuple[Axes, Axes, Axes]) -> Span:
        """The first row and the number of rows of the loops over `order` for all three tables."""
        return self.add(self.measure(order, operands))

    def measure(self, order: Axes, operands: tuple[Axes, Axes, Axes]) -> list[Loop]:
        """The loops over `order`, neighbouring ones joined where all three tables allow it.

        Nothing here depends on which table is the result: the derivatives of a product walk the
        same loops with the strides in other columns.
        """
        left, right, result = map(self._strides, operands)
        rows: list[Loop] = []
        for axis in order:
            size = self._sizes[axis]
            a, b, c = left.get(axis, 0), right.get(axis, 0), result.get(axis, 0)
            if rows:
                outer, p, q, r = rows[-1]
                if p == a * size and q == b * size and r == c * size:
                    rows[-1] = (outer * size, a, b, c)
                    continue
            rows.append((size, a, b, c))
        return rows

    def add(self, rows: list[Loop]) -> Span:
        """The first row and the number of rows of these loops, put in the order that is fastest."""
        arranged = tuple(_arrange(rows))
        span = self._known.get(arranged)
        if span is None:
            padded = (_SINGLE,) * (2 - len(arranged)) + arranged
            span = self._known[arranged] = (len(self.rows), len(padded))
            self.rows += padded
        return span

    def flat(self, cells: int) -> Span:
        """The loop over all cells of two tables with the same axes; the right operand is one."""
        return self.add([(cells, 1, 0, 1)])

    def _strides(self, axes: Axes) -> dict[int, int]:
        strides, stride = {}, 1
        for axis in reversed(axes):
            strides[axis] = stride
            stride *= self._sizes[axis]
        return strides


def loop_order(left: Axes, right: Axes, result: Axes) -> Axes:
    """The left table's axes in memory order, the right table's own ones before the last run.

    The last run consists of the left table's last axes that occur in the same other tables; the
    plan has put them last in those tables too, so the innermost loop is contiguous everywhere.
    """
    own = tuple([axis for axis in right if axis not in left])
    if not own or not left:
        return left + own
    start = len(left) - 1
    while start and _role(left[start - 1], right, result) == _role(left[-1], right, result):
        start -= 1
    return left[:start] + own + left[start:]


def _role(axis: int, right: Axes, result: Axes) -> tuple[bool, bool]:
    return axis in right, axis in result


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
