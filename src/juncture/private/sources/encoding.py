"""Raw values to codes, as SQL: one definition of the encoding for every engine.

A column's expression gives its code, or a negative number where the schema calls the value an
error: `OUTSIDE` for values outside the domain, `MISSING` for missing ones.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Sequence
from typing import Protocol

from juncture._util.sql import quote_name, quote_text
from juncture.tables.schema import (
    Boolean,
    Categorical,
    Column,
    Date,
    Integer,
    Number,
    Outside,
    Period,
    Schema,
)

OUTSIDE, MISSING = -1, -2


class Dialect(Protocol):
    """What engines write differently."""

    def quote_name(self, name: str) -> str:
        """A column's name, quoted."""

    def quote_text(self, text: str) -> str:
        """A text, quoted."""

    def cast_to_text(self, expression: str) -> str:
        """The expression as a text."""

    def index_of(self, expression: str, values: Sequence[str]) -> str:
        """The place of a text among others, from 0; NULL where it is none of them."""

    def days_since(self, day: dt.date, expression: str) -> str:
        """The days from a date to the expression's."""


class DuckDialect:
    """DuckDB's SQL."""

    def quote_name(self, name: str) -> str:
        """In double quotes."""
        return quote_name(name)

    def quote_text(self, text: str) -> str:
        """In single quotes."""
        return quote_text(text)

    def cast_to_text(self, expression: str) -> str:
        """By a cast."""
        return f"CAST({expression} AS VARCHAR)"

    def index_of(self, expression: str, values: Sequence[str]) -> str:
        """An enumeration's code: one look-up, however many values."""
        listed = ", ".join(map(self.quote_text, values))
        return f"CAST(enum_code(TRY_CAST({expression} AS ENUM({listed}))) AS INTEGER)"

    def days_since(self, day: dt.date, expression: str) -> str:
        """By the function for differences."""
        return f"date_diff('day', {date_literal(day)}, {expression})"


class SparkDialect:
    """Spark's SQL."""

    def quote_name(self, name: str) -> str:
        """In backticks."""
        doubled = name.replace("`", "``")
        return f"`{doubled}`"

    def quote_text(self, text: str) -> str:
        """In single quotes; backslashes escape."""
        escaped = text.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"

    def cast_to_text(self, expression: str) -> str:
        """By a cast."""
        return f"CAST({expression} AS STRING)"

    def index_of(self, expression: str, values: Sequence[str]) -> str:
        """The place in an array, less one."""
        listed = ", ".join(map(self.quote_text, values))
        return f"CAST(nullif(array_position(array({listed}), {expression}), 0) - 1 AS INTEGER)"

    def days_since(self, day: dt.date, expression: str) -> str:
        """By the function for differences."""
        return f"datediff({expression}, {date_literal(day)})"


def date_literal(day: dt.date) -> str:
    """A date in SQL."""
    return f"DATE '{day.isoformat()}'"


def code_expressions(
    schema: Schema, dialect: Dialect, integers: Container[str] = ()
) -> dict[str, str]:
    """For each column, the SQL that gives its code; `integers` are already of such a type."""
    return {
        name: _code(name, column, dialect, name in integers)
        for name, column in schema.columns.items()
    }


def _code(name: str, column: Column, dialect: Dialect, is_integer: bool) -> str:
    raw, absent = dialect.quote_name(name), f"{dialect.quote_name(name)} IS NULL"
    if is_integer and isinstance(column, Integer) and column.outside is not Outside.NEAREST:
        index = _typed_integer(column, raw)
    else:
        index = _index(column, raw, dialect)
    texts = isinstance(column, Categorical) and isinstance(column.values[0], str)
    if not (is_integer or texts or isinstance(column, Date)):
        absent += f" OR isnan({_number(raw)})"
    outside = OUTSIDE if column.outside_code is None else column.outside_code
    missing = MISSING if column.missing_code is None else column.missing_code
    # Regular values are by far the most: nothing else is looked at for them.
    return f"COALESCE({index}, CASE WHEN {absent} THEN {missing} ELSE {outside} END)"


