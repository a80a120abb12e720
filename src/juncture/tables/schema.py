"""What a table's columns may hold, as public knowledge: the domain, and what its codes stand for.

A schema is written by a person, in TOML or in Python, from what is known without looking at the
data. A draft made from a data file is marked as such, and nothing is released under it until a
person has confirmed in the file that the domains are public knowledge.

Codes count the regular values first, then, where they exist, one code for missing values and one
for values outside the domain.
"""

from __future__ import annotations

import datetime as dt
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from juncture._util.text import count_noun, list_names
from juncture.errors import InvalidInput
from juncture.tables.codebook import OUTSIDE, Codebook, Coding, Meaning
from juncture.tables.domain import Domain

Days = NDArray[np.int64]
# Every value has a name and a place in tables; nobody releases counts of more.
_MAX_VALUES = 1_000_000


class Outside(StrEnum):
    """What a value outside the domain becomes."""

    ERROR = "error"
    CODE = "code"
    NEAREST = "nearest"


class Period(StrEnum):
    """How finely dates are told apart."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


@dataclass(frozen=True, kw_only=True)
class Column(ABC):
    """One column: its regular values, and what becomes of all others."""

    missing: bool = False
    """Whether missing values are expected; they get a code of their own, else they are an error."""
    outside: Outside = Outside.ERROR

    def __post_init__(self) -> None:
        if not isinstance(self.missing, bool):
            raise InvalidInput(
                f"`missing` must be true or false; got {self.missing!r}. Write it without quotes."
            )
        object.__setattr__(self, "outside", parse_outside(self.outside))

    @property
    @abstractmethod
    def regular(self) -> tuple[Meaning, ...]:
        """What the regular codes stand for."""

    @property
    def n_regular(self) -> int:
        """The number of regular codes."""
        return len(self.regular)

    @property
    def missing_code(self) -> int | None:
        """The code of missing values, where they have one."""
        return self.n_regular if self.missing else None

    @property
    def outside_code(self) -> int | None:
        """The code of values outside the domain, where they have one."""
        return self.n_regular + self.missing if self.outside is Outside.CODE else None

    @cached_property
    def coding(self) -> Coding:
        """What all codes stand for."""
        missing = (None,) if self.missing else ()
        outside = (OUTSIDE,) if self.outside is Outside.CODE else ()
        return Coding((*self.regular, *missing, *outside))

    def decode(self, codes: NDArray[np.int32], rng: np.random.Generator) -> list[Any]:
        """A value for each code: None where it is missing or outside, else one inside its bin."""
        pairs = zip(self.draw(codes, rng).tolist(), (codes < self.n_regular).tolist(), strict=True)
        return [value if regular else None for value, regular in pairs]

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:  # noqa: ARG002
        """An array of values, each drawn evenly inside its code's bin.

        Where a code is not a regular one, it holds any regular value. Whether the codes come all
        at once or some at a time makes no difference to what is drawn.
        """
        labels = np.array(self.regular, dtype=object)
        return np.asarray(labels[np.minimum(codes, self.n_regular - 1)])

    def _reject_nearest(self) -> None:
        if self.outside is Outside.NEAREST:
            raise InvalidInput(
                "`outside` must be 'code' or 'error' for values without an order; got 'nearest'. "
                "Give such values a code of their own."
            )


@dataclass(frozen=True, kw_only=True)
class Categorical(Column):
    """Texts, or whole numbers, that are listed."""

    values: tuple[str, ...] | tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._reject_nearest()
        kinds = {type(value) for value in self.values}
        if not self.values or len(kinds) != 1 or not kinds <= {str, int}:
            raise InvalidInput(
                f"`values` must be texts or whole numbers, all of one kind; got {self.values!r}. "
                "List every value that the column may hold."
            )
        if len(set(self.values)) != len(self.values):
            raise InvalidInput("`values` must differ; got some twice. List each value once.")
        if any(isinstance(value, int) and abs(value) > 2**53 for value in self.values):
            raise InvalidInput(
                "`values` must be whole numbers up to 2^53; got larger ones. List them as texts."
            )

    @property
    def regular(self) -> tuple[Meaning, ...]:
        """The values."""
        return self.values


@dataclass(frozen=True, kw_only=True)
class Boolean(Column):
    """False or true."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._reject_nearest()

    @property
    def regular(self) -> tuple[Meaning, ...]:
        """False, then true."""
        return (False, True)


