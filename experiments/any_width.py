"""Fits that no junction tree holds: records, beside exact fits, the relaxed oracle and the peer.

All pairs of a table are measured once, with equal shares of epsilon 1 at delta 1e-6. Where exact
inference runs, records are held against it: Adult's triples, and random small problems.
"""

from __future__ import annotations

import numpy as np
from all_pairs import (
    Table,
    Timed,
    find_error,
    find_loss,
    find_peak_mb,
    list_pairs,
    list_triples,
    measure,
    time_fit,
)
from context import Cell, Context, Experiment, Rows
from paper_data import TOY, DataSet, has_aim_coding, load
from pseudo_marginals import run_peer, run_relaxed
from small_problems import compare_with_exact

from juncture.engine.particles import Particles
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.fit.summary import Status
from juncture.fit.total import estimate_total
from juncture.tables.domain import Clique
from juncture.tables.measurement import Measurement

STOPPED, CONVERGED = "records, stopped at the noise", "records, to convergence"
# Fewer records, and the noise split once instead of twice: what haste costs.
HASTY, N_HASTY = "20,000 records, stopped at the noise", 20_000
EXACT_STOPPED, EXACT = "exact, stopped at the noise", "exact, to convergence"
RELAXED, PEER = "relaxed, our own", "mbi 2.0.0, approximate"
STEPS = (20, 50, 100, 200, 500, 1000, 2000)
# The peer's step has no default. Five times the shorter one diverges on Adult.
PEER_LENGTHS = (1, 2)
# Larger tables would compile for the peer and run in plain NumPy for too long.
WITH_PATHS = ("adult-aim", "titanic-aim", "adult", TOY)
ONE_SEED = ("loans", "stroke")
N_RANDOM, RANDOM_PARTS = 100, 5
NINE, FIFTEEN = "nine triples", "fifteen triples"
NINE_TRIPLES = """
race capital-loss income>50K | marital-status capital-gain income>50K
race native-country income>50K | workclass sex hours-per-week
fnlwgt marital-status relationship | workclass education-num occupation
age relationship sex | occupation sex hours-per-week | occupation relationship income>50K
"""


def list_data(context: Context) -> tuple[str, ...]:
    """The tables whose pairs are measured."""
    if context.quick:
        return (TOY,)
    coded = ("adult-aim", "titanic-aim") if has_aim_coding(context.folder) else ("adult",)
    return (*coded, *ONE_SEED) if context.folder else coded


def cells(context: Context) -> list[Cell]:
    """One for each table, method and seed; then the problems with an exact fit."""
    wanted: list[Cell] = []
    for name in list_data(context):
        methods = [STOPPED, CONVERGED]
        if name in WITH_PATHS:
            methods += [HASTY, RELAXED]
            if context.peer_python:
                methods += [f"{PEER}, step {length}" for length in PEER_LENGTHS]
        n_seeds = 1 if context.quick or name in ONE_SEED else 3
        wanted += [
            {"part": "pairs", "data": name, "method": method, "seed": seed}
            for method in methods
            for seed in range(n_seeds)
        ]
    problems = (FIFTEEN,) if context.quick else (NINE, FIFTEEN)
    wanted += [
        {"part": "exact", "data": context.main_data, "problem": problem, "seed": seed}
        for problem in problems
        for seed in range(1 if context.quick else 3)
    ]
    size = 1 if context.quick else N_RANDOM // RANDOM_PARTS
    return wanted + [
        {"part": "random", "first": size * part, "after": size * (part + 1)}
        for part in range(1 if context.quick else RANDOM_PARTS)
    ]


def run(cell: Cell, context: Context) -> Rows:
    """A cell of any part."""
    if cell["part"] == "random":
        seeds = range(cell["first"], cell["after"])
        return [{**cell, "seed": seed, **compare_with_exact(seed)._asdict()} for seed in seeds]
    data = load(cell["data"], context.folder)
    if cell["part"] == "exact":
        cliques = _find_cliques(data, cell["problem"])
        rows = _run_beside_exact(data, cliques, choose_records(cell["seed"], context))
        return [{**cell, **row} for row in rows]
    measured = measure(data, list_pairs(data.domain), cell["seed"])
    if cell["method"] in (STOPPED, CONVERGED, HASTY):
        oracle = choose_records(cell["seed"], context)
        rows = _run_records(data, measured, cell["method"], oracle)
    else:
        rows = _run_path(data, measured, cell["method"], context)
    return [{**cell, "pairs": len(measured), **row} for row in rows]


