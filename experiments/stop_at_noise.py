"""How near the stopping rule comes to the best point of the path, and to fitting to the end.

python experiments/stop_at_noise.py                  Adult, which ships with the package
python experiments/stop_at_noise.py --data FOLDER    the paper's four data sets

Fifteen triples are measured with simulated Laplace noise. Figures are the mean total variation
distance between the model's and the true marginals of the triples: at the best point of the
accelerated path (which nobody can know without the truth), with the rule, and fitted to the end.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from paper_data import DataSet, exact_counts, load

from juncture import Measurement, Model, Plan, Propagation, StopAtNoise, estimate
from juncture.layout import Vector
from juncture.loss import FitLoss
from juncture.solvers.accelerated import Cycle
from juncture.solvers.problem import Calls, Problem

SCALES = (10.0, 30.0, 100.0)
SETS = ("adult", "titanic", "loans", "stroke")
PATH_CALLS = 250


def measure(data: DataSet, scale: float, seed: int) -> list[Measurement]:
    """Simulated Laplace noise on every cell of every triple."""
    rng = np.random.default_rng(seed)
    found = []
    for clique in data.triples:
        counts = exact_counts(data, clique)
        noisy = counts + rng.laplace(0.0, scale, len(counts))
        found.append(Measurement(clique, noisy, stddev=scale * 2**0.5, noise="laplace"))
    return found


def model_error(data: DataSet, model: Model) -> float:
    """The mean total variation distance of a model over the triples."""
    distances = [
        np.abs(model.project(clique).values.reshape(-1) - exact_counts(data, clique)).sum()
        for clique in data.triples
    ]
    return float(np.mean(distances)) / (2.0 * len(data.codes))


def best_on_path(data: DataSet, measurements: list[Measurement]) -> float:
    """The least error of the averaged marginals along the accelerated path."""
    oracle = Propagation(Plan.build(data.domain, data.triples))
    loss = FitLoss(oracle.layout, measurements, "l2")
    problem = Problem(oracle, loss, float(len(data.codes)), Calls(PATH_CALLS))
    truth = oracle.layout.zeros()
    for clique in data.triples:
        shape = [data.domain[name] for name in clique]
        oracle.layout.view(truth, clique)[...] = exact_counts(data, clique).reshape(shape)
    cycle = Cycle(problem, problem.point(oracle.layout.zeros()), 1.0 / problem.total)
    least = np.inf
    while not problem.exhausted and cycle.step():
        least = min(least, _distance(cycle.average, truth) / (2 * len(data.codes) * 15))
    return float(least)


def _distance(left: Vector, right: Vector) -> float:
    return float(np.abs(left - right).sum())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("JUNCTURE_DATA"))
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    folder = Path(options.data) if options.data else None
    print(
        f"{'data':<9}{'scale':>6}{'seed':>5}{'best':>9}{'rule':>9}{'calls':>7}{'end':>9}{'calls':>7}"
    )
    for name in SETS if folder else SETS[:1]:
        data = load(name, folder)
        for scale in SCALES:
            for seed in range(options.seeds):
                given, total = measure(data, scale, seed), float(len(data.codes))
                rule = estimate(data.domain, given, total=total, solver=StopAtNoise())
                end = estimate(data.domain, given, total=total)
                best = best_on_path(data, given)
                errors = [model_error(data, fit.model) for fit in (rule, end)]
                calls = [fit.statistics.oracle_calls for fit in (rule, end)]
                print(
                    f"{name:<9}{scale:>6.0f}{seed:>5}{best:>9.4f}{errors[0]:>9.4f}{calls[0]:>7}"
                    f"{errors[1]:>9.4f}{calls[1]:>7}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
