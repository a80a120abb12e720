"""The table of a bank's telephone marketing (Moro, Cortez and Rita 2014), as UCI gives it out.

`bank-full.csv` lies in the folder that the user names. Numbers are cut at round limits that were
written down beforehand; texts are coded in their order.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from juncture.tables.domain import Domain

FILE = "bank-full.csv"
TARGET = "y"
_LIMITS: dict[str, tuple[int, ...]] = {
    "age": (25, 30, 35, 40, 45, 50, 55, 60, 65),
    "balance": (-500, 0, 100, 250, 500, 1000, 2000, 4000, 8000),
    "day": tuple(range(2, 32)),
    "duration": (30, 60, 90, 120, 150, 180, 240, 300, 360, 480, 600, 900, 1200),
    "campaign": (2, 3, 4, 5, 6, 11),
    "pdays": (0, 60, 90, 100, 150, 180, 190, 250, 300, 365),
    "previous": (1, 2, 3, 4, 5),
}


def read_bank(folder: Path) -> tuple[Domain, NDArray[np.integer]]:
    """The attributes with sizes, and the codes: a row for each record."""
    with (folder / FILE).open(newline="") as file:
        head, *rows = list(csv.reader(file, delimiter=";"))
    sizes, columns = {}, []
    for name, column in zip(head, zip(*rows, strict=True), strict=True):
        limits = _LIMITS.get(name)
        if limits is None:
            values, codes = np.unique(np.array(column), return_inverse=True)
            sizes[name] = len(values)
        else:
            codes = np.searchsorted(limits, np.array(column, dtype=np.int64), side="right")
            sizes[name] = len(limits) + 1
        columns.append(codes)
    return Domain(sizes), np.array(columns).T
