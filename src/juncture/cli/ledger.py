"""`juncture ledger`: how much may be spent, and what was."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.console import (
    UsageError,
    format_table,
    note,
    refuse_same,
    require_file,
    say,
    say_json,
)
from juncture.cli.key import PrivateKey, SignatureFile, SignatureOut
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
from juncture.errors import InvalidInput, UnreadableFile

if TYPE_CHECKING:
    from juncture.privacy.accounting import Cost
    from juncture.privacy.ledger import Ledger
    from juncture.privacy.ledger_state import State
    from juncture.privacy.signature import SignedPart

app = typer.Typer(
    help="Create, show, verify and sign ledgers, which record spent privacy budget.",
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
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            help="A schema (TOML). Where it has [person], the ledger protects persons with all "
            "their rows; without it, records.",
        ),
    ] = None,
) -> None:
    """Create a ledger whose budget several releases share.

    `juncture release` creates one by itself if the file does not exist; use this command to set a
    larger budget for several releases. An existing file is never replaced.

    \b
    Examples:
      juncture ledger create people.ledger --epsilon 2
      juncture ledger create visits.ledger --epsilon 2 --schema visits.toml
    """
    from juncture.privacy.accounting import Neighbours
    from juncture.privacy.ledger import Ledger
    from juncture.tables.schema_toml import read_schema

    if file.exists():
        raise InvalidInput(f"`FILE` must be a new file; got {file}, which exists.")
    if schema is not None:
        require_file(schema, "--schema")
    person = None if schema is None else read_schema(schema).person
    protected = (parse_neighbours(neighbours) or Neighbours.ADD_OR_REMOVE).of(person)
    ledger = Ledger.create(file, make_budget(epsilon, delta, rho), protected)
    say(f"wrote {file}: {ledger.budget}, protects: {ledger.neighbours}")


@app.command()
def show(file: LedgerFile, as_json: Json = False) -> None:
    """Show the budget, every event, what unfinished releases hold, and what is left.

    \b
    Example:
      juncture ledger show people.ledger
    """
    ledger = open_ledger(file, "FILE")
    state = ledger.read()
    if as_json:
        say_json({**_summarize(ledger, state), "entries": [e.to_json() for e in state.entries]})
        return
    if state.entries:
        columns = ("event", "time", "what", "mechanism", "total")
        rows = [
            (e.number, e.time, e.what, e.mechanism, _format_total(e.total)) for e in state.entries
        ]
        say(format_table(columns, rows))
        say()
    for run in state.reserved():
        say(f"held      {_format_held(ledger, run.cost)} by an unfinished release: {run.what}, "
            f"begun {run.time} by process {run.process}")  # fmt: skip
    for text in state.repairs:
        say(f"repaired  an incomplete line was removed: {text[:60]!r}")
    say(f"budget    {ledger.budget}")
    say(f"protects  {ledger.neighbours}")
    say(f"spent     {ledger.spent:.6g}")
    say(f"left      {ledger.remaining:.6g}")
    if state.head:
        say(f"hash      {state.head}")


@app.command(short_help="Check that a ledger is complete, and the one that paid for a release.")
def verify(
    file: LedgerFile,
    release: Annotated[
        list[Path] | None,
        typer.Option(
            "--release",
            metavar="FILE",
            help="A release that was paid from it. Its hash finds a ledger that was cut off, put "
            "back from an old copy, or copied and continued twice. May be given several times.",
        ),
    ] = None,
    line: Annotated[
        str | None,
        typer.Option(
            "--hash",
            metavar="HASH",
            help="A hash that `verify` or `show` printed earlier: the ledger must still have it.",
        ),
    ] = None,
    public_key: Annotated[
        Path | None,
        typer.Option(
            "--public-key",
            metavar="FILE",
            help="The key that must have signed the ledger (juncture ledger sign). With --release, "
            "what paid for it must be signed.",
        ),
    ] = None,
    signature: SignatureFile = None,
    as_json: Json = False,
) -> None:
    """Check that every line of a ledger is what was written, by its hashes, numbers and totals.

    A ledger whose last lines are gone looks like an older copy of itself. So give the newest
    release that was paid from it, or note the hash that this command prints and give it later.
    The exit code is 1 if anything is wrong, also if the last line is incomplete.

    \b
    Example:
      juncture ledger verify people.ledger --release people.jct
    """
    with _ignore_torn_lines():
        ledger = open_ledger(file, "FILE")
        state = ledger.read()
    _refuse_torn(state)
    if line is not None and line not in {known.hash for known in state.chain.lines}:
        raise UnreadableFile(
            f"`FILE` must have a line with the hash {line}; got {file}, which has none. It was cut "
            "off or put back from an old copy, or it is another ledger."
        )
    signed = _find_signed(state, public_key, signature)
    found = {str(path): _find_payment(state, path, signed) for path in release or ()}
    if as_json:
        summary = _summarize(ledger, state)
        by = None if signed is None else {"key": signed.key, "events": signed.n_events}
        say_json({"valid": True, **summary, "releases": found, "signed": by})
        return
    say(
        f"valid: {len(state.entries)} events, {ledger.spent:.6g} of {ledger.budget} spent, "
        f"{ledger.remaining:.6g} left"
    )
    if signed is not None:
        say(f"signed: {signed.n_events} of {len(state.entries)} events, by the key {signed.key}")
    for path, evidence in found.items():
        say(f"paid for {path}: {evidence}")
    if state.is_old:
        note("note: a ledger of version 1 has no hashes; it gets them with the next event.")
    else:
        say(f"hash: {state.head}")


@app.command(short_help="Sign what a ledger says now.")
def sign(file: LedgerFile, key: PrivateKey, out: SignatureOut = None) -> None:
    """Sign every line that a ledger has now, in a file of its own; the ledger stays as it is.

    Lines that come later are not signed: sign again after each release. An older signature is
    replaced, but not where the ledger has lost something that it signs. Needs juncture[sign].

    \b
    Example:
      juncture ledger sign people.ledger --key steward.key
      juncture ledger verify people.ledger --public-key steward.key.pub
    """
    from juncture.privacy.signature import sign_ledger

    require_file(key, "--key")
    if out is not None:
        refuse_same("--out", out, [file, key])
    with _ignore_torn_lines():
        state = open_ledger(file, "FILE").read()
    _refuse_torn(state)
    made = sign_ledger(state, key, out)
    say(f"wrote {made.path}: {len(state.entries)} events, signed by the key {made.key}")


@app.command("give-back", short_help="Give back what an interrupted release holds.")
def give_back(
    file: LedgerFile,
    force: Annotated[
        bool, typer.Option("--force", help="Also from releases whose process still works.")
    ] = False,
) -> None:
    """Give back what interrupted releases hold of the budget, beyond what they have paid.

    A release reserves its whole price before it begins. What it has paid for stays paid; only the
    rest goes back. The release can still be resumed, if the ledger can pay for the rest then.

    \b
    Example:
      juncture ledger give-back people.ledger
    """
    ledger = open_ledger(file, "FILE")
    held = ledger.reserved
    if not held:
        say(f"{file}: no unfinished release holds anything")
    for run in held:
        if _is_running(run.process) and not force:
            note(f"note: process {run.process} still works on {run.what}. End it, or add --force.")
            continue
        ledger.give_back(run.tag)
        say(f"gave back {_format_held(ledger, run.cost)}, held by {run.what} since {run.time}")


def _is_running(process: str) -> bool:
    """Whether a process of this machine is still there; others are taken for gone."""
    import os
    import platform

    number, _, machine = process.partition(" on ")
    if machine != platform.node() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def _ignore_torn_lines() -> Iterator[None]:
    """An incomplete last line is an error here, and said once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The last line of")
        yield


