"""Fits of many small queries, beside the slower ways to the same loss.

    python bench/small_queries.py

Pairs of Adult's neighbouring columns are counted in groups of values, and cell by cell, with noise
of both kinds: as one sparse matrix, beside one by one. And they are measured by what two columns
say together: a pair's turns in a fit with records, compiled and in NumPy. Times are seconds of
processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar
from unittest.mock import patch

import numpy as np

from juncture import Measurement, estimate
from juncture.fit import sparse_queries
from juncture.fit.estimation import Estimate
from juncture.fit.loss import FitLoss
from juncture.fit.solvers import clique_problems
from juncture.fit.solvers.clique_problems import make_problem
from juncture.mechanisms.residual_planner import make_residual_query
from juncture.private.samples import adult_codes, adult_domain
from juncture.tables.domain import Domain
from juncture.tables.layout import Layout, Vector
from juncture.tables.noise import find_noise
from juncture.tables.queries.blocks import Buckets, Identity
from juncture.tables.queries.products import Kron, bind

MAX_SIZE, N_GROUPS, STDDEV = 50, 8, 30.0
N_RUNS = 3
SIZES, N_TURNS = (2, 5, 10, 20), 200

T = TypeVar("T")


def measure_pairs(
    make_query: Callable[[Domain], Kron], noise: str
) -> tuple[Domain, list[Measurement]]:
    """Noisy answers about pairs of columns."""
    sizes, codes, rng = adult_domain(), adult_codes(), np.random.default_rng(0)
    kept = {name: index for index, name in enumerate(sizes) if sizes[name] <= MAX_SIZE}
    domain = Domain({name: sizes[name] for name in kept})
    measured = []
    for pair in pairwise(domain):
        within = domain.project(pair)
        query = make_query(within)
        table = np.zeros(within.shape)
        np.add.at(table, tuple(codes[:, kept[name]] for name in pair), 1.0)
        exact = bind(query, within).apply(table)
        drawn = find_noise(noise).draw(rng, STDDEV, len(exact))
        measured.append(Measurement(pair, exact + drawn, stddev=STDDEV, query=query, noise=noise))
    return domain, measured


def count_groups(domain: Domain) -> Kron:
    """Values by their remainder."""
    kept = {name: min(size, N_GROUPS) for name, size in domain.items()}
    return Kron({n: Buckets(v % kept[n] for v in range(size)) for n, size in domain.items()})


def count_cells(domain: Domain) -> Kron:
    """Every value."""
    return Kron(dict.fromkeys(domain, Identity()))


def fit(domain: Domain, measured: list[Measurement]) -> tuple[float, Estimate]:
    """The seconds of a fit, the best of a few, and the fit."""
    return find_time(lambda: estimate(domain, measured))


def find_time(call: Callable[[], T]) -> tuple[float, T]:
    """The processor's seconds of a call, the best of a few, and what it gives."""
    times = []
    for _ in range(N_RUNS):
        start = time.process_time()
        made = call()
        times.append(time.process_time() - start)
    return min(times), made


def balance_contrasts(size: int) -> tuple[float, Vector]:
    """The seconds of so many turns of a pair in a fit with records, and the change of the last."""
    domain, rng = Domain({"a": size, "b": size}), np.random.default_rng(0)
    query = make_residual_query(domain, ("a", "b"))
    counts = 1_000.0 * rng.dirichlet(np.full(domain.size, 0.5))
    answers = bind(query, domain).apply_flat(counts) + rng.normal(0.0, 5.0, (size - 1) ** 2)
    measured = Measurement(("a", "b"), answers, stddev=5.0, query=query)
    problem = make_problem(FitLoss(Layout(domain, [("a", "b")]), [measured], "l2"), ("a", "b"))
    assert problem is not None
    base, change = rng.dirichlet(np.full(domain.size, 0.5)), np.zeros(domain.size)

    def take_turns() -> Vector:
        return [problem.balance(base, change, 0.01, 1_000.0) for _ in range(N_TURNS)][-1]

    return find_time(take_turns)


def main() -> None:
    """A row for each kind of query and noise."""
    print(f"{'':24}{'without':>10}{'with':>8}{'ratio':>8}{'results differ by':>18}")
    for what, make_query in (("groups", count_groups), ("cells", count_cells)):
        for noise in ("gaussian", "laplace"):
            domain, measured = measure_pairs(make_query, noise)
            together, one = fit(domain, measured)
            with patch.object(sparse_queries, "_MAX_ENTRIES", 0):
                alone, other = fit(domain, measured)
            apart = abs(one.summary.loss / other.summary.loss - 1.0)
            print_row(f"{what}, {noise}", alone, together, apart)
    for size in SIZES:
        compiled, change = balance_contrasts(size)
        with patch.object(clique_problems, "_MAX_ENTRIES", 0):
            in_numpy, same = balance_contrasts(size)
        apart = float(np.abs(change - same).max())
        print_row(f"contrasts, {size} by {size}", in_numpy, compiled, apart)


def print_row(name: str, without: float, now: float, apart: float) -> None:
    """One way beside the other."""
    print(f"{name:24}{without:10.3f}{now:8.3f}{without / now:8.1f}{apart:18.1e}")


if __name__ == "__main__":
    main()
