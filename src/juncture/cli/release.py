"""`juncture release`: from a private table to a release file, under a budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.bars import show_progress
from juncture.cli.console import note, refuse_existing, refuse_same, require_file, say, say_json
from juncture.cli.options import (
    BinningShare,
    CheckShare,
    Cliques,
    DataFile,
    Delta,
    DeviceOption,
    Epsilon,
    Force,
    Json,
    Marginals,
    MaxCells,
    MechanismOption,
    MechanismSettings,
    MergeRareOption,
    NeighboursOption,
    NoHeader,
    OracleOption,
    Records,
    Rho,
    SchemaFile,
    Seed,
    TableName,
    Target,
    Triples,
    Weights,
    WorkloadOptions,
    check_mechanism,
    choose_mechanism,
    find_table,
    join_device,
    list_mechanisms,
    make_budget,
    note_doubtful_names,
    note_noise,
    note_not_mixed,
    note_unmeasured,
    open_ledger,
    parse_neighbours,
)

if TYPE_CHECKING:
    from juncture.privacy.ledger import Ledger
    from juncture.publish.release import Release


@list_mechanisms
def release(
    data: DataFile,
    schema: SchemaFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The release file to write (.jct). By default it has the name of the table, in "
            "the current folder.",
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger",
            metavar="FILE",
            help="The file that records what is spent. An existing ledger is continued; a new one "
            "gets the budget of this release. By default it lies beside DATA, with its name: all "
            "releases of a table belong in one ledger.",
        ),
    ] = None,
    new_ledger: Annotated[
        bool,
        typer.Option(
            "--new-ledger",
            help="Begin a new ledger though one of nearly the same name lies beside it, for which "
            "a name that does not exist is taken otherwise.",
        ),
    ] = False,
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
    records: Records = None,
    binning_share: BinningShare = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with a release that was interrupted: what was paid for is kept beside "
            "--out. Give the same options as before.",
        ),
    ] = False,
    table: TableName = None,
    no_header: NoHeader = False,
    force: Force = False,
    check: CheckShare = None,
    replicas: Annotated[
        bool,
        typer.Option(
            "--replicas",
            help="Make the replicas that intervals come from, and keep them in the file: 21 "
            "more fits, no budget. `juncture query` and `explore` then show intervals.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure a private table under a budget, fit a model, and write it as a release file.

    Say what the release should answer well by --marginals, --cliques, --triples or --target; by
    default, the counts over every pair of columns. Errors are found before anything is spent, and
    what is spent is in the ledger before noise is drawn. Noise comes from the operating system's
    randomness and cannot be repeated. If the work is interrupted, --resume goes on with what was
    paid for. Private bins and values of the schema are found first, for a share of the budget.

    \b
    Mechanisms:
    {mechanisms}

    \b
    Examples:
      juncture release people.csv --schema people.toml --epsilon 1 --delta 1e-6
      juncture release people.parquet --schema people.toml --epsilon 1 --delta 1e-9 \\
          --mechanism mwem --triples 15 --out people.jct --ledger people.ledger
    """
    from juncture.privacy.ledger import has_ledgers
    from juncture.private.header import count_doubtful_names
    from juncture.tables.schema_toml import read_schema
    from juncture.workflow.closing import plan_closing
    from juncture.workflow.default_choice import choose_default
    from juncture.workflow.release import release as release_table
    from juncture.workflow.release import resolve_neighbours

    private = find_table(data, table, no_header)
    out = out or Path(f"{private.table or private.stem}.jct")
    ledger = ledger or private.beside(".ledger")
    refuse_existing(out, force=force, read=[private.path, schema, ledger])
    refuse_same("--ledger", ledger, [private.path, schema])
    require_file(schema, "--schema")
    budget, name = make_budget(epsilon, delta, rho), check_mechanism(mechanism)
    known = read_schema(schema)
    known.refuse_draft("--schema", schema)
    note_doubtful_names(count_doubtful_names(list(known.columns)), len(known.columns))
    wanted = WorkloadOptions(marginals, cliques, triples, seed, target, max_cells, weights).build(
        known.widest.domain
    )
    protected = resolve_neighbours(ledger, parse_neighbours(neighbours), known.person)
    rest = plan_closing(known, budget, protected, binning_share).rest
    choice = None if name else choose_default(rest, wanted, protected, records)
    settings = MechanismSettings(join_device(oracle, device), merge_rare)
    is_new = not ledger.exists()
    with show_progress() as watch:
        made = release_table(
            private, known, budget, ledger=ledger, workload=wanted,
            mechanism=choose_mechanism(name, settings, budget, choice),
            neighbours=protected, check=check, path=out, new_ledger=new_ledger or None,
            resume=resume, binning_share=binning_share, watch=watch,
        )  # fmt: skip
        if replicas:
            made = made.with_replicas(watch=watch)
            made.save(out)
    if choice is not None and choice.is_unusual:
        note(f"note: {choice}")
    if is_new and has_ledgers(ledger.parent, but=ledger):
        note(f"note: began a new ledger, {ledger}, with a budget of {budget}, beside others")
    note_unmeasured(made.model.unmeasured)
    note_noise(_typical_noise(made), made.model.total)
    note_not_mixed(made.fit)
    book = open_ledger(ledger)
    if as_json:
        say_json(_summary(out, made, book))
    else:
        _print_summary(out, made, book)


def _typical_noise(made: Release) -> float | None:
    """The middle of the standard deviations of all measurements."""
    import numpy as np

    middles = [float(np.median(measurement.stddev)) for measurement in made.measurements]
    return float(np.median(middles)) if middles else None


def _summary(out: Path, made: Release, ledger: Ledger) -> dict[str, object]:
    return {
        "release": str(out),
        "ledger": str(ledger.path),
        "spent": ledger.budget.compose([] if made.guarantee is None else made.guarantee.costs),
        "ledger_spent": ledger.spent,
        "unmeasured": list(made.model.unmeasured),
        "budget": ledger.budget.to_json(),
        "total": made.model.total,
        "measurements": len(made.measurements),
        "mechanism": made.mechanism,
        "fit": None if made.fit is None else made.fit.to_json(),
        "details": dict(made.details),
        "found": [each.to_json() for each in made.found],
    }


def _print_summary(out: Path, made: Release, ledger: Ledger) -> None:
    say(f"wrote {out}")
    many = "clique" if len(made.model.cliques) == 1 else "cliques"
    say(f"  model     {len(made.model.cliques)} {many}, about {made.model.total:,.0f} records")
    for each in made.found:
        say(f"  {'found':<9} {each.name}: {each.n_found} {each.what}, for {each.price_words}")
    if made.fit is not None:
        say(f"  fit       {made.fit.oracle_calls} steps. {made.fit.status.headline}")
        if made.fit.record_words:
            say(f"  error     {made.fit.record_words}")
    if made.guarantee is not None:
        say(f"  spent     {made.guarantee.state(made.model.total)}, by {made.mechanism}")
    if made.check:
        say(f"  checked   {made.check_words}")
    say(f"  ledger    {ledger.path}: {ledger.spent:.4g} of {ledger.budget} spent in all")
    say(f"  protects  {ledger.neighbours}")
    say(f"\nNext: juncture report {out}, or juncture query {out} --marginal NAME")
