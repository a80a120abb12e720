"""A schema held against a table: which columns there are, and how many values do not fit.

The counts are exact: they are for the people who may see the table, and must not be published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import duckdb

from juncture.errors import InvalidInput, UnreadableFile
from juncture.private.sources.duck import exact_row_fates, redact_error
from juncture.private.sources.encoding import DuckDialect
from juncture.private.sources.files import AnyTable, exact_relation
from juncture.private.sources.mismatches import Mismatch, exact_mismatches
from juncture.private.sources.rows import RowFate, RowLimit
from juncture.private.sources.spill import spill_folder
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
    fates: Mapping[int, int] = field(default_factory=dict)
    """How many rows have which `RowFate`, where some may not count."""

    @property
    def refused(self) -> tuple[str, ...]:
        """The columns because of which a release would be refused."""
        wrong = [
            name
            for name, each in self.mismatches.items()
            if any(each.refused(self.schema.columns[name]))
        ]
        return (*self.absent, *wrong)

    @property
    def uncounted(self) -> dict[str, int]:
        """How many rows would not count, by the reason."""
        reasons = {"beyond the limit": RowFate.BEYOND_LIMIT, "set aside": RowFate.SET_ASIDE}
        return {words: self.fates[fate] for words, fate in reasons.items() if fate in self.fates}

    @property
    def refused_rows(self) -> str:
        """Why the table would be refused because of its rows; nothing where it would not."""
        limit = RowLimit.of_schema(self.schema, DuckDialect())
        try:
            if limit is not None:
                limit.refuse_rows(self.fates)
        except InvalidInput as error:
            return str(error)
        return ""


def exact_check(table: AnyTable, schema: Schema) -> TableCheck:
    """Hold a schema against a table."""
    try:
        with spill_folder() as spill:
            relation = exact_relation(table, spill=spill, copy=len(schema.columns) > 1)
            present = [name for name in schema.columns if name in relation.columns]
            absent = tuple(name for name in schema.used_columns if name not in relation.columns)
            return TableCheck(
                schema,
                int(relation.count("*").fetchall()[0][0]),
                absent,
                tuple(name for name in relation.columns if name not in schema.used_columns),
                exact_mismatches(relation, schema, present),
                {} if absent else exact_row_fates(relation, schema),
            )
    except duckdb.Error as error:
        raise UnreadableFile(redact_error(error)) from None
