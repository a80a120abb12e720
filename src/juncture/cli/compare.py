"""`juncture compare`: a release against the private table, or against another release."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from juncture.cli.console import (
    UsageError,
    format_table,
    note,
    refuse_existing,
    require_file,
    say,
    say_json,
)
from juncture.cli.options import (
    Force,
    Json,
    NoHeader,
    ReleaseFile,
    TableName,
    find_table,
)
from juncture.errors import InvalidInput

if TYPE_CHECKING:
    from juncture.privacy.budget import Budget
    from juncture.private.sources.files import TableFile
    from juncture.publish.comparison import Counts, Difference
    from juncture.publish.release import Release
    from juncture.tables.schema import Schema

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
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write a web page (.html): columns, pairs, correlations, and a classifier trained "
            "on synthetic records and tested on real ones.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="NAME",
            help="The column that the classifier of the page predicts. By default, one of few "
            "values that depends on the others.",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="EPSILON",
            help="Make the page from noisy counts, for a budget of its own: it may be published. "
            "Needs --out and --ledger.",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta",
            metavar="NUMBER",
            help="With --budget: how much a probability may change beyond the factor e^EPSILON, "
            "such as 1e-9. Gives Gaussian noise, which is smaller here.",
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger", metavar="FILE", help="The file that records what --budget spends."
        ),
    ] = None,
    table: TableName = None,
    no_header: NoHeader = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show how far a release is from the private table, or from another release.

    The error of a marginal is half the L1 distance over the number of records: the share of
    records that would have to move to another cell. Every column, every pair of columns and
    everything that was measured is compared. With --out, a web page shows it.

    Comparing with the private table is for people who may see it: the figures are not private and
    must not be published. With --budget they have noise, are paid for, and may be.

    \b
    Examples:
      juncture compare people.jct people.csv
      juncture compare people.jct people.csv --out compared.html --target income
      juncture compare people.jct people.csv --out public.html --budget 0.5 --ledger people.ledger
      juncture compare people.jct yesterday.jct --worst 20
    """
    from juncture.publish.comparison import compare_counts, list_small_cliques
    from juncture.publish.release import load

    require_file(release, "RELEASE")
    private = find_table(other, table, no_header, "DATA|RELEASE2")
    _refuse_incomplete(out, budget, delta, ledger, target, other)
    if out is not None:
        refuse_existing(out, force=force, read=[release, private.path])
    mine = load(release)
    if out is not None:
        spending = _Spending.parse(budget, delta, ledger)
        _write_page(mine, private, schema, out, _name_of(release), target, spending)
        return
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

    return DuckDB(table, _read_schema(mine, schema)).exact_counts


def _read_schema(mine: Release, schema: Path | None) -> Schema:
    from juncture.tables.schema_toml import read_schema
    from juncture.workflow.compare import find_schema

    return find_schema(mine, None if schema is None else read_schema(schema))


class _Spending(NamedTuple):
    """A budget of a comparison's own, and where it is recorded."""

    budget: Budget
    ledger: Path

    @classmethod
    def parse(
        cls, epsilon: float | None, delta: float | None, ledger: Path | None
    ) -> _Spending | None:
        """What the options say, if they say anything."""
        from juncture.privacy.budget import Budget

        if epsilon is None or ledger is None:
            return None
        return cls(Budget(epsilon=epsilon, delta=delta), ledger)


def _refuse_incomplete(
    out: Path | None,
    budget: float | None,
    delta: float | None,
    ledger: Path | None,
    target: str | None,
    other: Path,
) -> None:
    """Refuse options that go only with others."""
    if budget is not None and (out is None or ledger is None):
        raise UsageError("--budget needs --out, the page, and --ledger, where it is recorded.")
    if budget is None and (delta is not None or ledger is not None):
        raise UsageError("--delta and --ledger need --budget, what the comparison may spend.")
    if out is None and target is not None:
        raise UsageError("--target needs --out: the classifier is on the page.")
    if budget is not None and target is not None:
        raise UsageError("--target must be left out with --budget: no classifier is trained.")
    if out is not None and other.suffix.lower() == ".jct":
        raise UsageError("--out needs the private table: it shows no page for two releases.")


def _name_of(release: Path) -> str:
    """The heading of the page."""
    return f"{release.stem.capitalize()}: what the release kept"


def _write_page(
    mine: Release,
    table: TableFile,
    schema: Path | None,
    out: Path,
    title: str,
    target: str | None,
    spending: _Spending | None,
) -> None:
    from juncture.publish.compare_page.document import write_comparison
    from juncture.workflow.compare import compare_under_budget, compare_with_table

    known = _read_schema(mine, schema)
    if spending is None:
        made = compare_with_table(mine, table, known, target=target)
        note(NOT_PRIVATE)
    else:
        made = compare_under_budget(mine, table, known, spending.budget, ledger=spending.ledger)
    say(f"wrote {write_comparison(made, out, title=title)}")
    if made.guarantee is not None:
        say(f"  spent     {made.guarantee}")


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
