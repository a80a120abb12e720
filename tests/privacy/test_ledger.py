"""The ledger never says less than what was released, whatever happens to the process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from juncture.errors import BudgetExceeded, InvalidInput, UnreadableFile
from juncture.privacy.accounting import Cost, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.events import Event
from juncture.privacy.ledger import Ledger
from processes import started

ADD = Neighbours.ADD_OR_REMOVE


def event(epsilon: float, what: str = "every count of age") -> Event:
    """A release."""
    return Event(what, "discrete laplace", Cost.pure(epsilon), {"scale": 1.0 / epsilon})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger may be."""
    return tmp_path / "table.ledger"


def test_a_ledger_can_be_read_by_people(path: Path) -> None:
    """A line for the header, one for each event with its running total; opened again, the same."""
    ledger = Ledger.create(path, Budget(epsilon=1.0), ADD)
    ledger.spend(event(0.25))
    ledger.spend(event(0.5, "every count of sex"), event(0.125))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["budget"] == {"epsilon": 1.0}
    assert [line["total"] for line in lines[1:]] == [0.25, 0.75, 0.875]
    assert lines[2]["what"] == "every count of sex"
    again = Ledger(path)
    assert (again.spent, again.remaining, again.neighbours) == (0.875, 0.125, ADD)
    facts = [{name: line[name] for name in line if name != "salt"} for line in lines[1:]]
    assert [entry.to_json() | {"hash": entry.hash} for entry in again.events] == facts


def test_overspending_is_refused_without_a_trace(path: Path) -> None:
    """Alone or with others in one call, to the last digit."""
    ledger = Ledger.create(path, Budget(epsilon=1.0), ADD)
    for _ in range(9):
        ledger.spend(event(0.1))
    before = path.read_bytes()
    for events in ([event(0.2)], [event(0.05), event(0.06)]):
        with pytest.raises(BudgetExceeded, match="within the budget of epsilon 1; got a total of"):
            ledger.spend(*events)
        assert path.read_bytes() == before
    ledger.spend(event(0.1))
    with pytest.raises(BudgetExceeded):
        ledger.spend(event(1e-6))


def test_a_ledger_is_not_replaced(path: Path) -> None:
    """What was spent cannot be forgotten by creating it again."""
    Ledger.create(path, Budget(epsilon=1.0), ADD).spend(event(0.9))
    with pytest.raises(InvalidInput, match="which exists"):
        Ledger.create(path, Budget(epsilon=1.0), ADD)
    assert Ledger(path).spent == 0.9


SPENDING = """
import sys
from juncture.errors import BudgetExceeded
from juncture.privacy.accounting import Cost
from juncture.privacy.events import Event
from juncture.privacy.ledger import Ledger
ledger, n = Ledger(sys.argv[1]), 0
try:
    while True:
        ledger.spend(Event("every count", "discrete laplace", Cost.pure(0.01), {}))
        n += 1
except BudgetExceeded:
    print(n)
"""


