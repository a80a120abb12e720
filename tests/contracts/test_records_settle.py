"""At the end of a fit, records and potentials agree: exact inference says what the records say."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from juncture.engine.gibbs import draw_uniform_codes
from juncture.engine.particles import Particles
from juncture.engine.plan import Plan
from juncture.engine.population import Population
from juncture.engine.propagation import Propagation
from juncture.fit.estimation import estimate
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.fit.solvers.raking import Raking
from juncture.fit.solvers.settling import measure_error
from juncture.model.record_distribution import RecordDistribution
from juncture.tables.domain import Domain
from juncture.tables.layout import Layout, Vector
from juncture.tables.measurement import Measurement

STDDEV = 50.0


def measure_strong_table(
    seed: int, n_columns: int = 9, n: int = 20_000
) -> tuple[Domain, list[Measurement]]:
    """All pairs of flags that hang on one number for each record: far above the noise."""
    rng = np.random.default_rng([seed, 61])
    degree = rng.gamma(0.6, 1.0, n)
    lines = zip(rng.uniform(-4, -1, n_columns), rng.uniform(1, 3, n_columns), strict=True)
    flags = np.array([rng.random(n) < 1 / (1 + np.exp(-a - b * degree)) for a, b in lines])
    domain = Domain({f"x{index}": 2 for index in range(n_columns)})
    measured = []
    for one, two in combinations(range(n_columns), 2):
        counts = np.bincount(2 * flags[one] + flags[two], minlength=4)
        noisy = counts + rng.normal(0.0, STDDEV, 4)
        measured.append(Measurement((f"x{one}", f"x{two}"), noisy, stddev=STDDEV))
    return domain, measured


@pytest.mark.parametrize("solver", [EarlyStopping(), Raking()])
@pytest.mark.parametrize("seed", range(2))
def test_records_are_those_of_their_potentials(seed: int, solver: EarlyStopping | Raking) -> None:
    """Exact inference of the potentials differs from the records by the stated error at most."""
    domain, measured = measure_strong_table(seed)
    oracle = Particles(n_records=100_000, seed=seed)
    fit = estimate(domain, measured, oracle=oracle, solver=solver)
    records = fit.model.distribution
    assert isinstance(records, RecordDistribution)
    cliques = [m.clique for m in measured]
    exact = Propagation(Plan.build(domain, cliques))
    ordered = exact.layout.pack(
        [records.layout.factor(records.potentials, clique) for clique in exact.layout.cliques]
    )
    found = exact.layout
    marginals = exact.marginals(ordered, fit.model.total).marginals
    apart = [
        (found.view(marginals, c) - fit.model.project(c).values).reshape(-1) / STDDEV
        for c in found.cliques
    ]
    distance = float(np.sqrt(np.mean(np.concatenate(apart) ** 2)))
    stated = fit.summary.oracle_error
    assert stated is not None
    assert distance <= stated
    assert stated < 1.5  # chance alone leaves 0.63


def test_an_error_is_seen_though_sweeps_are_slow() -> None:
    """Uniform records at potentials of a chain: the measured error is the true one."""
    names = [f"x{index}" for index in range(6)]
    domain = Domain(dict.fromkeys(names, 3))
    cliques = [*pairwise(names)]
    layout = Layout(domain, cliques)
    potentials = np.tile(2.5 * np.eye(3).reshape(-1), len(cliques))
    codes = draw_uniform_codes(domain.shape, 40_000, np.random.default_rng(0))
    population = Population(layout, codes, potentials, key=5)

    def residuals(records: Population) -> Vector:
        return 100.0 * records.marginals()

    exact = Propagation(Plan.build(domain, cliques))
    truth = np.concatenate(
        [exact.layout.view(exact.marginals(potentials).marginals, c).reshape(-1) for c in cliques]
    )
    right = float(np.sqrt(np.mean((residuals(population) - 100.0 * truth) ** 2)))
    chance = 100.0**2 / len(truth)
    stated = measure_error(population, residuals, chance)
    assert 0.97 * right <= stated <= 1.3 * right
    # What one record in 40,000 leaves to chance is the least that is ever stated.
    assert stated >= np.sqrt(chance / 40_000)
