"""Arrays like those of a card, which never mix with NumPy's own by accident."""

from __future__ import annotations

from typing import Any

import numpy as np

from juncture.engine.gpu.levels import LevelProgram
from juncture.engine.gpu.runner import Modules, Runner


class CardArray:
    """An array like a card's: it obeys NumPy's protocols, and never mixes with NumPy's own."""

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

    def __mul__(self, other: Any) -> Any:
        return np.multiply(self, other)

    def __truediv__(self, other: Any) -> Any:
        return np.divide(self, other)

    def __matmul__(self, other: Any) -> Any:
        return np.matmul(self, other)

    def __gt__(self, other: Any) -> Any:
        return np.greater(self, other)

    def get(self) -> np.ndarray:
        """Give the numbers as an array of NumPy."""
        return self.values.copy()


def _keep_there(function: Any, given: Any, options: Any) -> Any:
    def unwrap(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(unwrap, value))
        if isinstance(value, np.ndarray):
            raise TypeError("an array of NumPy among those of a card")
        return value.values if isinstance(value, CardArray) else value

    return CardArray(np.asarray(function(*unwrap(given), **unwrap(options))))


class CardModules(Modules):
    """Arrays that are not NumPy's."""

    def put(self, array: Any, dtype: Any = None) -> CardArray:
        """See `Modules.put`."""
        return CardArray(np.array(array, dtype=dtype))


class ArrayCard:
    """A card whose arrays are not NumPy's; it runs no kernels."""

    name, busy_blocks, free_bytes = "arrays", 264, 1 << 40
    modules = CardModules(np, "scipy.sparse")

    def load(self, program: LevelProgram, *, single: bool = False) -> Runner:
        """See `Device.load`."""
        raise NotImplementedError
