"""`juncture query`: questions to a release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from juncture._util.sql import quote_name
from juncture._util.text import choose_name
from juncture.cli.console import (
    Format,
    UsageError,
    make_unique,
    note,
    require_file,
    say_json,
    say_rows,
)
from juncture.cli.options import Json, ReleaseFile, parse_names

if TYPE_CHECKING:
    from juncture.model.sql.answer import SqlAnswer


def query(
    release: ReleaseFile,
    sql: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL", help="A SELECT statement. The table in FROM may have any name."
        ),
    ] = None,
    marginal: Annotated[
        str | None,
        typer.Option(
            "--marginal",
            metavar="NAMES",
            help="Count the records for every combination of these columns, such as age,sex.",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            help="Count only records that meet this condition, written as in SQL. May be repeated: "
            "all conditions must hold.",
        ),
    ] = None,
    mean: Annotated[
        str | None,
        typer.Option("--mean", metavar="NAME", help="Show the mean of this column as well."),
    ] = None,
    output_format: Annotated[
        Format,
        typer.Option(
            "--format", "-f", metavar="FORM", help="How to print the answer: table, csv or json."
        ),
    ] = Format.TABLE,
    as_json: Json = False,
) -> None:
    """Ask a release a question: in SQL, or by columns and conditions. This costs no privacy.

    SQL is one SELECT with aggregates, as in DuckDB, without joins. Put texts in single quotes, and
    column names with characters other than letters, digits and _ in double quotes. Answers are
    expected values, so counts need not be whole numbers. Notes on stderr, and in JSON, say what an
    answer rests on besides the data: columns never measured together, numbers known by bins.

    \b
    Examples:
      juncture query people.jct "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex"
      juncture query people.jct --marginal sex,income --where "age < 30"
      juncture query people.jct --where "sex = 'female'" --mean age --json
      juncture query adult.jct --marginal sex --where '"hours-per-week" >= 50'
    """
    from juncture.model.sql.answer import SqlAnswer
    from juncture.model.sql.notes import find_dependence_notes
    from juncture.publish.release import load

    chosen = Format.JSON if as_json else output_format
    statement = _build_sql(sql, marginal, where or [], mean)
    require_file(release, "RELEASE")
    loaded, names = load(release), parse_names(marginal or "")
    if names and not where and mean is None:
        # Unlike SQL, with the cells that have no records: `juncture estimate` needs all of them.
        table = loaded.project(names).to_arrow()
        rows = tuple(zip(*table.to_pydict().values(), strict=True))
        notes = tuple(find_dependence_notes(names, loaded.model.cliques))
        answer = SqlAnswer(tuple(table.column_names), rows, notes)
    else:
        answer = loaded.sql(statement)
    if chosen is Format.JSON:
        say_json(_to_json(answer))
    else:
        say_rows(answer.columns, answer.rows, chosen)
    for each in _list_notes(answer):
        note(f"note: {each}")


def _to_json(answer: SqlAnswer) -> dict[str, Any]:
    names = make_unique(answer.columns)
    ranges = [
        {n: [r.low, r.high] for n, r in zip(names, row, strict=True) if r} for row in answer.ranges
    ]
    return {
        "rows": [dict(zip(names, row, strict=True)) for row in answer.rows],
        "notes": [str(each) for each in answer.notes],
        "ranges": ranges,
    }


def _list_notes(answer: SqlAnswer) -> Iterator[str]:
    """The notes, and the ranges: of one row each, of several the first and where the others are."""
    yield from map(str, answer.notes)
    for row in answer.ranges[:1]:
        for name, each in zip(answer.columns, row, strict=True):
            if each:
                others = "" if len(answer.rows) == 1 else " in the first row (--json has all)"
                yield f"whatever the numbers inside the bins, {name} is {each}{others}."


def _build_sql(sql: str | None, marginal: str | None, where: list[str], mean: str | None) -> str:
    """The question as a SELECT."""
    built = marginal is not None or bool(where) or mean is not None
    if (sql is not None) == built:
        raise UsageError(
            "`SQL`, or some of `--marginal`, `--where` and `--mean`, must be given, and not both; "
            f"got {'nothing' if sql is None else 'both'}."
        )
    if sql is not None:
        return sql
    names = parse_names(marginal or "")
    groups = [quote_name(name) for name in names]
    means = [] if mean is None else [f"AVG({quote_name(mean)}) AS {quote_name(f'mean {mean}')}"]
    count = f"COUNT(*) AS {quote_name(choose_name('count', names))}"
    select = ", ".join([*groups, count, *means])
    conditions = " AND ".join(f"({condition})" for condition in where)
    text = f"SELECT {select} FROM release"
    text += f" WHERE {conditions}" if conditions else ""
    return text + (f" GROUP BY {', '.join(groups)}" if groups else "")
