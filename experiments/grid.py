"""The four mechanisms on the four data sets, in both forms, at epsilon 1: the paper's main figure.

Recorded settings come first, to show that the recorded figures come out; then ours, at equal
budgets; then the same under (epsilon, delta) with Gaussian noise; then what else a budget could
have bought.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import recorded
from context import Cell, Context, Experiment, Rows
from paper_data import ADULT_15, DataSet, load
from trial import (
    DUAL_QUERY_SEEDS,
    HDMM_SEEDS,
    MWEM_SEEDS,
    PRIVBAYES_SEEDS,
    error_of,
    recorded_measurements,
    simulate,
    to_the_end,
)

from juncture.errors import ModelTooLarge
from juncture.mechanisms.dual_query import DualQuery
from juncture.mechanisms.hdmm import HDMM, Estimation, Template
from juncture.mechanisms.least_squares import local_least_squares
from juncture.mechanisms.mechanism import Mechanism
from juncture.mechanisms.mwem import MWEM, Selection, Update
from juncture.mechanisms.privbayes import PrivBayes
from juncture.mechanisms.strategy import Shares
from juncture.privacy.budget import Budget
from juncture.tables.workload import workload_error

PURE, BOTH = Budget(epsilon=1.0), Budget(epsilon=1.0, delta=0.001)
# Of dense tables: the paper's runs ended at 2 GB, or at their time limit. The factored form, which
# makes many, takes minutes for a round with larger ones than here.
FULL: dict[str, Any] = {"update": Update.FULL, "max_table_bytes": 2_000_000_000}
FACTORED: dict[str, Any] = {"update": Update.FACTORED, "max_table_bytes": 200_000_000}
LOCAL, MODEL, QUERY = Estimation.LOCAL, Estimation.MODEL, Selection.QUERY

Trial = Callable[[DataSet, int], float]


@dataclass(frozen=True)
class Line:
    """A mechanism in one form and setting: how to run one trial, and the seeds of all."""

    mechanism: str
    form: str
    setting: str
    trial: Trial
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


def _trial_of(mechanism: Mechanism) -> Trial:
    def trial(data: DataSet, seed: int) -> float:
        seeded = mechanism
        if isinstance(mechanism, PrivBayes | DualQuery):
            seeded = replace(mechanism, rng=seed)
        if isinstance(mechanism, MWEM) and mechanism.rounds is None:
            seeded = replace(mechanism, rounds=len(data.domain))  # as in the paper
        return error_of(simulate(seeded, data, seed), data)

    return trial


def _line(mechanism: str, form: str, setting: str, made: Mechanism, **more: Any) -> Line:  # noqa: ANN401
    return Line(mechanism, form, setting, _trial_of(made), **more)


def _recorded_local(data: DataSet, seed: int) -> float:
    tables = local_least_squares(data.domain, recorded_measurements(data, seed))
    return workload_error(data.truth, data.workload.answers(
        lambda clique: tables[data.domain.canonical(clique)].transpose(clique)))  # fmt: skip


def _recorded_model(data: DataSet, seed: int) -> float:
    fit = to_the_end(data, recorded_measurements(data, seed))
    return workload_error(data.truth, data.workload.answers(fit.model.project))


def _uniform(data: DataSet, _seed: int) -> float:
    """What no data at all gives."""
    tables = {c: np.full(f.values.shape, data.n_records / f.values.size)
              for c, f in data.tables.items()}  # fmt: skip
    pairs = [task.operator(data.domain).apply(tables[task.clique]) for task in data.workload.tasks]
    return workload_error(data.truth, pairs)


def _recorded_privbayes(estimation: Estimation) -> Trial:
    run = _trial_of(recorded.privbayes(estimation))

    def trial(data: DataSet, seed: int) -> float:
        # The recorded runs on Adult had fifteen columns.
        return run(load(ADULT_15, None) if data.name == "adult" else data, seed)

    return trial


def _recorded_dual_query(estimation: Estimation) -> Trial:
    return lambda data, seed: _trial_of(recorded.dual_query(estimation, data.name))(data, seed)


def _theorem_dual_query(estimation: Estimation) -> Trial:
    made = DualQuery(BOTH, estimation=estimation)
    return lambda data, seed: _trial_of(
        replace(made, max_rounds=recorded.THEOREM_ROUNDS[data.name])
    )(data, seed)


SHARED = PrivBayes(PURE, structure_share=0.5, usefulness=2.0)
LINES = (
    Line("none", "uniform", "no data", _uniform, seeds=(0,)),
    Line("HDMM", "original", "recorded", _recorded_local, HDMM_SEEDS),
    Line("HDMM", "model", "recorded", _recorded_model, HDMM_SEEDS),
    Line("PrivBayes", "original", "recorded", _recorded_privbayes(LOCAL), PRIVBAYES_SEEDS),
    Line("PrivBayes", "model", "recorded", _recorded_privbayes(MODEL), PRIVBAYES_SEEDS),
    Line("DualQuery", "original", "recorded", _recorded_dual_query(LOCAL), DUAL_QUERY_SEEDS),
    Line("DualQuery", "model", "recorded", _recorded_dual_query(MODEL), DUAL_QUERY_SEEDS),
    _line("MWEM", "original", "recorded", replace(recorded.RecordedMWEM(), **FACTORED),
          seeds=MWEM_SEEDS),
    _line("MWEM", "model", "recorded", recorded.RecordedMWEM(), seeds=MWEM_SEEDS),
    _line("HDMM", "original", "ours", HDMM(PURE, estimation=LOCAL)),
    _line("HDMM", "model", "ours", HDMM(PURE)),
    _line("PrivBayes", "original", "ours", PrivBayes(PURE, estimation=LOCAL)),
    _line("PrivBayes", "model", "ours", PrivBayes(PURE)),
    _line("DualQuery", "original", "ours",
          DualQuery(BOTH, estimation=LOCAL)),
    _line("DualQuery", "model", "ours", DualQuery(BOTH)),
    _line("MWEM", "original, full table", "ours",
          MWEM(PURE, selection=QUERY, **FULL), seeds=(0,)),
    _line("MWEM", "original", "ours",
          MWEM(PURE, selection=QUERY, **FACTORED)),
    _line("MWEM", "model", "ours", MWEM(PURE, selection=QUERY)),
    _line("MWEM", "model, marginals", "ours", MWEM(PURE, single_share=0.0)),
    _line("PrivBayes", "original", "paper's shares",
          replace(SHARED, estimation=LOCAL)),
    _line("PrivBayes", "model", "paper's shares", SHARED),
    Line("DualQuery", "original", "theorem's rounds", _theorem_dual_query(LOCAL)),
    Line("DualQuery", "model", "theorem's rounds", _theorem_dual_query(MODEL)),
    *(
        _line("HDMM", form, f"{shares} shares",
              HDMM(PURE, estimation=estimation, shares=shares))
        for shares in (Shares.TOTAL, Shares.RELATIVE)
        for form, estimation in (("original", LOCAL), ("model", MODEL))
    ),
    *(
        _line("HDMM", form, "weighted marginals",
              HDMM(PURE, estimation=estimation, template=Template.MARGINALS))
        for form, estimation in (("original", LOCAL), ("model", MODEL))
    ),
    _line("HDMM", "original", "gaussian", HDMM(BOTH, estimation=LOCAL)),
    _line("HDMM", "model", "gaussian", HDMM(BOTH)),
    _line("PrivBayes", "original", "gaussian", PrivBayes(BOTH, estimation=LOCAL)),
    _line("PrivBayes", "model", "gaussian", PrivBayes(BOTH)),
    _line("MWEM", "original", "gaussian",
          MWEM(BOTH, selection=QUERY, **FACTORED)),
    _line("MWEM", "model", "gaussian", MWEM(BOTH, selection=QUERY)),
    _line("MWEM", "model, marginals", "gaussian", MWEM(BOTH, single_share=0.0)),
)  # fmt: skip


def cells(context: Context) -> list[Cell]:
    """One for each line and data set."""
    return [
        {"data": name, "mechanism": line.mechanism, "form": line.form, "setting": line.setting}
        for line in LINES
        for name in context.data
    ]


def run(cell: Cell, context: Context) -> Rows:
    """All trials of one cell; one that cannot run says why."""
    line = next(
        line
        for line in LINES
        if (line.mechanism, line.form, line.setting)
        == (cell["mechanism"], cell["form"], cell["setting"])
    )
    data = load(cell["data"], context.folder)
    assert data.truth
    rows: Rows = []
    for seed in line.seeds[: context.n_trials]:
        began = time.perf_counter()
        try:
            found: dict[str, Any] = {"error": line.trial(data, seed)}
        except ModelTooLarge as reason:
            found = {"reason": str(reason)}
        rows.append({**cell, "seed": seed, "seconds": time.perf_counter() - began, **found})
        if "reason" in found:
            break
    return rows


EXPERIMENT = Experiment("grid", "Workload error of four mechanisms", cells, run)
