"""Rules and known totals hold in every mechanism's model, its answers and its records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from juncture.engine.particles import Particles
from juncture.errors import InvalidInput
from juncture.fit.public_facts import PublicFacts
from juncture.model.model import Model
from juncture.model.record_distribution import RecordDistribution
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.check import exact_check
from juncture.private.curator import Curator
from juncture.private.sources.duck import DuckDB
from juncture.private.sources.read import read_table
from juncture.private.sources.source import Source
from juncture.publish.release import load
from juncture.publish.report.document import render_report
from juncture.tables.columns import Categorical, Integer, Outside
from juncture.tables.columns.open_number import OpenNumber
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.known import Known
from juncture.tables.measurement import Measurement
from juncture.tables.person import Person
from juncture.tables.rules import Broken, Rule
from juncture.tables.schema import Schema
from juncture.workflow.release import release

STATES, REGIONS = ("single", "married", "widowed"), ("north", "south")
RULE = Rule("age < 15 AND state <> 'single'", Broken.SET_ASIDE)
SCHEMA = Schema(
    {
        "age": Integer(low=0, high=39, width=5),
        "state": Categorical(values=STATES),
        "region": Categorical(values=REGIONS),
    },
    rules=(RULE,),
    known=(
        Known(("state",), (("single", 500), ("married", 210), ("widowed", 90))),
        Known(("region",), (("north", 470), ("south", 330))),
    ),
)
N, N_BROKEN = 800, 23


def people() -> pa.Table:
    """People of whom some break the rule."""
    rng = np.random.default_rng(2)
    age = rng.integers(0, 40, N)
    state = np.where(age < 15, "single", rng.choice(STATES, N))
    young = np.flatnonzero(age < 15)[:N_BROKEN]
    state[young] = "married"
    return pa.table({
        "age": age, "state": state.astype(object), "region": rng.choice(REGIONS, N).astype(object),
        "who": np.arange(N) // 2,
    })  # fmt: skip


MECHANISMS = {
    "hdmm": Budget(epsilon=1.0),
    "mwem": Budget(epsilon=1.0),
    "mst": Budget(rho=0.1),
    "aim": Budget(rho=0.1),
    "tiers": Budget(epsilon=1.0, delta=1e-6),
    "residual": Budget(rho=0.1),
    "independent": Budget(epsilon=1.0),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_facts_hold_in_the_release(name: str, tmp_path: Path) -> None:
    """In marginals, in SQL, in records, after loading; and nothing else was spent."""
    path = tmp_path / "people.jct"
    budget = MECHANISMS[name]
    release(people(), SCHEMA, budget, ledger=tmp_path / "l", mechanism=name, path=path)
    made = load(path)
    assert made.model.total == pytest.approx(800.0, rel=1e-9)
    assert made.project(("state",)).values == pytest.approx([500, 210, 90], rel=1e-6)
    assert made.project(("region",)).values == pytest.approx([470, 330], rel=1e-6)
    assert (made.project(("age", "state")).values[:3, 1:] == 0.0).all()
    page = render_report(made)
    assert "Never <code>age &lt; 15 AND state" in page
    assert "800 records by region, exactly." in page
    asked = made.sql(f"SELECT COUNT(*) FROM t WHERE {RULE.never}")
    assert asked.rows[0][0] == 0.0
    for records in (made.sample(2000, rng=0), made.synthesize(rng=0)):
        assert not ((records["age"] < 3) & (records["state"] > 0)).any()
    assert budget.allows([event.cost for event in Ledger(tmp_path / "l").events])


def test_a_model_is_moved_to_the_nearest_one_with_the_facts() -> None:
    """That of iterative proportional fitting on the dense table of all records."""
    rng = np.random.default_rng(1)
    domain = Domain({"a": 3, "b": 2, "c": 4})
    factors = [Factor(domain.project(c), rng.normal(size=domain.project(c).shape))
               for c in (("a", "b"), ("b", "c"))]  # fmt: skip
    model = Model.of_potentials(domain, factors, 50.0)
    mask = np.zeros((3, 4), dtype=bool)
    mask[0, 1:3] = True
    first = Factor(domain.project(("a", "c")), np.where(mask, 0.0, rng.uniform(1, 5, (3, 4))))
    other = rng.uniform(1, 5, 2)
    second = Factor(domain.project(("b",)), other / other.sum() * first.values.sum())
    facts = PublicFacts(domain, {("a", "c"): mask}, (first, second))
    found = facts.impose(model)
    dense = model.project(("a", "b", "c")).values * ~mask[:, None, :]
    for _ in range(500):
        own = dense.sum(axis=1)
        dense *= np.divide(first.values, own, out=np.zeros_like(own), where=own > 0)[:, None]
        dense *= (second.values / dense.sum(axis=(0, 2)))[:, None]
    assert found.project(("a", "b", "c")).values == pytest.approx(dense, rel=1e-7, abs=1e-12)
    assert found.project(("b",)).values == pytest.approx(second.values, rel=1e-9)


@pytest.mark.parametrize("oracle", ["exact", "records"])
def test_facts_hold_by_a_tree_and_by_records(oracle: str) -> None:
    """Excluded cells are empty, known tables that overlap are exact, the rest fits its noise."""
    rng = np.random.default_rng(3)
    domain = Domain({"a": 4, "b": 3, "c": 2})
    truth = rng.uniform(1.0, 9.0, domain.shape)
    truth[0, 1:] = 0.0
    truth *= 5000.0 / truth.sum()
    known = (
        Factor(domain.project(("a", "c")), truth.sum(axis=1)),
        Factor(domain.project(("b",)), truth.sum(axis=(0, 2))),
    )
    zeros: dict[Clique, Any] = {("a", "b"): truth.sum(axis=2) == 0.0}
    noisy = Measurement(
        ("a", "b"), truth.sum(axis=2).reshape(-1) + rng.normal(0, 20, 12), stddev=20.0
    )
    factory: Any = "exact" if oracle == "exact" else Particles(n_records=20_000)
    fit = PublicFacts(domain, zeros, known).fit([noisy], 5100.0, oracle=factory)
    assert isinstance(fit.model.distribution, RecordDistribution) == (oracle == "records")
    assert fit.model.total == pytest.approx(5000.0, rel=1e-9)
    for table in known:
        found = fit.model.project(table.domain.attributes).values
        assert found == pytest.approx(table.values, rel=1e-6)
    found = fit.model.project(("a", "b")).values
    assert (found[0, 1:] == 0.0).all()
    raw = np.abs(noisy.values.reshape(4, 3) - truth.sum(axis=2)).mean()
    assert np.abs(found - truth.sum(axis=2)).mean() < raw


def engines(request: pytest.FixtureRequest, folder: Path, schema: Schema, name: str) -> Source:
    """The table under a schema, in an engine."""
    pq.write_table(people(), folder / "people.parquet")
    if name == "memory":
        return read_table(people(), schema)
    if name == "duckdb":
        return DuckDB(folder / "people.parquet", schema)
    session = request.getfixturevalue("spark")
    return read_table(session.read.parquet(str(folder / "people.parquet")), schema)


ENGINES = ["memory", "duckdb", pytest.param("spark", marks=pytest.mark.slow)]


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_break_a_rule(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Are counted in no table, or end the reading with their number; with persons as without."""
    source = engines(request, tmp_path, SCHEMA, engine)
    raw = people().to_pandas()
    kept = raw[~((raw["age"] < 15) & (raw["state"] != "single"))]
    assert source.exact_n_records == len(kept) == N - N_BROKEN
    (counts,) = source.exact_counts([("age", "state")])
    assert (counts.values[:3, 1:] == 0).all()
    assert counts.values.sum() == len(kept)
    one_each = replace(SCHEMA, person=Person("who", 1))
    limited = engines(request, tmp_path, one_each, engine)
    # Whoever has a row that breaks no rule counts once: others take no place of it.
    assert limited.exact_n_records == kept["who"].nunique()
    strict = replace(SCHEMA, rules=(replace(RULE, broken=Broken.ERROR),))
    with pytest.raises(InvalidInput, match=f"got {N_BROKEN} of which it is true that age < 15"):
        engines(request, tmp_path, strict, engine)


