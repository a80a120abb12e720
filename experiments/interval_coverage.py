"""How often intervals hold the truth: releases with new noise each, and random questions to them.

Questions are of four forms (a cell, ranges, sets of values, an average within sets), on measured
cliques and, with a check of 5 %, on pairs that were never measured together; none is the number of
records, which is public here. Rows say how many of the answers lay inside their interval of 95 %,
by basis, by form and by the size of the true answer, with the median half-width and error.

A run takes twenty fits, so tables are cut: the paper's smallest triples of each data set, and the
columns that are in them; or, for Adult's pairs, random pairs of its columns. The rule was chosen on
Titanic, Stroke and Adult's triples, with other seeds. Nothing was chosen on Adult's pairs; a look
at what was missed on Loans brought one rule, that counts may reach zero.
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

from juncture.fit.random_questions import Form, draw_rows, weigh
from juncture.mechanisms.checked import prepare_checked
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.publish.release import Release
from juncture.tables.domain import Clique
from juncture.tables.queries.blocks import Block, Matrix
from juncture.tables.queries.products import Kron
from juncture.tables.workload import Workload

LEVEL, CHECK, DELTA = 0.95, 0.05, 1e-9
RUNS, EPSILONS = 20, (0.3, 1.0, 3.0)
ADULT_PAIRS = "adult pairs"
TUNED_ON, TESTED_ON = ("titanic", "stroke", "adult"), ("loans", ADULT_PAIRS)
N_CELLS = 5 * 3 * 2 * len(EPSILONS)
# Triples of each table; random pairs of Adult with at most so many cells.
_N_TRIPLES, _N_PAIRS, _MAX_PAIR_CELLS = 5, 10, 600
_N_QUESTIONS = 40
AVERAGE = "average"
SIZES = ((0.0, 10.0, "below 10"), (10.0, 100.0, "10 to 100"), (100.0, np.inf, "above 100"))
GROUPS = (*(str(form) for form in Form), AVERAGE, *(name for _, _, name in SIZES))


def cells(context: Context) -> list[Cell]:
    """Data sets, mechanisms and kinds of noise; the quick first."""
    tables = context.data
    if not context.quick and context.folder is not None:
        tables = ("titanic", "stroke", "adult", ADULT_PAIRS, "loans")
    return [
        {"data": data, "mechanism": mechanism, "noise": noise, "epsilon": epsilon}
        for mechanism in (("hdmm",) if context.quick else ("aim", "mwem", "hdmm"))
        for noise in (("laplace",) if context.quick else ("gaussian", "laplace"))
        for epsilon in ((1.0,) if context.quick else EPSILONS)
        for data in tables
    ]


def run(cell: Cell, context: Context) -> Rows:
    """All runs of one cell."""
    data = cut_table(str(cell["data"]), context.folder)
    delta = None if cell["noise"] == "laplace" else DELTA
    budget, runs = Budget(float(cell["epsilon"]), delta), 1 if context.quick else RUNS
    seen = list[_Seen]()
    for seed in range(runs):
        made = make_release(data, str(cell["mechanism"]), budget, seed)
        seen += ask_all(data, made, np.random.default_rng(1000 + seed))
    return list(_summarise({**cell, "runs": runs}, seen))


def cut_table(name: str, folder: Path | None) -> DataSet:
    """A data set with a small workload, and only the columns that are in it."""
    whole = load("adult" if name == ADULT_PAIRS else name, folder)
    if name == ADULT_PAIRS:
        small = [
            pair
            for pair in combinations(whole.domain, 2)
            if whole.domain.size_of(pair) <= _MAX_PAIR_CELLS
        ]
        chosen = np.random.default_rng(0).permutation(len(small))[:_N_PAIRS]
        cliques = [small[index] for index in chosen]
    else:
        cliques = sorted(whole.workload.cliques, key=whole.domain.size_of)[:_N_TRIPLES]
    used = {name for clique in cliques for name in clique}
    domain = whole.domain.project(whole.domain.canonical(used))
    every = whole.source.exact_records()
    codes = {name: every[name] for name in domain}
    return DataSet(name, CodedTable(domain, codes), Workload.of_marginals(domain, cliques))


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
    forms = (*Form, AVERAGE)
    for number in range(_N_QUESTIONS):
        cliques = apart if number % 2 and apart else measured
        clique = cliques[rng.integers(len(cliques))]
        yield from _ask(data, made, clique, forms[(number // 2) % len(forms)], rng)


def _ask(
    data: DataSet, made: Release, clique: Clique, form: str, rng: np.random.Generator
) -> Iterator[_Seen]:
    shape = data.domain.project(clique).shape
    rows = draw_rows(shape, Form.SETS if form == AVERAGE else Form(form), rng)
    (table,) = data.source.exact_counts([clique])
    if form == AVERAGE:
        yield from _ask_average(made, clique, rows, table.values)
        return
    if all(row.all() for row in rows):  # the number of records, which is public
        return
    blocks: dict[str, Block] = {n: Matrix(r[None]) for n, r in zip(clique, rows, strict=True)}
    found = made.answer(Kron(blocks), interval=LEVEL)
    truth = float(weigh(table.values, rows))
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
    mass = float(weigh(table, [np.ones(len(codes)), *rows[1:]]))
    if interval is None or value is None or not mass:
        return
    truth = float(weigh(table, [codes, *rows[1:]])) / mass
    yield _Seen(
        str(interval.basis), AVERAGE, mass, interval.half_width, abs(value - truth),
        interval.lower - 1e-9 <= truth <= interval.upper + 1e-9,
    )  # fmt: skip


def _summarise(cell: Cell, seen: Sequence[_Seen]) -> Iterator[dict[str, object]]:
    """A row for each basis: how many answers, and how many of them inside, for all and by group."""
    for basis in sorted({each.basis for each in seen}):
        own = [each for each in seen if each.basis == basis and np.isfinite(each.half_width)]
        counts = [each for each in own if each.form != AVERAGE]
        if not counts:
            continue
        row: dict[str, object] = {
            **cell,
            "basis": basis,
            "answers": len(own),
            "inside": sum(each.inside for each in own),
            "half_width": float(np.median([each.half_width for each in counts])),
            "error": float(np.median([each.error for each in counts])),
        }
        for group in GROUPS:
            some = [each for each in own if each.form == group]
            for low, high, name in SIZES:
                if name == group:
                    some = [each for each in counts if low <= each.size < high]
            row[f"{group}: answers"] = len(some)
            row[f"{group}: inside"] = sum(each.inside for each in some)
        yield row


EXPERIMENT = Experiment("coverage", "How often intervals hold the truth", cells, run)
