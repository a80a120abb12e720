"""Tables of the user's own: every `others/NAME.csv` in the folder that the user names.

Any CSV file with a header does, with commas or semicolons. These tables show whether a rule holds
on data that it was not made for. Numbers of more than 12 values are cut into ten parts that have
as many records each; other values are coded in their order, and a missing one is a value too. A
column is left out that has one value, no name or one that was there before, or more than 50 texts,
and one of whole numbers that are all different, which only name the records.
Cutting looks at the records, and is for experiments alone: a release would have to pay for it.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from juncture.tables.domain import Domain

Codes = NDArray[np.integer]

FOLDER = "others"
_MAX_NUMBERS, _MAX_TEXTS, _N_PARTS = 12, 50, 10
_MISSING = ("", "NA", "?")


def list_others(folder: Path | None) -> tuple[str, ...]:
    """The names of these tables."""
    return tuple(sorted(file.stem for file in (folder / FOLDER).glob("*.csv"))) if folder else ()


def read_other(name: str, folder: Path) -> tuple[Domain, Codes]:
    """The attributes with sizes, and the codes: a row for each record."""
    with (folder / FOLDER / f"{name}.csv").open(newline="") as file:
        first = file.readline()
        file.seek(0)
        head, *rows = list(csv.reader(file, delimiter=";" if ";" in first else ","))
    head = ["" for _ in rows[0][len(head) :]] + head  # R writes numbers of rows without a name
    sizes, kept = dict[str, int](), list[Codes]()
    for index, column in enumerate(head):
        codes = code_column([row[index].strip() for row in rows])
        size = int(codes.max(initial=-1)) + 1
        if column and column not in sizes and size > 1:
            sizes[column] = size
            kept.append(codes)
    return Domain(sizes), np.array(kept).T


def code_column(texts: list[str]) -> Codes:
    """The codes of a column; all zero where it has too many texts, or only names the records.

    >>> code_column(["no", "yes", "", "no"])
    array([1, 2, 0, 1])
    >>> int(code_column([str(number) for number in range(100)]).max())
    0
    """
    values, codes = np.unique(np.array(texts), return_inverse=True)
    is_missing = np.isin(values, _MISSING)
    try:
        numbers = np.array([float(text) for text in values[~is_missing]])
    except ValueError:
        return codes if len(values) <= _MAX_TEXTS else np.zeros_like(codes)
    if len(numbers) <= _MAX_NUMBERS:
        return codes
    if len(values) == len(texts) and all(text.isdigit() for text in texts):
        return np.zeros_like(codes)
    spread = np.full(len(values), np.nan)
    spread[~is_missing] = numbers
    column = spread[codes]
    known = column[~np.isnan(column)]
    limits = np.unique(np.quantile(known, np.arange(1, _N_PARTS) / _N_PARTS))
    parts = np.searchsorted(limits, column, side="right")
    parts[np.isnan(column)] = len(limits) + 1
    return np.unique(parts, return_inverse=True)[1]
