"""Private bins beside 32 equal-width public bins: errors of ranges, and distances of records.

    python experiments/private_bins.py [--adult adult.csv] [--data FOLDER] [--seeds 3] [--keep]

Prints, for every column of numbers, the mean absolute error of 200 random ranges and the Kolmogorov
distance of synthetic to true values, at epsilon 1 and delta 1e-6. Columns are generated: an income,
a loan, a capital gain that most people do not have, ages, and a smooth one. With the raw file of
Adult (the package `dataprep` 0.4.1 carries it), its columns are printed too; with the folder of the
paper's data sets, columns of Titanic and Loans: what their codes leave open of a number is drawn
evenly. `--keep` writes the rows to `results/private_bins.csv`.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from paper_data import read_codes
from store import Store

import juncture as jn
from juncture.tables.columns import OpenInteger, Outside

BUDGET = jn.Budget(epsilon=1.0, delta=1e-6)
N_RANGES, N_BINS = 200, 32
ROWS = Path(__file__).parent / "results" / "private_bins.csv"
Bounds = dict[str, tuple[int, int]]
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
# Columns of the paper's data sets: the number of regular codes, and the bounds that they divide.
CODED = {
    "titanic": {"Age": (90, 0, 90), "Fare": (100, 0, 550)},
    "loans": {
        "loan_amnt": (100, 0, 35_000),
        "installment": (100, 0, 1_500),
        "annual_inc": (100, 0, 500_000),
        "open_acc": (61, 0, 61),
        "total_acc": (100, 0, 100),
        "revol_bal": (100, 0, 150_000),
        "total_pymnt": (100, 0, 60_000),
    },
}


@dataclass(frozen=True)
class Numbers:
    """Columns of whole numbers, with public bounds."""

    name: str
    table: pa.Table
    bounds: Bounds


def generate(n: int = 40_000) -> Numbers:
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
    table = pa.table({name: values.astype(int) for name, values in numbers.items()})
    return Numbers("generated", table, GENERATED)


def read_adult(path: Path) -> Numbers:
    """The columns of numbers of Adult's raw file."""
    with path.open() as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    table = pa.table({name: [int(row[name]) for row in rows] for name in ADULT})
    return Numbers("adult", table, ADULT)


def read_coded(name: str, folder: Path) -> Numbers:
    """Columns of a data set as whole numbers; a missing one is missing."""
    domain, codes = read_codes(name, folder)
    rng, columns, bounds = np.random.default_rng(5), {}, {}
    for column, (n_codes, low, high) in CODED[name].items():
        own = codes[:, domain.positions[column]]
        way = (own + rng.random(len(own))) / n_codes
        values = np.minimum(np.floor(low + way * (high - low)), high - 1).astype(int)
        columns[column] = pa.array(values, mask=own >= n_codes)
        bounds[column] = (low, high - 1)
    return Numbers(name, pa.table(columns), bounds)


def make_schema(numbers: Numbers, *, private: bool) -> jn.Schema:
    """Bins that are found, or bins of one width."""
    columns: dict[str, jn.Integer] = {}
    for name, (low, high) in numbers.bounds.items():
        common = {"outside": Outside.NEAREST, "missing": numbers.table[name].null_count > 0}
        width = max(1, -(-(high - low + 1) // N_BINS))
        columns[name] = (
            OpenInteger(low=low, high=high, **common)
            if private
            else jn.Integer(low=low, high=high, width=width, **common)
        )
    return jn.Schema(columns)


def measure(numbers: Numbers, *, private: bool, seed: int) -> dict[str, np.ndarray]:
    """For each column, the error of ranges and the Kolmogorov distance, of one release."""
    schema = make_schema(numbers, private=private)
    with tempfile.TemporaryDirectory() as folder:
        made = jn.release(numbers.table, schema, BUDGET, ledger=Path(folder, "x.ledger"))
    records, rng = made.synthesize(rng=seed).to_arrow(), np.random.default_rng(seed)
    found = {}
    for name, (low, high) in numbers.bounds.items():
        true, drawn = (np.sort(t[name].drop_null().to_numpy()) for t in (numbers.table, records))
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


def compare(numbers: Numbers, seeds: int) -> list[dict[str, object]]:
    """Print both ways side by side, averaged over runs."""
    means = [
        [measure(numbers, private=private, seed=seed) for seed in range(seeds)]
        for private in (False, True)
    ]
    print(f"{numbers.name}: {numbers.table.num_rows:,} records, mean of {seeds} runs")
    print(f"{'column':<16}{'range error':>24}{'change':>9}{'Kolmogorov':>20}{'change':>9}")
    rows = []
    for name in numbers.bounds:
        public, private = (np.mean([run[name] for run in runs], axis=0) for runs in means)
        change = 100.0 * (private / public - 1.0)
        print(
            f"{name:<16}{public[0]:>12.1f}{private[0]:>12.1f}{change[0]:>8.0f}%"
            f"{public[1]:>10.4f}{private[1]:>10.4f}{change[1]:>8.0f}%",
            flush=True,
        )
        values = zip(("error", "kolmogorov"), public.tolist(), private.tolist(), strict=True)
        rows.append(
            {"column": name, "runs": seeds}
            | {
                f"{what}_{k}": v
                for what, a, b in values
                for k, v in (("public", a), ("private", b))
            }
        )
    return rows


def list_tables(adult: Path | None, data: Path | None) -> Iterator[Numbers]:
    """All that there are."""
    yield generate()
    if adult is not None:
        yield read_adult(adult)
    if data is not None:
        for name in CODED:
            yield read_coded(name, data)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, help="Adult's raw file")
    parser.add_argument("--data", type=Path, help="the folder of the paper's data sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="write the rows to results/")
    options = parser.parse_args()
    store = Store(ROWS)
    for numbers in list_tables(options.adult, options.data):
        rows = compare(numbers, options.seeds)
        if options.keep:
            store.add({"table": numbers.name}, rows)


if __name__ == "__main__":
    main()
