"""A first draft of a schema, made by looking at the data and marked as a draft.

What it says (the categories, the bounds) is private until a person has replaced or confirmed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from juncture.errors import InvalidInput, UnreadableFile
from juncture.private.draft_remarks import (
    describe_omission,
    explain_column,
    is_constant,
    is_identifier,
    is_revealing,
)
from juncture.private.header import count_doubtful_names
from juncture.private.profile import Profile, exact_profiles
from juncture.private.sources.duck import redact_error
from juncture.private.sources.files import (
    AnyTable,
    TableFile,
    exact_relation,
    is_text_file,
    read_header,
)
from juncture.private.sources.spill import spill_folder
from juncture.tables.columns import Column, column_kinds
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import schema_toml


@dataclass(frozen=True)
class Draft:
    """A drafted schema, and what a person should know who reviews it."""

    schema: Schema
    remarks: Mapping[str, tuple[str, ...]]
    """For columns of the schema, what to look at; without any figure of the table."""
    omitted: Mapping[str, str]
    """The columns that were left out, each with the reason."""
    n_doubtful_names: int
    """How many names of columns look like values: the file may have no line of names."""

    def to_toml(self) -> str:
        """The schema file, with the remarks as comments."""
        return schema_toml(self.schema, self.remarks, self.omitted)


def exact_draft(table: AnyTable) -> Schema:
    """Draft a schema with every column that can be described; see `exact_explained_draft`."""
    return exact_explained_draft(table).schema


def exact_explained_draft(table: AnyTable) -> Draft:
    """Draft a schema, with remarks for the person who reviews it.

    Free text and columns that identify people are left out. Bounds are rounded to numbers that
    could be public knowledge, and texts such as "NA" are taken for missing values.
    """
    is_text = is_text_file(table)
    try:
        with spill_folder() as spill:
            relation = exact_relation(table, spill=spill, copy=True)
            profiles = exact_profiles(relation)
            drafted = {each.name: _draft_column(each) for each in profiles}
    except duckdb.Error as error:
        raise UnreadableFile(redact_error(error)) from None
    columns = {name: column for name, column in drafted.items() if column is not None}
    if not columns:
        raise InvalidInput(
            "`table` must have a column that can be described; got none. Write the schema by hand."
        )
    return Draft(
        Schema(columns, drafted=True),
        {each.name: explain_column(columns[each.name], each) for each in profiles
         if each.name in columns},
        {each.name: describe_omission(each) for each in profiles if each.name not in columns},
        _count_doubtful_names(table, profiles, is_text=is_text),
    )  # fmt: skip


def _draft_column(profile: Profile) -> Column | None:
    """The proposal of the first kind that suits the column; kinds registered last come first."""
    left_out = is_identifier(profile) or is_revealing(profile) or is_constant(profile)
    if profile.summary is None or left_out:
        return None
    for column_kind in reversed(list(column_kinds().values())):
        with suppress(InvalidInput):  # such as whole numbers that are too large
            draft = column_kind.draft(profile.summary)
            if draft is not None:
                return replace(draft, missing_values=profile.missing_values)
    return None


def _count_doubtful_names(table: AnyTable, profiles: list[Profile], *, is_text: bool) -> int:
    if not is_text or (isinstance(table, TableFile) and not table.header):
        return 0
    assert isinstance(table, str | Path | TableFile)
    own = [each.name for each in profiles if each.has_own_name]
    return count_doubtful_names(read_header(table), own)
