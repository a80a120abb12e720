"""`juncture query`: questions to a release."""

from __future__ import annotations

from typing import Annotated

import typer

from juncture.cli.console import Format, Misused, require_file, say_rows
from juncture.cli.options import Json, ReleaseFile, names_in


def query(
    release: ReleaseFile,
    sql: Annotated[
        str | None,
        typer.Argument(metavar="[SQL]", help="A SELECT over one table of any name."),
    ] = None,
    marginal: Annotated[
        str | None,
        typer.Option("--marginal", metavar="NAMES", help="Count by these columns: a,b."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            help="Only records for which this holds, as in SQL; several must all hold.",
        ),
    ] = None,
    mean: Annotated[
        str | None,
        typer.Option("--mean", metavar="NAME", help="The mean of this column as well."),
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", "-f", metavar="FORM", help="table, csv or json.")
    ] = Format.TABLE,
    as_json: Json = False,
) -> None:
    """Ask a release: in SQL, or by columns and conditions. Costs no privacy.

    SQL may count, add up and average, with conditions on single columns joined by AND, GROUP BY,
    HAVING, ORDER BY and LIMIT. Answers are expectations, so counts need not be whole.

    \b
    Examples:
      juncture query people.jct "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex"
      juncture query people.jct --marginal sex,income --where "age < 30"
      juncture query people.jct --where "sex = 'female'" --mean age --json
    """
    from juncture.release import load

    asked = _sql(sql, marginal, where or [], mean)
    require_file(release, "RELEASE")
    answer = load(release).model.sql(asked)
    say_rows(answer.columns, answer.rows, Format.JSON if as_json else form)


def _sql(sql: str | None, marginal: str | None, where: list[str], mean: str | None) -> str:
    """The question as a SELECT."""
    built = marginal is not None or bool(where) or mean is not None
    if (sql is not None) == built:
        raise Misused(
            "`SQL`, or `--marginal`, `--where` and `--mean`, must be given, and not both. Ask "
            "something."
        )
    if sql is not None:
        return sql
    groups = [_quoted(name) for name in names_in(marginal or "")]
    means = [] if mean is None else [f"AVG({_quoted(mean)}) AS {_quoted(f'mean {mean}')}"]
    select = ", ".join([*groups, "COUNT(*) AS count", *means])
    conditions = " AND ".join(f"({condition})" for condition in where)
    text = f"SELECT {select} FROM release"
    text += f" WHERE {conditions}" if conditions else ""
    return text + (f" GROUP BY {', '.join(groups)}" if groups else "")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
