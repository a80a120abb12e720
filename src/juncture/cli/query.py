"""`juncture query`: questions to a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.console import Format, UsageError, require_file, say_rows
from juncture.cli.options import Json, ReleaseFile, parse_names

if TYPE_CHECKING:
    from juncture.model.model import Model
    from juncture.tables.domain import Clique


def query(
    release: ReleaseFile,
    sql: Annotated[
        str | None,
        typer.Argument(metavar="SQL", help="A SELECT over one table of any name."),
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
    output_format: Annotated[
        Format, typer.Option("--format", "-f", metavar="FORM", help="table, csv or json.")
    ] = Format.TABLE,
    as_json: Json = False,
) -> None:
    """Ask a release: in SQL, or by columns and conditions. Costs no privacy.

    SQL may count, add up and average, with conditions on single columns joined by AND, GROUP BY,
    HAVING, ORDER BY and LIMIT. Texts stand in single quotes; a column name with other signs than
    letters, digits and _ stands in double quotes. Answers are expectations, so counts need not be
    whole.

    \b
    Examples:
      juncture query people.jct "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex"
      juncture query people.jct --marginal sex,income --where "age < 30"
      juncture query people.jct --where "sex = 'female'" --mean age --json
      juncture query adult.jct --marginal sex --where '"hours-per-week" >= 50'
    """
    from juncture.publish.release import load

    chosen = Format.JSON if as_json else output_format
    statement = _build_sql(sql, marginal, where or [], mean)
    require_file(release, "RELEASE")
    model = load(release).model
    names = parse_names(marginal or "")
    if names and not where and mean is None:  # perhaps known as it stands: no tree to walk
        say_rows((*names, "count"), _list_cells(model, names), chosen)
        return
    answer = model.sql(statement)
    say_rows(answer.columns, answer.rows, chosen)


def _list_cells(model: Model, names: Clique) -> list[tuple[object, ...]]:
    """Every cell of a marginal in words, with its count."""
    from itertools import product

    from juncture.tables.codebook import Codebook

    counts = model.project(names)
    book = model.codebook or Codebook.plain(model.domain)
    cells = product(*(book[name].labels for name in names))
    return [(*cell, n) for cell, n in zip(cells, counts.values.ravel().tolist(), strict=True)]


def _build_sql(sql: str | None, marginal: str | None, where: list[str], mean: str | None) -> str:
    """The question as a SELECT."""
    built = marginal is not None or bool(where) or mean is not None
    if (sql is not None) == built:
        raise UsageError(
            "`SQL`, or `--marginal`, `--where` and `--mean`, must be given, and not both. Ask "
            "something."
        )
    if sql is not None:
        return sql
    groups = [_quote(name) for name in parse_names(marginal or "")]
    means = [] if mean is None else [f"AVG({_quote(mean)}) AS {_quote(f'mean {mean}')}"]
    select = ", ".join([*groups, "COUNT(*) AS count", *means])
    conditions = " AND ".join(f"({condition})" for condition in where)
    text = f"SELECT {select} FROM release"
    text += f" WHERE {conditions}" if conditions else ""
    return text + (f" GROUP BY {', '.join(groups)}" if groups else "")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
