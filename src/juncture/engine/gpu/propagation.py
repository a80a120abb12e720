"""The exact oracle on a card."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import numpy as np

from juncture.engine.gpu.card import Card
from juncture.engine.gpu.levels import lower_to_levels
from juncture.engine.gpu.opcodes import Outcome, Semiring
from juncture.engine.gpu.runner import Array, Device
from juncture.engine.oracle import Beliefs, Peak, check_call, refuse_potentials
from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.errors import InvalidInput
from juncture.tables.layout import Vector

Precision = Literal["double", "single"]
# After a call that needed logarithms, so many calls begin with them.
_STAY_WITH_LOGARITHMS = 8


class GpuPropagation:
    """Exact message passing on a card: the levels of a plan, started together.

    Vectors of NumPy are copied to the card and back. Vectors that lie on the card already, made by
    `put`, stay there: a fit keeps all of its vectors on the card.

    - `precision`: "single" keeps tables in single precision: half the memory, marginals within
      about 1e-5 of their own size where potentials are below a hundred.
    - `device`: where it runs; by default the first card.
    """

    is_exact = True

    def __init__(
        self, plan: Plan, *, precision: Precision = "double", device: Device | None = None
    ) -> None:
        if precision not in ("double", "single"):
            raise InvalidInput(f'`precision` must be "double" or "single"; got {precision!r}.')
        self.plan, self.layout, self.precision = plan, plan.layout, precision
        self.device = device or Card()
        self.program = lower_to_levels(plan, self.device.busy_blocks)
        self._runner = self.device.load(self.program, single=precision == "single")
        self._careful = self._runner
        self._free_log_partition = math.fsum(
            math.log(plan.domain[name]) for name in plan.free_attributes
        )
        self._calls_with_logarithms = 0
        if precision == "single":
            # Logarithms of widely spread potentials need all their digits.
            self._careful = self.device.load(self.program)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers of vectors on the card."""
        return np.dtype(np.float32 if self.precision == "single" else np.float64)

    def put(self, vector: Vector) -> Array:
        """A vector on the card."""
        return self._runner.put(vector)

    def fetch(self, array: Array) -> Vector:
        """A vector of the card as one of NumPy."""
        if isinstance(array, np.ndarray):
            return np.asarray(array, dtype=np.float64)
        return self._runner.fetch(array)

    def marginals(
        self, potentials: Vector | Array, total: float = 1.0, *, out: Vector | Array | None = None
    ) -> Beliefs:
        """See `Oracle.marginals`; vectors on the card are answered with vectors there."""
        if hasattr(potentials, "__cuda_array_interface__"):
            if potentials.shape != (self.layout.size,) or potentials.dtype != self.dtype:
                raise InvalidInput(
                    f"`potentials` must be {self.layout.size} numbers of type {self.dtype} on the "
                    f"card; got {potentials.shape} of {potentials.dtype}. Make them with put()."
                )
            received = self._runner.make(self.layout.size) if out is None else out
            return Beliefs(received, self._run(potentials, received, total))
        call = check_call(self.layout, potentials, total, out)
        received = self._runner.make(self.layout.size)
        log_partition = self._run(self._runner.put(call.potentials), received, call.total)
        call.out[:] = self._runner.fetch(received)
        return Beliefs(call.out, log_partition)

    def _run(self, potentials: Array, out: Array, total: float) -> float:
        """Fill `out`: with ordinary numbers, or logarithms where those might lose something."""
        if not self.layout.cliques:
            return self._free_log_partition
        if self._calls_with_logarithms == 0:
            verdict = self._runner.run(Semiring.ORDINARY, potentials, out, total)
            if verdict.outcome is Outcome.DONE:
                return verdict.log_partition + self._free_log_partition
            if verdict.outcome is Outcome.INVALID:
                raise refuse_potentials(self._runner.fetch(potentials))
            self._calls_with_logarithms = _STAY_WITH_LOGARITHMS
        self._calls_with_logarithms -= 1
        return self._run_carefully(potentials, out, total) + self._free_log_partition

    def _run_carefully(self, potentials: Array, out: Array, total: float) -> float:
        runner = self._careful
        given = potentials if runner is self._runner else runner.put(self.fetch(potentials))
        received = out if runner is self._runner else runner.make(self.layout.size)
        verdict = runner.run(Semiring.LOGARITHMS, given, received, total)
        if verdict.outcome is not Outcome.DONE:
            raise refuse_potentials(runner.fetch(given))
        if received is not out:
            out[:] = self._runner.put(runner.fetch(received))
        return verdict.log_partition

    def maximum_score(self, potentials: Array) -> float:
        """The largest sum of potentials of any record."""
        if not self.layout.cliques:
            return 0.0
        given = potentials
        if self._careful is not self._runner or isinstance(potentials, np.ndarray):
            given = self._careful.put(self.fetch(potentials))
        verdict = self._careful.run(Semiring.PEAKS, given, None, 1.0)
        if verdict.outcome is not Outcome.DONE:
            raise refuse_potentials(self._careful.fetch(given))
        return verdict.log_partition

    def maximum(self, potentials: Vector | Array) -> Peak:
        """See `Oracle.maximum`: the record is found on the processor."""
        return Propagation(self.plan).maximum(self.fetch(potentials))


gpu_single = partial(GpuPropagation, precision="single")
"""The oracle on a card in single precision."""
