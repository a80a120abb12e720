"""How long fits take beside what was predicted: exact and with records. Ours alone.

The constants of `juncture.engine.predicted_time` come from here. Each shape is fitted to noisy
counts until only noise is left; seconds are those of all processors together.

    python bench/predicted_times.py                 every shape
    python bench/predicted_times.py --shape "clique of 6"
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable

import numpy as np

from juncture.engine.oracle_names import OracleName
from juncture.engine.plan import Plan
from juncture.engine.predicted_time import PredictedTime, predict_time
from juncture.fit.estimation import Estimate, estimate
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.model.record_distribution import RecordDistribution
from juncture.tables.domain import Clique, Domain
from juncture.tables.measurement import Measurement

_N_PEOPLE, _STDDEV = 50_000, 100.0


def _band(n: int, size: int, width: int) -> tuple[Domain, list[Clique]]:
    """Attributes in a row, each measured with so many that follow."""
    names = [f"x{index}" for index in range(n)]
    pairs: list[Clique] = [
        (one, two)
        for index, one in enumerate(names)
        for two in names[index + 1 : index + 1 + width]
    ]
    return Domain(dict.fromkeys(names, size)), pairs


SHAPES = {
    "chain of 60": _band(60, 8, 1),
    "band of 12": _band(12, 6, 4),
    "band of 30": _band(30, 5, 3),
    "clique of 5": _band(5, 10, 4),
    "clique of 6": _band(6, 10, 5),
    "clique of 7": _band(7, 10, 6),
}


def main() -> None:
    """Fit every shape both ways, and print a line for each fit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shape", choices=list(SHAPES), action="append")
    options = parser.parse_args()
    domain, cliques = _band(3, 2, 1)
    for oracle in (OracleName.EXACT, OracleName.RECORDS):  # what is compiled once is not counted
        fit(domain, measure(domain, cliques), oracle)
    print(f"{'shape':<14} {'oracle':<8} {'predicted':>10} {'measured':>10} {'ratio':>6}")
    for name in options.shape or SHAPES:
        domain, cliques = SHAPES[name]
        measurements = measure(domain, cliques)
        for oracle in (OracleName.EXACT, OracleName.RECORDS):
            began = time.process_time()
            made = fit(domain, measurements, oracle)
            seconds = time.process_time() - began
            time_predicted = _predict(domain, cliques, made)
            records = oracle is OracleName.RECORDS
            expected = time_predicted.records if records else time_predicted.exact or 0.0
            row = f"{name:<14} {oracle.value:<8} {expected:8.2f} s {seconds:8.2f} s"
            print(f"{row} {expected / seconds:6.2f}", flush=True)


def fit(domain: Domain, measurements: list[Measurement], oracle: OracleName) -> Estimate:
    """A fit that stops at the noise."""
    return estimate(
        domain, measurements, total=float(_N_PEOPLE), oracle=oracle.value, solver=EarlyStopping()
    )


def _predict(domain: Domain, cliques: Iterable[Clique], made: Estimate) -> PredictedTime:
    distribution = made.model.distribution
    n_records = None
    if isinstance(distribution, RecordDistribution):
        n_records = len(distribution.weights)
    return predict_time(Plan.build(domain, cliques), n_records)


def measure(domain: Domain, cliques: list[Clique]) -> list[Measurement]:
    """Noisy counts of a table whose neighbouring columns depend on each other."""
    rng = np.random.default_rng(1)
    kinds, codes = rng.integers(0, 4, _N_PEOPLE), dict[str, np.ndarray]()
    for index, (name, size) in enumerate(domain.items()):
        values = kinds * (index % 3) + rng.poisson(1.0 + index % 4, _N_PEOPLE)
        codes[name] = np.minimum(values, size - 1)
    result = []
    for clique in cliques:
        shape = [domain[name] for name in clique]
        cells = np.ravel_multi_index([codes[name] for name in clique], shape)
        counts = np.bincount(cells, minlength=int(np.prod(shape)))
        noisy = counts + rng.normal(0.0, _STDDEV, counts.size)
        result.append(Measurement(clique, noisy, stddev=_STDDEV))
    return result


if __name__ == "__main__":
    main()
