"""What the lines of a ledger say: its budget, its events, and what runs have reserved.

Kinds of lines behind the header, each known by its first entry:

    event      something was paid for
    begin      a run has begun, or goes on: it holds a price until it ends or gives it back
    give_back  a run that was interrupted holds nothing more; it may begin again
    end        a run is complete: nothing more may be paid for or drawn in its name
    repair     what a process that died had left of a line was removed; it says what
    upgrade    the ledger was of version 1 up to here

A run has a tag, which stands on its events, and a claim, which is new whenever it begins again.
Whoever holds the last claim may go on with it, and nobody else: see `private.journal`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from juncture.errors import UnreadableFile
from juncture.privacy.accounting import Cost, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.chain import BrokenChain, Chain, Line, parse_object, read_chain
from juncture.privacy.events import Entry, finite_or_none, read_delta
from juncture.privacy.ledger_1 import UPGRADE, is_old, read_old

FORMAT, VERSION = "juncture ledger", 2
# What is left of a reservation is a cost, and costs are positive.
_NOTHING = 1e-300


@dataclass(frozen=True)
class Reserved:
    """A run that holds a price: what it is, who works on it, and how much it still holds."""

    tag: str
    what: str
    time: str
    process: str
    """The number and the machine of the process that began it."""
    cost: Cost
    """What it holds beyond the events that it has paid for."""


@dataclass
class _Run:
    """A run as far as the lines have told."""

    claim: str = ""
    line: Mapping[str, Any] = field(default_factory=dict)
    is_open: bool = False
    has_ended: bool = False
    epsilons: list[float] = field(default_factory=list)
    rhos: list[float] = field(default_factory=list)
    n_before: int = 0
    """How many events it had paid for when it last began."""

    def left(self) -> Cost:
        """What it holds beyond what it has paid for since it last began."""
        return Cost(
            epsilon=_subtract(_read_price(self.line, "epsilon"), self.epsilons[self.n_before :]),
            rho=_subtract(_read_price(self.line, "rho"), self.rhos[self.n_before :]),
        )


@dataclass(frozen=True)
class State:
    """Everything that a ledger's lines say."""

    path: Path
    chain: Chain
    is_old: bool
    """Whether no line has a hash yet: it was written by version 1 alone."""
    budget: Budget
    neighbours: Neighbours
    entries: tuple[Entry, ...]
    tags: tuple[str | None, ...]
    """The run of each entry, if it has one."""
    runs: Mapping[str, _Run]

    @property
    def head(self) -> str:
        """The hash of the last line; empty for version 1."""
        return self.chain.lines[-1].hash

    @property
    def costs(self) -> list[Cost]:
        """What every event cost."""
        return [entry.cost for entry in self.entries]

    @property
    def repairs(self) -> list[str]:
        """What was left of lines that were removed."""
        contents = (line.content for line in self.chain.lines)
        return [str(content["repair"]) for content in contents if "repair" in content]

    def reserved(self, *, without: str | None = None) -> list[Reserved]:
        """What runs still hold, in the order of the first beginning."""
        return [
            Reserved(
                tag, str(run.line.get("what", "")), str(run.line.get("time", "")),
                str(run.line.get("process", "")), run.left(),
            )
            for tag, run in self.runs.items()
            if run.is_open and tag != without
        ]  # fmt: skip

    def paid_by(self, tag: str) -> list[Entry]:
        """The events that a run has paid for, in order."""
        pairs = zip(self.entries, self.tags, strict=True)
        return [entry for entry, own in pairs if own == tag]


def read_state(path: Path, raw: bytes) -> State:
    """What a file says; refuses one that is not a ledger, or not what was written."""
    old = is_old(raw)
    try:
        chain = read_old(raw) if old else read_chain(raw)
    except BrokenChain as error:
        _refuse_other_versions(path, raw)
        raise damaged(path, f"whose line {error.args[0]} is not what was written") from None
    _refuse_other_versions(path, raw)
    if not chain.lines:
        raise damaged(path, "whose first line is incomplete")
    header, *lines = chain.lines
    budget, neighbours = read_header(path, header.content)
    reader = _Reader(path, budget)
    for number, line in enumerate(lines, 2):
        reader.read(number, line)
    reader.check_total()
    return State(
        path, chain, old and not any(line.hash for line in lines), budget, neighbours,
        tuple(reader.entries), tuple(reader.tags), reader.runs,
    )  # fmt: skip


