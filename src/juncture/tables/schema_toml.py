"""Schemas as TOML: read with every slip named, written so that a person can go on by hand."""

from __future__ import annotations

import datetime as dt
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from juncture.errors import InvalidInput, UnreadableFile
from juncture.tables.schema import (
    Boolean,
    Categorical,
    Column,
    Date,
    Integer,
    Number,
    Outside,
    Period,
    Schema,
    parse_outside,
)

FORMAT, VERSION = "juncture schema", 1
TomlTable = dict[str, Any]

_DRAFT_NOTE = """\
# This draft was made by looking at private data. What stands in it (the categories, the bounds)
# may itself give people away. Go through every column; replace what is not public knowledge by what
# is known without the data; then set confirmed_public to true. Nothing is released before that.
"""


def read_schema(path: str | Path) -> Schema:
    """The schema in a file."""
    source = Path(path)
    try:
        content = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError:
        raise UnreadableFile(
            f"`path` must be a schema file that can be read; got {source}. Check the name."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableFile(
            f"`path` must be proper TOML; got {source}: {error}. Mend that place."
        ) from None
    return parse_schema(content)


def parse_schema(content: TomlTable) -> Schema:
    """The schema in a TOML document."""
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        raise InvalidInput(
            f'`schema` must begin with format = "{FORMAT}" and version = {VERSION}; got '
            f"{content.get('format')!r} and {content.get('version')!r}. Add the two lines."
        )
    origin, tables = content.get("origin", {}), content.get("columns")
    if not isinstance(tables, dict) or not tables:
        raise InvalidInput(
            "`schema` must have a table [columns.NAME] for every column; got none. Add them."
        )
    return Schema(
        {name: _read_column(name, table) for name, table in tables.items()},
        drafted=_read_flag(origin, "derived_from_private_data"),
        confirmed=_read_flag(origin, "confirmed_public"),
    )


def _read_flag(table: TomlTable, name: str) -> bool:
    value = table.get(name, False) if isinstance(table, dict) else None
    if not isinstance(value, bool):
        raise InvalidInput(f"`{name}` must be true or false; got {value!r}. Write it so.")
    return value


def _read_column(name: str, table: TomlTable) -> Column:
    try:
        if not isinstance(table, dict):
            raise InvalidInput(f"`columns` must be tables; got {table!r}. Write [columns.{name}].")
        kind, entries = table.get("kind"), {k: v for k, v in table.items() if k != "kind"}
        if kind not in _READERS:
            raise InvalidInput(
                f"`kind` must be one of {', '.join(_READERS)}; got {kind!r}. Choose one."
            )
        if "outside" in entries:
            entries["outside"] = parse_outside(entries["outside"])
        return _READERS[kind](entries)
    except TypeError as error:
        message = str(error).split("__init__() ")[-1]
        message = message.replace("got an unexpected keyword argument", "has no use for the entry")
        message = re.sub(r"missing \d+ required .* arguments?:", "must have the entries", message)
        raise InvalidInput(f"Column {name!r}: {message}. Check the names of its entries.") from None
    except (InvalidInput, ValueError) as error:
        raise InvalidInput(f"Column {name!r}: {error}") from None


def _read_categorical(entries: TomlTable) -> Column:
    values = entries.pop("values", ())
    return Categorical(values=tuple(values) if isinstance(values, list) else values, **entries)


def _read_number(entries: TomlTable) -> Column:
    if "edges" in entries:
        edges = tuple(float(edge) for edge in entries.pop("edges"))
        return Number(edges=edges, **entries)
    return Number.evenly(**entries)


def _read_date(entries: TomlTable) -> Column:
    for end in ("low", "high"):
        if not isinstance(entries.get(end), dt.date):
            raise InvalidInput(
                f"`{end}` must be a date such as 2024-01-31, without quotes; got "
                f"{entries.get(end)!r}. Write it so."
            )
    return Date(**{**entries, "period": Period(entries.get("period", Period.MONTH))})


_READERS: dict[str, Callable[[TomlTable], Column]] = {
    "categorical": _read_categorical,
    "boolean": lambda entries: Boolean(**entries),
    "integer": lambda entries: Integer(**entries),
    "number": _read_number,
    "date": _read_date,
}


def schema_toml(schema: Schema) -> str:
    """The schema as TOML."""
    lines = [f'format = "{FORMAT}"', f"version = {VERSION}", ""]
    if schema.drafted:
        lines += [_DRAFT_NOTE.rstrip(), "[origin]", "derived_from_private_data = true"]
        lines += [f"confirmed_public = {_format_value(schema.confirmed)}", ""]
    for name, column in schema.columns.items():
        lines.append(f"[columns.{_format_value(name)}]")
        lines += [f"{key} = {_format_value(value)}" for key, value in _entries(column).items()]
        lines.append("")
    return "\n".join(lines)


def _entries(column: Column) -> TomlTable:
    entries: TomlTable
    match column:
        case Categorical():
            entries = {"kind": "categorical", "values": list(column.values)}
        case Boolean():
            entries = {"kind": "boolean"}
        case Integer():
            entries = {"kind": "integer", "low": column.low, "high": column.high}
            entries |= {"width": column.width} if column.width > 1 else {}
        case Number():
            entries = {"kind": "number", "edges": list(column.edges)}
        case Date():
            entries = {"kind": "date", "low": column.low, "high": column.high}
            entries["period"] = str(column.period)
        case _:
            raise InvalidInput(
                f"`column` must be of a kind that TOML knows; got {column!r}. Use one of the five."
            )
    entries |= {"missing": True} if column.missing else {}
    entries |= {"outside": str(column.outside)} if column.outside is not Outside.ERROR else {}
    return entries


def _format_value(value: object) -> str:
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    # TOML's texts, whole numbers, booleans and lists are written as JSON's are.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
