"""Random problems that are small enough for the exact oracle: records beside it."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from juncture.engine.particles import Particles
from juncture.fit.estimation import estimate
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement


class Agreement(NamedTuple):
    """A fit with records beside the exact one."""

    ratio: float
    """Of the errors on the measured cliques."""
    distance: float
    """Of the marginals, beside the noise."""
    stated: float
    """The oracle's own error, beside the noise."""


def compare_with_exact(seed: int) -> Agreement:
    """Both fits of a random problem: three to five attributes, singles to triples, two noises."""
    rng = np.random.default_rng([seed, 16])
    sizes = {f"x{i}": int(rng.integers(2, 7)) for i in range(int(rng.integers(3, 6)))}
    domain, n = Domain(sizes), int(10 ** rng.uniform(2.5, 5))
    chances = rng.dirichlet(np.full(domain.size, 10 ** rng.uniform(-1.5, 0.5)))
    truth = rng.multinomial(n, chances).reshape(domain.shape)
    every = list(combinations(domain, int(rng.integers(1, 4))))
    chosen = rng.permutation(len(every))[: int(rng.integers(1, min(8, len(every)) + 1))]
    stddev, noise = float(n * 10 ** rng.uniform(-3, -1)), ("gaussian", "laplace")[seed % 2]
    exact_tables, measurements = [], []
    for clique in (every[index] for index in chosen):
        absent = tuple(i for i, name in enumerate(domain) if name not in clique)
        counts = truth.sum(axis=absent).astype(float)
        drawn = rng.normal(0, 1, counts.size)
        drawn = drawn if noise == "gaussian" else rng.laplace(0, 0.5**0.5, counts.size)
        exact_tables.append(counts)
        noisy = counts.reshape(-1) + stddev * drawn
        measurements.append(Measurement(clique, noisy, stddev=stddev, noise=noise))
    exact = estimate(domain, measurements, total=float(n))
    oracle = Particles(n_records=100_000, seed=seed)
    records = estimate(domain, measurements, total=float(n), oracle=oracle)
    tables = [
        [fit.model.project(m.clique).values for m in measurements] for fit in (exact, records)
    ]
    errors = [
        sum(float(np.abs(t - c).sum()) for t, c in zip(each, exact_tables, strict=True))
        for each in tables
    ]
    apart = np.concatenate([(a - b).reshape(-1) for a, b in zip(*tables, strict=True)]) / stddev
    assert records.summary.oracle_error is not None
    rms = float(np.sqrt(np.mean(apart**2)))
    return Agreement(errors[1] / errors[0], rms, records.summary.oracle_error)
