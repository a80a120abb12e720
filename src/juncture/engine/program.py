"""A plan lowered to integer tables that the compiled kernels walk.

Every table of the plan (measured or intermediate) has a slot for its values and, where needed,
one for its derivative, which is the message that comes back from the rest of the tree. A step
runs once forward and once backward; both are products of two tables along nested loops. So a
program is a list of operations, each with the numbers of its slots and its loops.

For example, the cliques ab and bc, the second hanging on the first, become

    up     EXPONENTIATE bc            numbers from potentials
           CONTRACT bc, 1 -> m        m(b): the message, bc summed over c
           EXPONENTIATE ab
           CONTRACT ab, m -> z        z: the number that the log-partition function comes from
    down   ABSORB ab, m, z -> m'      ab becomes its marginal; m'(b): what z gains from m(b)
           ABSORB bc, 1, m, m'        bc becomes its marginal

Backward steps run in exactly the reverse order, because a step's derivative is ready only when the
step that used its result has run. A given table lies in the array of the results: exponentiated
there on the way up, multiplied into its marginal on the way down, without a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture.engine.compiled.opcodes import ABSORB, CONTRACT, EXPONENTIATE, FINISH
from juncture.engine.contraction import ONE, Step
from juncture.engine.loops import Loop, LoopTable, Span, loop_order
from juncture.engine.partition import partition
from juncture.engine.plan import Plan

Integers = NDArray[np.int64]

_NONE = -1


class Operation(NamedTuple):
    """One row of the table of operations; the kernels name its columns in the same order."""

    kind: int
    left: int
    right: int = _NONE
    result: int = _NONE
    adjoint: int = _NONE
    collected: int = _NONE
    first_loop: int = 0
    n_loops: int = 0


class Segments(NamedTuple):
    """Ranges of operations: per thread up, then the top of the tree, then per thread down."""

    up: tuple[Span, ...]
    top: Span
    down: tuple[Span, ...]


@dataclass(frozen=True)
class Program:
    """The integer tables that the kernels walk."""

    operations: Integers
    forward: Integers
    """The operations whose scales make up the log-partition function, children first."""
    loops: Integers
    slots: Integers
    """For each slot: whether it lies among the potentials, its offset, its cells."""
    workspace_cells: int
    segments: Segments


class Slots:
    """Where the values and the derivatives of all tables lie.

    With n tables, slot t has the values of table t and slot n + t its derivative; the last slot is
    the number one. Slots that are never allocated point at the first cell of the workspace, which
    is the number one too: as the derivative of a root's result it is right as it stands.
    """

    def __init__(self, plan: Plan) -> None:
        contraction = plan.contraction
        self.n_inputs = contraction.n_inputs
        self.n_tables = len(contraction.axes)
        self.one = 2 * self.n_tables
        self.rows: list[tuple[int, int, int]] = [(0, 0, 1)] * (self.one + 1)
        self.workspace_cells = 1  # the first cell holds the number one
        offset = 0
        for table in range(self.n_inputs):
            cells = contraction.counts[table]
            self.rows[table] = (1, offset, cells)
            offset += cells
        steps = [step for node in plan.nodes for step in node.steps]
        for step in steps:
            self._allocate(step.result, contraction.counts[step.result])
        for table in contraction.adjoint_tables(steps):
            self._allocate(self.adjoint(table), contraction.counts[table])

    def adjoint(self, table: int) -> int:
        """The slot of a table's derivative; that of a root is the number one."""
        return self.n_tables + table

    def value(self, table: int) -> int:
        """The slot of a table's values."""
        return self.one if table == ONE else table

    def _allocate(self, slot: int, cells: int) -> None:
        self.rows[slot] = (0, self.workspace_cells, cells)
        self.workspace_cells += cells


