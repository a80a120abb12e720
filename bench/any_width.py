"""Fit all pairs of real tables without a junction tree, and print errors, times and mixing.

The tables are integer-coded CSV files with a domain file each (`adult.csv.gz`, `adult-domain.json`)
in a folder that you name; they do not come with the package. All pairs are measured once, with
equal shares of rho 0.0244 (epsilon 1, delta 1e-6) and Gaussian noise, and fitted with records,
stopping at the noise. The error is the mean total variation distance over triples, at most 500 of
them.

    python bench/any_width.py --data FOLDER --tables adult titanic loans
    python bench/any_width.py --scaling       random tables: records, pairs and attributes doubled
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from harness import peak_bytes
from numpy.typing import NDArray

from juncture import Domain, Measurement, Model, estimate
from juncture.engine import Particles
from juncture.fit.estimation import Estimate
from juncture.fit.solvers import EarlyStopping

RHO = 0.0244
MAX_CELLS, MAX_TRIPLE, MAX_TRIPLES = 10_000, 2_000_000, 500
# Attributes, pairs and records of the random tables: the first, then one of them halved.
SHAPES = (
    (100, 1000, 1_000_000),
    (50, 1000, 1_000_000),
    (100, 500, 1_000_000),
    (100, 1000, 500_000),
)
Table = dict[str, NDArray[np.int64]]


def read_table(folder: Path, name: str) -> tuple[Domain, Table]:
    """A coded table and its domain."""
    domain = Domain(json.loads((folder / f"{name}-domain.json").read_text(encoding="utf-8")))
    with gzip.open(folder / f"{name}.csv.gz", "rt") as file:
        header = file.readline().strip().split(",")
        rows = np.loadtxt(file, delimiter=",", dtype=np.int64)
    return domain, {each: rows[:, header.index(each)] for each in domain}


def count(domain: Domain, table: Table, clique: tuple[str, ...]) -> NDArray[np.float64]:
    """The exact counts of a clique's cells, flat."""
    shape = [domain[name] for name in clique]
    cells = np.ravel_multi_index([table[name] for name in clique], shape)
    return np.bincount(cells, minlength=domain.size_of(clique)).astype(np.float64)


def measure_pairs(
    domain: Domain, table: Table, seed: int, n_pairs: int | None = None
) -> list[Measurement]:
    """All pairs of at most 10,000 cells, or some of them, with equal shares of the budget."""
    rng = np.random.default_rng(seed)
    pairs = [pair for pair in combinations(domain, 2) if domain.size_of(pair) <= MAX_CELLS]
    if n_pairs is not None:
        pairs = [pairs[i] for i in rng.choice(len(pairs), n_pairs, replace=False)]
    stddev = float(np.sqrt(len(pairs) / (2.0 * RHO)))
    noisy = ((pair, count(domain, table, pair)) for pair in pairs)
    return [
        Measurement(pair, counts + rng.normal(0.0, stddev, len(counts)), stddev=stddev)
        for pair, counts in noisy
    ]


def find_error(model: Model, table: Table) -> float:
    """The mean total variation distance over all triples."""
    domain, distances = model.domain, []
    small = [each for each in combinations(domain, 3) if domain.size_of(each) <= MAX_TRIPLE]
    chosen = np.random.default_rng(0).permutation(len(small))[:MAX_TRIPLES]
    for triple in (small[index] for index in sorted(chosen)):
        exact = count(domain, table, triple)
        shares = model.project(triple).values.reshape(-1) / model.total
        distances.append(0.5 * np.abs(exact / exact.sum() - shares).sum())
    return float(np.mean(distances))


class Timed(NamedTuple):
    """A fit with records, and the seconds that it took: by the clock, and of processors."""

    fit: Estimate
    wall: float
    busy: float


def time_fit(domain: Domain, measurements: list[Measurement], oracle: Particles) -> Timed:
    """Fit, stopping at the noise."""
    start, busy = time.perf_counter(), time.process_time()
    fit = estimate(domain, measurements, oracle=oracle, solver=EarlyStopping())
    return Timed(fit, time.perf_counter() - start, time.process_time() - busy)


def print_scaling() -> None:
    """Fit random pairs of random tables, and print what it took."""
    for n_attributes, n_pairs, n_records in SHAPES:
        domain = Domain({f"x{index}": 10 for index in range(n_attributes)})
        rng = np.random.default_rng(0)
        kind = rng.integers(0, 4, 100_000)
        table: Table = {
            name: (kind * rng.integers(1, 4) + rng.binomial(6, 0.3, len(kind))) % 10
            for name in domain
        }
        measurements = measure_pairs(domain, table, 0, n_pairs)
        fit, wall, busy = time_fit(domain, measurements, Particles(n_records=n_records))
        print(
            f"{n_attributes} attributes, {n_pairs} pairs, {n_records:,} records: {wall:.1f} s "
            f"({busy:.1f} s of processors), {fit.summary.oracle_calls} passes, "
            f"{1e9 * busy / fit.summary.oracle_calls / n_pairs / n_records:.1f} ns for each pass, "
            f"pair and record, {peak_bytes() / 1e6:,.0f} MB, {fit.status.name}",
            flush=True,
        )


def main() -> None:
    """Print a line for each table and seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder with the tables")
    parser.add_argument("--scaling", action="store_true", help="random tables of several shapes")
    parser.add_argument("--tables", nargs="+", default=["titanic", "adult"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--records", type=int, help="how many; by default as the noise asks")
    options = parser.parse_args()
    if options.scaling:
        print_scaling()
    for name in options.tables if options.data else ():
        domain, table = read_table(options.data, name)
        for seed in range(options.seeds):
            measurements = measure_pairs(domain, table, 100 + seed)
            particles = Particles(n_records=options.records, seed=seed)
            fit, wall, busy = time_fit(domain, measurements, particles)
            print(
                f"{name} seed {seed}: {len(measurements)} pairs, "
                f"triples {find_error(fit.model, table):.4f}, "
                f"{wall:.1f} s ({busy:.1f} s of processors), {fit.summary.oracle_calls} passes, "
                f"{fit.status.name}, oracle error {fit.summary.oracle_error:.3f} of the noise, "
                f"{len(fit.misfits)} misfits",
                flush=True,
            )


if __name__ == "__main__":
    main()
