"""How the tables that meet in one clique are multiplied and summed, two at a time.

The product of all tables in a clique, summed onto its separator, can be formed without ever
building the clique's own table: tables are contracted in pairs, and an attribute is summed out
as soon as no other table needs it. This module chooses the pairs and the axis order of every
intermediate table. It handles names and sizes only; no array exists yet.

A `Contraction` grows step by step. Tables are numbered: first the given ones, then the result
of each step. `ONE` stands for the number one, so that summing a single table, or putting its
axes into another order, is a step like any other.

For example, tables 0 on (a, b) and 1 on (b, c) with 30, 20 and 10 values, joined onto {a, c}:

    step (1, ONE) -> 2 on (c, b)    a copy of 1 with b last, as it is in 0
    step (0, 2)   -> 3 on (a, c)    the inner loop runs over b in both: a matrix product

The clique's own table on (a, b, c) would have 6,000 cells; the largest one here has 600.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from juncture.engine.paths import ScopedPath, annotate, find_best_path

ONE = -1
Axes = tuple[int, ...]
Scope = frozenset[int]

# Innermost loops shorter than this are worth a reordered copy of the table.
_SHORT_LOOP = 8


class Step(NamedTuple):
    """`result` becomes the product of `left` and `right`, summed onto the result's axes."""

    left: int
    right: int
    result: int


