"""Tables of SQLite and DuckDB database files.

SQLite gives any column values of any type, so its values are read as texts, as those of a CSV file
are; Python's own module reads them, and nothing has to be installed or downloaded.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from juncture._util.sql import quote_name, quote_text
from juncture.errors import InvalidInput, UnreadableFile

_SQLITE, _DUCKDB = b"SQLite format 3\x00", b"DUCK"
_SUFFIXES = {".sqlite", ".sqlite3", ".duckdb", ".ddb", ".db"}
# Rows that are converted at a time: few enough for memory, enough to be quick.
_BATCH = 20_000


def is_database(path: Path) -> bool:
    """Whether a file is a database, by the end of its name."""
    return path.suffix.lower() in _SUFFIXES


def attach_database(
    connection: duckdb.DuckDBPyConnection, path: Path, table: str | None
) -> duckdb.DuckDBPyRelation:
    """A table of a database file as a relation; by default the only table that there is."""
    with path.open("rb") as file:
        head = file.read(16)
    if head == _SQLITE:
        return _copy_sqlite(connection, path, table)
    if head[8:12] == _DUCKDB:
        return _attach_duckdb(connection, path, table)
    raise UnreadableFile(f"`table` must be a SQLite or DuckDB database; got {path}.")


def _attach_duckdb(
    connection: duckdb.DuckDBPyConnection, path: Path, table: str | None
) -> duckdb.DuckDBPyRelation:
    try:
        connection.execute(f"ATTACH {quote_text(str(path))} AS juncture_file (READ_ONLY)")
    except duckdb.Error as error:
        raise UnreadableFile(
            f"`table` must be a DuckDB database that can be opened for reading; got {path} "
            f"({type(error).__name__}). Close connections that write to it."
        ) from None
    rows = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = 'juncture_file' ORDER BY ALL"
    ).fetchall()
    homes = {name if home == "main" else f"{home}.{name}": (home, name) for home, name in rows}
    home, name = homes[_choose_table(list(homes), table, path)]
    return connection.sql(f"SELECT * FROM juncture_file.{quote_name(home)}.{quote_name(name)}")


def _copy_sqlite(
    connection: duckdb.DuckDBPyConnection, path: Path, table: str | None
) -> duckdb.DuckDBPyRelation:
    """Copy a table into the engine, which spills to disk what its memory does not hold."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
            rows = file.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
            )
            name = _choose_table([row[0] for row in rows], table, path)
            cursor = file.execute(f"SELECT * FROM {quote_name(name)}")
            names = [each[0] for each in cursor.description]
            listed = ", ".join(f"{quote_name(each)} VARCHAR" for each in names)
            connection.execute(f"CREATE TEMP TABLE juncture_file ({listed})")
            for batch in _text_batches(cursor, names):
                connection.from_arrow(batch).insert_into("juncture_file")
    except sqlite3.Error as error:
        raise UnreadableFile(
            f"`table` must be a SQLite database that can be read; got {path} "
            f"({type(error).__name__})."
        ) from None
    return connection.table("juncture_file")


def _text_batches(cursor: sqlite3.Cursor, names: list[str]) -> Iterator[pa.Table]:
    while rows := cursor.fetchmany(_BATCH):
        columns = [_to_texts(column) for column in zip(*rows, strict=True)]
        yield pa.Table.from_arrays(columns, names=names)


def _to_texts(column: Sequence[Any]) -> pa.Array:
    """Values as texts: by Arrow where all have one type, else one by one."""
    with suppress(pa.ArrowException, TypeError, OverflowError):
        found = pa.array(column)
        if not pa.types.is_binary(found.type):
            return found.cast(pa.string())
    return pa.array(list(map(_to_text, column)), pa.string())


def _to_text(value: Any) -> str | None:  # noqa: ANN401
    """A value of SQLite as the text that stands for exactly it."""
    if value is None or isinstance(value, str):
        return value
    return f"x'{value.hex()}'" if isinstance(value, bytes) else repr(value)  # bytes are no number


def _choose_table(names: list[str], wanted: str | None, path: Path) -> str:
    if wanted is not None and wanted in names:
        return wanted
    if wanted is None and len(names) == 1:
        return names[0]
    got = "none was chosen" if wanted is None else f"got {wanted!r}"
    known = ", ".join(names) if names else "no tables"
    raise InvalidInput(
        f"`table` must be a table of {path}, which has {known}; {got}. Name it after the path, as "
        f"{path.name}::NAME."
    )
