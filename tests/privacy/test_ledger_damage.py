"""Damage to a ledger is found, whatever byte or bit it is, and what cannot be found is known."""

from __future__ import annotations

import fcntl
import json
import resource
import shutil
import signal
from pathlib import Path

import pytest

from juncture.cli.main import run
from juncture.errors import BudgetExceeded, InvalidInput, UnreadableFile
from juncture.privacy import ledger_file
from juncture.privacy.accounting import Cost, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.events import Event
from juncture.privacy.guarantee import Guarantee
from juncture.privacy.ledger import Ledger, Ticket
from juncture.privacy.ledger_check import Evidence, find_payment
from juncture.privacy.ledger_state import State, read_state

FILES = Path(__file__).parents[1] / "files"
OLD = sorted(FILES.glob("version-1-*.ledger"))
LAPLACE = "discrete laplace"


def event(epsilon: float, what: str = "every count of größe") -> Event:
    """A release."""
    return Event(what, LAPLACE, Cost.pure(epsilon), {"scale": 1.0 / epsilon})


def write_ledger(path: Path) -> Ledger:
    """A small ledger with every kind of line but repairs."""
    ledger = Ledger.create(path, Budget(epsilon=1.0))
    ledger.spend(event(0.25))
    ticket = Ticket("a run", "its claim")
    ledger.begin(ticket, [Cost.pure(0.25)], what="mwem")
    ledger.spend(event(0.125), ticket=ticket)
    ledger.end(ticket)
    ledger.spend(event(0.0625))
    return ledger


def parse(raw: bytes) -> State | None:
    """What a ledger of these bytes says; None if it is refused."""
    try:
        return read_state(Path("l"), raw)
    except UnreadableFile:
        return None


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    """A ledger with one bit flipped anywhere, the header included, is refused."""
    path = write_ledger(tmp_path / "l").path
    raw = path.read_bytes()
    for index in range(len(raw)):
        for bit in range(8):
            changed = bytearray(raw)
            changed[index] ^= 1 << bit
            assert parse(bytes(changed)) is None, (index, bit)


def test_every_removed_doubled_or_moved_line_is_found(tmp_path: Path) -> None:
    """All lines but the last ones vouch for what is before them."""
    path = write_ledger(tmp_path / "l").path
    lines = path.read_bytes().splitlines(keepends=True)
    for i in range(len(lines)):
        if i < len(lines) - 1:
            assert parse(b"".join(lines[:i] + lines[i + 1 :])) is None
        assert parse(b"".join(lines[: i + 1] + lines[i:])) is None
        for j in range(i):
            moved = list(lines)
            moved[i], moved[j] = lines[j], lines[i]
            assert parse(b"".join(moved)) is None


def test_every_prefix_is_found_or_known(tmp_path: Path) -> None:
    """Cut off anywhere: inside a line `verify` ends with 1; between lines a release finds it."""
    path = write_ledger(tmp_path / "l").path
    raw = path.read_bytes()
    whole = Ledger(path).read()
    guarantee = Guarantee(whole.entries, ledger_hash=whole.entries[-1].hash)
    assert find_payment(whole, guarantee, "x.jct") is Evidence.HASH
    ends = {i + shift for i, byte in enumerate(raw) if byte == ord("\n") for shift in (0, 1)}
    for size in range(len(raw)):
        state = parse(raw[:size])
        if size < raw.index(b"\n"):
            assert state is None
            continue
        assert state is not None
        assert (size in ends) == (not state.chain.tail)  # a tail is what `verify` refuses
        if state.entries != whole.entries:
            with pytest.raises(UnreadableFile, match="cut off or put back from an old copy"):
                find_payment(state, guarantee, "x.jct")
    for size, code in ((len(raw), 0), (len(raw) - 1, 0), (len(raw) - 2, 1), (len(raw) - 200, 1)):
        path.write_bytes(raw[:size])
        assert run(["ledger", "verify", str(path)]) == code


def test_copies_that_went_their_own_way_are_told_apart(tmp_path: Path) -> None:
    """A release of one copy is not paid for by the other, though all events are the same."""
    one = Ledger.create(tmp_path / "one", Budget(epsilon=1.0))
    shutil.copy(one.path, tmp_path / "two")
    two = Ledger(tmp_path / "two")
    releases = []
    for ledger in (one, two):
        (entry,) = ledger.spend(event(0.5))
        releases.append(Guarantee((entry.publish(),), ledger_hash=entry.hash))
    assert find_payment(one.read(), releases[0], "a.jct") is Evidence.HASH
    with pytest.raises(UnreadableFile, match="went its own way"):
        find_payment(one.read(), releases[1], "b.jct")


