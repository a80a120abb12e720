"""A first draft of a schema, made by looking at the data and marked as a draft.

What it says (the categories, the bounds) is private until a person has replaced or confirmed it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from juncture.errors import InvalidInput, UnreadableFile
from juncture.private.sources.duck import exact_relation, redact_error
from juncture.private.sources.encoding import DuckDialect
from juncture.tables.columns import Column, ColumnSummary, RawType, column_kinds
from juncture.tables.schema import Schema

_quote = DuckDialect().quote_name


def exact_draft(table: str | Path | duckdb.DuckDBPyRelation) -> Schema:
    """Draft a schema with every column that can be described; free text is left out."""
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
        column = _draft_column(relation, name, kind)
        if column is not None:  # what cannot be described is left out
            columns[name] = column
    if not columns:
        raise InvalidInput(
            "`table` must have a column that can be described; got none. Write the schema by hand."
        )
    return Schema(columns, drafted=True)


def _draft_column(relation: duckdb.DuckDBPyRelation, name: str, kind: str) -> Column | None:
    """The proposal of the first kind that suits the column; kinds registered last come first."""
    summary = _summarize(relation, _quote(name), kind)
    if summary is None:
        return None
    for column_kind in reversed(list(column_kinds().values())):
        with suppress(InvalidInput):  # such as whole numbers that are too large
            draft = column_kind.draft(summary)
            if draft is not None:
                return draft
    return None


def _summarize(relation: duckdb.DuckDBPyRelation, quoted: str, kind: str) -> ColumnSummary | None:
    low, high, n_distinct, n_absent = _fetch_row(
        relation,
        f"SELECT min({quoted}), max({quoted}), approx_count_distinct({quoted}), "
        f"count(*) - count({quoted}) FROM juncture_table",
    )
    typed = None if low is None else _type_bounds(kind, low, high)
    if typed is None:
        return None
    list_values = partial(_list_values, relation, quoted, int(n_distinct))
    return ColumnSummary(*typed, bool(n_absent), list_values)


def _type_bounds(kind: str, low: Any, high: Any) -> tuple[RawType, Any, Any] | None:  # noqa: ANN401
    """The type of a column and its bounds as plain Python values; None where there is none."""
    if kind == "BOOLEAN":
        return RawType.BOOLEAN, low, high
    if isinstance(low, int):
        return RawType.INTEGER, low, high
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        first, last = (day.date() if hasattr(day, "date") else day for day in (low, high))
        return RawType.DATE, first, last
    if kind == "VARCHAR" or kind.startswith("ENUM"):
        return RawType.TEXT, str(low), str(high)
    try:
        return RawType.NUMBER, float(low), float(high)
    except (TypeError, ValueError):
        return None


def _list_values(
    relation: duckdb.DuckDBPyRelation, quoted: str, n_distinct: int, max_values: int
) -> tuple[str, ...] | None:
    """All distinct values as texts, or None if there are too many; `n_distinct` is approximate."""
    if n_distinct > 2 * max_values:
        return None
    answer: Any = relation.query(
        "juncture_table",
        f"SELECT DISTINCT CAST({quoted} AS VARCHAR) AS value FROM juncture_table "
        f"WHERE {quoted} IS NOT NULL ORDER BY value LIMIT {max_values + 1}",
    )
    values = tuple(row[0] for row in answer.fetchall())
    return values if len(values) <= max_values else None


def _fetch_row(relation: duckdb.DuckDBPyRelation, sql: str) -> tuple[Any, ...]:
    answer: Any = relation.query("juncture_table", sql)
    (row,) = answer.fetchall()
    return tuple(row)
