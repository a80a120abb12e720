"""Questions that span several cliques, answered by elimination on a calibrated tree.

Every asked attribute comes with a block, a linear map on its values: the identity for a marginal.
Tables are multiplied up the smallest branch of the tree that has the attributes. An attribute that
is not asked about is summed out as soon as no table above has it; one that is asked about has its
block applied at that moment if this makes the table smaller, and at the very end otherwise. So the
marginal on all asked attributes is never formed when their answers are few. Blocks may have
negative entries: nothing is ever normalised and no logarithm is taken.

For example, with cliques ab, bc and cd of ten values each, asked for every value of a and for one
range of d:

    node cd   p(d | c)   d's block at once, then d is gone        10 numbers over c
    node bc   p(c | b)   times those, c summed out                10 numbers over b
    node ab   p(a, b)    times those, b summed out                10 answers over a

Only the top node contributes its marginal. The others contribute what they add given their
separator; with marginals there too, the mass of each separator would be counted twice. What
leaves a node has an axis for each attribute of the separator above it and one for each asked
attribute below that has several answers, nothing else: so every node treats its messages alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from juncture._util.memory import free_memory_bytes
from juncture.engine.plan_text import abbreviate, format_bytes
from juncture.errors import ModelTooLarge
from juncture.model.calibration import Branch, Calibration
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Block, Identity

# An answer and the tables on the way may together use this share of the free memory.
_SHARE_OF_FREE_MEMORY = 0.4
# NumPy's limit on the axes of an array.
_MAX_AXES = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32
# Tables up to this size fit without asking the system for its free memory.
_SURELY_FREE = 1 << 24


class Table(NamedTuple):
    """Numbers with a named axis for each attribute; an answered attribute's axis is its rows."""

    values: Vector
    axes: Clique


