"""How often intervals hold the truth: releases with new noise each, and random questions to them.

Questions are of four forms (a cell, ranges, sets of values, an average within sets), on measured
cliques and, with a check of 5 %, on pairs that were never measured together. Rows say how many of
the answers lay inside their interval of 95 %, by basis, by form and by the size of the true answer.
The rule was chosen on Titanic and Stroke; Adult and Loans were never looked at for it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from context import Cell, Context, Experiment, Rows
from paper_data import DataSet, load

from juncture.mechanisms.checked import prepare_checked
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.publish.release import Release
from juncture.tables.domain import Clique
from juncture.tables.queries.blocks import Block, Matrix
from juncture.tables.queries.products import Kron
from juncture.tables.workload import Workload

LEVEL, CHECK, DELTA = 0.95, 0.05, 1e-9
# Runs of each cell: fewer where a fit takes seconds, since every run takes about thirty.
RUNS = {"toy": 1, "titanic": 8, "stroke": 2, "adult": 1, "loans": 1}
TUNED_ON, TESTED_ON = ("titanic", "stroke"), ("adult", "loans")
_N_QUESTIONS = 160
SIZES = ((0.0, 10.0, "below 10"), (10.0, 100.0, "10 to 100"), (100.0, np.inf, "above 100"))


def cells(context: Context) -> list[Cell]:
    """Data sets, mechanisms, kinds of noise and budgets."""
    return [
        {"data": data, "mechanism": mechanism, "noise": noise, "epsilon": epsilon}
        for data in context.data
        for mechanism in (("hdmm",) if context.quick else ("hdmm", "mwem", "aim"))
        for noise in (("laplace",) if context.quick else ("laplace", "gaussian"))
        for epsilon in ((1.0,) if context.quick else (0.3, 1.0, 3.0))
    ]


def run(cell: Cell, context: Context) -> Rows:
    """All runs of one cell."""
    data = load(cell["data"], context.folder)
    epsilon = float(cell["epsilon"])
    delta = None if cell["noise"] == "laplace" else DELTA
    seen = list[_Seen]()
    for seed in range(RUNS[data.name]):
        made = make_release(data, str(cell["mechanism"]), Budget(epsilon, delta), seed)
        seen += ask_all(data, made, np.random.default_rng(1000 + seed))
    return list(_summarise(cell, seen))


def make_release(data: DataSet, mechanism: str, budget: Budget, seed: int) -> Release:
    """A release with a check, with simulated noise."""
    workload = data.workload
    if mechanism == "aim":  # it chooses among all sets below the workload's: pairs are enough
        pairs = {p for c in data.workload.cliques for p in combinations(c, min(2, len(c)))}
        workload = Workload.of_marginals(data.domain, sorted(pairs))
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "ledger", budget, Neighbours.REPLACE)
        curator = SimulatedCurator(data.source, ledger, rng=np.random.default_rng(seed))
        prepared = prepare_checked(
            mechanism, budget, CHECK, workload, Neighbours.REPLACE, data.n_records
        )
        return prepared(curator).release()


@dataclass(frozen=True)
class _Seen:
    """One answer: what it rests on, its form, the size of the truth, half-width and error."""

    basis: str
    form: str
    size: float
    half_width: float
    error: float
    inside: bool


def ask_all(data: DataSet, made: Release, rng: np.random.Generator) -> Iterator[_Seen]:
    """Random questions, half of them on measured cliques and half on pairs that are assumed."""
    measured = list(dict.fromkeys(each.clique for each in made.measurements))
    apart = [
        pair
        for pair in combinations(data.domain, 2)
        if not any(set(pair) <= set(clique) for clique in measured)
    ]
    for number in range(_N_QUESTIONS):
        cliques = apart if number % 2 and apart else measured
        clique = cliques[rng.integers(len(cliques))]
        form = ("cell", "ranges", "sets", "average")[(number // 2) % 4]
        yield from _ask(data, made, clique, form, rng)


def _ask(
    data: DataSet, made: Release, clique: Clique, form: str, rng: np.random.Generator
) -> Iterator[_Seen]:
    sizes = [data.domain[name] for name in clique]
    rows = [_draw_row(size, form, rng) for size in sizes]
    (table,) = data.source.exact_counts([clique])
    if form == "average":
        yield from _ask_average(made, clique, rows, table.values)
        return
    blocks: dict[str, Block] = {n: Matrix(r[None]) for n, r in zip(clique, rows, strict=True)}
    found = made.answer(Kron(blocks), interval=LEVEL)
    truth = _weigh(table.values, rows)
    low, high = float(found.lower.item()), float(found.upper.item())
    yield _Seen(
        str(found.bases[0]), form, truth, (high - low) / 2,
        abs(float(found.answer.item()) - truth), low - 1e-9 <= truth <= high + 1e-9,
    )  # fmt: skip


def _ask_average(
    made: Release, clique: Clique, rows: Sequence[np.ndarray], table: np.ndarray
) -> Iterator[_Seen]:
    """The mean code of the first column where the others lie in sets."""
    first, *others = clique
    tests = [
        f'"{name}" IN ({", ".join(map(str, np.flatnonzero(row)))})'
        for name, row in zip(others, rows[1:], strict=True)
    ]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    answer = made.sql(f'SELECT AVG("{first}") FROM t{where}', interval=LEVEL)
    interval, value = answer.intervals[0][0], answer.rows[0][0]
    codes = np.arange(len(rows[0]), dtype=np.float64)
    mass = _weigh(table, [np.ones(len(codes)), *rows[1:]])
    if interval is None or value is None or not mass:
        return
    truth = _weigh(table, [codes, *rows[1:]]) / mass
    yield _Seen(
        str(interval.basis), "average", mass, interval.half_width, abs(value - truth),
        interval.lower - 1e-9 <= truth <= interval.upper + 1e-9,
    )  # fmt: skip


def _weigh(table: np.ndarray, rows: Sequence[np.ndarray]) -> float:
    for row in reversed(rows):
        table = table @ row
    return float(table)


def _draw_row(size: int, form: str, rng: np.random.Generator) -> np.ndarray:
    row = np.zeros(size)
    if form == "cell":
        row[rng.integers(size)] = 1.0
    elif form == "ranges":
        low, high = sorted(rng.integers(0, size, 2))
        row[low : high + 1] = 1.0
    else:
        row[rng.random(size) < 0.5] = 1.0
        if rng.random() < 0.4 or not row.any():
            row[:] = 1.0
    return row


def _summarise(cell: Cell, seen: Sequence[_Seen]) -> Iterator[dict[str, object]]:
    for basis in sorted({each.basis for each in seen}):
        own = [each for each in seen if each.basis == basis and np.isfinite(each.half_width)]
        groups = {"all": own}
        for form in ("cell", "ranges", "sets", "average"):
            groups[form] = [each for each in own if each.form == form]
        counts = [each for each in own if each.form != "average"]
        for low, high, name in SIZES:
            groups[name] = [each for each in counts if low <= each.size < high]
        for group, some in groups.items():
            if some:
                yield {
                    **cell,
                    "basis": basis,
                    "group": group,
                    "runs": RUNS[str(cell["data"])],
                    "answers": len(some),
                    "covered": sum(each.inside for each in some) / len(some),
                    "half_width": float(np.median([each.half_width for each in some])),
                    "error": float(np.median([each.error for each in some])),
                }


EXPERIMENT = Experiment("coverage", "How often intervals hold the truth", cells, run)
