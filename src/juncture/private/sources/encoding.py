"""SQL that turns raw values into codes: one definition of the encoding for every engine.

Each column kind writes how its values become codes; a dialect says what its engine writes
differently. A column's expression gives its code, or a negative number where the schema calls the
value an error: `OUTSIDE` for values outside the domain, `MISSING` for missing ones.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Sequence

from juncture._util.sql import quote_name, quote_text
from juncture.tables.columns import Column, Dialect, RawColumn
from juncture.tables.columns.sql import date_literal
from juncture.tables.schema import Schema

OUTSIDE, MISSING = -1, -2


class DuckDialect:
    """DuckDB's SQL."""

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

    def days_since(self, day: dt.date, expression: str) -> str:
        """A difference of dates."""
        return f"date_diff('day', {date_literal(day)}, {expression})"


class SparkDialect:
    """Spark's SQL."""

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


def _code(name: str, column: Column, dialect: Dialect, is_integer: bool) -> str:
    raw = RawColumn(dialect.quote_name(name), is_integer)
    index, absent = column.index_sql(raw, dialect), column.missing_sql(raw)
    outside = OUTSIDE if column.outside_code is None else column.outside_code
    missing = MISSING if column.missing_code is None else column.missing_code
    # Most values are regular: for them, nothing else is computed.
    return f"COALESCE({index}, CASE WHEN {absent} THEN {missing} ELSE {outside} END)"
