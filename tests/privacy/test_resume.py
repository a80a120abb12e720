"""Interrupted releases go on: nothing is paid for twice, and nothing that was paid for is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import juncture as jn
from juncture.errors import InvalidInput
from juncture.mechanisms.registry import prepare
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.privacy.price import Pure
from juncture.private.curator import Curator
from juncture.private.journal import Journal, journal_path
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
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
    seen = kept.read_text().count("\n") - 1
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
