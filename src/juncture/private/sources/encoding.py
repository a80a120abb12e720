"""SQL that turns raw values into codes: one definition of the encoding for every engine.

Each column kind writes how its values become codes; a dialect says what its engine writes
differently. A column's expression gives its code, or a negative number where the schema calls the
value an error: `OUTSIDE` for values outside the domain, `MISSING` for missing ones.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Protocol

import pyarrow as pa

from juncture._util.sql import quote_name, quote_text
from juncture.tables.columns import Column, Dialect, OpenCategorical, Outside, RawColumn
from juncture.tables.columns.sql import date_literal, number_literal
from juncture.tables.schema import Schema

OUTSIDE, MISSING = -1, -2


class Fate(IntEnum):
    """What a raw value is to its column."""

    REGULAR = 0
    UNREADABLE = 1
    """Not of the column's type at all: a word where a number was expected."""
    OUTSIDE = 2
    MISSING = 3


class EngineDialect(Dialect, Protocol):
    """What engines write differently beyond what a column needs."""

    def draw(self, secret: int) -> str:
        """A random number for each row, drawn by the engine and a secret of this machine."""


class DuckDialect:
    """DuckDB's SQL."""

    def draw(self, secret: int) -> str:
        """The engine's random number, hashed: a connection may have a seed that others know."""
        return f"hash(random(), {secret})"

    def quote_name(self, name: str) -> str:
        """The name in double quotes."""
        return quote_name(name)

    def quote_text(self, text: str) -> str:
        """The text in single quotes."""
        return quote_text(text)

    def cast_to_text(self, expression: str) -> str:
        """A cast."""
        return f"CAST({expression} AS VARCHAR)"

    def index_of(self, expression: str, values: Sequence[str]) -> str:
        """The code of an enumeration: one look-up for any number of values."""
        listed = ", ".join(map(self.quote_text, values))
        return f"CAST(enum_code(TRY_CAST({expression} AS ENUM({listed}))) AS INTEGER)"

    def look_up(self, expression: str, values: Sequence[int]) -> str:
        """An element of a list."""
        return f"list_extract([{', '.join(map(str, values))}], CAST({expression} AS BIGINT) + 1)"

    def days_since(self, day: dt.date, expression: str) -> str:
        """A difference of dates."""
        return f"date_diff('day', {date_literal(day)}, {expression})"


class SparkDialect:
    """Spark's SQL."""

    def draw(self, secret: int) -> str:
        """A random number with the secret as its seed: a row that is computed again has its own."""
        return f"rand({secret})"

    def quote_name(self, name: str) -> str:
        """The name in backticks."""
        doubled = name.replace("`", "``")
        return f"`{doubled}`"

    def quote_text(self, text: str) -> str:
        """The text in single quotes, with backslashes as escapes."""
        escaped = text.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"

    def cast_to_text(self, expression: str) -> str:
        """A cast."""
        return f"CAST({expression} AS STRING)"

    def index_of(self, expression: str, values: Sequence[str]) -> str:
        """The position in an array, minus one."""
        listed = ", ".join(map(self.quote_text, values))
        return f"CAST(nullif(array_position(array({listed}), {expression}), 0) - 1 AS INTEGER)"

    def look_up(self, expression: str, values: Sequence[int]) -> str:
        """An element of an array, which a text holds: a parser of thousands of literals is slow."""
        listed = f"from_json('[{','.join(map(str, values))}]', 'array<int>')"
        return f"element_at({listed}, CAST({expression} AS INT) + 1)"

    def days_since(self, day: dt.date, expression: str) -> str:
        """A difference of dates."""
        return f"datediff({expression}, {date_literal(day)})"


def code_expressions(
    schema: Schema, dialect: Dialect, integers: Container[str] = ()
) -> dict[str, str]:
    """For each column, SQL for its code; the engine already holds `integers` as integers."""
    return {
        name: _code(name, column, dialect, name in integers)
        for name, column in schema.columns.items()
    }


def text_name(name: str) -> str:
    """What the column is called that keeps the texts of a column whose values are private."""
    return f"juncture text of {name}"


