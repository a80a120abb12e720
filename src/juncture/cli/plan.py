"""`juncture plan`: what a release would cost and how far off it would be, without any data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.console import format_pairs, format_table, require_file, say, say_json
from juncture.cli.options import (
    Cliques,
    Delta,
    Epsilon,
    Json,
    Marginals,
    MechanismName,
    MechanismOption,
    NeighboursOption,
    Rho,
    SchemaFile,
    Seed,
    Triples,
    WorkloadOptions,
    choose_mechanism,
    make_budget,
    open_ledger,
    parse_neighbours,
    resolve_neighbours,
)

if TYPE_CHECKING:
    from juncture.engine.plan import Plan
    from juncture.mechanisms.forecast import Forecast, MarginalForecast
    from juncture.privacy.ledger import Ledger
    from juncture.tables.workload import Workload


def plan(
    schema: SchemaFile,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    mechanism: MechanismOption = None,
    marginals: Marginals = None,
    cliques: Cliques = None,
    triples: Triples = None,
    seed: Seed = 0,
    neighbours: NeighboursOption = None,
    records: Annotated[
        int | None,
        typer.Option(
            "--records",
            metavar="N",
            min=1,
            help="About how many records there are, if that is public: for relative errors, and "
            "for privbayes and dualquery.",
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger",
            metavar="FILE",
            help="A ledger that should pay: says whether it can, and takes its neighbours.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what a release would measure, cost and get wrong. No data is read, nothing is spent.

    For hdmm: the expected error of every marginal, from its own measurement alone; the model joins
    all of them and is usually nearer. For the others, which choose by the data, what is known
    before: rounds, prices and noise.

    \b
    Mechanisms:
      hdmm       measures everything asked for; errors are known beforehand
      mwem       measures, round by round, what the model gets most wrong
      privbayes  measures one table for each column with the columns that it depends on
      dualquery  measures nothing; draws queries and fits the model to the draws

    \b
    Examples:
      juncture plan --schema people.toml --epsilon 1 --marginals 2 --records 50000
      juncture plan --schema people.toml --rho 0.1 --cliques "age,sex;sex,income"
      juncture plan --schema people.toml --epsilon 1 --mechanism mwem --triples 15
    """
    from juncture.engine.plan import Plan
    from juncture.mechanisms.forecast import forecast, mechanism_for
    from juncture.tables.schema_toml import read_schema

    require_file(schema, "--schema")
    budget = make_budget(epsilon, delta, rho)
    domain = read_schema(schema).domain
    workload = WorkloadOptions(marginals, cliques, triples, seed).build(domain)
    payer = None if ledger is None else open_ledger(ledger)
    relation = (
        parse_neighbours(neighbours) if payer is None else resolve_neighbours(payer, neighbours)
    )
    mechanism = choose_mechanism(mechanism, workload)
    expected = forecast(mechanism_for(mechanism, budget), workload, relation, records)
    chosen = mechanism in (MechanismName.MWEM, MechanismName.PRIVBAYES)
    tree = None if chosen else Plan.build(domain, workload.cliques)
    if as_json:
        affordable = None if payer is None else _can_pay(payer, expected)
        known = _to_json(tree, workload, expected, budget.compose(expected.costs))
        say_json({**known, "affordable": affordable})
        return
    say(str(tree or "The cliques of the model are chosen by the data, within a budget."))
    say()
    say(f"Budget: {budget}. Protected: {relation}. Mechanism: {mechanism}.")
    say(
        f"Cost of the whole run: {budget.compose(expected.costs):.4g}, in {len(expected.costs)} "
        "events."
    )
    if payer is not None:
        can = "can" if _can_pay(payer, expected) else "CANNOT"
        say(f"The ledger {can} pay: {payer.remaining:.4g} of {payer.budget} is left.")
    say()
    say(
        format_pairs(expected.facts)
        if expected.facts
        else _format_errors(expected.marginals, records)
    )


def _can_pay(ledger: Ledger, expected: Forecast) -> bool:
    from juncture.errors import BudgetExceeded

    try:
        ledger.refuse_unaffordable(expected.costs)
    except BudgetExceeded:
        return False
    return True


def _format_errors(marginals: tuple[MarginalForecast, ...], records: int | None) -> str:
    columns = ["marginal", "cells", "share", "noise", "error per cell"]
    rows: list[list[object]] = [
        [", ".join(m.clique) or "(all records)", m.cells, m.share, m.stddev, m.error]
        for m in marginals
    ]
    if records:
        columns.append("relative")
        for row, m in zip(rows, marginals, strict=True):
            row.append(f"{100.0 * m.error * m.cells / records:.3g} %")
    legend = [
        ("share", "of the budget"),
        ("noise", "standard deviation on each measured answer"),
        ("error per cell", "expected, root mean square, before the model joins all marginals"),
        *([("relative", "to the mean count of a cell")] if records else []),
    ]
    return f"{format_table(columns, rows)}\n\n{format_pairs(legend)}"


def _to_json(
    tree: Plan | None, workload: Workload, expected: Forecast, cost: float
) -> dict[str, object]:
    return {
        "cliques": [list(clique) for clique in workload.cliques],
        "cells": None if tree is None else tree.cells,
        "memory_bytes": None if tree is None else tree.size_bytes,
        "events": len(expected.costs),
        "cost": cost,
        "marginals": [asdict(m) for m in expected.marginals],
        "facts": dict(expected.facts),
    }
