"""The check: what is drawn, what it costs, and the widths that follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import juncture as jn
from juncture.errors import InvalidInput
from juncture.fit.basis import Bases, Basis
from juncture.fit.carried_noise import CarriedNoise
from juncture.fit.check import Check, draw_check
from juncture.fit.plain_estimates import PlainEstimates
from juncture.fit.replicas import ReplicaRecipe
from juncture.mechanisms.checked import prepare_checked, split_budget
from juncture.privacy.ledger import Ledger
from juncture.publish.uncertainty import Uncertainty
from juncture.tables.queries.products import Kron
from juncture.tables.workload import Workload

DOMAIN = jn.Domain({"a": 3, "b": 4, "c": 2, "d": 5})


def make_table(n: int = 2000) -> tuple[pa.Table, jn.Schema]:
    """A chain of dependent columns."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.7, a, rng.integers(0, 4, n))
    c = rng.random(n) < 0.2 + 0.2 * b
    schema = jn.Schema(
        {"a": jn.Integer(low=0, high=2), "b": jn.Integer(low=0, high=3), "c": jn.Boolean()}
    )
    return pa.table({"a": a, "b": b, "c": c}), schema


@pytest.mark.parametrize(
    "budget", [jn.Budget(epsilon=2), jn.Budget(rho=0.1), jn.Budget(epsilon=1, delta=1e-6)]
)
def test_the_budget_pays_for_both(budget: jn.Budget) -> None:
    """The mechanism and the check together cost the budget, and no more."""
    rest, price = split_budget(budget, 0.1)
    assert price.amount == pytest.approx(0.1 * budget.price.amount)
    workload = Workload.of_marginals(DOMAIN, [("a", "b"), ("b", "c")])
    run = prepare_checked("hdmm", budget, 0.1, workload, jn.Neighbours.ADD_OR_REMOVE)
    assert budget.allows(run.costs)
    assert budget.compose(run.costs) == pytest.approx(budget.limit, rel=1e-6)
    assert rest.price.amount + price.amount == pytest.approx(budget.price.amount)


def test_what_is_drawn() -> None:
    """A table holds columns that were never measured together; there is none if all were."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        ((clique, query),) = draw_check(DOMAIN, [("a", "b"), ("b", "c", "d")], rng)
        assert {"a", "c"} <= set(clique) or {"a", "d"} <= set(clique)
        assert isinstance(query, Kron)
        assert [block.n_rows(DOMAIN[name]) for name, block in query.blocks.items()] == [2] * len(
            clique
        )
    assert draw_check(DOMAIN, [("a", "b", "c", "d")], np.random.default_rng(0)) == []


def test_a_release_with_a_check(tmp_path: Path) -> None:
    """The ledger shows the check; assumed answers have intervals, from the file too."""
    table, schema = make_table()
    made = jn.release(
        table, schema, jn.Budget(epsilon=5), ledger=tmp_path / "l", check=0.1, mechanism="hdmm",
        workload=[("a", "b"), ("b", "c")], path=tmp_path / "t.jct",
    )  # fmt: skip
    events = [each.what for each in Ledger(tmp_path / "l").events]
    assert [what.startswith("check: ") for what in events] == [False, False, True]
    assert len(made.measurements) == 2
    back = jn.load(tmp_path / "t.jct")
    for release in (made, back):
        found = release.project(("a", "c"), interval=0.95)
        assert {str(each) for each in found.bases} == {"assumed"}
        assert (found.upper > found.answer).all()
        assert found.notes == ()
    rows = back.sql(
        "SELECT a, COUNT(*) AS n, AVG(b) AS m, SUM(b) AS s FROM t WHERE c GROUP BY a", interval=0.95
    )
    for row in rows.intervals:
        assert [each is not None and each.is_known for each in row] == [False, True, True, True]
        assert str(max(each.basis for each in row if each is not None)) == "assumed"
    assert "never measured together" in back.check_words


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, True, "0.1"])
def test_shares_are_checked(tmp_path: Path, share: Any) -> None:
    """A share outside (0, 1) gets one clear error, and nothing is spent."""
    table, schema = make_table(10)
    with pytest.raises(InvalidInput, match="`check` must lie between 0 and 1"):
        jn.release(table, schema, jn.Budget(epsilon=1), ledger=tmp_path / "l", check=share)
    assert not (tmp_path / "l").exists()


def nothing_carried(model: jn.Model) -> CarriedNoise:
    """No noise, since nothing was measured."""
    return CarriedNoise(model, PlainEstimates(model.domain, []))


def find_width(check: Check, count: float) -> float:
    """The half-width of one assumed count that carries no noise."""
    return float(check.find_widths(np.array([count]), 1.0, 0.0, 0.95)[0])


def test_widths_follow_the_dependence() -> None:
    """Where the model is right the width is that of noise; where it is not, it holds the errors."""
    rng = np.random.default_rng(1)
    model = jn.Model.of_potentials(DOMAIN, [], total=100_000)
    bases = Bases(DOMAIN, [])
    ((clique, query),) = draw_check(DOMAIN, [], rng)
    right = model.answer(query).reshape(-1)
    widths = []
    for wrong in (0.0, 0.3):
        signs = np.where(np.arange(len(right)) % 2, 1.0, -1.0)
        values = right * (1.0 + wrong * signs) + rng.normal(size=len(right)) * 5.0
        measured = jn.Measurement(clique, values, stddev=5.0, query=query)
        check = Check(model, bases, (measured,), nothing_carried(model))
        assert bases.find(query).max() == Basis.ASSUMED
        widths.append(find_width(check, 5_000.0))
    assert 2.0 * widths[0] < widths[1]
    assert widths[1] > 1500.0
    noisy = jn.Measurement(clique, right, stddev=5_000.0, query=query)
    assert find_width(Check(model, bases, (noisy,), nothing_carried(model)), 5_000.0) > widths[0]


def test_intervals_know_how_noisy_the_columns_are() -> None:
    """A model that leaves a value empty in noise as large as the table is not believed."""
    rng = np.random.default_rng(0)
    for stddev, is_sure in ((2.0, True), (900.0, False)):
        singles = tuple(
            jn.Measurement((name,), np.eye(1, size).reshape(-1) * 1_000, stddev=stddev)
            for name, size in DOMAIN.items()
        )
        model = jn.estimate(DOMAIN, singles, total=1_000).model
        cliques = [each.clique for each in singles]
        ((clique, query),) = draw_check(DOMAIN, cliques, rng)
        checked = jn.Measurement(clique, model.answer(query).reshape(-1), stddev=2.0, query=query)
        unsure = Uncertainty(model, singles, ReplicaRecipe(), checked=(checked,))
        found = unsure.project(("a", "b"), 0.95, population=False)
        assert bool(found.upper[2, 3] < 100) is is_sure
