"""Open columns: their bins, or their values, are found in the private table, for part of a budget.

An open column is a column all the same. One with private bins has the cells of a fine public grid
as its codes; one with private values has a single code, which all values share. So an open schema
can be read and counted like any other. Before a release is made, its open columns are closed: the
noisy counts of their codes, or the values that are frequent enough, make ordinary columns of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.tables.columns.base import Column
from juncture.tables.histogram import FineHistogram

PRIVATE = "private"
"""What a schema file says where bins or values are to be found privately."""
MAX_BINS = 32
_LARGEST_MAX_BINS = 1_000

Span = tuple[int, int]
"""The first of some cells in a row, and the one after the last."""


class Cell(NamedTuple):
    """A cell of a grid: its code, and the interval that it stands for; a single number has none."""

    code: int
    low: float
    high: float

    @property
    def is_point(self) -> bool:
        """Whether it is a single number among numbers of any size."""
        return self.low == self.high


@dataclass(frozen=True)
class Closed:
    """What an open column has become: a column, and the code there of each code of the open one."""

    column: Column
    codes: tuple[int, ...]


class Open(Column):
    """A column that is closed before a release is made."""

    is_open: ClassVar[bool] = True

    @property
    @abstractmethod
    def widest(self) -> Column:
        """A closed column with as many codes as this one may get: for planning, without data."""

    def _common(self) -> dict[str, Any]:
        """What a closed column takes over."""
        return {
            "missing": self.missing,
            "outside": self.outside,
            "missing_values": self.missing_values,
            "outside_value": self.outside_value,
        }


class OpenBins(Open):
    """A column of numbers or days whose bins are found privately; its codes are cells of a grid."""

    max_bins: int

    @property
    @abstractmethod
    def cells(self) -> Sequence[Cell]:
        """The cells in the order of their numbers, without codes that stand for no place there."""

    @abstractmethod
    def make_closed(
        self, starts: Sequence[float], points: Sequence[float], fine: FineHistogram
    ) -> Column:
        """The column with bins that begin at `starts`, and with codes for single numbers."""

    @property
    def n_own(self) -> int:
        """How many codes before those of the grid stay as they are."""
        return 0

    def close(
        self, bins: Sequence[Span], pieces: Sequence[Span], masses: Sequence[float]
    ) -> Closed:
        """The column with these bins, spans of cells in a row.

        - `pieces`: finer spans, inside which the numbers are taken as spread evenly.
        - `masses`: the estimated number of records of each cell.
        """
        cells = self.cells
        alone = [first for first, stop in bins if stop == first + 1 and cells[first].is_point]
        wide = [(first, stop) for first, stop in bins if first not in alone]
        fine = _make_fine(cells, pieces, np.asarray(masses, dtype=np.float64), set(alone))
        column = self.make_closed(
            [cells[first].low for first, _ in wide], [cells[first].low for first in alone], fine
        )
        codes = np.full(self.coding.size, -1, dtype=np.int64)
        codes[: self.n_own] = np.arange(self.n_own)
        for index, first in enumerate(alone):
            codes[cells[first].code] = self.n_own + index
        for index, (first, stop) in enumerate(wide):
            codes[[cell.code for cell in cells[first:stop]]] = self.n_own + len(alone) + index
        n_after = self.coding.size - self.n_regular
        codes[self.n_regular :] = column.n_regular + np.arange(n_after)
        return Closed(column, tuple(codes.tolist()))


def _make_fine(
    cells: Sequence[Cell], pieces: Sequence[Span], masses: NDArray[np.float64], alone: set[int]
) -> FineHistogram:
    """The histogram over pieces; a single number that is not alone adds to what it lies beside."""
    edges, sums, left_over = [min(cell.low for cell in cells)], list[float](), 0.0
    for first, stop in pieces:
        inside = [index for index in range(first, stop) if index not in alone]
        mass = float(masses[inside].sum()) + left_over
        end = cells[stop - 1].high
        if end > edges[-1]:
            edges.append(end)
            sums.append(mass)
            left_over = 0.0
        elif sums:
            sums[-1] += mass
        else:
            left_over = mass
    return FineHistogram(tuple(edges), tuple(sums))


def check_max_bins(max_bins: object) -> None:
    """Refuse a number of bins that is none."""
    if type(max_bins) is not int or not 2 <= max_bins <= _LARGEST_MAX_BINS:
        raise InvalidInput(
            f"`max_bins` must be a whole number from 2 to {_LARGEST_MAX_BINS:,}; got {max_bins!r}. "
            f"Leave it out for {MAX_BINS}."
        )


def check_bounds(low: object, high: object) -> None:
    """Refuse bounds that are not numbers in order."""
    numbers = [
        end for end in (low, high)
        if isinstance(end, int | float) and not isinstance(end, bool) and np.isfinite(end)
    ]  # fmt: skip
    if len(numbers) != 2 or not numbers[0] < numbers[1]:
        raise InvalidInput(
            f"`low` must be a number below `high`; got {low!r} and {high!r}. Give the smallest and "
            "the largest number that the column may hold, as known without the data."
        )
