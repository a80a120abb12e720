"""Fit all pairs of real tables without a junction tree, and print errors, times and mixing.

The tables are integer-coded CSV files with a domain file each (`adult.csv.gz`, `adult-domain.json`)
in a folder that you name; they do not come with the package. All pairs are measured once, with
equal shares of rho 0.0244 (epsilon 1, delta 1e-6) and Gaussian noise, and fitted with records,
stopping at the noise. The error is the mean total variation distance over all triples.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from juncture import Domain, Measurement, Model, estimate
from juncture.engine import Particles
from juncture.fit.solvers import EarlyStopping

RHO = 0.0244
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


def measure_pairs(domain: Domain, table: Table, seed: int) -> list[Measurement]:
    """All pairs with equal shares of the budget."""
    pairs, rng = [*combinations(domain, 2)], np.random.default_rng(seed)
    stddev = float(np.sqrt(len(pairs) / (2.0 * RHO)))
    noisy = ((pair, count(domain, table, pair)) for pair in pairs)
    return [
        Measurement(pair, counts + rng.normal(0.0, stddev, len(counts)), stddev=stddev)
        for pair, counts in noisy
    ]


def find_error(model: Model, table: Table) -> float:
    """The mean total variation distance over all triples."""
    domain, distances = model.domain, []
    for triple in combinations(domain, 3):
        exact = count(domain, table, triple)
        shares = model.project(triple).values.reshape(-1) / model.total
        distances.append(0.5 * np.abs(exact / exact.sum() - shares).sum())
    return float(np.mean(distances))


def main() -> None:
    """Print a line for each table and seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the tables")
    parser.add_argument("--tables", nargs="+", default=["titanic", "adult"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--records", type=int, help="how many; by default as the noise asks")
    options = parser.parse_args()
    for name in options.tables:
        domain, table = read_table(options.data, name)
        for seed in range(options.seeds):
            measurements = measure_pairs(domain, table, 100 + seed)
            particles = Particles(n_records=options.records, seed=seed)
            start, busy = time.perf_counter(), time.process_time()
            fit = estimate(domain, measurements, oracle=particles, solver=EarlyStopping())
            wall, busy = time.perf_counter() - start, time.process_time() - busy
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
