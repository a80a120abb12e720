"""Columns of dates."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.tables.codebook import Coding, Meaning
from juncture.tables.columns.base import Column, Outside, TomlTable, call_with_entries
from juncture.tables.columns.bins import draw_stepped
from juncture.tables.columns.rounding import round_dates
from juncture.tables.columns.sql import Dialect, RawColumn, date_literal, search_bin
from juncture.tables.columns.summary import ColumnSummary, RawType
from juncture.tables.histogram import FineHistogram
from juncture.tables.periods import Period, next_period, to_day_number

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Date(Column):
    """Dates in a range, grouped by period: days of birth, of admission, of sale.

        [columns.since]
        kind = "date"
        low = 2015-01-01
        high = 2025-12-31
        period = "year"      # or "day", "week", "quarter"; "month" by default

    The first period begins with `low`; weeks are counted from it, the others follow the calendar.
    Periods of several lengths are written by their edges, the first day of each and, at the end,
    the last day:

        [columns.seen]
        kind = "date"
        edges = [2015-01-01, 2020-03-01, 2020-06-01, 2025-12-31]

    >>> import datetime
    >>> first, last = datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)
    >>> Date(low=first, high=last, period="quarter").coding.labels
    ('2024-Q1', '2024-Q2', '2024-Q3', '2024-Q4')
    """

    kind: ClassVar[str] = "date"

    low: dt.date
    high: dt.date
    """The last day; it belongs to the range."""
    period: Period = Period.MONTH
    edges: tuple[dt.date, ...] = ()
    """The first day of each period, then the last day, where periods differ in length."""
    fine: FineHistogram | None = field(default=None, repr=False)
    """How the days lie inside the periods, where these were found privately."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for day in (self.low, self.high):
            if type(day) is not dt.date or not 1 < day.year < 9999:
                raise InvalidInput(
                    f"`low` and `high` must be dates without a time, of the years 2 to 9998; got "
                    f"{day!r}. Write them as 2024-01-31."
                )
        if not self.low <= self.high:
            raise InvalidInput(f"`low` must not be after `high`; got {self.low} and {self.high}.")
        if self.period not in tuple(Period):
            raise InvalidInput(f"`period` must be one of {', '.join(Period)}; got {self.period!r}.")
        object.__setattr__(self, "period", Period(self.period))
        if self.edges:
            self._check_edges()

    def _check_edges(self) -> None:
        """Refuse edges that do not rise from `low` to `high`."""
        object.__setattr__(self, "edges", tuple(self.edges))
        rising = all(type(a) is type(b) is dt.date and a < b for a, b in pairwise(self.edges[:-1]))
        ends = (self.edges[0], self.edges[-1]) == (self.low, self.high)
        if len(self.edges) < 2 or not rising or not ends or self.edges[-2] > self.edges[-1]:
            raise InvalidInput(
                f"`edges` must be at least two days, each later than the one before; got "
                f"{[str(day) for day in self.edges]}."
            )
        object.__setattr__(self, "period", Period.WEEK)  # called by its first and last day

    @cached_property
    def starts(self) -> tuple[dt.date, ...]:
        """The first day of every period; the first period begins with `low`."""
        if self.edges:
            return self.edges[:-1]
        days, day = [self.low], next_period(self.low, self.period)
        while day <= self.high:
            days.append(day)
            day = next_period(day, self.period)
        return tuple(days)

    @cached_property
    def regular(self) -> tuple[Meaning, ...]:
        """The periods, as intervals of days."""
        days = [to_day_number(day) for day in self.starts]
        ends = [*days[1:], to_day_number(self.high) + 1]
        return tuple((float(low), float(high)) for low, high in zip(days, ends, strict=True))

    def make_coding(self, meanings: tuple[Meaning, ...]) -> Coding:
        """The coding, whose intervals are periods of days."""
        return Coding(meanings, period=self.period, fine=self.fine)

    def with_likely_spread(self, counts: NDArray[np.float64], floor: float) -> Self:  # noqa: ARG002
        """The column whose days lie inside periods as the counts suggest, if these were found."""
        if self.fine is None:
            return self
        days = [period for period in self.regular if isinstance(period, tuple)]
        fine = self.fine.follow_counts(days, counts[: self.n_regular], whole=True)
        return replace(self, fine=fine)

    @classmethod
    def from_toml(cls, entries: TomlTable) -> Self:
        """The column with two dates and the name of a period, or with edges."""
        if "edges" in entries:
            edges = tuple(entries.pop("edges"))
            if len(edges) < 2:
                raise InvalidInput(f"`edges` must be at least two days; got {len(edges)}.")
            return call_with_entries(
                cls, {**entries, "low": edges[0], "high": edges[-1], "edges": edges}
            )
        for end in ("low", "high"):
            if not isinstance(entries.get(end), dt.date):
                raise InvalidInput(
                    f"`{end}` must be a date such as 2024-01-31, without quotes; got "
                    f"{entries.get(end)!r}."
                )
        return call_with_entries(cls, entries)

    def to_toml(self) -> TomlTable:
        """The two dates and the period, or the edges."""
        if self.edges:
            return {"edges": list(self.edges)}
        return {"low": self.low, "high": self.high, "period": str(self.period)}

    def index_sql(self, raw: RawColumn, dialect: Dialect) -> str:
        """The index of the date's period."""
        day = f"TRY_CAST({raw.sql} AS DATE)"
        low, high = date_literal(self.low), date_literal(self.high)
        inside = f"{day} >= {low} AND {day} <= {high}"
        if self.outside is Outside.NEAREST:
            inside, day = f"{day} IS NOT NULL", f"least(greatest({day}, {low}), {high})"
        index = f"CAST({self._period_sql(day, dialect)} AS INTEGER)"
        if self.edges:
            starts = [float(to_day_number(start)) for start in self.starts]
            days = dialect.days_since(dt.date(1970, 1, 1), day)
            index = search_bin([*starts, math.inf], f"CAST({days} AS DOUBLE)")
        return f"CASE WHEN {inside} THEN {index} END"

    @property
    def arrow_type(self) -> pa.DataType:
        """Dates without a time."""
        import pyarrow as pa  # noqa: PLC0415

        return pa.date32()

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:
        """A random day of each code's period."""
        if self.fine is not None:
            indices = np.minimum(codes, self.n_regular - 1)
            low = np.array([spread.low for spread in self.coding.spreads if spread is not None])
            spreads = self.coding.spreads[: self.n_regular]
            drawn = np.floor(draw_stepped(spreads, low, indices, rng.random(len(codes))) + 0.5)
            first, last = np.array(self.regular)[indices].T
            return np.clip(drawn, first, last - 1).astype(np.int64).astype("datetime64[D]")
        ends = np.array([*self.starts, self.high + dt.timedelta(days=1)], dtype="datetime64[D]")
        indices, days = np.minimum(codes, self.n_regular - 1), ends.astype(np.int64)
        return rng.integers(days[indices], days[indices + 1]).astype("datetime64[D]")

    @classmethod
    def draft(cls, summary: ColumnSummary) -> Self | None:
        """A proposal for dates: whole years, from that of the first to that of the last."""
        if summary.raw_type is not RawType.DATE:
            return None
        low, high, period = round_dates(summary.low, summary.high)
        return cls(low=low, high=high, period=Period(period), missing=summary.has_missing)

    def _period_sql(self, day: str, dialect: Dialect) -> str:
        start = self.low
        match self.period:
            case Period.DAY:
                return dialect.days_since(start, day)
            case Period.WEEK:
                return f"floor({dialect.days_since(start, day)} / 7)"
            case Period.MONTH:
                return f"year({day}) * 12 + month({day}) - {start.year * 12 + start.month}"
            case Period.QUARTER:
                first = start.year * 4 + (start.month - 1) // 3
                return f"year({day}) * 4 + quarter({day}) - 1 - {first}"
            case Period.YEAR:
                return f"year({day}) - {start.year}"
