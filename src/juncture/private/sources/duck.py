"""Tables that DuckDB reads: encoded inside the engine, counted in one scan for all cliques.

The raw columns are read once and encoded, inside the engine, into a temporary table of small
integers; beyond the engine's memory limit it spills to disk. A table whose codes fit into memory
is then counted there (`exact_codes`). A larger one is scanned: its codes pass through memory a
piece at a time, and one scan of the columns that matter counts all cliques.
"""

from __future__ import annotations

import re
import shutil
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from juncture.errors import UnreadableFile
from juncture.private.sources.encoding import (
    MISSING,
    DuckDialect,
    closed_text_code,
    code_expressions,
    text_expressions,
    text_name,
)
from juncture.private.sources.files import ArrowTable, TableFile, exact_relation
from juncture.private.sources.mismatches import DUCK_INTEGERS, exact_mismatches
from juncture.private.sources.rows import FATE, RowLimit
from juncture.private.sources.source import GROUPS_AT_ONCE, CodedTable, Groups, code_type
from juncture.private.sources.spill import make_spill_folder
from juncture.private.sources.validation import refuse_absent, refuse_all_outside, refuse_errors
from juncture.tables.columns import Column, OpenCategorical
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.person import Person
from juncture.tables.schema import Schema

_DIALECT = DuckDialect()
_FLOATS = {"FLOAT", "DOUBLE"}
# A larger table is scanned in pieces of about this many bytes.
_PIECE_BYTES = 1 << 26


