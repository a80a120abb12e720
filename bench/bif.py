"""Bayesian networks in the Bayesian interchange format (BIF), as plain arrays.

Runs in either environment and imports neither library.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_VARIABLE = re.compile(r"variable\s+(\S+)\s*\{[^{]*\{([^}]*)\}")
_TABLE = re.compile(r"probability\s*\(\s*([^|)]*?)\s*(?:\|([^)]*))?\)\s*\{([^}]*)\}")
_ROW = re.compile(r"(?:\(([^)]*)\)|table)\s*([^;]*);")


@dataclass(frozen=True)
class Network:
    """A table for each variable: an axis for each parent, then its own; rows sum to 1."""

    sizes: dict[str, int]
    parents: dict[str, tuple[str, ...]]
    tables: dict[str, Array]

    def save(self, path: Path) -> None:
        """Write the network as arrays that need no reader of this format."""
        arrays = {f"table {name}": table for name, table in self.tables.items()}
        arrays |= {f"parents {name}": np.array(p, dtype=str) for name, p in self.parents.items()}
        np.savez(path, allow_pickle=False, names=np.array(list(self.sizes)), **arrays)


def load(path: Path) -> Network:
    """Read what `Network.save` wrote."""
    with np.load(path) as stored:
        names = [str(name) for name in stored["names"]]
        tables = {name: stored[f"table {name}"] for name in names}
        parents = {name: tuple(map(str, stored[f"parents {name}"])) for name in names}
    return Network({name: tables[name].shape[-1] for name in names}, parents, tables)


def read_bif(path: Path) -> Network:
    """Read a network from a compressed file.

    Rows are scaled to sum to 1: in some files rounding has left them short of it, and what such a
    network means would then depend on the order in which a library sums.
    """
    with gzip.open(path, "rt") as file:
        text = file.read()
    states = {name: _split(values) for name, values in _VARIABLE.findall(text)}
    parents, tables = dict[str, tuple[str, ...]](), dict[str, Array]()
    for name, given, body in _TABLE.findall(text):
        parents[name] = tuple(_split(given))
        codes = [{state: code for code, state in enumerate(states[p])} for p in parents[name]]
        table = np.full([len(c) for c in (*codes, states[name])], np.nan)
        for row, numbers in _ROW.findall(body):
            cell = tuple(code[state] for code, state in zip(codes, _split(row), strict=True))
            table[cell] = [float(number) for number in numbers.split(",")]
        tables[name] = table / table.sum(axis=-1, keepdims=True)
    return Network({name: len(values) for name, values in states.items()}, parents, tables)


def _split(text: str) -> list[str]:
    """The words between commas."""
    return [word.strip() for word in text.split(",") if word.strip()]
