"""The oracle made of records agrees with exact inference within the error that it states."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from juncture import (
    Budget,
    ImpossibleModel,
    InvalidInput,
    Ledger,
    ModelTooLarge,
    Neighbours,
    Plan,
    Workload,
    estimate,
)
from juncture._util import threads
from juncture.engine.compiled.loader import pointer, routine
from juncture.engine.mixing import measure_mixing, tie_stuck_attributes
from juncture.engine.particles import Particles, RecordOracle
from juncture.engine.propagation import Propagation
from juncture.fit.loss import Marginals
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.fit.solvers.raking import Raking
from juncture.fit.summary import Status
from juncture.mechanisms.hdmm import HDMM
from juncture.model.model import Model
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Identity, Prefix
from juncture.tables.queries.products import Kron

DOMAIN = Domain({"a": 3, "b": 4, "c": 2, "d": 5, "e": 3})
PAIRS: list[Clique] = [*combinations(DOMAIN, 2)]
TOTAL = 5_000.0


def make(cliques: list[Clique], domain: Domain = DOMAIN, **options: int) -> RecordOracle:
    """An oracle made of records for some cliques."""
    particles = Particles(**{"n_records": 50_000, **options})
    return particles(particles.build_plan(domain, cliques))


def truth(seed: int, spread: float = 1.0) -> Model:
    """An exact model with random potentials on all pairs."""
    rng = np.random.default_rng(seed)
    tables = [DOMAIN.project(pair) for pair in PAIRS]
    factors = [Factor(table, rng.normal(0.0, spread, table.shape)) for table in tables]
    return Model.of_potentials(DOMAIN, factors, TOTAL)


def measure(model: Model, stddev: float, seed: int, kind: str = "gaussian") -> list[Measurement]:
    """All pairs of a model with noise."""
    rng = np.random.default_rng(seed)
    draw = rng.normal if kind == "gaussian" else rng.laplace
    scale = stddev if kind == "gaussian" else stddev / np.sqrt(2.0)
    return [
        Measurement(
            pair,
            counts.reshape(-1) + draw(0.0, scale, counts.size),
            stddev=stddev,
            noise=kind,
        )
        for pair, counts in ((pair, model.project(pair).values) for pair in PAIRS)
    ]


def workload_error(one: Model, other: Model) -> float:
    """The mean absolute difference of all triples' counts."""
    triples = combinations(DOMAIN, 3)
    return float(
        np.mean([np.abs(one.project(t).values - other.project(t).values).sum() for t in triples])
    )


@pytest.mark.parametrize("seed", range(4))
def test_marginals_are_within_the_stated_error(seed: int) -> None:
    """Cliques of one to three attributes: every marginal is as far off as stated at most."""
    cliques: list[Clique] = [*PAIRS, ("a", "c", "e"), ("b",)]
    oracle, exact = make(cliques, seed=seed), Propagation(Plan.build(DOMAIN, cliques))
    potentials = np.random.default_rng(seed).normal(0.0, 1.0, oracle.layout.size)
    estimated, right = oracle.marginals(potentials, 7.0), exact.marginals(potentials, 7.0)
    assert np.abs(estimated.marginals - right.marginals).max() <= 7.0 * estimated.error
    assert estimated.error < 0.02
    assert estimated.log_partition == pytest.approx(right.log_partition, abs=0.05)
    peak, best = oracle.maximum(potentials), exact.maximum(potentials)
    assert peak.score == pytest.approx(best.score)
    assert peak.record == best.record


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed gives the same bits with one thread and with three."""
    measurements, answers = measure(truth(0), 20.0, 0), []
    for n_threads in (1, 3):
        monkeypatch.setattr(threads, "cpu_count", lambda n=n_threads: n)
        fit = estimate(DOMAIN, measurements, oracle=Particles(n_records=130_000), max_steps=30)
        answers.append((fit.model.marginals.tobytes(), fit.model.sample(9_000, rng=1)["d"]))
    assert answers[0][0] == answers[1][0]
    assert (answers[0][1] == answers[1][1]).all()


def test_another_seed_is_another_draw() -> None:
    """The seed decides the records."""
    vector = np.random.default_rng(0).normal(0.0, 1.0, make(PAIRS).layout.size)
    one, two = (make(PAIRS, seed=seed).marginals(vector).marginals for seed in (0, 1))
    assert (one != two).any()


@pytest.mark.slow
def test_excluded_cells_have_no_records() -> None:
    """Minus infinity leaves a cell empty, and contradicting exclusions are an error."""
    oracle = make(PAIRS)
    potentials = np.random.default_rng(0).normal(0.0, 1.0, oracle.layout.size)
    excluded = np.random.default_rng(1).random(oracle.layout.size) < 0.15
    potentials[excluded] = -np.inf
    exact = Propagation(Plan.build(DOMAIN, PAIRS)).marginals(potentials)
    beliefs = oracle.marginals(potentials)
    assert (beliefs.marginals[excluded] == 0.0).all()
    assert np.abs(beliefs.marginals - exact.marginals).max() <= beliefs.error
    with pytest.raises(ImpossibleModel):
        make(PAIRS).marginals(np.full(oracle.layout.size, -np.inf))


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "noise"), [("l2", "gaussian"), ("l1", "laplace")])
def test_a_fit_is_as_good_as_an_exact_one(loss: str, noise: str) -> None:
    """Its loss is near the least one, and its error on triples within a percent of the exact's."""
    right = truth(1)
    measurements = measure(right, 30.0, 1, noise)
    exact = estimate(DOMAIN, measurements, loss=loss, total=TOTAL)
    fit = estimate(
        DOMAIN, measurements, loss=loss, total=TOTAL, oracle=Particles(n_records=200_000)
    )
    assert fit.status is Status.UNCERTIFIED
    assert fit.summary.lower_bound == -np.inf
    assert fit.summary.loss <= 1.05 * exact.summary.loss
    assert workload_error(fit.model, right) <= 1.01 * workload_error(exact.model, right) + 5.0
    assert fit.summary.oracle_error is not None
    assert 0.0 < fit.summary.oracle_error < 0.5
    assert exact.summary.oracle_error is None
    if loss == "l2":  # whose optimum is sharp
        off = (fit.model.marginals - exact.model.marginals) / 30.0
        assert np.sqrt(np.mean(off**2)) < fit.summary.oracle_error