def write_header(budget: Budget, neighbours: Neighbours) -> dict[str, Any]:
    """The first line of a ledger."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "budget": budget.to_json(),
        **neighbours.to_json(),
    }


def read_header(path: Path, header: Mapping[str, Any]) -> tuple[Budget, Neighbours]:
    """The budget and the neighbours of the first line."""
    try:
        return Budget(**header["budget"]), Neighbours.from_json(header)
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableFile(
            f"`path` must be a ledger with a budget and neighbours; got {path}: {error}. Restore "
            "it from a copy."
        ) from None


def damaged(path: Path, how: str) -> UnreadableFile:
    """The error for a file that is not what was written."""
    return UnreadableFile(
        f"`path` must be an unaltered ledger; got {path}, {how}. Restore it from a copy, and check "
        "the copy with --release and the newest release paid from it."
    )


def _refuse_other_versions(path: Path, raw: bytes) -> None:
    header = parse_object(raw.split(b"\n", 1)[0]) or {}
    if not raw or (header and header.get("format") != FORMAT):
        raise UnreadableFile(
            f"`path` must be a ledger; got {path}, which is another kind of file. "
            "Create one with Ledger.create."
        )
    if header and header.get("version") not in (1, VERSION):
        raise UnreadableFile(
            f"`path` must be a ledger of version {VERSION} or older; got version "
            f"{header.get('version')!r} in {path}. Install the Juncture that wrote it."
        )


class _Reader:
    """Goes through the lines behind the header, one after another."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self._path, self._budget, self._total = path, budget, object()
        self.entries = list[Entry]()
        self.tags = list[str | None]()
        self.runs = dict[str, _Run]()

    def read(self, number: int, line: Line) -> None:
        """Take in one line."""
        content = line.content
        if "event" in content:
            self._read_event(number, line)
        elif "begin" in content:
            self._read_begin(number, content)
        elif "give_back" in content or "end" in content:
            self._read_close(number, content)
        elif not (line.hash and ("repair" in content or UPGRADE in content)):
            raise damaged(self._path, f"whose line {number} is of an unknown kind")

    def _read_event(self, number: int, line: Line) -> None:
        cost, tag = _parse_cost(line.content), line.content.get("tag")
        if line.content.get("event") != len(self.entries) + 1 or cost is None:
            raise damaged(self._path, f"whose line {number} is not event {len(self.entries) + 1}")
        self.entries.append(Entry.from_json(line.content | {"hash": line.hash}))
        self.tags.append(None if tag is None else str(tag))
        self._total = line.content.get("total")
        if tag is not None:
            run = self.runs.setdefault(str(tag), _Run())
            run.epsilons.append(cost.epsilon)
            run.rhos.append(cost.rho)

    def _read_begin(self, number: int, content: Mapping[str, Any]) -> None:
        run = self.runs.setdefault(str(content["begin"]), _Run())
        if run.has_ended or math.isnan(
            _read_price(content, "epsilon") + _read_price(content, "rho")
        ):
            raise damaged(self._path, f"whose line {number} begins nothing")
        run.claim, run.line, run.is_open = str(content.get("claim")), content, True
        run.n_before = len(run.rhos)

    def _read_close(self, number: int, content: Mapping[str, Any]) -> None:
        run = self.runs.get(str(content.get("give_back", content.get("end"))))
        if run is None:
            raise damaged(self._path, f"whose line {number} ends nothing")
        run.is_open, run.has_ended = False, run.has_ended or "end" in content

    def check_total(self) -> None:
        """Compare the last running total with the events."""
        total = self._budget.compose([entry.cost for entry in self.entries])
        if self.entries and not _matches_total(self._total, total):
            raise damaged(self._path, "whose last total does not match its events")


def _matches_total(stated: object, total: float) -> bool:
    if stated is None:
        return not math.isfinite(total)
    return isinstance(stated, int | float) and math.isclose(stated, total, rel_tol=1e-9)


def _parse_cost(line: Mapping[str, Any]) -> Cost | None:
    """The cost of an event; None if the line has no valid one."""
    epsilon, rho = _parse_amount(line, "epsilon"), _parse_amount(line, "rho")
    if epsilon is None or rho is None:
        return None
    return Cost(epsilon=epsilon, rho=rho, delta=read_delta(line))


def _parse_amount(line: Mapping[str, Any], name: str) -> float | None:
    """An amount above zero, infinite where it says null; None if there is no valid one."""
    value = line.get(name, "missing")
    if value is None:
        return math.inf
    valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e100
    return float(value) if valid else None


def write_price(costs: Iterable[Cost], paid: Sequence[Cost]) -> dict[str, float | None]:
    """What costs come to, less what was paid: the entries of a line that begins a run."""
    listed = list(costs)
    sums = {
        "epsilon": (math.fsum(c.epsilon for c in listed), [c.epsilon for c in paid]),
        "rho": (math.fsum(c.rho for c in listed), [c.rho for c in paid]),
    }
    return {
        name: finite_or_none(max(0.0, _subtract(whole, part)))
        for name, (whole, part) in sums.items()
    }


def _read_price(line: Mapping[str, Any], name: str) -> float:
    """A price that a run holds: zero or more, infinite where it says null; else not a number."""
    value = line.get(name)
    if value is None:
        return math.inf
    valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e100
    return float(value) if valid else math.nan


def _subtract(whole: float, parts: Sequence[float]) -> float:
    return whole if math.isinf(whole) else max(whole - math.fsum(parts), _NOTHING)
