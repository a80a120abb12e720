"""A budget and everything that was spent of it, in a file that people can read.

The file has one line of JSON for the header (the budget and the neighbours), then one line for
each event: what is released, how, its cost and the running total. It is only ever appended to, and
each line has a hash of everything up to it (see `chain`). An event is written and on the disk
before any noise for it is drawn; a refused event leaves no trace. While a process reads, decides
and appends, it holds a lock, so two processes cannot overspend together.

A run of several events reserves its whole price first, so that no other can take what it needs to
end; what it has not used goes back when it ends. If its process dies, what it still held stays
reserved, and `Ledger.reserved` shows it, until the run goes on or somebody gives it back. That is
never a risk: each event is paid for by its own line.

If a process dies while it writes, the last line may be incomplete: that event's noise was never
drawn, so the line does not count. Reading warns of it; whoever writes next replaces it by a line
that says what was there. A file whose last lines are gone looks like an older copy of itself. Only
what knows the newest hash can tell: a release (`find_release`), an unfinished release, a signature.
"""

from __future__ import annotations

import datetime as dt
import difflib
import os
import platform
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from juncture.errors import BudgetExceeded, InvalidInput
from juncture.privacy.accounting import Cost, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.events import Entry, Event
from juncture.privacy.ledger_file import append, open_locked, write_new
from juncture.privacy.ledger_state import (
    FORMAT,
    Reserved,
    State,
    read_state,
    write_header,
    write_price,
)


@dataclass(frozen=True)
class Ticket:
    """The right to go on with a run: the run's tag, and the claim that its holder last made."""

    tag: str
    claim: str


