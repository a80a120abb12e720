"""The plan of pairs: what noisy distances are taken for, and which tables are worth their price."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from juncture.mechanisms import tier_plan
from juncture.mechanisms.tier_plan import (
    PairPlanner,
    divide_what_is_left,
    estimate_distances,
    keep_forest,
)
from juncture.tables.domain import Clique


def test_estimates_are_nearer_to_the_truth_than_what_was_told() -> None:
    """On average over draws: of few large ones among zeros, of equal ones, and of many kinds."""
    rng, stddev = np.random.default_rng(0), 20.0
    for true in (np.repeat([0.0, 300.0], [95, 5]), np.full(100, 30.0), rng.gamma(2.0, 40.0, 100)):
        losses = []
        for _ in range(20):
            noisy = true + rng.normal(size=100) * stddev
            found = estimate_distances(noisy, stddev, np.zeros(100))
            losses.append([np.mean((found - true) ** 2), np.mean((noisy - true) ** 2)])
        ours, told = np.mean(losses, axis=0)
        assert ours < 0.9 * told


def test_doubts_do_not_count_as_distances() -> None:
    """What columns are off by lifts all; of it nothing is left, and of the rest about all."""
    rng = np.random.default_rng(0)
    true, doubts = np.repeat([0.0, 400.0], 50), np.full(100, 100.0)
    noisy = np.hypot(true, doubts) + rng.normal(size=100) * 10.0
    found = estimate_distances(noisy, 10.0, doubts)
    assert found[:50].mean() < 40.0
    assert abs(found[50:].mean() - 400.0) < 30.0


def test_no_estimate_exceeds_what_is_possible() -> None:
    """However large the noise."""
    found = estimate_distances(np.array([5e6, -5e6]), 1e6, np.zeros(2), largest=200.0)
    assert ((found >= 0.0) & (found <= 200.0)).all()


def make_planner(n_columns: int, n_records: float, noise: float) -> PairPlanner:
    """Even columns of four values."""
    names = [f"x{i}" for i in range(n_columns)]
    pairs = list(itertools.combinations(names, 2))
    return PairPlanner(
        dict.fromkeys(pairs, np.full(16, n_records / 16)), dict.fromkeys(pairs, 1.0),
        dict.fromkeys(pairs, 9 / 16), dict.fromkeys(names, np.full(4, n_records / 4)), noise, 0.5,
    )  # fmt: skip


def test_more_pairs_are_worth_it_where_noise_is_small() -> None:
    """Few where it hides nearly all, all where it hides none, and the strong ones first."""
    planner = make_planner(6, 10_000.0, 1.0)
    distances = dict(zip(planner.tables, np.geomspace(5_000.0, 50.0, 15).tolist(), strict=True))
    found = []
    for noise in (0.01, 1.0, 10.0, 30.0, 100.0):
        planner = make_planner(6, 10_000.0, noise)
        chosen = planner.plan(distances, [], 15).chosen
        assert chosen == list(distances)[: len(chosen)]  # the strongest, in their order
        found.append(len(chosen))
    assert found[0] == 15
    assert found[-1] <= 5, found
    assert found == sorted(found, reverse=True)
    assert len(set(found)) >= 4


def test_the_plan_is_the_best_of_all_prefixes_and_within_its_limit() -> None:
    """Each number of pairs in that order, by plain sums of the same errors."""
    noise, n_records = 40.0, 10_000.0
    planner = make_planner(5, n_records, noise)
    distances = dict(zip(planner.tables, np.geomspace(4_000.0, 100.0, 10).tolist(), strict=True))

    def add_up(k: int) -> float:
        pairs = list(distances)
        uses = {name: 0.5 * sum(name in p for p in pairs[k:]) for name in planner.columns}
        level = noise * math.sqrt(k + 5)
        pair_error, single_error = 16 * min(level, n_records / 16), 4 * min(level, n_records / 4)
        roots = [math.sqrt(pair_error)] * k
        roots += [math.sqrt(max(single_error * need, 1e-12)) for need in uses.values()]
        shares = np.array(roots) / sum(roots)
        known = dict(zip(uses, shares[k:], strict=True))
        for pair, share in zip(pairs, shares[:k], strict=False):
            for name in pair:
                known[name] += share / 4
        off = {name: single_error / math.sqrt((k + 5) * known[name]) for name in known}
        total = 0.0
        for index, (pair, far) in enumerate(distances.items()):
            joint = far
            if index < k:
                left = 0.9 * 0.75 * pair_error / math.sqrt((k + 5) * shares[index])
                joint = far * left / math.hypot(far, left)
            total += math.sqrt(joint**2 + sum(off[name] ** 2 for name in pair))
        return total

    best = min(range(11), key=add_up)
    assert 0 < best < 10
    assert abs(len(planner.plan(distances, [], 10).chosen) - best) <= 1  # errors are interpolated
    assert len(planner.plan(distances, [], 2).chosen) == 2


def test_cheap_pairs_do_not_crowd_out_one_that_is_far_off() -> None:
    """Where all pairs are measured noise hides a large table that it does not hide alone."""
    names = [f"x{i}" for i in range(22)]
    pairs: list[Clique] = list(itertools.combinations(names, 2))
    sizes = dict.fromkeys(names, 2) | {"x0": 7, "x1": 7}
    tables = {
        p: np.full(sizes[p[0]] * sizes[p[1]], 6_000.0 / (sizes[p[0]] * sizes[p[1]])) for p in pairs
    }
    joint = {p: (1 - 1 / sizes[p[0]]) * (1 - 1 / sizes[p[1]]) for p in pairs}
    columns = {name: np.full(size, 6_000.0 / size) for name, size in sizes.items()}
    planner = PairPlanner(tables, dict.fromkeys(pairs, 1.0), joint, columns, 30.0, 0.5, True)
    distances = dict.fromkeys(pairs, 120.0) | {("x0", "x1"): 6_000.0}
    assert ("x0", "x1") in planner.plan(distances, [], len(pairs)).chosen


def test_a_wide_table_is_planned_by_some_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of thousands of pairs not every number is tried."""
    monkeypatch.setattr(tier_plan, "_N_TRIED", 10)
    planner = make_planner(12, 10_000.0, 1.0)
    distances = dict(zip(planner.tables, np.geomspace(9_000.0, 1.0, 66).tolist(), strict=True))
    plan = planner.plan(distances, [], 66)
    assert 0 < len(plan.chosen) <= 66
    assert set(plan.shares) == set(plan.chosen)
    known = list(distances)[:3]
    rest = {pair: far for pair, far in distances.items() if pair not in known}
    again = planner.plan(rest, known, 5)
    assert set(again.shares) == {*again.chosen, *known}
    assert len(again.chosen) <= 5


