"""A plan's program as levels that a card runs one after another.

On a card, thousands of threads work at once, and starting them costs more than what they do for a
small table. So the operations of a program (`juncture.engine.program`) are sorted into levels: an
operation belongs to the first level in which all that it reads is there. The operations of a level
do not depend on each other and are started together, as tiles: a tile is what one block of threads
does of one operation.

For example, the cliques ab, bc and cd, in a chain with bc at its root, have the levels

    0   m(b) = ab summed over a          n(c) = cd summed over d
    1   z = bc times m, n, summed
    2   bc becomes its marginal; the derivatives of m and n
    3   ab becomes its marginal          cd becomes its marginal

Scales. A result is written as it comes, and its largest entry is kept beside it; whoever reads the
result divides by that. With r the scaled result of a step x q / h, let D(r) be the derivative of
log Z by r. Then D(x) = D(r) q / h, and the marginal of x is x D(x): it sums to one by itself, since
log Z grows by t when the logarithm of a table does. So derivatives need no scales of their own: to
read D(r) is to divide by the largest entry h of r.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from juncture.engine.compiled import opcodes as cpu
from juncture.engine.gpu.opcodes import LANES, N_COLUMNS, Kind, Read
from juncture.engine.loops import Loop
from juncture.engine.plan import Plan
from juncture.engine.program import Program, find_program
from juncture.errors import ModelTooLarge

Integers = NDArray[np.int64]
Tiles = NDArray[np.int32]

# A card is busy with this many blocks, and a thread with this many terms of a sum. A block does at
# most this many tiles one after another: what it reads before the first is read once.
_BUSY_BLOCKS, _BUSY_TERMS, _MAX_REPEATS = 264, 8, 8
# Fewer neighbouring lanes than this would read less than a memory transaction at a time.
_NEIGHBOURS = 16
# Cells of one operation are counted in 32 bits.
_MAX_CELLS = 2**31 - 1


@dataclass(frozen=True)
class Operand:
    """A table to be read."""

    at: int
    read: Read
    scale: int = -1


@dataclass(frozen=True)
class Lanes:
    """How the threads of a block divide an operation."""

    kept: int
    sums: int
    sums_are_fast: bool
    splits: int = 1
    """So many blocks share a sum."""
    repeats: int = 1
    """A lane takes so many of the cells that are kept."""


@dataclass(frozen=True)
class LevelProgram:
    """What a card runs: integer tables, and the tiles of each level."""

    operations: Integers
    loops: Integers
    levels: tuple[Tiles, ...]
    """For each level, the operation and the number of every tile."""
    n_forward: int
    """The levels after which the log-partition function is known."""
    given: Integers
    """The offset and the cells of every given table."""
    forward: Integers
    """For each result on the way up: its slot and those of its operands, for the final check."""
    roots: Integers
    """The addresses of the roots' results."""
    n_slots: int
    workspace_cells: int
    potential_cells: int

    def count_bytes(self, item: int) -> int:
        """The memory on the card: potentials, marginals, workspace, and what is started."""
        numbers = 2 * self.potential_cells + self.workspace_cells
        return item * numbers + self.operations.nbytes + sum(tiles.nbytes for tiles in self.levels)


@dataclass
class _Row:
    """An operation before its addresses are integers in a table."""

    kind: Kind
    level: int
    left: Operand
    right: Operand
    top: Operand
    result_at: int
    result_slot: int
    kept: list[Loop]
    summed: list[Loop]
    lanes: Lanes

    @cached_property
    def kept_cells(self) -> int:
        return math.prod(loop[0] for loop in self.kept)

    @cached_property
    def summed_cells(self) -> int:
        return math.prod(loop[0] for loop in self.summed)

    def to_integers(self, first_loop: int) -> tuple[int, ...]:
        operands = [(o.at, int(o.read), o.scale) for o in (self.left, self.right, self.top)]
        lanes = tuple(int(each) for each in astuple(self.lanes))
        return (
            int(self.kind), *chain.from_iterable(operands), self.result_at, self.result_slot,
            first_loop, len(self.kept), len(self.summed), self.kept_cells, self.summed_cells,
            *lanes,
        )  # fmt: skip