def test_a_check_says_which_rows_would_not_count(tmp_path: Path) -> None:
    """And whether the table would be refused because of its rows."""
    path = tmp_path / "people.parquet"
    pq.write_table(people(), path)
    limited = replace(SCHEMA, person=Person("who", 1))
    found = exact_check(path, limited)
    counted = read_table(path, limited).exact_n_records
    assert found.uncounted == {"set aside": N_BROKEN, "beyond the limit": N - N_BROKEN - counted}
    assert not found.refused_rows
    strict = replace(SCHEMA, rules=(replace(RULE, broken=Broken.ERROR),))
    assert f"got {N_BROKEN} of which it is true" in exact_check(path, strict).refused_rows
    assert exact_check(path, replace(SCHEMA, rules=())).uncounted == {}


def test_what_is_found_privately_cannot_be_known(tmp_path: Path) -> None:
    """Totals of private bins are refused; rules about them hold in the bins that are found."""
    open_age = OpenNumber(low=0, high=40, step=1.0, max_bins=8, outside=Outside.NEAREST)
    with pytest.raises(InvalidInput, match="whose bins and values are public; got age"):
        Schema({"age": open_age}, known=(Known(("age",), ((3, 1),)),))
    schema = Schema(
        {**SCHEMA.columns, "age": open_age}, rules=SCHEMA.rules, known=SCHEMA.known,
        person=Person("who", 2),
    )  # fmt: skip
    made = release(people(), schema, Budget(epsilon=8.0), ledger=tmp_path / "l", mechanism="hdmm")
    assert made.schema is not None
    for zeros in made.schema.zeros:
        assert (made.project(zeros.clique).values[zeros.excluded] == 0.0).all()
    assert made.project(("state",)).values == pytest.approx([500, 210, 90], rel=1e-6)
    assert "one person with up to 2 rows" in str(made.guarantee)


def test_rows_set_aside_make_their_number_private(tmp_path: Path) -> None:
    """So neighbours that replace a record are refused, unspent and before the table is read."""
    ledger = tmp_path / "l"
    with pytest.raises(InvalidInput, match="how many records are left is private"):
        release(
            "no file", SCHEMA, Budget(epsilon=1.0), ledger=ledger, neighbours=Neighbours.REPLACE
        )
    assert not ledger.exists()
    book = Ledger.create(ledger, Budget(epsilon=1.0), Neighbours.REPLACE)
    with pytest.raises(InvalidInput, match="how many records are left is private"):
        Curator(read_table(people(), SCHEMA), book)