def test_forests_have_no_circle() -> None:
    """And join all that the pairs join."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        pairs = [tuple(sorted(map(str, rng.choice(8, 2, replace=False)))) for _ in range(12)]
        kept, left = keep_forest(pairs), dict.fromkeys("01234567", 0)
        groups = [{name} for name in left]
        for pair in kept:
            one, two = (next(g for g in groups if name in g) for name in pair)
            assert one is not two
            groups = [g for g in groups if g is not one and g is not two] + [one | two]
        assert all(any(set(pair) <= group for group in groups) for pair in pairs)


def test_what_is_left_evens_out_what_was_spent() -> None:
    """Nothing is taken back; all that is left is spent; those that get more end alike."""
    shares: dict[Clique, float] = {("a",): 0.2, ("b",): 0.3, ("c",): 0.5}
    spent: dict[Clique, float] = {("a",): 0.4, ("b",): 0.05}
    more = divide_what_is_left(shares, spent, 0.35)
    assert sum(more.values()) == pytest.approx(0.35)
    assert more["a",] == 0.0
    ends = [(spent.get(c, 0.0) + more[c]) / shares[c] for c in (("b",), ("c",))]
    assert ends[0] == pytest.approx(ends[1])
    assert divide_what_is_left({}, {}, 0.5) == {}
