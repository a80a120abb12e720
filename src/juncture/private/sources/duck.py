"""Counting inside DuckDB: rows stay in the engine, only counts leave it.

The raw columns are read once and encoded, inside the engine, into a temporary table of small
integers; beyond the engine's memory limit it spills to disk. Cliques of a small union are counted
together, by one grouped count over the few columns of the union, and only the cells that hold
records are returned.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from juncture.errors import InvalidInput, UnreadableFile
from juncture.private.sources.encoding import MISSING, OUTSIDE, DuckDialect, code_expressions
from juncture.private.sources.shared_counts import count_cliques
from juncture.private.sources.source import CodedTable
from juncture.private.sources.validation import refuse_absent, refuse_errors
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.schema import Schema

_DIALECT = DuckDialect()
# Groups of up to this many bits are counted in a plain array instead of a hash table.
_ARRAY_BITS = 18
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_READERS = {
    ".csv": "read_csv({files}, header = true, skip = 0, quote = '\"', escape = '\"', comment = '', "
    "delim = '{delimiter}', all_varchar = {text}, hive_partitioning = false)",
    ".parquet": "read_parquet({files}, hive_partitioning = false)",
}


class ArrowTable(Protocol):
    """Any table with the Arrow PyCapsule interface: of pandas, Polars, pyarrow and others."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as a stream."""


class DuckDB:
    """A source from a table that DuckDB can read.

    - a CSV or Parquet file, or a folder of such files, read within `memory_limit`;
    - an Arrow table of any library;
    - a DuckDB relation (`connection.table("people")`), counted on its own connection, in a
      temporary table, with that connection's settings.

    >>> from juncture.tables.columns import Boolean
    >>> table = pa.table({"smokes": [True, False, True]})
    >>> DuckDB(table, Schema({"smokes": Boolean()})).domain
    Domain({'smokes': 2})
    """

    def __init__(
        self,
        table: str | Path | duckdb.DuckDBPyRelation | ArrowTable,
        schema: Schema,
        *,
        memory_limit: str = "1GB",
    ) -> None:
        self.schema = schema
        self._name = f"juncture_codes_{uuid4().hex}"
        self._lock = threading.Lock()
        spill = tempfile.mkdtemp(prefix="juncture-")
        weakref.finalize(self, shutil.rmtree, spill, ignore_errors=True)
        try:
            self._relation = exact_relation(table, memory_limit=memory_limit, spill=spill)
            self._encode(self._relation)
        except duckdb.Error as error:
            raise UnreadableFile(redact_error(error)) from None
        self._refuse_errors()

    @property
    def domain(self) -> Domain:
        """The attributes with their sizes."""
        return self.schema.domain

    @property
    def is_public(self) -> bool:
        """See `Source.is_public`."""
        return self.schema.is_public

    @cached_property
    def exact_n_records(self) -> int:
        """See `Source.exact_n_records`."""
        return int(self._exact_answers(f"SELECT COUNT(*) AS n FROM {self._name}")["n"][0])

    def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
        """See `Source.exact_counts`."""
        return count_cliques(self.domain, cliques, self._exact_table)

    def exact_codes(self) -> CodedTable:
        """All codes, copied into memory: for tables that fit."""
        listed = ", ".join(
            f"CAST({_DIALECT.quote_name(name)} AS INTEGER) + ({MISSING}) AS c{index}"
            for index, name in enumerate(self.domain)
        )
        result = self._exact_answers(f"SELECT {listed} FROM {self._name}")
        columns = {name: result[f"c{index}"] for index, name in enumerate(self.domain)}
        return CodedTable(self.domain, columns, self.schema)

    def _encode(self, relation: duckdb.DuckDBPyRelation) -> None:
        """Make the temporary table; codes are shifted so that errors fit unsigned types."""
        columns = dict(zip(relation.columns, map(str, relation.dtypes), strict=True))
        refuse_absent(self.schema, list(columns))
        integers = {name for name, kind in columns.items() if kind in _INTEGERS}
        listed = ", ".join(
            f"CAST({code} - ({MISSING}) AS {_code_type(self.domain[name])}) AS "
            f"{_DIALECT.quote_name(name)}"
            for name, code in code_expressions(self.schema, _DIALECT, integers).items()
        )
        sql = f"CREATE TEMP TABLE {self._name} AS SELECT {listed} FROM juncture_table"
        relation.query("juncture_table", sql)

    def _refuse_errors(self) -> None:
        """Refuse values that the schema calls errors; only columns that have any are counted.

        Errors are the smallest of the shifted codes, and the engine keeps the smallest of a column.
        """
        names = list(self.domain)
        smallest = ", ".join(f"MIN({_DIALECT.quote_name(n)}) AS c{i}" for i, n in enumerate(names))
        minima = self._exact_answers(f"SELECT {smallest} FROM {self._name}")
        suspects = [n for i, n in enumerate(names) if not np.ma.getmaskarray(minima[f"c{i}"])[0]]
        suspects = [n for n in suspects if minima[f"c{names.index(n)}"][0] < -MISSING]
        errors = dict.fromkeys(names, (0, 0))
        for name in suspects:
            column = _DIALECT.quote_name(name)
            counts = ", ".join(
                f"COUNT(*) FILTER ({column} = {error - MISSING}) AS {alias}"
                for error, alias in ((OUTSIDE, "o"), (MISSING, "m"))
            )
            answer = self._exact_answers(f"SELECT {counts} FROM {self._name}")
            errors[name] = (int(answer["o"][0]), int(answer["m"][0]))
        refuse_errors(self.domain, errors)

    def _exact_table(self, subdomain: Domain) -> Factor:
        """The counts of one clique; only occupied cells leave the engine."""
        names = [_DIALECT.quote_name(name) for name in subdomain]
        groups = f" GROUP BY {', '.join(names)}" if names else ""
        listed = ", ".join([*(f"{n} AS c{i}" for i, n in enumerate(names)), "COUNT(*) AS n"])
        result = self._exact_answers(f"SELECT {listed} FROM {self._name}{groups}")
        table = np.zeros(subdomain.shape)
        cells = tuple(result[f"c{i}"].astype(np.int64) + MISSING for i in range(len(names)))
        table[cells] = result["n"] if subdomain else result["n"][0]
        return Factor(subdomain, table)

    def _exact_answers(self, sql: str) -> dict[str, NDArray[Any]]:
        with self._lock:  # a connection runs one query at a time
            return self._answers(sql)

    def _answers(self, sql: str) -> dict[str, NDArray[Any]]:
        answer: Any = self._relation.query("juncture_table", sql)
        return dict(answer.fetchnumpy())


