"""Totals that are public knowledge, such as official statistics: the model holds them exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.tables.codebook import Codebook, Coding
from juncture.tables.domain import Clique, Domain


@dataclass(frozen=True)
class Known:
    """A table of counts that is public: its columns, and a row for each cell that is not empty.

    >>> from juncture.tables.codebook import Coding
    >>> known = Known(("sex",), (("female", 510), ("male", 490)))
    >>> known.table(Codebook({"sex": Coding(("female", "male"))}))
    array([510., 490.])
    """

    columns: Clique
    counts: tuple[tuple[Any, ...], ...]
    """For each cell a value of every column, then its count; other cells are empty."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _to_names(self.columns))
        rows = self.counts if isinstance(self.counts, list | tuple) else ()
        object.__setattr__(self, "counts", tuple(map(_to_row, rows)))
        width = len(self.columns) + 1
        if not self.counts or any(len(row) != width for row in self.counts):
            raise InvalidInput(
                f"`counts` must be rows of {width - 1} values and a count; got others. Write them "
                'as [["female", 510], ["male", 490]].'
            )
        for row in self.counts:
            number = row[-1]
            valid = isinstance(number, int | float) and not isinstance(number, bool)
            if not (valid and math.isfinite(number) and number >= 0):
                raise InvalidInput(f"`counts` must not be negative; got {number!r}.")
        if self.total <= 0:
            raise InvalidInput("`counts` must have a record; got none.")

    @property
    def total(self) -> float:
        """The number of records."""
        return math.fsum(row[-1] for row in self.counts)

    def table(self, codebook: Codebook) -> NDArray[np.float64]:
        """The counts with an axis for each column, in the order of the schema."""
        whole = Domain({name: coding.size for name, coding in codebook.codings.items()})
        domain = whole.project(whole.canonical(self.columns))
        found = np.full(domain.shape, np.nan)
        for *values, count in self.counts:
            codes = {
                name: _find_code(codebook[name], name, value)
                for name, value in zip(self.columns, values, strict=True)
            }
            cell = tuple(codes[name] for name in domain)
            if not np.isnan(found[cell]):
                raise InvalidInput(f"`counts` must have each cell once; got {values!r} twice.")
            found[cell] = count
        return np.where(np.isnan(found), 0.0, found)

    def to_toml(self) -> dict[str, Any]:
        """The entries of a table [[known]] in a schema file."""
        return {"columns": list(self.columns), "counts": [list(row) for row in self.counts]}


def _to_names(columns: object) -> Clique:
    names = tuple(columns) if isinstance(columns, list | tuple) else ()
    texts = {name for name in names if isinstance(name, str)}
    if not names or len(texts) < len(names):
        raise InvalidInput(
            f'`columns` must be a list of different columns; got {columns!r}. Write it as ["sex"].'
        )
    return names


def _to_row(row: object) -> tuple[Any, ...]:
    return tuple(row) if isinstance(row, list | tuple) else (row,)


def _find_code(coding: Coding, name: str, value: object) -> int:
    """The code of a value: by its label, or by the bin that a number lies in."""
    for code, label in enumerate(coding.labels):
        same_kind = isinstance(label, bool) == isinstance(value, bool)
        if (same_kind and label == value) or (label is not None and str(label) == str(value)):
            return code
    if isinstance(value, int | float) and not isinstance(value, bool):
        for code, meaning in enumerate(coding.meanings):
            if isinstance(meaning, tuple) and meaning[0] <= value < meaning[1]:
                return code
    raise InvalidInput(
        f"`counts` must be of values that the schema lists; got {value!r} for {name}. Bins are "
        f"called by a number in them, or by their label, such as {coding.labels[0]!r}."
    )
