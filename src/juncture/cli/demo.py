"""`juncture demo`: a tour with a table that ships with the package."""

from __future__ import annotations

import math
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.bars import show_progress
from juncture.cli.tour_printer import TourPrinter

if TYPE_CHECKING:
    from juncture.privacy.ledger import Ledger
    from juncture.private.curator import Curator
    from juncture.publish.release import Release
    from juncture.workflow.demo import Demo, Question

NOT_PRIVATE = "NOT PRIVATE"
WARNING = "bold yellow"
_SHOWN_COLUMNS = ("age", "sex", "education", "occupation", "hours-per-week", "income>50K")


def demo(
    folder: Annotated[
        Path, typer.Option("--folder", metavar="FOLDER", help="A new folder to write to.")
    ] = Path("juncture-demo"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace what an earlier demo wrote there.")
    ] = False,
) -> None:
    """Walk through a whole release, with the Adult table that ships with the package.

    The tour shows a budget, what is measured, the fit and its certificate, answers next to the
    truth, synthetic records, and a report. The noise is real, so figures differ from run to run.
    It writes files for you to explore afterwards.

    \b
    Example:
      juncture demo --folder tour
    """
    from juncture.workflow.demo import Demo

    began = time.perf_counter()
    tour, printer = Demo(folder), TourPrinter()
    ledger = tour.begin(force=force)
    printer.title("Juncture: from a private table to answers, under a budget")
    _show_table(printer, tour)
    _show_budget(printer, tour, ledger)
    _show_measurements(printer, tour)
    _show_plan(printer, tour)
    curator, release = _show_fit(printer, tour, ledger)
    _show_refusal(printer, curator)
    _show_questions(printer, tour, release)
    _show_records(printer, tour, release)
    tour.report(release)
    _show_files(printer, tour, time.perf_counter() - began)


def _show_table(printer: TourPrinter, tour: Demo) -> None:
    from juncture.engine.plan_text import format_count

    domain = tour.schema.domain
    printer.heading("The table")
    printer.text(
        f"Adult: {tour.source.exact_n_records:,} people of a census, {len(domain)} columns. It is "
        "a public data set; here it stands for a private table. Its columns, with their numbers "
        "of values:"
    )
    printer.gap()
    printer.text(", ".join(f"{name} {size}" for name, size in domain.items()))
    printer.gap()
    printer.text(
        f"One table of counts over all columns would have {format_count(domain.size)} cells."
    )


def _show_budget(printer: TourPrinter, tour: Demo, ledger: Ledger) -> None:
    printer.heading("The budget")
    factor = math.exp(tour.budget.epsilon or 0.0)
    printer.text(
        f"{str(ledger.budget).capitalize()} in total. Protected: {ledger.neighbours}. Whether or "
        "not a person is in the table changes the probability of any outcome by a factor of at "
        f"most {factor:.2f}."
    )
    printer.gap()
    printer.text(f"Everything spent is written to a ledger before noise is drawn: {ledger.path}")


def _show_measurements(printer: TourPrinter, tour: Demo) -> None:
    marginals = tour.run.marginals
    printer.heading("What is measured")
    printer.text(
        f"HDMM, the high-dimensional matrix mechanism, measures {len(marginals)} small tables of "
        "counts. Their noise is known before any data is read:"
    )
    rows = [(", ".join(m.clique), m.cells, m.share, m.stddev) for m in marginals]
    printer.table(("columns", "cells", "epsilon", "noise (std. dev.)"), rows)


def _show_plan(printer: TourPrinter, tour: Demo) -> None:
    from juncture.engine.plan_text import format_bytes

    plan = tour.run.plan
    assert plan is not None  # hdmm with a model knows it beforehand
    printer.heading("The plan")
    printer.text(
        "How the tables are connected, and the memory that a step of the fit will take: "
        f"{format_bytes(plan.size_bytes)}. Nothing has been computed yet."
    )
    printer.gap()
    printer.drawing(str(plan))


