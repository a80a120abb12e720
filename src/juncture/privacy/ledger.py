"""A budget and everything that was spent of it, in a file that people can read.

The file has one line of JSON for the header (the budget and the neighbours), then one line for
each event: what is released, how, its cost and the running total. It is only ever appended to. An
event is written and on the disk before any noise for it is drawn; a refused event leaves no trace.
While a process reads, decides and appends, it holds a lock, so two processes cannot overspend
together. If a process dies while it writes, the last line may be incomplete: that event's noise was
never drawn, so the line does not count. Reading warns of it, and spending removes it.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from juncture.errors import BudgetExceeded, InvalidInput, UnreadableFile
from juncture.privacy.accounting import Cost, Neighbours
from juncture.privacy.budget import Budget

FORMAT, VERSION = "juncture ledger", 1
# No valid cost is larger; sums of valid costs stay finite.
_MAX_COST = 1e100


@dataclass(frozen=True)
class Event:
    """One access to private data, to be paid for from a ledger.

    >>> Event("every count of sex", "discrete laplace", Cost.pure(0.5), {"scale": 2.0}).cost
    Cost(epsilon=0.5, rho=0.125)
    """

    what: str
    """A description: the query and the clique, or what was chosen from."""
    mechanism: str
    """The kind of noise or of choice that protects it."""
    cost: Cost
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Entry(Event):
    """An event as a ledger has recorded it, with its number, its time and the running total.

    >>> cost = Cost.pure(0.5)
    >>> Entry("every count of sex", "discrete laplace", cost, {}, 1, "2024-05-01T10:00", 0.5).day
    '2024-05-01'
    """

    number: int
    time: str
    total: float
    """What was spent up to and including it, in the budget's unit; infinite if unbounded."""

    @property
    def day(self) -> str:
        """The day of its time, or an empty text if the time is not valid."""
        try:
            return dt.datetime.fromisoformat(self.time).date().isoformat()
        except ValueError:
            return ""

    def to_json(self) -> dict[str, Any]:
        """The entry as a line of the ledger."""
        return {
            "event": self.number,
            "time": self.time,
            "what": self.what,
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "epsilon": _finite_or_none(self.cost.epsilon),
            "rho": _finite_or_none(self.cost.rho),
            "total": _finite_or_none(self.total),
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any], default_number: int = 0) -> Entry:
        """An entry from plain data that may come from anywhere.

        What is missing or invalid becomes an empty text or an infinite cost.
        """
        number, parameters = line.get("event"), line.get("parameters")
        if not isinstance(number, int) or isinstance(number, bool):
            number = default_number
        return cls(
            what=str(line.get("what", "")),
            mechanism=str(line.get("mechanism", "")),
            cost=Cost(epsilon=_positive_or_inf(line.get("epsilon")),
                      rho=_positive_or_inf(line.get("rho"))),
            parameters=dict(parameters) if isinstance(parameters, Mapping) else {},
            number=number,
            time=str(line.get("time", "")),
            total=_positive_or_inf(line.get("total")),
        )  # fmt: skip


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
        with self._lock() as file:
            content = self._read_lines(file)
        self.budget = _read_budget(self.path, content[0])
        self.neighbours = Neighbours(content[0]["neighbours"])

    @classmethod
    def create(
        cls,
        path: str | Path,
        budget: Budget,
        neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    ) -> Ledger:
        """Create a ledger with a budget; refuses to replace an existing file."""
        target = Path(path)
        header = {
            "format": FORMAT,
            "version": VERSION,
            "budget": budget.to_json(),
            "neighbours": str(neighbours),
        }
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("xb") as file:
                file.write(_encode_line(header))
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            raise InvalidInput(
                f"`path` must be a new file; got {target}, which exists. Open it with Ledger(path) "
                "to continue spending its budget, or choose another name."
            ) from None
        _sync_folder(target.parent)
        return cls(target)

    @property
    def events(self) -> list[Entry]:
        """Every event so far, including those of other processes."""
        with self._lock() as file:
            return [Entry.from_json(line) for line in self._read_lines(file)[1:]]

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}: {self.spent:.4g} of {self.budget} spent)"

    @property
    def spent(self) -> float:
        """What was spent so far, in the budget's own unit."""
        return self.budget.compose([entry.cost for entry in self.events])

    @property
    def remaining(self) -> float:
        """What is left, in the budget's own unit."""
        return max(0.0, self.budget.limit - self.spent)

    def entries_of(self, tag: str) -> list[Entry]:
        """The events that were paid for under a tag, in order."""
        with self._lock() as file:
            lines = self._read_lines(file)[1:]
        return [Entry.from_json(line) for line in lines if line.get("tag") == tag]

    def refuse_unaffordable(self, costs: Sequence[Cost], *, tag: str | None = None) -> None:
        """Refuse a list of events that could not all be paid for. Spends nothing.

        This is for a run of several events whose costs are known beforehand: it must not end
        halfway. What the run has already paid for, under its tag, does not count twice.
        """
        own = set() if tag is None else {entry.number for entry in self.entries_of(tag)}
        others = [entry.cost for entry in self.events if entry.number not in own]
        refuse_overspending(self.budget, [*others, *costs])

    def spend(self, *events: Event, tag: str | None = None) -> list[Entry]:
        """Record all events durably, or refuse them all and leave no trace.

        Gives the entries of these events only, even if other processes write to the file. A tag
        marks the events of a run that may be interrupted.
        """
        with self._lock() as file:
            content = self._read_lines(file, repair=True)
            costs, entries = [_parse_cost(line) for line in content[1:]], list[Entry]()
            now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
            for event in events:
                costs.append(event.cost)
                total = self.budget.compose(costs)
                entries.append(Entry(event.what, event.mechanism, event.cost, event.parameters,
                                     number=len(costs), time=now, total=total))  # fmt: skip
            refuse_overspending(self.budget, costs)
            file.seek(0, os.SEEK_END)
            mark = {} if tag is None else {"tag": tag}
            file.write(b"".join(_encode_line(entry.to_json() | mark) for entry in entries))
            file.flush()
            os.fsync(file.fileno())
        return entries

    @contextmanager
    def _lock(self) -> Iterator[BinaryIO]:
        """Open the file, locked for this process."""
        try:
            file = self.path.open("r+b")
        except OSError as error:
            raise UnreadableFile(
                f"`path` must be a ledger that can be read and written; got {self.path}: "
                f"{error.strerror}. Create one with Ledger.create."
            ) from None
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file

    def _read_lines(self, file: BinaryIO, *, repair: bool = False) -> list[dict[str, Any]]:
        """All lines. An incomplete last one does not count; with `repair` it is removed."""
        file.seek(0)
        raw = file.read()
        complete = raw[: raw.rfind(b"\n") + 1]
        tail = raw[len(complete) :]
        # An editor may have dropped the last line's end; that event counts.
        unterminated = _is_complete(tail)
        lines = complete.splitlines() + [tail] * unterminated
        content = [_parse_line(self.path, index, line) for index, line in enumerate(lines)]
        _validate(self.path, content)
        if tail and not unterminated:
            warnings.warn(
                f"The last line of {self.path} is incomplete: a process died while it wrote it, "
                "before any noise was drawn. The line does not count.",
                stacklevel=4,
            )
        if tail and repair:
            _repair_tail(file, len(complete), unterminated=unterminated)
        return content


