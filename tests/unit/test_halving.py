"""Records that are halved keep their tables, and no record is favoured."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from juncture import Domain, Factor, Model
from juncture._util import threads
from juncture.engine.particles import Particles
from juncture.model.halving import Halver, WeightedRecords, choose_tables
from juncture.tables.domain import Clique
from juncture.tables.records import Codes

DOMAIN = Domain({"a": 3, "b": 4, "c": 2, "d": 5, "e": 12})
TABLES = [clique for size in (2, 3, 4) for clique in combinations(DOMAIN, size)]
TRIPLES = [clique for clique in TABLES if len(clique) == 3]


def draw_pool(n: int, seed: int = 0) -> Codes:
    """Records that depend on each other's neighbours, sorted, with rare values."""
    rng = np.random.default_rng(seed)
    codes = [rng.binomial(size - 1, 0.3, n) for size in DOMAIN.shape]
    codes[1] = (codes[0] + codes[1]) % 4
    pool = np.array(codes, dtype=np.int32)
    return np.ascontiguousarray(pool[:, np.lexsort(pool)])


def count(codes: Codes, clique: Clique) -> NDArray[np.float64]:
    """The counts of a clique's cells, by NumPy."""
    table = np.zeros([DOMAIN[name] for name in clique])
    np.add.at(table, tuple(codes[DOMAIN.positions[name]] for name in clique), 1)
    return table


def make_model(n_records: int, total: float) -> Model:
    """A model of random potentials on all pairs, made of records, with an excluded cell."""
    rng = np.random.default_rng(7)
    pairs = [DOMAIN.project(pair) for pair in combinations(DOMAIN, 2)]
    factors = [Factor(pair, rng.normal(0.0, 0.8, pair.shape)) for pair in pairs]
    factors[0].values[1, 2] = -np.inf
    return Model.of_potentials(DOMAIN, factors, total, oracle=Particles(n_records=n_records))


def stack(model: Model, n: int, seed: int) -> Codes:
    """Synthesized records as rows of codes."""
    records = model.synthesize(n, rng=seed)
    return np.array([records[name] for name in DOMAIN], dtype=np.int32)


@pytest.mark.parametrize("n_passes", [0, 3])
def test_half_of_every_table_is_kept(n_passes: int) -> None:
    """Half of the records, each as often as the pool has it at most, nearer than a random half."""
    pool = draw_pool(4_000)
    halver = Halver(DOMAIN, TABLES, expected=WeightedRecords(pool, np.ones(4_000)))
    rng = np.random.default_rng(1)
    half, random = halver.halve(pool, rng, n_passes), pool[:, rng.permutation(4_000)[:2_000]]
    assert half.shape == (5, 2_000)
    assert (count(half, tuple(DOMAIN)) <= count(pool, tuple(DOMAIN))).all()
    off, by_chance = (
        [np.abs(count(codes, clique) - count(pool, clique) / 2).sum() for clique in TABLES]
        for codes in (half, random)
    )
    assert np.mean(off) < (0.5, 0.4)[n_passes > 0] * np.mean(by_chance)


def test_the_goal_is_the_model_not_the_pool() -> None:
    """A pool that is off by chance is made good, where cells expect many records."""
    model, pool = draw_pool(200_000, seed=1), draw_pool(8_000, seed=2)
    half = Halver(DOMAIN, TABLES, expected=WeightedRecords(model, np.ones(200_000))).halve(
        pool, np.random.default_rng(0), 3
    )
    off = before = 0.0
    for clique in combinations(DOMAIN, 2):
        expected = count(model, clique) / 50
        many = expected >= 50
        off += np.abs(count(half, clique) - expected)[many].sum()
        before += np.abs(count(pool, clique) / 2 - expected)[many].sum()
    assert off < 0.8 * before


def test_no_record_is_favoured() -> None:
    """Over many seeds, every record of the pool is kept half of the time, a rare one too."""
    pool, n_seeds = draw_pool(200), 2_000
    names = np.array([*pool, np.arange(200)], dtype=np.int32)
    domain = Domain({**DOMAIN, "name": 200})
    halver = Halver(domain, TABLES, expected=WeightedRecords(names, np.ones(200)))
    kept = np.zeros(200)
    for seed in range(n_seeds):
        kept[halver.halve(names, np.random.default_rng(seed), 2)[-1]] += 1 / n_seeds
    assert np.abs(kept - 0.5).max() < 4.5 * 0.5 / np.sqrt(n_seeds)


