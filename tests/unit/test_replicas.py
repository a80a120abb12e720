"""Replicas of releases by records, by Tiers, with known totals and with rules."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import juncture as jn
from juncture.engine.particles import Particles
from juncture.fit.replicas import ReplicaRecipe, Replicas
from juncture.fit.total import estimate_total
from juncture.privacy.accounting import Neighbours
from juncture.tables.known import Known

SMALL = ReplicaRecipe(seed=1, n_replicas=5)


def draw_columns(n: int = 800) -> dict[str, np.ndarray]:
    """Five columns of texts that depend on each other."""
    rng = np.random.default_rng(4)
    first = rng.integers(0, 3, n)
    columns = {"a": first}
    for name, size in zip("bcde", (2, 3, 2, 3), strict=True):
        columns[name] = np.where(rng.random(n) < 0.5, first % size, rng.integers(0, size, n))
    return columns


def make_schema(columns: dict[str, np.ndarray], known: tuple[Known, ...] = ()) -> jn.Schema:
    """Every value of every column, as a text."""
    values = {
        name: tuple(f"v{v}" for v in range(int(column.max()) + 1))
        for name, column in columns.items()
    }
    return jn.Schema(
        {name: jn.Categorical(values=each) for name, each in values.items()}, known=known
    )


def make_release(tmp_path: Path, mechanism: str, known: tuple[Known, ...] = ()) -> jn.Release:
    """A release of some pairs."""
    columns = draw_columns()
    table = pa.table({name: [f"v{v}" for v in column] for name, column in columns.items()})
    return jn.release(
        table, make_schema(columns, known), jn.Budget(epsilon=4.0), ledger=tmp_path / "ledger",
        mechanism=mechanism, workload=[("a", "b"), ("b", "c"), ("d", "e")],
    )  # fmt: skip


def check_intervals(release: jn.Release, clique: tuple[str, ...]) -> None:
    """Every measured cell has an interval that holds its answer; SQL has the same one."""
    found = release.project(clique, interval=0.95)
    assert np.isfinite(found.lower).all()
    assert (found.lower <= found.answer + 1e-9).all()
    assert (found.answer <= found.upper + 1e-9).all()
    assert {str(each) for each in found.bases} == {"measured"}
    names = ", ".join(clique)
    rows = release.sql(f"SELECT {names}, COUNT(*) AS n FROM t GROUP BY {names}", interval=0.95)
    ends = sorted(row[-1].upper for row in rows.intervals if row[-1] is not None)
    assert ends == pytest.approx(sorted(found.upper.reshape(-1)), rel=1e-6, abs=1e-6)


def test_releases_by_tiers(tmp_path: Path) -> None:
    """Tiers measures tables twice and stops at the noise; its replicas are as any others."""
    made = make_release(tmp_path, "tiers").with_replicas(SMALL)
    assert isinstance(made.replicas, Replicas)
    back = jn.load(made.save(tmp_path / "t.jct"))
    for each in back.measurements:
        check_intervals(back, each.clique)


def test_releases_by_records() -> None:
    """A fit by records has replicas by records; they can be made again."""
    rng = np.random.default_rng(2)
    domain = jn.Domain(dict.fromkeys("abcd", 3))
    measured = [
        jn.Measurement(
            pair, rng.multinomial(900, np.ones(9) / 9) + rng.normal(size=9) * 5, stddev=5.0
        )
        for pair in combinations(domain, 2)
    ]
    oracle = Particles(n_records=20_000, seed=1)
    fit = jn.estimate(domain, measured, total=900.0, oracle=oracle)
    made = jn.Release(model=fit.model, measurements=measured, fit=fit.summary, replicas=SMALL)
    check_intervals(made, ("b", "d"))
    half = made.project(("b", "d"), interval=0.95).half_width
    assert half.min() > 1.0
    assert half.max() < 60.0
    again = made.with_replicas().project(("b", "d"), interval=0.95)
    assert np.array_equal(again.half_width, half)


def test_known_totals_are_certain(tmp_path: Path) -> None:
    """What is public has an interval of no width, in tables and in SQL; all else has some."""
    columns = draw_columns()
    table = np.zeros((3, 2))
    np.add.at(table, (columns["a"], columns["b"]), 1.0)
    counts = tuple((f"v{i}", f"v{j}", float(table[i, j])) for i in range(3) for j in range(2))
    known = Known(("a", "b"), counts)
    (tmp_path / "one").mkdir()
    made = make_release(tmp_path / "one", "hdmm", (known,))
    for clique in (("a", "b"), ("b",), ("b", "a")):
        found = made.project(clique, interval=0.95)
        assert np.allclose(found.lower, found.answer, atol=1e-6)
        assert np.allclose(found.upper, found.answer, atol=1e-6)
        assert {str(each) for each in found.bases} == {"measured"}
    exact = made.project(("a", "b"), interval=0.95).answer
    assert np.allclose(exact, table, atol=1e-6)
    rows = made.sql("SELECT COUNT(*) AS n, AVG(CASE WHEN b = 'v1' THEN 1 ELSE 0 END) AS s FROM t "
                    "WHERE a = 'v1'", interval=0.95)  # fmt: skip
    assert [cell.half_width for cell in rows.intervals[0] if cell is not None] == pytest.approx(
        [0, 0], abs=1e-6
    )
    check_intervals(made, ("b", "c"))
    assert (made.project(("b", "c"), interval=0.95).half_width > 0.0).all()
    made_of = made.uncertainty.replicas
    errors = {
        clique: made_of.tables(made_of.fitted, clique) - made_of.tables(made_of.counted, clique)
        for clique in (("a", "b"), ("d", "e"))
    }
    known_error, other = (np.sqrt((each**2).mean()) for each in errors.values())
    assert known_error < other  # each replica knows its own table, nearly


@pytest.mark.parametrize("mechanism", ["mst", "mwem"])
def test_totals_that_were_estimated_are_unsure(tmp_path: Path, mechanism: str) -> None:
    """Where records come and go, their number has an interval as wide as its noise.

    MST rounds its estimate and MWEM takes that of the first tables: neither is a known number.
    """
    columns = draw_columns()
    table = pa.table({name: [f"v{v}" for v in column] for name, column in columns.items()})
    made = jn.release(
        table, make_schema(columns), jn.Budget(epsilon=1.0), ledger=tmp_path / "ledger",
        mechanism=mechanism, workload=[("a", "b"), ("b", "c"), ("d", "e")],
        neighbours=Neighbours.ADD_OR_REMOVE,
    )  # fmt: skip
    noise = estimate_total(made.model.domain, made.measurements).variance ** 0.5
    for release in (made, made.with_replicas()):
        (row,) = release.sql("SELECT COUNT(*) AS n FROM t", interval=0.95).intervals
        assert row[0] is not None
        assert noise < row[0].half_width
    spread = np.std(made.uncertainty.replicas.fitted[:-1, :3].sum(axis=1))
    assert 0.5 * noise < spread < 2.0 * noise
