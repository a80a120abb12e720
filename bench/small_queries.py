"""Fits of many small queries: all of them as one sparse matrix, beside one by one.

    python bench/small_queries.py

Pairs of Adult's neighbouring columns are counted in groups of values, and cell by cell, with noise
of both kinds. Times are seconds of processor time; the two fits end with the same loss.
"""

from __future__ import annotations

import time
from itertools import pairwise
from unittest.mock import patch

import numpy as np

from juncture import Measurement, estimate
from juncture.fit import sparse_queries
from juncture.fit.estimation import Estimate
from juncture.private.samples import adult_codes, adult_domain
from juncture.tables.domain import Domain
from juncture.tables.noise import find_noise
from juncture.tables.queries.blocks import Block, Buckets, Identity
from juncture.tables.queries.products import Kron, bind

MAX_SIZE, N_GROUPS, STDDEV = 50, 8, 30.0
N_RUNS = 3


def measure_pairs(grouped: bool, noise: str) -> tuple[Domain, list[Measurement]]:
    """Noisy counts of pairs of columns, of groups of values or of all."""
    sizes, codes, rng = adult_domain(), adult_codes(), np.random.default_rng(0)
    kept = {name: index for index, name in enumerate(sizes) if sizes[name] <= MAX_SIZE}
    domain = Domain({name: sizes[name] for name in kept})
    measured = []
    for pair in pairwise(domain):
        query = Kron({name: _group(domain[name]) if grouped else Identity() for name in pair})
        within = domain.project(pair)
        table = np.zeros(within.shape)
        np.add.at(table, tuple(codes[:, kept[name]] for name in pair), 1.0)
        exact = bind(query, within).apply(table)
        drawn = find_noise(noise).draw(rng, STDDEV, len(exact))
        measured.append(Measurement(pair, exact + drawn, stddev=STDDEV, query=query, noise=noise))
    return domain, measured


def _group(size: int) -> Block:
    """Values by their remainder."""
    return Buckets(value % min(size, N_GROUPS) for value in range(size))


def fit(domain: Domain, measured: list[Measurement]) -> tuple[float, Estimate]:
    """The seconds of a fit, the best of a few, and the fit."""
    times = []
    for _ in range(N_RUNS):
        start = time.process_time()
        made = estimate(domain, measured)
        times.append(time.process_time() - start)
    return min(times), made


def main() -> None:
    """A row for each kind of table and noise."""
    print(f"{'':24}{'one by one':>12}{'together':>10}{'ratio':>8}{'losses differ by':>18}")
    for grouped in (True, False):
        for noise in ("gaussian", "laplace"):
            domain, measured = measure_pairs(grouped, noise)
            together, one = fit(domain, measured)
            with patch.object(sparse_queries, "_MAX_ENTRIES", 0):
                alone, other = fit(domain, measured)
            apart = abs(one.summary.loss / other.summary.loss - 1.0)
            name = f"{'groups' if grouped else 'cells'}, {noise}"
            print(f"{name:24}{alone:12.2f}{together:10.2f}{alone / together:8.1f}{apart:18.1e}")


if __name__ == "__main__":
    main()
