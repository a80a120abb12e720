"""`juncture release`: from a private table to a release file, under a budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.bars import show_progress
from juncture.cli.console import note, refuse_existing, refuse_same, require_file, say, say_json
from juncture.cli.options import (
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
    WorkloadOptions,
    choose_mechanism,
    make_budget,
    open_ledger,
    parse_neighbours,
    resolve_neighbours,
)

if TYPE_CHECKING:
    from juncture.mechanisms.forecast import Mechanism
    from juncture.privacy.accounting import Budget, Neighbours
    from juncture.privacy.ledger import Ledger
    from juncture.publish.release import Release
    from juncture.tables.schema import Schema
    from juncture.tables.workload import Workload


@dataclass(frozen=True)
class _Job:
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
    job = _make_job(
        data, schema, WorkloadOptions(marginals, cliques, triples, seed), mechanism,
        make_budget(epsilon, delta, rho), neighbours, ledger, out,
    )  # fmt: skip
    result, book = _run_job(job)
    if as_json:
        say_json(_summary(job, result, book))
    else:
        _print_summary(job, result, book)


def _make_job(
    data: Path,
    schema: Path,
    options: WorkloadOptions,
    requested: MechanismName | None,
    budget: Budget,
    neighbours: NeighbourName | None,
    ledger: Path,
    out: Path,
) -> _Job:
    from juncture.engine.plan import Plan
    from juncture.mechanisms.forecast import mechanism_for
    from juncture.tables.schema_toml import read_schema

    require_file(data, "DATA", or_folder=True)
    require_file(schema, "--schema")
    loaded = read_schema(schema)
    loaded.refuse_draft("--schema", schema)
    workload = options.build(loaded.domain)
    name = choose_mechanism(requested, workload)
    if name in (MechanismName.HDMM, MechanismName.DUALQUERY):
        Plan.build(loaded.domain, workload.cliques)  # refuses a model that is too large
    runner = mechanism_for(name, budget)
    return _Job(data, loaded, workload, name, runner, budget, neighbours, ledger, out)


def _run_job(job: _Job) -> tuple[Release, Ledger]:
    from juncture.mechanisms.forecast import forecast
    from juncture.privacy.ledger import refuse_overspending
    from juncture.private.curator import Curator
    from juncture.private.sources.duck import DuckDB

    neighbours = _job_neighbours(job)
    source = DuckDB(job.data, job.schema)
    expected = forecast(job.mechanism, job.workload, neighbours, source.exact_n_records)
    if not job.ledger.exists():
        refuse_overspending(job.budget, expected.costs)
    ledger = _open_or_create_ledger(job, neighbours)
    ledger.refuse_unaffordable(expected.costs)
    with _report_spending(ledger), show_progress() as watch:
        outcome = job.mechanism.run(Curator(source, ledger), job.workload, watch=watch)
        result = outcome.described_release(str(job.name), job.workload, ledger, job.schema)
        result.save(job.out)
    return result, ledger


def _job_neighbours(job: _Job) -> Neighbours:
    """The neighbours of the ledger; those of the options where it is a new one."""
    if job.ledger.exists():
        return resolve_neighbours(open_ledger(job.ledger), job.neighbours)
    return parse_neighbours(job.neighbours)


def _open_or_create_ledger(job: _Job, neighbours: Neighbours) -> Ledger:
    from juncture.privacy.ledger import Ledger

    if job.ledger.exists():
        return open_ledger(job.ledger)
    return Ledger.create(job.ledger, job.budget, neighbours)


@contextmanager
def _report_spending(ledger: Ledger) -> Iterator[None]:
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


def _summary(job: _Job, result: Release, ledger: Ledger) -> dict[str, object]:
    return {
        "release": str(job.out),
        "ledger": str(job.ledger),
        "spent": ledger.spent,
        "budget": ledger.budget.to_dict(),
        "total": result.model.total,
        "measurements": len(result.measurements),
        "statistics": dict(result.statistics),
    }


def _print_summary(job: _Job, result: Release, ledger: Ledger) -> None:
    say(f"wrote {job.out}")
    many = "clique" if len(result.model.cliques) == 1 else "cliques"
    say(f"  model     {len(result.model.cliques)} {many}, about {result.model.total:,.0f} records")
    if "loss" in result.statistics:
        say(f"  fit       {result.statistics['oracle_calls']} steps")
    say(f"  ledger    {job.ledger}: {ledger.spent:.4g} of {ledger.budget} spent")
    say(f"  protects  {ledger.neighbours}")
    say(f"\nNext: juncture report {job.out}, or juncture query {job.out} --marginal NAME")