class _Lowering:
    """Turns steps into operations."""

    def __init__(self, plan: Plan) -> None:
        self.contraction = plan.contraction
        self.slots = Slots(plan)
        self.loops = LoopTable(plan.domain.shape)

    def lower(self, step: Step) -> tuple[list[Operation], list[Operation]]:
        """The operations of a step on the way up, and those on the way down."""
        axes = [() if table == ONE else self.contraction.axes[table] for table in step]
        left, right, result = axes
        loops = self.loops.measure(loop_order(left, right, result), (left, right, result))
        return self._forward(step, loops), self._backward(step, loops)

    def _forward(self, step: Step, loops: list[Loop]) -> list[Operation]:
        """Exponentiate the given tables that enter here, then multiply and sum."""
        rows = [Operation(EXPONENTIATE, t) for t in step[:2] if self._is_input(t)]
        left, right = self.slots.value(step.left), self.slots.value(step.right)
        span = self.loops.add(loops)
        return [*rows, Operation(CONTRACT, left, right, step.result, _NONE, _NONE, *span)]

    def _backward(self, step: Step, loops: list[Loop]) -> list[Operation]:
        """Compute the derivatives of both operands; given tables become marginals.

        A marginal is the table times its derivative. Where a given table holds every attribute of
        the step, one pass multiplies it in place and collects the derivative of the other operand
        (ABSORB). Otherwise derivatives are products of their own, and FINISH multiplies at the end.
        """
        left, right, _ = step
        if self._is_input(left) and self.contraction.covers(step):
            rows, finished = [self._absorb(step, loops)], [right]
        else:
            rows = [self._derive(step, left, right, [(n, r, q, p) for n, p, q, r in loops])]
            if right != ONE:
                rows.append(self._derive(step, right, left, [(n, r, p, q) for n, p, q, r in loops]))
            finished = [left, right]
        return rows + [self._finish(table) for table in finished if self._is_input(table)]

    def _is_input(self, table: int) -> bool:
        return 0 <= table < self.slots.n_inputs

    def _absorb(self, step: Step, loops: list[Loop]) -> Operation:
        collected = _NONE if step.right == ONE else self.slots.adjoint(step.right)
        right = self.slots.value(step.right)
        adjoint, span = self.slots.adjoint(step.result), self.loops.add(loops)
        return Operation(ABSORB, step.left, right, step.result, adjoint, collected, *span)

    def _derive(self, step: Step, table: int, other: int, loops: list[Loop]) -> Operation:
        """The derivative of the step's result by one of its operands."""
        top, result = self.slots.adjoint(step.result), self.slots.adjoint(table)
        span = self.loops.add(loops)
        return Operation(CONTRACT, top, self.slots.value(other), result, _NONE, _NONE, *span)

    def _finish(self, table: int) -> Operation:
        span = self.loops.flat(self.slots.rows[table][2])
        adjoint = self.slots.adjoint(table)
        return Operation(FINISH, table, adjoint, self.slots.one, _NONE, _NONE, *span)


def find_program(plan: Plan, threads: int) -> Program:
    """The program of a plan, which is lowered once for so many threads."""
    if threads not in plan.lowered:
        plan.lowered[threads] = lower(plan, threads)
    return plan.lowered[threads]


def lower(plan: Plan, threads: int) -> Program:
    """The program of a plan, its tree divided between the threads.

    Each thread takes whole subtrees up, one takes what lies above all of them up and down again,
    then each takes its subtrees down: threads only wait for each other twice.
    """
    lowering, contraction = _Lowering(plan), plan.contraction
    up: list[list[Operation]] = []
    down: list[list[Operation]] = []
    for node in plan.nodes:
        lowered = [lowering.lower(step) for step in node.steps]
        up.append([row for forward, _ in lowered for row in forward])
        down.append([row for _, backward in reversed(lowered) for row in backward])
    work = [sum(map(contraction.union_cells, n.steps)) for n in plan.nodes] if threads > 1 else []
    groups, top = partition([node.parent for node in plan.nodes], work, threads)
    rows: list[Operation] = []

    def span(nodes: Iterable[int], source: list[list[Operation]]) -> Span:
        begin = len(rows)
        rows.extend(row for node in nodes for row in source[node])
        return begin, len(rows)

    ups = tuple(span(group, up) for group in groups)
    top_up = span(top, up)
    forward = np.arange(len(rows), dtype=np.int64)
    top_down = span(top[::-1], down)
    downs = tuple(span(group[::-1], down) for group in groups)
    return Program(
        operations=_as_matrix(rows, len(Operation._fields)),
        forward=forward,
        loops=_as_matrix(lowering.loops.rows, 4),
        slots=_as_matrix(lowering.slots.rows, 3),
        workspace_cells=lowering.slots.workspace_cells,
        segments=Segments(ups, (top_up[0], top_down[1]), downs),
    )


def _as_matrix(rows: Sequence[tuple[int, ...]], n_columns: int) -> Integers:
    """Rows of integers as an array; reading them one by one is faster than as nested tuples."""
    numbers = np.fromiter(chain.from_iterable(rows), np.int64, n_columns * len(rows))
    return numbers.reshape(-1, n_columns)
