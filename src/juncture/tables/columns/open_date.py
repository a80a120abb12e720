"""Columns of dates whose periods are found privately."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from juncture.errors import InvalidInput
from juncture.tables.columns.base import Column, Outside, TomlTable, call_with_entries
from juncture.tables.columns.date import Date
from juncture.tables.columns.grid import MAX_CELLS
from juncture.tables.columns.open import MAX_BINS, PRIVATE, Cell, OpenBins, check_max_bins
from juncture.tables.histogram import FineHistogram
from juncture.tables.periods import Period, to_date


@dataclass(frozen=True, kw_only=True)
class OpenDate(OpenBins, Date):
    """Dates between two public ones, in periods that are found privately.

        [columns.seen]
        kind = "date"
        low = 2015-01-01
        high = 2025-12-31
        bins = "private"

    >>> OpenDate(low=dt.date(2024, 1, 1), high=dt.date(2024, 12, 31)).n_regular
    366
    """

    period: Period = field(init=False, default=Period.DAY, repr=False)
    edges: tuple[dt.date, ...] = field(init=False, default=(), repr=False)
    max_bins: int = MAX_BINS

    def __post_init__(self) -> None:
        check_max_bins(self.max_bins)
        if type(self.low) is type(self.high) is dt.date and self.low >= self.high:
            raise InvalidInput(f"`low` must be before `high`; got {self.low} and {self.high}.")
        super().__post_init__()
        n_days = (self.high - self.low).days + 1
        days = {Period.DAY: 1, Period.WEEK: 7, Period.MONTH: 28}
        period = next((p for p, n in days.items() if n_days <= n * MAX_CELLS), Period.YEAR)
        object.__setattr__(self, "period", period)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The days; weeks or months where there are too many."""
        return tuple(Cell(code, *meaning) for code, meaning in enumerate(self.regular))  # type: ignore[misc]

    @property
    def widest(self) -> Date:
        """Periods of about one length, as many as there may be."""
        n_bins = min(self.max_bins, len(self.cells))
        indices = np.linspace(0, len(self.cells), n_bins + 1)[:-1].astype(int)
        return self._with_starts([self.cells[index].low for index in indices], None)

    def make_closed(
        self, starts: Sequence[float], points: Sequence[float], fine: FineHistogram
    ) -> Column:
        """See `OpenBins.make_closed`."""
        assert not points  # days are intervals of one
        return self._with_starts(starts, fine)

    def _with_starts(self, starts: Sequence[float], fine: FineHistogram | None) -> Date:
        edges = (*map(to_date, starts), self.high)
        return Date(low=self.low, high=self.high, edges=edges, fine=fine, **self._common())

    @classmethod
    def private(
        cls, low: dt.date, high: dt.date, max_bins: int = MAX_BINS, missing: bool = False,
        outside: Outside = Outside.ERROR,
    ) -> Self:  # fmt: skip
        """The column that the entries of a schema file describe."""
        return cls(low=low, high=high, max_bins=max_bins, missing=missing, outside=outside)

    @classmethod
    def from_toml(cls, entries: TomlTable) -> Self:
        """The column with two public dates."""
        return call_with_entries(cls.private, {k: v for k, v in entries.items() if k != "bins"})

    def to_toml(self) -> TomlTable:
        """The two dates, and what is not as usual."""
        most = {"max_bins": self.max_bins} if self.max_bins != MAX_BINS else {}
        return {"low": self.low, "high": self.high, "bins": PRIVATE, **most}