def test_hashes_cannot_be_guessed_from_what_is_published(tmp_path: Path) -> None:
    """Equal events at equal times have other hashes: none tells the time of its line."""
    hashes = set()
    for name in ("a", "b"):
        ledger = Ledger.create(tmp_path / name, Budget(epsilon=1.0))
        hashes |= {entry.hash for entry in ledger.spend(event(0.5), event(0.25))}
    assert len(hashes) == 4


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.stem)
def test_a_ledger_of_version_1_goes_on(tmp_path: Path, old: Path) -> None:
    """It is read as it is; the next line has a hash of all before it, and none of it is changed."""
    path = tmp_path / "old.ledger"
    shutil.copy(old, path)
    raw, ledger = path.read_bytes(), Ledger(path)
    spent = ledger.spent
    assert spent == json.loads(raw.splitlines()[-1])["total"]
    assert len(ledger.entries_of("0123456789abcdef")) == 2
    ledger.spend(event(0.01))
    assert path.read_bytes().startswith(raw)
    assert ledger.spent > spent
    assert [entry.number for entry in ledger.events] == [1, 2, 3, 4]
    upgraded = path.read_bytes()
    assert json.loads(upgraded[len(raw) :].splitlines()[0])["upgrade"] == 2
    for index in range(len(upgraded)):
        changed = bytearray(upgraded)
        changed[index] ^= 1
        assert parse(bytes(changed)) is None, index


def test_an_old_ledger_without_its_last_newline_or_with_a_torn_line_goes_on(tmp_path: Path) -> None:
    """An event whose line lacks only its end counts; one that is incomplete does not."""
    raw, path = OLD[-1].read_bytes(), tmp_path / "old.ledger"
    path.write_bytes(raw[:-1])
    ledger = Ledger(path)
    assert len(ledger.events) == 3
    ledger.spend(event(0.1))
    assert len(Ledger(path).events) == 4
    path.write_bytes(raw[:-30])
    with pytest.warns(UserWarning, match="incomplete"):
        Ledger(path).spend(event(0.1))
    assert len(Ledger(path).events) == 3
    assert len(Ledger(path).read().repairs) == 1


def test_a_full_disk_leaves_no_half_of_a_line(tmp_path: Path) -> None:
    """What cannot be written was not paid, and what was written before is whole."""
    ledger = Ledger.create(tmp_path / "l", Budget(epsilon=1.0))
    ledger.spend(event(0.25))
    before = ledger.path.read_bytes()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, limits[1]))
    try:
        with pytest.raises(UnreadableFile, match="that can be written"):
            ledger.spend(event(0.25))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ledger.path.read_bytes() == before
    assert ledger.spent == 0.25