class Ledger:
    """A budget in a file, and what was spent of it.

    `Ledger.create` begins one; `Ledger(path)` opens it again.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(Path(folder, "people.ledger"), Budget(epsilon=1.0))
    ...     _ = ledger.spend(Event("every count of sex", "discrete laplace", Cost.pure(0.25), {}))
    ...     ledger.spent, ledger.remaining
    (0.25, 0.75)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        state = self.read()
        self.budget, self.neighbours = state.budget, state.neighbours

    @classmethod
    def create(
        cls,
        path: str | Path,
        budget: Budget,
        neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    ) -> Ledger:
        """Create a ledger with a budget; refuses to replace an existing file."""
        target = Path(path)
        try:
            write_new(target, write_header(budget, neighbours))
        except FileExistsError:
            raise InvalidInput(
                f"`path` must be a new file; got {target}, which exists. Open it with Ledger(path) "
                "to continue spending its budget, or choose another name."
            ) from None
        return cls(target)

    def read(self) -> State:
        """Everything that the file says now; it may be a copy that cannot be written."""
        with open_locked(self.path, write=False) as file:
            return _read(self.path, file)

    @property
    def events(self) -> list[Entry]:
        """Every event so far, including those of other processes."""
        return list(self.read().entries)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}: {self.spent:.4g} of {self.budget} spent)"

    @property
    def spent(self) -> float:
        """What was spent so far, in the budget's own unit."""
        return self.budget.compose(self.read().costs)

    @property
    def reserved(self) -> list[Reserved]:
        """What unfinished runs hold, beyond what they have paid for."""
        return self.read().reserved()

    @property
    def remaining(self) -> float:
        """What is neither spent nor reserved, in the budget's own unit."""
        state = self.read()
        return max(0.0, self.budget.limit - self.budget.compose(_list_costs(state)))

    def entries_of(self, tag: str) -> list[Entry]:
        """The events that a run has paid for, in order."""
        return self.read().paid_by(tag)

    def refuse_unaffordable(self, costs: Sequence[Cost], *, tag: str | None = None) -> None:
        """Refuse a run that could not be paid for to its end. Spends nothing.

        What the run has already paid for or reserved, under its tag, does not count twice.
        """
        _refuse_overspending(self.read(), costs, tag)

    def begin(
        self,
        ticket: Ticket,
        costs: Sequence[Cost],
        *,
        what: str = "",
        earlier_claims: Collection[str] = (),
    ) -> None:
        """Reserve the price of a run, or of what is left of it; or refuse it.

        Whoever goes on with a run says which claims were made before: if another one was made
        since, the run goes on elsewhere, from a copy of what is kept of it.
        """
        with self._change() as (file, state):
            run = state.runs.get(ticket.tag)
            if run is not None and run.has_ended:
                raise _refuse_ended(state)
            if run is not None and run.claim and run.claim not in earlier_claims:
                raise _refuse_copy(state, ticket)
            _refuse_overspending(state, costs, ticket.tag)
            paid = [entry.cost for entry in state.paid_by(ticket.tag)]
            held = {"begin": ticket.tag, "claim": ticket.claim, "time": _now(), "what": what,
                    "process": _describe_process(), **write_price(costs, paid)}  # fmt: skip
            append(file, state, [held])

    def spend(self, *events: Event, ticket: Ticket | None = None) -> list[Entry]:
        """Record all events durably, or refuse them all and leave no trace.

        Gives the entries of these events only, even if other processes write to the file. With a
        ticket, they are those of a run, and are paid from what it has reserved.
        """
        with self._change() as (file, state):
            if ticket is not None:
                _refuse_strangers(state, ticket)
            costs, entries = state.costs, list[Entry]()
            now = _now()
            for event in events:
                costs.append(event.cost)
                entries.append(Entry(event.what, event.mechanism, event.cost, event.parameters,
                                     number=len(costs), time=now,
                                     total=self.budget.compose(costs)))  # fmt: skip
            mark = {} if ticket is None else {"tag": ticket.tag}
            _refuse_spending(state, [event.cost for event in events], ticket)
            lines = append(file, state, [entry.to_json() | mark for entry in entries])
            return [Entry.from_json(line.content | {"hash": line.hash}) for line in lines]

    def end(self, ticket: Ticket) -> None:
        """Say that a run is complete, and give back what it has not used.

        Nothing is paid for or drawn in its name from then on. Refuses if a copy of it goes on.
        """
        with self._change() as (file, state):
            _refuse_strangers(state, ticket)
            append(file, state, [{"end": ticket.tag, "time": _now()}])

    def give_back(self, tag: str) -> None:
        """Give back what an interrupted run still holds; it may begin again if it can be paid."""
        with self._change() as (file, state):
            if not any(run.tag == tag for run in state.reserved()):
                raise InvalidInput(
                    f"`tag` must be that of a run that holds a part of the budget; got {tag!r}. "
                    "`juncture ledger show` lists them."
                )
            append(file, state, [{"give_back": tag, "time": _now()}])

    def has_ended(self, tag: str) -> bool:
        """Whether a run is complete."""
        run = self.read().runs.get(tag)
        return run is not None and run.has_ended

    def check(self, ticket: Ticket) -> None:
        """Refuse a run that has ended, or that goes on from a copy."""
        _refuse_strangers(self.read(), ticket)

    @contextmanager
    def _change(self) -> Iterator[tuple[FileIO, State]]:
        """Hold the file alone while something is decided and appended."""
        with open_locked(self.path, write=True) as file:
            yield file, _read(self.path, file)


def find_similar_ledger(path: Path) -> Path | None:
    """A ledger for which a name may have been meant that does not exist: one of nearly that name.

    It is sought in the same folder. Two names are nearly the same if they share most letters before
    the suffix; they are not if they differ only in numbers, as those of a series do.
    """
    if not path.parent.is_dir():
        return None
    names = {each.stem: each for each in sorted(path.parent.iterdir()) if _is_ledger(each)}
    series = _without_digits(path.stem)
    close = [n for n in names if n == path.stem or _without_digits(n) != series]
    found = difflib.get_close_matches(path.stem, close, n=1, cutoff=0.8)
    return names[found[0]] if found else None


def has_ledgers(folder: Path, *, but: Path) -> bool:
    """Whether a folder has other ledgers than one."""
    return any(_is_ledger(path) and path != but for path in folder.iterdir())


