"""A schema from the names and types of columns alone: no value is looked at.

Numbers and dates get private bins between bounds that a person has to set, texts get private
values. What seems to identify people is left out, as a comment.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from juncture._util.text import count_noun
from juncture.errors import InvalidInput, UnreadableFile
from juncture.private.column_names import Role, role_of
from juncture.private.profile import raw_type
from juncture.private.sources.duck import redact_error
from juncture.private.sources.files import (
    TableFile,
    exact_relation,
    is_text_file,
    read_header,
)
from juncture.tables.columns import RawType
from juncture.tables.schema_toml import FORMAT, TO_BE_SET, VERSION, format_value

_MISSING = ("", "?", "-", ".", "NA", "N/A", "n/a", "nan", "NaN", "NULL", "null", "None", "none")
_HEAD = """\
# Suggested from the names and types of columns alone: no value was looked at.
#
# 1. Set every {mark}: bounds that are known without the data, such as ages from 0 to 110. Values
#    beyond them count as the nearest inside.
# 2. Correct the kinds, and remove columns that should not be released. Columns whose names say
#    nothing are taken for categories: where they hold numbers, write kind = "number", bounds and
#    bins = "private".
# 3. juncture schema check FILE, then juncture release DATA --schema FILE --epsilon 1 --delta 1e-6
#
# bins = "private" finds bins, values = "private" the frequent values, for part of the budget;
# private values need a delta.
"""
_PERSON = """\
# If a person may have several rows, take these three lines out of the comment: the guarantee is
# then about persons, and the noise grows with max_rows.
# [person]
# column = {column}
# max_rows = 4
"""


@dataclass(frozen=True)
class Suggestion:
    """A schema file to be completed by a person."""

    columns: Mapping[str, RawType]
    """The columns that it describes, each with what it seems to hold."""
    omitted: Mapping[str, Role]
    """The columns that are left out, each with the reason."""

    @property
    def n_bounds(self) -> int:
        """How many bounds a person has to set."""
        return 2 * sum(kind in _KINDS_WITH_BOUNDS for kind in self.columns.values())

    def to_toml(self) -> str:
        """The schema file."""
        mark = format_value(TO_BE_SET)
        lines = [f'format = "{FORMAT}"', f"version = {VERSION}"]
        lines += [f"missing_values = {format_value(list(_MISSING))}", ""]
        lines += _HEAD.format(mark=mark).splitlines()
        lines.append("")
        for name in (n for n, role in self.omitted.items() if role is Role.PERSON):
            lines += [*_PERSON.format(column=format_value(name)).splitlines(), ""]
            break
        for name, kind in self.columns.items():
            lines += [f"[columns.{format_value(name)}]", *_describe(kind, mark), ""]
        if self.omitted:
            lines.append("# Left out, by their names:")
            lines += [f"# {format_value(name)}: {role}." for name, role in self.omitted.items()]
            lines.append("")
        return "\n".join(lines)

    def __repr__(self) -> str:
        described = count_noun(len(self.columns), "column")
        left_out = f"{len(self.omitted)} left out"
        return f"Suggestion({described}, {left_out}, {self.n_bounds} bounds to set)"


_KINDS_WITH_BOUNDS = {RawType.INTEGER: "integer", RawType.NUMBER: "number", RawType.DATE: "date"}


def _describe(kind: RawType, mark: str) -> Iterator[str]:
    """The entries of a column."""
    if kind in _KINDS_WITH_BOUNDS:
        example = "a date, as 2015-01-01" if kind is RawType.DATE else "a number"
        yield f'kind = "{_KINDS_WITH_BOUNDS[kind]}"'
        yield f"low = {mark}    # SET: {example}"
        yield f"high = {mark}   # SET"
        if kind is RawType.NUMBER:
            yield "# step = 1    # take out of the comment if all are whole numbers; 0.01 for cents"
        yield 'bins = "private"'
        yield 'outside = "nearest"'
    elif kind is RawType.BOOLEAN:
        yield 'kind = "boolean"'
    else:
        yield 'kind = "categorical"'
        yield 'values = "private"'
    yield "missing = true"


def suggest_schema(table: str | Path | TableFile) -> Suggestion:
    """Suggest a schema for a file or a table of a database; reads names and types, no values."""
    file = table if isinstance(table, TableFile) else TableFile.parse(table)
    columns, omitted = dict[str, RawType](), dict[str, Role]()
    for name, kind in _read_types(file).items():
        role = Role.UNKNOWN if kind is None else role_of(name)
        can_reveal = kind not in (RawType.BOOLEAN, RawType.DATE)
        if kind is None or (role.is_revealing and can_reveal):
            omitted[name] = role
        else:
            columns[name] = _type_by_role(role) if kind is RawType.TEXT else kind
    if not columns:
        raise InvalidInput(
            "`table` must have a column that can be described; got none. Write the schema by hand."
        )
    return Suggestion(columns, omitted)


def _type_by_role(role: Role) -> RawType:
    """What a column of texts seems to hold, by its name."""
    return {Role.DATE: RawType.DATE, Role.NUMBER: RawType.NUMBER}.get(role, RawType.TEXT)


def _read_types(file: TableFile) -> dict[str, RawType | None]:
    """The columns, each with its type, as far as the file says; None for those of no kind."""
    if is_text_file(file) and file.header:
        names = read_header(file)
        if len(set(names)) < len(names) or not all(map(str.strip, names)):
            raise InvalidInput(
                f"`table` must begin with a line of different names; got {len(names)}, of which "
                "some are empty or repeated. Correct the first line."
            )
        return dict.fromkeys(names, RawType.TEXT)
    try:
        with tempfile.TemporaryDirectory(prefix="juncture-") as spill:
            relation = exact_relation(file, spill=spill)
            kinds = dict(zip(relation.columns, map(str, relation.dtypes), strict=True))
    except duckdb.Error as error:
        raise UnreadableFile(redact_error(error)) from None
    return {name: raw_type(kind) for name, kind in kinds.items()}
