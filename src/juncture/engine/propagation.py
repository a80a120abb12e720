"""Exact message passing on a junction tree, on the CPU.

The marginals of a model are the derivatives of its log-partition function. So the tree is
contracted from its leaves to its root (messages up), which gives the log-partition function,
and then differentiated from the root to its leaves (messages down), which gives the marginal
of every measured table. No division is needed, so structural zeros need no special care.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from juncture._util.threads import cpu_count, run_parallel
from juncture.engine.compiled.loader import pointer, routine
from juncture.engine.compiled.opcodes import DONE, IMPOSSIBLE, NEEDS_EXPONENTS
from juncture.engine.contraction import Axes
from juncture.engine.loops import Span
from juncture.engine.node_tables import lift, normalise_product
from juncture.engine.oracle import (
    Beliefs,
    Call,
    Peak,
    check_call,
    find_invalid,
    refuse_potentials,
)
from juncture.engine.plan import Node, Plan
from juncture.engine.program import find_program
from juncture.errors import InvalidInput
from juncture.tables.layout import Vector

# Below this many operations, waking a second thread costs more than it saves.
_WORTH_THREADS = 2_000_000
# Lower exponents are those of zeros; see `compiled.extended`.
_ZERO_EXPONENT = -(2**48)


class Propagation:
    """The exact oracle of a plan, by message passing on its junction tree.

    An instance owns its workspace, so it runs one call at a time. `threads` is by default the
    number of processors if the plan is large enough to profit from them.

    >>> from juncture import Domain
    >>> plan = Plan.build(Domain({"a": 2, "b": 2}), [("a",), ("a", "b")])
    >>> oracle = Propagation(plan)
    >>> even = oracle.marginals(np.zeros(6), total=8)
    >>> even.marginals
    array([4., 4., 2., 2., 2., 2.])
    >>> odds = oracle.marginals(np.log([3, 1, 1, 1, 1, 1]), total=8)  # a is 0 three times in four
    >>> odds.marginals.round(6)
    array([6., 2., 3., 3., 1., 1.])
    """

    is_exact = True

    def __init__(self, plan: Plan, *, threads: int | None = None) -> None:
        self.plan = plan
        self.layout = plan.layout
        self._program = find_program(plan, _thread_count(plan, threads))
        free = (math.log(plan.domain[name]) for name in plan.free_attributes)
        self._free_log_partition = math.fsum(free)
        n_slots, n_operations = len(self._program.slots), len(self._program.operations)
        self._work = np.zeros(self._program.workspace_cells)
        self._work[0] = 1.0
        self._exponents = self._given_exponents = np.empty(0, dtype=np.int64)
        self._extended = np.zeros(n_slots, dtype=np.bool_)
        self._repeated = np.zeros(n_slots, dtype=np.int64)
        self._shifts = np.zeros(n_slots)
        self._scales = np.ones(n_slots)
        self._log_scales = np.zeros(n_operations)

    @classmethod
    def node_marginals(cls, plan: Plan, potentials: Vector) -> list[Vector]:
        """See `TreeMaker.node_marginals`."""
        oracle = cls(plan)
        oracle.marginals(potentials)
        children: list[list[Node]] = [[] for _ in plan.nodes]
        for node in plan.nodes:
            if node.parent is not None:
                children[node.parent].append(node)
        return [
            oracle._node_marginal(potentials, node, below)
            for node, below in zip(plan.nodes, children, strict=True)
        ]

    def marginals(
        self, potentials: Vector, total: float = 1.0, *, out: Vector | None = None
    ) -> Beliefs:
        """See `Oracle.marginals`."""
        call = check_call(self.layout, potentials, total, out)
        outcome = self._run(call)
        if outcome == NEEDS_EXPONENTS:
            self._exponents = np.zeros(self._program.workspace_cells, dtype=np.int64)
            self._given_exponents = np.zeros(self.layout.size, dtype=np.int64)
            outcome = self._run(call)
        log_partition = float(self._log_scales[self._program.forward].sum())
        if outcome == IMPOSSIBLE or not math.isfinite(log_partition):
            raise refuse_potentials(call.potentials)
        return Beliefs(call.out, log_partition + self._free_log_partition)

    def _node_marginal(self, potentials: Vector, node: Node, below: list[Node]) -> Vector:
        """The probabilities of a maximal clique's cells, from the messages of the last call."""
        domain, axes = self.plan.domain, self.plan.contraction.axes
        clique = [domain.positions[name] for name in node.clique]
        tables: list[tuple[Vector, Axes]] = [
            (self.layout.view(potentials, measured), tuple(domain.positions[n] for n in measured))
            for measured in node.measured
        ]
        messages = [child.steps[-1].result for child in below]
        tables += [(self._find_logarithms(table), axes[table]) for table in messages]
        if node.parent is not None:
            message = node.steps[-1].result
            # The derivative of a table lies as many slots after it as there are tables.
            tables.append((self._find_logarithms(len(axes) + message), axes[message]))
        factors = [lift(values, names, clique, domain.shape) for values, names in tables]
        return normalise_product([domain[name] for name in node.clique], factors)

    def _find_logarithms(self, slot: int) -> Vector:
        """The logarithms of a message, up to a constant."""
        _, start, cells = self._program.slots[slot]
        with np.errstate(divide="ignore"):
            logarithms: Vector = np.log(self._work[start : start + cells])
        if not self._extended[slot]:
            return logarithms
        exponents = self._exponents[start : start + cells]
        return np.where(exponents < _ZERO_EXPONENT, -np.inf, logarithms + math.log(2) * exponents)

    @property
    def repeated(self) -> int:
        """How many multiplications of the last call needed an exponent for each entry."""
        return int(self._repeated.sum())

    def maximum(self, potentials: Vector) -> Peak:
        """The record with the largest sum of potentials (max-product); ties go to low codes."""
        vector = self.layout.as_vector(potentials)
        error = find_invalid(vector)
        if error:
            raise error
        program = self._program
        peaks = np.zeros(program.workspace_cells)
        chosen = np.zeros(len(program.slots), dtype=np.int64)
        operations = program.operations[program.forward]
        routine("maximise")(
            *_pointer_and_length(operations),
            *_pointer_and_length(program.loops),
            *_pointer_and_length(program.slots),
            *_pointer_and_length(vector),
            *_pointer_and_length(peaks),
            pointer(chosen),
        )
        cells = chosen[: len(self.layout.cliques)]
        score = math.fsum(vector[cells])
        if not math.isfinite(score):
            raise refuse_potentials(vector)
        return Peak(self._decode_record(cells), score)

    def _decode_record(self, cells: NDArray[np.int64]) -> dict[str, int]:
        """The code of every attribute, read off the chosen cell of each measured clique."""
        record = dict.fromkeys(self.plan.domain, 0)
        for clique, cell, start in zip(
            self.layout.cliques, cells, self.layout.offsets, strict=False
        ):
            shape = [self.plan.domain[name] for name in clique]
            codes = np.unravel_index(int(cell) - start, shape)
            record.update((name, int(code)) for name, code in zip(clique, codes, strict=True))
        return record

    def _run(self, call: Call) -> int:
        program, compiled = self._program, routine("run")
        self._repeated[:] = 0
        arrays = (
            *_pointer_and_length(program.operations),
            *_pointer_and_length(program.loops),
            *_pointer_and_length(program.slots),
            *_pointer_and_length(self._work),
            pointer(self._extended),
            pointer(self._shifts),
            pointer(self._scales),
            pointer(self._repeated),
            pointer(self._log_scales),
            *_pointer_and_length(self._exponents),
            *_pointer_and_length(self._given_exponents),
            pointer(call.potentials),
            *_pointer_and_length(call.out),
        )

        def run(span: Span) -> int:
            return int(compiled(*span, call.total, *arrays))

        up, top, down = program.segments
        return (
            max(run_parallel(run, up), default=DONE)
            or run(top)
            or max(run_parallel(run, down), default=DONE)
        )


def _pointer_and_length(array: NDArray[Any]) -> tuple[Any, int]:
    """An array and its length, as compiled routines take them."""
    return pointer(array), len(array)


def _thread_count(plan: Plan, threads: int | None) -> int:
    if threads is None:
        return cpu_count() if plan.operations >= _WORTH_THREADS else 1
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise InvalidInput(
            f"`threads` must be a positive integer; got {threads!r}. "
            "Leave it out to let the plan decide."
        )
    return threads
