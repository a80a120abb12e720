"""The entry of the command line: its commands, and how each way of ending becomes an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Annotated

import typer

from juncture.cli import ledger, schema
from juncture.cli.compare import compare
from juncture.cli.console import ExitCode, Misused, error, note, say
from juncture.cli.estimate import estimate
from juncture.cli.explore import explore
from juncture.cli.plan import plan
from juncture.cli.query import query
from juncture.cli.release import release
from juncture.cli.report import report
from juncture.cli.sample import sample
from juncture.errors import BudgetExceeded, JunctureError

PROGRAM = "juncture"
WIDTH = 100

app = typer.Typer(
    name=PROGRAM,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": WIDTH, "help_option_names": ["--help", "-h"]},
)
app.add_typer(schema.app, name="schema")
app.command(short_help="Show what a release would cost and get wrong; reads no data.")(plan)
app.command(short_help="Measure a private table under a budget; write a release.")(release)
app.command(short_help="Join noisy marginals that you already have.")(estimate)
app.command(short_help="Ask a release, in SQL or by columns and conditions.")(query)
app.command(short_help="Write synthetic records.")(sample)
app.command(short_help="Write a page about a release, for people.")(report)
app.command(short_help="Look at a release in the browser.")(explore)
app.command(short_help="Compare a release with the table or another release.")(compare)
app.add_typer(ledger.app, name="ledger")


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        say(f"{PROGRAM} {version(PROGRAM)}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and end.", is_eager=True, callback=_print_version
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="On an error, print the trace. May stand anywhere.")
    ] = False,
) -> None:
    """Release a private table under a budget, and ask what was released.

    Noisy counts of a few columns at a time are joined into one model of the whole table, which
    answers new questions, consistently and without spending more privacy.

    \b
    A first release:
      juncture schema draft people.csv --out people.toml     then go through people.toml
      juncture plan --schema people.toml --epsilon 1         reads no data, spends nothing
      juncture release people.csv --schema people.toml --epsilon 1 \\
          --out people.jct --ledger people.ledger
      juncture query people.jct "SELECT sex, COUNT(*) FROM people GROUP BY sex"

    \b
    Exit codes: 0 all is well; 1 something is wrong with what was given; 2 the command was not
    written as it must be; 3 the budget does not allow it; 130 interrupted.
    """


def main() -> None:
    """Run the command line and end the process."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; gives its exit code, after printing one line where it failed."""
    debug, given = _without_debug(arguments)
    with _interrupts() as interrupted, warnings.catch_warnings():
        warnings.showwarning = lambda message, *_where, **_more: note(f"warning: {message}")
        try:
            code = app(given, prog_name=PROGRAM, standalone_mode=False)
            sys.stdout.flush()
            code = code if isinstance(code, int) else int(ExitCode.OK)
        except BaseException as problem:
            code = _ended(problem, debug=debug)
        if interrupted or code == ExitCode.INTERRUPTED:
            error("interrupted. Nothing is half written.")
            code = ExitCode.INTERRUPTED
    return int(code)


def _ended(problem: BaseException, *, debug: bool) -> int:
    """The exit code of a failure, after saying what it was."""
    if isinstance(problem, SystemExit):
        return problem.code if isinstance(problem.code, int) else ExitCode.OK
    if debug:
        import traceback

        traceback.print_exception(problem)
    if isinstance(problem, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(problem, BrokenPipeError):  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    if isinstance(problem, _USAGE):
        return _misused(problem)
    error(_words(problem))
    if isinstance(problem, Misused):
        return ExitCode.USAGE
    return ExitCode.BUDGET if isinstance(problem, BudgetExceeded) else ExitCode.ERROR


def _words(problem: BaseException) -> str:
    if isinstance(problem, JunctureError):
        return str(problem)
    if isinstance(problem, OSError):
        return f"{problem.filename or 'a file'}: {problem.strerror or problem}. Check the path."
    name = type(problem).__name__
    return f"unexpected {name}: {problem}. Run it again with --debug and report the trace."


# The parser's errors about how a command was written; the class is not among its public names.
_USAGE: type[Exception] = typer.BadParameter.__bases__[0]


def _misused(problem: BaseException) -> int:
    """One line for a command that was not written as it must be; the help for an empty one."""
    context = getattr(problem, "ctx", None)
    message = str(getattr(problem, "format_message", lambda: problem)())
    if type(problem).__name__ == "NoArgsIsHelpError":
        note(message)
        return ExitCode.USAGE
    path = PROGRAM if context is None else context.command_path
    error(f"{message.rstrip('.')}. See '{path} --help'.")
    return ExitCode.USAGE


def _without_debug(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether --debug is among the arguments, and the others. What stands after -- is data."""
    given = list(arguments)
    end = given.index("--") if "--" in given else len(given)
    kept = [a for a in given[:end] if a != "--debug"] + given[end:]
    return len(kept) < len(given), kept


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Remember Ctrl-C: an engine that it stops may report it as an error of its own."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return

    def remember(number: int, _frame: FrameType | None) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


if __name__ == "__main__":
    main()
