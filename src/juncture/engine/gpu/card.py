"""An NVIDIA card, by CuPy: memory, the compiled kernels, and graphs of their starts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from juncture._util.threads import cpu_count
from juncture.engine.gpu.kernel_runner import KernelRunner
from juncture.engine.gpu.levels import LevelProgram
from juncture.engine.gpu.opcodes import LANES
from juncture.engine.gpu.runner import Array, Modules, Runner
from juncture.errors import InvalidInput

# A multiprocessor holds four blocks at a time, and a level often has two operations or more.
_BLOCKS_PER_PROCESSOR = 1.5
# Arrays from this size on are copied back in parts, by so many threads at most.
_LARGE, _PART_BYTES, _MAX_THREADS = 256 << 20, 32 << 20, 8
_SOURCE = Path(__file__).with_name("kernels.cu")


class Card:
    """The current card; see `Device`. CuPy keeps what it has compiled for later processes."""

    def __init__(self) -> None:
        self._cupy = import_cupy()
        properties = self._cupy.cuda.runtime.getDeviceProperties(self._cupy.cuda.Device().id)
        self.name = properties["name"].decode()
        self.busy_blocks = int(_BLOCKS_PER_PROCESSOR * properties["multiProcessorCount"])

    @property
    def free_bytes(self) -> int:
        """See `Device.free_bytes`: what the driver has free, and what CuPy holds unused."""
        pool = self._cupy.get_default_memory_pool()
        return int(self._cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes())

    @property
    def backend(self) -> CupyBackend:
        """What starts kernels there."""
        return CupyBackend(self._cupy)

    @property
    def modules(self) -> Modules:
        """See `Device.modules`."""
        return Modules(self._cupy, "cupyx.scipy.sparse")

    def load(self, program: LevelProgram, *, single: bool = False) -> Runner:
        """See `Device.load`."""
        dtype = np.dtype(np.float32 if single else np.float64)
        return KernelRunner(self.backend, program, dtype)


class CupyBackend:
    """See `Backend`."""

    def __init__(self, cupy: Any) -> None:  # noqa: ANN401 - a module without types
        self._cupy = cupy
        self._stream = cupy.cuda.Stream(non_blocking=True)

    def put(self, array: NDArray[Any]) -> Array:
        """See `Backend.put`."""
        return self._cupy.asarray(array)

    def make(self, cells: int, dtype: np.dtype[Any]) -> Array:
        """See `Backend.make`."""
        return self._cupy.empty(cells, dtype)

    def fetch(self, array: Array) -> NDArray[Any]:
        """See `Backend.fetch`."""
        fetched: NDArray[Any] = (
            array.get() if array.nbytes < _LARGE else fetch_in_parts(self._cupy, array)
        )
        return fetched

    def overwrite(self, array: Array, values: NDArray[Any]) -> None:
        """See `Backend.overwrite`."""
        array.set(values)

    def address(self, array: Array) -> int:
        """See `Backend.address`."""
        return int(array.data.ptr)

    def start(self, kernel: str, blocks: int, *arguments: Any) -> None:  # noqa: ANN401
        """See `Backend.start`."""
        _compile().get_function(kernel)((blocks,), (LANES,), arguments)

    def record(self, start_all: Callable[[], None]) -> Callable[[], None]:
        """See `Backend.record`."""
        start_all()  # nothing may be compiled or loaded while starts are recorded
        self._cupy.cuda.get_current_stream().synchronize()
        with self._stream:
            self._stream.begin_capture()
            try:
                start_all()
            finally:
                graph = self._stream.end_capture()

        def replay() -> None:
            default = self._cupy.cuda.get_current_stream()
            graph.launch(default)

        return replay


def fetch_in_parts(cupy: Any, array: Array) -> NDArray[Any]:  # noqa: ANN401 - a module without types
    """A large array, copied back by several threads.

    Memory that the system has just given out is slow to fill for the first time, slower than the
    card sends. So each thread receives parts in memory of its own that the card can write to
    directly, and copies them to where they belong while the others receive theirs.
    """
    cupy.cuda.get_current_stream().synchronize()
    out = np.empty(array.shape, array.dtype)
    source, target = array.reshape(-1), out.reshape(-1)
    step = _PART_BYTES // out.itemsize
    device, mine = cupy.cuda.Device(), threading.local()

    def receive(first: int) -> None:
        with device:
            if not hasattr(mine, "buffer"):
                mine.buffer = make_pinned(step, out.dtype)
                mine.stream = cupy.cuda.Stream(non_blocking=True)
            part = source[first : first + step]
            received = mine.buffer[: len(part)]
            part.get(stream=mine.stream, out=received)
            mine.stream.synchronize()
            target[first : first + step] = received

    with ThreadPoolExecutor(min(_MAX_THREADS, cpu_count())) as pool:
        list(pool.map(receive, range(0, len(target), step)))
    return out


def make_pinned(cells: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array that a card can write to directly."""
    import cupyx  # noqa: PLC0415 - an extra, and slow to import

    made: NDArray[Any] = cupyx.empty_pinned(cells, dtype)
    return made


@lru_cache(maxsize=1)
def _compile() -> Any:  # noqa: ANN401 - a class without types
    """The kernels, compiled for this card or taken from CuPy's cache."""
    return import_cupy().RawModule(code=_SOURCE.read_text(), options=("-std=c++17",))


def import_cupy() -> Any:  # noqa: ANN401 - a module without types
    """CuPy, with a card that it can use, or a clear error."""
    try:
        import cupy  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise InvalidInput(
            "`oracle` must not be 'gpu' without CuPy; it is not installed. "
            "Install it: pip install 'juncture[gpu]'."
        ) from None
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        count = 0
    if count == 0:
        raise InvalidInput(
            "`oracle` must not be 'gpu' without an NVIDIA card; there is none. Use oracle='auto'."
        )
    return cupy


def find_card() -> Card | None:
    """The card, if there is one and CuPy with it; nothing slow happens where CuPy is missing."""
    if find_spec("cupy") is None:
        return None
    try:
        return Card()
    except InvalidInput:
        return None