def refuse_overspending(budget: Budget, costs: Sequence[Cost]) -> None:
    """Refuse events that together cost more than the budget."""
    if not budget.allows(costs):
        raise BudgetExceeded(
            f"`cost` must leave the total within the budget of {budget}; got a total of "
            f"{budget.compose(costs):g}. Spend less, or begin a new ledger with the consent of "
            "the person responsible for the data."
        )


def _repair_tail(file: BinaryIO, length: int, *, unterminated: bool) -> None:
    """End a last line that lacks its end, or remove an incomplete one."""
    if unterminated:
        file.seek(0, os.SEEK_END)
        file.write(b"\n")
    else:
        file.truncate(length)
    file.flush()
    os.fsync(file.fileno())


def _is_complete(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _validate(path: Path, content: list[dict[str, Any]]) -> None:
    """Check that the header is valid, the events are numbered, and each has its costs."""
    if not content or content[0].get("format") != FORMAT:
        raise UnreadableFile(
            f"`path` must be a ledger; got {path}, which is another kind of file. "
            "Create one with Ledger.create."
        )
    if content[0].get("version") != VERSION:
        raise UnreadableFile(
            f"`path` must be a ledger of version {VERSION}; got version "
            f"{content[0].get('version')!r} in {path}. Install the Juncture that wrote it."
        )
    budget, costs = _read_budget(path, content[0]), list[Cost]()
    for number, line in enumerate(content[1:], start=1):
        cost = _parse_cost_or_none(line)
        if line.get("event") != number or cost is None:
            raise UnreadableFile(
                f"`path` must be an unaltered ledger; got {path}, whose line {number + 1} is not "
                f"event {number}. Restore it from a copy."
            )
        costs.append(cost)
    if costs and not _matches_total(content[-1].get("total"), budget.compose(costs)):
        raise UnreadableFile(
            f"`path` must be an unaltered ledger; got {path}, whose last total does not match its "
            "events. Restore it from a copy."
        )


def _matches_total(stated: object, total: float) -> bool:
    if stated is None:
        return not math.isfinite(total)
    return isinstance(stated, int | float) and math.isclose(stated, total, rel_tol=1e-9)


def _parse_line(path: Path, index: int, line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise UnreadableFile(
            f"`path` must be an unaltered ledger; got {path}, whose line {index + 1} cannot be "
            "read. Restore it from a copy."
        )
    return content


def _read_budget(path: Path, header: Mapping[str, Any]) -> Budget:
    try:
        return Budget(**header["budget"])
    except (KeyError, TypeError, InvalidInput) as error:
        raise UnreadableFile(
            f"`path` must be a ledger with a budget; got {path}: {error}. Restore it from a copy."
        ) from None


def _parse_cost_or_none(line: Mapping[str, Any]) -> Cost | None:
    try:
        return _parse_cost(line)
    except (KeyError, TypeError, ValueError):
        return None


def _parse_cost(line: Mapping[str, Any]) -> Cost:
    epsilon, rho = line["epsilon"], line["rho"]
    return Cost(
        epsilon=math.inf if epsilon is None else float(epsilon),
        rho=math.inf if rho is None else float(rho),
    )


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _positive_or_inf(value: object) -> float:
    """A cost as a number; infinite if it is missing or invalid."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.inf
    return float(value) if 0.0 < value < _MAX_COST else math.inf


def _encode_line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _sync_folder(folder: Path) -> None:
    """Write a folder to the disk: only then is a new file in it durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
