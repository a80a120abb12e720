"""The mechanisms on Adult with the paper's workload, in both forms, at one budget.

Simulated runs: medians over seeds of the paper's workload error.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from juncture.data.samples import adult_codes, adult_domain
from juncture.data.source import Memory
from juncture.domain import Domain
from juncture.errors import ModelTooLarge
from juncture.mechanisms.dual_query import DualQuery
from juncture.mechanisms.hdmm import HDMM, Estimation
from juncture.mechanisms.mwem import MWEM, Selection, Update
from juncture.mechanisms.privbayes import PrivBayes
from juncture.privacy.accounting import Budget, Neighbours
from juncture.privacy.ledger import Ledger
from juncture.privacy.simulated import SimulatedCurator
from juncture.workload import Workload, workload_error

# The paper's, for DualQuery alone; the others are pure.
DELTA = 0.001


def mechanisms(epsilon: float) -> dict[str, Any]:
    """By name: the original, then the form with a model."""
    local = Estimation.LOCAL
    queries = Selection.QUERY
    return {
        "HDMM + LLS": HDMM(epsilon=epsilon, estimation=local),
        "HDMM + model": HDMM(epsilon=epsilon),
        "MWEM, full table": MWEM(epsilon=epsilon, selection=queries, update=Update.FULL),
        "MWEM, factored": MWEM(epsilon=epsilon, selection=queries, update=Update.FACTORED),
        "MWEM + model, single queries": MWEM(epsilon=epsilon, selection=queries),
        "MWEM + model, marginals": MWEM(epsilon=epsilon),
        "PrivBayes": PrivBayes(epsilon=epsilon, estimation=local, seed=0),
        "PrivBayes + model": PrivBayes(epsilon=epsilon),
        "DualQuery": DualQuery(epsilon=epsilon, delta=DELTA, estimation=local, seed=0),
        "DualQuery + model": DualQuery(epsilon=epsilon, delta=DELTA, seed=0),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    sizes = {name: size for name, size in adult_domain().items() if name != "education"}
    columns = dict(zip(adult_domain(), adult_codes().astype(np.int64).T, strict=True))
    domain = Domain(sizes)
    source = Memory(domain, columns)
    workload = Workload.of_the_paper(domain, source.exact_n_records)
    tables = source.exact_counts(workload.cliques)
    truth = [
        t.operator(domain).apply(f.values) for t, f in zip(workload.tasks, tables, strict=True)
    ]
    print(f"Adult, {len(workload.tasks)} triples, {workload.n_queries:,} queries, epsilon "
          f"{options.epsilon:g}, {options.seeds} seeds\n")  # fmt: skip
    for name, mechanism in mechanisms(options.epsilon).items():
        errors, began = [], time.perf_counter()
        try:
            for seed in range(options.seeds):
                with tempfile.TemporaryDirectory() as folder:
                    delta = DELTA if isinstance(mechanism, DualQuery) else None
                    budget = Budget(epsilon=options.epsilon, delta=delta)
                    ledger = Ledger.create(Path(folder) / "ledger", budget, Neighbours.REPLACE)
                    rng = np.random.default_rng(seed)
                    outcome = mechanism.run(SimulatedCurator(source, ledger, rng=rng), workload)
                    errors.append(workload_error(truth, outcome.answers(workload)))
        except ModelTooLarge as error:
            print(f"{name:<30} cannot run: {error}")
            continue
        seconds = (time.perf_counter() - began) / options.seeds
        middle, low, high = statistics.median(errors), min(errors), max(errors)
        print(f"{name:<30} error {middle:.4f} ({low:.4f} to {high:.4f}), {seconds:.1f} s a run")


if __name__ == "__main__":
    main()
