"""What synthetic records teach a classifier: trained on them, tested on real ones held out.

A mechanism sees three quarters of a table; gradient boosting learns from its synthetic records, and
predicts one column of the last quarter. It learns from as many records as the mechanism saw, and
then from ten times as many: they cost no privacy, and fewer of their patterns are chance.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import bank_data
import numpy as np
from context import Cell, Context, Experiment, Rows
from numpy.typing import NDArray
from paper_data import BANK, TOY, has_aim_coding, has_bank, read_codes
from rivals import NotDone, list_mechanisms, synthesize

from juncture.errors import ModelTooLarge
from juncture.tables.domain import Domain
from juncture.tables.workload import Workload

Codes = NDArray[np.integer]

EPSILONS = (0.3, 1.0, 3.0)
N_SEEDS = 5
REAL = "real records"
PAIRS, TARGET, TARGET_TRIPLES = "all pairs", "pairs with the target", "triples with the target"
TARGETS = {TOY: "g", "adult": "income>50K", "adult-aim": "income>50K", BANK: bank_data.TARGET}
HELD_OUT = 0.25
MANY = 10


def cells(context: Context) -> list[Cell]:
    """The real records first; then one for each mechanism, workload, epsilon and seed."""
    if _find_python(context) is None:
        return []
    coded = "adult-aim" if has_aim_coding(context.folder) else "adult"
    names = [TOY] if context.quick else [coded, *([BANK] if has_bank(context.folder) else [])]
    epsilons, n_seeds = ((1.0,), 1) if context.quick else (EPSILONS, N_SEEDS)
    real: list[Cell] = [
        {"data": name, "workload": "", "epsilon": "", "mechanism": REAL, "seed": seed}
        for name in names
        for seed in range(n_seeds)
    ]
    return real + [
        {"data": name, "workload": asked, "epsilon": epsilon, "mechanism": mechanism, "seed": seed}
        for name in names
        for asked in (PAIRS, TARGET, TARGET_TRIPLES)
        for epsilon in epsilons
        for mechanism in (
            list_mechanisms(context)[:1] if context.quick else list_mechanisms(context)
        )
        for seed in range(n_seeds)
    ]


def run(cell: Cell, context: Context) -> Rows:
    """Split, synthesize, train and test."""
    domain, codes = read_codes(cell["data"], context.folder)
    seen, held_out = split(codes, cell["seed"])
    target = TARGETS[cell["data"]]
    python = _find_python(context)
    assert python is not None
    row = {**cell, "target": target, "held_out": len(held_out)}
    if cell["mechanism"] == REAL:
        return [{**row, "auc": find_auc(domain, seen, held_out, target, python)}]
    workload = {
        PAIRS: Workload.all_marginals(domain, 2),
        TARGET: Workload.with_target(domain, target, 2),
        TARGET_TRIPLES: Workload.with_target(domain, target, 3),
    }[cell["workload"]]
    try:
        made = synthesize(
            cell["mechanism"], seen, workload, cell["epsilon"], seed=cell["seed"], context=context
        )
    except (ModelTooLarge, NotDone) as reason:
        return [{**row, "reason": str(reason)}]
    row["auc"] = find_auc(domain, made.records, held_out, target, python)
    if made.draw:
        many = made.draw(MANY * len(seen))
        row["auc_many"] = find_auc(domain, many, held_out, target, python)
    return [{**row, "busy": made.busy, "peak_mb": made.peak_mb}]


def split(codes: Codes, seed: int) -> tuple[Codes, Codes]:
    """Records that the mechanism sees, and records to test on."""
    order = np.random.default_rng(seed).permutation(len(codes))
    n_tested = round(HELD_OUT * len(codes))
    return codes[order[n_tested:]], codes[order[:n_tested]]


def find_auc(domain: Domain, train: Codes, test: Codes, target: str, python: Path) -> float:
    """How well a classifier ranks the tested records, in a process with scikit-learn."""
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder, "problem.npz")
        index = domain.positions[target]
        np.savez(problem, allow_pickle=False, train=train, test=test, target=index)
        script = Path(__file__).with_name("classify.py")
        done = subprocess.run(
            [str(python), str(script), str(problem)], stdout=subprocess.PIPE, text=True, check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    return float(json.loads(done.stdout)["auc"])


def _find_python(context: Context) -> Path | None:
    """An interpreter with scikit-learn: this one, if it has it, or a peer's."""
    if find_spec("sklearn"):
        return Path(sys.executable)
    return context.peer_python or context.dpsynth_python


EXPERIMENT = Experiment("learning", "What synthetic records teach a classifier", cells, run)