def test_synthesized_counts_are_right_on_average() -> None:
    """Triples that were never measured: the mean over seeds is the model's, in rare cells too."""
    model, n, n_seeds = make_model(20_000, 1.0), 300, 150
    means = {clique: np.zeros(DOMAIN.project(clique).shape) for clique in TRIPLES}
    for seed in range(n_seeds):
        codes = stack(model, n, seed)
        for clique in TRIPLES:
            means[clique] += count(codes, clique) / n_seeds
    for clique, mean in means.items():
        expected = n * model.project(clique).values
        few = n_seeds * expected < 25
        seen = np.append(mean[~few], mean[few].sum())
        wanted = np.append(expected[~few], expected[few].sum())
        assert (np.abs(seen - wanted) < 4.0 * np.sqrt(wanted / n_seeds + 1e-9)).all(), clique


@pytest.mark.parametrize(("n", "share"), [(300, 0.75), (5_000, 0.5), (40_000, 0.6)])
def test_synthesized_triples_are_nearer_than_draws(n: int, share: float) -> None:
    """Also where more records are wanted than the model has; excluded cells stay empty."""
    model = make_model(20_000, 1.0)
    codes = stack(model, n, 3)
    drawn = model.sample(n, rng=3)
    independent = np.array([drawn[name] for name in DOMAIN], dtype=np.int32)
    assert codes.shape == (5, n)
    assert not ((codes[0] == 1) & (codes[1] == 2)).any()
    off, by_chance = (
        np.mean([np.abs(count(c, t) / n - model.project(t).values).sum() for t in TRIPLES])
        for c in (codes, independent)
    )
    assert off < share * by_chance


def test_the_same_seed_gives_the_same_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """With any number of threads, with tables that are kept or counted anew; another does not."""
    results = []
    for n_threads in (1, 2, 3):
        monkeypatch.setattr(threads, "cpu_count", lambda n_threads=n_threads: n_threads)
        model = make_model(20_000, 1.0)
        results += [stack(model, 5_000, 4), stack(model, 5_000, 4)]
    assert all((each == results[0]).all() for each in results[1:])
    assert (stack(model, 5_000, 5) != results[0]).any()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_records(n: int) -> None:
    """No records, or one, can be made too."""
    assert stack(make_model(2_000, 1.0), n, 0).shape == (5, n)


def test_measured_tables_are_watched_first() -> None:
    """Then pairs, then triples, up to a number of tables and of cells; the choice is fixed."""
    measured = [("d", "a"), ("e",), ("a", "b", "c", "d", "e"), ()]
    chosen = choose_tables(DOMAIN, measured, 13)
    assert set(chosen[:2]) == {("a", "d"), ("e",)}
    assert set(chosen[2:11]) == {*combinations(DOMAIN, 2)} - {("a", "d")}
    assert {len(clique) for clique in chosen[11:]} == {3}
    assert len(set(chosen)) == 13
    assert choose_tables(DOMAIN, measured, 13) == chosen
    assert len(choose_tables(DOMAIN, measured, 1_000)) == 2 + 9 + 10
    wide = Domain({f"x{i}": 1_000 for i in range(6)})
    assert len(choose_tables(wide, [], 100)) == 8  # a million cells each
    many = Domain({f"x{i}": 2 for i in range(400)})
    assert len(choose_tables(many, [], 60_000)) == 60_000


def test_codes_outside_the_domain_are_refused() -> None:
    """They would be counted in cells that do not exist."""
    pool = draw_pool(10)
    halver = Halver(DOMAIN, TABLES)
    for wrong in (-1, 12):
        spoiled = pool.copy()
        spoiled[4, 3] = wrong
        with pytest.raises(ValueError, match="codes must be from 0 to 11"):
            halver.halve(spoiled, np.random.default_rng(0), 1)
