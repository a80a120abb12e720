"""What runs the levels of a program: a card, or NumPy in its place."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from juncture.engine.gpu.levels import LevelProgram
from juncture.engine.gpu.opcodes import Outcome, Semiring

Array = Any
"""A flat array where the runner keeps its numbers: of CuPy on a card, of NumPy elsewhere."""

# Below these, an entry of a product may have lost terms: see `juncture.engine.compiled.messages`.
TINY = {8: 1e-280, 4: 1e-30}


@dataclass(frozen=True)
class Modules:
    """The libraries of a device: NumPy and SciPy, or CuPy and its likeness of SciPy."""

    arrays: Any
    """NumPy, or a module like it."""
    sparse_name: str
    """The name of the module of sparse matrices, which is slow to import."""

    @property
    def sparse(self) -> Any:  # noqa: ANN401 - a module
        """The module of sparse matrices."""
        return import_module(self.sparse_name)

    def put(self, array: Any, dtype: Any = None) -> Array:  # noqa: ANN401
        """An array where the library keeps its own."""
        return self.arrays.asarray(array, dtype=dtype)

    def fetch(self, array: Array) -> NDArray[np.float64]:
        """The array as one of NumPy."""
        fetched: NDArray[np.float64] = array if isinstance(array, np.ndarray) else array.get()
        return fetched


class Verdict(NamedTuple):
    """How a run has ended, with the log-partition function (or the best score)."""

    log_partition: float
    outcome: Outcome


class Runner(Protocol):
    """Runs the levels of one program; it owns its workspace, so one call at a time."""

    def put(self, vector: NDArray[np.float64]) -> Array:
        """A vector of NumPy where the runner keeps its numbers."""

    def fetch(self, array: Array) -> NDArray[np.float64]:
        """The vector as one of NumPy."""

    def make(self, cells: int) -> Array:
        """An array for so many numbers."""

    def run(
        self, semiring: Semiring, potentials: Array, out: Array | None, total: float
    ) -> Verdict:
        """Run the levels on potentials; `out` receives marginals, unless peaks are asked for."""


class Device(Protocol):
    """Where programs can run."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def busy_blocks(self) -> int:
        """So many blocks of threads keep it busy."""

    @property
    def free_bytes(self) -> int:
        """The memory that is free there."""

    @property
    def modules(self) -> Modules:
        """The libraries for arrays there."""

    def load(self, program: LevelProgram, *, single: bool = False) -> Runner:
        """What runs a program there; `single` keeps tables in single precision."""
