"""Gibbs sweeps: every attribute of every record drawn anew, given the record's other attributes.

The conditional of one attribute is a sum of rows, one of each clique that has it. For each clique
and each of its attributes there is a copy of its potentials in which that attribute comes last, so
that a row is contiguous; copies of small tables are added up beforehand to one table of all their
attributes, so that fewer rows are left to add for each record. Attributes that nearly determine
each other are drawn in pairs: one at a time, neither could ever leave its value.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture._util.threads import run_parallel, split_range
from juncture.engine.compiled.loader import pointer, routine
from juncture.engine.compiled.opcodes import SWEEP_CHUNK
from juncture.tables.layout import Layout, Vector
from juncture.tables.records import Codes

# Instead of minus infinity: a record that is excluded already moves to where the fewest cells are.
EXCLUDED = -1e6
# A thread is worth its start for this many records.
_WORTH_THREADS = 2_000
# A pair is drawn together only if its table has at most this many cells.
MAX_PAIR_CELLS = 1024
# Tables are added up to one of at most this many cells: it stays in the cache.
_MAX_JOINED = 4096

Pair = tuple[int, int]


class _Part(NamedTuple):
    """A clique's share of a table: how its axes are ordered and spread over the table's."""

    clique: int
    order: tuple[int, ...]
    shape: tuple[int, ...]


class _Table(NamedTuple):
    """A sum of potentials of cliques, the attributes that are drawn last."""

    start: int
    shape: tuple[int, ...]
    parts: list[_Part]


@dataclass
class _Program:
    """The integers that the compiled sweep walks."""

    blocks: list[tuple[int, ...]] = field(default_factory=list)
    entries: list[tuple[int, ...]] = field(default_factory=list)
    axes: list[int] = field(default_factory=list)
    strides: list[int] = field(default_factory=list)
    tables: list[_Table] = field(default_factory=list)
    n_cells: int = 0


class Sweeper:
    """What draws the attributes of records from their conditionals."""

    def __init__(
        self, layout: Layout, pairs: Sequence[Pair] = (), held: Collection[int] = ()
    ) -> None:
        self.layout, self.pairs, self.held = layout, tuple(pairs), frozenset(held)
        shape = layout.domain.shape
        program = _Program()
        scopes = [tuple(layout.domain.positions[n] for n in clique) for clique in layout.cliques]
        blocks = [(a, -1) for a in range(len(shape)) if a not in self.held]
        blocks += [pair for pair in self.pairs if not self.held.intersection(pair)]
        for block in blocks:
            _add_block(program, shape, scopes, block)
        self._joined, self._scopes = program.tables, scopes
        self._tables = np.zeros(program.n_cells)
        self._blocks = np.array(program.blocks, dtype=np.int64).reshape(-1, 6)
        self._entries = np.array(program.entries, dtype=np.int64).reshape(-1, 4)
        self._axes = np.array(program.axes, dtype=np.int64)
        self._strides = np.array(program.strides, dtype=np.int64)
        sizes = self._blocks[:, 2:4]
        chunks, pairs = SWEEP_CHUNK * sizes[:, 0], sizes.sum(axis=1) + sizes.prod(axis=1)
        self._n_scratch = int(np.maximum(chunks, pairs).max(initial=1))

    def with_pairs(self, pairs: Sequence[Pair]) -> Sweeper:
        """The same, with more pairs drawn together."""
        return Sweeper(self.layout, tuple(dict.fromkeys((*self.pairs, *pairs))), self.held)

    def sweep(
        self, codes: Codes, potentials: Vector, key: int, n_sweeps: int = 1, first: int = 0
    ) -> None:
        """Draw all attributes of all records anew, in place; `first` is the first one's number."""
        if not len(self._blocks):
            return
        self._fill(potentials)
        compiled, n_records = routine("sweep"), codes.shape[1]

        def run(span: tuple[int, int]) -> None:
            scratch, cells = np.empty(self._n_scratch), np.empty(SWEEP_CHUNK, dtype=np.int64)
            for index in range(n_sweeps):
                compiled(
                    pointer(codes), *codes.shape, *span, first, pointer(self._blocks),
                    len(self._blocks), pointer(self._entries), len(self._entries),
                    pointer(self._axes), pointer(self._strides), len(self._axes),
                    pointer(self._tables), len(self._tables), pointer(scratch), len(scratch),
                    pointer(cells), mix_key(key, index),
                )  # fmt: skip

        run_parallel(run, split_range(n_records, _WORTH_THREADS))

    def _fill(self, potentials: Vector) -> None:
        finite = np.maximum(potentials, EXCLUDED)
        offsets, shape = self.layout.offsets, self.layout.domain.shape
        for start, table_shape, parts in self._joined:
            joined = self._tables[start : start + math.prod(table_shape)].reshape(table_shape)
            joined.fill(0.0)
            for clique, order, spread in parts:
                own = finite[offsets[clique] : offsets[clique + 1]]
                axes = own.reshape([shape[a] for a in self._scopes[clique]]).transpose(order)
                joined += axes.reshape(spread)