def _without_digits(name: str) -> str:
    return "".join(letter for letter in name if not letter.isdigit())


def _is_ledger(path: Path) -> bool:
    """Whether a file begins as ledgers do."""
    begin = b'{"format": "' + FORMAT.encode() + b'"'
    try:
        with path.open("rb") as file:
            return path.is_file() and file.read(len(begin)) == begin
    except OSError:
        return False


def refuse_overspending(budget: Budget, costs: Sequence[Cost]) -> None:
    """Refuse events that together cost more than the budget."""
    if not budget.allows(costs):
        raise BudgetExceeded(
            f"`cost` must leave the total within the budget of {budget}; got a total of "
            f"{budget.compose(costs):g}. Spend less, or begin a new ledger with the consent of "
            "the person responsible for the data."
        )


def _read(path: Path, file: FileIO) -> State:
    file.seek(0)
    state = read_state(path, file.read())
    if state.chain.tail:
        warnings.warn(
            f"The last line of {path} is incomplete: a process died while it wrote it, before any "
            "noise was drawn, or the file was cut off. The line does not count.",
            stacklevel=4,
        )
    return state


def _list_costs(state: State, *, without: str | None = None) -> list[Cost]:
    """What all events have cost, and what runs hold."""
    return state.costs + [run.cost for run in state.reserved(without=without)]


def _refuse_overspending(state: State, costs: Sequence[Cost], tag: str | None) -> None:
    """Refuse the whole price of a run beside what all others have paid and hold."""
    pairs = zip(state.entries, state.tags, strict=True)
    others = [entry.cost for entry, own in pairs if tag is None or own != tag]
    held = [run.cost for run in state.reserved(without=tag)]
    _refuse(state, [*others, *costs], held)


def _refuse_spending(state: State, costs: Sequence[Cost], ticket: Ticket | None) -> None:
    """Refuse events beside everything that was paid, and what runs hold when they are paid."""
    own = None if ticket is None else ticket.tag
    held = [run.cost for run in state.reserved(without=own)]
    held += [_reduce(run.cost, costs) for run in state.reserved() if run.tag == own]
    _refuse(state, [*state.costs, *costs], held)


def _reduce(held: Cost, costs: Sequence[Cost]) -> Cost:
    """What a run holds after it has paid for more."""
    left = write_price([held], costs)
    return Cost(
        epsilon=held.epsilon if left["epsilon"] is None else left["epsilon"],
        rho=held.rho if left["rho"] is None else left["rho"],
    )


def _refuse(state: State, costs: list[Cost], held: list[Cost]) -> None:
    budget = state.budget
    if budget.allows([*costs, *held]):
        return
    if not budget.allows(costs):
        refuse_overspending(budget, costs)
    raise BudgetExceeded(
        f"`cost` must leave the total within the budget of {budget}; got a total of "
        f"{budget.compose(costs):g}, beside what unfinished releases hold "
        f"({budget.compose([*costs, *held]):g} with them). Wait for them to end. What one that was "
        f"interrupted holds is given back by: juncture ledger give-back {state.path}"
    )


def _refuse_strangers(state: State, ticket: Ticket) -> None:
    run = state.runs.get(ticket.tag)
    if run is not None and run.has_ended:
        raise _refuse_ended(state)
    if run is None or run.claim != ticket.claim:
        raise _refuse_copy(state, ticket)


def _refuse_copy(state: State, ticket: Ticket) -> InvalidInput:
    return InvalidInput(
        f"`resume` must go on with the newest copy of an unfinished release; got one that was left "
        f"behind: {state.path} says that run {ticket.tag} goes on from another copy. Two outcomes "
        "for one payment must not be published. Resume the other copy, and delete this one."
    )


def _refuse_ended(state: State) -> InvalidInput:
    return InvalidInput(
        f"`resume` must not draw anything new for a release that is complete; {state.path} says "
        "that this one is. Delete this copy of its unfinished file, and use the release."
    )


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def _describe_process() -> str:
    return f"{os.getpid()} on {platform.node()}"
