"""What every column kind says about itself, and the list of kinds.

A kind is one class. It says how it is written in TOML, what its codes stand for, how raw values
become codes and codes become values again, how it is drafted from data, and how it is shown.
Nothing else in the package knows which kinds there are: to add one, write the class and register
it.
"""

from __future__ import annotations

import datetime as dt
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.tables.codebook import OUTSIDE, Coding, Meaning
from juncture.tables.columns.display import Display, display_of
from juncture.tables.columns.sql import Dialect, RawColumn
from juncture.tables.columns.summary import ColumnSummary

if TYPE_CHECKING:
    import pyarrow as pa

TomlTable = dict[str, Any]
# Every value has a name and an index in tables; counts of more are useless.
_MAX_VALUES = 1_000_000


class Outside(StrEnum):
    """What a value outside the domain becomes: an error, a code of its own, or the nearest one."""

    ERROR = "error"
    CODE = "code"
    NEAREST = "nearest"


@dataclass(frozen=True, kw_only=True)
class Column(ABC):
    """One column: its regular values, and what happens to all others.

    A kind of column is a frozen dataclass that inherits from this class, has its name in TOML as
    `kind`, and is passed to `register_column_kind`. It must define `regular`, `to_toml`,
    `index_sql` and `arrow_type`. The other methods have defaults that suit kinds whose codes stand
    for one value each.
    """

    kind: ClassVar[str]
    """The kind's name in TOML."""
    is_open: ClassVar[bool] = False
    """Whether it stands for a column of its kind whose bins or values are still to be found."""

    missing: bool = False
    """Whether missing values get a code of their own; if not, they are an error."""
    outside: Outside = Outside.ERROR
    """What values outside the domain become: an error, a code of their own, or the nearest."""
    missing_values: tuple[str | float, ...] = ()
    """Texts and numbers in the table that stand for a missing value, such as "NA" or -9.

    Texts must agree letter by letter. They are missing even where they would be regular values.
    """
    outside_value: str | float | dt.date | None = None
    """How synthetic records write a value outside the domain; by default texts as "(outside)", and
    others as a missing value."""

    def __post_init__(self) -> None:
        registered = _KINDS.get(getattr(self, "kind", ""))
        if registered is not type(self) and not self.is_open:
            raise InvalidInput(
                f"`column` must be of a registered kind; got {type(self).__name__}. Pass the "
                "class to register_column_kind."
            )
        if not isinstance(self.missing, bool):
            raise InvalidInput(
                f"`missing` must be true or false; got {self.missing!r}. Write it without quotes."
            )
        object.__setattr__(self, "outside", parse_outside(self.outside))
        object.__setattr__(self, "missing_values", parse_missing_values(self.missing_values))
        if self.outside_value is not None:
            self._check_outside_value(self.outside_value)

    def _check_outside_value(self, value: str | float | dt.date) -> None:
        if self.outside is not Outside.CODE:
            raise InvalidInput(
                f"`outside_value` must come with outside = 'code'; got {value!r} with "
                f"{str(self.outside)!r}. Other columns have no records outside."
            )
        if not self._can_hold(value):
            raise InvalidInput(
                f"`outside_value` must be a value that the column's records can hold; got "
                f"{value!r} in a column of {self.arrow_type}."
            )

    def _can_hold(self, value: object) -> bool:
        """Whether a decoded column, which has one type, can hold a value."""
        kind = str(self.arrow_type)
        if kind == "string":
            return isinstance(value, str)
        if kind.startswith("date"):
            return type(value) is dt.date
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (kind == "double" or (kind == "int64" and float(value).is_integer()))  # type: ignore[arg-type]

    @cached_property
    def special_values(self) -> tuple[Any, ...]:
        """What records hold for the codes after the regular ones: missing, then outside.

        A missing value is written as the table writes it, by the first of `missing_values` that the
        column can hold.
        """
        usual = next((value for value in self.missing_values if self._can_hold(value)), None)
        missing = (usual,) if self.missing else ()
        outside = self.outside_value
        if outside is None and self._can_hold(str(OUTSIDE)):
            outside = str(OUTSIDE)
        return (*missing, *((outside,) if self.outside is Outside.CODE else ()))

    @property
    @abstractmethod
    def regular(self) -> tuple[Meaning, ...]:
        """What the regular codes stand for, in order: values, or intervals as pairs of numbers."""

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
        return self.make_coding((*self.regular, *missing, *outside))

    def make_coding(self, meanings: tuple[Meaning, ...]) -> Coding:
        """The coding of these meanings; kinds whose intervals hold whole numbers or days say so."""
        return Coding(meanings)

    def with_likely_spread(self, counts: NDArray[np.float64], floor: float) -> Self:  # noqa: ARG002
        """The column with values spread inside its codes as their counts suggest.

        - `floor`: what is added to counts, so that noise makes no slope.
        """
        return self

    @classmethod
    def from_toml(cls, entries: TomlTable) -> Self:
        """The column that a table of TOML describes; by default, entries are the class's fields.

        `kind`, `missing_values` and `outside_value` are not among the entries, and `outside` is
        already an `Outside`.
        """
        return call_with_entries(cls, entries)

    @abstractmethod
    def to_toml(self) -> TomlTable:
        """The entries that `from_toml` reads, without those that every kind has."""

    @abstractmethod
    def index_sql(self, raw: RawColumn, dialect: Dialect) -> str:
        """SQL for a raw value's regular code, an integer; NULL for missing and outside values.

        With `Outside.NEAREST`, a value outside the domain has the code of the nearest one inside.
        """

    def missing_sql(self, raw: RawColumn) -> str:
        """SQL for whether a raw value is missing; used only where it has no regular code."""
        return raw.is_null

    @property
    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of decoded values. Import pyarrow inside: it takes long to load."""

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:  # noqa: ARG002
        """An array of values, each drawn inside its code's bin; by default, the codes' own values.

        Where a code is not a regular one, the array holds any regular value. What is drawn must not
        depend on whether the codes come all at once or some at a time.
        """
        if any(isinstance(meaning, tuple) for meaning in self.regular):
            raise NotImplementedError(
                f"{type(self).__name__} has codes for intervals: its `draw` must draw from them."
            )
        if not self.regular:
            return np.full(len(codes), None, dtype=object)
        labels = np.array(self.regular, dtype=object)
        return np.asarray(labels[np.minimum(codes, self.n_regular - 1)])

    def decode(self, codes: NDArray[np.int32], rng: np.random.Generator) -> list[Any]:
        """A value for each code: one inside its bin, or how missing and outside are written."""
        pairs = zip(self.draw(codes, rng).tolist(), codes.tolist(), strict=True)
        n, special = self.n_regular, self.special_values
        return [value if code < n else special[code - n] for value, code in pairs]

    @property
    def display(self) -> Display:
        """How the explorer shows the values; by default, what the meanings of codes suggest."""
        return display_of(self.coding)

    @classmethod
    def draft(cls, summary: ColumnSummary) -> Self | None:  # noqa: ARG003
        """A first proposal for a column of a private table; None where the kind does not suit it.

        The kind that was registered last is asked first. By default, a kind proposes nothing.
        """
        return None

    def _reject_nearest(self) -> None:
        """Refuse `nearest`: for kinds whose values have no order."""
        if self.outside is Outside.NEAREST:
            raise InvalidInput(
                "`outside` must be 'code' or 'error' for values without an order; got 'nearest'. "
                "Give such values a code of their own."
            )


_Made = TypeVar("_Made")


def call_with_entries(make: Callable[..., _Made], entries: TomlTable) -> _Made:
    """Call a class or function with entries of TOML, after checking that it takes them."""
    known = inspect.signature(make).parameters
    unknown = [name for name in entries if name not in known]
    if unknown:
        raise InvalidInput(
            f"does not know the entry {_quote(unknown)}. It may have {_quote(list(known))}."
        )
    needed = [name for name, each in known.items() if each.default is inspect.Parameter.empty]
    missing = [name for name in needed if name not in entries]
    if missing:
        raise InvalidInput(f"must have the entries {_quote(missing)}.")
    return make(**entries)


def _quote(names: list[str]) -> str:
    return (
        " and ".join(repr(name) for name in names)
        if len(names) < 3
        else ", ".join(repr(name) for name in names)
    )


_KINDS: dict[str, type[Column]] = {}
_Kind = TypeVar("_Kind", bound=Column)


def register_column_kind(column: type[_Kind]) -> type[_Kind]:
    """Make a column kind known to schemas; also works as a decorator above `@dataclass`.

    From then on, schema files may use its `kind` and drafts may propose it. A program that reads a
    schema or a release with the kind must register it first. A class may be registered again after
    it was defined again, as notebooks do.
    """
    name, kind = column.__name__, getattr(column, "kind", None)
    if not isinstance(kind, str) or not kind:
        raise InvalidInput(f"`kind` must be the name of {name} in TOML; got {kind!r}.")
    if column.__abstractmethods__:
        raise InvalidInput(
            f"`column` must define every abstract method of a kind; got {name} without "
            f"{', '.join(sorted(column.__abstractmethods__))}."
        )
    before = _KINDS.get(kind, column)
    if _full_name(before) != _full_name(column):
        raise InvalidInput(
            f"`kind` must be a name of its own; got {kind!r} for {name}, which is the name of "
            f"{_full_name(before)}."
        )
    _KINDS[kind] = column
    return column


def column_kinds() -> Mapping[str, type[Column]]:
    """All registered kinds by their names in TOML, in the order of registration."""
    return MappingProxyType(_KINDS)


def _full_name(column: type[Column]) -> str:
    return f"{column.__module__}.{column.__qualname__}"


def parse_outside(text: str) -> Outside:
    """The member of `Outside` that a text names."""
    try:
        return Outside(text)
    except ValueError:
        raise InvalidInput(
            f"`outside` must be one of {', '.join(Outside)}; got {text!r}."
        ) from None


def parse_missing_values(values: object) -> tuple[str | float, ...]:
    """The values as a tuple, if they are texts and numbers."""
    listed = tuple(values) if isinstance(values, list | tuple) else (None,)
    if any(isinstance(each, bool) or not isinstance(each, str | int | float) for each in listed):
        raise InvalidInput(
            f"`missing_values` must be a list of texts and numbers; got {values!r}. Write it as "
            '["NA", "?"].'
        )
    return listed


def refuse_many_values(n_values: int, entry: str) -> None:
    """Refuse a column with more values than memory should hold names for."""
    if n_values > _MAX_VALUES:
        raise InvalidInput(
            f"`{entry}` must make at most {_MAX_VALUES:,} values; got {n_values:,}. Put more "
            "of them together, or leave the column out."
        )
