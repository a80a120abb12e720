"""From an open schema to a release: the same from every engine, resumed, refused, and audited."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import juncture as jn
from audit import lower_bound
from juncture._util.watch import ignore_progress
from juncture.cli.main import run as run_command
from juncture.errors import BudgetExceeded, InvalidInput
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.events import Entry, Event
from juncture.privacy.ledger import Ledger, Ticket
from juncture.private.simulated import SeededSampler, SimulatedCurator
from juncture.private.sources.read import close_table, read_table
from juncture.tables.columns import (
    Boolean,
    OpenCategorical,
    OpenDate,
    OpenInteger,
    OpenNumber,
    Outside,
)
from juncture.tables.columns.grid import Scale
from juncture.tables.noise import Noise
from juncture.tables.person import Person
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import schema_toml
from juncture.workflow.closing import ClosedSchema, plan_closing

N = 3000
SCHEMA = Schema(
    {
        "gain": OpenInteger(low=0, high=99_999, outside=Outside.NEAREST),
        "pay": OpenNumber(low=0, high=1e6, scale=Scale.LOG, step=0.01, missing=True),
        "seen": OpenDate(low=dt.date(2020, 1, 1), high=dt.date(2024, 12, 31)),
        "member": Boolean(),
        "city": OpenCategorical(missing=True, missing_values=("?",)),
    }
)
CITIES = ("Basel", "Zürich", "Genève", 'say "x"', "O'Fallon", "back\\slash")
BUDGET = Budget(epsilon=3.0, delta=1e-6)


def table() -> pa.Table:
    """A column with a heavy value, a heavy-tailed one with missing values, dates, and a pair."""
    rng = np.random.default_rng(5)
    member = rng.random(N) < 0.4
    gain = np.where(rng.random(N) < 0.8, 0, rng.lognormal(8.0, 1.0, N).astype(int))
    pay = np.round(rng.lognormal(9.0 + member, 0.8), 2).tolist()
    days = rng.triangular(0, 1800, 1826, N).astype(int).tolist()
    return pa.table(
        {
            "gain": gain,
            "pay": [None if i % 17 == 0 else value for i, value in enumerate(pay)],
            "seen": [dt.date(2020, 1, 1) + dt.timedelta(days=day) for day in days],
            "member": member,
            # Six frequent values, some that a few records have, names of one record, and missing.
            "city": [_city(i) for i in range(N)],
        }
    )


def _city(row: int) -> str:
    if row % 5:
        return CITIES[row % 6]
    if row % 3 == 0:
        return f"pair {row // 30}"
    return ("?", "rare", f"only {row}", f"only {row}")[row // 5 % 4]


def csv_file(folder: Path) -> Path:
    """As CSV."""
    pa_csv.write_csv(table(), folder / "table.csv")
    return folder / "table.csv"


def relation(_folder: Path) -> Any:
    """As a table of a database."""
    connection = duckdb.connect()
    connection.register("arrow_table", table())
    connection.execute("CREATE TABLE people AS SELECT * FROM arrow_table")
    return connection.table("people")


ENGINES: dict[str, Callable[[Path], Any]] = {
    "arrow": lambda _: table(),
    "csv": csv_file,
    "relation": relation,
}


def close(source: Any, seed: int = 0) -> tuple[ClosedSchema, Any]:
    """The schema closed with repeatable noise, and the table under it."""
    curator = SimulatedCurator(source, NoLedger(), rng=np.random.default_rng(seed))
    closed = plan_closing(SCHEMA, BUDGET, Neighbours.ADD_OR_REMOVE).run(curator, ignore_progress)
    return closed, close_table(source, closed.schema, closed.codes)


class NoLedger(Ledger):
    """A budget without its file."""

    def __init__(self) -> None:
        self.budget, self.neighbours = Budget(epsilon=1e9), Neighbours.ADD_OR_REMOVE

    @property
    def events(self) -> list[Entry]:
        """None are kept."""
        return []

    def spend(self, *events: Event, ticket: Ticket | None = None) -> list[Entry]:  # noqa: ARG002
        """Nothing to write."""
        return []


@pytest.fixture(scope="module")
def expected() -> tuple[ClosedSchema, Any]:
    """What a table in memory gives."""
    return close(read_table(table(), SCHEMA))


@pytest.mark.parametrize("kind", [*ENGINES, pytest.param("spark", marks=pytest.mark.slow)])
def test_every_engine_finds_the_same(
    kind: str, tmp_path: Path, expected: Any, request: pytest.FixtureRequest
) -> None:
    """The same bins from the same noise, and the same counts under them."""
    if kind == "spark":
        session = request.getfixturevalue("spark")
        pq.write_table(table(), tmp_path / "table.parquet")
        source = read_table(session.read.parquet(str(tmp_path / "table.parquet")), SCHEMA)
    else:
        source = read_table(ENGINES[kind](tmp_path), SCHEMA)
    closed, counted = close(source)
    assert closed.schema == expected[0].schema
    assert counted.domain == closed.schema.domain
    for clique in [("gain",), ("pay", "member"), ("seen",), ("city", "member")]:
        ours, theirs = (each.exact_counts([clique])[0].values for each in (counted, expected[1]))
        np.testing.assert_array_equal(ours, theirs)


def test_bins_follow_the_data(expected: Any) -> None:
    """The heavy value has a bin of its own, and others hold about as much as each other."""
    closed, counted = expected
    gain = closed.schema.columns["gain"]
    assert gain.starts[:2] == (0, 1)
    pay = counted.exact_counts([("pay",)])[0].values
    regular = pay[: closed.schema.columns["pay"].n_regular]
    assert len(regular) >= 5
    assert regular.max() <= 0.4 * N
    assert all(each.fine is not None for each in list(closed.schema.columns.values())[:3])


def test_a_release_of_an_open_schema_is_complete(tmp_path: Path) -> None:
    """One call: paid for in all, with the fine histograms, and the same after it was saved."""
    made = jn.release(
        table(), SCHEMA, BUDGET, ledger=tmp_path / "x.ledger", path=tmp_path / "x.jct"
    )
    assert made.guarantee is not None
    assert made.guarantee.state(N).epsilon <= 3.0 * (1 + 1e-9)
    assert Ledger(tmp_path / "x.ledger").spent == pytest.approx(3.0, rel=1e-6)
    assert [each.name for each in made.found] == ["gain", "pay", "seen", "city"]
    known = set(made.schema.columns["city"].regular)  # type: ignore[union-attr]
    assert set(CITIES) <= known <= {*CITIES, "rare"}
    again = jn.load(tmp_path / "x.jct")
    assert again.found == made.found
    assert again.schema == made.schema
    query = (
        "SELECT COUNT(*), AVG(gain) FROM t WHERE gain BETWEEN 1 AND 1234 AND seen > '2023-05-05'"
    )
    assert again.sql(query).rows == made.sql(query).rows
    zeros = again.sql("SELECT COUNT(*) FROM t WHERE gain = 0").rows[0][0]
    assert zeros == pytest.approx(0.8 * N, rel=0.1)
    records = again.synthesize(rng=1).to_arrow()
    share = np.mean(np.array(records["gain"].to_pylist()) == 0)
    assert share == pytest.approx(0.8, abs=0.06)
    assert json.loads(json.dumps([each.to_json() for each in made.found]))


@pytest.mark.parametrize("budget", [Budget(epsilon=3.0), Budget(rho=0.3)], ids=str)
def test_other_budgets_pay_for_bins_too(tmp_path: Path, budget: Budget) -> None:
    """A pure epsilon and a rho, to the last bit; so do replaced records."""
    schema = Schema({name: each for name, each in SCHEMA.columns.items() if name != "city"})
    for neighbours in RECORD_NEIGHBOURS:
        ledger = tmp_path / f"{neighbours}.ledger"
        made = jn.release(
            table(), schema, budget, ledger=ledger, neighbours=neighbours, workload=[("gain",)],
            binning_share=0.4,
        )  # fmt: skip
        assert Ledger(ledger).spent == pytest.approx(budget.limit)
        spent = budget.compose([each.cost for each in made.found])
        assert spent == pytest.approx(0.4 * budget.limit)


def test_an_interrupted_release_goes_on_with_its_bins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted after the bins were found: they are not paid for again, and stay the same."""
    files = {"ledger": tmp_path / "x.ledger", "path": tmp_path / "x.jct"}
    monkeypatch.setattr("juncture.workflow.release.close_table", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        jn.release(table(), SCHEMA, BUDGET, **files)  # type: ignore[arg-type]
    paid = Ledger(files["ledger"]).events
    assert paid
    monkeypatch.undo()
    with pytest.raises(InvalidInput, match="another binning_share"):
        jn.release(table(), SCHEMA, BUDGET, **files, resume=True, binning_share=0.1)  # type: ignore[arg-type]
    made = jn.release(table(), SCHEMA, BUDGET, **files, resume=True)  # type: ignore[arg-type]
    assert made.guarantee is not None
    assert made.guarantee.events[: len(paid)] == tuple(entry.publish() for entry in paid)
    assert Ledger(files["ledger"]).spent == pytest.approx(3.0, rel=1e-6)


def _interrupt(*_arguments: object) -> None:
    raise KeyboardInterrupt


def test_errors_come_before_anything_is_spent(tmp_path: Path) -> None:
    """Of the schema, the table, the share, the ledger: no file is left behind."""
    ledger = tmp_path / "x.ledger"
    bad = pa.table(
        {**dict(zip(table().column_names, table().columns, strict=True)), "member": ["?"] * N}
    )
    with pytest.raises(InvalidInput, match="'member' that are not true or false"):
        jn.release(bad, SCHEMA, BUDGET, ledger=ledger)
    for budget in (Budget(epsilon=1.0), Budget(rho=0.1)):
        with pytest.raises(InvalidInput, match="must have an epsilon and a delta where values are"):
            jn.release(table(), SCHEMA, budget, ledger=ledger)
    with pytest.raises(InvalidInput, match="`binning_share` must be above 0 and below 1; got 2"):
        jn.release(table(), SCHEMA, BUDGET, ledger=ledger, binning_share=2.0)
    other = jn.mechanisms.MWEM(Budget(epsilon=1.0))
    with pytest.raises(InvalidInput, match="must have the budget of the release"):
        jn.release(table(), SCHEMA, BUDGET, ledger=ledger, mechanism=other)
    assert not ledger.exists()
    Ledger.create(ledger, Budget(epsilon=1.0, delta=1e-6))
    with pytest.raises(BudgetExceeded):
        jn.release(table(), SCHEMA, Budget(epsilon=1.5, delta=1e-6), ledger=ledger)
    assert Ledger(ledger).spent == 0.0


def test_the_commands_take_an_open_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check, plan, release, report: each says what is found and what that costs."""
    schema, data = tmp_path / "people.toml", csv_file(tmp_path)
    schema.write_text(schema_toml(SCHEMA))
    assert run_command(["schema", "check", str(schema)]) == 0
    assert "found privately" in capsys.readouterr().out
    budget = ["--epsilon", "3", "--delta", "1e-6"]
    assert run_command(["plan", "--schema", str(schema), *budget]) == 0
    planned = capsys.readouterr().out
    assert "Found privately first" in planned
    assert "cells in a tree of" in planned
    files = ["--out", str(tmp_path / "x.jct"), "--ledger", str(tmp_path / "x.ledger")]
    command = ["release", str(data), "--schema", str(schema), *budget, *files]
    assert run_command([*command, "--mechanism", "mst"]) == 0
    assert "found     gain:" in capsys.readouterr().out
    assert run_command(["report", str(tmp_path / "x.jct"), "--out", str(tmp_path / "x.html")]) == 0
    page = (tmp_path / "x.html").read_text()
    assert "found privately" in page
    assert "The bins of gain" in page
    assert "The values of city" in page
    assert "only 2" not in page


class HalfNoise(SeededSampler):
    """A broken sampler: half the noise."""

    def add_noise(self, values: Any, noise: Noise, scale: float) -> Any:
        """See `Sampler.add_noise`."""
        return super().add_noise(values, noise, 0.5 * scale)


@pytest.mark.slow
def test_the_audit_of_binning_catches_half_the_noise() -> None:
    """The likelihood ratio of all that was measured, on tables that differ in one record."""
    schema, epsilon = Schema({"x": OpenInteger(low=0, high=63)}), 1.0
    plan = plan_closing(schema, Budget(epsilon=2.0 * epsilon), Neighbours.ADD_OR_REMOVE, 0.5)
    (column,) = plan.columns
    values = [5, 9, 9, 40, 63]

    def audit(kind: type[SeededSampler]) -> float:
        sides = []
        for side, rows in enumerate((values, [*values, 40])):
            source = read_table(pa.table({"x": rows}), schema)
            curator = SimulatedCurator(source, NoLedger(), rng=np.random.default_rng(side))
            curator._sampler = kind(np.random.default_rng(side + 10))
            ratios = [_log_ratio(column, curator) for _ in range(4000)]
            sides.append(np.array(ratios))
        return lower_bound(*sides)

    def _log_ratio(column: Any, curator: SimulatedCurator) -> float:
        total = 0.0
        counts = np.bincount(values, minlength=64).astype(float)
        more = counts + np.eye(64)[40]
        for request, each in zip(
            column.requests, curator.measure_all(column.requests), strict=True
        ):
            query = each.query
            scale = float(each.stddev) / np.sqrt(2.0)
            less, plus = (query.matrix(64) @ c for c in (counts, more))  # type: ignore[union-attr]
            total += float((np.abs(each.values - less) - np.abs(each.values - plus)).sum()) / scale
            assert request.price.amount <= epsilon
        return total

    assert audit(SeededSampler) <= epsilon
    assert audit(HalfNoise) > epsilon


def test_bins_of_persons_with_several_rows(tmp_path: Path) -> None:
    """Only rows that count are binned and released, and the guarantee is about persons."""
    rows = pa.table(
        {"patient": np.repeat(np.arange(600), 5), "gain": table()["gain"], "seen": table()["seen"]}
    )
    person = Person("patient", max_rows=2)
    schema = Schema({name: SCHEMA.columns[name] for name in ("gain", "seen")}, person=person)
    counted = read_table(rows, schema)
    plan = plan_closing(schema, BUDGET, Neighbours.ADD_OR_REMOVE.of(person))
    alone = plan_closing(schema, BUDGET, Neighbours.ADD_OR_REMOVE)
    assert plan.columns[0].strategy.error > 1.5 * alone.columns[0].strategy.error  # type: ignore[attr-defined]
    ledger = Ledger.create(tmp_path / "y.ledger", BUDGET, Neighbours.ADD_OR_REMOVE.of(person))
    curator = SimulatedCurator(counted, ledger, rng=np.random.default_rng(0))
    closed = plan.run(curator, ignore_progress)
    assert close_table(counted, closed.schema, closed.codes).exact_n_records == 1200  # type: ignore[arg-type]
    made = jn.release(rows, schema, BUDGET, ledger=tmp_path / "x.ledger")
    assert made.guarantee is not None
    assert "one person with up to 2 rows" in str(made.guarantee)
    assert made.model.total == pytest.approx(1200, rel=0.3)
