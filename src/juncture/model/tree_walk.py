"""What a question across cliques takes, step by step, before any table exists.

Every asked attribute comes with a block, a linear map on its values: the identity for a marginal.
Tables are multiplied up the smallest branch of the tree that holds the attributes. An attribute
that is not asked about is summed out as soon as no table above holds it; one that is asked about
has its block applied at that moment if this makes the table smaller, and at the very end otherwise.
So the marginal on all asked attributes is never formed when their answers are few. Blocks may
have negative entries: nothing is ever normalised and no logarithm taken.

For example, with cliques ab, bc and cd of ten values each, asked for every value of a and for one
range of d:

    node cd   p(c, d)    d's block at once, then d is gone        10 numbers over c, divided by p(c)
    node bc   p(b, c)    times those, c summed out                10 numbers over b, divided by p(b)
    node ab   p(a, b)    times those, b summed out                10 answers over a

What leaves a node is divided by the mass of the separator above it, for the node above has that
mass too. It has an axis for each attribute of the separator and one for each asked attribute below
that has several answers, nothing else: so every node treats its messages alike.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from juncture.model.clique_tree import Branch, CliqueTree
from juncture.tables.queries.blocks import Block, Identity

MessageKey = tuple[int, frozenset[str]]
"""A node, and the attributes that are asked about at it or below but not above."""


class Take(NamedTuple):
    """The table of a node."""

    node: int


class Recall(NamedTuple):
    """A message that an earlier question has left."""

    key: MessageKey


class Uniform(NamedTuple):
    """The table of an attribute that no clique mentions."""

    name: str


class Sum(NamedTuple):
    """A table summed onto some of its axes."""

    table: int
    keep: frozenset[str]


class Multiply(NamedTuple):
    """The product of two tables, some of their axes summed out."""

    left: int
    right: int
    summed: frozenset[str]


class Apply(NamedTuple):
    """A table with an attribute's block applied to it."""

    table: int
    name: str


class Divide(NamedTuple):
    """A table divided by the mass of a node's separator; a message, to be kept by its key."""

    table: int
    key: MessageKey


Step = Take | Recall | Uniform | Sum | Multiply | Apply | Divide


class Outline(NamedTuple):
    """A table that does not exist yet."""

    step: int
    """The index of the step that makes it."""
    sizes: Mapping[str, int]
    """The length of each axis, in any order."""

    @property
    def cells(self) -> int:
        """The number of its cells."""
        return math.prod(self.sizes.values())


