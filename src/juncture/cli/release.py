"""`juncture release`: from a private table to a release file, under a budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.bars import watching
from juncture.cli.console import note, refuse_existing, refuse_same, require_file, say, say_json
from juncture.cli.options import (
    Asked,
    Cliques,
    DataFile,
    Delta,
    Epsilon,
    Force,
    Json,
    Marginals,
    MechanismName,
    MechanismOption,
    NeighbourName,
    NeighboursOption,
    Rho,
    SchemaFile,
    Seed,
    Triples,
    agreed,
    budget_of,
    mechanism_or_default,
    neighbours_of,
    opened,
)
from juncture.errors import NotPublic

if TYPE_CHECKING:
    from juncture.mechanisms.forecast import Mechanism
    from juncture.privacy.accounting import Budget, Neighbours
    from juncture.privacy.ledger import Ledger
    from juncture.publish.release import Release
    from juncture.tables.schema import Schema
    from juncture.tables.workload import Workload


@dataclass(frozen=True)
class _Order:
    """All that was asked for, checked as far as it can be without data."""

    data: Path
    schema: Schema
    workload: Workload
    name: MechanismName
    mechanism: Mechanism
    budget: Budget
    neighbours: NeighbourName | None
    ledger: Path
    out: Path


def release(
    data: DataFile,
    schema: SchemaFile,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The release file to write (.jct).")
    ],
    ledger: Annotated[
        Path,
        typer.Option(
            "--ledger",
            metavar="FILE",
            help="Where spending is recorded. An existing ledger is continued; a new one gets what "
            "this release may spend as its budget.",
        ),
    ],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    mechanism: MechanismOption = None,
    marginals: Marginals = None,
    cliques: Cliques = None,
    triples: Triples = None,
    seed: Seed = 0,
    neighbours: NeighboursOption = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Measure a private table under a budget, fit a model, and write it as a release file.

    Everything that can be refused is refused before anything is spent. What is spent is in the
    ledger before noise is drawn. Noise comes from the operating system and cannot be repeated.
    Without a workload option, every pair of columns is asked for.

    \b
    Mechanisms:
      hdmm       measures everything asked for; errors are known beforehand
      mwem       measures, round by round, what the model gets most wrong
      privbayes  measures one table for each column with the columns that it depends on
      dualquery  measures nothing; draws queries and fits the model to the draws

    \b
    Examples:
      juncture release people.csv --schema people.toml --epsilon 1 \\
          --out people.jct --ledger people.ledger
      juncture release people.parquet --schema people.toml --epsilon 1 --delta 1e-9 \\
          --mechanism mwem --triples 15 --out people.jct --ledger people.ledger
    """
    refuse_existing(out, force=force, read=[data, schema, ledger])
    refuse_same("--ledger", ledger, [data, schema])
    order = _order(
        data, schema, Asked(marginals, cliques, triples, seed), mechanism,
        budget_of(epsilon, delta, rho), neighbours, ledger, out,
    )  # fmt: skip
    made, book = _released(order)
    if as_json:
        say_json(_summary(order, made, book))
    else:
        _describe(order, made, book)


def _order(
    data: Path,
    schema: Path,
    asked: Asked,
    asked_for: MechanismName | None,
    budget: Budget,
    neighbours: NeighbourName | None,
    ledger: Path,
    out: Path,
) -> _Order:
    from juncture.engine.plan import Plan
    from juncture.mechanisms.forecast import mechanism_for
    from juncture.tables.schema_toml import read_schema

    require_file(data, "DATA", or_folder=True)
    require_file(schema, "--schema")
    found = read_schema(schema)
    _refuse_draft(found, schema)
    workload = asked.workload(found.domain)
    name = mechanism_or_default(asked_for, workload)
    if name in (MechanismName.HDMM, MechanismName.DUALQUERY):
        Plan.build(found.domain, workload.cliques)  # refuses a model that is too large
    made = mechanism_for(name, budget)
    return _Order(data, found, workload, name, made, budget, neighbours, ledger, out)


def _refuse_draft(schema: Schema, path: Path) -> None:
    if not schema.is_public:
        raise NotPublic(
            f"`--schema` must be public knowledge; got {path}, a draft made from the data. Go "
            "through it, then set confirmed_public = true in it."
        )


def _released(order: _Order) -> tuple[Release, Ledger]:
    from juncture.mechanisms.forecast import forecast
    from juncture.privacy.ledger import refuse_overspending
    from juncture.private.curator import Curator
    from juncture.private.sources.duck import DuckDB

    relation = _relation(order)
    source = DuckDB(order.data, order.schema)
    ahead = forecast(order.mechanism, order.workload, relation, source.exact_n_records)
    if not order.ledger.exists():
        refuse_overspending(order.budget, ahead.costs)
    ledger = _opened(order, relation)
    ledger.refuse_beyond(ahead.costs)
    with _told_of_spending(ledger), watching() as watch:
        outcome = order.mechanism.run(Curator(source, ledger), order.workload, watch=watch)
        made = outcome.described_release(str(order.name), order.workload, ledger, order.schema)
        made.save(order.out)
    return made, ledger


def _relation(order: _Order) -> Neighbours:
    """The neighbours of the ledger; those of the options where it is a new one."""
    if order.ledger.exists():
        return agreed(opened(order.ledger), order.neighbours)
    return neighbours_of(order.neighbours)


def _opened(order: _Order, relation: Neighbours) -> Ledger:
    from juncture.privacy.ledger import Ledger

    if order.ledger.exists():
        return opened(order.ledger)
    return Ledger.create(order.ledger, order.budget, relation)


@contextmanager
def _told_of_spending(ledger: Ledger) -> Iterator[None]:
    """When the work ends early, say what was spent all the same."""
    before = len(ledger.events)
    try:
        yield
    except BaseException:
        more = len(ledger.events) - before
        if more:
            note(
                f"nothing was written, but {more} events had been paid for: {ledger.path} has "
                f"{ledger.spent:.4g} of {ledger.budget} spent, and that stays so."
            )
        raise


def _summary(order: _Order, made: Release, ledger: Ledger) -> dict[str, object]:
    return {
        "release": str(order.out),
        "ledger": str(order.ledger),
        "spent": ledger.spent,
        "budget": ledger.budget.as_text(),
        "total": made.model.total,
        "measurements": len(made.measurements),
        "statistics": dict(made.statistics),
    }


def _describe(order: _Order, made: Release, ledger: Ledger) -> None:
    say(f"wrote {order.out}")
    many = "clique" if len(made.model.cliques) == 1 else "cliques"
    say(f"  model     {len(made.model.cliques)} {many}, about {made.model.total:,.0f} records")
    if "loss" in made.statistics:
        say(f"  fit       {made.statistics['oracle_calls']} steps")
    say(f"  ledger    {order.ledger}: {ledger.spent:.4g} of {ledger.budget} spent")
    say(f"  protects  {ledger.neighbours}")
    say(f"\nNext: juncture report {order.out}, or juncture query {order.out} --marginal NAME")
