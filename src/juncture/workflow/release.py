"""From a private table to a release in one call; `juncture release` does the same."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from juncture._util.notebook_bar import show_in_notebook
from juncture._util.watch import Watch
from juncture.engine.compiled.loader import load_routines
from juncture.engine.predicted_time import format_seconds
from juncture.errors import InvalidInput
from juncture.fit.public_facts import PublicFacts
from juncture.mechanisms.checked import prepare_checked
from juncture.mechanisms.mechanism import Mechanism, Run
from juncture.mechanisms.registry import prepare
from juncture.privacy.accounting import Cost, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger, find_similar_ledger, refuse_overspending
from juncture.private.curator import Curator, refuse_private_number
from juncture.private.journal import Journal, journal_path
from juncture.private.sources.read import close_table, read_table
from juncture.publish.release import Release
from juncture.tables.domain import Clique
from juncture.tables.person import Person
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import read_schema, schema_toml
from juncture.tables.workload import Workload
from juncture.workflow.closing import ClosingPlan, plan_closing
from juncture.workflow.default_choice import choose_default

# Of a fit that takes more seconds than this, people are told before anything is spent.
_LONG_FIT = 120.0

if TYPE_CHECKING:
    from juncture.private.sources.read import Table
    from juncture.private.sources.source import OpenSource, Source


def release(  # noqa: PLR0913
    table: Table,
    schema: Schema | str | Path,
    budget: Budget,
    *,
    ledger: str | Path,
    workload: Workload | Iterable[Iterable[str]] | Mapping[Clique, float] | None = None,
    mechanism: str | Mechanism | None = None,
    neighbours: Neighbours | None = None,
    check: float | None = None,
    path: str | Path | None = None,
    new_ledger: bool | None = None,
    resume: bool = False,
    binning_share: float | None = None,
    watch: Watch | None = None,
) -> Release:
    """Measure a private table under a budget and fit a model: the release can be published.

    Everything that can be refused is refused before anything is spent, and what is spent is in the
    ledger before noise is drawn. Noise comes from the operating system and cannot be repeated.

    - `table`: a CSV or Parquet file, a folder of such files, or a database; a `TableFile`; a
      pandas, Polars or Arrow table; a DuckDB relation; a Spark DataFrame. See `read_table`.
    - `schema`: what the columns may hold, or the path of its TOML file.
    - `budget`: what this release may spend.
    - `ledger`: the file where spending is recorded. An existing ledger is continued; a new one is
      created with `budget`, see `new_ledger`.
    - `workload`: what should be answered well: a workload, or sets of columns; a mapping gives
      each set its weight. By default every pair of columns with at most a million cells.
    - `mechanism`: what decides what to measure, by name or as an object with this budget. By
      default tiers where the budget has a delta or is a rho, else hdmm, or mwem if a model of the
      whole workload would be too large; or one that is expected to be better, on made-up tables of
      ten thousand records (see `choose_default`, which takes another number).
    - `neighbours`: what is protected. By default that of the ledger; in a new ledger, one record
      added or removed, or one person where the schema has a `person`.
    - `check`: the share of the budget, such as 0.05, for questions that the model is not fitted to:
      they give intervals to answers that rest on an independence that nobody measured.
    - `path`: where to save the release, usually with the suffix `.jct`; by default nowhere. Until
      it is complete, every noisy answer is kept beside it, in a file with `.partial` at the end.
    - `new_ledger`: whether `ledger` is to be created. By default it is if it does not exist and no
      file beside it has nearly the same name: a mistyped name must not begin a new budget.
    - `resume`: go on with a release that was interrupted, from what is kept beside `path`: what was
      paid for is used, not paid for again. All other arguments must be the same.
    - `binning_share`: the share of the budget for finding private bins and values, where the schema
      has any; by default two hundredths for each such column, and at most a fifth.
    - `watch`: called with the progress of the work; by default, a notebook shows bars.

    >>> from tempfile import TemporaryDirectory
    >>> import juncture as jn
    >>> import pyarrow as pa
    >>> table = pa.table({"age": [31, 40, 57], "smokes": [True, False, True]})
    >>> schema = jn.Schema({"age": jn.Integer(low=0, high=99), "smokes": jn.Boolean()})
    >>> with TemporaryDirectory() as folder:
    ...     made = jn.release(table, schema, jn.Budget(epsilon=1), ledger=f"{folder}/people.ledger")
    >>> made.sql("SELECT smokes, COUNT(*) FROM people GROUP BY smokes").columns
    ('smokes', 'COUNT(*)')
    """
    known = schema if isinstance(schema, Schema) else read_schema(schema)
    known.refuse_draft("schema")
    file = Path(ledger)
    refuse_mistyped(file, new_ledger)
    protected = resolve_neighbours(file, neighbours, known.person)
    closing = plan_closing(known, budget, protected, binning_share)
    refuse_private_number(known, protected)
    PublicFacts.of_schema(known.widest)  # refuses rules and totals that contradict each other
    wanted = make_workload(known.widest, workload)
    taken = mechanism or choose_default(closing.rest, wanted, protected).mechanism
    chosen = with_budget(taken, budget, closing.rest)
    kept = None if path is None else journal_path(path)
    begun = _open_unfinished(kept) if resume else None
    if not resume:
        _refuse_unfinished(kept)
    # Compiling may be interrupted: neither journal nor ledger is left behind. And a large table in
    # memory may leave no room near the process's own code, where the linker wants it.
    load_routines()
    if not protected.n_records_is_public:  # nothing about the table is needed to prepare
        run = prepare_release(chosen, closing.rest, wanted, protected, check=check)
        _refuse_unaffordable(file, budget, [*closing.costs, *run.costs], begun)
        source = read_table(table, known)
    else:  # both of two neighbouring tables have the same number of records: it is public
        source = read_table(table, known)
        n = source.exact_n_records
        run = prepare_release(chosen, closing.rest, wanted, protected, n, check=check)
        _refuse_unaffordable(file, budget, [*closing.costs, *run.costs], begun)
    warn_of_long_fit(run)
    shares = {"binning_share": binning_share if closing.columns else None, "check": check}
    settings = _describe_settings(known, budget, run, taken, shares)
    if begun is not None:
        begun.refuse_other_settings(settings)
    journal = begun if kept is None or begun is not None else _begin_journal(kept, settings)
    book = Ledger(file) if file.exists() else Ledger.create(file, budget, protected)
    curator = Curator(source, book, journal)
    with _note_spending(curator, journal), show_in_notebook() as show:
        if closing.columns:
            with curator.reserve([*closing.costs, *run.costs], run.mechanism):
                made = _release_open(curator, source, closing, chosen, wanted, check, watch or show)
        else:
            made = run(curator, watch=watch or show).release()
        if path is not None:
            made.save(path)
    if journal is not None:
        journal.remove()
    return made


def _release_open(
    curator: Curator,
    source: Source,
    closing: ClosingPlan,
    mechanism: str | Mechanism,
    workload: Workload,
    check: float | None,
    watch: Watch,
) -> Release:
    """Close the schema, then measure the table under the closed one."""
    n_before = len(curator.events)
    closed = closing.run(curator, watch)
    table = close_table(cast("OpenSource", source), closed.schema, closed.codes)
    inner = curator.with_source(table)
    wanted = Workload.of_marginals(closed.schema.domain, workload.clique_weights)
    n_records = curator.public_n_records
    run = prepare_release(
        mechanism, closing.rest, wanted, curator.neighbours, n_records, check=check
    )
    made = replace(run, earlier=closed.measurements)(inner, watch=watch).release()
    guarantee = curator.guarantee_since(n_before, closing.budget)
    return replace(made, guarantee=guarantee, found=closed.found)


def with_budget(mechanism: str | Mechanism, budget: Budget, rest: Budget) -> str | Mechanism:
    """The mechanism with what is left of a budget, if it is an object with that budget."""
    if isinstance(mechanism, str) or rest == budget:
        return mechanism
    if mechanism.budget != budget:
        raise InvalidInput(
            f"`mechanism` must have the budget of the release ({budget}); got {mechanism.budget}."
        )
    if not is_dataclass(mechanism):
        raise InvalidInput(
            "`mechanism` must be a dataclass where the schema has private bins or values: it gets "
            f"what finding them leaves of the budget; got {type(mechanism).__name__}."
        )
    return replace(mechanism, budget=rest)


def prepare_release(
    mechanism: str | Mechanism, budget: Budget, workload: Workload,
    neighbours: Neighbours, n_records: int | None = None, *, check: float | None = None,
) -> Run:  # fmt: skip
    """The run of a release, with a check where a share of the budget is for one."""
    if check is None:
        return prepare(mechanism, budget, workload, neighbours, n_records)
    return prepare_checked(mechanism, budget, check, workload, neighbours, n_records)


def warn_of_long_fit(run: Run) -> None:
    """Say before anything is spent that a fit will take minutes, and what takes less."""
    seconds = None if run.oracle is None else run.oracle.seconds
    if seconds is not None and seconds > _LONG_FIT:
        n_sets = len(run.workload.distinct_cliques)
        warnings.warn(
            f"Fitting {run.mechanism}'s model of {n_sets:,} sets of columns takes "
            f"{format_seconds(seconds)} of one processor. Nothing is spent yet: to have it sooner, "
            "take tiers or mst, which measure what matters most, or ask for fewer sets of columns.",
            stacklevel=3,
        )


def _open_unfinished(kept: Path | None) -> Journal:
    if kept is None or not kept.exists():
        raise InvalidInput(
            f"`resume` must find an unfinished release beside its output; got "
            f"{'no path' if kept is None else f'no file {kept}'}. Give the path of the release "
            "that was interrupted, or leave `resume` out."
        )
    return Journal(kept)


def _refuse_unfinished(kept: Path | None) -> None:
    if kept is not None and kept.exists():
        raise InvalidInput(
            f"`path` must not be that of an unfinished release; got {kept}, which keeps what was "
            "paid for. Resume it (--resume); or delete the file, which loses what was paid for."
        )


def _begin_journal(kept: Path, settings: Mapping[str, object]) -> Journal:
    try:
        return Journal.create(kept, settings)
    except OSError as error:
        raise InvalidInput(
            f"`path` must be where a file can be written; got {kept}: {error.strerror}. Nothing "
            "was spent."
        ) from None


def _describe_settings(
    schema: Schema, budget: Budget, run: Run, mechanism: str | Mechanism,
    shares: Mapping[str, float | None],
) -> dict[str, object]:  # fmt: skip
    """What must be the same when an interrupted release goes on."""
    return {
        "schema": schema_toml(schema),
        "budget": budget.to_json(),
        "workload": [
            [list(task.clique), repr(task.blocks), task.weight] for task in run.workload.tasks
        ],
        "mechanism": str(mechanism),
        "neighbours": str(run.neighbours),
        **{name: share for name, share in shares.items() if share is not None},
    }


def refuse_mistyped(ledger: Path, new_ledger: bool | None) -> None:
    """Refuse to begin a new budget by mistake, and to continue one that should be new."""
    if ledger.exists():
        if new_ledger:
            raise InvalidInput(
                f"`ledger` must be a new file with `new_ledger`; got {ledger}, which exists. Leave "
                "`new_ledger` out to continue it."
            )
        return
    meant = None if new_ledger else find_similar_ledger(ledger)
    if meant is not None or new_ledger is False:
        beside = "" if meant is None else f"; {meant} does"
        raise InvalidInput(
            f"`ledger` must be an existing ledger, or said to be new; got {ledger}, which does not "
            f"exist{beside}. Check the name: a new ledger is a new budget. To begin one, set "
            "`new_ledger` (--new-ledger)."
        )


def resolve_neighbours(
    ledger: Path | None, neighbours: Neighbours | None, person: Person | None = None
) -> Neighbours:
    """What is protected: the neighbours of the ledger, if it exists; refuses any others.

    - `person`: that of the schema. Neighbours without one become those of this person.
    """
    asked = None if neighbours is None else neighbours.of(neighbours.person or person)
    if asked is not None and asked.person != person:
        raise InvalidInput(
            f"`neighbours` must be about the person of the schema; got {neighbours}. Leave the "
            "person out of `neighbours`, or write it into the schema."
        )
    if ledger is None or not ledger.exists():
        return asked or Neighbours.ADD_OR_REMOVE.of(person)
    own = Ledger(ledger).neighbours
    if own.person != person:
        unit = "records" if person is None else f"{person}, by the column {person.column!r}"
        theirs = "" if own.person is None else f", by the column {own.person.column!r}"
        raise InvalidInput(
            f"`schema` must protect what the ledger does ({own}{theirs}); got one about {unit}. "
            "Change [person] in the schema, or use another ledger."
        )
    if asked is not None and asked != own:
        raise InvalidInput(
            f"`neighbours` must be those of the ledger ({own}); got {asked}. Leave them out, "
            "or use another ledger."
        )
    return own


def _refuse_unaffordable(
    ledger: Path, budget: Budget, costs: Sequence[Cost], begun: Journal | None
) -> None:
    """Refuse a run that the ledger, or a new one with this budget, could not pay to its end."""
    if ledger.exists():
        tag = None if begun is None else begun.tag
        Ledger(ledger).refuse_unaffordable(costs, tag=tag)
    else:
        refuse_overspending(budget, costs)


def make_workload(
    schema: Schema, workload: Workload | Iterable[Iterable[str]] | Mapping[Clique, float] | None
) -> Workload:
    """The workload that is asked for, over a closed schema; by default every pair of columns."""
    if isinstance(workload, Workload):
        return workload
    if workload is None:
        return Workload.default(schema.domain)
    return Workload.of_marginals(schema.domain, workload)


@contextmanager
def _note_spending(curator: Curator, journal: Journal | None) -> Iterator[None]:
    """If the work ends with an error, add a note that says what was spent, and what is kept."""
    try:
        yield
    except BaseException as error:
        ledger, paid = curator.ledger, len(curator.events)
        if journal is not None:  # an event may stand in the ledger that the curator was just told
            paid = max(paid, len(ledger.entries_of(journal.tag)))
        if paid:
            spent = f"{ledger.path} has {ledger.spent:.4g} of {ledger.budget} spent"
            kept = (
                "which cannot be undone."
                if journal is None
                else f"and {journal.path} keeps the answers. To go on, run it again with --resume."
            )
            error.add_note(
                f"the release was not written, but {paid} events had been paid for: {spent}, {kept}"
            )
        elif journal is not None:
            journal.remove()
        if journal is not None:
            journal.close()
        raise
