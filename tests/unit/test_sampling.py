"""Synthetic records follow the model: in distribution when drawn, rounded when synthesized."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from juncture import Domain, Factor, ImpossibleModel, InvalidInput, Model
from juncture.tables.records import Codes

DOMAIN = Domain({"a": 4, "b": 3, "c": 5, "d": 2, "e": 3, "free": 3})
CLIQUES = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("e",)]
N = 40_000
# The chance that a sound sampler fails any one of these tests.
FALSE_ALARM = 1e-6


@pytest.fixture(scope="module")
def model() -> Model:
    """A cycle, so that a node holds what no clique does, with structural zeros."""
    rng = np.random.default_rng(8)
    factors = []
    for clique in CLIQUES:
        table = rng.normal(size=DOMAIN.project(clique).shape)
        table[rng.random(table.shape) < 0.15] = -np.inf
        factors.append(Factor(DOMAIN.project(clique), table))
    return Model.of_potentials(DOMAIN, factors, total=N)


def counts(records: Mapping[str, Codes], names: tuple[str, ...]) -> np.ndarray:
    """How many records each cell has."""
    found = np.zeros(DOMAIN.project(names).shape)
    np.add.at(found, tuple(records[name] for name in names), 1)
    return found


def assert_drawn_from(observed: np.ndarray, expected: np.ndarray) -> None:
    """Pearson's test; cells that expect few records are put together."""
    few = expected < 5
    assert (observed[expected == 0] == 0).all()
    seen = np.append(observed[~few], observed[few].sum())
    mean = np.append(expected[~few], max(expected[few].sum(), 1e-9))
    statistic = ((seen - mean) ** 2 / mean).sum()
    assert statistic < chi2.isf(FALSE_ALARM, max(1, len(seen) - 1))


@pytest.mark.parametrize("names", [*combinations(DOMAIN, 2), ("a", "c", "e"), tuple(DOMAIN)])
def test_samples_follow_the_model(model: Model, names: tuple[str, ...]) -> None:
    """All pairs, across components and free attributes, a triple and the whole."""
    records = model.sample(N, rng=3)
    assert_drawn_from(counts(records, names), model.project(names).values)


def test_neighbouring_records_are_independent(model: Model) -> None:
    """The pair of one record's value and the next one's is a product distribution."""
    column = model.sample(2 * N, rng=5)["c"]
    found = np.zeros((5, 5))
    np.add.at(found, (column[::2], column[1::2]), 1)
    p = model.project(("c",)).values / N
    assert_drawn_from(found, N * np.outer(p, p))


def test_samples_given_columns_follow_the_conditional(model: Model) -> None:
    """Also when no node holds all of the given columns."""
    given = model.sample(N, rng=1)
    for names in (("a", "c"), ("d", "e"), ("free",), ("b", "d", "e")):
        fixed = {name: given[name] for name in names}
        records = model.sample(rng=2, given=fixed)
        for name in names:
            assert (records[name] == given[name]).all()
        assert_drawn_from(counts(records, tuple(DOMAIN)), model.project(tuple(DOMAIN)).values)


def test_synthesized_counts_match_up_to_rounding(model: Model) -> None:
    """Every cell of every clique is within a few records, where chance alone gives dozens."""
    records = model.synthesize(N, rng=0)
    drawn = model.sample(N, rng=0)
    for clique in CLIQUES:
        expected = model.project(clique).values
        assert np.abs(counts(records, clique) - expected).max() <= 5.0
        assert (counts(records, clique)[expected == 0] == 0).all()
    wrong = np.abs(counts(drawn, ("a", "b")) - model.project(("a", "b")).values).max()
    assert wrong > 20


