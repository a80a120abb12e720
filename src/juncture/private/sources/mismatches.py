"""How many values of each column do not fit a schema: exact counts, for errors and checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import duckdb

from juncture.private.sources.encoding import DuckDialect, Fate, fate_expression
from juncture.tables.columns import Column, Outside
from juncture.tables.schema import Schema

DUCK_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
"""The types of DuckDB that are read as whole numbers without a cast."""
# An engine's time to plan a query grows with the square of its answers.
_MAX_COLUMNS = 40


class Mismatch(NamedTuple):
    """How many values of a column are not regular ones."""

    unreadable: int = 0
    """Not of the column's type: words where numbers were expected."""
    outside: int = 0
    """Of its type, but outside the domain."""
    missing: int = 0

    def refused(self, column: Column) -> Mismatch:
        """Those that the column calls errors."""
        return Mismatch(
            0 if column.outside is Outside.CODE else self.unreadable,
            self.outside if column.outside is Outside.ERROR else 0,
            0 if column.missing else self.missing,
        )


MISMATCHES = (Fate.UNREADABLE, Fate.OUTSIDE, Fate.MISSING)
"""What the fields of a `Mismatch` count, in order."""


def exact_mismatches(
    relation: duckdb.DuckDBPyRelation, schema: Schema, names: Iterable[str]
) -> dict[str, Mismatch]:
    """For each of these columns, how many raw values are not regular ones."""
    kinds = dict(zip(relation.columns, map(str, relation.dtypes), strict=True))
    listed, found = list(names), dict[str, Mismatch]()
    for start in range(0, len(listed), _MAX_COLUMNS):
        chunk = listed[start : start + _MAX_COLUMNS]
        fates = {
            name: fate_expression(
                name, schema.columns[name], DuckDialect(), kinds[name] in DUCK_INTEGERS
            )
            for name in chunk
        }
        found |= _count_fates(relation, fates)
    return found


def _count_fates(relation: duckdb.DuckDBPyRelation, fates: dict[str, str]) -> dict[str, Mismatch]:
    columns = ", ".join(f"{sql} AS f{index}" for index, sql in enumerate(fates.values()))
    counts = ", ".join(
        f"COUNT(*) FILTER (f{index} = {int(fate)})"
        for index in range(len(fates))
        for fate in MISMATCHES
    )
    answer: Any = relation.query(
        "juncture_table", f"SELECT {counts} FROM (SELECT {columns} FROM juncture_table)"
    )
    (row,) = answer.fetchall()
    return dict(zip(fates, split_counts(row), strict=True))


def split_counts(row: Sequence[int]) -> list[Mismatch]:
    """A row of counts, three for each column, as mismatches."""
    return [Mismatch(*map(int, row[start : start + 3])) for start in range(0, len(row), 3)]