def _index(column: Column, raw: str, dialect: Dialect) -> str:
    """The regular code, or NULL for a value outside the domain."""
    match column:
        case Categorical():
            return _category(column, raw, dialect)
        case Boolean():
            known = f"COALESCE({_number(raw)} IN (0, 1), TRUE)"  # a number must be one of these
            return f"CASE WHEN {known} THEN CAST(TRY_CAST({raw} AS BOOLEAN) AS INTEGER) END"
        case Integer():
            return _integer(column, _number(raw))
        case Number():
            return _bin(column, _number(raw))
        case Date():
            return _period(column, f"TRY_CAST({raw} AS DATE)", dialect)
        case _:
            raise NotImplementedError(column)


def _number(expression: str) -> str:
    return f"TRY_CAST({expression} AS DOUBLE)"


def _literal(number: float) -> str:
    """A number that no engine reads as a decimal of its own."""
    return f"CAST('{number!r}' AS DOUBLE)"


def _category(column: Categorical, raw: str, dialect: Dialect) -> str:
    if isinstance(column.values[0], str):
        return dialect.index_of(dialect.cast_to_text(raw), [str(value) for value in column.values])
    cases = " ".join(
        f"WHEN {_literal(float(value))} THEN {index}" for index, value in enumerate(column.values)
    )
    return f"CASE {_number(raw)} {cases} END"


def _typed_integer(column: Integer, value: str) -> str:
    index = f"(CAST({value} AS BIGINT) - ({column.low}))"
    index = index if column.width == 1 else f"floor({index} / {column.width})"
    inside = f"{value} BETWEEN {column.low} AND {column.high}"
    return f"CASE WHEN {inside} THEN CAST({index} AS INTEGER) END"


def _integer(column: Integer, value: str) -> str:
    low, high = _literal(float(column.low)), _literal(float(column.high))
    if column.outside is Outside.NEAREST:
        clipped = f"least(greatest({value}, {low}), {high})"
        index = f"CAST(floor(({clipped} - {low}) / {column.width}) AS INTEGER)"
        return f"CASE WHEN {value} IS NOT NULL AND NOT isnan({value}) THEN {index} END"
    inside = f"{value} >= {low} AND {value} <= {high} AND {value} = floor({value})"
    return f"CASE WHEN {inside} THEN CAST(floor(({value} - {low}) / {column.width}) AS INTEGER) END"


def _bin(column: Number, value: str) -> str:
    bin_index = _search(column.edges, value, 0, column.n_regular - 1)
    if column.outside is Outside.NEAREST:
        return f"CASE WHEN {value} IS NOT NULL AND NOT isnan({value}) THEN {bin_index} END"
    low, high = _literal(column.edges[0]), _literal(column.edges[-1])
    return f"CASE WHEN {value} >= {low} AND {value} <= {high} THEN {bin_index} END"


def _search(edges: Sequence[float], value: str, first: int, last: int) -> str:
    """Which of the bins from first to last: a binary search written out."""
    if first == last:
        return str(first)
    middle = (first + last + 1) // 2
    left = _search(edges, value, first, middle - 1)
    right = _search(edges, value, middle, last)
    return f"CASE WHEN {value} < {_literal(edges[middle])} THEN {left} ELSE {right} END"


def _period(column: Date, day: str, dialect: Dialect) -> str:
    low, high = date_literal(column.low), date_literal(column.high)
    inside = f"{day} >= {low} AND {day} <= {high}"
    if column.outside is Outside.NEAREST:
        inside, day = f"{day} IS NOT NULL", f"least(greatest({day}, {low}), {high})"
    start = column.low
    match column.period:
        case Period.DAY:
            index = dialect.days_since(start, day)
        case Period.WEEK:
            index = f"floor({dialect.days_since(start, day)} / 7)"
        case Period.MONTH:
            index = f"year({day}) * 12 + month({day}) - {start.year * 12 + start.month}"
        case Period.QUARTER:
            first = start.year * 4 + (start.month - 1) // 3
            index = f"year({day}) * 4 + quarter({day}) - 1 - {first}"
        case Period.YEAR:
            index = f"year({day}) - {start.year}"
    return f"CASE WHEN {inside} THEN CAST({index} AS INTEGER) END"