class TreeQuery:
    """Blocks on some attributes of a calibrated tree.

    Queries that share `messages` share what they have in common below the tops of their branches;
    that is only right for queries that put the same blocks on the same attributes.
    """

    def __init__(
        self,
        tree: Calibration,
        blocks: Mapping[str, Block],
        messages: dict[tuple[int, frozenset[str]], Table] | None = None,
    ) -> None:
        self._tree = tree
        self._blocks = blocks
        self._messages = {} if messages is None else messages
        sizes = {name: tree.plan.domain[name] for name in blocks}
        self._rows = {name: block.n_rows(sizes[name]) for name, block in blocks.items()}
        # Applied on the way, because they shrink the tables. The others (identity, prefix sums, all
        # ranges) would make every later product larger, so their axes travel up unchanged.
        self._early = {name for name in blocks if self._rows[name] < sizes[name]}

    def answer(self) -> Vector:
        """The share of the records, an axis for each attribute in the blocks' order.

        Where that would be more axes than an array may have, attributes with a single answer have
        none.
        """
        names = tuple(self._blocks)
        self._check_memory(self._rows.values(), names)
        free = [name for name in names if name not in self._tree.home]
        tables = [self._branch_table(b) for b in self._tree.branches(set(names).difference(free))]
        tables += [self._free_table(name) for name in free]
        result = tables[0] if tables else Table(np.ones(()), ())
        for table in tables[1:]:
            result = self._product(result, table, set(names))
        left = tuple(name for name in names if name in result.axes)
        values = result.values.transpose([result.axes.index(name) for name in left])
        for axis, name in enumerate(left):
            if name not in self._early and not isinstance(self._blocks[name], Identity):
                answered = self._blocks[name].apply(np.moveaxis(values, axis, -1))
                values = np.moveaxis(answered, -1, axis)
        if len(names) > _MAX_AXES:
            return values
        return values.reshape([self._rows[name] for name in names])

    def _free_table(self, name: str) -> Table:
        """An attribute that no clique mentions is uniform."""
        size = self._tree.plan.domain[name]
        return self._apply_blocks(Table(np.full(size, 1.0 / size), (name,)), {name})

    def _branch_table(self, branch: Branch) -> Table:
        """The answers on one branch, with their axes in any order."""
        below: dict[int, list[Table]] = {index: [] for index in branch.nodes}
        queried: dict[int, set[str]] = {index: set() for index in branch.nodes}
        table = Table(np.ones(()), ())
        for index in branch.nodes:
            node, top = self._tree.nodes[index], index == branch.top
            up = () if top else node.separator
            # A message depends on what is asked below its node and on nothing above it. An asked
            # attribute of the separator is not among that: it is answered further up.
            queried[index] |= {n for n in node.clique if n in self._blocks and n not in up}
            key = (index, frozenset(queried[index]))
            known = None if top else self._messages.get(key)
            if known is None:
                raw = self._tree.marginal(index) if top else self._tree.conditional(index)
                table = self._node_table(Table(raw, node.clique), below[index], set(up))
                if not top:
                    self._messages[key] = table
            else:
                table = known
            if not top and node.parent is not None:
                below[node.parent].append(table)
                queried[node.parent] |= queried[index]
        return table

    def _node_table(self, table: Table, messages: Sequence[Table], up: set[str]) -> Table:
        """A node's table times the messages from below, onto what is asked or goes up.

        The smallest message comes first. An attribute of the node may be summed out, or its block
        applied, only when no message still to come (`later`) has it: a sum over d of p(d) m(d) is
        not the sum of p(d) times the sum of m(d).
        """
        waiting = sorted(messages, key=lambda message: message.values.size)
        queried, held = set(self._blocks), set(table.axes)
        for index, message in enumerate(waiting):
            later = {name for other in waiting[index:] for name in other.axes if name in held}
            table = self._apply_blocks(
                self._sum_onto(table, queried | up | later), held - up - later
            )
            later = {name for other in waiting[index + 1 :] for name in other.axes if name in held}
            table = self._product(table, message, queried | up | later)
            table = self._apply_blocks(table, held - up - later)
        return self._apply_blocks(self._sum_onto(table, queried | up), held - up)

    def _apply_blocks(self, table: Table, finished: set[str]) -> Table:
        """Apply the early blocks of attributes that no other table has any more."""
        for name in [name for name in table.axes if name in finished]:
            axis, size = table.axes.index(name), self._tree.plan.domain[name]
            if name in self._early and table.values.shape[axis] == size:
                rest = table.axes[:axis] + table.axes[axis + 1 :]
                moved = np.moveaxis(table.values, axis, -1)
                answered = self._blocks[name].apply(moved)
                # A single answer needs no axis: queries may be about more attributes than an
                # array may have axes.
                single = self._rows[name] == 1
                table = Table(answered[..., 0], rest) if single else Table(answered, (*rest, name))
        return table

    @staticmethod
    def _sum_onto(table: Table, keep: set[str]) -> Table:
        """The table summed over all axes but those to keep."""
        summed = tuple(axis for axis, name in enumerate(table.axes) if name not in keep)
        if not summed:
            return table
        axes = tuple(name for name in table.axes if name in keep)
        return Table(table.values.sum(axis=summed), axes)

    def _product(self, left: Table, right: Table, keep: set[str]) -> Table:
        """The product of two tables, summed onto `keep`, as a batch of matrix products.

        For p(a, b, c) and m(b, c, d) with b to keep and c to sum out: a batch over b of the
        matrices (a, c) and (c, d). Without an axis to sum out it is an outer product instead.
        """
        shared = [name for name in left.axes if name in right.axes]
        batch = [name for name in shared if name in keep]
        summed = [name for name in shared if name not in keep]
        rows = [name for name in left.axes if name not in shared]
        columns = [name for name in right.axes if name not in shared]
        axes = (*batch, *rows, *columns)
        sizes = dict(zip(left.axes, left.values.shape, strict=True))
        sizes |= zip(right.axes, right.values.shape, strict=True)
        self._check_memory((sizes[name] for name in axes), axes)
        if not summed:
            a = _as_matrix(left, batch, rows)[:, :, None]
            values = a * _as_matrix(right, batch, columns)[:, None, :]
        else:
            a = _as_matrix(left, [*batch, *rows], summed)
            b = _as_matrix(right, [*batch, *summed], columns)
            n_batch = math.prod(sizes[name] for name in batch)
            values = a.reshape(n_batch, -1, a.shape[1]) @ b.reshape(n_batch, -1, b.shape[1])
        return Table(values.reshape([sizes[name] for name in axes]), axes)

    @staticmethod
    def _check_memory(sizes: Iterable[int], axes: Clique) -> None:
        needed = 8 * math.prod(sizes)
        if needed <= _SURELY_FREE:
            return
        limit = int(free_memory_bytes() * _SHARE_OF_FREE_MEMORY)
        if needed > limit:
            raise ModelTooLarge(
                f"`query` must need at most {format_bytes(limit)}; got a table over "
                f"({abbreviate(axes)}) of {format_bytes(needed)}. Ask about fewer attributes "
                "at a time, or compress them with Buckets, Range or Subset."
            )


def _as_matrix(table: Table, first: Sequence[str], second: Sequence[str]) -> Vector:
    """The table as a matrix: some axes joined into its rows, the others into its columns."""
    axes, values = table.axes, table.values
    moved = values.transpose([axes.index(name) for name in (*first, *second)])
    n_rows = math.prod(moved.shape[: len(first)])
    return moved.reshape(n_rows, math.prod(moved.shape[len(first) :]))
