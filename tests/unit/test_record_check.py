"""A file's records must be those of its potentials: honest files open, tampered ones do not."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from juncture import Release, UnreadableFile, load
from juncture.engine.particles import Particles
from juncture.engine.stationarity import belong_to_potentials, measure_drift
from juncture.fit.estimation import Estimate, estimate
from juncture.fit.solvers.raking import Raking
from juncture.fit.summary import Status
from juncture.model.model import Model
from juncture.model.record_distribution import RecordDistribution
from juncture.tables.domain import Domain
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.records import Codes

DOMAIN = Domain({"a": 4, "b": 6, "c": 3, "d": 8, "e": 2, "free": 5})


def draw_table(seed: int, n: int, spread: float = 0.25) -> Codes:
    """Records of three groups, each with its own distribution of every attribute."""
    rng = np.random.default_rng([seed, 3])
    group, columns = rng.integers(0, 3, n), []
    for size in DOMAIN.shape:
        ends = np.cumsum(rng.dirichlet(np.full(size, spread), 3), axis=1)[group]
        columns.append(np.minimum((rng.random((n, 1)) > ends).sum(axis=1), size - 1))
    return np.array(columns, dtype=np.int32)


def fit_table(
    seed: int, *, n: int = 20_000, stddev: float = 20.0, n_columns: int = 2,
    n_records: int | None = 30_000, solver: Raking | None = None, max_steps: int = 1_000,
) -> Estimate:  # fmt: skip
    """A fit with records to noisy counts of every set of so many attributes but the free one."""
    codes, rng = draw_table(seed, n), np.random.default_rng([seed, 4])
    measurements = []
    for clique in combinations("abcde", n_columns):
        shape = [DOMAIN[name] for name in clique]
        cells = np.ravel_multi_index([codes[DOMAIN.positions[name]] for name in clique], shape)
        counts = np.bincount(cells, minlength=int(np.prod(shape)))
        noisy = counts + rng.normal(0.0, stddev, counts.size)
        measurements.append(Measurement(clique, noisy, stddev=stddev))
    oracle = Particles(n_records=n_records, seed=seed)
    return estimate(
        DOMAIN, measurements, total=float(n), oracle=oracle, solver=solver, max_steps=max_steps
    )


def records_of(model: Model) -> RecordDistribution:
    """The records of a model."""
    assert isinstance(model.distribution, RecordDistribution)
    return model.distribution


def save_with(
    model: Model, path: Path, *, codes: Codes | None = None, potentials: Vector | None = None
) -> Path:
    """A file of the model with other records or potentials, and the marginals of its records."""
    own = records_of(model)
    altered = replace(
        own,
        codes=own.codes if codes is None else np.ascontiguousarray(codes),
        potentials=own.potentials if potentials is None else potentials,
    )
    return Release(model=Model(altered, model.total)).save(path)


@pytest.fixture(scope="module")
def model() -> Model:
    """A model of all pairs."""
    return fit_table(3, n_records=100_000).model


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"solver": Raking(), "max_steps": 200},
        {"stddev": 400.0, "n_columns": 1},
        {"n_columns": 3, "stddev": 2.0},
        {"n_records": 1_000, "n": 300, "stddev": 1.0},
        {"n_records": 200, "stddev": 2.0},
        {"max_steps": 12},
    ],
)
def test_honest_files_are_opened(tmp_path: Path, seed: int, options: dict[str, object]) -> None:
    """What a fit made can be opened, however it ended, and with far too few records too."""
    fitted = fit_table(seed, **options).model  # type: ignore[arg-type]
    opened = load(Release(model=fitted).save(tmp_path / "all.jct"))
    assert (opened.model.project(("a",)).values == fitted.project(("a",)).values).all()
    given = fitted.condition({"b": [0, 1], "free": 2})
    load(Release(model=given).save(tmp_path / "some.jct"))


def test_records_that_have_not_mixed_are_opened(tmp_path: Path) -> None:
    """Sweeps that cannot leave a mode leave the marginals as they are, so the file is honest."""
    names = "abcdefgh"
    domain = Domain(dict.fromkeys(names, 3))
    diagonal = 900.0 * np.eye(3).reshape(-1)
    counts = [Measurement(pair, diagonal, stddev=3.0) for pair in combinations(names, 2)]
    fit = estimate(domain, counts, oracle=Particles(n_records=5_000), max_steps=40)
    assert fit.status is Status.NOT_MIXED
    load(Release(model=fit.model).save(tmp_path / "modes.jct"))


@pytest.mark.parametrize("name", "abcde")
def test_a_shuffled_column_is_refused(model: Model, tmp_path: Path, name: str) -> None:
    """A column in another order has the same counts by itself, but not with the others."""
    codes = records_of(model).codes.copy()
    axis = DOMAIN.positions[name]
    codes[axis] = np.random.default_rng(1).permutation(codes[axis])
    with pytest.raises(UnreadableFile, match="drawn anew"):
        load(save_with(model, tmp_path / "shuffled.jct", codes=codes))


def test_records_of_another_table_are_refused(model: Model, tmp_path: Path) -> None:
    """Records of a table with the same columns and other counts do not fit the potentials."""
    foreign = draw_table(77, records_of(model).codes.shape[1])
    with pytest.raises(UnreadableFile, match="drawn anew"):
        load(save_with(model, tmp_path / "foreign.jct", codes=foreign))


@pytest.mark.parametrize("factor", [0.0, 0.4, -1.0, 2.0])
def test_other_potentials_are_refused(model: Model, tmp_path: Path, factor: float) -> None:
    """Potentials that are erased, weakened, turned round or doubled do not fit the records."""
    potentials = factor * records_of(model).potentials
    with pytest.raises(UnreadableFile, match="drawn anew"):
        load(save_with(model, tmp_path / "other.jct", potentials=potentials))


def test_potentials_without_bound_are_refused(model: Model, tmp_path: Path) -> None:
    """A potential of infinity is no potential."""
    potentials = records_of(model).potentials.copy()
    potentials[3] = np.inf
    with pytest.raises(UnreadableFile):
        load(save_with(model, tmp_path / "infinite.jct", potentials=potentials))


def test_pairs_that_would_take_much_memory_are_refused(tmp_path: Path) -> None:
    """Two large attributes are never drawn together, so a file that says so is not honest."""
    large = Domain({"a": 2_000, "b": 2_000})
    vague = Model.of_potentials(large, [], oracle=Particles(n_records=500))
    tied = replace(records_of(vague), pairs=((0, 1),))
    with pytest.raises(UnreadableFile):
        load(Release(model=Model(tied, 10.0)).save(tmp_path / "large.jct"))


def test_drift_is_the_distance_to_what_the_potentials_say() -> None:
    """Records at their potentials do not drift; uniform ones drift by the distance of marginals."""
    domain = Domain({"a": 2})
    shares = np.array([0.9, 0.1])
    fit = estimate(
        domain, [Measurement(("a",), 1_000.0 * shares, stddev=1.0)], total=1_000.0,
        oracle=Particles(n_records=50_000),
    )  # fmt: skip
    own = records_of(fit.model)
    assert measure_drift(own.make_population()) == 0.0
    uniform = np.random.default_rng(0).integers(0, 2, own.codes.shape).astype(np.int32)
    population = replace(own, codes=uniform, weights=np.full(50_000, 1 / 50_000)).make_population()
    expected = float(((shares - 0.5) ** 2 / (shares + 0.5)).sum())
    assert measure_drift(population) == pytest.approx(expected, abs=0.02)
    assert not belong_to_potentials(population)


def test_cells_that_no_record_has_do_not_run_away() -> None:
    """A rare value that no record has keeps a potential that gives it few records, not all."""
    domain = Domain({"a": 40})
    counts = np.full(40, 0.5)
    counts[0] = 10_000.0
    table = Measurement(("a",), counts, stddev=0.2)
    fit = estimate(
        domain, [table], total=float(counts.sum()), oracle=Particles(n_records=1_000),
        solver=Raking(),
    )  # fmt: skip
    population = records_of(fit.model).make_population()
    assert (fit.model.project(("a",)).values == 0.0).any()
    population.renew(n_sweeps=1)
    assert population.marginals()[0] > 0.9
