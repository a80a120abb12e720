"""Synthesized records are right on average, and no farther off than independent draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest

from juncture import Domain, Factor, Model
from juncture._util import threads
from juncture.model.sampling import Sampler
from juncture.tables.domain import Clique
from juncture.tables.records import Codes

# Cells that expect fewer records than this over all seeds are put together: the normal
# approximation is none for them.
MIN_EXPECTED = 25.0


class Case(NamedTuple):
    """A model whose separators have many states with few records each."""

    model: Model
    n: int
    asked: tuple[Clique, ...]
    """Tables to look at, beside those of the model's cliques."""


def rare_values() -> Case:
    """A separator of 40 x 40 states for 2,000 records, and an attribute with rare values."""
    rng = np.random.default_rng(1)
    domain = Domain({"a": 40, "b": 40, "c": 4})
    rows = rng.dirichlet(np.full(1600, 2.0))
    cells = rng.dirichlet((0.2, 2.6, 2.8, 0.4), size=1600)
    table = np.log((rows[:, None] * cells).reshape(domain.shape) + 1e-12)
    model = Model.of_potentials(domain, [Factor(domain, table)])
    return Case(model, 2000, (("a",), ("b",), ("c",), ("a", "c"), ("b", "c")))


def all_pairs(sizes: Iterable[int], n: int, spread: float, seed: int) -> Case:
    """A measured pair for any two attributes, so that one node holds them all."""
    rng = np.random.default_rng(seed)
    domain = Domain({f"x{i}": size for i, size in enumerate(sizes)})
    pairs = [domain.project(pair) for pair in combinations(domain, 2)]
    factors = [Factor(pair, rng.normal(scale=spread, size=pair.shape)) for pair in pairs]
    return Case(Model.of_potentials(domain, factors), n, tuple((name,) for name in domain))


def cycle(size: int, n: int, seed: int) -> Case:
    """Six attributes in a ring: nodes of three with separators of two, in a tree of four."""
    rng = np.random.default_rng(seed)
    domain = Domain({f"x{i}": size for i in range(6)})
    ring = [domain.project(domain.canonical((f"x{i}", f"x{(i + 1) % 6}"))) for i in range(6)]
    factors = [Factor(pair, rng.normal(scale=1.5, size=pair.shape)) for pair in ring]
    model = Model.of_potentials(domain, factors)
    return Case(model, n, tuple(node.clique for node in model.plan.nodes))


def parity(n: int) -> Case:
    """An attribute that is the parity of three others: no sum over two of these foretells it."""
    domain = Domain({"a": 40, "b": 40, "c": 2, "z": 2})
    odd = np.indices((40, 40, 2)).sum(axis=0) % 2
    table = np.log(np.stack([odd, 1 - odd], axis=-1) + 1e-3)
    model = Model.of_potentials(domain, [Factor(domain, table)])
    return Case(model, n, (("z",), ("a", "z"), ("c", "z")))


FAST: dict[str, Callable[[], Case]] = {
    "rare values": rare_values,
    "all pairs of three": lambda: all_pairs((20, 15, 8), 500, 1.0, 2),
}
SLOW: dict[str, Callable[[], Case]] = {
    "all pairs of four": lambda: all_pairs((6, 7, 8, 9), 1000, 2.0, 3),
    "all pairs, few records": lambda: all_pairs((6, 7, 8, 9), 60, 2.0, 4),
    "all pairs of five": lambda: all_pairs((4, 5, 6, 3, 4), 700, 1.0, 5),
    "cycle": lambda: cycle(12, 800, 6),
    "parity": lambda: parity(1600),
}


def assert_right(case: Case, n_seeds: int) -> None:
    """The mean over seeds is within four standard errors, the squared error within that of draws.

    The standard error is that of independent draws, which are no nearer.
    """
    cliques = dict.fromkeys([*case.model.cliques, *case.asked])
    expected = {c: case.n * case.model.project(c).values / case.model.total for c in cliques}
    mean, square = ({c: np.zeros_like(expected[c]) for c in cliques} for _ in range(2))
    for seed in range(n_seeds):
        records = case.model.synthesize(case.n, rng=seed)
        for clique in cliques:
            found = np.zeros(expected[clique].shape)
            np.add.at(found, tuple(records[name] for name in clique), 1)
            mean[clique] += found / n_seeds
            square[clique] += (found - expected[clique]) ** 2 / n_seeds
    for clique in cliques:
        few = n_seeds * expected[clique] < MIN_EXPECTED
        seen = np.append(mean[clique][~few], mean[clique][few].sum())
        wanted = np.append(expected[clique][~few], expected[clique][few].sum())
        draws = wanted * (1 - wanted / case.n)
        wrong = np.abs(seen - wanted) / np.sqrt(draws / n_seeds + 1e-9)
        assert wrong.max() < 4.0, clique
        alone = (expected[clique] * (1 - expected[clique] / case.n)).sum()
        assert square[clique].sum() < 1.03 * alone, clique


