"""Private bins beside 32 equal-width public bins: errors of ranges, and distances of records.

    python experiments/private_bins.py [--adult adult.csv] [--seeds 3]

Prints, for every column of numbers, the mean absolute error of 200 random ranges and the Kolmogorov
distance of synthetic to true values, at epsilon 1 and delta 1e-6. Columns are generated: an income,
a loan, a capital gain that most people do not have, ages, and a smooth one. With the raw file of
Adult (the package `dataprep` 0.4.1 carries it), its columns are printed too.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import juncture as jn
from juncture.tables.columns import OpenInteger, Outside

BUDGET = jn.Budget(epsilon=1.0, delta=1e-6)
N_RANGES, N_BINS = 200, 32
ADULT = {
    "age": (0, 120),
    "fnlwgt": (0, 1_500_000),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 5_000),
    "hours-per-week": (0, 100),
}
GENERATED = {
    "income": (0, 6_000_000),
    "loan": (0, 50_000),
    "gain": (0, 99_999),
    "age": (0, 120),
    "smooth": (0, 999),
}
Bounds = dict[str, tuple[int, int]]


def generate(n: int = 40_000) -> pa.Table:
    """Heavy tails, a heavy value, rounded amounts, and a column that is easy."""
    rng = np.random.default_rng(11)
    age = np.clip(rng.normal(45, 16, n), 18, 99)
    gain = np.where(rng.random(n) < 0.92, 0, rng.lognormal(8.5, 0.9, n))
    numbers = {
        "income": rng.lognormal(10.9, 0.7, n),
        "loan": 25 * np.round(rng.gamma(2.0, 220.0, n)),
        "gain": np.minimum(gain, 99_999),
        "age": age,
        "smooth": np.clip(rng.normal(500, 150, n), 0, 999),
    }
    return pa.table({name: values.astype(int) for name, values in numbers.items()})


def read_adult(path: Path) -> pa.Table:
    """The columns of numbers of Adult's raw file."""
    with path.open() as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    return pa.table({name: [int(row[name]) for row in rows] for name in ADULT})


def make_schema(bounds: Bounds, *, private: bool) -> jn.Schema:
    """Bins that are found, or bins of one width."""
    near = Outside.NEAREST
    if private:
        return jn.Schema(
            {n: OpenInteger(low=a, high=b, outside=near) for n, (a, b) in bounds.items()}
        )
    return jn.Schema(
        {
            name: jn.Integer(low=a, high=b, width=max(1, -(-(b - a + 1) // N_BINS)), outside=near)
            for name, (a, b) in bounds.items()
        }
    )


def measure(table: pa.Table, bounds: Bounds, *, private: bool, seed: int) -> dict[str, np.ndarray]:
    """For each column, the error of ranges and the Kolmogorov distance, of one release."""
    schema = make_schema(bounds, private=private)
    with tempfile.TemporaryDirectory() as folder:
        made = jn.release(table, schema, BUDGET, ledger=Path(folder, "x.ledger"))
    records, rng = made.synthesize(rng=seed).to_arrow(), np.random.default_rng(seed)
    found = {}
    for name, (low, high) in bounds.items():
        true = np.sort(table[name].to_numpy())
        drawn = np.sort(records[name].to_numpy())
        ends = np.sort(rng.integers(low, high + 1, (N_RANGES, 2)), axis=1)
        counts = np.searchsorted(true, ends[:, 1], "right") - np.searchsorted(true, ends[:, 0])
        coding, masses = made.model.codebook[name], made.model.one_way(name)
        answers = [
            float((coding.share_below(b, inclusive=True) - coding.share_below(a)) @ masses)
            for a, b in ends.tolist()
        ]
        places = np.union1d(true, drawn)
        shares = [np.searchsorted(x, places, "right") / len(x) for x in (true, drawn)]
        distance = np.abs(shares[0] - shares[1]).max()
        found[name] = np.array([np.abs(np.array(answers) - counts).mean(), distance])
    return found


def compare(title: str, table: pa.Table, bounds: Bounds, seeds: int) -> None:
    """Print both ways side by side, averaged over runs."""
    means = [
        [measure(table, bounds, private=private, seed=seed) for seed in range(seeds)]
        for private in (False, True)
    ]
    print(f"{title}: {table.num_rows:,} records, mean of {seeds} runs")
    print(f"{'column':<16}{'range error':>24}{'change':>9}{'Kolmogorov':>20}{'change':>9}")
    for name in bounds:
        public, private = (np.mean([run[name] for run in runs], axis=0) for runs in means)
        change = 100.0 * (private / public - 1.0)
        print(
            f"{name:<16}{public[0]:>12.1f}{private[0]:>12.1f}{change[0]:>8.0f}%"
            f"{public[1]:>10.4f}{private[1]:>10.4f}{change[1]:>8.0f}%"
        )


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, help="Adult's raw file")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    compare("generated", generate(), GENERATED, options.seeds)
    if options.adult is not None:
        compare("Adult", read_adult(options.adult), ADULT, options.seeds)


if __name__ == "__main__":
    main()
