"""`juncture schema`: which values the columns of a table may have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.console import format_table, note, refuse_existing, require_file, say, say_json
from juncture.cli.options import DataFile, Force, Json

if TYPE_CHECKING:
    from juncture.tables.columns import Column
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
    force: Force = False,
) -> None:
    """Draft a schema from the private table, to save typing.

    The categories and bounds in a draft were read from private data and may themselves reveal
    something about people. So a draft is marked as one, and nothing is released with it until a
    person has reviewed every column and set confirmed_public = true in the file.

    \b
    Example:
      juncture schema draft people.csv --out people.toml
    """
    from juncture._util.atomic_file import atomic_write
    from juncture.private.draft import exact_draft, find_omitted_columns
    from juncture.tables.schema_toml import schema_toml

    if out is not None:
        refuse_existing(out, force=force, read=[data])
    drafted = exact_draft(data)
    if out is None:
        say(schema_toml(drafted))
    else:
        with atomic_write(out) as file:
            file.write(schema_toml(drafted).encode())
        note(f"wrote {out}: {len(drafted.columns)} columns")
    omitted = find_omitted_columns(data, drafted)
    if omitted:
        note(f"left out (free text, or no values): {', '.join(omitted)}")
    note("NOT PUBLIC: drafted from private data. Review it, then set confirmed_public = true.")


@app.command(short_help="Check a schema, and whether it is ready for a release.")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A schema (TOML).")],
    as_json: Json = False,
) -> None:
    """Check that a schema is valid, and say whether it is ready for a release.

    \b
    Example:
      juncture schema check people.toml
    """
    from juncture.tables.schema_toml import read_schema

    require_file(file, "FILE")
    schema = read_schema(file)
    columns = ("column", "kind", "values", "missing", "outside", "codes")
    rows = [_row(name, column) for name, column in schema.columns.items()]
    if as_json:
        listed = [dict(zip(columns, row, strict=True)) for row in rows]
        public = schema.is_public
        say_json({"public": public, "drafted": schema.drafted, "columns": listed})
        return
    say(format_table(columns, rows))
    say()
    say(_verdict(schema))


def _row(name: str, column: Column) -> tuple[str, str, str, str, str, int]:
    labels = [str(label) for label in column.coding.labels[: column.n_regular]]
    values = ", ".join(labels) if len(labels) <= 4 else f"{labels[0]} ... {labels[-1]}"
    shown = values if len(values) <= 40 else f"{values[:37]}..."
    missing = "a code" if column.missing else "an error"
    outside = {"code": "a code", "error": "an error", "nearest": "the nearest"}[column.outside]
    return name, column.kind, shown, missing, outside, column.coding.size


def _verdict(schema: Schema) -> str:
    from juncture.engine.plan_text import format_count

    size = f"{len(schema.columns)} columns, {format_count(schema.domain.size)} possible records"
    if not schema.drafted:
        return f"{size}. Valid. Written by a person: ready for a release."
    if schema.confirmed:
        return f"{size}. Valid. Drafted from private data, confirmed as public knowledge."
    return (
        f"{size}. Valid, but NOT PUBLIC: drafted from private data. Review every column, then set "
        "confirmed_public = true."
    )
