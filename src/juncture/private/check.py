"""A schema held against a table: which columns there are, and how many values do not fit.

The counts are exact: they are for the people who may see the table, and must not be published.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from juncture.errors import UnreadableFile
from juncture.private.sources.duck import redact_error
from juncture.private.sources.files import AnyTable, exact_relation
from juncture.private.sources.mismatches import Mismatch, exact_mismatches
from juncture.tables.schema import Schema


@dataclass(frozen=True)
class TableCheck:
    """What was found; private."""

    schema: Schema
    n_records: int
    absent: tuple[str, ...]
    """Columns of the schema that the table does not have."""
    extra: tuple[str, ...]
    """Columns of the table that the schema does not name; they are not read."""
    mismatches: Mapping[str, Mismatch]
    """For each column of both, how many values are not regular ones."""

    @property
    def refused(self) -> tuple[str, ...]:
        """The columns because of which a release would be refused."""
        wrong = [
            name
            for name, each in self.mismatches.items()
            if any(each.refused(self.schema.columns[name]))
        ]
        return (*self.absent, *wrong)


def exact_check(table: AnyTable, schema: Schema) -> TableCheck:
    """Hold a schema against a table."""
    try:
        with tempfile.TemporaryDirectory(prefix="juncture-") as spill:
            relation = exact_relation(table, spill=spill, copy=len(schema.columns) > 1)
            present = [name for name in schema.columns if name in relation.columns]
            return TableCheck(
                schema,
                int(relation.count("*").fetchall()[0][0]),
                tuple(name for name in schema.used_columns if name not in relation.columns),
                tuple(name for name in relation.columns if name not in schema.used_columns),
                exact_mismatches(relation, schema, present),
            )
    except duckdb.Error as error:
        raise UnreadableFile(redact_error(error)) from None
