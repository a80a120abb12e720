"""DuckDB as the calculator of a question: expressions over tables that are made here.

It evaluates whole columns, gives SQL its exact meaning, and matches regular expressions in linear
time. It sees the tables that it is given, no files and no network, and has bounded memory.
"""

from __future__ import annotations

import datetime as dt
import os
from functools import lru_cache

import duckdb
import pyarrow as pa

from juncture._util.text import shorten
from juncture.errors import InvalidInput
from juncture.model.sql.syntax import Value

_MAX_LETTERS = 200
MAX_CELLS = 1 << 20
"""Cells of the joint table of attributes that a question ties together."""
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": "1",  # sums come out the same every time
    "memory_limit": "2GB",
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}


class Engine:
    """The calculator of one question."""

    def __init__(self) -> None:
        self._connection = _database(os.getpid()).cursor()

    def run(self, sql: str, **tables: pa.Table) -> pa.Table:
        """The result of a statement over tables, which it calls by these names."""
        try:
            for name, table in tables.items():
                self._connection.register(name, table)
            return self._connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise InvalidInput(_explain(error)) from None
        finally:
            for name in tables:
                self._connection.unregister(name)

    def evaluate_constant(self, sql: str) -> Value:
        """The value of an expression without columns."""
        return self.run(f"SELECT {sql} AS value")["value"][0].as_py()


def read_values(column: pa.ChunkedArray) -> list[Value]:
    """The values of a column for an answer: decimals as numbers, dates as texts."""
    values = column.to_pylist()
    if pa.types.is_decimal(column.type):
        return [None if value is None else float(value) for value in values]
    if pa.types.is_temporal(column.type):
        # DuckDB makes times of dates in places; midnights all over are days.
        times = [value for value in values if isinstance(value, dt.datetime)]
        if times and all(value.time() == dt.time.min for value in times):
            values = [None if value is None else value.date() for value in values]
        return [None if value is None else str(value) for value in values]
    return list(values)


@lru_cache(maxsize=1)
def _database(_process: int) -> duckdb.DuckDBPyConnection:
    """One for each process: making it takes longer than most questions."""
    return duckdb.connect(config=_CONFIG)


def _explain(error: duckdb.Error) -> str:
    """What is wrong with a question that cannot be calculated, in a sentence of ours."""
    line = (str(error).splitlines() or ["unknown"])[0]
    detail = line.partition("Error: ")[2] or line
    for end in (". Use TRY", ". You might need", ". Did you mean"):
        detail = detail.partition(end)[0]
    detail = shorten(detail.rstrip(". !\t"), _MAX_LETTERS)
    match error:
        case duckdb.ConversionException():
            rule = "compare and cast values that can be read as each other"
        case duckdb.OutOfRangeException():
            rule = "keep its numbers within their types"
        case duckdb.OutOfMemoryException():
            rule = "be smaller: less memory must do"
        case _:
            rule = "use functions and comparisons that suit the types of its columns"
    return f"`sql` must {rule}; got: {detail}."
