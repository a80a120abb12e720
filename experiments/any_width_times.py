"""How long fits without a junction tree take, by the clock, and how that grows.

Adult's pairs, on all processors; and random tables of several shapes, each with one and two
threads. These figures need a machine that does nothing else.
"""

from __future__ import annotations

import os

import numpy as np
from all_pairs import find_peak_mb, list_pairs, measure, time_fit
from any_width import choose_records, describe, list_data
from context import Cell, Context, Experiment, Rows
from paper_data import DataSet, load

from juncture.engine.particles import Particles
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.workload import Workload

# Attributes, pairs and records of the random tables: the first, then one of them halved.
SHAPES = (
    (100, 1000, 1_000_000),
    (50, 1000, 1_000_000),
    (100, 500, 1_000_000),
    (100, 1000, 500_000),
)
QUICK_SHAPES = ((6, 10, 2_000), (6, 5, 2_000))
N_VALUES, TABLE_RECORDS = 10, 100_000


def cells(context: Context) -> list[Cell]:
    """The first table's pairs, then one cell for each shape and number of threads."""
    seeds = range(1 if context.quick else 3)
    first = list_data(context)[0]
    wanted: list[Cell] = [{"part": "table", "data": first, "seed": seed} for seed in seeds]
    return wanted + [
        {"part": "shapes", "attributes": a, "pairs": p, "records": n, "threads": threads}
        for a, p, n in (QUICK_SHAPES if context.quick else SHAPES)
        for threads in (1, 2)
    ]


def run(cell: Cell, context: Context) -> Rows:
    """Fit, stopping at the noise, and take the time."""
    if cell["part"] == "table":
        data, oracle = load(cell["data"], context.folder), choose_records(cell["seed"], context)
        measured = measure(data, list_pairs(data.domain), cell["seed"])
    else:
        _use_threads(cell["threads"])
        data, oracle = make_table(cell["attributes"]), Particles(n_records=cell["records"])
        pairs, n_chosen = list_pairs(data.domain), int(cell["pairs"])
        chosen = np.random.default_rng(0).permutation(len(pairs))[:n_chosen]
        measured = measure(data, [pairs[index] for index in chosen], 0)
    timed = time_fit(data.domain, measured, oracle, EarlyStopping())
    return [{**cell, **describe(timed), "peak_mb": find_peak_mb()}]


def make_table(n_attributes: int) -> DataSet:
    """Records of four kinds, ten values for each attribute."""
    domain = Domain({f"x{index}": N_VALUES for index in range(n_attributes)})
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, TABLE_RECORDS)
    columns = {
        name: (kind * rng.integers(1, 4) + rng.binomial(6, 0.3, len(kind))) % N_VALUES
        for name in domain
    }
    return DataSet("random", CodedTable(domain, columns), Workload(domain, ()))


def _use_threads(n: int) -> None:
    """Leave this process so many processors; the package uses a thread for each."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:n]))


EXPERIMENT = Experiment(
    "any_width_times", "The time of fits that no junction tree holds", cells, run, True
)
