"""Forecasts on made-up tables, and the mechanism that is taken by them."""

from __future__ import annotations

import numpy as np
import pytest

from juncture.mechanisms.registry import default_mechanisms
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.tables.domain import Domain
from juncture.tables.queries.blocks import Identity, Prefix
from juncture.tables.workload import Task, Workload
from juncture.workflow.default_choice import choose_default
from juncture.workflow.forecast import Method, forecast
from juncture.workflow.imagined import Dependence, imagine

DOMAIN = Domain({"a": 6, "b": 2, "c": 4, "d": 3})
PAIRS = Workload.default(DOMAIN)
PURE, GAUSSIAN = Budget(epsilon=1.0), Budget(epsilon=1.0, delta=1e-6)
ADD = Neighbours.ADD_OR_REMOVE


def test_made_up_tables_depend_or_not() -> None:
    """The distance of pairs from independence is that of chance, or far more; sizes are used."""
    n = 20_000
    for dependence, low, high in ((Dependence.NONE, 0.0, 0.02), (Dependence.GROUPS, 0.025, 0.6)):
        table = imagine(DOMAIN, n, dependence)
        for one, two in PAIRS.cliques:
            pair, left, right = table.exact_counts([(one, two), (one,), (two,)])
            apart = np.abs(pair.values / n - np.outer(left.values / n, right.values / n)).sum() / 2
            assert low <= apart <= high
            assert pair.values.sum() == n


def test_forecasts_are_the_same_whenever_they_are_asked() -> None:
    """Nothing of the machine or the time goes into them."""
    first, again = (
        forecast(["hdmm", "tiers", "aim"], GAUSSIAN, PAIRS, ADD, 2000) for _ in range(2)
    )
    assert first == again
    assert all(each.method is Method.REHEARSAL for each in first)


@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS, ids=str)
def test_more_records_and_more_budget_lower_the_error(neighbours: Neighbours) -> None:
    """Every mechanism that may be the default; so does more of both."""
    names = default_mechanisms(GAUSSIAN, PAIRS)
    few, many = (forecast(names, GAUSSIAN, PAIRS, neighbours, n) for n in (1000, 100_000))
    dear = forecast(names, Budget(epsilon=30.0, delta=1e-6), PAIRS, neighbours, 1000)
    for one, more, better in zip(few, many, dear, strict=True):
        assert more.error is not None
        assert better.error is not None
        assert one.error is not None
        assert max(more.error, better.error) < 0.5 * one.error


def test_what_noise_leaves_is_near_to_a_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The closed form of a mechanism that measures everything, beside its run."""
    rehearsed = forecast(["hdmm"], PURE, PAIRS, ADD, 5000)[0]
    monkeypatch.setattr("juncture.workflow.forecast._MAX_TASKS", 0)
    closed = forecast(["hdmm"], PURE, PAIRS, ADD, 5000)[0]
    assert (rehearsed.method, closed.method) == (Method.REHEARSAL, Method.NOISE)
    assert closed.error == pytest.approx(rehearsed.error, rel=0.5)


def test_a_wide_table_has_closed_forms() -> None:
    """A hundred columns; what measures few pairs is expected to be off by what it leaves out."""
    wide = Workload.default(Domain({f"x{i}": 2 + i % 5 for i in range(100)}))
    names = ["tiers", "mst", "hdmm"]
    tiers, mst, hdmm = forecast(names, GAUSSIAN, wide, ADD, 50_000)
    assert hdmm.method is Method.TOO_LARGE
    assert tiers.method is mst.method is Method.CHOICE
    assert tiers.dependent is not None
    assert mst.dependent is not None
    assert tiers.dependent < mst.dependent
    choice = choose_default(GAUSSIAN, wide, ADD, 50_000)
    assert choice.mechanism == "tiers"
    assert "Not hdmm: its model would be too large." in str(choice)


def test_the_usual_one_is_taken_unless_another_is_clearly_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the words say what was expected of each."""
    assert choose_default(PURE, PAIRS, ADD, 50_000).mechanism == "tiers"
    choice = choose_default(PURE, PAIRS, ADD, 1_000)
    assert choice.mechanism == "hdmm"
    assert "1,000 records" in str(choice)
    assert all(each.mechanism in str(choice) for each in choice.forecasts)
    monkeypatch.setattr(
        "juncture.workflow.default_choice.default_mechanisms", lambda *_: ("independent", "hdmm")
    )
    assert choose_default(PURE, PAIRS, ADD, 1_000).mechanism == "hdmm"


def test_other_queries_than_counts_have_their_own_candidates() -> None:
    """Mechanisms that answer counts alone are not among them."""
    prefixes = Workload(DOMAIN, (Task(("a", "b"), (Prefix(), Identity())),))
    choice = choose_default(GAUSSIAN, prefixes, ADD, 1000)
    assert {each.mechanism for each in choice.forecasts} == {"hdmm", "mwem"}