def test_a_copy_that_cannot_be_written_can_be_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading asks for no right to write."""
    path = write_ledger(tmp_path / "l").path
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert run(["ledger", "show", str(path)]) == 0
        assert run(["ledger", "verify", str(path)]) == 0
    finally:
        tmp_path.chmod(0o700)
    assert "valid: 3 events, 0.4375 of epsilon 1 spent" in capsys.readouterr().out


def test_waiting_for_a_lock_is_said_and_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that holds the ledger for ever stops nobody for ever, nor without a word."""
    path = write_ledger(tmp_path / "l").path
    monkeypatch.setattr(ledger_file, "_PATIENCE", 0.01)
    monkeypatch.setattr(ledger_file, "_MAX_WAIT", 0.05)
    with path.open("rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert run(["ledger", "show", str(path)]) == 1
    told = capsys.readouterr().err
    assert "waiting for another process that holds" in told
    assert "no other process holds" in told


class TestReservations:
    """A run holds its whole price; what it does not use goes back, and nothing is forgotten."""

    def test_a_run_is_paid_to_its_end(self, tmp_path: Path) -> None:
        """What it has reserved, nobody else can take; the rest is free again when it ends."""
        ledger = Ledger.create(tmp_path / "l", Budget(epsilon=1.0))
        ticket = Ticket("run", "claim")
        ledger.begin(ticket, [Cost.pure(0.25)] * 3, what="mwem")
        with pytest.raises(BudgetExceeded, match="beside what unfinished releases hold"):
            ledger.spend(event(0.5))
        with pytest.raises(BudgetExceeded, match="give-back"):
            ledger.begin(Ticket("other", ""), [Cost.pure(0.5)])
        ledger.spend(event(0.25))
        for _ in range(2):
            ledger.spend(event(0.25), ticket=ticket)
        assert (ledger.spent, ledger.remaining) == (0.75, 0.0)
        (held,) = ledger.reserved
        assert held.cost.epsilon == pytest.approx(0.25)
        assert held.what == "mwem"
        ledger.end(ticket)
        assert (ledger.spent, ledger.remaining, ledger.reserved) == (0.75, 0.25, [])

    def test_a_run_may_need_more_than_it_reserved(self, tmp_path: Path) -> None:
        """If there is more; the budget itself is never exceeded."""
        ledger = Ledger.create(tmp_path / "l", Budget(epsilon=1.0))
        ticket = Ticket("run", "claim")
        ledger.begin(ticket, [Cost.pure(0.25)])
        ledger.spend(event(0.5), ticket=ticket)
        with pytest.raises(BudgetExceeded):
            ledger.spend(event(0.75), ticket=ticket)
        ledger.spend(event(0.5), ticket=ticket)
        assert ledger.spent == 1.0

    def test_what_a_dead_process_held_is_visible_until_it_is_given_back(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """By a command; what was paid stays paid."""
        ledger = Ledger.create(tmp_path / "l", Budget(rho=1.0))
        ticket = Ticket("run", "claim")
        ledger.begin(ticket, [Cost.concentrated(0.75)], what="tiers")
        ledger.spend(Event("x", "g", Cost.concentrated(0.5), {}), ticket=ticket)
        assert run(["ledger", "show", str(ledger.path)]) == 0
        assert "held      rho 0.25 by an unfinished release: tiers" in capsys.readouterr().out
        assert run(["ledger", "give-back", str(ledger.path)]) == 0  # this very process works
        assert "still works on tiers" in capsys.readouterr().err
        assert len(ledger.reserved) == 1
        assert run(["ledger", "give-back", str(ledger.path), "--force"]) == 0
        assert (ledger.spent, ledger.remaining, ledger.reserved) == (0.5, 0.5, [])
        ledger.begin(Ticket("run", "next"), [Cost.concentrated(0.75)], earlier_claims=["claim"])
        assert ledger.remaining == pytest.approx(0.25)  # resumed: the rest of its price is held

    def test_only_the_holder_of_the_last_claim_goes_on(self, tmp_path: Path) -> None:
        """Neither a stranger, nor whoever was resumed elsewhere, nor anybody after the end."""
        ledger = Ledger.create(tmp_path / "l", Budget(epsilon=1.0))
        first, second = Ticket("run", "first"), Ticket("run", "second")
        ledger.begin(first, [Cost.pure(0.5)])
        with pytest.raises(InvalidInput, match="goes on from another copy"):
            ledger.begin(second, [Cost.pure(0.5)], earlier_claims=["unknown"])
        ledger.begin(second, [Cost.pure(0.5)], earlier_claims=["first"])
        for refused in (lambda: ledger.spend(event(0.1), ticket=first), lambda: ledger.end(first)):
            with pytest.raises(InvalidInput, match="goes on from another copy"):
                refused()
        ledger.end(second)
        with pytest.raises(InvalidInput, match="that is complete"):
            ledger.spend(event(0.1), ticket=second)
        with pytest.raises(InvalidInput, match="that is complete"):
            ledger.begin(Ticket("run", "third"), [Cost.pure(0.1)], earlier_claims=["second"])


def test_reservations_in_every_unit(tmp_path: Path) -> None:
    """A reservation counts like the events that it is for, in each kind of budget."""
    budgets = [Budget(epsilon=1.0), Budget(rho=0.1), Budget(epsilon=1.0, delta=1e-6)]
    for index, budget in enumerate(budgets):
        cost = budget.price.share(0.4).cost
        ledger = Ledger.create(tmp_path / str(index), budget, Neighbours.REPLACE)
        ledger.begin(Ticket("one", ""), [cost])
        assert ledger.spent == 0.0
        assert ledger.remaining == pytest.approx(budget.limit - budget.compose([cost]))
        ledger.begin(Ticket("two", ""), [cost])
        with pytest.raises(BudgetExceeded):
            ledger.begin(Ticket("three", ""), [cost])
        assert not ledger.events
