"""SQL that turns raw values into codes: what engines write differently, and what they share.

A column kind writes its SQL once, in terms of a `Dialect`; DuckDB and Spark each have one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class RawColumn:
    """A column of the private table, as an expression in SQL."""

    sql: str
    """Its quoted name: the raw value of a row."""
    is_integer: bool = False
    """Whether the engine already holds it as whole numbers."""

    @property
    def as_number(self) -> str:
        """The value as a floating-point number; NULL if it is not a number."""
        return f"TRY_CAST({self.sql} AS DOUBLE)"

    @property
    def is_null(self) -> str:
        """Whether the value is missing."""
        return f"{self.sql} IS NULL"

    @property
    def is_null_or_nan(self) -> str:
        """Whether the value is missing, for kinds that read numbers: not-a-number counts too."""
        return self.is_null if self.is_integer else f"{self.is_null} OR isnan({self.as_number})"


class Dialect(Protocol):
    """What engines write differently."""

    def quote_name(self, name: str) -> str:
        """A column's name, quoted."""

    def quote_text(self, text: str) -> str:
        """A text, quoted."""

    def cast_to_text(self, expression: str) -> str:
        """The expression as a text."""

    def index_of(self, expression: str, values: Sequence[str]) -> str:
        """The index of a text among `values`, from 0; NULL if it is not among them."""

    def look_up(self, expression: str, values: Sequence[int]) -> str:
        """The value at an index, from 0."""

    def days_since(self, day: dt.date, expression: str) -> str:
        """The number of days from a date to that of the expression."""


def number_literal(number: float) -> str:
    """A number in SQL that every engine reads as a double, never as a decimal."""
    return f"CAST('{float(number)!r}' AS DOUBLE)"


def date_literal(day: dt.date) -> str:
    """A date in SQL."""
    return f"DATE '{day.isoformat()}'"


def search_bin(edges: Sequence[float], value: str) -> str:
    """SQL for the index of the bin that a number lies in: a binary search, written out.

    Numbers below the first edge go to the first bin, numbers above the last edge to the last bin.
    """
    return _search(edges, value, 0, len(edges) - 2)


def _search(edges: Sequence[float], value: str, first: int, last: int) -> str:
    if first == last:
        return str(first)
    middle = (first + last + 1) // 2
    left = _search(edges, value, first, middle - 1)
    right = _search(edges, value, middle, last)
    return f"CASE WHEN {value} < {number_literal(edges[middle])} THEN {left} ELSE {right} END"
