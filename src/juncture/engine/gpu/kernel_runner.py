"""The kernels of `kernels.cu`, started in order: what a call of the oracle is on a card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from juncture.engine.gpu.levels import LevelProgram
from juncture.engine.gpu.opcodes import LANES, Outcome, Semiring
from juncture.engine.gpu.runner import TINY, Array, Verdict

# The cells of a given table that one block looks through for the largest.
_PART = 4096
# The struct of kernels.cu that a call is handed over with, and the one that it ends with.
_CALL = np.dtype([("potentials", np.uint64), ("out", np.uint64), ("total", np.float64)])
_RESULT = np.dtype([("log_partition", np.float64), ("outcome", np.int64)])
_SLOT_WORDS = 3


class Backend(Protocol):
    """Where kernels run and arrays lie."""

    def put(self, array: NDArray[Any]) -> Array:
        """An array of NumPy, copied to where kernels run."""

    def make(self, cells: int, dtype: np.dtype[Any]) -> Array:
        """An array that is not filled."""

    def fetch(self, array: Array) -> NDArray[Any]:
        """An array, copied back."""

    def overwrite(self, array: Array, values: NDArray[Any]) -> None:
        """Copy values into an array."""

    def address(self, array: Array) -> int:
        """Where the array begins."""

    def start(self, kernel: str, blocks: int, *arguments: Any) -> None:  # noqa: ANN401
        """Start blocks of a kernel; arguments are arrays, and NumPy's int32 and float64."""

    def record(self, start_all: Callable[[], None]) -> Callable[[], None]:
        """What starts the same kernels again, all at once."""


class KernelRunner:
    """See `Runner`: the kernels of a call, recorded once for each semiring and replayed."""

    def __init__(self, backend: Backend, program: LevelProgram, dtype: np.dtype[Any]) -> None:
        self._backend, self._program, self._dtype = backend, program, dtype
        self._tables = [backend.put(each) for each in (program.operations, program.loops)]
        self._levels = [backend.put(np.ascontiguousarray(tiles)) for tiles in program.levels]
        self._given, self._forward = backend.put(program.given), backend.put(program.forward)
        self._roots = backend.put(program.roots)
        counts = -(-program.given[:, 1] // _PART)
        tables = np.repeat(np.arange(len(counts)), counts)
        parts = np.concatenate([np.arange(n) for n in counts]) if len(counts) else counts
        self._parts = backend.put(np.stack([tables, parts], axis=1).astype(np.int32))
        self._n_parts = len(tables)
        self._slots = backend.put(np.zeros(max(1, _SLOT_WORDS * program.n_slots), np.uint64))
        self._call = backend.put(np.zeros(3, np.uint64))
        self._result = backend.put(np.zeros(2, np.uint64))
        self._work = backend.make(program.workspace_cells, dtype)
        self._replays: dict[Semiring, Callable[[], None]] = {}

    def put(self, vector: NDArray[np.float64]) -> Array:
        """See `Runner.put`."""
        return self._backend.put(np.ascontiguousarray(vector, dtype=self._dtype))

    def fetch(self, array: Array) -> NDArray[np.float64]:
        """See `Runner.fetch`."""
        return self._backend.fetch(array).astype(np.float64, copy=False)

    def make(self, cells: int) -> Array:
        """See `Runner.make`."""
        return self._backend.make(cells, self._dtype)

    def run(
        self, semiring: Semiring, potentials: Array, out: Array | None, total: float
    ) -> Verdict:
        """See `Runner.run`."""
        backend = self._backend
        received = 0 if out is None else backend.address(out)
        call = np.array([(backend.address(potentials), received, total)], dtype=_CALL)
        backend.overwrite(self._call, call.view(np.uint64))
        if semiring not in self._replays:
            self._replays[semiring] = backend.record(lambda: self._start(semiring))
        self._replays[semiring]()
        [(log_partition, outcome)] = backend.fetch(self._result).view(_RESULT)
        return Verdict(float(log_partition), Outcome(int(outcome)))

    def _start(self, semiring: Semiring) -> None:
        """Start all kernels of a call."""
        backend, program = self._backend, self._program
        n_slots, n_given = np.int32(program.n_slots), np.int32(len(program.given))
        blocks = -(-max(1, program.n_slots) // LANES)
        single = "float" if self._dtype.itemsize == 4 else "double"
        one = np.float64(1.0 if semiring is Semiring.ORDINARY else 0.0)
        backend.start(
            f"reset_{single}", blocks, self._slots, n_slots, n_given, self._work, one, self._result
        )
        backend.start(
            f"survey_{single}", self._n_parts, self._parts, self._given, np.int32(_PART),
            self._call, self._slots, self._result,
        )  # fmt: skip
        kernel = f"{semiring.name.lower()}_{single}"
        peaks = semiring is Semiring.PEAKS
        for tiles in self._levels[: program.n_forward if peaks else None]:
            shared = (*self._tables, self._call, self._slots, self._work, self._result)
            backend.start(kernel, len(tiles), tiles, *shared)
        if semiring is Semiring.ORDINARY:
            backend.start(
                "summarise", 1, self._forward, np.int32(len(program.forward)), n_given, n_slots,
                np.float64(TINY[self._dtype.itemsize]), self._slots, self._result,
            )  # fmt: skip
        else:
            n_roots = np.int32(len(program.roots))
            backend.start("summarise_logarithms", 1, self._roots, n_roots, self._work, self._result)
