"""Mechanisms that choose know the schema's rules: nothing is spent on what a rule says already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from juncture.errors import InvalidInput
from juncture.mechanisms.aim import AIM
from juncture.mechanisms.mst import MST
from juncture.mechanisms.multiplicative_weights import MultiplicativeWeights
from juncture.mechanisms.mwem import MWEM, Selection, Update
from juncture.mechanisms.mwem_state import ModelState, WeightState
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.privacy.price import Price
from juncture.privacy.score import MarginalError, Score
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.columns import Categorical
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement
from juncture.tables.rules import Broken, Rule
from juncture.tables.schema import Schema
from juncture.tables.workload import Workload

DOMAIN = Domain({"a": 3, "b": 3, "c": 2})
EXCLUDED = np.array([[False, True, True], [False, False, True], [False, False, False]])
ONE_WAYS = {"a": [30.0, 30.0, 40.0], "b": [70.0, 20.0, 10.0], "c": [60.0, 40.0]}
SCHEMA = Schema(
    {
        "a": Categorical(values=("x", "y", "z")),
        "b": Categorical(values=("x", "y", "z")),
        "c": Categorical(values=("u", "v")),
    },
    rules=(
        Rule("a = 'x' AND b <> 'x'", Broken.SET_ASIDE),
        Rule("a = 'y' AND b = 'z'", Broken.SET_ASIDE),
    ),
)


def balance(table: np.ndarray, margins: list[list[float]]) -> np.ndarray:
    """Iterative proportional fitting of a dense table to its single columns."""
    for _ in range(2000):
        for axis, margin in enumerate(margins):
            others = tuple(i for i in range(table.ndim) if i != axis)
            own = table.sum(axis=others)
            shape = [-1 if i == axis else 1 for i in range(table.ndim)]
            table = table * (np.array(margin) / own).reshape(shape)
    return table


def exact_columns() -> list[Measurement]:
    """The single columns, nearly without noise."""
    return [Measurement((name,), counts, stddev=0.01) for name, counts in ONE_WAYS.items()]


def test_a_model_begins_with_the_rules_and_keeps_them() -> None:
    """Its tables are those of the dense table with largest entropy among those without zeros."""
    state = ModelState(DOMAIN, 100.0, 5000, tolerance=1e-9, constraints={("a", "b"): EXCLUDED})
    allowed = np.where(EXCLUDED, 0.0, 1.0)
    first = 100.0 * allowed / allowed.sum()
    np.testing.assert_allclose(state.project(("a", "b")).values, first, rtol=1e-9)
    state.update(exact_columns())
    start = np.repeat(allowed[:, :, None], 2, axis=2)
    dense = balance(start, list(ONE_WAYS.values()))
    for clique, others in ((("a", "b"), 2), (("a", "c"), 1), (("b", "c"), 0)):
        found = state.project(clique).values
        np.testing.assert_allclose(found, dense.sum(axis=others), atol=0.05)
    assert (state.project(("a", "b")).values[EXCLUDED] == 0.0).all()


def test_rules_take_no_room_from_choices() -> None:
    """What fits without rules fits with them."""
    domain = Domain({"a": 30, "b": 40, "c": 2})
    excluded = np.zeros((30, 40), dtype=np.bool_)
    excluded[0, 1:] = True
    state = ModelState(domain, 100.0, 100, constraints={("a", "b"): excluded})
    plain = ModelState(domain, 100.0, 100)
    asked = [("b", "c"), ("a", "b", "c")]
    assert plain.which_fit(asked, 100) == state.which_fit(asked, 100) == [True, False]


@pytest.mark.parametrize("factored", [True, False])
def test_multiplicative_weights_keep_rules(factored: bool) -> None:
    """As loops over the dense table have it."""
    state = WeightState(
        DOMAIN, 100.0, passes=40, factored=factored, max_bytes=None,
        constraints={("a", "b"): EXCLUDED},
    )  # fmt: skip
    assert (state.project(("a", "b")).values[EXCLUDED] == 0.0).all()
    measured = [Measurement((name,), counts, stddev=1.0) for name, counts in ONE_WAYS.items()]
    state.update(measured)
    table = np.where(EXCLUDED, 0.0, 1.0)[:, :, None] * np.ones(2)
    table *= 100.0 / table.sum()
    logs = np.log(np.maximum(table, 1e-300)) + np.where(EXCLUDED, -1e6, 0.0)[:, :, None]
    for _ in range(40):
        pull = np.zeros_like(table)
        for axis, counts in enumerate(ONE_WAYS.values()):
            others = tuple(i for i in range(3) if i != axis)
            shape = [-1 if i == axis else 1 for i in range(3)]
            pull = pull + ((np.array(counts) - table.sum(axis=others)) / 200.0).reshape(shape)
        logs = logs + pull
        weights = np.exp(logs - logs.max())
        table = 100.0 * weights / weights.sum()
    expected = table.sum(axis=2)
    np.testing.assert_allclose(state.project(("a", "b")).values, expected, rtol=1e-6, atol=1e-9)


def test_a_rule_joins_its_attributes_in_one_group() -> None:
    """Before anything was measured of them, and without a table of all attributes."""
    wide = Domain({f"x{i}": 9 for i in range(30)})
    excluded = np.eye(9, dtype=np.bool_)
    weights = MultiplicativeWeights(wide, 72.0, factored=True, constraints={("x1", "x7"): excluded})
    np.testing.assert_allclose(weights.project(("x1", "x7")).values, 1.0 - np.eye(9))


class Listening(SimulatedCurator):
    """A curator that keeps the scores that it was asked to choose by."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.scores: list[MarginalError] = []

    def select(self, score: Score[Any], price: Price, *more: Any) -> Any:
        """Choose, and remember by what."""
        assert isinstance(score, MarginalError)
        self.scores.append(score)
        return super().select(score, price, *more)


