"""One call gives what the command gives: complete, paid for, and refused before it costs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.csv as pc
import pytest

import juncture as jn
from juncture.cli.main import run as run_command
from juncture.errors import BudgetExceeded, InvalidInput, NotPublic
from juncture.mechanisms.registry import prepare
from juncture.privacy import Pure
from juncture.private.simulated import SimulatedCurator
from juncture.workflow.release import warn_of_long_fit
from tables import SCHEMA, Table, write_table

BUDGET = jn.Budget(epsilon=4.0)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A small private table."""
    return write_table(tmp_path_factory.mktemp("call"))


def test_it_gives_what_the_command_gives(table: Table, tmp_path: Path) -> None:
    """The same parts, the same guarantee, the same workload; only the noise differs."""
    ours = jn.release(table.data, table.schema, BUDGET, ledger=tmp_path / "a.ledger")
    files = ["--out", str(tmp_path / "b.jct"), "--ledger", str(tmp_path / "b.ledger")]
    command = ["release", str(table.data), "--schema", str(table.schema), "--epsilon", "4", *files]
    assert run_command(command) == 0
    theirs = jn.load(tmp_path / "b.jct")
    for made in (ours, theirs):
        assert made.guarantee is not None
        assert made.guarantee.budget == BUDGET
        assert made.guarantee.neighbours == jn.Neighbours.ADD_OR_REMOVE
        assert made.guarantee.epsilon == pytest.approx(4.0)
        assert made.fit is not None
        assert made.schema is not None
        assert made.mechanism == "hdmm"
        assert len(made.workload) == len(made.measurements) == 3
        assert made.sql("SELECT COUNT(*) FROM people WHERE sex = 'f'").rows[0][0] > 0
    assert ours.model.plan.cliques == theirs.model.plan.cliques
    assert jn.Ledger(tmp_path / "a.ledger").spent == pytest.approx(4.0)


TABLES: dict[str, Any] = {
    "pandas": pd.read_csv,
    "polars": pl.read_csv,
    "arrow": pc.read_csv,
    "duckdb": duckdb.read_csv,
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_every_library(kind: str, table: Table, tmp_path: Path) -> None:
    """Rows go where their library keeps them; counts are those of the file."""
    given = TABLES[kind](str(table.data))
    made = jn.release(
        given, jn.read_schema(table.schema), jn.Budget(epsilon=1e5), ledger=tmp_path / "ledger",
        workload=[("sex",), ("age", "sex")],
    )  # fmt: skip
    frame = pd.read_csv(table.data)
    counts = frame.groupby("sex").size().to_numpy()
    np.testing.assert_allclose(made.project(("sex",)).values, counts, atol=2.0)


def test_it_saves_and_continues_a_ledger(table: Table, tmp_path: Path) -> None:
    """Two releases from one ledger; each holds its own events, a third is refused unread."""
    ledger = jn.Ledger.create(tmp_path / "shared", jn.Budget(epsilon=3.0), jn.Neighbours.REPLACE)
    half = jn.Budget(epsilon=1.5)
    first = jn.release(
        table.data, table.schema, half, ledger=ledger.path, path=tmp_path / "one.jct"
    )
    second = jn.release(table.data, table.schema, half, ledger=ledger.path, mechanism="mwem")
    assert jn.load(tmp_path / "one.jct").guarantee == first.guarantee
    assert first.guarantee is not None
    assert second.guarantee is not None
    events = [*first.guarantee.events, *second.guarantee.events]
    assert events == [event.publish() for event in ledger.events]
    assert second.guarantee.n_earlier == len(first.guarantee.events)
    assert second.guarantee.epsilon == pytest.approx(1.5)
    with pytest.raises(BudgetExceeded):
        jn.release(table.data, table.schema, half, ledger=ledger.path)
    with pytest.raises(InvalidInput, match="must be those of the ledger"):
        jn.release(
            table.data, table.schema, half, ledger=ledger.path,
            neighbours=jn.Neighbours.ADD_OR_REMOVE,
        )  # fmt: skip


def test_events_of_another_process_are_not_ours(table: Table, tmp_path: Path) -> None:
    """Somebody else spends from the same ledger between our rounds: their events stay theirs."""
    path = jn.Ledger.create(tmp_path / "shared", jn.Budget(epsilon=9.0)).path
    source = jn.read_table(table.data, table.schema)
    other = SimulatedCurator(source, jn.Ledger(path), rng=np.random.default_rng(0))

    def interfere(_what: str, done: int, _total: int) -> None:
        if done == 1:
            other.measure(("age",), Pure(0.25))

    result = jn.mechanisms.MWEM(jn.Budget(epsilon=2.0), rounds=3).run(
        jn.Curator(source, jn.Ledger(path)),
        jn.Workload.all_marginals(source.domain, 2),
        watch=interfere,
    )
    everything = jn.Ledger(path).events
    assert len(everything) == 10  # three single columns, three rounds of two, and theirs
    assert [e.number for e in result.guarantee.events] == [1, 2, 3, 4, 5, 7, 8, 9, 10]
    assert result.guarantee.epsilon == pytest.approx(2.0)
    assert other.guarantee.epsilon == pytest.approx(0.25)


def test_what_is_refused_costs_nothing(table: Table, tmp_path: Path) -> None:
    """Drafts, unknown columns, models that are too large: no ledger is created."""
    ledger = tmp_path / "ledger"
    draft = tmp_path / "draft.toml"
    marked = "[origin]\nderived_from_private_data = true\nconfirmed_public = false\n"
    draft.write_text(SCHEMA + marked)
    with pytest.raises(NotPublic):
        jn.release(table.data, draft, BUDGET, ledger=ledger)
    with pytest.raises(InvalidInput):
        jn.release(table.data, table.schema, BUDGET, ledger=ledger, workload=[("nobody",)])
    with pytest.raises(InvalidInput, match="replace one record for privbayes"):
        jn.release(table.data, table.schema, BUDGET, ledger=ledger, mechanism="privbayes")
    with pytest.raises(InvalidInput, match="noise of a standard deviation below"):
        jn.release(table.data, table.schema, jn.Budget(epsilon=1e-9), ledger=ledger)
    assert not ledger.exists()


def test_a_failure_after_paying_says_what_was_spent(table: Table, tmp_path: Path) -> None:
    """The error carries a note with what stays spent."""
    ledger, folder = tmp_path / "ledger", tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError, match="directory") as failure:
        jn.release(table.data, table.schema, BUDGET, ledger=ledger, path=folder)
    assert "3 events had been paid for" in failure.value.__notes__[0]
    assert "4 of epsilon 4 spent" in failure.value.__notes__[0]
    assert jn.Ledger(ledger).spent == pytest.approx(4.0)


