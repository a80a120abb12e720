"""Arrays like those of a card, which never mix with NumPy's own by accident."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from scipy.sparse import csr_matrix

from juncture.engine import vector_ops
from juncture.engine.gpu.interpreter import NumpyDevice
from juncture.engine.gpu.levels import LevelProgram
from juncture.engine.gpu.opcodes import Semiring
from juncture.engine.gpu.runner import Modules, Runner, Verdict


class CardArray(NDArrayOperatorsMixin):
    """An array like a card's: it obeys NumPy's protocols, and never mixes with NumPy's own."""

    __cuda_array_interface__ = None

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("an array of a card becomes one of NumPy by get() alone")

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        return _keep_there(getattr(ufunc, method), given, options)

    def __array_function__(self, function: Any, _: Any, given: Any, options: Any) -> Any:
        return _keep_there(function, given, options)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.values, name)
        if not callable(found):
            return found
        return lambda *given, **options: _keep_there(found, given, options)

    def __getitem__(self, key: Any) -> CardArray:
        return CardArray(self.values[key])

    def __len__(self) -> int:
        return len(self.values)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.values[key] = _unwrap(value)

    def __float__(self) -> float:
        return float(self.values)

    def get(self) -> np.ndarray:
        """Give the numbers as an array of NumPy."""
        return self.values.copy()


def _unwrap(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_unwrap, value))
    if isinstance(value, dict):
        return {name: _unwrap(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        raise TypeError("an array of NumPy among those of a card")
    return value.values if isinstance(value, CardArray) else value


def _keep_there(function: Any, given: Any, options: Any) -> Any:
    return CardArray(np.asarray(function(*_unwrap(given), **_unwrap(options))))


class CardMatrix:
    """A sparse matrix that takes and gives arrays of a card alone."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = csr_matrix(matrix)

    def __matmul__(self, vector: CardArray) -> CardArray:
        return CardArray(self._matrix @ vector.values)


class CardModules(Modules):
    """Arrays that are not NumPy's."""

    @property
    def sparse(self) -> Any:
        """See `Modules.sparse`."""
        return SimpleNamespace(csr_matrix=CardMatrix)

    def put(self, array: Any, dtype: Any = None) -> CardArray:
        """See `Modules.put`."""
        return CardArray(np.array(array, dtype=dtype))


class StrictRunner:
    """NumPy's runner behind arrays that are not NumPy's."""

    def __init__(self, inner: Runner) -> None:
        self._inner = inner

    def put(self, vector: np.ndarray) -> CardArray:
        """See `Runner.put`."""
        return CardArray(np.array(vector))

    def fetch(self, array: CardArray) -> np.ndarray:
        """See `Runner.fetch`."""
        return array.get()

    def make(self, cells: int) -> CardArray:
        """See `Runner.make`."""
        return CardArray(np.full(cells, np.nan))

    def run(self, semiring: Semiring, potentials: Any, out: Any, total: float) -> Verdict:
        """See `Runner.run`."""
        return self._inner.run(semiring, potentials.values, out and out.values, total)


class ArrayCard:
    """A card whose arrays are not NumPy's."""

    name, busy_blocks, free_bytes = "arrays", 264, 1 << 40
    modules = CardModules(np, "scipy.sparse")

    def load(self, program: LevelProgram, *, single: bool = False) -> StrictRunner:
        """See `Device.load`."""
        return StrictRunner(NumpyDevice().load(program, single=single))


class StrictArithmetic:
    """The routines of `vector_ops` for such arrays."""

    def __getattr__(self, name: str) -> Any:
        routine = getattr(vector_ops, name)
        return lambda *given: routine(*_unwrap(given))