_ONE = Operand(0, Read.ONE)


class _Lowering:
    """Sorts the operations of a program into levels, in their order."""

    def __init__(self, plan: Plan, program: Program, busy_blocks: int) -> None:
        self.program, self.busy_blocks = program, busy_blocks
        self.n_tables = len(plan.contraction.axes)
        self.n_inputs = plan.contraction.n_inputs
        self.rows: list[_Row] = []
        self.forward: list[tuple[int, int, int]] = []
        self.cells = program.workspace_cells
        # The level from which on a slot can be read; given tables are there from the beginning.
        self.ready: dict[int, int] = {}
        self.stored: set[int] = set()
        results = {int(row[cpu.RESULT]) for row in program.operations[program.forward]}
        read = {int(row[c]) for row in program.operations for c in (cpu.LEFT, cpu.RIGHT)}
        self.roots = sorted(slot for slot in results if slot >= self.n_inputs and slot not in read)

    def lower(self) -> None:
        """Lower all operations; what turns stored tables into marginals comes last of all."""
        finished = []
        for index, row in enumerate(self.program.operations.tolist()):
            kind = row[cpu.KIND]
            if kind == cpu.CONTRACT:
                self._contract(row, is_forward=index < len(self.program.forward))
            elif kind == cpu.ABSORB:
                self._absorb(row)
            elif kind == cpu.FINISH:
                finished.append(row)
        last = max((row.level for row in self.rows), default=-1) + 1
        for row in finished:
            table, adjoint = row[cpu.LEFT], row[cpu.RIGHT]
            loops = self._loops(row)
            level = last if table in self.stored else self.ready.get(adjoint, 0)
            left, top = self._given(table), self._operand(adjoint)
            self._add(Kind.ABSORB, level, left, _ONE, top, -1, -1, loops, [])

    def _contract(self, row: list[int], *, is_forward: bool) -> None:
        left, right, result = row[cpu.LEFT], row[cpu.RIGHT], row[cpu.RESULT]
        loops = self._loops(row)
        kept = [loop for loop in loops if loop[3]]
        summed = [loop for loop in loops if not loop[3]]
        if is_forward:
            self.forward.append((result, left, right))
        # A given table of which every cell is read once need not be stored.
        once = is_forward and all(loop[1] for loop in loops)
        given = once and left < self.n_inputs
        one, other = self._given(left) if given else self._operand(left), self._operand(right)
        level = max(self._level(left, one), self._level(right, other))
        slot = result if is_forward else -1
        at = int(self.program.slots[result, 1])
        ready = self._add(Kind.CONTRACT, level, one, other, _ONE, at, slot, kept, summed)
        self.ready[result] = ready

    def _absorb(self, row: list[int]) -> None:
        left, right, top = row[cpu.LEFT], row[cpu.RIGHT], row[cpu.ADJOINT]
        collected, loops = row[cpu.COLLECTED], self._loops(row)
        kept = [loop for loop in loops if loop[2]] if collected >= 0 else loops
        summed = [loop for loop in loops if not loop[2]] if collected >= 0 else []
        operand, above = self._operand(right), self._operand(top)
        level = max(self._level(right, operand), self._level(top, above))
        at = int(self.program.slots[collected, 1]) if collected >= 0 else -1
        given = self._given(left)
        ready = self._add(Kind.ABSORB, level, given, operand, above, at, -1, kept, summed)
        if collected >= 0:
            self.ready[collected] = ready

    def _add(
        self, kind: Kind, level: int, left: Operand, right: Operand, top: Operand,
        at: int, slot: int, kept: list[Loop], summed: list[Loop],
    ) -> int:  # fmt: skip
        """Add an operation, in two where the sums are long and few; the level of its readers."""
        # The last loop is that of neighbouring threads.
        written = 3 if kind is Kind.CONTRACT else 1
        kept = sorted(kept, key=lambda loop: -loop[written])
        summed = sorted(summed, key=lambda loop: (-loop[1], -loop[2]))
        if at < 0:  # nothing is collected: the cells are divided as the terms of one sum are
            kept, summed = [], sorted([*kept, *summed], key=lambda loop: -loop[1])
        lanes = divide(kept, summed, self.busy_blocks)
        row = _Row(kind, level, left, right, top, at, slot, kept, summed, lanes)
        if max(row.kept_cells, row.summed_cells) > _MAX_CELLS:
            raise ModelTooLarge(
                "`plan` must have tables of at most two billion cells for a card; got a larger "
                "one. Use oracle='cpu'."
            )
        self.rows.append(row)
        if lanes.splits == 1 or at < 0:
            return level + 1
        # The parts of each sum go to cells of their own, which a second operation sums.
        row.result_at, row.result_slot = self.cells, -1
        self.cells += lanes.splits * row.kept_cells
        column = 2 if kind is Kind.ABSORB else 3
        dense, parts = row.kept_cells, []
        for loop in kept:
            dense //= loop[0]
            parts.append((loop[0], dense, 0, loop[column]))
        over = [(lanes.splits, row.kept_cells, 0, 0)]
        again = Lanes(*_balance(row.kept_cells, lanes.splits), sums_are_fast=False)
        partial = Operand(row.result_at, Read.WORK)
        self.rows.append(
            _Row(Kind.CONTRACT, level + 1, partial, _ONE, _ONE, at, slot, parts, over, again)
        )
        return level + 2

    def _loops(self, row: list[int]) -> list[Loop]:
        first, count = row[cpu.FIRST_LOOP], row[cpu.N_LOOPS]
        loops = self.program.loops[first : first + count].tolist()
        return [(n, a, b, c) for n, a, b, c in loops if n > 1]

    def _given(self, table: int) -> Operand:
        return Operand(int(self.program.slots[table, 1]), Read.GIVEN, table)

    def _operand(self, slot: int) -> Operand:
        """How a slot is read; a given table that is read more than once is stored first."""
        if slot == 2 * self.n_tables:
            return _ONE
        at = int(self.program.slots[slot, 1])
        if slot < self.n_inputs:
            self._store(slot)
            return Operand(at, Read.STORED)
        if slot < self.n_tables:
            return Operand(at, Read.WORK, slot)
        table = slot - self.n_tables
        if table in self.roots:
            return Operand(int(self.program.slots[table, 1]), Read.ROOT, table)
        return Operand(at, Read.WORK, table if table >= self.n_inputs else -1)

    def _store(self, table: int) -> None:
        if table in self.stored:
            return
        self.stored.add(table)
        cells = int(self.program.slots[table, 2])
        loops = [(cells, 1, 0, 1)] if cells > 1 else []
        self._add(Kind.STORE, 0, self._given(table), _ONE, _ONE, -1, -1, loops, [])

    def _level(self, slot: int, operand: Operand) -> int:
        """The level from which on an operand can be read."""
        if operand.read is Read.STORED:
            return 1
        if operand.read is Read.ROOT:
            return self.ready[slot - self.n_tables]
        return self.ready.get(slot, 0)


