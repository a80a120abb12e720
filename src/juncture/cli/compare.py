"""`juncture compare`: a release against the private table, or against another release."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.console import format_table, require_file, say, say_json
from juncture.cli.options import Json, NoHeader, ReleaseFile, TableName, find_table
from juncture.errors import InvalidInput

if TYPE_CHECKING:
    from juncture.private.sources.files import TableFile
    from juncture.publish.comparison import Counts, Difference
    from juncture.publish.release import Release

NOT_PRIVATE = "NOT PRIVATE: read from the private table. Do not publish these figures."


def compare(
    release: ReleaseFile,
    other: Annotated[
        Path,
        typer.Argument(
            metavar="DATA|RELEASE2",
            help="The private table (a file, a folder or a database), or another release (.jct).",
        ),
    ],
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            help="The schema of the table, if the release does not contain one.",
        ),
    ] = None,
    worst: Annotated[
        int, typer.Option("--worst", metavar="N", min=0, help="How many marginals to list.")
    ] = 10,
    table: TableName = None,
    no_header: NoHeader = False,
    as_json: Json = False,
) -> None:
    """Show how far a release is from the private table, or from another release.

    The error of a marginal is half the L1 distance over the number of records: the share of
    records that would have to move to another cell. Every column, every pair of columns and
    everything that was measured is compared.

    Comparing with the private table is for people who may see it: the figures are not private and
    must not be published.

    \b
    Examples:
      juncture compare people.jct people.csv
      juncture compare people.jct yesterday.jct --worst 20
    """
    from juncture.publish.comparison import compare_counts, list_small_cliques
    from juncture.publish.release import load

    require_file(release, "RELEASE")
    private = find_table(other, table, no_header, "DATA|RELEASE2")
    mine = load(release)
    with_release = other.suffix.lower() == ".jct"
    truth = (
        _release_counts(mine, load(other)) if with_release else _table_counts(mine, private, schema)
    )
    measured = [m.clique for m in mine.measurements]
    cliques = list_small_cliques(mine.model.domain, measured)
    results = compare_counts(cliques, truth, mine.model.project_many)
    if as_json:
        _print_json(results, private=not with_release)
    else:
        _print(results, worst, private=not with_release)


def _release_counts(mine: Release, other: Release) -> Counts:
    if other.model.domain != mine.model.domain:
        raise InvalidInput(
            "`RELEASE2` must have the columns and sizes of the first release; got others. Compare "
            "releases of the same table."
        )
    return other.model.project_many


def _table_counts(mine: Release, table: TableFile, schema: Path | None) -> Counts:
    from juncture.private.sources.duck import DuckDB
    from juncture.tables.schema_toml import read_schema

    parsed = mine.schema if schema is None else read_schema(schema)
    if parsed is None:
        raise InvalidInput(
            "`--schema` must be given, because the release contains none; got nothing. It says "
            "how the table's values are encoded."
        )
    if parsed.domain != mine.model.domain:
        raise InvalidInput(
            "`--schema` must have the columns and sizes of the release; got others. Give the one "
            "that the release was made with."
        )
    return DuckDB(table, parsed).exact_counts


def _print(results: list[Difference], worst: int, *, private: bool) -> None:
    if private:
        say(f"{NOT_PRIVATE}\n")
    groups = {
        size: [d for d in results if len(d.clique) == size] for size in sorted(_sizes(results))
    }
    columns = ("marginals of", "number", "mean error", "largest error")
    rows = [
        (
            f"{n} column{'s' * (n > 1)}",
            len(group),
            _percent(_mean_error(group)),
            _percent(_max_error(group)),
        )
        for n, group in groups.items()
    ]
    say(format_table(columns, rows))
    ordered = sorted(results, key=lambda d: -d.error)[:worst]
    if ordered:
        say("\nLargest errors:\n")
        lines = [
            (", ".join(d.clique), d.cells, _percent(d.error), d.mean, d.largest) for d in ordered
        ]
        say(format_table(("marginal", "cells", "error", "mean per cell", "largest"), lines))
    if private:
        say(f"\n{NOT_PRIVATE}")


def _print_json(results: list[Difference], *, private: bool) -> None:
    say_json(
        {
            "private": private,
            "warning": NOT_PRIVATE if private else None,
            "mean_error": _mean_error(results),
            "marginals": [asdict(difference) for difference in results],
        }
    )


def _sizes(results: list[Difference]) -> set[int]:
    return {len(difference.clique) for difference in results}


def _mean_error(results: list[Difference]) -> float:
    return sum(difference.error for difference in results) / len(results)


def _max_error(results: list[Difference]) -> float:
    return max(difference.error for difference in results)


def _percent(share: float) -> str:
    return f"{100.0 * share:.2f} %"