class DuckDB:
    """A source from a table that DuckDB can read.

    - a file: CSV, Parquet, a folder of such files, a database, read within `memory_limit`;
    - an Arrow table of any library;
    - a DuckDB relation (`connection.table("people")`), counted on its own connection, in a
      temporary table, with that connection's settings.

    >>> import pyarrow as pa
    >>> from juncture.tables.columns import Boolean
    >>> table = pa.table({"smokes": [True, False, True]})
    >>> DuckDB(table, Schema({"smokes": Boolean()})).domain
    Domain({'smokes': 2})
    """

    def __init__(
        self,
        table: str | Path | TableFile | duckdb.DuckDBPyRelation | ArrowTable,
        schema: Schema,
        *,
        memory_limit: str = "1GB",
    ) -> None:
        self.schema = schema
        self._limit = RowLimit.of_schema(schema, _DIALECT, shift=-MISSING)
        self._name = f"juncture_codes_{uuid4().hex}"
        self._lock = threading.Lock()
        spill = make_spill_folder()
        weakref.finalize(self, shutil.rmtree, spill, ignore_errors=True)
        try:
            self._relation = exact_relation(table, memory_limit=memory_limit, spill=spill)
            self._encode(self._relation)
        except duckdb.Error as error:
            raise UnreadableFile(redact_error(error)) from None
        self._refuse_errors()
        refuse_all_outside(self, lambda names: exact_mismatches(self._relation, schema, names))

    @property
    def domain(self) -> Domain:
        """The attributes with their sizes."""
        return self.schema.domain

    @property
    def is_public(self) -> bool:
        """See `Source.is_public`."""
        return self.schema.is_public

    @property
    def person(self) -> Person | None:
        """See `Source.person`."""
        return self.schema.person

    @property
    def _where(self) -> str:
        """SQL that leaves the rows which count."""
        return "" if self._limit is None else f" WHERE {self._limit.is_counted}"

    @cached_property
    def exact_n_records(self) -> int:
        """See `Source.exact_n_records`."""
        sql = f"SELECT COUNT(*) AS n FROM {self._name}{self._where}"
        return int(self._exact_answers(sql)["n"][0])

    @property
    def exact_code_bytes(self) -> int:
        """The memory that all codes would take."""
        return self.exact_n_records * len(self.domain) * code_type(self.domain).itemsize

    def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
        """See `Source.exact_counts`."""
        asked = [self.domain.project(clique) for clique in cliques]
        if not asked:
            return []
        totals = [np.zeros(subdomain.shape) for subdomain in asked]
        used = self.domain.project({name for subdomain in asked for name in subdomain})
        if not used:  # the number of records is all that is asked
            return [Factor(used, float(self.exact_n_records))] * len(asked)
        for codes in self._exact_pieces(used):
            parts = codes.exact_counts([each.attributes for each in asked])
            for index, part in enumerate(parts):
                totals[index] += part.values
        return [Factor.of_finite(*pair) for pair in zip(asked, totals, strict=True)]

    def exact_codes(self) -> CodedTable:
        """All codes, copied into memory: for tables that fit."""
        result = self._exact_answers(self._select(self.domain))
        columns = {name: result[f"c{index}"] for index, name in enumerate(self.domain)}
        return CodedTable(self.domain, _shift(columns), self.schema, person=self.person)

    def close(self, schema: Schema, codes: Mapping[str, tuple[int, ...]]) -> None:
        """See `OpenSource.close`."""
        listed = ", ".join(
            f"CAST({self._closed_sql(name, column, codes.get(name))} AS "
            f"{_code_type(schema.domain[name])}) AS {_DIALECT.quote_name(name)}"
            for name, column in schema.columns.items()
        )
        closed = f"juncture_codes_{uuid4().hex}"
        self._exact_answers(
            f"CREATE TEMP TABLE {closed} AS SELECT {listed} FROM {self._name}{self._where}"
        )
        self.drop()
        self._name, self.schema, self._limit = closed, schema, None  # only rows that count are left

    def exact_groups(self, name: str, least: int) -> Groups:
        """See `OpenSource.exact_groups`."""
        text = _DIALECT.quote_name(text_name(name))
        rows = f"SELECT {text} AS t FROM {self._name}{self._where}"
        sql = (
            f"SELECT t, COUNT(*) AS n FROM ({rows}) WHERE t IS NOT NULL "
            f"GROUP BY t HAVING COUNT(*) >= {least} ORDER BY t"
        )
        with self._lock:  # a connection runs one query at a time
            answer: Any = self._relation.query("juncture_table", sql)
            for batch in _open_reader(answer, GROUPS_AT_ONCE):
                yield batch.column(0).to_pylist(), np.array(batch.column(1), dtype=np.int64)

    def _closed_sql(self, name: str, column: Column, codes: tuple[int, ...] | None) -> str:
        """SQL for a shifted code under the closed schema."""
        quoted = _DIALECT.quote_name(name)
        if isinstance(self.schema.columns[name], OpenCategorical):
            return f"{closed_text_code(name, column, _DIALECT)} - ({MISSING})"
        if codes is None:
            return quoted
        shifted = [code - MISSING for code in codes]
        return _DIALECT.look_up(f"(CAST({quoted} AS BIGINT) - {-MISSING})", shifted)

    def drop(self) -> None:
        """Drop the temporary table; nothing can be counted afterwards."""
        self._exact_answers(f"DROP TABLE {self._name}")

    def _encode(self, relation: duckdb.DuckDBPyRelation) -> None:
        """Make the temporary table; codes are shifted so that errors fit unsigned types."""
        refuse_absent(self.schema, relation.columns)
        select = _write_encoding(relation, self.schema, self._limit)
        relation.query("juncture_table", f"CREATE TEMP TABLE {self._name} AS {select}")

    def _refuse_errors(self) -> None:
        """Refuse values that the schema calls errors; only columns that have any are counted.

        Errors are the smallest of the shifted codes, and the engine keeps the smallest of a column.
        """
        names = list(self.domain)
        smallest = ", ".join(f"MIN({_DIALECT.quote_name(n)}) AS c{i}" for i, n in enumerate(names))
        minima = self._exact_answers(f"SELECT {smallest} FROM {self._name}")
        suspects = [n for i, n in enumerate(names) if not np.ma.getmaskarray(minima[f"c{i}"])[0]]
        suspects = [n for n in suspects if minima[f"c{names.index(n)}"][0] < -MISSING]
        if suspects:  # only then are the raw values looked at again
            refuse_errors(self.schema, exact_mismatches(self._relation, self.schema, suspects))
        if self._limit is not None:
            found = self._exact_answers(_count_fates(self._name))
            self._limit.refuse_rows(dict(zip(found["fate"], found["n"], strict=True)))

    def _select(self, used: Domain) -> str:
        """SQL for the shifted codes of some columns."""
        names = (f"{_DIALECT.quote_name(name)} AS c{index}" for index, name in enumerate(used))
        return f"SELECT {', '.join(names)} FROM {self._name}{self._where}"

    def _exact_pieces(self, used: Domain) -> Iterator[CodedTable]:
        """The codes of some columns, a piece of the table at a time."""
        with self._lock:  # a connection runs one query at a time
            answer: Any = self._relation.query("juncture_table", self._select(used))
            for batch in _open_reader(answer, max(1, _PIECE_BYTES // len(used))):
                columns = {
                    name: column.to_numpy()
                    for name, column in zip(used, batch.columns, strict=True)
                }
                yield CodedTable(used, _shift(columns))

    def _exact_answers(self, sql: str) -> dict[str, NDArray[Any]]:
        with self._lock:  # a connection runs one query at a time
            return self._answers(sql)

    def _answers(self, sql: str) -> dict[str, NDArray[Any]]:
        answer: Any = self._relation.query("juncture_table", sql)
        return {} if answer is None else dict(answer.fetchnumpy())


def exact_row_fates(relation: duckdb.DuckDBPyRelation, schema: Schema) -> dict[int, int]:
    """How many rows of a table have which `RowFate`; nothing where all of them count."""
    limit = RowLimit.of_schema(schema, _DIALECT, shift=-MISSING)
    if limit is None:
        return {}
    select = _write_encoding(relation, schema, limit)
    found: Any = relation.query("juncture_table", _count_fates(f"({select})"))
    return {int(fate): int(n) for fate, n in found.fetchall()}


def _count_fates(rows: str) -> str:
    return f"SELECT {_DIALECT.quote_name(FATE)} AS fate, COUNT(*) AS n FROM {rows} GROUP BY ALL"


def _write_encoding(
    relation: duckdb.DuckDBPyRelation, schema: Schema, limit: RowLimit | None
) -> str:
    """SQL for the shifted codes of all rows, and for what becomes of each."""
    columns = dict(zip(relation.columns, map(str, relation.dtypes), strict=True))
    integers = {name for name, kind in columns.items() if kind in DUCK_INTEGERS}
    listed = [
        f"CAST({code} - ({MISSING}) AS {_code_type(schema.domain[name])}) AS "
        f"{_DIALECT.quote_name(name)}"
        for name, code in code_expressions(schema, _DIALECT, integers).items()
    ]
    texts = text_expressions(schema, _DIALECT)
    listed += [f"{sql} AS {_DIALECT.quote_name(name)}" for name, sql in texts.items()]
    if limit is None:
        return f"SELECT {', '.join(listed)} FROM juncture_table"
    raw = limit.raw_columns([name for name, kind in columns.items() if kind in _FLOATS])
    kept = [*map(_DIALECT.quote_name, [*schema.domain, *texts]), limit.fate]
    # Codes first: the window then carries nothing else.
    inner = f"SELECT {', '.join([*listed, *raw])} FROM juncture_table"
    return f"SELECT {', '.join(kept)} FROM ({inner})"


def _open_reader(answer: Any, n_rows: int) -> Iterable[pa.RecordBatch]:  # noqa: ANN401
    """Pieces of an answer as Arrow; DuckDB 2 has given the function another name."""
    read = getattr(answer, "to_arrow_reader", None) or answer.fetch_arrow_reader
    reader: Iterable[pa.RecordBatch] = read(n_rows)
    return reader


def _shift(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Codes from shifted codes; there are no errors among them any more."""
    return {name: np.asarray(column) - (-MISSING) for name, column in columns.items()}


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
