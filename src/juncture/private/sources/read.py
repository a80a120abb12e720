"""One function that reads every kind of table: a file, a table in memory, or in an engine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, cast

import duckdb

from juncture.errors import InvalidInput
from juncture.private.sources.duck import DuckDB
from juncture.private.sources.files import AnyTable, ArrowTable, TableFile
from juncture.private.sources.source import OpenSource, Source
from juncture.private.sources.validation import refuse_absent
from juncture.tables.foreign import refuse_foreign
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import read_schema

if TYPE_CHECKING:
    from polars import LazyFrame
    from pyspark.sql import DataFrame as SparkFrame

    Table = AnyTable | LazyFrame | SparkFrame
    """Every kind of table that can be read."""

MAX_CODE_BYTES = 1 << 30
"""Codes that take no more than a gigabyte are counted in memory."""


def read_table(
    table: Table,
    schema: Schema | str | Path,
    *,
    memory_limit: str = "1GB",
    max_code_bytes: int = MAX_CODE_BYTES,
) -> Source:
    """Read a private table as a source of counts for a curator.

    Every value is checked against the schema, and becomes a code once.

    - `table`: a CSV or Parquet file, or a folder of such files; a table of a SQLite or DuckDB
      database (`people.duckdb::people`); a `TableFile`, which says how a file is read; a pandas,
      Polars or Arrow table; a lazy frame of Polars, of which only the schema's columns are
      computed; a DuckDB relation; or a Spark DataFrame, which stays in its session.
    - `schema`: what the columns may hold, or the path of its TOML file. Columns of the table that
      it does not name are not read.
    - `memory_limit`: what DuckDB may use before it spills to disk. A relation's connection and a
      Spark session have limits of their own.
    - `max_code_bytes`: codes are kept and counted in memory if all of them take no more than this,
      a byte each where no column has more than 256 values and four bytes otherwise. Those of a
      larger table stay in DuckDB and are scanned for every question. Spark's always stay there.

    >>> import pyarrow as pa
    >>> from juncture.tables.columns import Integer
    >>> source = read_table(pa.table({"age": [20, 31]}), Schema({"age": Integer(low=0, high=99)}))
    >>> source.domain
    Domain({'age': 100})
    """
    known = _load_schema(schema)
    if _is_spark_frame(table):  # before Arrow, which would bring all rows to this machine
        from juncture.private.sources.spark import Spark  # noqa: PLC0415

        return Spark(table, known)
    if _is_lazy_frame(table):
        table = _collect(table, known)
    in_duckdb = isinstance(table, str | Path | TableFile | duckdb.DuckDBPyRelation)
    if not (in_duckdb or hasattr(table, "__arrow_c_stream__")):
        raise InvalidInput(
            "`table` must be a file or a folder of files, a pandas, Polars or Arrow "
            f"table, a DuckDB relation or a Spark DataFrame; got {_type_name(table)}.{_hint(table)}"
        )
    if not isinstance(table, str | Path | TableFile):
        return _encode(cast("AnyTable", table), known, memory_limit, max_code_bytes)
    with refuse_foreign("table", table, "Check that the file is whole, and of the kind it says."):
        return _encode(table, known, memory_limit, max_code_bytes)


def _encode(table: AnyTable, schema: Schema, memory_limit: str, max_code_bytes: int) -> Source:
    source = DuckDB(table, schema, memory_limit=memory_limit)
    # An open schema will be closed where the table lies; then its codes are smaller, too.
    return source if schema.open_columns else _keep_in_memory(source, max_code_bytes)


def close_table(
    source: OpenSource,
    schema: Schema,
    codes: Mapping[str, tuple[int, ...]],
    *,
    max_code_bytes: int = MAX_CODE_BYTES,
) -> Source:
    """The table of an open schema under the closed one; the open source cannot be used any more."""
    source.close(schema, codes)
    return _keep_in_memory(source, max_code_bytes) if isinstance(source, DuckDB) else source


def _keep_in_memory(source: DuckDB, max_code_bytes: int) -> Source:
    """The codes in memory, if they are few enough."""
    if source.exact_code_bytes > max_code_bytes:
        return source
    codes = source.exact_codes()
    source.drop()
    return codes


def _load_schema(schema: Schema | str | Path) -> Schema:
    if isinstance(schema, str | Path):
        return read_schema(schema)
    if not isinstance(schema, Schema):
        raise InvalidInput(
            f"`schema` must be a Schema or the path of its TOML file; got {_type_name(schema)}."
        )
    return schema


def _is_spark_frame(table: object) -> TypeGuard[SparkFrame]:
    """Whether a table is Spark's; it can only be if pyspark has been imported."""
    spark = sys.modules.get("pyspark.sql")
    return spark is not None and isinstance(table, spark.DataFrame)


def _is_lazy_frame(table: object) -> TypeGuard[LazyFrame]:
    """Whether a table is a lazy one of Polars; it can only be if polars has been imported."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(table, polars.LazyFrame)


def _collect(table: LazyFrame, schema: Schema) -> ArrowTable:
    """The columns of the schema, computed; the others are not."""
    refuse_absent(schema, table.collect_schema().names())
    return table.select(list(schema.used_columns)).collect()


def _type_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def _hint(table: object) -> str:
    """Advice for objects that are almost tables."""
    return " Pass `pyarrow.table(table)`." if isinstance(table, dict) else ""