def _run_records(
    data: DataSet, measured: list[Measurement], method: str, oracle: Particles
) -> Rows:
    solver = {STOPPED: EarlyStopping(), HASTY: EarlyStopping(draws=1), CONVERGED: None}[method]
    if method == HASTY:
        oracle = Particles(n_records=min(oracle.n_records or N_HASTY, N_HASTY), seed=oracle.seed)
    timed = time_fit(data.domain, measured, oracle, solver)
    figures = {**describe(timed), "peak_mb": find_peak_mb()}
    model = timed.fit.model

    def answer(clique: Clique) -> Table:
        return np.asarray(model.project(clique).values / model.total)

    cliques = [m.clique for m in measured]
    return [
        {
            **figures,
            "loss": find_loss(measured, [answer(clique) for clique in cliques], model.total),
            "pair_error": find_error(data, cliques, answer),
            "triple_error": find_error(data, list_triples(data.domain), answer),
        }
    ]


def _run_path(data: DataSet, measured: list[Measurement], method: str, context: Context) -> Rows:
    total = estimate_total(data.domain, measured).total
    steps = STEPS[:3] if context.quick else STEPS
    if method == RELAXED:
        return run_relaxed(data, measured, total, steps)
    assert context.peer_python is not None
    length = int(method.rpartition(" ")[2])
    return run_peer(data, measured, total, steps, length=length, python=context.peer_python)


def _run_beside_exact(data: DataSet, cliques: list[Clique], particles: Particles) -> Rows:
    """Records and the exact oracle on the same cliques, with both ways to end."""
    measured, rows = measure(data, cliques, particles.seed), Rows()
    for exact, records, solver in (
        (EXACT, CONVERGED, None),
        (EXACT_STOPPED, STOPPED, EarlyStopping()),
    ):
        reference: list[Table] = []
        for method, oracle in ((exact, "exact"), (records, particles)):
            timed = time_fit(data.domain, measured, oracle, solver)
            model = timed.fit.model
            tables = [np.asarray(model.project(c).values) for c in cliques]
            reference = reference or tables
            shares = dict(zip(cliques, (table / model.total for table in tables), strict=True))
            rows.append(
                {
                    "method": method,
                    **describe(timed),
                    "loss": find_loss(measured, list(shares.values()), model.total),
                    "triple_error": find_error(data, cliques, shares.__getitem__),
                    "distance": _find_distance(tables, reference, measured),
                }
            )
    return rows


def _find_distance(
    tables: list[Table], reference: list[Table], measured: list[Measurement]
) -> float:
    """The root of the mean square of differences beside the noise."""
    apart = [
        (left - right).reshape(-1) / m.stddev
        for left, right, m in zip(tables, reference, measured, strict=True)
    ]
    return float(np.sqrt(np.mean(np.concatenate(apart) ** 2)))


def _find_cliques(data: DataSet, problem: str) -> list[Clique]:
    if problem == FIFTEEN:
        return list(data.workload.cliques)
    parts = NINE_TRIPLES.replace("\n", "|").split("|")
    return [data.domain.canonical(part.split()) for part in parts if part.strip()]


def choose_records(seed: int, context: Context) -> Particles:
    """The defaults, or few records in a quick run."""
    return Particles(n_records=5_000 if context.quick else None, seed=seed)


def describe(timed: Timed) -> dict[str, object]:
    """How a fit ended, and what it took."""
    summary = timed.fit.summary
    return {
        "wall": timed.wall,
        "busy": timed.busy,
        "calls": summary.oracle_calls,
        "status": summary.status.name,
        "oracle_error": summary.oracle_error,
        "mixed": "no" if summary.status is Status.NOT_MIXED else "yes",
    }


EXPERIMENT = Experiment("any_width", "Fits that no junction tree holds", cells, run, True)