def _show_fit(printer: TourPrinter, tour: Demo, ledger: Ledger) -> tuple[Curator, Release]:
    printer.heading("Measure, then fit")
    curator = tour.open_curator(ledger)
    with show_progress() as watch:
        release = tour.release(curator, watch)
    fit = release.fit
    assert fit is not None  # this release was just fitted
    printer.text(
        f"Measured: {len(release.measurements)} tables, {ledger.spent:.4g} of {ledger.budget} "
        f"spent. Fitted in {fit.oracle_calls:,} steps and {fit.seconds:.1f} s. The number of "
        f"records is estimated too: {release.model.total:,.0f}."
    )
    printer.table(
        ("certificate", "loss"),
        [("this model", fit.loss), ("lower bound for any model", fit.lower_bound)],
    )
    printer.text(f"So this model is within {100 * fit.gap / fit.loss:.2f} percent of the best.")
    return curator, release


def _show_refusal(printer: TourPrinter, curator: Curator) -> None:
    from juncture.errors import BudgetExceeded
    from juncture.privacy.price import Pure

    try:
        curator.measure(("age",), Pure(0.1))
    except BudgetExceeded as error:
        printer.gap()
        printer.text("Now the budget is spent. One more measurement of the table is refused:")
        printer.reply(str(error))


def _show_questions(printer: TourPrinter, tour: Demo, release: Release) -> None:
    printer.heading("Questions, answered by the model alone")
    printer.text("Asking costs no more privacy: ask as many questions as you like.")
    printer.text(
        f"{NOT_PRIVATE}: columns named 'true' are read from the table, to compare.", WARNING
    )
    for question in tour.questions:
        _show_question(printer, tour, release, question)
    apart, joined = tour.exact_errors(release)
    printer.text(
        f"Over all measured tables, {100 * apart:.1f} percent of the records are in a wrong cell "
        f"in the noisy counts themselves, and {100 * joined:.1f} percent in the model: joining the "
        "tables removes noise."
    )


def _show_question(printer: TourPrinter, tour: Demo, release: Release, question: Question) -> None:
    answer = release.model.sql(question.sql)
    truth = {row[0]: row[1:] for row in tour.exact_rows(question)}
    names = answer.columns
    columns = [names[0], *(c for name in names[1:] for c in (name, f"true {name}"))]
    rows = []
    for row in answer.rows:
        true = truth.get(row[0], (None,) * (len(names) - 1))
        pairs = zip(row[1:], map(_to_float, true), strict=True)
        rows.append([row[0], *(value for pair in pairs for value in pair)])
    printer.gap()
    printer.text(f"{question.text} {question.source}")
    printer.gap()
    printer.quote(question.sql)
    printer.table(columns, rows, bars=[float(row[1]) for row in answer.rows])


def _to_float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _show_records(printer: TourPrinter, tour: Demo, release: Release) -> None:
    import csv

    n = tour.synthesize(release)
    printer.heading("Synthetic records")
    printer.text(
        f"{n:,} invented people whose counts are the model's. Some columns of the first of them:"
    )
    with tour.files.records.open(encoding="utf-8", newline="") as file:
        rows = list(islice(csv.DictReader(file), 5))
    printer.table(_SHOWN_COLUMNS, [[row[name] for name in _SHOWN_COLUMNS] for row in rows])


def _show_files(printer: TourPrinter, tour: Demo, seconds: float) -> None:
    files = tour.files
    printer.heading("What was written")
    printer.table(
        ("file", "what it is"),
        [
            (str(files.report), "the report: open it in a browser"),
            (str(files.release), "the release: may be published"),
            (str(files.records), "synthetic records: may be published"),
            (str(files.ledger), "the ledger: what was spent"),
            (str(files.schema), "the schema: what is public about the columns"),
        ],
    )
    printer.text(f"All this took {seconds:.0f} seconds. Go on with:")
    printer.gap()
    printer.quote(
        f"juncture explore {files.release} --open\n"
        f'juncture query {files.release} "SELECT race, COUNT(*) FROM t GROUP BY race"\n'
        f"juncture report {files.release} --out another.html\n"
        f"juncture ledger show {files.ledger}\n"
        f"juncture plan --schema {files.schema} --epsilon 0.1 --marginals 1"
    )
    printer.gap()
    printer.text(
        "With your own table, begin with: juncture schema draft TABLE.csv --out TABLE.toml"
    )
