"""Stopping where only noise is left to fit, beside fitting to the end and the paper's 10,000 steps.

The measurements are those of HDMM with the 2019 driver's noise. The paper's Algorithm 2 takes its
10,000 steps on the two small data sets; on all four, a fit to the end reaches a lower loss.
"""

from __future__ import annotations

import time

from context import Cell, Context, Experiment, Rows
from paper_data import load
from trial import HDMM_SEEDS, build_strategy, fitted, recorded_measurements, to_the_end

from juncture.fit.solvers.dual_averaging import DualAveraging
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.tables.workload import workload_error

RULE, TO_THE_END, PAPER = "stop at noise", "to the end", "Algorithm 2, 10,000 steps"
SMALL = ("titanic", "stroke")


def cells(context: Context) -> list[Cell]:
    """One for each data set and way to end."""
    ways = [{"data": name, "way": way} for name in context.data for way in (RULE, TO_THE_END)]
    return ways + [{"data": name, "way": PAPER} for name in context.data if name in SMALL]


def run(cell: Cell, context: Context) -> Rows:
    """All trials of one way."""
    data = load(cell["data"], context.folder)
    strategy = build_strategy(data)
    rows: Rows = []
    for seed in HDMM_SEEDS[: context.n_trials]:
        measured = recorded_measurements(data, seed, strategy=strategy)
        began = time.perf_counter()
        if cell["way"] == RULE:
            fit = fitted(data, measured, EarlyStopping())
        elif cell["way"] == PAPER:
            fit = fitted(data, measured, DualAveraging(), max_steps=10_000, tolerance=1e-12)
        else:
            fit = to_the_end(data, measured)
        rows.append(
            {
                **cell,
                "seed": seed,
                "seconds": time.perf_counter() - began,
                "calls": fit.summary.oracle_calls,
                "loss": fit.summary.loss,
                "status": fit.status.name,
                "error": workload_error(data.truth, data.workload.answers(fit.model.project)),
            }
        )
    return rows


EXPERIMENT = Experiment("stopping", "When to stop fitting", cells, run)