def mix_key(key: int, index: int) -> int:
    """A key of its own for each of many uses of one key."""
    return (key * 0x9E3779B97F4A7C15 + (index + 1) * 0xD1342543DE82EF95) % 2**64


def _add_block(
    program: _Program, shape: tuple[int, ...], scopes: list[tuple[int, ...]], block: Pair
) -> None:
    one, two = block
    begin = len(program.entries)
    for kind, inside in enumerate([(one,), (two,), block]):
        holders = [
            index for index, scope in enumerate(scopes)
            if tuple(a for a in block if a in scope) == inside
        ]  # fmt: skip
        for others, cliques in _join_cliques(shape, scopes, holders, inside):
            _add_table(program, shape, scopes, (kind, others, inside), cliques)
    n_two = shape[two] if two >= 0 else 0
    program.blocks.append((one, two, shape[one], n_two, begin, len(program.entries)))


def _join_cliques(
    shape: tuple[int, ...], scopes: list[tuple[int, ...]], holders: list[int], inside: Sequence[int]
) -> list[tuple[tuple[int, ...], list[int]]]:
    """Cliques whose tables are added up: their attributes but those drawn, and their indices.

    Small tables come first, each to the first sum that stays small with it.
    """
    row = math.prod(shape[a] for a in inside)
    groups: list[tuple[tuple[int, ...], list[int]]] = []
    for index in sorted(holders, key=lambda i: math.prod(shape[a] for a in scopes[i])):
        others = tuple(a for a in scopes[index] if a not in inside)
        for position, (joined, members) in enumerate(groups):
            union = tuple(sorted({*joined, *others}))
            if union == joined or row * math.prod(shape[a] for a in union) <= _MAX_JOINED:
                groups[position] = (union, [*members, index])
                break
        else:
            groups.append((others, [index]))
    return groups


def _add_table(
    program: _Program, shape: tuple[int, ...], scopes: list[tuple[int, ...]],
    entry: tuple[int, tuple[int, ...], Sequence[int]], cliques: list[int],
) -> None:  # fmt: skip
    kind, others, inside = entry
    ordered = (*others, *inside)
    parts = [
        _Part(
            index,
            tuple(scopes[index].index(a) for a in ordered if a in scopes[index]),
            tuple(shape[a] if a in scopes[index] else 1 for a in ordered),
        )
        for index in cliques
    ]
    table_shape = tuple(shape[a] for a in ordered)
    program.tables.append(_Table(program.n_cells, table_shape, parts))
    first_axis, stride = len(program.axes), math.prod(shape[a] for a in inside)
    for a in reversed(others):
        program.axes.append(a)
        program.strides.append(stride)
        stride *= shape[a]
    program.entries.append((kind, program.n_cells, first_axis, len(program.axes)))
    program.n_cells += stride


def draw_uniform_codes(shape: tuple[int, ...], n: int, rng: np.random.Generator) -> Codes:
    """Records with every attribute uniform and independent."""
    codes: NDArray[np.int32] = np.empty((len(shape), n), dtype=np.int32)
    for axis, size in enumerate(shape):
        codes[axis] = rng.integers(0, size, n)
    return codes