@pytest.mark.parametrize("name", FAST)
def test_counts_are_right_on_average(name: str) -> None:
    """Every cell of every clique, where separators have more states than there are records."""
    assert_right(FAST[name](), 40)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FAST, *SLOW])
def test_counts_are_right_on_average_over_many_seeds(name: str) -> None:
    """As above, more models and more seeds: a smaller bias would be seen."""
    assert_right((FAST | SLOW)[name](), 100)


def test_each_record_is_a_draw_from_the_model() -> None:
    """The first record alone, over seeds, has the model's distribution of all attributes."""
    rng = np.random.default_rng(3)
    domain = Domain({"a": 3, "b": 3, "c": 2})
    factors = [
        Factor(domain.project(pair), rng.normal(size=domain.project(pair).shape))
        for pair in (("a", "b"), ("b", "c"))
    ]
    model = Model.of_potentials(domain, factors)
    found, n_seeds = np.zeros(domain.shape), 2000
    for seed in range(n_seeds):
        records = model.synthesize(5, rng=seed)
        found[tuple(records[name][0] for name in domain)] += 1 / n_seeds
    p = model.project(tuple(domain)).values
    assert (np.abs(found - p) < 4.5 * np.sqrt(p * (1 - p) / n_seeds)).all()


def chain(n: int) -> Case:
    """Six attributes in a row: pairs that are neighbours are measured, triples span nodes."""
    rng = np.random.default_rng(9)
    domain = Domain({f"x{i}": 4 for i in range(6)})
    links = [domain.project((f"x{i}", f"x{i + 1}")) for i in range(5)]
    factors = [Factor(pair, rng.normal(scale=1.5, size=pair.shape)) for pair in links]
    return Case(Model.of_potentials(domain, factors), n, tuple(combinations(domain, 3)))


def test_tables_across_nodes_stay_close() -> None:
    """Triples that no node holds: nearer than rounding down the tree alone, and fair."""
    case, n_seeds = chain(600), 20
    sampler = case.model.sampler
    assert isinstance(sampler, Sampler)
    expected = {c: case.n * case.model.project(c).values for c in case.asked}

    def find_errors(draw: Callable[[int], Codes]) -> tuple[float, float]:
        """The mean error of the triples, and the largest mean over seeds in standard errors."""
        means = {c: np.zeros_like(expected[c]) for c in case.asked}
        error = 0.0
        for seed in range(n_seeds):
            codes = draw(seed)
            for c in case.asked:
                found = np.zeros(expected[c].shape)
                np.add.at(found, tuple(codes[case.model.domain.positions[a]] for a in c), 1)
                means[c] += found / n_seeds
                error += float(np.abs(found - expected[c]).sum())
        wrong = [np.abs(means[c] - e) / np.sqrt(e / n_seeds + 1e-9) for c, e in expected.items()]
        common = [
            w[n_seeds * e >= MIN_EXPECTED].max()
            for w, e in zip(wrong, expected.values(), strict=True)
        ]
        return error, max(common)

    halved, off = find_errors(lambda seed: sampler.synthesize(case.n, seed))
    rounded, _ = find_errors(lambda seed: sampler.apportion(case.n, np.random.default_rng(seed)))
    assert halved < 0.8 * rounded
    assert off < 4.0


def test_the_same_seed_gives_the_same_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """With any number of threads, and whatever was drawn before."""
    results = []
    for n_threads in (1, 2, 3):
        monkeypatch.setattr(threads, "cpu_count", lambda n_threads=n_threads: n_threads)
        model = chain(500).model
        model.synthesize(70, rng=1)
        results += [model.synthesize(500, rng=4), model.synthesize(500, rng=4)]
    for each in results[1:]:
        assert all((each[name] == results[0][name]).all() for name in results[0])


def test_sums_over_many_small_rows_stay_close() -> None:
    """Rounding each row by itself would be off by dozens; left-overs are passed on."""
    case = rare_values()
    model, n = case.model, case.n
    errors = {clique: list[float]() for clique in case.asked}
    for seed in range(20):
        records = model.synthesize(n, rng=seed)
        for clique, collected in errors.items():
            found = np.zeros(model.domain.project(clique).shape)
            np.add.at(found, tuple(records[name] for name in clique), 1)
            collected.append(float(np.abs(found - n * model.project(clique).values).max()))
    assert max(errors["c",]) < 15  # draws: 50
    assert max(errors["a", "c"] + errors["b", "c"]) < 9  # draws: 20
