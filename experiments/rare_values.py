"""Rare values that share counts, beside those that stand alone: errors of every pair of columns.

    python experiments/rare_values.py [--mechanism tiers] [--seeds 2] [--data FOLDER]

Prints, for the same seeds, the share of records in wrong cells with `merge_rare` off, auto and on,
at epsilon 1 and delta 1e-6, and the processor's seconds. Tables are made up: records come in a
dozen groups, and columns of many values, most of them rare, differ between groups a little, or
so much that most rare values are found in one group alone; in the third table codes have an order,
as postal codes in a region do. With the folder of the paper's data sets, Adult and Titanic in the
coding of AIM's author and some columns of Loans, with postal codes, are printed too. What "auto"
has decided stands behind its error: in how many measured tables rare values share counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from paper_data import make_source, read_codes

from juncture.mechanisms.aim import AIM
from juncture.mechanisms.mst import MST
from juncture.mechanisms.mwem import MWEM
from juncture.mechanisms.tiers import Tiers
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.workload import Workload, workload_error

BUDGET = Budget(epsilon=1.0, delta=1e-6)
MECHANISMS = {"tiers": Tiers, "aim": AIM, "mst": MST, "mwem": MWEM}
SIZES, N_GROUPS, N_RECORDS = (1000, 120, 30, 8, 5, 3, 2), 12, 20_000
MADE_UP = ("a little", "a lot", "in order")
LOANS = ("zip_code", "addr_state", "int_rate", "sub_grade", "grade", "purpose", "term")


def make_up(kind: str) -> CodedTable:
    """A table with columns of many rare values."""
    rng = np.random.default_rng(100)
    group = rng.integers(0, N_GROUPS, N_RECORDS)
    columns = {}
    for index, size in enumerate(SIZES):
        base = rng.permutation(np.arange(1.0, size + 1) ** -1.2)
        base /= base.sum()
        if kind == "a lot":
            shares = rng.dirichlet(np.maximum(0.6 * size * base, 1e-3), N_GROUPS)
        elif kind == "a little":
            shares = base * np.exp(rng.normal(0.0, 0.8, (N_GROUPS, size)))
        else:
            centres = rng.random((N_GROUPS, 1))
            shares = base * np.exp(-12.0 * np.abs(np.arange(size) / size - centres))
        ends = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
        drawn = [
            np.searchsorted(ends[g], u) for g, u in zip(group, rng.random(N_RECORDS), strict=True)
        ]
        columns[f"c{index}"] = np.minimum(drawn, size - 1)
    return CodedTable(Domain({f"c{index}": size for index, size in enumerate(SIZES)}), columns)


def read(name: str, folder: Path) -> CodedTable:
    """A table of the paper, or some columns of it."""
    domain, codes = read_codes(name, folder)
    kept = [n for n in domain if name != "loans" or n in LOANS]
    chosen = codes[:, [domain.positions[n] for n in kept]]
    return make_source(Domain({n: domain[n] for n in kept}), chosen)


def compare(title: str, source: CodedTable, mechanism: str, seeds: int) -> None:
    """Print a line for each seed."""
    workload = Workload.all_marginals(source.domain, 2)
    exact = dict(zip(workload.cliques, source.exact_counts(workload.cliques), strict=True))
    truth = workload.answers(exact.__getitem__)
    for seed in range(seeds):
        words = []
        for choice in ("off", "auto", "on"):
            made = MECHANISMS[mechanism](BUDGET, merge_rare=choice)
            with tempfile.TemporaryDirectory() as folder:
                ledger = Ledger.create(Path(folder, "x"), BUDGET, Neighbours.ADD_OR_REMOVE)
                curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(seed))
                begun = time.process_time()
                result = made.run(curator, workload)
                answers = result.answers()
                busy = time.process_time() - begun
            error = workload_error(truth, answers, workload.weights)
            merged = result.details["merged_tables"]
            words.append(f"{choice} {error:.4f} ({merged} merged, {busy:.1f} s)")
        print(f"{title:<12} {mechanism}, seed {seed}: {'  '.join(words)}", flush=True)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mechanism", choices=MECHANISMS, default="tiers")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--tables", nargs="*", default=[*MADE_UP])
    parser.add_argument("--data", type=Path, help="the folder of the paper's data sets")
    options = parser.parse_args()
    for kind in options.tables:
        compare(kind, make_up(kind), options.mechanism, options.seeds)
    for name in ("titanic-aim", "adult-aim", "loans") if options.data else ():
        compare(name, read(name, options.data), options.mechanism, options.seeds)


if __name__ == "__main__":
    main()
