"""`juncture schema`: which values the columns of a table may have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.console import (
    ExitCode,
    format_table,
    note,
    refuse_existing,
    require_file,
    say,
    say_json,
)
from juncture.cli.options import (
    DataFile,
    Force,
    Json,
    NoHeader,
    TableName,
    find_table,
    note_doubtful_names,
)

if TYPE_CHECKING:
    from juncture.private.check import TableCheck
    from juncture.private.sources.files import TableFile
    from juncture.tables.columns import Column, Open
    from juncture.tables.schema import Schema

app = typer.Typer(
    help="Draft and check schemas, which say which values the columns of a table may have.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@app.command()
def draft(
    data: DataFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The file to write. By default it is printed."
        ),
    ] = None,
    table: TableName = None,
    no_header: NoHeader = False,
    force: Force = False,
) -> None:
    """Draft a schema from the private table, to save typing.

    The categories and bounds in a draft were read from private data and may themselves reveal
    something about people. So a draft is marked as one, and nothing is released with it until a
    person has reviewed every column and set confirmed_public = true in the file.

    Bounds are rounded to numbers that could be public, texts such as NA and ? are taken for missing
    values, and columns that identify people are left out; comments in the file say so.

    \b
    Examples:
      juncture schema draft people.csv --out people.toml
      juncture schema draft clinic.sqlite --table patients --out patients.toml
    """
    from juncture.private.draft import exact_explained_draft

    private = find_table(data, table, no_header)
    if out is not None:
        refuse_existing(out, force=force, read=[private.path])
    drafted = exact_explained_draft(private)
    _write_schema(out, drafted.to_toml(), len(drafted.schema.columns), drafted.omitted)
    n_names = len(drafted.schema.columns) + len(drafted.omitted)
    note_doubtful_names(drafted.n_doubtful_names, n_names)
    note("NOT PUBLIC: drafted from private data. Review it, then set confirmed_public = true.")


@app.command()
def suggest(
    data: DataFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The file to write. By default it is printed."
        ),
    ] = None,
    table: TableName = None,
    no_header: NoHeader = False,
    force: Force = False,
) -> None:
    """Suggest a schema from the names and types of columns alone, without looking at values.

    Numbers and dates get private bins, between bounds that a person has to set where the file says
    "?"; texts get private values. Columns that seem to identify people, and free text, are left
    out. Once the bounds are set, nothing in the file comes from the private values: it needs no
    confirmation.

    \b
    Examples:
      juncture schema suggest people.csv --out people.toml
      juncture release people.csv --schema people.toml --epsilon 1 --delta 1e-6 \\
          --out people.jct --ledger people.ledger
    """
    from juncture.private.header import count_doubtful_names
    from juncture.private.suggestion import suggest_schema

    private = find_table(data, table, no_header)
    if out is not None:
        refuse_existing(out, force=force, read=[private.path])
    suggested = suggest_schema(private)
    _write_schema(out, suggested.to_toml(), len(suggested.columns), suggested.omitted)
    names = [*suggested.columns, *suggested.omitted]
    note_doubtful_names(count_doubtful_names(names), len(names))
    if suggested.n_bounds:
        note(f"Set the {suggested.n_bounds} bounds that the file has as ?, then check it.")


@app.command(short_help="Check a schema, and whether it is ready for a release.")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A schema (TOML).")],
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="A private table to hold the schema against."),
    ] = None,
    table: TableName = None,
    no_header: NoHeader = False,
    as_json: Json = False,
) -> None:
    """Check that a schema is valid, and say whether it is ready for a release.

    With a table, say instead how many of its values do not fit the schema. These counts are exact:
    they are for the people who may see the table. The exit code is 1 if a release of the table
    would be refused.

    \b
    Examples:
      juncture schema check people.toml
      juncture schema check people.toml people.csv
    """
    from juncture.fit.public_facts import PublicFacts
    from juncture.private.header import count_doubtful_names
    from juncture.tables.schema_toml import read_schema

    require_file(file, "FILE")
    schema = read_schema(file)
    PublicFacts.of_schema(schema)  # refuses rules and known totals that contradict each other
    note_doubtful_names(count_doubtful_names(list(schema.columns)), len(schema.columns))
    if data is not None:
        _check_table(find_table(data, table, no_header), schema, as_json=as_json)
        return
    columns = ("column", "kind", "values", "missing", "outside", "codes")
    rows = [_row(name, column) for name, column in schema.columns.items()]
    if as_json:
        listed = [dict(zip(columns, row, strict=True)) for row in rows]
        public = schema.is_public
        rules = [{"never": z.rule.never, "excluded": int(z.excluded.sum())} for z in schema.zeros]
        say_json({"public": public, "drafted": schema.drafted, "columns": listed, "rules": rules})
        return
    say(format_table(columns, rows))
    say()
    for line in _describe_facts(schema):
        say(line)
    say(_verdict(schema))


def _describe_facts(schema: Schema) -> list[str]:
    """What the schema says beside its columns."""
    lines = []
    if schema.person is not None:
        limit = f"at most {schema.person.max_rows} rows of each {schema.person.column} count"
        lines.append(f"Protected: {schema.person}; {limit}.")
    for each in schema.zeros:
        size, n_excluded = each.excluded.size, int(each.excluded.sum())
        few = "" if n_excluded else ": it changes nothing, as no cell breaks it everywhere"
        cells = f"{n_excluded:,} of {size:,} cells of {', '.join(each.clique)}"
        lines.append(f"Never: {each.rule.never}. Excludes {cells}{few}.")
    lines += [f"Known: {k.total:,g} records by {', '.join(k.columns)}." for k in schema.known]
    return lines


def _check_table(table: TableFile, schema: Schema, *, as_json: bool) -> None:
    from juncture.private.check import exact_check

    result = exact_check(table, schema)
    columns = ("column", "not readable", "outside", "missing", "release")
    refused = set(result.refused)
    rows = [
        (name, *each, "is refused" if name in refused else "is possible")
        for name, each in result.mismatches.items()
    ]
    if as_json:
        listed = [dict(zip(columns, row, strict=True)) for row in rows]
        say_json({
            "records": result.n_records, "absent": result.absent, "extra": result.extra,
            "refused": result.refused, "columns": listed,
            "uncounted": result.uncounted, "refused_rows": result.refused_rows or None,
        })  # fmt: skip
    else:
        say(format_table(columns, rows))
        say()
        say(_table_verdict(result))
    note("NOT PUBLIC: counted in the private table. Do not publish these figures.")
    if refused or result.refused_rows:
        raise typer.Exit(ExitCode.ERROR)


def _table_verdict(result: TableCheck) -> str:
    lines = [f"{result.n_records:,} records."]
    if result.absent:
        lines.append(f"The table has no column {', '.join(result.absent)}.")
    if result.extra:
        lines.append(f"Not in the schema, so not read: {', '.join(result.extra)}.")
    lines += [f"{n:,} rows would not count: {why}." for why, n in result.uncounted.items()]
    if result.refused:
        lines.append(f"A release would be refused because of {', '.join(result.refused)}.")
    if result.refused_rows:
        lines.append(f"A release would be refused: {result.refused_rows}")
    if not (result.refused or result.refused_rows):
        lines.append("The table agrees with the schema.")
    return "\n".join(lines)


def _row(name: str, column: Column) -> tuple[str, str, str, str, str, int | str]:
    from juncture.tables.columns import Open

    if isinstance(column, Open):
        return _open_row(name, column)
    labels = [str(label) for label in column.coding.labels[: column.n_regular]]
    values = ", ".join(labels) if len(labels) <= 4 else f"{labels[0]} ... {labels[-1]}"
    shown = values if len(values) <= 40 else f"{values[:37]}..."
    return name, column.kind, shown, *_special_words(column), column.coding.size


def _open_row(name: str, column: Open) -> tuple[str, str, str, str, str, str]:
    """A column whose bins or values are still to be found: how many codes there will be at most."""
    shown = "found privately"
    if column.n_regular:
        shown += f", {column.coding.labels[0]} ... {column.coding.labels[column.n_regular - 1]}"
    return name, column.kind, shown, *_special_words(column), f"<= {column.widest.coding.size}"


def _special_words(column: Column) -> tuple[str, str]:
    missing = "a code" if column.missing else "an error"
    outside = {"code": "a code", "error": "an error", "nearest": "the nearest"}[column.outside]
    return missing, outside


def _verdict(schema: Schema) -> str:
    from juncture.engine.plan_text import format_count

    possible = format_count(schema.widest.domain.size)
    size = f"{len(schema.columns)} columns, {possible} possible records"
    if schema.open_columns:
        size += f" at most; {len(schema.open_columns)} with private bins or values"
    if not schema.drafted:
        return f"{size}. Valid. Written by a person: ready for a release."
    if schema.confirmed:
        return f"{size}. Valid. Drafted from private data, confirmed as public knowledge."
    return (
        f"{size}. Valid, but NOT PUBLIC: drafted from private data. Review every column, then set "
        "confirmed_public = true."
    )


def _write_schema(
    out: Path | None, text: str, n_columns: int, omitted: Mapping[str, object]
) -> None:
    """Write a schema to a file, or print it; say which columns were left out, and why."""
    from juncture._util.atomic_file import atomic_write

    if out is None:
        say(text)
    else:
        with atomic_write(out) as file:
            file.write(text.encode())
        note(f"wrote {out}: {n_columns} columns")
    if omitted:
        note("left out:")
        for name, reason in omitted.items():
            note(f"  {name}: {reason}")