class TreeWalk:
    """The steps that answer blocks on some attributes of a tree; the last one makes the answer.

    `known` are the messages that are there already.
    """

    def __init__(
        self, tree: CliqueTree, blocks: Mapping[str, Block], known: Container[MessageKey] = ()
    ) -> None:
        self.steps: list[Step] = []
        self._outlines: list[Outline] = []
        self._tree, self.blocks, self._known = tree, blocks, known
        self._domain = tree.plan.domain
        self.rows = {name: block.n_rows(self._domain[name]) for name, block in blocks.items()}
        # Applied on the way, because they shrink the tables. The others (identity, prefix sums, all
        # ranges) would make every later product larger, so their axes travel up unchanged.
        self._early = {name for name in blocks if self.rows[name] < self._domain[name]}
        self._plan()

    @cached_property
    def last_uses(self) -> list[list[int]]:
        """For each step, the tables that nothing needs after it."""
        last = {table: index for index, step in enumerate(self.steps) for table in operands(step)}
        uses: list[list[int]] = [[] for _ in self.steps]
        for table, index in last.items():
            uses[index].append(table)
        return uses

    @cached_property
    def size_bytes(self) -> int:
        """The memory for all tables that exist at the same time, copies included, at most."""
        live = peak = 0
        for index, step in enumerate(self.steps):
            made = self._outlines[index].cells
            # The operands of a product and of a block may be copied in another order.
            copied = isinstance(step, Multiply | Apply)
            copies = sum(self._outlines[table].cells for table in operands(step)) if copied else 0
            peak = max(peak, live + made + copies)
            live += self._owned(index)
            live -= sum(map(self._owned, self.last_uses[index]))
        # The answer itself is put in order, then multiplied by the number of records.
        return 8 * max(peak, 2 * math.prod(self.rows.values()))

    def drops_axis(self, name: str) -> bool:
        """Whether an answered attribute has no axis any more.

        A single answer needs none: queries may be about more attributes than an array has axes.
        """
        return self.rows[name] == 1 and name in self._early

    def _owned(self, index: int) -> int:
        """The cells of a table, or none where it is the tree's own."""
        return 0 if isinstance(self.steps[index], Take | Recall) else self._outlines[index].cells

    def _plan(self) -> None:
        free = [name for name in self.blocks if name not in self._tree.home]
        names = set(self.blocks)
        tables = [self._walk_branch(b) for b in self._tree.branches(names.difference(free))]
        for name in free:
            table = self._add(Uniform(name), {name: self._domain[name]})
            tables.append(self._apply_blocks(table, {name}))
        if not tables:
            return
        result = tables[0]
        for table in tables[1:]:
            result = self._multiply(result, table, names)
        for name in self.blocks:
            if name not in self._early and not isinstance(self.blocks[name], Identity):
                result = self._apply(result, name)

    def _walk_branch(self, branch: Branch) -> Outline:
        """The answers on one branch."""
        keys = self._message_keys(branch)
        below: dict[int, list[Outline]] = {branch.top: []}
        for index in reversed(branch.nodes[:-1]):  # parents first
            if self._tree.nodes[index].parent in below and keys[index] not in self._known:
                below[index] = []
        for index in branch.nodes[:-1]:
            node = self._tree.nodes[index]
            if node.parent not in below:
                continue  # all that it could add is part of a known message further up
            if index in below:
                table = self._walk_node(index, below[index], set(node.separator))
                table = self._add(Divide(table.step, keys[index]), table.sizes)
            else:
                table = self._add(Recall(keys[index]), self._message_sizes(keys[index]))
            below[node.parent].append(table)
        return self._walk_node(branch.top, below[branch.top], set())

    def _message_keys(self, branch: Branch) -> dict[int, MessageKey]:
        """What the message of each node but the top depends on.

        It depends on what is asked below the node and on nothing above it. An asked attribute of
        the separator is not included: it is answered further up.
        """
        queried: dict[int, set[str]] = {index: set() for index in branch.nodes}
        for index in branch.nodes[:-1]:
            node = self._tree.nodes[index]
            queried[index] |= self.blocks.keys() & node.clique
            queried[index].difference_update(node.separator)
            if node.parent is not None:
                queried[node.parent] |= queried[index]
        return {index: (index, frozenset(queried[index])) for index in branch.nodes[:-1]}

    def _message_sizes(self, key: MessageKey) -> dict[str, int]:
        sizes = {name: self._domain[name] for name in self._tree.nodes[key[0]].separator}
        rows = {name: self.rows[name] for name in key[1] if name in self._early}
        late = {name: self._domain[name] for name in key[1] if name not in self._early}
        return sizes | late | {name: n for name, n in rows.items() if n > 1}

    def _walk_node(self, index: int, messages: Sequence[Outline], up: set[str]) -> Outline:
        """A node's table times the messages from below, onto what is asked or goes up.

        The message that leaves the smallest table comes first. An attribute of the node may be
        summed out, or its block applied, only when no message still to come (`later`) has it: a sum
        over d of p(d) m(d) is not the sum of p(d) times the sum of m(d).
        """
        clique = self._tree.nodes[index].clique
        table = self._add(Take(index), {name: self._domain[name] for name in clique})
        waiting, held = list(messages), set(clique)
        keep = set(self.blocks) | up
        while waiting:
            later = held & self._axes(waiting)
            table = self._sum(table, keep | later)
            table = self._apply_blocks(table, held - up - later)
            message = waiting.pop(self._find_next(table, waiting, keep))
            later = held & self._axes(waiting)
            table = self._multiply(table, message, keep | later)
            table = self._apply_blocks(table, held - up - later)
        return self._apply_blocks(self._sum(table, keep), held - up)

    def _find_next(self, table: Outline, waiting: Sequence[Outline], keep: set[str]) -> int:
        """The index of the message whose product with a table is smallest, others still to come."""
        if len(waiting) == 1:
            return 0
        sizes = []
        for index, message in enumerate(waiting):
            others = self._axes([*waiting[:index], *waiting[index + 1 :]])
            both = {**table.sizes, **message.sizes}
            left = math.prod(n for name, n in both.items() if name in keep or name in others)
            sizes.append((left, message.cells))
        return sizes.index(min(sizes))

    @staticmethod
    def _axes(tables: Iterable[Outline]) -> set[str]:
        return {name for table in tables for name in table.sizes}

    def _add(self, step: Step, sizes: Mapping[str, int]) -> Outline:
        self.steps.append(step)
        self._outlines.append(Outline(len(self.steps) - 1, sizes))
        return self._outlines[-1]

    def _sum(self, table: Outline, keep: set[str]) -> Outline:
        kept = {name: size for name, size in table.sizes.items() if name in keep}
        if len(kept) == len(table.sizes):
            return table
        return self._add(Sum(table.step, frozenset(kept)), kept)

    def _multiply(self, left: Outline, right: Outline, keep: set[str]) -> Outline:
        summed = (left.sizes.keys() & right.sizes.keys()) - keep
        sizes = {**left.sizes, **right.sizes}
        kept = {name: size for name, size in sizes.items() if name not in summed}
        return self._add(Multiply(left.step, right.step, frozenset(summed)), kept)

    def _apply_blocks(self, table: Outline, finished: set[str]) -> Outline:
        """Apply the early blocks of attributes that no other table holds any more."""
        for name in [name for name in table.sizes if name in finished]:
            if name in self._early and table.sizes[name] == self._domain[name]:
                table = self._apply(table, name)
        return table

    def _apply(self, table: Outline, name: str) -> Outline:
        sizes = {**table.sizes, name: self.rows[name]}
        if self.drops_axis(name):
            del sizes[name]
        return self._add(Apply(table.step, name), sizes)


def operands(step: Step) -> tuple[int, ...]:
    """The tables that a step reads."""
    match step:
        case Multiply(left, right, _):
            return (left, right)
        case Sum(table, _) | Apply(table, _) | Divide(table, _):
            return (table,)
        case _:
            return ()
