"""Noisy answers as they come, in a file beside the release, so that unfinished work can go on.

What was paid for is public from then on; to lose it would be to lose budget. So a curator with a
journal writes every outcome to it before anybody sees the outcome, and one that is given a journal
of an interrupted run gives those outcomes again, to the same requests in the same order, for free.
The mechanism then arrives where it was interrupted: apart from the outcomes, its work is
deterministic.

The file has one line of JSON for the header (the settings of the run, and a tag that also stands on
the run's lines in the ledger), then one for each access: its events and its outcome. An event that
the ledger has under the tag and the journal has not was paid for just before the interruption. Its
outcome was never seen, so a new one may be drawn for it without paying again: of the two, only one
is ever published.

That holds for copies of the file, too. Whenever a run begins or goes on, it makes a claim: a random
number, written here first and then to the ledger, which checks that the claim before it is one that
this file knows. Of two copies that are resumed, the second finds a claim that it does not know, and
is refused; so is a run that still works while a copy of its file is resumed, at its next payment or
at its end. And a run ends in the ledger before its result is seen by anybody: from then on a file
gives back the outcomes that it has, and none is drawn for it.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput, UnreadableFile
from juncture.privacy.events import Entry, Event
from juncture.privacy.ledger import Ledger, Ticket

FORMAT, VERSION, OLDEST = "juncture journal", 2, 1

Outcome = list[NDArray[np.float64]]
"""Arrays of numbers: noisy answers, or chosen indices."""


@dataclass(frozen=True)
class _Access:
    """Events that were paid for together, and their outcome."""

    entries: tuple[Entry, ...]
    outcome: Outcome


class Journal:
    """The outcomes of one run: those of an earlier attempt first, then its own.

    `Journal.create` begins one; `Journal(path)` opens that of an interrupted run.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        header, *lines = _read_lines(self.path)
        self.close = weakref.finalize(self, os.close, self._take_lock())
        """Lets another run go on; done by itself when the journal is forgotten."""
        if header.get("format") != FORMAT or header.get("version") not in (OLDEST, VERSION):
            raise UnreadableFile(
                f"`path` must be an unfinished release of version {VERSION}; got {self.path}, "
                "which is not. Delete it and begin again."
            )
        self.tag, self.settings = str(header["tag"]), dict(header["settings"])
        self.claims = [str(line["claim"]) for line in lines if "claim" in line]
        """Every claim that was made for this run, as far as this file knows."""
        self._known = [_read_access(self.path, line) for line in lines if "claim" not in line]
        self._next = 0

    def _take_lock(self) -> int:
        """Hold the file for this process; returns the open file that does."""
        file = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise InvalidInput(
                f"`resume` must be the only run of this release; got {self.path}, which another "
                "process works on. Wait for it to end."
            ) from None
        return file

    @classmethod
    def create(cls, path: str | Path, settings: Mapping[str, Any]) -> Journal:
        """Begin a journal; refuses to replace that of an unfinished run."""
        target = Path(path)
        header = {
            "format": FORMAT,
            "version": VERSION,
            "tag": secrets.token_hex(8),
            "settings": dict(settings),
        }
        target.parent.mkdir(parents=True, exist_ok=True)
        file = target.open("xb")
        try:
            with file:
                _append(file, header)
        except BaseException:
            target.unlink()  # a full disk: what is there cannot be resumed, and nothing was paid
            raise
        return cls(target)

    def refuse_other_settings(self, settings: Mapping[str, Any]) -> None:
        """Refuse to go on with anything else than what was begun."""
        plain = json.loads(json.dumps(settings))
        changed = [name for name in plain if plain[name] != self.settings.get(name)]
        if changed:
            raise InvalidInput(
                f"`resume` must go on with what was begun; got another {' and '.join(changed)}. "
                f"Give the same options as before; to begin again, delete {self.path}, which loses "
                "what was paid for."
            )

    def refuse_other_ledger(self, ledger: Ledger) -> None:
        """Refuse a ledger that has not paid for what this file has: another one, or an old copy."""
        paid = ledger.events
        for entry in (entry for access in self._known for entry in access.entries):
            same = paid[entry.number - 1 : entry.number]
            if not _are_same(same, [entry]) or same[0].hash != entry.hash:
                raise InvalidInput(
                    f"`ledger` must be the one that has paid for {self.path}; got {ledger.path}, "
                    f"which does not have its event {entry.number}: it is another ledger, or an "
                    "old copy. Give the right one."
                )

    def replay(self, events: Sequence[Event]) -> tuple[list[Entry], Outcome] | None:
        """The entries and the outcome of the next access, if an earlier attempt came that far."""
        if self._next == len(self._known):
            return None
        access = self._known[self._next]
        if not _are_same(access.entries, events):
            raise InvalidInput(
                f"`resume` must ask for what was asked for before; got {events[0].what!r} where "
                f"{self.path} has {access.entries[0].what!r}. Use the version of Juncture that "
                "began it; to begin again, delete the file, which loses what was paid for."
            )
        self._next += 1
        return list(access.entries), access.outcome

    def claim(self) -> Ticket:
        """A new claim, which is on the disk before the ledger has it."""
        made = secrets.token_hex(8)
        self._append({"claim": made})
        self.claims.append(made)
        return Ticket(self.tag, made)

    def pay(self, ledger: Ledger, events: Sequence[Event], ticket: Ticket) -> list[Entry]:
        """Pay for an access, unless that was done just before an interruption."""
        n_seen = sum(len(access.entries) for access in self._known)
        unseen = ledger.entries_of(self.tag)[n_seen:]
        if unseen and _are_same(unseen, events):
            ledger.check(ticket)
            return unseen
        return ledger.spend(*events, ticket=ticket)

    def record(self, entries: Sequence[Entry], outcome: Outcome) -> None:
        """Write an outcome to the disk; only then may anybody see it."""
        line = {
            "entries": [entry.to_json() | {"hash": entry.hash} for entry in entries],
            "outcome": [base64.b64encode(a.astype("<f8").tobytes()).decode() for a in outcome],
        }
        self._append(line)
        self._known.append(_Access(tuple(entries), outcome))
        self._next = len(self._known)

    def _append(self, line: Mapping[str, Any]) -> None:
        _drop_torn_line(self.path)
        try:
            with self.path.open("ab") as file:
                _append(file, line)
        except OSError as error:
            error.filename = str(self.path)  # a full disk does not say which file
            raise

    def remove(self) -> None:
        """Delete the file: the release is complete."""
        self.path.unlink(missing_ok=True)
        self.close()