def test_processes_cannot_overspend_together(path: Path) -> None:
    """Four processes spend one budget, all of it and no more."""
    Ledger.create(path, Budget(epsilon=1.0), ADD)
    command = [sys.executable, "-c", SPENDING, str(path)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    spent = [int(worker.communicate()[0]) for worker in workers]
    assert sum(spent) == 100
    assert len(Ledger(path).events) == 100
    assert [line.number for line in Ledger(path).events] == list(range(1, 101))


KILLED = """
import sys
from juncture.privacy.accounting import Cost
from juncture.privacy.budget import Budget
from juncture.privacy.events import Event
from juncture.privacy.ledger import Ledger
ledger = Ledger(sys.argv[1])
print("ready", flush=True)
while True:
    ledger.spend(Event("x" * 2000, "discrete laplace", Cost.pure(1e-6), {}))
    print("released", flush=True)  # what comes after spending: the noise
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The last line of")
def test_killed_at_any_instant_it_never_understates(path: Path) -> None:
    """Whatever was released stands in the ledger, after kill -9 at many points."""
    Ledger.create(path, Budget(epsilon=1.0), ADD)
    released = 0
    for trial in range(12):
        command = [sys.executable, "-c", KILLED, str(path)]
        with started(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.002 * trial + 0.001)
            os.kill(process.pid, signal.SIGKILL)
            released += process.stdout.read().count("released")
        recorded = len(Ledger(path).events)
        assert recorded >= released
        assert recorded <= released + trial + 1  # at most one unfinished event in each trial
    assert released > 0


@pytest.mark.parametrize("left", [1, 20, 100])
def test_a_torn_last_line_is_taken_away_with_a_warning(path: Path, left: int) -> None:
    """Its noise was never drawn; spending goes on behind it."""
    ledger = Ledger.create(path, Budget(epsilon=1.0), ADD)
    ledger.spend(event(0.3))
    whole = path.read_bytes()
    ledger.spend(event(0.4))
    path.write_bytes(path.read_bytes()[: len(whole) + left])
    torn = path.read_bytes()
    with pytest.warns(UserWarning, match="is incomplete"):
        again = Ledger(path)
    assert path.read_bytes() == torn  # reading changes nothing
    with pytest.warns(UserWarning, match="is incomplete"):
        again.spend(event(0.7))
    assert path.read_bytes().startswith(whole)
    assert Ledger(path).spent == 1.0
    assert Ledger(path).read().repairs == [torn[len(whole) :].decode()]  # nothing is forgotten


def test_an_event_without_its_last_newline_still_counts(path: Path) -> None:
    """An editor that cuts it off gives no budget back."""
    ledger = Ledger.create(path, Budget(epsilon=1.0), ADD)
    ledger.spend(event(0.9))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    again = Ledger(path)
    assert again.spent == 0.9
    with pytest.raises(BudgetExceeded):
        again.spend(event(0.2))
    again.spend(event(0.05))
    assert [line.number for line in Ledger(path).events] == [1, 2]


def test_a_lowered_cost_is_noticed(path: Path) -> None:
    """The hash gives it away."""
    ledger = Ledger.create(path, Budget(epsilon=1.0), ADD)
    ledger.spend(event(0.5))
    path.write_text(path.read_text().replace('"epsilon": 0.5', '"epsilon": 0.001'))
    with pytest.raises(UnreadableFile, match="line 2 is not what was written"):
        Ledger(path)


def test_other_files_are_refused(path: Path) -> None:
    """Absent, foreign, of another version, altered in the middle, or without a budget."""
    with pytest.raises(UnreadableFile, match="Create one with Ledger.create"):
        Ledger(path)
    header = {"format": "juncture ledger", "version": 1, "budget": {"epsilon": 1.0}}
    good = {**header, "neighbours": str(ADD)}
    paid = {"event": 1, "epsilon": 0.1, "rho": 0.1, "total": 0.1}
    for lines, words in (
        ([{"some": "thing"}], "another kind of file"),
        ([{**good, "version": 3}], "version 3"),
        ([{**good, "version": 2}], "line 1 is not what was written"),
        ([{**good, "neighbours": "all"}], "with a budget and neighbours"),
        ([good, {**paid, "total": 0.05}], "last total does not match its events"),
        ([good, {**paid, "epsilon": "0.1"}], "line 2 is not event 1"),
        ([good, paid, {"upgrade": 2}], "line 3 is not what was written"),
        ([good, {"end": "nothing"}], "line 2 ends nothing"),
        ([good, {"begin": "x", "epsilon": "much", "rho": 0}], "line 2 begins nothing"),
        ([good, {"refund": 1}], "line 2 is of an unknown kind"),
        ([{**good, "budget": {"epsilon": -1.0}}], "with a budget"),
        ([{**good, "budget": None}], "with a budget"),
        ([good, {"event": 1}], "line 2 is not event 1"),
        ([good, {"event": 2, "epsilon": 0.1, "rho": 0.1}], "line 2 is not event 1"),
        ([good, {"event": 1, "epsilon": -0.1, "rho": 0.1}], "line 2 is not event 1"),
        ([good, [1, 2]], "line 2 is not what was written"),
    ):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with pytest.raises(UnreadableFile, match=words):
            Ledger(path)
    for text in ("not json\n", "[" * 100_000 + "\n", "9" * 5000 + "\n", '{"a": 1'):
        path.write_text(text)
        with pytest.raises(UnreadableFile, match="another kind|not what was written|incomplete"):
            Ledger(path)
    path.write_text("")
    with pytest.raises(UnreadableFile, match="another kind of file"):
        Ledger(path)


def test_free_events_do_not_exist() -> None:
    """A cost is positive."""
    for bad in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidInput, match="must be positive"):
            Cost.pure(bad)