@pytest.mark.slow
def test_other_queries_and_functions() -> None:
    """Prefix queries, single sums and a loss that is a function reach the exact fit's loss."""
    right, rng = truth(2), np.random.default_rng(2)
    measurements = []
    for pair in PAIRS:
        query = Kron({pair[0]: Prefix(), pair[1]: Identity()})
        answers = right.answer(query).reshape(-1)
        noisy = answers + rng.normal(0.0, 30.0, answers.size)
        measurements.append(Measurement(pair, noisy, stddev=30.0, query=query))
    particles = Particles(n_records=20_000)
    exact = estimate(DOMAIN, measurements, total=TOTAL)
    fit = estimate(DOMAIN, measurements, total=TOTAL, oracle=particles, max_steps=120)
    assert fit.summary.loss <= 1.1 * exact.summary.loss

    goal = {pair: right.project(pair) for pair in PAIRS}

    def squared(marginals: Marginals) -> tuple[float, Marginals]:
        gaps = {pair: marginals[pair].values - goal[pair].values for pair in PAIRS}
        slopes = {pair: Factor(DOMAIN.project(pair), 0.01 * gap) for pair, gap in gaps.items()}
        return 0.005 * sum(float((gap**2).sum()) for gap in gaps.values()), slopes

    custom = estimate(
        DOMAIN, [], total=TOTAL, loss=squared, cliques=PAIRS, oracle=particles, max_steps=60
    )
    assert workload_error(custom.model, right) < 0.05 * TOTAL


@pytest.mark.slow
def test_a_fit_goes_on_from_another_model() -> None:
    """A start near the optimum needs no more steps than independence, and constraints hold."""
    right = truth(3)
    measurements, particles = measure(right, 30.0, 3), Particles(n_records=50_000)
    mask = np.zeros((3, 4), dtype=np.bool_)
    mask[1, 2] = True
    fit = estimate(
        DOMAIN, measurements, oracle=particles, start=right, constraints={("a", "b"): mask}
    )
    assert fit.model.project(("a", "b")).values[1, 2] == 0.0
    assert workload_error(fit.model, right) < 0.2 * TOTAL


@pytest.mark.slow
def test_stopping_at_the_noise_pays() -> None:
    """With much noise on many pairs, the fit that stops is nearer to the truth than another."""
    right = truth(4, spread=0.3)
    measurements, particles = measure(right, 150.0, 4), Particles(n_records=50_000)
    fits = [
        estimate(DOMAIN, measurements, total=TOTAL, oracle=particles, solver=solver)
        for solver in (EarlyStopping(), None)
    ]
    assert fits[0].status is Status.AT_NOISE
    errors = [workload_error(fit.model, right) for fit in fits]
    assert errors[0] < 0.8 * errors[1]
    assert not fits[0].misfits


@pytest.mark.slow
def test_names_of_oracles() -> None:
    """`auto` is exact where a tree fits, and records where none does; other names are refused."""
    small = estimate(DOMAIN, measure(truth(5), 30.0, 5), oracle="auto")
    assert small.status is Status.CERTIFIED
    assert small.model.plan.has_tree
    wide = Domain({f"x{i}": 30 for i in range(12)})
    counts = [Measurement(pair, np.full(900, 10.0), stddev=5.0) for pair in combinations(wide, 2)]
    particles = Particles(n_records=2_000)
    plan = particles.build_plan(wide, combinations(wide, 2))
    fit = estimate(wide, counts, oracle="auto", plan=plan, max_steps=3)
    assert not fit.model.plan.has_tree
    assert fit.status is Status.OUT_OF_STEPS
    assert "instead of a junction tree" in str(fit.model.plan)
    with pytest.raises(InvalidInput, match="exact, records, auto"):
        estimate(DOMAIN, counts, oracle="tree")
    with pytest.raises(InvalidInput, match="n_records"):
        Particles(n_records=3)
    with pytest.raises(InvalidInput, match="effort"):
        Particles(effort=0.0)
    with pytest.raises(InvalidInput, match="Raking"):
        estimate(DOMAIN, measure(truth(5), 30.0, 5), solver=Raking())


