"""The kernels of a card, compiled for the processor: `emulated_card.cpp` says how."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import juncture.engine.gpu
from juncture.engine.gpu.kernel_runner import KernelRunner
from juncture.engine.gpu.levels import LevelProgram
from juncture.engine.gpu.runner import Modules

COMPILER = shutil.which("g++") or shutil.which("c++")


class EmulatedCard:
    """A device whose kernels run on the processor."""

    name = "emulated"
    free_bytes = 1 << 30
    modules = Modules(np, "scipy.sparse")

    def __init__(self, busy_blocks: int = 1024) -> None:
        self.busy_blocks = busy_blocks

    def load(self, program: LevelProgram, *, single: bool = False) -> KernelRunner:
        """See `Device.load`."""
        return KernelRunner(
            EmulatedBackend(), program, np.dtype(np.float32 if single else np.float64)
        )


class EmulatedBackend:
    """Arrays of NumPy, and kernels in a shared library."""

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        """See `Backend.put`."""
        return array.copy()

    def make(self, cells: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """See `Backend.make`."""
        return np.full(cells, np.nan if dtype.kind == "f" else -1, dtype)

    def fetch(self, array: NDArray[Any]) -> NDArray[Any]:
        """See `Backend.fetch`."""
        return array.copy()

    def overwrite(self, array: NDArray[Any], values: NDArray[Any]) -> None:
        """See `Backend.overwrite`."""
        array[:] = values

    def address(self, array: NDArray[Any]) -> int:
        """See `Backend.address`."""
        return int(array.ctypes.data)

    def start(self, kernel: str, blocks: int, *arguments: Any) -> None:
        """See `Backend.start`."""
        getattr(library(), f"emulate_{kernel}")(ctypes.c_int(blocks), *map(_convert, arguments))

    def record(self, start_all: Callable[[], None]) -> Callable[[], None]:
        """See `Backend.record`."""
        return start_all


def _convert(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    if isinstance(argument, np.float64):
        return ctypes.c_double(argument)
    if isinstance(argument, np.int64 | np.uint64):
        return ctypes.c_uint64(int(argument) % 2**64)
    return ctypes.c_int(int(argument))


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """Give the kernels, compiled for the processor."""
    source = Path(__file__).with_suffix(".cpp")
    folder = Path(juncture.engine.gpu.__file__).parent
    made = Path(tempfile.mkdtemp()) / "kernels.so"
    options = ["-O1", "-shared", "-fPIC", "-std=c++17", f"-I{folder}", "-o", str(made)]
    subprocess.run([str(COMPILER), *options, str(source)], check=True)
    loaded = ctypes.CDLL(str(made))
    shutil.rmtree(made.parent)
    return loaded