def journal_path(release: str | Path) -> Path:
    """Where the journal of an unfinished release is kept: beside it."""
    return Path(f"{release}.partial")


def _are_same(entries: Sequence[Entry], events: Sequence[Event]) -> bool:
    """Whether entries are those of events, which may carry any plain numbers."""

    def facts(event: Event) -> tuple[object, ...]:
        parameters = json.loads(json.dumps(dict(event.parameters)))
        return event.what, event.mechanism, event.cost.epsilon, event.cost.rho, parameters

    return [facts(entry) for entry in entries] == [facts(event) for event in events]


def _append(file: Any, line: Mapping[str, Any]) -> None:  # noqa: ANN401
    file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())


def _drop_torn_line(path: Path) -> None:
    """Remove what a process that died, or a full disk, left of a line."""
    content = path.read_bytes()
    complete = content.rfind(b"\n") + 1
    if complete < len(content):
        os.truncate(path, complete)


def _read_lines(path: Path) -> list[dict[str, Any]]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnreadableFile(
            f"`resume` must find an unfinished release; got {path}: {error.strerror}."
        ) from None
    try:
        lines = [json.loads(line) for line in content[: content.rfind(b"\n") + 1].splitlines()]
    except ValueError:
        lines = []
    if not lines or not all(isinstance(line, dict) for line in lines):
        raise UnreadableFile(
            f"`path` must be an unfinished release; got {path}, which cannot be read. Delete it "
            "and begin again."
        )
    return lines


def _read_access(path: Path, line: Mapping[str, Any]) -> _Access:
    try:
        outcome = [np.frombuffer(base64.b64decode(text), dtype="<f8") for text in line["outcome"]]
        entries = tuple(Entry.from_json(entry) for entry in line["entries"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UnreadableFile(
            f"`path` must be an unaltered unfinished release; got {path}, of which a line cannot "
            "be read. Restore it from a copy."
        ) from None
    return _Access(entries, [np.array(array, dtype=np.float64) for array in outcome])
