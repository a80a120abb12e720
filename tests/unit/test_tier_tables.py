"""The tables of each tier of Tiers, and how what they need divides a budget."""

from __future__ import annotations

import numpy as np
import pytest

from juncture.mechanisms.merge_rare import MergeRare
from juncture.mechanisms.rare_values import Merging
from juncture.mechanisms.tier_fit import TierFitter
from juncture.mechanisms.tier_tables import (
    TierCandidates,
    combine,
    divide_by_need,
    expect_error,
    find_pair_tables,
)
from juncture.model.model import Model
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.noise import Noise
from juncture.tables.workload import Workload


def test_candidates_and_their_weights() -> None:
    """Sets below tasks, weighted by the tasks that have them; tables that are too large are out."""
    domain = Domain({"a": 2, "b": 3, "c": 2, "d": 9_000})
    workload = Workload.of_marginals(domain, [("a", "b", "c"), ("a", "b"), ("d", "a")])
    candidates = TierCandidates.of_workload(workload)
    assert candidates.singles == ("a", "b", "c", "d")
    assert candidates.pairs == {("a", "b"): 1.0, ("a", "c"): 0.5, ("b", "c"): 0.5}
    assert candidates.triples == {("a", "b", "c"): 1.0}


def test_pair_tables_are_products() -> None:
    """Of the single columns, times the number of records."""
    domain = Domain({"a": 2, "b": 3})
    factors = [
        Factor(domain.project(["a"]), np.log([0.25, 0.75])),
        Factor(domain.project(["b"]), np.log([0.2, 0.3, 0.5])),
    ]
    model = Model.of_potentials(domain, factors, 100.0)
    merging = Merging(domain, MergeRare.OFF)
    tables = find_pair_tables(model, {("a", "b"): 1.0}, merging)
    expected = 100.0 * np.outer([0.25, 0.75], [0.2, 0.3, 0.5]).reshape(-1)
    assert tables["a", "b"] == pytest.approx(expected)


def test_what_a_rule_excludes_is_not_looked_for() -> None:
    """A first fit knows the rules, and so do the tables by which pairs are chosen."""
    domain = Domain({"a": 2, "b": 3, "c": 2})
    excluded = np.zeros((2, 3), dtype=np.bool_)
    excluded[0, 2] = True
    measured = [
        Measurement(("a",), [25.0, 75.0], stddev=0.1),
        Measurement(("b",), [20.0, 30.0, 50.0], stddev=0.1),
        Measurement(("c",), [40.0, 60.0], stddev=0.1),
    ]
    fitter = TierFitter("exact", 1000, 2000, {("a", "b"): excluded})
    model = fitter.fit(domain, measured, 100.0, 1000).model
    pairs: dict[tuple[str, ...], float] = {("a", "b"): 1.0, ("a", "c"): 1.0}
    tables = find_pair_tables(model, pairs, Merging(domain, MergeRare.OFF))
    assert tables["a", "b"].reshape(2, 3)[0, 2] == 0.0
    assert tables["a", "b"].reshape(2, 3).sum(axis=1) == pytest.approx([25.0, 75.0], rel=0.05)
    assert tables["a", "c"] == pytest.approx([10.0, 15.0, 30.0, 45.0], rel=0.05)


def test_shares_follow_the_root_of_the_need() -> None:
    """They add up to one, and four times the need gets twice the share."""
    shares = divide_by_need({("a",): 1.0, ("b",): 4.0})
    assert shares == pytest.approx({("a",): 1 / 3, ("b",): 2 / 3})
    assert expect_error(np.array([5.0, 1.0]), 2.0) == 3.0


def test_measurements_of_the_same_table_are_combined() -> None:
    """By their precision, if Gaussian; the mean over many has the stated noise."""
    rng = np.random.default_rng(0)
    truth, stddevs = np.arange(2000.0), (3.0, 1.0)
    drawn = [Measurement(("a",), truth + rng.normal(0, s, 2000), stddev=s) for s in stddevs]
    (both,) = combine(drawn)
    assert np.std(both.values - truth) == pytest.approx(float(np.mean(both.stddev)), rel=0.1)
    assert float(np.mean(both.stddev)) == pytest.approx((1 / 9 + 1) ** -0.5)
    laplace = [Measurement(("a",), truth, stddev=1.0, noise=Noise.LAPLACE)] * 2
    assert combine(laplace) == laplace