def text_expressions(schema: Schema, dialect: Dialect) -> dict[str, str]:
    """SQL for the texts of columns whose values are private, by their names; NULL if missing."""
    found = {}
    for name, column in schema.open_columns.items():
        if isinstance(column, OpenCategorical):
            raw = RawColumn(dialect.quote_name(name))
            listed = listed_missing(column.missing_values, raw, dialect)
            missing = raw.is_null if listed is None else f"{raw.is_null} OR {listed}"
            text = f"CASE WHEN {missing} THEN NULL ELSE {dialect.cast_to_text(raw.sql)} END"
            found[text_name(name)] = text
    return found


def closed_text_code(name: str, column: Column, dialect: Dialect) -> str:
    """SQL for the code that a kept text has, now that the column's values are known."""
    raw = RawColumn(dialect.quote_name(text_name(name)))
    missing = column.outside_code if column.missing_code is None else column.missing_code
    rest = f"CASE WHEN {raw.is_null} THEN {missing} ELSE {column.outside_code} END"
    return f"COALESCE({column.index_sql(raw, dialect)}, {rest})"


def fate_expression(name: str, column: Column, dialect: Dialect, is_integer: bool) -> str:
    """SQL for the `Fate` of a column's raw value, whatever the column makes of such values."""
    raw = RawColumn(dialect.quote_name(name), is_integer)
    index = replace(column, outside=Outside.ERROR).index_sql(raw, dialect)
    cast = _cast_to_type(column, raw)
    cases = [
        (listed_missing(column.missing_values, raw, dialect), Fate.MISSING),
        (f"({index}) IS NOT NULL", Fate.REGULAR),
        (column.missing_sql(raw), Fate.MISSING),
        (None if cast is None else f"{cast} IS NULL", Fate.UNREADABLE),
    ]
    listed = " ".join(f"WHEN {sql} THEN {int(fate)}" for sql, fate in cases if sql is not None)
    return f"CASE {listed} ELSE {int(Fate.OUTSIDE)} END"


def expected_value(column: Column) -> str:
    """What a column's values are read as, in words."""
    kind = column.arrow_type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "a number"
    words = {pa.date32(): "a date", pa.bool_(): "true or false"}
    return words.get(kind, "a text")


def _cast_to_type(column: Column, raw: RawColumn) -> str | None:
    """The value as the column's type, NULL if it is not of it; None where every value is."""
    if raw.is_integer:
        return None
    casts = {
        "a number": raw.as_number,
        "a date": f"TRY_CAST({raw.sql} AS DATE)",
        "true or false": f"TRY_CAST({raw.sql} AS BOOLEAN)",
    }
    return casts.get(expected_value(column))


def listed_missing(
    missing_values: Sequence[str | float], raw: RawColumn, dialect: Dialect
) -> str | None:
    """SQL for whether a value is one of those that the schema lists as missing."""
    text = dialect.cast_to_text(raw.sql)
    texts = [dialect.quote_text(each) for each in missing_values if isinstance(each, str)]
    numbers = [number_literal(each) for each in missing_values if not isinstance(each, str)]
    parts = [f"{text} IN ({', '.join(texts)})"] if texts else []
    # By way of the text: not every type can be cast to a number.
    parts += [f"TRY_CAST({text} AS DOUBLE) IN ({', '.join(numbers)})"] if numbers else []
    return " OR ".join(parts) or None


def _code(name: str, column: Column, dialect: Dialect, is_integer: bool) -> str:
    raw = RawColumn(dialect.quote_name(name), is_integer)
    index, absent = column.index_sql(raw, dialect), column.missing_sql(raw)
    outside = OUTSIDE if column.outside_code is None else column.outside_code
    missing = MISSING if column.missing_code is None else column.missing_code
    # Most values are regular: for them, nothing else is computed.
    code = f"COALESCE({index}, CASE WHEN {absent} THEN {missing} ELSE {outside} END)"
    listed = listed_missing(column.missing_values, raw, dialect)
    return code if listed is None else f"CASE WHEN {listed} THEN {missing} ELSE {code} END"