class Contraction:
    """Tables as axis tuples, and the steps that contract them."""

    def __init__(self, sizes: Sequence[int], tables: Iterable[Axes]) -> None:
        self.sizes = sizes
        self.axes: list[Axes] = [self._drop_unit_axes(table) for table in tables]
        self.counts: list[int] = [self.cells(axes) for axes in self.axes]
        """The number of cells of each table."""
        self.n_inputs = len(self.axes)

    def cells(self, attributes: Iterable[int]) -> int:
        """The number of cells of a table over the attributes."""
        return math.prod(map(self.sizes.__getitem__, attributes))

    def join(self, tables: Sequence[int], keep: Scope) -> list[Step]:
        """Steps that contract the tables onto `keep`; the last one's result is the message."""
        steps: list[Step] = []
        if len(tables) < 3:  # there is no order to choose
            if len(tables) == 1:
                self._sum(steps, tables[0], keep)
            else:
                self._contract(steps, tables[0], tables[1], keep)
            return steps
        scopes = {table: frozenset(self.axes[table]) for table in tables}
        path = find_best_path(scopes, keep, self.sizes)
        result, scope = self._follow(steps, annotate(path, scopes), keep)
        if not steps or not keep.issuperset(scope):
            self._sum(steps, result, keep)
        return steps

    def _follow(self, steps: list[Step], path: ScopedPath, needed: Scope) -> tuple[int, Scope]:
        """Contract along the path; `needed` is what the rest of the clique still mentions.

        Nothing in `needed` may be summed out yet. So while the left half is contracted, the
        attributes of all tables of the right half are needed too; afterwards, only those that its
        result still has. Returns the resulting table and its attributes.
        """
        table, scope, halves = path
        if halves is None:
            return table, scope
        left, right = halves
        one, one_scope = self._follow(steps, left, needed | right.scope)
        other, other_scope = self._follow(steps, right, needed | one_scope)
        result = self._contract(steps, one, other, needed)
        return result, (one_scope | other_scope) & needed

    def union_cells(self, step: Step) -> int:
        """The number of multiplications of one step."""
        if step.right == ONE:
            return self.counts[step.left]
        left = self.axes[step.left]
        own = [axis for axis in self.axes[step.right] if axis not in left]
        return self.counts[step.left] * self.cells(own) if own else self.counts[step.left]

    def covers(self, step: Step) -> bool:
        """Whether the left table holds every attribute of the step."""
        return step.right == ONE or _covers(self.axes[step.left], self.axes[step.right])

    def adjoint_tables(self, steps: Iterable[Step]) -> list[int]:
        """The tables whose derivative is stored: all but the given ones that cover their step.

        A given table that covers its step becomes a marginal in place, in one pass.
        """
        tables: list[int] = []
        for step in steps:
            left, right, _ = step
            if left >= self.n_inputs or not self.covers(step):
                tables.append(left)
            if right != ONE:
                tables.append(right)
        return tables

    def workspace_cells(self, steps: Sequence[Step]) -> int:
        """The cells of all results and all stored derivatives."""
        counts = self.counts
        results = sum([counts[step.result] for step in steps])
        return results + sum([counts[table] for table in self.adjoint_tables(steps)])

    def _drop_unit_axes(self, axes: Axes) -> Axes:
        """Axes of length one change no address: leave them out."""
        return tuple([axis for axis in axes if self.sizes[axis] > 1])

    def _add(self, steps: list[Step], left: int, right: int, axes: Axes) -> int:
        result = len(self.axes)
        self.axes.append(axes)
        self.counts.append(self.cells(axes))
        steps.append(Step(left, right, result))
        return result

    def _sum(self, steps: list[Step], table: int, keep: Scope) -> int:
        return self._add(steps, table, ONE, tuple([a for a in self.axes[table] if a in keep]))

    def _reorder(self, steps: list[Step], table: int, axes: Axes) -> int:
        return table if self.axes[table] == axes else self._add(steps, table, ONE, axes)

    def _contract(self, steps: list[Step], left: int, right: int, needed: Scope) -> int:
        """Multiply two tables, after the sums and copies that prepare them.

        If one table holds all axes of the other, the product is one pass over the larger table,
        whose axes give the order of the loops. Otherwise it is a product like that of matrices.
        """
        if self.counts[left] < self.counts[right]:
            left, right = right, left
        if not _covers(self.axes[left], self.axes[right]):
            left = self._sum_private(steps, left, right, needed)
            right = self._sum_private(steps, right, left, needed)
            if set(self.axes[left]) < set(self.axes[right]):  # the sums made `left` the smaller
                left, right = right, left
        axes, other = self.axes[left], self.axes[right]
        if not _covers(axes, other):
            return self._multiply(steps, left, right, needed)
        right = self._reorder(steps, right, tuple([a for a in axes if a in other]))
        return self._add(steps, left, right, tuple([a for a in axes if a in needed]))

    def _sum_private(self, steps: list[Step], table: int, other: int, needed: Scope) -> int:
        """Sum out what neither the other table nor anything later mentions."""
        keep = needed.union(self.axes[other])
        return table if keep.issuperset(self.axes[table]) else self._sum(steps, table, keep)

    def _multiply(self, steps: list[Step], left: int, right: int, needed: Scope) -> int:
        """Multiply two tables like matrices: the larger one's last axes are the innermost loop.

        That loop is fast if it is long and moves by one cell, or not at all, in all three tables.
        The last axes of the left table that have one role (summed, or kept and shared, or kept and
        its own) form such a run; so they must also come last in the right table and in the result,
        in the same order, wherever they occur there.
        """
        left = self._lengthen_suffix(steps, left, right, needed)
        axes, other = self.axes[left], self.axes[right]
        suffix = self._suffix(axes, other, needed)
        head = axes[: len(axes) - len(suffix)]
        outer = [a for a in head if a in needed] + [a for a in other if a not in axes]
        inner = [a for a in suffix if a in needed]
        if suffix[0] in other:
            order = [a for a in other if a not in axes] + [a for a in head if a in other]
            right = self._reorder(steps, right, (*order, *suffix))
        return self._add(steps, left, right, (*outer, *inner))

    def _lengthen_suffix(self, steps: list[Step], left: int, right: int, needed: Scope) -> int:
        """The table itself, or a copy whose last axes give a long innermost loop."""
        axes, other = self.axes[left], self.axes[right]
        if self.cells(self._suffix(axes, other, needed)) >= _SHORT_LOOP:
            return left
        kinds: dict[tuple[bool, bool], list[int]] = {}
        for axis in axes:
            kinds.setdefault(_role(axis, other, needed), []).append(axis)
        blocks = sorted(kinds.values(), key=self.cells)
        return self._reorder(steps, left, tuple(axis for block in blocks for axis in block))

    def _suffix(self, axes: Axes, other: Axes, needed: Scope) -> Axes:
        """The longest run of last axes that all have the same role in the product."""
        start = len(axes) - 1
        while start and _role(axes[start - 1], other, needed) == _role(axes[-1], other, needed):
            start -= 1
        return axes[start:]


def _covers(axes: Axes, others: Axes) -> bool:
    """Whether all of the other axes are among these."""
    return set(axes).issuperset(others)


def _role(axis: int, other: Axes, needed: Scope) -> tuple[bool, bool]:
    """The role of an axis in a product: shared with the other table or not, kept or not."""
    return axis in other, axis in needed