def redact_error(error: duckdb.Error) -> str:
    """A message for an engine's error, without the values of the table that it may quote."""
    line = re.search(r"on Line: (\d+)", str(error))
    where = f" in line {line[1]}" if line else ""
    return (
        f"`table` must be one that DuckDB can read; got something else{where} "
        f"({type(error).__name__}). Check that the file is complete, that its text is UTF-8, and "
        "that all rows have the same number of values."
    )


def _code_type(size: int) -> str:
    """The smallest type that holds shifted codes."""
    return "UTINYINT" if size <= 250 else "USMALLINT" if size <= 65_000 else "UINTEGER"


def exact_relation(
    table: str | Path | duckdb.DuckDBPyRelation | ArrowTable,
    *,
    memory_limit: str = "1GB",
    spill: str = "",
    typed: bool = False,
) -> duckdb.DuckDBPyRelation:
    """The table as a relation. CSV files are read as text, or with `typed` by detected types."""
    if isinstance(table, duckdb.DuckDBPyRelation):
        return table
    connection = duckdb.connect(config={"memory_limit": memory_limit, "temp_directory": spill})
    connection.execute(f"SET perfect_ht_threshold = {_ARRAY_BITS}")
    if not isinstance(table, str | Path):
        return connection.from_arrow(_to_arrow(table))
    files = _list_files(Path(table))
    listed = "[" + ", ".join(_DIALECT.quote_text(_escape_glob(file)) for file in files) + "]"
    suffix = files[0].suffix.lower()
    options = {
        "delimiter": _detect_delimiter(files[0]) if suffix == ".csv" else "",
        "text": not typed,
    }
    return connection.sql(f"SELECT * FROM {_READERS[suffix].format(files=listed, **options)}")


def _escape_glob(file: Path) -> str:
    """A path in which DuckDB sees no pattern."""
    return re.sub(r"([\[*?])", r"[\1]", str(file))


def _detect_delimiter(file: Path) -> str:
    """The delimiter of the names in the first line: guessing from rows fails on bad ones."""
    with file.open("rb") as content:
        head = content.readline(1 << 20).decode("utf-8", errors="replace")
    return max(",;\t|", key=head.count)


def _to_arrow(table: ArrowTable) -> pa.Table:
    if not hasattr(table, "__arrow_c_stream__"):
        raise InvalidInput(
            f"`table` must be a file, a DuckDB relation or an Arrow table; got "
            f"{type(table).__name__}. Tables of pandas, Polars and pyarrow are Arrow tables."
        )
    try:
        return pa.table(table)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        # Arrow's own message quotes values of the table.
        raise InvalidInput(
            f"`table` must be one that Arrow can hold; got {type(table).__name__} with something "
            f"else ({type(error).__name__}). Give every column values of one type."
        ) from None


def _is_hidden(path: Path) -> bool:
    """Whether a file or one of its folders is hidden: named with a dot or an underscore first."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _list_files(path: Path) -> list[Path]:
    """The file itself, or all files of a folder; refuses kinds that cannot be read."""
    files = [path]
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*") if p.is_file())
        files = [p for p in inside if not _is_hidden(p.relative_to(path))]
    if not files or not all(p.exists() for p in files):
        raise UnreadableFile(
            f"`table` must be an existing file or a folder with files; got {path}."
        )
    kinds = {p.suffix.lower() for p in files}
    if len(kinds) != 1 or not kinds.issubset(_READERS):
        raise UnreadableFile(
            f"`table` must be {' or '.join(_READERS)} files of one kind; got "
            f"{', '.join(sorted(kinds))} at {path}. Convert them, or give a DuckDB relation."
        )
    return files