def _refuse_torn(state: State) -> None:
    if state.chain.tail:
        raise UnreadableFile(
            f"`FILE` must be a complete ledger; got {state.path}, whose last line is incomplete. "
            "Either a process died while it wrote the line, and no noise was drawn for it; or the "
            "file was cut off. Compare it with the newest release paid from it (--release). The "
            "next payment replaces the line by a note of it."
        )


def _find_signed(
    state: State, public_key: Path | None, signature: Path | None
) -> SignedPart | None:
    """How much of a ledger is signed, if that is asked for."""
    from juncture.privacy.signature import check_ledger

    if public_key is None:
        if signature is not None:
            raise UsageError("`--signature` must come with `--public-key`, which it is held to.")
        return None
    require_file(public_key, "--public-key")
    return check_ledger(state, public_key, signature)


def _find_payment(state: State, release: Path, signed: SignedPart | None) -> str:
    from juncture.privacy.ledger_check import find_payment
    from juncture.publish.release import load

    require_file(release, "--release")
    guarantee = load(release).guarantee
    if guarantee is None:
        raise UnreadableFile(
            f"`--release` must state what was paid; got {release}, which does not."
        )
    evidence = find_payment(state, guarantee, release)
    last = guarantee.events[-1].number
    if signed is not None and last > signed.n_events:
        raise UnreadableFile(
            f"`--release` must be paid for by what is signed; got {release}, paid for up to event "
            f"{last}, and only {signed.n_events} events of {state.path} are signed. Ask for a "
            "newer signature (juncture ledger sign)."
        )
    return str(evidence)


def _format_held(ledger: Ledger, cost: Cost) -> str:
    amount = cost.epsilon if ledger.budget.price.unit == "epsilon" else cost.rho
    return f"{ledger.budget.price.unit} {amount:.4g}"


def _format_total(spent: float) -> str:
    return f"{spent:.6g}" if math.isfinite(spent) else "unbounded"


def _summarize(ledger: Ledger, state: State) -> dict[str, object]:
    return {
        "budget": ledger.budget.to_json(),
        "neighbours": str(ledger.neighbours),
        "events": len(state.entries),
        "spent": ledger.spent,
        "reserved": [
            {"run": run.tag, "what": run.what, "time": run.time, "process": run.process,
             "epsilon": run.cost.epsilon, "rho": run.cost.rho}
            for run in state.reserved()
        ],
        "remaining": ledger.remaining,
        "hash": state.head or None,
    }  # fmt: skip