def divide(kept: Sequence[Loop], summed: Sequence[Loop], busy_blocks: int = _BUSY_BLOCKS) -> Lanes:
    """How the threads of a block divide the cells that are kept and the terms of their sums.

    Neighbouring threads read neighbouring cells of the left table. Where few cells are kept, more
    threads share a sum; where that is not enough either, several blocks do.

    >>> divide([(10_000, 1, 0, 1)], [(100, 10_000, 1, 0)])  # kept cells lie next to each other
    Lanes(kept=32, sums=8, sums_are_fast=False, splits=1, repeats=1)
    >>> divide([(10_000, 100, 1, 1)], [(100, 1, 0, 0)])  # terms of a sum do
    Lanes(kept=8, sums=32, sums_are_fast=True, splits=1, repeats=4)
    >>> divide([], [(1_000_000, 1, 1, 0)])
    Lanes(kept=1, sums=256, sums_are_fast=True, splits=264, repeats=1)
    """
    n_kept, n_summed = (math.prod(loop[0] for loop in loops) for loops in (kept, summed))
    strides = [[loop[1] for loop in loops if loop[1]] for loops in (kept, summed)]
    least = [min(each, default=math.inf) for each in strides]
    fast = least[1] < least[0]
    if fast:
        sums = min(_power_above(n_summed), 32)
        while sums < min(LANES, _power_above(n_summed)) and n_kept * sums < LANES * busy_blocks:
            sums *= 2
        lanes = (LANES // sums, sums)
    else:
        lanes = _balance(n_kept, n_summed, busy_blocks)
    blocks = -(-n_kept // lanes[0])
    terms = n_summed // (lanes[1] * _BUSY_TERMS)
    splits = max(1, min(busy_blocks // blocks, terms + (1 if terms else 0)))
    repeats = max(1, min(_MAX_REPEATS, blocks // busy_blocks))
    return Lanes(*lanes, sums_are_fast=fast, splits=splits, repeats=repeats)


def _balance(n_kept: int, n_summed: int, busy_blocks: int = _BUSY_BLOCKS) -> tuple[int, int]:
    """Lanes where kept cells are neighbours: as few for the sums as keep the card busy."""
    sums = 1
    while (
        sums * 2 <= _power_below(n_summed)
        and LANES // (sums * 2) >= min(_NEIGHBOURS, _power_above(n_kept))
        and n_kept * sums < LANES * busy_blocks
    ):
        sums *= 2
    return LANES // sums, sums


def _power_above(number: int) -> int:
    return 1 << max(0, (number - 1).bit_length())


def _power_below(number: int) -> int:
    return 1 << max(0, number.bit_length() - 1)


def lower_to_levels(plan: Plan, busy_blocks: int = _BUSY_BLOCKS) -> LevelProgram:
    """The levels of a plan.

    - `busy_blocks`: the blocks that keep a card busy; fewer make longer sums.
    """
    program = find_program(plan, 1)
    lowering = _Lowering(plan, program, busy_blocks)
    lowering.lower()
    loops: list[Loop] = []
    rows = []
    for row in lowering.rows:
        rows.append(row.to_integers(len(loops)))
        loops += [*row.kept, *row.summed]
    n_levels = max((row.level for row in lowering.rows), default=-1) + 1
    tiles: list[list[Tiles]] = [[] for _ in range(n_levels)]
    for index, row in enumerate(lowering.rows):
        lanes = row.lanes
        count = -(-row.kept_cells // (lanes.kept * lanes.repeats)) * lanes.splits
        tiles[row.level].append(
            np.stack([np.full(count, index), np.arange(count)], axis=1).astype(np.int32)
        )
    given = program.slots[: lowering.n_inputs, 1:]
    return LevelProgram(
        operations=np.array(rows, dtype=np.int64).reshape(-1, N_COLUMNS),
        loops=np.array(loops, dtype=np.int64).reshape(-1, 4),
        levels=tuple(np.concatenate(level) for level in tiles),
        n_forward=max((lowering.ready[root] for root in lowering.roots), default=0),
        given=np.ascontiguousarray(given),
        forward=np.array(lowering.forward, dtype=np.int64).reshape(-1, 3),
        roots=np.array([program.slots[root, 1] for root in lowering.roots], dtype=np.int64),
        n_slots=lowering.n_tables,
        workspace_cells=lowering.cells,
        potential_cells=int(given[:, 1].sum()),
    )
