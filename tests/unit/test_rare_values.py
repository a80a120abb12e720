"""Rare values: which they are, what is measured of them, and that the fit divides them again."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from chain_table import simulate
from juncture.errors import InvalidInput
from juncture.fit.estimation import estimate
from juncture.fit.loss import FitLoss
from juncture.fit.solvers.clique_problems import AnyQueries, GroupedCounts, make_problem
from juncture.mechanisms.aim import AIM
from juncture.mechanisms.mechanism import Mechanism
from juncture.mechanisms.merge_rare import MergeRare
from juncture.mechanisms.mst import MST
from juncture.mechanisms.rare_forecast import RareForecast, RareTerms
from juncture.mechanisms.rare_values import Merging, RareValues, merge_values
from juncture.mechanisms.tiers import Tiers
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.score import MarginalError, Setting
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Buckets, Identity, Prefix
from juncture.tables.queries.products import Kron, bind
from juncture.tables.workload import Workload

DOMAIN = Domain({"a": 40, "b": 3, "c": 2})


def make_table(n: int = 4000) -> CodedTable:
    """A column with three frequent values and 37 rare ones, which decide the others."""
    rng = np.random.default_rng(0)
    a = np.where(rng.random(n) < 0.9, rng.integers(0, 3, n), rng.integers(3, 40, n))
    b = np.where(rng.random(n) < 0.8, a % 3, rng.integers(0, 3, n))
    return CodedTable(DOMAIN, {"a": a, "b": b, "c": rng.integers(0, 2, n)})


def test_what_is_rare() -> None:
    """Below the limit; one value alone is not merged, nor all of them into one."""
    assert merge_values(np.array([9.0, 2.9, 3.1, -1.0]), 3.0) == Buckets([0, 1, 2, 1])
    assert merge_values(np.array([9.0, 2.9, 3.1]), 3.0) is None
    assert merge_values(np.array([2.0, 2.9, 1.1]), 3.0) is None
    assert merge_values(np.array([2.0, 2.0, 2.0, 2.0]), 3.0) == Buckets([0, 0, 1, 1])


@pytest.mark.parametrize("seed", range(20))
def test_buckets_are_as_small_as_the_limit_allows(seed: int) -> None:
    """Each holds rare values alone, in order, reaches the limit, and does so with its last ones."""
    rng = np.random.default_rng(seed)
    counts, limit = rng.exponential(3.0, 50), 5.0
    block = merge_values(counts, limit)
    assert block is not None
    owners = np.array(block.assignment)
    groups = [np.flatnonzero(owners == each) for each in range(owners.max() + 1)]
    merged = [group for group in groups if len(group) > 1 or counts[group[0]] < limit]
    assert sorted(np.concatenate(merged)) == np.flatnonzero(counts < limit).tolist()
    assert all(counts[group].sum() >= limit for group in merged)
    assert all(counts[group[:-1]].sum() < limit for group in merged[:-1])


def test_a_merged_table_is_the_sum_of_its_cells() -> None:
    """By loops over the cells."""
    domain = Domain({"x": 4, "y": 2, "z": 3})
    table = np.random.default_rng(1).integers(0, 9, domain.shape).astype(np.float64)
    rare = RareValues({"x": Buckets([0, 1, 1, 0]), "z": Buckets([0, 1, 1])})
    expected = np.zeros((2, 2, 2))
    for (x, y, z), count in np.ndenumerate(table):
        expected[(0, 1, 1, 0)[x], y, (0, 1, 1)[z]] += count
    assert rare.shape_of(domain) == (2, 2, 2)
    np.testing.assert_array_equal(rare.merge(domain, table), expected.reshape(-1))


def test_where_rare_values_are_merged() -> None:
    """Never in single columns; by itself where a forecast says so, or none can be made."""
    domain = Domain({"a": 200, "b": 60, "c": 3})
    counts = {"a": np.r_[99.0, np.ones(199)], "b": np.full(60, 5.0), "c": np.full(3, 100.0)}
    rare = RareValues.of_counts({"a": counts["a"]}, 4.0)
    asked = [("a",), ("a", "b"), ("a", "c"), ("b", "c")]
    terms = RareTerms(stops_at_noise=False, max_cells=10_000)
    cases = [("off", 9.0, []), ("auto", 0.01, [1]), ("auto", 9.0, [1, 2]), ("on", 0.01, [1, 2])]
    for choice, noise, merged in cases:
        merging = Merging(domain, MergeRare.parse(choice), terms)
        known = merging.find_rare(counts, 4.0 / 3.0, noise)
        assert known.rare == (RareValues() if choice == "off" else rare)
        assert list(known.queries(asked)) == [asked[index] for index in merged]
        expected = known.expect(("a", "c"))
        assert (expected is None) == (choice != "auto")
        assert expected is None or expected.merges == (2 in merged)


@pytest.mark.parametrize("stops", [True, False])
def test_forecasts_are_sums_over_made_up_tables(stops: bool) -> None:
    """By loops over the cells of each made-up table."""
    counts = {"a": np.array([80.0, 9.0, 4.0, 7.0]), "b": np.array([60.0, 38.0, 2.0])}
    terms, noise = RareTerms(stops_at_noise=stops, max_whole_cells=12), 3.0
    forecast = RareForecast.of_counts(counts, terms)
    owners = {"a": (0, 1, 1, 1), "b": (0, 1, 1)}
    found = forecast.expect(("a", "b"), {n: Buckets(o) for n, o in owners.items()}, noise)
    whole, merged = [], []
    for shares in forecast.shares:
        a, b = shares["a"], shares["b"]
        np.testing.assert_allclose(a.sum(axis=1), 1.0)
        table = 100.0 * np.einsum("gi,gj->ij", a, b) / len(a)
        alone = 100.0 * np.outer(a.mean(axis=0), b.mean(axis=0))
        before, after, shared = 0.0, 0.0, 0.0
        for i, j in np.ndindex(4, 3):
            before += abs(table[i, j] - alone[i, j])
            off = abs(table[i, j] - alone[i, j]) if stops else table[i, j] + noise / 2
            after += min(noise, off)
        for p, q in np.ndindex(2, 2):
            cells = [(i, j) for i in range(4) for j in range(3)
                     if owners["a"][i] == p and owners["b"][j] == q]  # fmt: skip
            held, had = sum(table[c] for c in cells), sum(alone[c] for c in cells)
            shared += min(noise, abs(held - had) if stops else held + noise / 2)
            shared += sum(abs(table[c] - alone[c] * held / had) for c in cells)
        whole.append(after)
        merged.append(min(shared, before) if stops else shared)
    assert found == pytest.approx((np.mean(whole), np.mean(merged)))


def test_made_up_groups_depend_but_have_the_columns() -> None:
    """Independent, dependent, and more so; nearly the measured shares in all of them."""
    counts = {"a": np.array([500.0, 300.0, 150.0, 50.0]), "b": np.full(5, 200.0)}
    forecast = RareForecast.of_counts(counts, RareTerms())
    assert forecast.n_records == 1000.0
    apart = []
    for shares in forecast.shares:
        a, b = shares["a"], shares["b"]
        table = np.einsum("gi,gj->ij", a, b) / len(a)
        assert np.abs(table.sum(axis=1) - counts["a"] / 1000.0).max() < 0.2
        apart.append(np.abs(table - np.outer(a.mean(axis=0), b.mean(axis=0))).sum())
    assert apart[0] == pytest.approx(0.0, abs=1e-12)
    assert 0.05 < apart[1] < apart[2]


def count_contrasts(clique: tuple[str, ...]) -> int:
    """The numbers of a table that no smaller one tells."""
    return math.prod(DOMAIN[name] - 1 for name in clique)


@pytest.mark.parametrize("mechanism", [AIM, MST, Tiers], ids=lambda kind: kind.name)
def test_the_switch(mechanism: type[Mechanism], tmp_path: Path) -> None:
    """On, rare values are one answer in what is measured; off, none are; the model has them all."""
    workload = Workload.all_marginals(DOMAIN, 2)
    for choice in ("on", "off"):
        made = mechanism(Budget(rho=0.1), merge_rare=choice, max_steps=500)  # type: ignore[call-arg]
        result = simulate(made, make_table(), tmp_path / choice, workload)
        pairs = [m for m in result.measurements if "a" in m.clique and len(m.clique) > 1]
        assert pairs
        whole = {m.clique: {DOMAIN.size_of(m.clique), count_contrasts(m.clique)} for m in pairs}
        assert all(m.n_rows not in whole[m.clique] for m in pairs) == (choice == "on")
        assert all(m.n_rows in whole[m.clique] for m in pairs) == (choice == "off")
        assert result.project(("a", "b")).values.shape == (40, 3)


def test_a_pair_that_is_too_large_is_measured_merged(tmp_path: Path) -> None:
    """Tiers leaves it out where it may not merge; its error is then that of independence."""
    rng, n = np.random.default_rng(2), 5000
    domain = Domain({"zip": 600, "b": 30, "c": 2})
    place = np.minimum(rng.geometric(0.08, n) - 1 + 12 * (rng.random(n) < 0.05), 599)
    columns = {"zip": place, "b": place % 30, "c": rng.integers(0, 2, n)}
    source, workload = CodedTable(domain, columns), Workload.all_marginals(domain, 2)
    (truth,) = source.exact_counts([("zip", "b")])
    errors = {}
    for choice in ("auto", "off"):
        made = Tiers(Budget(rho=1.0), merge_rare=choice)
        result = simulate(made, source, tmp_path / choice, workload)
        assert result.details["merged"] == (["zip"] if choice == "auto" else [])
        assert result.details["merge_rare"] == choice
        assert result.details["merged_tables"] == (1 if choice == "auto" else 0)
        assert ("expected_whole" in result.details) == (choice == "auto")
        errors[choice] = np.abs(result.project(("zip", "b")).values - truth.values).sum() / n
    assert errors["auto"] < 0.5 * errors["off"]


@pytest.mark.parametrize("mechanism", [AIM, MST, Tiers])
def test_another_word_is_refused(mechanism: type[Mechanism]) -> None:
    """Before anything is spent."""
    made = mechanism(Budget(rho=0.1), merge_rare="maybe")  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match="`merge_rare` must be on, off or auto; got 'maybe'"):
        made.prepare(Workload.all_marginals(DOMAIN, 2), Neighbours.ADD_OR_REMOVE)


def test_a_fit_divides_a_shared_count_by_the_single_column() -> None:
    """Where pairs say nothing of the values of a bucket, all have the same share of it."""
    domain = Domain({"a": 4, "b": 2})
    single = np.array([60.0, 20.0, 15.0, 5.0])
    pair = np.array([[30.0, 30.0], [8.0, 32.0]])
    query = Kron({"a": Buckets([0, 1, 1, 1]), "b": Identity()})
    measured = [
        Measurement(("a",), single, stddev=1.0),
        Measurement(("a", "b"), pair.reshape(-1), stddev=1.0, query=query),
    ]
    expected = np.vstack([pair[0], np.outer(single[1:] / 40.0, pair[1])])
    table = estimate(domain, measured, total=100.0).model.project(("a", "b")).values
    np.testing.assert_allclose(table, expected, atol=1e-3)


def test_a_grouped_clique_is_solved_exactly() -> None:
    """The slope of loss and divergence vanishes; steps that know no groups end at the same."""
    domain, rng = Domain({"a": 5, "b": 3}), np.random.default_rng(3)
    query = Kron({"b": Identity(), "a": Buckets([0, 1, 1, 2, 1])})
    values = rng.uniform(0.0, 40.0, 9)
    measured = Measurement(("b", "a"), values, stddev=2.0, query=query)
    loss = FitLoss(Layout(domain, [("a", "b")]), [measured], "likelihood")
    problem = make_problem(loss, ("a", "b"))
    assert isinstance(problem, GroupedCounts)
    base, tau, total = rng.dirichlet(np.ones(15)), 0.7, 150.0
    change = problem.balance(base, np.zeros(15), tau, total)
    weights = base * np.exp(change)
    counts = total * weights / weights.sum()
    _, slope = loss.value_and_gradient(counts)
    gap = change + slope / tau
    np.testing.assert_allclose(gap, gap[0], atol=1e-6)
    steps = AnyQueries(loss.restrict(("a", "b")))
    slow = np.zeros(15)
    for _ in range(400):
        slow = steps.balance(base, slow, tau, total)
    other = base * np.exp(slow)
    np.testing.assert_allclose(total * other / other.sum(), counts, atol=1e-3)


def test_a_score_of_merged_tables() -> None:
    """It is the distance of sums; a query with a record in two answers is refused."""
    domain = Domain({"a": 4, "b": 2})
    table = Factor(domain, np.arange(8.0).reshape(4, 2))
    query = Kron({"a": Buckets([0, 1, 1, 1]), "b": Identity()})
    setting = Setting(domain, Neighbours.REPLACE, 100)
    answer = Factor(domain, np.ones((4, 2)))
    bound = MarginalError({("a", "b"): answer}, queries={("a", "b"): query}).bind(setting)
    merged = bind(query, domain).apply(table.values)
    assert bound.evaluate([table])[0] == np.abs(merged - [1.0, 1.0, 3.0, 3.0]).sum()
    assert bound.sensitivity == 2.0
    twice = MarginalError({("a",): [1.0] * 4}, queries={("a",): Prefix()})
    with pytest.raises(InvalidInput, match="`queries` must have each record in one answer"):
        twice.bind(setting)
