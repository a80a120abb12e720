"""The `juncture` program with all its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from juncture.cli import key, ledger, schema
from juncture.cli.compare import compare
from juncture.cli.console import say
from juncture.cli.demo import demo
from juncture.cli.estimate import estimate
from juncture.cli.explore import explore
from juncture.cli.plan import plan
from juncture.cli.query import query
from juncture.cli.release import release
from juncture.cli.report import report
from juncture.cli.sample import sample

PROGRAM = "juncture"
WIDTH = 100

app = typer.Typer(
    name=PROGRAM,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": WIDTH, "help_option_names": ["--help", "-h"]},
)
app.command(short_help="Take a tour with a table that ships with the package.")(demo)
app.add_typer(schema.app, name="schema")
app.command(short_help="Predict the cost and the errors of a release, without any data.")(plan)
app.command(short_help="Measure a private table under a budget and write a release.")(release)
app.command(short_help="Fit a model to noisy marginals that you already have.")(estimate)
app.command(short_help="Ask a release questions, in SQL or by columns and conditions.")(query)
app.command(short_help="Write synthetic records.")(sample)
app.command(short_help="Write a report about a release as a web page.")(report)
app.command(short_help="Explore a release in the browser.")(explore)
app.command(short_help="Compare a release with the table or with another release.")(compare)
app.add_typer(ledger.app, name="ledger")
app.add_typer(key.app, name="key")


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        say(f"{PROGRAM} {version(PROGRAM)}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Print the traceback of an error. Works with every command."),
    ] = False,
) -> None:
    """Publish a private table under a privacy budget, and ask questions about what was published.

    Noisy counts of a few columns at a time are joined into one model of the whole table. The model
    answers new questions consistently, and asking it costs no more privacy.

    \b
    A tour, in under a minute:
      juncture demo

    \b
    A first release:
      juncture schema draft people.csv --out people.toml     then review people.toml
      juncture plan --schema people.toml --epsilon 1         reads no data, spends nothing
      juncture release people.csv --schema people.toml --epsilon 1 \\
          --out people.jct --ledger people.ledger
      juncture query people.jct "SELECT sex, COUNT(*) FROM people GROUP BY sex"

    \b
    Exit codes: 0 success; 1 a file or value is wrong; 2 the command is written wrongly;
    3 the budget does not allow it; 130 interrupted.
    """


USAGE: type[Exception] = typer.BadParameter.__bases__[0]
"""The parser's errors about how a command was written; the class is not among its public names."""
