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
from typing import Any
from uuid import uuid4

import duckdb
import numpy as np
from numpy.typing import NDArray

from juncture.errors import UnreadableFile
from juncture.private.sources.encoding import MISSING, DuckDialect, code_expressions
from juncture.private.sources.files import ArrowTable, TableFile, exact_relation
from juncture.private.sources.mismatches import DUCK_INTEGERS, exact_mismatches
from juncture.private.sources.shared_counts import count_cliques
from juncture.private.sources.source import CodedTable
from juncture.private.sources.validation import refuse_absent, refuse_errors
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.schema import Schema

_DIALECT = DuckDialect()


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
        integers = {name for name, kind in columns.items() if kind in DUCK_INTEGERS}
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
        if suspects:  # only then are the raw values looked at again
            refuse_errors(self.schema, exact_mismatches(self._relation, self.schema, suspects))

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