@dataclass(frozen=True, kw_only=True)
class Integer(Column):
    """Whole numbers in a range, each its own value, or some in a row together."""

    low: int
    high: int
    width: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = all(type(n) is int for n in (self.low, self.high, self.width))
        exact = whole and -(2**53) <= self.low <= self.high <= 2**53
        if not exact or self.width < 1:
            raise InvalidInput(
                f"`low`, `high` and `width` must be whole numbers that make a range; got "
                f"{self.low} to {self.high} by {self.width}. Give the least and the largest number."
            )
        _check_n_values((self.high - self.low) // self.width + 1, "width")

    @cached_property
    def regular(self) -> tuple[Meaning, ...]:
        """Every number; or intervals of them, the last perhaps shorter."""
        if self.width == 1:
            return tuple(range(self.low, self.high + 1))
        starts = range(self.low, self.high + 1, self.width)
        return tuple((float(s), float(min(s + self.width, self.high + 1))) for s in starts)

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:
        """A whole number of each code's interval."""
        low = self.low + np.minimum(codes, self.n_regular - 1).astype(np.int64) * self.width
        if self.width == 1:
            return np.asarray(low)
        return rng.integers(low, np.minimum(low + self.width, self.high + 1))


@dataclass(frozen=True, kw_only=True)
class Number(Column):
    """Numbers in bins: each from its lower edge up to the next one, the last edge included."""

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        numbers = np.asarray(self.edges, dtype=np.float64)
        if len(numbers) < 2 or not np.isfinite(numbers).all() or (np.diff(numbers) <= 0).any():
            raise InvalidInput(
                f"`edges` must be at least two finite numbers, each larger than the one before; "
                f"got {self.edges!r}. Give the least, the largest and those between bins."
            )

    @classmethod
    def evenly(
        cls, low: float, high: float, bins: int, *, missing: bool = False,
        outside: Outside = Outside.ERROR,
    ) -> Number:  # fmt: skip
        """As many bins of one width between two numbers."""
        if not (math.isfinite(low) and math.isfinite(high) and low < high and bins >= 1):
            raise InvalidInput(
                f"`low`, `high` and `bins` must make bins; got {low} to {high} in {bins}. "
                "Give the least and the largest number that the column may hold."
            )
        _check_n_values(bins, "bins")
        edges = tuple(float(edge) for edge in np.linspace(low, high, bins + 1))
        return cls(edges=edges, missing=missing, outside=outside)

    @cached_property
    def regular(self) -> tuple[Meaning, ...]:
        """The bins."""
        return Coding.of_bins(self.edges).meanings

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:
        """A number inside each code's bin."""
        indices = np.minimum(codes, self.n_regular - 1)
        edges = np.asarray(self.edges)
        low, high = edges[indices], edges[indices + 1]
        return np.asarray(np.minimum(rng.uniform(low, high), np.nextafter(high, low)))


@dataclass(frozen=True, kw_only=True)
class Date(Column):
    """Dates in a range, told apart by period."""

    low: dt.date
    high: dt.date
    period: Period = Period.MONTH

    def __post_init__(self) -> None:
        super().__post_init__()
        for day in (self.low, self.high):
            if type(day) is not dt.date or not 1 < day.year < 9999:
                raise InvalidInput(
                    f"`low` and `high` must be dates without a time, of the years 2 to 9998; got "
                    f"{day!r}. Write them as 2024-01-31."
                )
        if not self.low <= self.high:
            raise InvalidInput(
                f"`low` must not be after `high`; got {self.low} and {self.high}. Swap them."
            )

    @cached_property
    def starts(self) -> tuple[dt.date, ...]:
        """The first day of every period; the first period begins with `low`."""
        days, day = [self.low], _next_period(self.low, self.period)
        while day <= self.high:
            days.append(day)
            day = _next_period(day, self.period)
        return tuple(days)

    @cached_property
    def regular(self) -> tuple[Meaning, ...]:
        """The periods: the day, the month and so on, in words."""
        return tuple(_period_name(day, self.period) for day in self.starts)

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:
        """A day of each code's period."""
        ends = np.array([*self.starts, self.high + dt.timedelta(days=1)], dtype="datetime64[D]")
        indices, days = np.minimum(codes, self.n_regular - 1), ends.astype(np.int64)
        return rng.integers(days[indices], days[indices + 1]).astype("datetime64[D]")


def _check_n_values(n_values: int, entry: str) -> None:
    """Refuse what would fill the memory with names of values."""
    if n_values > _MAX_VALUES:
        raise InvalidInput(
            f"`{entry}` must make at most {_MAX_VALUES:,} values; got {n_values:,}. Put more of "
            "them together, or leave the column out."
        )


def _next_period(day: dt.date, period: Period) -> dt.date:
    """The first day of the period after the one that a day lies in."""
    match period:
        case Period.DAY:
            return day + dt.timedelta(days=1)
        case Period.WEEK:
            return day + dt.timedelta(days=7)
        case Period.MONTH:
            months = day.year * 12 + day.month
        case Period.QUARTER:
            months = day.year * 12 + ((day.month - 1) // 3 + 1) * 3
        case Period.YEAR:
            months = (day.year + 1) * 12
    return dt.date(months // 12, months % 12 + 1, 1)


def _period_name(day: dt.date, period: Period) -> str:
    match period:
        case Period.YEAR:
            return f"{day.year}"
        case Period.QUARTER:
            return f"{day.year}-Q{(day.month - 1) // 3 + 1}"
        case Period.MONTH:
            return f"{day.year}-{day.month:02}"
        case _:
            return day.isoformat()


@dataclass(frozen=True)
class Schema:
    """All columns of a table in order, and whether their domains are public knowledge."""

    columns: Mapping[str, Column] = field(default_factory=dict)
    drafted: bool = False
    """Whether it was made by looking at private data."""
    confirmed: bool = False
    """Whether a person has confirmed that the domains of a draft are public knowledge."""

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidInput("`columns` must not be empty; got none. Describe at least one.")

    def __repr__(self) -> str:
        kind = "" if self.is_public else "; a draft, not confirmed as public"
        count = count_noun(len(self.columns), "column")
        return f"Schema({count}: {list_names(self.columns)}{kind})"

    @cached_property
    def domain(self) -> Domain:
        """The attributes with the number of their codes."""
        return Domain({name: column.coding.size for name, column in self.columns.items()})

    @cached_property
    def codebook(self) -> Codebook:
        """What the codes stand for."""
        return Codebook({name: column.coding for name, column in self.columns.items()})

    @property
    def is_public(self) -> bool:
        """Whether something may be released under this schema."""
        return not self.drafted or self.confirmed

    def decode(
        self, records: Mapping[str, NDArray[np.int32]], rng: np.random.Generator | int | None = None
    ) -> dict[str, list[Any]]:
        """Records of codes as records of values; numbers and dates are drawn inside their bins."""
        random = np.random.default_rng(rng)
        return {name: self.columns[name].decode(codes, random) for name, codes in records.items()}


def parse_outside(text: str, names: Sequence[str] = tuple(Outside)) -> Outside:
    """The choice that a text names."""
    try:
        return Outside(text)
    except ValueError:
        raise InvalidInput(
            f"`outside` must be one of {', '.join(names)}; got {text!r}. Choose one."
        ) from None
