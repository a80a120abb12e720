"""Least absolute against least squared deviations, along the steps of the fit."""

from __future__ import annotations

import numpy as np
from context import Cell, Context, Experiment, Rows
from paper_data import DataSet, load
from trial import HDMM_SEEDS, fitted, recorded_measurements

from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.mirror_descent import MirrorDescent
from juncture.fit.solvers.problem import Solver
from juncture.fit.solvers.smoothed import Smoothed
from juncture.model.model import Model
from juncture.tables.measurement import Measurement
from juncture.tables.workload import workload_error

STEPS = (10, 20, 50, 100, 200, 500, 1000, 2000)


def cells(context: Context) -> list[Cell]:
    """One for each loss and number of steps."""
    steps = (10, 50) if context.quick else STEPS
    paths = (("l2", "mirror descent"), ("l2", "accelerated"), ("l1", "smoothed"))
    return [
        {"data": context.main_data, "loss": loss, "solver": solver, "steps": n}
        for loss, solver in paths
        for n in steps
    ]


def run(cell: Cell, context: Context) -> Rows:
    """Fit so many steps, and measure the model in all three ways."""
    data = load(cell["data"], context.folder)
    measured = recorded_measurements(data, HDMM_SEEDS[0])
    solvers: dict[str, Solver] = {
        "mirror descent": MirrorDescent(),
        "accelerated": Accelerated(),
        "smoothed": Smoothed(),
    }
    fit = fitted(
        data,
        measured,
        solvers[cell["solver"]],
        loss=cell["loss"],
        max_steps=cell["steps"],
        tolerance=1e-9,
    )
    return [{**cell, "calls": fit.summary.oracle_calls, **_measures(data, measured, fit.model)}]


def _measures(data: DataSet, measured: list[Measurement], model: Model) -> dict[str, float]:
    """Both losses, a cell's noise being one, relative to the number of answers; and the error."""
    rests = np.concatenate([
        (m.operator(data.domain).apply(model.project(m.clique).values) - m.values) / m.stddev
        for m in measured
    ])  # fmt: skip
    answers = data.workload.answers(model.project)
    return {
        "l1": float(np.abs(rests).mean()),
        "l2": float((rests**2).mean()),
        "workload_error": workload_error(data.truth, answers),
    }


EXPERIMENT = Experiment("losses", "L1 against L2", cells, run)
