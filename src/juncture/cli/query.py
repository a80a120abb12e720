"""`juncture query`: questions to a release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from juncture._util.sql import quote_name
from juncture._util.text import choose_name
from juncture.cli.bars import show_progress
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
    from juncture.publish.intervals import IntervalSqlAnswer
    from juncture.publish.release import Release


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
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            metavar="LEVEL",
            help="Add a plus-minus column: an interval that holds the table's own answer so often. "
            "On, at 0.95, where the file has replicas; elsewhere they are made first: 21 "
            "fits.",
        ),
    ] = None,
    no_interval: Annotated[
        bool, typer.Option("--no-interval", help="Show no intervals, even where they are known.")
    ] = False,
    population: Annotated[
        bool,
        typer.Option(
            "--population",
            help="Intervals cover what other samples of the same population would say, too.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask a release a question: in SQL, or by columns and conditions. This costs no privacy.

    SQL is one SELECT with aggregates, as in DuckDB, without joins. Put texts in single quotes, and
    column names with characters other than letters, digits and _ in double quotes. Answers are
    expected values, so counts need not be whole numbers. Notes on stderr, and in JSON, say what an
    answer rests on besides the data: columns never measured together, numbers known by bins.
    Intervals (--interval) say how far an answer may be off by the noise, and on what it rests:
    measured, implied by several measurements, or assumed.

    \b
    Examples:
      juncture query people.jct "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex"
      juncture query people.jct --marginal sex,income --where "age < 30"
      juncture query people.jct --where "sex = 'female'" --mean age --json
      juncture query adult.jct --marginal sex --where '"hours-per-week" >= 50'
      juncture query people.jct --marginal sex --interval 0.95
    """
    from juncture.model.sql.answer import SqlAnswer
    from juncture.model.sql.notes import find_dependence_notes
    from juncture.publish.intervals import IntervalSqlAnswer
    from juncture.publish.release import load

    chosen = Format.JSON if as_json else output_format
    statement = _build_sql(sql, marginal, where or [], mean)
    require_file(release, "RELEASE")
    loaded, names = load(release), parse_names(marginal or "")
    answer: SqlAnswer
    level = _choose_level(loaded, interval, off=no_interval, population=population)
    if level is not None:
        answer = _ask_with_intervals(loaded, statement, names, level, population=population)
    elif names and not where and mean is None:
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
        shown = answer.with_columns if isinstance(answer, IntervalSqlAnswer) else answer
        say_rows(shown.columns, shown.rows, chosen)
    for each in _list_notes(answer):
        note(f"note: {each}")


def _choose_level(
    loaded: Release, level: float | None, *, off: bool, population: bool
) -> float | None:
    """The level of the intervals; None for no intervals."""
    from juncture.fit.replicas import Replicas
    from juncture.fit.widths import check_level

    if off and (level is not None or population):
        raise UsageError("`--no-interval` must stand without --interval and --population.")
    kept = isinstance(loaded.replicas, Replicas)
    if off or (level is None and not kept and not population):
        return None
    return check_level(0.95 if level is None else level)


def _ask_with_intervals(
    loaded: Release, statement: str, names: tuple[str, ...], level: float, *, population: bool
) -> IntervalSqlAnswer:
    """The answer with intervals; replicas that are not kept are made now, which may take long."""
    from juncture.model.sql.notes import find_dependence_notes

    with show_progress() as watch:
        loaded.uncertainty.watch = watch
        if not names or not statement.endswith(_all_cells(names)):
            return loaded.sql(statement, interval=level, population=population)
        made = loaded.project(names, interval=level, population=population).to_sql_answer()
        return replace(made, notes=tuple(find_dependence_notes(names, loaded.model.cliques)))


def _all_cells(names: tuple[str, ...]) -> str:
    """How the question for all cells of a marginal ends."""
    return f" FROM release GROUP BY {', '.join(map(quote_name, names))}"


def _to_json(answer: SqlAnswer) -> dict[str, Any]:
    names = make_unique(answer.columns)
    ranges = [
        {n: [r.low, r.high] for n, r in zip(names, row, strict=True) if r} for row in answer.ranges
    ]
    return {
        "rows": [dict(zip(names, row, strict=True)) for row in answer.rows],
        "notes": [str(each) for each in answer.notes],
        "ranges": ranges,
        **_intervals_to_json(answer, names),
    }


def _intervals_to_json(answer: SqlAnswer, names: list[str]) -> dict[str, Any]:
    from juncture.publish.intervals import IntervalSqlAnswer

    if not isinstance(answer, IntervalSqlAnswer):
        return {}
    rows = [
        {
            name: {
                "lower": cell.lower if cell.is_known else None,
                "upper": cell.upper if cell.is_known else None,
                "basis": str(cell.basis),
            }
            for name, cell in zip(names, row, strict=True)
            if cell is not None
        }
        for row in answer.intervals
    ]
    return {"intervals": rows, "level": answer.level, "reasons": list(answer.reasons)}


def _list_notes(answer: SqlAnswer) -> Iterator[str]:
    """The notes, and the ranges: of one row each, of several the first and where the others are."""
    from juncture.publish.intervals import IntervalSqlAnswer

    yield from map(str, answer.notes)
    if isinstance(answer, IntervalSqlAnswer):
        yield from answer.reasons
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