def test_synthesized_records_are_not_in_step(model: Model) -> None:
    """Attributes that the model holds independent are so among the records too."""
    records = model.synthesize(N, rng=4)
    halves = {name: column[: N // 2] for name, column in records.items()}
    for names in (("a", "e"), ("e", "free"), ("a", "free")):
        assert_drawn_from(counts(records, names), model.project(names).values)
        assert_drawn_from(counts(halves, names), model.project(names).values / 2)


def test_synthesis_is_fair() -> None:
    """A cell that expects half a record gets one half of the time."""
    domain = Domain({"a": 2, "b": 2})
    masses = np.array([[1.5, 2.5], [2.5, 3.5]])
    made = Model.of_potentials(domain, [Factor(domain, np.log(masses))], total=10.0)
    found = np.zeros((2, 2))
    trials = 4000
    for seed in range(trials):
        records = made.synthesize(10, rng=seed)
        np.add.at(found, (records["a"], records["b"]), 1.0 / trials)
    assert np.abs(found - masses).max() < 5 * 0.5 / np.sqrt(trials)


def test_synthesis_is_fair_to_rare_cells() -> None:
    """Where records are few and cells many, each cell still gets its share on average."""
    domain = Domain({"a": 60, "b": 20})
    rng = np.random.default_rng(5)
    masses = rng.dirichlet(np.full(domain.size, 0.3)).reshape(domain.shape) * 60
    made = Model.of_potentials(domain, [Factor(domain, np.log(masses + 1e-12))], total=60.0)
    found, trials = np.zeros(domain.shape), 400
    for seed in range(trials):
        records = made.synthesize(60, rng=seed)
        np.add.at(found, (records["a"], records["b"]), 1.0 / trials)
    expected = made.project(("a", "b")).values
    rare = expected < 0.05
    assert found[rare].sum() == pytest.approx(expected[rare].sum(), rel=0.1)
    for single in range(2):
        names = (("a", "b")[single],)
        sums = found.sum(axis=1 - single)
        assert np.abs(sums - made.project(names).values).max() < 0.3


def test_impossible_given_records_are_refused_even_when_nothing_is_drawn() -> None:
    """Also when the node that holds them adds nothing."""
    domain = Domain({"a": 2, "b": 2, "c": 2})
    table = np.zeros((2, 2))
    table[0, 0] = -np.inf
    made = Model.of_potentials(
        domain,
        [Factor(domain.project(("a", "b")), table), Factor(domain.project(("b", "c")), table)],
    )
    for draw in (made.sample, made.synthesize):
        with pytest.raises(ImpossibleModel, match="got 1 whose combination of values has no mass"):
            draw(given={"a": [0, 1], "b": [0, 1]})


def test_seeds_and_generators(model: Model) -> None:
    """The same seed gives the same records, and a longer draw begins like a shorter one."""
    one, same, other = (model.sample(300, rng=seed) for seed in (7, 7, 8))
    assert all((one[name] == same[name]).all() for name in DOMAIN)
    assert any((one[name] != other[name]).any() for name in DOMAIN)
    longer = model.sample(200_000, rng=7)
    assert all((longer[name][:300] == one[name]).all() for name in DOMAIN)
    generator = np.random.default_rng(7)
    first, second = model.sample(300, rng=generator), model.sample(300, rng=generator)
    assert (first["c"] == one["c"]).all()
    assert (second["c"] != one["c"]).any()
    assert len(model.sample()["a"]) == N
    assert len(model.synthesize(0)["a"]) == 0


def test_bad_requests_are_refused(model: Model) -> None:
    """Counts that are none, columns that do not fit."""
    for n in (-1, 2.5, True, "many"):
        with pytest.raises(InvalidInput, match="`n` must be a whole number of records"):
            model.sample(n)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="`n` must be the length of the given columns"):
        model.sample(5, given={"a": [1, 2]})
    with pytest.raises(InvalidInput, match="codes from 0 to 3 for 'a'; got 0 to 4"):
        model.sample(given={"a": [0, 4]})
    with pytest.raises(InvalidInput, match="columns of integer codes"):
        model.sample(given={"a": [0.5]})
    with pytest.raises(InvalidInput, match="columns of one length"):
        model.sample(given={"a": [0, 1], "b": [0]})
    with pytest.raises(InvalidInput, match="a column for every attribute"):
        model.log_probability({"a": [0]})
