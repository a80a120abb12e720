"""Rare values: which they are, what is measured of them, and that the fit divides them again."""

from __future__ import annotations

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
    """Never in single columns; by itself only in tables that are too large otherwise."""
    domain = Domain({"a": 200, "b": 60, "c": 3})
    rare = RareValues.of_counts({"a": np.r_[99.0, np.ones(199)]}, 10.0)
    asked = [("a",), ("a", "b"), ("a", "c")]
    for choice, merged in (("off", []), ("auto", [1]), ("on", [1, 2])):
        merging = Merging(domain, MergeRare.parse(choice))
        known = merging.find_rare({"a": np.r_[99.0, np.ones(199)]}, 10.0 / 3.0)
        assert known.rare == (RareValues() if choice == "off" else rare)
        assert list(known.queries(asked)) == [asked[index] for index in merged]


@pytest.mark.parametrize("mechanism", [AIM, MST, Tiers], ids=lambda kind: kind.name)
def test_the_switch(mechanism: type[Mechanism], tmp_path: Path) -> None:
    """On, rare values are one answer in what is measured; off, none are; the model has them all."""
    workload = Workload.all_marginals(DOMAIN, 2)
    for choice in ("on", "off"):
        made = mechanism(Budget(rho=0.1), merge_rare=choice, max_steps=500)  # type: ignore[call-arg]
        result = simulate(made, make_table(), tmp_path / choice, workload)
        pairs = [m for m in result.measurements if "a" in m.clique and len(m.clique) > 1]
        assert pairs
        assert all(isinstance(m.query, Kron if choice == "on" else Identity) for m in pairs)
        assert all(m.n_rows < DOMAIN.size_of(m.clique) for m in pairs) == (choice == "on")
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
