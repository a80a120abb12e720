"""Interrupted releases go on: nothing is paid for twice, and nothing that was paid for is lost."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv

import juncture as jn
from juncture.cli.main import run
from juncture.errors import BudgetExceeded, InvalidInput, JunctureError, UnreadableFile
from juncture.mechanisms.registry import prepare
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger, Ticket
from juncture.privacy.price import Pure
from juncture.private.curator import Curator
from juncture.private.journal import Journal, journal_path
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.schema_toml import schema_toml
from juncture.tables.workload import Workload

DOMAIN = Domain({"a": 2, "b": 3, "c": 2})
RNG = np.random.default_rng(0)
COLUMNS = {name: RNG.integers(0, size, 200) for name, size in DOMAIN.items()}


class Interrupted(CodedTable):
    """A table whose user presses Ctrl-C when it is counted for the nth time."""

    def __init__(self, n_counts: int) -> None:
        super().__init__(DOMAIN, COLUMNS)
        self.n_left = n_counts

    def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
        """Counts, until it is enough."""
        if self.n_left == 0:
            raise KeyboardInterrupt
        self.n_left -= 1
        return super().exact_counts(cliques)


@pytest.mark.parametrize(
    "name", ["hdmm", "mwem", "aim", "mst", "residual", "privbayes", "dualquery"]
)
@pytest.mark.parametrize("n_counts", [0, 1, 3])
def test_a_run_goes_on_where_it_was_interrupted(tmp_path: Path, name: str, n_counts: int) -> None:
    """After an interruption at any count, the rest costs what was left, and old answers are kept.

    The interruption comes after paying and before the outcome: the worst moment.
    """
    budget, kept = Budget(rho=0.5), tmp_path / "x.jct.partial"
    workload = Workload.all_marginals(DOMAIN, 2)
    run = prepare(name, budget, workload, Neighbours.REPLACE, 200)
    ledger = Ledger.create(tmp_path / "x.ledger", budget, Neighbours.REPLACE)
    journal = Journal.create(kept, {})
    first = Curator(Interrupted(n_counts), ledger, journal)
    finished = False
    try:
        run(first)
        finished = True
    except KeyboardInterrupt:
        pass
    journal.close()
    seen = kept.read_text().count('"outcome"')
    journal = Journal(kept)
    again = Curator(CodedTable(DOMAIN, COLUMNS), ledger, journal)
    result = run(again)
    journal.close()
    assert len(ledger.events) == len(again.events)
    paid = budget.compose([entry.cost for entry in ledger.events])
    assert paid <= budget.limit * (1 + 1e-9)
    assert again.events[: len(first.events)] == first.events
    if not finished:
        assert seen == n_counts
    replayed = run(Curator(Interrupted(0), ledger, Journal(kept)))
    for one, other in zip(result.measurements, replayed.measurements, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


def test_outcomes_are_on_the_disk_before_they_are_given(tmp_path: Path) -> None:
    """What a curator has answered can be read back from its journal, bit by bit."""
    ledger = Ledger.create(tmp_path / "x.ledger", Budget(epsilon=1.0))
    journal = Journal.create(tmp_path / "j.partial", {})
    given = Curator(CodedTable(DOMAIN, COLUMNS), ledger, journal).measure(["a", "b"], Pure(0.5))
    journal.close()
    journal = Journal(tmp_path / "j.partial")
    again = Curator(Interrupted(0), ledger, journal).measure(["a", "b"], Pure(0.5))
    np.testing.assert_array_equal(again.values, given.values)
    assert again.stddev == given.stddev
    assert ledger.spent == 0.5


def test_two_runs_cannot_share_a_journal(tmp_path: Path) -> None:
    """Two outcomes for one payment would be published: only one process may go on."""
    first = Journal.create(tmp_path / "j.partial", {})
    with pytest.raises(InvalidInput, match="another process works on"):
        Journal(tmp_path / "j.partial")
    first.close()
    Journal(tmp_path / "j.partial")


def test_a_torn_line_does_not_count(tmp_path: Path) -> None:
    """A process that died while it wrote an outcome: the outcome is drawn again, not paid again."""
    ledger = Ledger.create(tmp_path / "x.ledger", Budget(epsilon=1.0))
    path = tmp_path / "j.partial"
    journal = Journal.create(path, {})
    curator = Curator(CodedTable(DOMAIN, COLUMNS), ledger, journal)
    curator.measure(["a"], Pure(0.25))
    curator.measure(["b"], Pure(0.5))
    journal.close()
    path.write_bytes(path.read_bytes()[:-7])
    journal = Journal(path)
    again = Curator(CodedTable(DOMAIN, COLUMNS), ledger, journal)
    again.measure(["a"], Pure(0.25))
    again.measure(["b"], Pure(0.5))
    assert ledger.spent == 0.75
    assert len(again.events) == 2
    again.measure(["c"], Pure(0.25))
    assert ledger.spent == 1.0
    journal.close()
    assert len(Journal(path)._known) == 3


def test_another_run_cannot_claim_what_this_one_paid(tmp_path: Path) -> None:
    """Equal events of another run on the same ledger are not taken for those of this one."""
    ledger = Ledger.create(tmp_path / "x.ledger", Budget(epsilon=1.0))
    other = Curator(Interrupted(0), ledger, Journal.create(tmp_path / "other.partial", {}))
    with pytest.raises(KeyboardInterrupt):
        other.measure(["a"], Pure(0.25))
    mine = Curator(
        CodedTable(DOMAIN, COLUMNS), ledger, Journal.create(tmp_path / "mine.partial", {})
    )
    mine.measure(["a"], Pure(0.25))
    assert ledger.spent == 0.5


TABLE = pa.table({name: pa.array(column) for name, column in COLUMNS.items()})
SCHEMA = jn.Schema({n: jn.Integer(low=0, high=size - 1) for n, size in DOMAIN.items()})


def stop_after(n: int) -> Callable[..., None]:
    """A progress callback that is interrupted at its nth call."""
    calls = iter(range(10**9))

    def watch(*_: Any, **__: Any) -> None:
        if next(calls) == n:
            raise KeyboardInterrupt

    return watch


@pytest.mark.parametrize("n_calls", [0, 1, 2])
def test_jn_release_resumes(tmp_path: Path, n_calls: int) -> None:
    """The file appears when the work is complete; until then its answers are kept beside it."""
    path, kept = tmp_path / "x.jct", tmp_path / "x.jct.partial"
    arguments: dict[str, Any] = {
        "ledger": tmp_path / "x.ledger", "path": path, "mechanism": "mwem",
    }  # fmt: skip
    budget = Budget(epsilon=1.0)
    assert journal_path(path) == kept
    with pytest.raises(KeyboardInterrupt) as stopped:
        jn.release(TABLE, SCHEMA, budget, watch=stop_after(n_calls), **arguments)
    assert not path.exists()
    if not kept.exists():
        assert not Ledger(tmp_path / "x.ledger").events
        return
    assert "--resume" in stopped.value.__notes__[0]
    with pytest.raises(InvalidInput, match="Resume it"):
        jn.release(TABLE, SCHEMA, budget, **arguments)
    with pytest.raises(InvalidInput, match="got another budget"):
        jn.release(TABLE, SCHEMA, Budget(epsilon=0.5), resume=True, **arguments)
    made = jn.release(TABLE, SCHEMA, budget, resume=True, **arguments)
    assert path.exists()
    assert not kept.exists()
    assert made.guarantee is not None
    assert len(made.guarantee.events) == len(Ledger(tmp_path / "x.ledger").events)
    assert Ledger(tmp_path / "x.ledger").spent <= 1.0 + 1e-9


def interrupt(folder: Path, n_counts: int) -> tuple[Any, Ledger, Path]:
    """A run that was interrupted after so many counts, its ledger, and what is kept of it."""
    budget, kept = Budget(epsilon=1.0), folder / "x.jct.partial"
    run = prepare("mwem", budget, Workload.all_marginals(DOMAIN, 2), Neighbours.ADD_OR_REMOVE)
    ledger = Ledger.create(folder / "x.ledger", Budget(epsilon=1.0))
    journal = Journal.create(kept, {})
    with pytest.raises(KeyboardInterrupt):
        run(Curator(Interrupted(n_counts), ledger, journal))
    journal.close()
    return run, ledger, kept


def go_on(run: Any, ledger: Ledger, kept: Path, n_counts: int = 1000) -> Any:
    """Resume a run from a file, perhaps to be interrupted again."""
    journal = Journal(kept)
    try:
        return run(Curator(Interrupted(n_counts), ledger, journal))
    finally:
        journal.close()


@pytest.mark.parametrize("n_counts", [0, 1, 4])
def test_of_two_copies_only_one_goes_on(tmp_path: Path, n_counts: int) -> None:
    """Whoever resumes both copies of an unfinished release publishes one of them, not both."""
    run, ledger, kept = interrupt(tmp_path, n_counts)
    copy = tmp_path / "copy.partial"
    copy.write_bytes(kept.read_bytes())
    with pytest.raises(KeyboardInterrupt):
        go_on(run, ledger, kept, 1)
    before = ledger.path.read_bytes()
    with pytest.raises(InvalidInput, match="goes on from another copy"):
        go_on(run, ledger, copy)
    assert ledger.path.read_bytes() == before
    first = go_on(run, ledger, kept)
    with pytest.raises(InvalidInput, match="that is complete"):
        go_on(run, ledger, copy)
    again = go_on(run, ledger, kept)  # the same outcomes, and nothing new
    for one, other in zip(first.measurements, again.measurements, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


def test_a_copy_that_is_resumed_stops_the_run_that_still_works(tmp_path: Path) -> None:
    """It is refused at its next payment, before it looks at the data, and publishes nothing."""
    run, ledger, kept = interrupt(tmp_path, 2)
    copy = tmp_path / "copy.partial"

    class Copied(Interrupted):
        def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
            if not copy.exists():
                copy.write_bytes(kept.read_bytes())
                go_on(run, ledger, copy)
            return super().exact_counts(cliques)

    with pytest.raises(InvalidInput, match="that is complete"):
        run(Curator(Copied(1000), ledger, Journal(kept)))
    assert ledger.spent <= 1.0 + 1e-9


def test_an_old_copy_of_the_ledger_does_not_go_on(tmp_path: Path) -> None:
    """Nor does another ledger: what was drawn is not in it."""
    run, ledger, kept = interrupt(tmp_path, 3)
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    old = tmp_path / "old.ledger"
    old.write_bytes(b"".join(lines[:3]))
    with pytest.raises(InvalidInput, match="it is another ledger, or an old copy"):
        go_on(run, Ledger(old), kept)
    with pytest.raises(InvalidInput, match="it is another ledger, or an old copy"):
        go_on(run, Ledger.create(tmp_path / "new.ledger", Budget(epsilon=1.0)), kept)
    go_on(run, ledger, kept)


def test_what_was_interrupted_holds_its_price(tmp_path: Path) -> None:
    """Others cannot take what the rest needs; given back, it is reserved again on resuming."""
    run, ledger, kept = interrupt(tmp_path, 3)
    assert ledger.remaining == pytest.approx(0.0)
    (held,) = ledger.reserved
    assert held.cost.epsilon == pytest.approx(1.0 - ledger.spent)
    ledger.give_back(held.tag)
    assert ledger.remaining == pytest.approx(1.0 - ledger.spent)
    go_on(run, ledger, kept)
    assert ledger.spent == pytest.approx(1.0)
    assert not ledger.reserved


def test_a_refused_resumption_loses_nothing(tmp_path: Path) -> None:
    """If others have taken the rest, what is kept stays; it goes on when it can be paid for."""
    path, kept = tmp_path / "x.jct", tmp_path / "x.jct.partial"
    arguments: dict[str, Any] = {
        "ledger": tmp_path / "x.ledger", "path": path, "mechanism": "mwem",
    }  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        jn.release(TABLE, SCHEMA, Budget(epsilon=1.0), watch=stop_after(0), **arguments)
    ledger, content = Ledger(tmp_path / "x.ledger"), kept.read_bytes()
    ledger.give_back(ledger.reserved[0].tag)
    ledger.begin(Ticket("other", ""), [Pure(ledger.remaining).cost])
    with pytest.raises(BudgetExceeded):
        jn.release(TABLE, SCHEMA, Budget(epsilon=1.0), resume=True, **arguments)
    assert kept.read_bytes() == content
    ledger.give_back("other")
    jn.release(TABLE, SCHEMA, Budget(epsilon=1.0), resume=True, **arguments)
    assert path.exists()


@contextmanager
def full_beyond(n_bytes: int) -> Iterator[None]:
    """While it lasts, no file of this process can grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """Wherever the room ends, what was paid for is kept; with room again, it is not paid twice.

    In the ledger, in the file of the unfinished release, and in the release itself.
    """
    arguments: dict[str, Any] = {"mechanism": "mwem", "budget": Budget(epsilon=1.0)}
    tried = Path("whole", "x.jct")
    whole = jn.release(TABLE, SCHEMA, **arguments, **files_of(tmp_path / tried))
    assert whole.guarantee is not None
    n_events, size = len(whole.guarantee.events), (tmp_path / tried).stat().st_size
    stopped_in = set[str]()
    for n_bytes in range(100, size, size // 20):
        files = files_of(tmp_path / str(n_bytes) / "x.jct")
        full = None
        with full_beyond(n_bytes):
            try:
                jn.release(TABLE, SCHEMA, **arguments, **files)
            except (OSError, JunctureError) as error:
                full = find_full_file(error)
        if full is None:  # other choices by the mechanism: a release that needs less room
            assert files["path"].stat().st_size <= n_bytes
            continue
        assert not files["path"].exists()
        assert all(not each.name.startswith(".") for each in files["path"].parent.iterdir())
        kept = journal_path(files["path"])
        before = Ledger(files["ledger"]).events if files["ledger"].exists() else []
        assert kept.exists() or not before  # nothing that was paid for is lost
        stopped_in.add(full)
        made = jn.release(TABLE, SCHEMA, **arguments, **files, resume=kept.exists())
        ledger = Ledger(files["ledger"])
        assert made.guarantee is not None
        assert len(made.guarantee.events) == len(ledger.events) == n_events
        assert ledger.events[: len(before)] == before
        assert ledger.spent == pytest.approx(1.0)
        assert files["path"].exists()
        assert not kept.exists()
    assert stopped_in == {"x.jct", "x.jct.partial", "x.ledger"}


def test_an_outcome_without_room(tmp_path: Path) -> None:
    """Paid for, drawn, and no room to keep it: nobody has seen it, and it is not paid for again."""
    schema = jn.Schema({"n": jn.Integer(low=0, high=999)})
    table, files = pa.table({"n": [1, 2, 3]}), files_of(tmp_path / "wide" / "x.jct")
    arguments: dict[str, Any] = {"mechanism": "hdmm", "workload": [("n",)], **files}
    with full_beyond(6000), pytest.raises(OSError, match="File too large") as stopped:
        jn.release(table, schema, Budget(epsilon=1.0), **arguments)
    assert find_full_file(stopped.value) == "x.jct.partial"
    assert "--resume" in stopped.value.__notes__[0]
    (paid,) = Ledger(files["ledger"]).events
    made = jn.release(table, schema, Budget(epsilon=1.0), **arguments, resume=True)
    assert Ledger(files["ledger"]).events == [paid]
    assert made.model.domain["n"] == 1000


def test_a_ledger_without_room_for_its_header(tmp_path: Path) -> None:
    """No half of a ledger is left in the place of the next one."""
    path = tmp_path / "x.ledger"
    with full_beyond(20), pytest.raises(UnreadableFile, match="x.ledger: File too large"):
        Ledger.create(path, Budget(epsilon=1.0))
    assert Ledger.create(path, Budget(epsilon=1.0)).remaining == 1.0


def files_of(path: Path) -> dict[str, Any]:
    """A release and its ledger in a folder of their own."""
    path.parent.mkdir()
    return {"path": path, "ledger": path.with_suffix(".ledger")}


def find_full_file(error: BaseException) -> str:
    """The name of the file that could not grow, which every error says."""
    if isinstance(error, OSError):
        return Path(error.filename).name
    return next(n for n in ("x.jct.partial", "x.ledger", "x.jct") if n in str(error))


def test_the_command_on_a_full_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says which file had no room, what was paid and how to go on; `--resume` goes on."""
    csv, schema = tmp_path / "x.csv", tmp_path / "x.toml"
    write_csv(TABLE, csv)
    schema.write_text(schema_toml(SCHEMA))
    out, ledger = tmp_path / "x.jct", tmp_path / "x.ledger"
    words = ["release", str(csv), "--schema", str(schema), "--epsilon", "1", "--mechanism", "hdmm"]
    words += ["--out", str(out), "--ledger", str(ledger)]
    assert run(words) == 0
    room = out.stat().st_size - 100
    out.unlink()
    ledger.unlink()
    capsys.readouterr()
    with full_beyond(room):
        assert run(words) == 1
    said = capsys.readouterr().err
    assert f"error: {out}: File too large. Make room on the disk." in said
    assert "run it again with --resume" in said
    paid = ledger.read_bytes()
    assert run([*words, "--resume"]) == 0
    assert ledger.read_bytes().startswith(paid)
    assert Ledger(ledger).spent == pytest.approx(1.0)
    assert run(["ledger", "verify", str(ledger), "--release", str(out)]) == 0


def test_resume_needs_something_to_resume(tmp_path: Path) -> None:
    """Without an unfinished release there is nothing to go on with, and nothing is spent."""
    with pytest.raises(InvalidInput, match="must find an unfinished release"):
        jn.release(
            TABLE, SCHEMA, Budget(epsilon=1), ledger=tmp_path / "l", path=tmp_path / "x.jct",
            resume=True,
        )  # fmt: skip
    assert not (tmp_path / "l").exists()


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    """Nothing is read from a file that is not what it should be."""
    for content in (b"", b"[]\n", b'{"format": "other"}\n', b"\xff\n"):
        path = tmp_path / "x.partial"
        path.write_bytes(content)
        with pytest.raises(jn.errors.UnreadableFile):
            Journal(path)
    path.unlink()
    Journal.create(path, {}).close()
    with path.open("ab") as file:
        file.write(b'{"entries": 3, "outcome": ["!"]}\n')
    with pytest.raises(jn.errors.UnreadableFile, match="a line cannot be read"):
        Journal(path)