def test_a_path_that_cannot_be_written_costs_nothing(table: Table, tmp_path: Path) -> None:
    """Whether the release can be written is known before anything is paid."""
    ledger = tmp_path / "ledger"
    with pytest.raises(InvalidInput, match="where a file can be written"):
        jn.release(table.data, table.schema, BUDGET, ledger=ledger, path=table.data / "inside.jct")
    assert not ledger.exists()


def test_strategies_and_plans_are_made_once(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One optimisation and one plan for a whole release."""
    from juncture.mechanisms import hdmm  # noqa: PLC0415

    calls: list[str] = []
    optimise, build = hdmm.optimise_union, jn.Plan.build.__func__  # type: ignore[attr-defined]

    def counted_optimise(*args: Any, **kwargs: Any) -> Any:
        calls.append("strategy")
        return optimise(*args, **kwargs)

    def counted_build(cls: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append("plan")
        return build(cls, *args, **kwargs)

    monkeypatch.setattr(hdmm, "optimise_union", counted_optimise)
    monkeypatch.setattr(jn.Plan, "build", classmethod(counted_build))
    jn.release(table.data, table.schema, BUDGET, ledger=tmp_path / "ledger", mechanism="hdmm")
    assert sorted(calls) == ["plan", "strategy"]


def test_a_mistyped_ledger_begins_no_new_budget(table: Table, tmp_path: Path) -> None:
    """A name close to that of a ledger beside it is taken for a mistake, unless said to be new."""
    budget = jn.Budget(epsilon=1.0)
    ledger = jn.Ledger.create(tmp_path / "people.ledger", budget)
    for name in ("poeple.ledger", "people.leger", "people.ledger "):
        with pytest.raises(InvalidInput, match="a new ledger is a new budget"):
            jn.release(table.data, table.schema, budget, ledger=tmp_path / name)
        assert not (tmp_path / name).exists()
    with pytest.raises(InvalidInput, match="which does not exist"):
        jn.release(table.data, table.schema, budget, ledger=tmp_path / "x", new_ledger=False)
    with pytest.raises(InvalidInput, match="which exists"):
        jn.release(table.data, table.schema, budget, ledger=ledger.path, new_ledger=True)
    assert not ledger.events
    jn.release(table.data, table.schema, budget, ledger=tmp_path / "poeple.ledger", new_ledger=True)
    assert len(jn.Ledger(tmp_path / "poeple.ledger").events) > 0


def test_a_long_fit_is_announced() -> None:
    """Before anything is spent: how long the fit takes, and what takes less."""
    workload = jn.Workload.all_marginals(jn.Domain({f"x{i}": 4 for i in range(60)}), 2)
    budget = jn.Budget(rho=0.1)
    for name in ("direct", "residual"):
        run = prepare(name, budget, workload, jn.Neighbours.ADD_OR_REMOVE)
        with pytest.warns(UserWarning, match=r"1,770 sets of columns takes about \d+ min.*tiers"):
            warn_of_long_fit(run)
    few = jn.Workload.all_marginals(jn.Domain({f"x{i}": 4 for i in range(6)}), 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_long_fit(prepare("direct", budget, few, jn.Neighbours.ADD_OR_REMOVE))
