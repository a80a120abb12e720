"""Schemas as TOML: read with an error for every mistake, written for people to edit."""

from __future__ import annotations

import datetime as dt
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from juncture.errors import InvalidInput, UnreadableFile
from juncture.tables.columns import Column, Outside, column_kinds, find_kind
from juncture.tables.columns.base import (
    TomlTable,
    call_with_entries,
    parse_missing_values,
    parse_outside,
)
from juncture.tables.foreign import refuse_foreign
from juncture.tables.known import Known
from juncture.tables.person import Person
from juncture.tables.rules import Rule
from juncture.tables.schema import Schema

FORMAT, VERSION = "juncture schema", 3
TO_BE_SET = "?"
"""Stands where a person has to write something: see `juncture schema suggest`."""
_OLDEST_VERSION = 1  # later versions only added entries

_DRAFT_NOTE = """\
# This draft was made by looking at private data. What it says (the categories, the bounds) may
# itself reveal something about people. Check every column; replace what is not public knowledge
# with what is known without the data; then set confirmed_public to true. Nothing is released
# before that.
"""


def read_schema(path: str | Path) -> Schema:
    """Read a schema from a TOML file.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from juncture.tables.columns import Boolean
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.toml")
    ...     _ = path.write_text(schema_toml(Schema({"smokes": Boolean()})))
    ...     read_schema(path)
    Schema(1 column: smokes)
    """
    source = Path(path)
    try:
        content = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError:
        raise UnreadableFile(
            f"`path` must be a schema file that can be read; got {source}."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableFile(
            f"`path` must be valid TOML; got {source}: {error}. Fix that line."
        ) from None
    except RecursionError:
        raise UnreadableFile(
            f"`path` must not be nested so deeply; got {source}. A schema has two levels."
        ) from None
    with refuse_foreign("path", source):
        return parse_schema(content)


def parse_schema(content: TomlTable) -> Schema:
    """The schema in a parsed TOML document."""
    _check_version(content)
    default = parse_missing_values(content.get("missing_values", ()))
    origin, tables = content.get("origin", {}), content.get("columns")
    person = content.get("person")
    if not isinstance(tables, dict) or not tables:
        raise InvalidInput("`schema` must have a table [columns.NAME] for every column; got none.")
    return Schema(
        {name: _read_column(name, table, default) for name, table in tables.items()},
        drafted=_read_flag(origin, "derived_from_private_data"),
        confirmed=_read_flag(origin, "confirmed_public"),
        person=None if person is None else Person.parse(person, default),
        rules=_read_each(Rule, "rule", content.get("rule", [])),
        known=_read_each(Known, "known", content.get("known", [])),
    )


_Made = TypeVar("_Made")


def _read_each(make: Callable[..., _Made], name: str, tables: object) -> tuple[_Made, ...]:
    """What the tables [[name]] describe."""
    made = list[_Made]()
    for number, entries in enumerate(tables if isinstance(tables, list) else [tables], 1):
        try:
            if not isinstance(entries, dict) or not isinstance(tables, list):
                raise InvalidInput(f"`{name}` must be tables; got {entries!r}.")
            made.append(call_with_entries(make, entries))
        except InvalidInput as error:
            raise InvalidInput(f"[[{name}]] number {number}: {error}") from None
    return tuple(made)


def _check_version(content: TomlTable) -> None:
    """Refuse other files, and schemas of versions that this program does not know."""
    version = content.get("version")
    known = type(version) is int and _OLDEST_VERSION <= version <= VERSION
    if content.get("format") == FORMAT and known:
        return
    newer = type(version) is int and version > VERSION
    raise InvalidInput(
        f'`schema` must begin with format = "{FORMAT}" and version = {VERSION}; got '
        f"{content.get('format')!r} and {version!r}."
        + (" Upgrade Juncture to read it." if newer else "")
    )


def _read_flag(table: TomlTable, name: str) -> bool:
    value = table.get(name, False) if isinstance(table, dict) else None
    if not isinstance(value, bool):
        raise InvalidInput(f"`{name}` must be true or false; got {value!r}.")
    return value


def _read_column(
    name: str, table: TomlTable, default_missing_values: tuple[str | float, ...]
) -> Column:
    try:
        if not isinstance(table, dict):
            raise InvalidInput(f"`columns` must be tables; got {table!r}. Write [columns.{name}].")
        kind, entries = table.get("kind"), {k: v for k, v in table.items() if k != "kind"}
        unset = [entry for entry, value in entries.items() if value == TO_BE_SET]
        if unset:
            raise InvalidInput(
                f"`{unset[0]}` must be set by a person, to what is known without the data; got "
                f"{TO_BE_SET!r}."
            )
        kinds = column_kinds()
        if not isinstance(kind, str) or kind not in kinds:
            raise InvalidInput(
                f"`kind` must be one of {', '.join(kinds)}; got {kind!r}. A kind of your own must "
                "be registered before a schema that uses it is read."
            )
        if "outside" in entries:
            entries["outside"] = parse_outside(entries["outside"])
        own, outside_value = entries.pop("missing_values", None), entries.pop("outside_value", None)
        column = find_kind(kind, entries).from_toml(entries)
        if outside_value is not None:
            column = replace(column, outside_value=outside_value)
        if own is not None:
            return replace(column, missing_values=own)
        # The default of the whole table does not take away what a column lists as a value.
        usual = tuple(v for v in default_missing_values if v not in column.regular)
        return replace(column, missing_values=usual) if usual else column
    except (InvalidInput, TypeError, ValueError) as error:
        raise InvalidInput(f"Column {name!r}: {error}") from None


def schema_toml(
    schema: Schema,
    remarks: Mapping[str, Sequence[str]] | None = None,
    omitted: Mapping[str, str] | None = None,
) -> str:
    """The schema as TOML.

    - `remarks`: lines of comment for columns.
    - `omitted`: columns that the schema leaves out, each with the reason; also comments.
    """
    lines = [f'format = "{FORMAT}"', f"version = {VERSION}", ""]
    if schema.drafted:
        lines += [_DRAFT_NOTE.rstrip(), "[origin]", "derived_from_private_data = true"]
        lines += [f"confirmed_public = {format_value(schema.confirmed)}", ""]
    if schema.person is not None:
        lines += ["[person]", *_format_entries(schema.person.to_toml()), ""]
    for rule in schema.rules:
        lines += ["[[rule]]", *_format_entries(rule.to_toml()), ""]
    for known in schema.known:
        lines += ["[[known]]", *_format_entries(known.to_toml()), ""]
    for name, column in schema.columns.items():
        lines.append(f"[columns.{format_value(name)}]")
        lines += [f"# {remark}" for remark in (remarks or {}).get(name, ())]
        lines += _format_entries(_entries(column))
        lines.append("")
    if omitted:
        lines.append("# Left out:")
        lines += [f"# {format_value(name)}: {reason}." for name, reason in omitted.items()]
        lines.append("")
    return "\n".join(lines)


def _format_entries(entries: TomlTable) -> list[str]:
    return [f"{key} = {format_value(value)}" for key, value in entries.items()]


def _entries(column: Column) -> TomlTable:
    entries = {"kind": column.kind, **column.to_toml()}
    entries |= {"missing": True} if column.missing else {}
    entries |= {"outside": column.outside} if column.outside is not Outside.ERROR else {}
    if column.outside_value is not None:
        entries["outside_value"] = column.outside_value
    if column.missing_values:
        entries["missing_values"] = list(column.missing_values)
    return entries


def format_value(value: object) -> str:
    """A value as TOML writes it."""
    match value:
        case dt.date():
            return value.isoformat()
        case list():
            return f"[{', '.join(map(format_value, value))}]"
        case float():
            return repr(value)
        case str() | int():  # TOML's texts, whole numbers and booleans are written as JSON's are
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case _:
            raise InvalidInput(
                "`to_toml` must give texts, numbers, booleans, dates or lists of them; got "
                f"{value!r}."
            )
