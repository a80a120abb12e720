"""A first draft of a schema, made by looking at the data, and marked as such.

What it says (the categories, the bounds) is private until a person has replaced or confirmed it.
"""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

from juncture.errors import InvalidInput, UnreadableFile
from juncture.private.sources.duck import exact_relation, redact_error
from juncture.private.sources.encoding import DuckDialect
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

_MAX_CATEGORIES = 200
_BINS = 32
_quote = DuckDialect().quote_name


def exact_draft(table: str | Path | duckdb.DuckDBPyRelation) -> Schema:
    """A draft for every column that can be described; free text is left out."""
    try:
        return _draft_schema(exact_relation(table, typed=True))
    except duckdb.Error as error:
        raise UnreadableFile(redact_error(error)) from None


def find_omitted_columns(table: str | Path | duckdb.DuckDBPyRelation, schema: Schema) -> list[str]:
    """The columns of a table that its draft does not describe."""
    names = exact_relation(table, typed=True).columns
    return [name for name in names if name not in schema.columns]


def _draft_schema(relation: duckdb.DuckDBPyRelation) -> Schema:
    columns = {}
    for name, kind in zip(relation.columns, map(str, relation.dtypes), strict=True):
        with suppress(InvalidInput):  # what cannot be described is left out
            column = _draft_column(relation, name, kind)
            if column is not None:
                columns[name] = column
    if not columns:
        raise InvalidInput(
            "`table` must have a column that can be described; got none. Write the schema by hand."
        )
    return Schema(columns, drafted=True)


def _draft_column(  # noqa: PLR0911
    relation: duckdb.DuckDBPyRelation, name: str, kind: str
) -> Column | None:
    quoted = _quote(name)
    low, high, distinct, absent = _fetch_row(
        relation,
        f"SELECT min({quoted}), max({quoted}), approx_count_distinct({quoted}), "
        f"count(*) - count({quoted}) FROM juncture_table",
    )
    missing = bool(absent)
    if low is None:
        return None
    if kind == "BOOLEAN":
        return Boolean(missing=missing)
    if isinstance(low, int):
        width = max(1, math.ceil((high - low + 1) / _MAX_CATEGORIES))
        return Integer(low=low, high=high, width=width, missing=missing, outside=Outside.NEAREST)
    if kind in ("DATE", "TIMESTAMP") or kind.startswith("TIMESTAMP"):
        first, last = (day.date() if hasattr(day, "date") else day for day in (low, high))
        return Date(low=first, high=last, period=Period.MONTH, missing=missing)
    if kind == "VARCHAR" or kind.startswith("ENUM"):
        return _draft_categories(relation, quoted, int(distinct), missing)
    try:
        return _draft_bins(float(low), float(high), missing)
    except (TypeError, ValueError):
        return None


def _draft_categories(
    relation: duckdb.DuckDBPyRelation, quoted: str, distinct: int, missing: bool
) -> Column | None:
    if distinct > 2 * _MAX_CATEGORIES:
        return None
    answer: Any = relation.query(
        "juncture_table",
        f"SELECT DISTINCT CAST({quoted} AS VARCHAR) AS value FROM juncture_table "
        f"WHERE {quoted} IS NOT NULL ORDER BY value LIMIT {_MAX_CATEGORIES + 1}",
    )
    values = tuple(row[0] for row in answer.fetchall())
    if not 0 < len(values) <= _MAX_CATEGORIES:
        return None
    return Categorical(values=values, missing=missing, outside=Outside.CODE)


def _draft_bins(low: float, high: float, missing: bool) -> Column | None:
    """Bins between round numbers, so that the bounds are not those of single records."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    step = 10.0 ** math.floor(math.log10(max(high - low, abs(high), 1e-12)))
    first, last = math.floor(low / step) * step, math.ceil(high / step) * step
    last = last if last > first else first + step
    return Number.evenly(first, last, _BINS, missing=missing, outside=Outside.NEAREST)


def _fetch_row(relation: duckdb.DuckDBPyRelation, sql: str) -> tuple[Any, ...]:
    answer: Any = relation.query("juncture_table", sql)
    (row,) = answer.fetchall()
    return tuple(row)
