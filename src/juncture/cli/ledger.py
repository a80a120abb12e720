"""`juncture ledger`: how much may be spent, and what was."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.console import format_table, say, say_json
from juncture.cli.options import (
    Delta,
    Epsilon,
    Json,
    NeighboursOption,
    Rho,
    make_budget,
    open_ledger,
    parse_neighbours,
)
from juncture.errors import InvalidInput

if TYPE_CHECKING:
    from juncture.privacy.ledger import Ledger

app = typer.Typer(
    help="Create, show and verify ledgers, which record spent privacy budget.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

LedgerFile = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger file.")]


@app.command()
def create(
    file: LedgerFile,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    neighbours: NeighboursOption = None,
) -> None:
    """Create a ledger whose budget several releases share.

    `juncture release` creates one by itself if the file does not exist; use this command to set a
    larger budget for several releases. An existing file is never replaced.

    \b
    Example:
      juncture ledger create people.ledger --epsilon 2
    """
    from juncture.privacy.accounting import Neighbours
    from juncture.privacy.ledger import Ledger

    if file.exists():
        raise InvalidInput(f"`FILE` must be a new file; got {file}, which exists.")
    protected = parse_neighbours(neighbours) or Neighbours.ADD_OR_REMOVE
    ledger = Ledger.create(file, make_budget(epsilon, delta, rho), protected)
    say(f"wrote {file}: {ledger.budget}, protects: {ledger.neighbours}")


@app.command()
def show(file: LedgerFile, as_json: Json = False) -> None:
    """Show the budget, every event, and what is left.

    \b
    Example:
      juncture ledger show people.ledger
    """
    ledger = open_ledger(file, "FILE")
    if as_json:
        say_json({**_state(ledger), "entries": [entry.to_json() for entry in ledger.events]})
        return
    events = ledger.events
    if events:
        columns = ("event", "time", "what", "mechanism", "total")
        rows = [(e.number, e.time, e.what, e.mechanism, _format_total(e.total)) for e in events]
        say(format_table(columns, rows))
        say()
    say(f"budget    {ledger.budget}")
    say(f"protects  {ledger.neighbours}")
    say(f"spent     {ledger.spent:.6g}")
    say(f"left      {ledger.remaining:.6g}")


@app.command(short_help="Check that a ledger is complete and consistent.")
def verify(file: LedgerFile, as_json: Json = False) -> None:
    """Check that a ledger is complete: all events numbered, all costs present, the total right.

    The exit code is 1 if it is not.

    \b
    Example:
      juncture ledger verify people.ledger
    """
    ledger = open_ledger(file, "FILE")
    if as_json:
        say_json({"valid": True, **_state(ledger)})
        return
    say(
        f"valid: {len(ledger.events)} events, {ledger.spent:.6g} of {ledger.budget} spent, "
        f"{ledger.remaining:.6g} left"
    )


def _format_total(spent: float) -> str:
    return f"{spent:.6g}" if math.isfinite(spent) else "unbounded"


def _state(ledger: Ledger) -> dict[str, object]:
    return {
        "budget": ledger.budget.to_json(),
        "neighbours": str(ledger.neighbours),
        "events": len(ledger.events),
        "spent": ledger.spent,
        "remaining": ledger.remaining,
    }
