"""`juncture plan`: the cost and the expected errors of a release, without any data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.console import format_pairs, format_table, note, require_file, say, say_json
from juncture.cli.options import (
    BinningShare,
    CheckShare,
    Cliques,
    Delta,
    DeviceOption,
    Epsilon,
    Json,
    Marginals,
    MaxCells,
    MechanismOption,
    MechanismSettings,
    MergeRareOption,
    NeighboursOption,
    OracleOption,
    Rho,
    SchemaFile,
    Seed,
    Target,
    Triples,
    Weights,
    WorkloadOptions,
    check_mechanism,
    choose_mechanism,
    join_device,
    list_mechanisms,
    make_budget,
    note_noise,
    open_ledger,
    parse_neighbours,
)

if TYPE_CHECKING:
    from juncture.engine.oracle_choice import OracleChoice
    from juncture.mechanisms.mechanism import MarginalForecast, Run
    from juncture.privacy.accounting import Cost
    from juncture.privacy.budget import Budget
    from juncture.privacy.ledger import Ledger
    from juncture.workflow.closing import ClosingPlan
    from juncture.workflow.default_choice import DefaultChoice
    from juncture.workflow.forecast import Forecast

# Half of a 95 % interval, in standard deviations.
_NORMAL = 1.96


@list_mechanisms
def plan(
    schema: SchemaFile,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    mechanism: MechanismOption = None,
    oracle: OracleOption = None,
    merge_rare: MergeRareOption = None,
    device: DeviceOption = None,
    marginals: Marginals = None,
    cliques: Cliques = None,
    triples: Triples = None,
    target: Target = None,
    max_cells: MaxCells = None,
    weights: Weights = None,
    seed: Seed = 0,
    neighbours: NeighboursOption = None,
    binning_share: BinningShare = None,
    records: Annotated[
        int | None,
        typer.Option(
            "--records",
            metavar="N",
            min=1,
            help="The approximate number of records, if it is public: shows relative errors, and "
            "privbayes and dualquery need it. Expected errors are for so many; by default 10,000.",
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger",
            metavar="FILE",
            help="The ledger that would pay: shows whether its budget suffices, and protects what "
            "it says.",
        ),
    ] = None,
    check: CheckShare = None,
    as_json: Json = False,
) -> None:
    """Show what a release would measure and cost, and its errors. Reads no data, spends nothing.

    A marginal is a table of counts over some columns. For hdmm, the expected error of every
    marginal is shown, from its own measurement alone; the model joins all measurements and is
    usually more accurate. The other mechanisms choose after seeing the data, so what is known
    beforehand is shown: rounds, prices and noise. Last come the errors to expect of the mechanisms
    on made-up tables, by which one is taken where you choose none. Where the schema has private
    bins or values, what finding them costs is shown, and the rest as if there were as many of them
    as there may be.

    \b
    Mechanisms:
    {mechanisms}

    \b
    Examples:
      juncture plan --schema people.toml --epsilon 1 --marginals 2 --records 50000
      juncture plan --schema people.toml --rho 0.1 --cliques "age,sex;sex,income"
      juncture plan --schema people.toml --epsilon 1 --mechanism mwem --triples 15
    """
    from juncture.fit.public_facts import PublicFacts
    from juncture.private.curator import refuse_private_number
    from juncture.tables.schema_toml import read_schema
    from juncture.workflow.closing import plan_closing
    from juncture.workflow.default_choice import choose_default
    from juncture.workflow.forecast import forecast
    from juncture.workflow.release import prepare_release, resolve_neighbours, with_budget

    require_file(schema, "--schema")
    budget, name = make_budget(epsilon, delta, rho), check_mechanism(mechanism)
    known = read_schema(schema)
    workload = WorkloadOptions(marginals, cliques, triples, seed, target, max_cells, weights).build(
        known.widest.domain
    )
    payer = None if ledger is None else open_ledger(ledger)
    relation = resolve_neighbours(ledger, parse_neighbours(neighbours), known.person)
    refuse_private_number(known, relation)
    PublicFacts.of_schema(known.widest)  # refuses rules and totals that contradict each other
    closing = plan_closing(known, budget, relation, binning_share)
    choice = choose_default(closing.rest, workload, relation, records)
    settings = MechanismSettings(join_device(oracle, device), merge_rare)
    chosen = with_budget(choose_mechanism(name, settings, budget, choice), budget, closing.rest)
    run = prepare_release(chosen, closing.rest, workload, relation, records, check=check)
    if name is None and choice.is_unusual:
        note(f"note: {choice}")
    note_noise(run.cell_stddev, records)
    costs = (*closing.costs, *run.costs)
    cost = budget.compose(costs)
    others = (
        [] if name in {None, *(each.mechanism for each in choice.forecasts)} else [run.mechanism]
    )
    forecasts = [
        *choice.forecasts, *forecast(others, closing.rest, workload, relation, records),
    ]  # fmt: skip
    if as_json:
        can_pay = None if payer is None else _can_pay(payer, costs)
        described = {**_to_json(run, cost), "events": len(costs), "binning": dict(closing.facts)}
        described["forecasts"] = _list_forecasts(forecasts)
        say_json({**described, "affordable": can_pay})
        return
    say(str(run.plan or "The structure of the model will be chosen after seeing the data."))
    if run.oracle is not None:
        say(str(run.oracle))
    say()
    say(f"Budget: {budget}. Protected: {relation}. Mechanism: {run.mechanism}.")
    bound = "" if run.costs_are_exact else "at most "
    say(f"Cost of the whole run: {bound}{cost:.4g}, in {bound}{len(costs)} events.")
    if payer is not None:
        can = "can" if _can_pay(payer, costs) else "CANNOT"
        say(f"The ledger {can} pay: {payer.remaining:.4g} of {payer.budget} is left.")
    if closing.columns:
        _say_closing(closing, budget)
    say()
    say("\n\n".join(_describe(run, records)))
    say()
    say(_format_forecasts(forecasts, choice, run.mechanism))


def _say_closing(closing: ClosingPlan, budget: Budget) -> None:
    """What is found privately before the mechanism begins."""
    share = 1.0 - closing.rest.price.amount / budget.price.amount
    say(f"\nFound privately first, for {100.0 * share:.3g} % of the budget:")
    say(format_pairs(closing.facts))


def _describe(run: Run, records: int | None) -> list[str]:
    """What is known about marginals, and other facts."""
    errors = [_format_errors(run.marginals, records)] if run.marginals else []
    half_width = _find_half_width(run.cell_stddev)
    width = [] if errors or half_width is None else [("half of an interval", half_width)]
    facts = [*run.facts, *width]
    return [*errors, *([format_pairs(facts)] if facts else [])]


def _find_half_width(stddev: float | None) -> str | None:
    """Half of a 95 % interval for a measured count, in words."""
    if stddev is None:
        return None
    return f"at most about {_NORMAL * stddev:.3g} records for a measured count, at 95 %"


def _can_pay(ledger: Ledger, costs: Sequence[Cost]) -> bool:
    from juncture.errors import BudgetExceeded

    try:
        ledger.refuse_unaffordable(costs)
    except BudgetExceeded:
        return False
    return True


def _format_errors(marginals: tuple[MarginalForecast, ...], records: int | None) -> str:
    columns = ["marginal", "cells", "share", "noise", "error per cell", "half-width"]
    rows: list[list[object]] = [
        [
            ", ".join(m.clique) or "(all records)",
            m.cells,
            m.share,
            m.stddev,
            m.error,
            _NORMAL * m.error,
        ]
        for m in marginals
    ]
    if records:
        columns.append("relative")
        for row, m in zip(rows, marginals, strict=True):
            row.append(f"{100.0 * m.error * m.cells / records:.3g} %")
    legend = [
        ("share", "the share of the budget"),
        ("noise", "the standard deviation of the noise on each measured answer"),
        ("error per cell", "the expected root mean square error, before the model joins marginals"),
        ("half-width", "half of the 95 % interval that this error makes; the model's are narrower"),
        *([("relative", "the error relative to the mean count of a cell")] if records else []),
    ]
    return f"{format_table(columns, rows)}\n\n{format_pairs(legend)}"


def _format_forecasts(forecasts: list[Forecast], choice: DefaultChoice, planned: str) -> str:
    """The mechanisms side by side, each with its error on made-up tables."""
    rows: list[list[object]] = [
        [
            f"{each.mechanism}{' (this plan)' if each.mechanism == planned else ''}",
            _show_share(each.independent),
            _show_share(each.dependent),
            each.method.value,
        ]
        for each in forecasts
    ]
    columns = ["mechanism", "if independent", "if dependent", "how it was found"]
    return (
        f"Expected errors, as the share of {choice.n_records:,} records in wrong cells: nobody "
        "knows beforehand how much\nthe columns depend on each other, so both are tried.\n\n"
        f"{format_table(columns, rows)}\n\nWithout --mechanism it is {choice.mechanism}."
    )


def _show_share(error: float | None) -> str:
    return "" if error is None else f"{100.0 * error:.2g} %"


def _list_forecasts(forecasts: list[Forecast]) -> list[dict[str, object]]:
    return [{**asdict(each), "error": each.error} for each in forecasts]


def _to_json(run: Run, cost: float) -> dict[str, object]:
    return {
        "mechanism": run.mechanism,
        "cliques": [list(clique) for clique in run.workload.cliques],
        "weights": list(run.workload.weights),
        "cells": None if run.plan is None else run.plan.cells,
        "memory_bytes": None if run.plan is None else run.plan.size_bytes,
        "oracle": None if run.oracle is None else _oracle_to_json(run.oracle),
        "events": len(run.costs),
        "cost": cost,
        "marginals": [{**asdict(m), "half_width": _NORMAL * m.error} for m in run.marginals],
        "facts": dict(run.facts),
    }


def _oracle_to_json(choice: OracleChoice) -> dict[str, object]:
    return {
        "name": choice.name,
        "reason": choice.reason.value,
        "seconds": choice.seconds,
        "seconds_exact": choice.time.exact,
        "seconds_records": choice.time.records,
    }