def test_a_clique_is_balanced() -> None:
    """The counts of a clique's problem satisfy its optimality condition and its total."""
    rng = np.random.default_rng(0)
    base, centre = rng.gamma(1.0, 30.0, 50), rng.normal(20.0, 40.0, 50)
    pull = np.where(np.arange(50) % 5 == 0, 0.0, rng.gamma(1.0, 0.05, 50))
    base[:3] = 0.0
    counts, sums = np.empty(50), np.empty(2)
    shift = routine("balance_clique")(
        pointer(base), pointer(centre), pointer(pull), 900.0, pointer(counts), pointer(sums), 50
    )
    seen = base > 0
    slope = (pull * (counts - centre))[seen] + np.log(counts[seen] / base[seen])
    assert counts.sum() == pytest.approx(900.0)
    assert (counts[:3] == 0.0).all()
    assert np.allclose(slope, -shift, atol=1e-8)


def pair_potential(strength: float, size: int) -> Vector:
    """Potentials that favour equal values."""
    return np.where(np.eye(size, dtype=np.bool_), strength, 0.0)


def test_attributes_that_determine_each_other_are_drawn_together() -> None:
    """Alone neither of two tied attributes moves; drawn as a pair they forget their values."""
    domain = Domain({"a": 6, "b": 6, "c": 3})
    oracle = make([("a", "b"), ("b", "c")], domain)
    potentials = oracle.layout.pack([Factor(domain.project(("a", "b")), pair_potential(12.0, 6))])
    population = oracle.bring_to(potentials)
    assert set(measure_mixing(population).stuck) == {0, 1}
    assert tie_stuck_attributes(population).is_mixed
    assert population.sweeper.pairs == ((0, 1),)
    joint = oracle.marginals(potentials).marginals[:36].reshape(6, 6)
    assert np.allclose(np.diag(joint), 1.0 / 6.0, atol=0.02)


def test_modes_that_are_cut_off_are_reported() -> None:
    """Eight attributes that are all equal have modes that no pair of them can leave."""
    names = "abcdefgh"
    domain = Domain(dict.fromkeys(names, 3))
    pairs: list[Clique] = [*combinations(names, 2)]
    oracle = make(pairs, domain, n_records=20_000)
    population = oracle.bring_to(
        oracle.layout.pack([Factor(domain.project(p), pair_potential(3.0, 3)) for p in pairs])
    )
    assert not tie_stuck_attributes(population).is_mixed
    counts = [Measurement(p, 900.0 * np.eye(3).reshape(-1), stddev=3.0) for p in pairs]
    fit = estimate(domain, counts, oracle=Particles(n_records=5_000), max_steps=40)
    assert fit.status is Status.NOT_MIXED
    assert "mixed" in fit.status.headline


def test_a_long_chain_is_followed() -> None:
    """Twelve attributes in a chain of strong ties keep the dependence from end to end."""
    names = [f"x{i}" for i in range(12)]
    domain = Domain(dict.fromkeys(names, 3))
    links: list[Clique] = [*pairwise(names)]
    factors = [Factor(domain.project(link), pair_potential(2.5, 3)) for link in links]
    exact = Model.of_potentials(domain, factors)
    model = Model.of_potentials(domain, factors, oracle=Particles(n_records=50_000))
    for pair in [("x0", "x1"), ("x0", "x6"), ("x0", "x11")]:
        assert np.abs(model.project(pair).values - exact.project(pair).values).max() < 0.015


@pytest.mark.slow
def test_hdmm_measures_what_no_tree_holds(tmp_path: Path) -> None:
    """With records, all pairs of eight wide attributes are released; exactly, they are refused."""
    domain = Domain({f"x{i}": 16 for i in range(8)})
    rng = np.random.default_rng(0)
    base = rng.integers(0, 16, 5_000)
    rows = {
        name: np.where(rng.random(5_000) < 0.5, base, rng.integers(0, 16, 5_000)) for name in domain
    }
    workload = Workload.all_marginals(domain, 2)
    with pytest.raises(ModelTooLarge):
        HDMM(Budget(rho=1.0), restarts=1).prepare(workload, Neighbours.ADD_OR_REMOVE)
    mechanism = HDMM(Budget(rho=1.0), restarts=1, oracle=Particles(n_records=20_000))
    run = mechanism.prepare(workload, Neighbours.ADD_OR_REMOVE)
    assert "records" in str(run.plan)
    ledger = Ledger.create(tmp_path / "ledger", Budget(rho=1.0), Neighbours.ADD_OR_REMOVE)
    curator = SimulatedCurator(CodedTable(domain, rows), ledger, rng=rng)
    result = mechanism.run(curator, workload)
    pair = np.bincount(rows["x0"] * 16 + rows["x5"], minlength=256)
    model = result.model
    assert model is not None
    gap = np.abs(model.project(("x0", "x5")).values.reshape(-1) - pair).sum()
    assert gap < 0.25 * pair.sum()
