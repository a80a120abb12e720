"""Counting inside Spark, for tables that have outgrown one machine: only counts leave it.

This is optional: it needs pyspark (the extra `spark`) and an existing session.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from juncture.private.sources.encoding import (
    SparkDialect,
    closed_text_code,
    code_expressions,
    fate_expression,
    text_expressions,
    text_name,
)
from juncture.private.sources.mismatches import MISMATCHES, Mismatch, split_counts
from juncture.private.sources.rows import FATE, RowLimit
from juncture.private.sources.shared_counts import count_cliques
from juncture.private.sources.source import GROUPS_AT_ONCE, Groups
from juncture.private.sources.validation import refuse_absent, refuse_all_outside, refuse_errors
from juncture.tables.columns import Column, OpenCategorical
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.person import Person
from juncture.tables.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DIALECT = SparkDialect()
_FLOATS = {"float", "double"}
_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
# Spark's passes cost more than DuckDB's, so it counts larger unions at a time.
_MAX_CELLS = 1 << 18


class Spark:
    """A source from a DataFrame of an existing session; for a table, `session.table(name)`."""

    def __init__(self, frame: DataFrame, schema: Schema) -> None:
        self.schema = schema
        kinds = dict(frame.dtypes)
        refuse_absent(schema, list(kinds))
        integers = {name for name, kind in kinds.items() if kind in _INTEGERS}
        codes = [
            f"{code} AS {_DIALECT.quote_name(name)}"
            for name, code in code_expressions(schema, _DIALECT, integers).items()
        ]
        texts = text_expressions(schema, _DIALECT)
        codes += [f"{sql} AS {_DIALECT.quote_name(name)}" for name, sql in texts.items()]
        self._limit = RowLimit.of_schema(schema, _DIALECT)
        if self._limit is not None:  # codes first: the window then carries nothing else
            floats = [name for name, kind in kinds.items() if kind in _FLOATS]
            raw = self._limit.raw_columns(floats)
            rows = frame.selectExpr(*codes, *raw)
            codes = [*map(_DIALECT.quote_name, [*schema.domain, *texts]), self._limit.fate]
        else:
            rows = frame
        # The encoded columns are kept by the engine, in memory or on its disks.
        # A column with a unique name keeps Spark from reusing an older cache of the same files.
        self._codes = rows.selectExpr(
            *codes,
            f"'{uuid4().hex}' AS {_DIALECT.quote_name(f'juncture {uuid4().hex}')}",
        ).persist()
        weakref.finalize(self, _unpersist, self._codes)
        if self._has_errors():  # only then are the raw values looked at again
            refuse_errors(schema, _exact_mismatches(frame, schema, integers))
        self._counted = self._codes
        if self._limit is not None:
            fate = _DIALECT.quote_name(FATE)
            found = self._codes.groupBy(fate).count().collect()
            self._limit.refuse_rows({int(row[0]): int(row[1]) for row in found})
            self._counted = self._codes.where(self._limit.is_counted)
        refuse_all_outside(self, lambda _: _exact_mismatches(frame, schema, integers))

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

    @cached_property
    def exact_n_records(self) -> int:
        """See `Source.exact_n_records`."""
        return int(self._counted.count())

    def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
        """See `Source.exact_counts`."""
        return count_cliques(self.domain, cliques, self._exact_table, _MAX_CELLS)

    def close(self, schema: Schema, codes: Mapping[str, tuple[int, ...]]) -> None:
        """See `OpenSource.close`."""
        opened = self._codes
        listed = [
            f"{self._closed_sql(name, column, codes.get(name))} AS {_DIALECT.quote_name(name)}"
            for name, column in schema.columns.items()
        ]
        self._codes = self._counted = self._counted.selectExpr(*listed).persist()
        self._codes.count()  # now, while the codes that it is made from are kept
        weakref.finalize(self, _unpersist, self._codes)
        _unpersist(opened)
        self.schema = schema

    def exact_groups(self, name: str, least: int) -> Groups:
        """See `OpenSource.exact_groups`."""
        text = _DIALECT.quote_name(text_name(name))
        groups = self._counted.where(f"{text} IS NOT NULL").groupBy(text).count()
        rows = groups.where(f"count >= {least}").orderBy(text).toLocalIterator()
        while batch := list(islice(rows, GROUPS_AT_ONCE)):
            yield [row[0] for row in batch], np.array([row[1] for row in batch], dtype=np.int64)

    def _closed_sql(self, name: str, column: Column, codes: tuple[int, ...] | None) -> str:
        """SQL for a code under the closed schema."""
        quoted = _DIALECT.quote_name(name)
        if isinstance(self.schema.columns[name], OpenCategorical):
            return closed_text_code(name, column, _DIALECT)
        return quoted if codes is None else _DIALECT.look_up(quoted, codes)

    def _exact_table(self, subdomain: Domain) -> Factor:
        """The counts of one clique; only occupied cells leave the engine."""
        table = np.zeros(subdomain.shape)
        if not subdomain:
            return Factor(subdomain, np.asarray(float(self.exact_n_records)))
        grouped = self._counted.groupBy(*map(_DIALECT.quote_name, subdomain)).count()
        for row in grouped.collect():
            table[tuple(row[: len(subdomain)])] = row[len(subdomain)]
        return Factor(subdomain, table)

    def _has_errors(self) -> bool:
        """Whether some value is one that the schema calls an error."""
        names = map(_DIALECT.quote_name, self.domain)
        smallest = [f"min({name}) AS m{index}" for index, name in enumerate(names)]
        row = self._codes.selectExpr(*smallest).collect()[0]
        return any(code is not None and code < 0 for code in row)


def _exact_mismatches(frame: DataFrame, schema: Schema, integers: set[str]) -> dict[str, Mismatch]:
    """For each column, how many raw values are not regular ones."""
    fates = [
        fate_expression(name, column, _DIALECT, name in integers)
        for name, column in schema.columns.items()
    ]
    sums = [
        f"coalesce(sum(CAST({fate} = {int(each)} AS BIGINT)), 0)"
        for fate in fates
        for each in MISMATCHES
    ]
    row = frame.selectExpr(*(f"{each} AS s{index}" for index, each in enumerate(sums))).collect()[0]
    return dict(zip(schema.columns, split_counts(row), strict=True))


def _unpersist(frame: DataFrame) -> None:
    """Free what the engine keeps, unless the session has already ended."""
    with suppress(Exception):
        frame.unpersist()
