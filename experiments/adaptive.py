"""Mechanisms that choose what they measure: ours and dpsynth's, at the same cost and seeds.

The workload is every pair or every triple of a table; the error is the mean total variation
distance of its marginals, from the model and from as many synthetic records as the table has.
"""

from __future__ import annotations

import numpy as np
from all_pairs import find_error
from context import Cell, Context, Experiment, Rows
from made_up import MADE_UP
from other_tables import list_others
from paper_data import TOY, DataSet, has_aim_coding, make_source, read_codes
from rivals import OURS, PEERS, REFERENCE, NotDone, list_mechanisms, synthesize

from juncture.errors import ModelTooLarge
from juncture.tables.domain import Clique, Domain
from juncture.tables.workload import Workload

EPSILONS = (0.3, 1.0, 3.0)
N_SEEDS = 5
# The peer takes hours on these tables, and runs once.
WIDE = ("loans", "stroke")
MAX_CELLS, MAX_MARGINALS = 300_000, 500
# Tables of more columns have thousands of triples: some of them, drawn with a fixed seed, are the
# workload.
MAX_COLUMNS = 30


def list_data(context: Context) -> tuple[str, ...]:
    """Adult and Titanic, coded by AIM's author if that is there, the user's own, made-up ones."""
    if context.quick:
        return (TOY,)
    coded = ("titanic-aim", "adult-aim") if has_aim_coding(context.folder) else ("adult",)
    return (*coded, *(WIDE if context.folder else ()), *list_others(context.folder), *MADE_UP)


def cells(context: Context) -> list[Cell]:
    """One for each table, size of marginals, epsilon, mechanism and seed."""
    epsilons, n_seeds = ((1.0,), 1) if context.quick else (EPSILONS, N_SEEDS)
    for_looking = {*MADE_UP, *list_others(context.folder)}
    return [
        {"data": name, "k": k, "epsilon": epsilon, "mechanism": mechanism, "seed": seed}
        for name in list_data(context)
        for k in (2, 3)
        for epsilon in epsilons
        for mechanism in list_mechanisms(context)
        for seed in range(n_seeds)
        if not (name in WIDE and mechanism in PEERS and (epsilon, seed) != (1.0, 0))
        and not (name in for_looking and mechanism not in (OURS[0], REFERENCE))
    ]


def run(cell: Cell, context: Context) -> Rows:
    """One run of a mechanism; one that cannot run says why."""
    domain, codes = read_codes(cell["data"], context.folder)
    workload = build_workload(domain, cell["k"])
    asked = choose_small(domain, workload.cliques)
    row = {**cell, "marginals": len(workload.cliques), "asked": len(asked)}
    try:
        made = synthesize(
            cell["mechanism"], codes, workload, cell["epsilon"],
            seed=cell["seed"], context=context, asked=asked,
        )  # fmt: skip
    except (ModelTooLarge, NotDone) as reason:
        return [{**row, "reason": str(reason)}]
    data = DataSet(cell["data"], make_source(domain, codes), workload)
    drawn = make_source(domain, made.records)
    return [
        {
            **row,
            "error": find_error(data, asked, made.answer),
            "records_error": find_error(
                data, asked, lambda clique: np.asarray(drawn.exact_counts([clique])[0].values)
            ),
            "measured": made.measured,
            "busy": made.busy,
            "wall": made.wall,
            "peak_mb": made.peak_mb,
        }
    ]


def build_workload(domain: Domain, k: int) -> Workload:
    """Every set of `k` attributes; of a wide table's triples, the small ones that are drawn."""
    whole = Workload.all_marginals(domain, k)
    if len(domain) <= MAX_COLUMNS or k < 3:
        return whole
    return Workload.of_marginals(domain, choose_small(domain, whole.cliques))


def choose_small(domain: Domain, cliques: tuple[Clique, ...]) -> list[Clique]:
    """Those of at most 300,000 cells, or 500 of them, drawn with a fixed seed."""
    small = [clique for clique in cliques if domain.size_of(clique) <= MAX_CELLS]
    chosen = np.random.default_rng(0).permutation(len(small))[:MAX_MARGINALS]
    return [small[index] for index in sorted(chosen)]


EXPERIMENT = Experiment("adaptive", "Mechanisms that choose what they measure", cells, run)
