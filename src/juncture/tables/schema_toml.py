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
    as_outside,
)

FORMAT, VERSION = "juncture schema", 1
Table = dict[str, Any]

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
    return schema_of(content)


def schema_of(content: Table) -> Schema:
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
        {name: _column(name, table) for name, table in tables.items()},
        drafted=_flag(origin, "derived_from_private_data"),
        confirmed=_flag(origin, "confirmed_public"),
    )


def _flag(table: Table, name: str) -> bool:
    value = table.get(name, False) if isinstance(table, dict) else None
    if not isinstance(value, bool):
        raise InvalidInput(f"`{name}` must be true or false; got {value!r}. Write it so.")
    return value


def _column(name: str, table: Table) -> Column:
    try:
        if not isinstance(table, dict):
            raise InvalidInput(f"`columns` must be tables; got {table!r}. Write [columns.{name}].")
        kind, entries = table.get("kind"), {k: v for k, v in table.items() if k != "kind"}
        if kind not in _READERS:
            raise InvalidInput(
                f"`kind` must be one of {', '.join(_READERS)}; got {kind!r}. Choose one."
            )
        if "outside" in entries:
            entries["outside"] = as_outside(entries["outside"])
        return _READERS[kind](entries)
    except TypeError as error:
        words = str(error).split("__init__() ")[-1]
        words = words.replace("got an unexpected keyword argument", "has no use for the entry")
        words = re.sub(r"missing \d+ required .* arguments?:", "must have the entries", words)
        raise InvalidInput(f"Column {name!r}: {words}. Check the names of its entries.") from None
    except (InvalidInput, ValueError) as error:
        raise InvalidInput(f"Column {name!r}: {error}") from None


def _categorical(entries: Table) -> Column:
    values = entries.pop("values", ())
    return Categorical(values=tuple(values) if isinstance(values, list) else values, **entries)


def _number(entries: Table) -> Column:
    if "edges" in entries:
        edges = tuple(float(edge) for edge in entries.pop("edges"))
        return Number(edges=edges, **entries)
    return Number.evenly(**entries)


def _date(entries: Table) -> Column:
    for end in ("low", "high"):
        if not isinstance(entries.get(end), dt.date):
            raise InvalidInput(
                f"`{end}` must be a date such as 2024-01-31, without quotes; got "
                f"{entries.get(end)!r}. Write it so."
            )
    return Date(**{**entries, "period": Period(entries.get("period", Period.MONTH))})


_READERS: dict[str, Callable[[Table], Column]] = {
    "categorical": _categorical,
    "boolean": lambda entries: Boolean(**entries),
    "integer": lambda entries: Integer(**entries),
    "number": _number,
    "date": _date,
}


def schema_toml(schema: Schema) -> str:
    """The schema as TOML."""
    lines = [f'format = "{FORMAT}"', f"version = {VERSION}", ""]
    if schema.drafted:
        lines += [_DRAFT_NOTE.rstrip(), "[origin]", "derived_from_private_data = true"]
        lines += [f"confirmed_public = {_toml(schema.confirmed)}", ""]
    for name, column in schema.columns.items():
        lines.append(f"[columns.{_toml(name)}]")
        lines += [f"{key} = {_toml(value)}" for key, value in _entries(column).items()]
        lines.append("")
    return "\n".join(lines)


def _entries(column: Column) -> Table:
    found: Table
    match column:
        case Categorical():
            found = {"kind": "categorical", "values": list(column.values)}
        case Boolean():
            found = {"kind": "boolean"}
        case Integer():
            found = {"kind": "integer", "low": column.low, "high": column.high}
            found |= {"width": column.width} if column.width > 1 else {}
        case Number():
            found = {"kind": "number", "edges": list(column.edges)}
        case Date():
            found = {"kind": "date", "low": column.low, "high": column.high}
            found["period"] = str(column.period)
        case _:
            raise InvalidInput(
                f"`column` must be of a kind that TOML knows; got {column!r}. Use one of the five."
            )
    found |= {"missing": True} if column.missing else {}
    found |= {"outside": str(column.outside)} if column.outside is not Outside.ERROR else {}
    return found


def _toml(value: object) -> str:
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    # TOML's texts, whole numbers, booleans and lists are written as JSON's are.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