def make_source(n: int = 6000) -> CodedTable:
    """Records that are as independent as the rules allow."""
    rng = np.random.default_rng(4)
    rows = np.stack([rng.integers(0, size, n) for size in DOMAIN.shape])
    kept = rows[:, ~EXCLUDED[rows[0], rows[1]]]
    columns = {name: kept[i] for i, name in enumerate(DOMAIN)}
    return CodedTable(DOMAIN, columns, SCHEMA)


BUDGETS = {"aim": Budget(rho=0.5), "mst": Budget(rho=0.5), "mwem": Budget(epsilon=8.0)}
CHOOSING = {
    "aim": AIM(BUDGETS["aim"], rounds=12, merge_rare="off"),
    "mst": MST(BUDGETS["mst"], merge_rare="off"),
    "mwem": MWEM(BUDGETS["mwem"], rounds=3, merge_rare="off"),
}


@pytest.mark.parametrize("name", CHOOSING)
def test_choices_compare_with_tables_that_know_the_rules(name: str, tmp_path: Path) -> None:
    """No answer of any choice has records where rules leave none; dependence by rules is no news.

    By the true counts, a table that only rules make dependent is as near to the answers of the
    first choice as noise on the single columns lets it be.
    """
    mechanism, source = CHOOSING[name], make_source()
    ledger = Ledger.create(tmp_path / "l", mechanism.budget, Neighbours.ADD_OR_REMOVE)
    curator = Listening(source, ledger, rng=np.random.default_rng(0))
    result = mechanism.run(curator, Workload.all_marginals(DOMAIN, 2))
    assert curator.scores
    (truth,) = source.exact_counts([("a", "b")])
    for score in curator.scores:
        answers = dict(zip(score._cliques, score._answers, strict=True))
        if ("a", "b") in answers:
            given: Any = answers["a", "b"]
            table = np.reshape(getattr(given, "values", given), (3, 3))
            assert (table[EXCLUDED] == 0.0).all()
            assert np.abs(table - truth.values).sum() < 0.1 * truth.values.sum()
    assert (result.project(("a", "b")).values[EXCLUDED] == 0.0).all()


def test_mwem_merges_rare_values_where_it_knows_columns(tmp_path: Path) -> None:
    """On, its rounds measure shared counts and the model has every value; other forms refuse."""
    rng, n = np.random.default_rng(1), 4000
    domain = Domain({"a": 40, "b": 3, "c": 2})
    a = np.where(rng.random(n) < 0.9, rng.integers(0, 3, n), rng.integers(3, 40, n))
    columns = {"a": a, "b": a % 3, "c": rng.integers(0, 2, n)}
    source, workload = CodedTable(domain, columns), Workload.all_marginals(domain, 2)
    for choice, n_rows in (("on", 40 * 3 - 1), ("off", 40 * 3)):
        made = MWEM(Budget(rho=0.1), rounds=4, merge_rare=choice)
        ledger = Ledger.create(tmp_path / choice, made.budget, Neighbours.ADD_OR_REMOVE)
        result = made.run(SimulatedCurator(source, ledger, rng=rng), workload)
        pairs = [m for m in result.measurements if m.clique == ("a", "b")]
        assert pairs
        assert all((m.n_rows < 40 * 3) == (choice == "on") for m in pairs), n_rows
        assert (result.details["merged"] == ["a"]) == (choice == "on")
        assert result.project(("a", "b")).values.shape == (40, 3)
    for other in (
        {"update": Update.FACTORED}, {"selection": Selection.QUERY}, {"single_share": 0.0},
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="`merge_rare` must be off or auto"):
            MWEM(Budget(rho=0.1), merge_rare="on", **other).prepare(
                workload, Neighbours.ADD_OR_REMOVE
            )
