"""`juncture demo`: a tour on a table that ships with the package."""

from __future__ import annotations

import math
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.bars import watching
from juncture.cli.stage import Stage

if TYPE_CHECKING:
    from juncture.privacy.ledger import Ledger
    from juncture.private.curator import Curator
    from juncture.publish.release import Release
    from juncture.workflow.demo import Demo, Question

NOT_PRIVATE = "NOT PRIVATE"
WARNING = "bold yellow"
_SHOWN = ("age", "sex", "education", "occupation", "hours-per-week", "income>50K")


def demo(
    folder: Annotated[
        Path, typer.Option("--folder", metavar="FOLDER", help="A new folder to write to.")
    ] = Path("juncture-demo"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace what an earlier demo wrote there.")
    ] = False,
) -> None:
    """Walk through a whole release, on the Adult table that ships with the package.

    A budget, what is measured, the fit with its certificate, questions beside the truth, synthetic
    records, and a report. The noise is real, so figures differ from run to run. What is written is
    yours to explore afterwards.

    \b
    Example:
      juncture demo --folder tour
    """
    from juncture.workflow.demo import Demo

    began = time.perf_counter()
    tour, stage = Demo(folder), Stage()
    ledger = tour.begin(force=force)
    stage.title("Juncture: from a private table to answers, under a budget")
    _table(stage, tour)
    _budget(stage, tour, ledger)
    _measured(stage, tour)
    _plan(stage, tour)
    curator, release = _fit(stage, tour, ledger)
    _refusal(stage, curator)
    _questions(stage, tour, release)
    _records(stage, tour, release)
    tour.report(release)
    _files(stage, tour, time.perf_counter() - began)


def _table(stage: Stage, tour: Demo) -> None:
    from juncture.engine.plan_text import readable_count

    domain = tour.schema.domain
    stage.heading("The table")
    stage.text(
        f"Adult: {tour.source.exact_n_records:,} people of a census, {len(domain)} columns. It is "
        "a public data set; here it stands for a table that nobody may show. By number of values:"
    )
    stage.gap()
    stage.text(", ".join(f"{name} {size}" for name, size in domain.items()))
    stage.gap()
    stage.text(f"As one table that would be {readable_count(domain.size)} cells.")


def _budget(stage: Stage, tour: Demo, ledger: Ledger) -> None:
    stage.heading("The budget")
    factor = math.exp(tour.budget.epsilon or 0.0)
    stage.text(
        f"{str(ledger.budget).capitalize()}, for everything together. Protected: "
        f"{ledger.neighbours}. Whether or not somebody is in the table, every outcome is almost as "
        f"likely: by a factor of at most {factor:.2f}."
    )
    stage.gap()
    stage.text(f"Every spending is written to a ledger before noise is drawn: {ledger.path}")


def _measured(stage: Stage, tour: Demo) -> None:
    marginals = tour.forecast()
    stage.heading("What is measured")
    stage.text(
        f"HDMM, the high-dimensional matrix mechanism, measures {len(marginals)} small tables of "
        "counts. Their noise is known before any data is read:"
    )
    rows = [(", ".join(m.clique), m.cells, m.share, m.stddev) for m in marginals]
    stage.table(("columns", "cells", "epsilon", "noise (std. dev.)"), rows)


def _plan(stage: Stage, tour: Demo) -> None:
    from juncture.engine.plan_text import readable_bytes

    plan = tour.plan()
    stage.heading("The plan")
    stage.text(
        "How the tables hang together, and what a step of the fit will take: "
        f"{readable_bytes(plan.size_bytes)} of memory. No array exists yet."
    )
    stage.gap()
    stage.drawing(str(plan))


def _fit(stage: Stage, tour: Demo, ledger: Ledger) -> tuple[Curator, Release]:
    stage.heading("Measure, then fit")
    curator = tour.curator(ledger)
    with watching() as watch:
        release = tour.release(curator, watch)
    found = release.statistics
    loss, bound = found["loss"], found["lower_bound"]
    stage.text(
        f"Measured: {len(release.measurements)} tables, {ledger.spent:.4g} of {ledger.budget} "
        f"spent. Fitted in {found['oracle_calls']:,} steps and {found['seconds']:.1f} s. The "
        f"number of records is estimated, too: {release.model.total:,.0f}."
    )
    stage.table(
        ("certificate", "loss"),
        [("this model", loss), ("no model whatever is below", bound)],
    )
    stage.text(f"So this model is within {100 * (loss - bound) / loss:.2f} percent of the best.")
    return curator, release


def _refusal(stage: Stage, curator: Curator) -> None:
    from juncture.errors import BudgetExceeded

    try:
        curator.measure(("age",), epsilon=0.1)
    except BudgetExceeded as error:
        stage.gap()
        stage.text("Now the door is shut. One more look at the table is refused:")
        stage.reply(str(error))


def _questions(stage: Stage, tour: Demo, release: Release) -> None:
    stage.heading("Questions, answered by the model alone")
    stage.text("Asking costs nothing more, and there may be as many questions as you like.")
    stage.text(f"{NOT_PRIVATE}: columns named 'true' are read from the table, for show.", WARNING)
    for question in tour.questions:
        _question(stage, tour, release, question)
    apart, joined = tour.exact_errors(release)
    stage.text(
        f"Over all measured tables, {100 * apart:.1f} percent of the records are in a wrong cell "
        f"in the noisy counts themselves, {100 * joined:.1f} percent in the model: joining them "
        "takes noise away."
    )


def _question(stage: Stage, tour: Demo, release: Release, question: Question) -> None:
    answer = release.model.sql(question.sql)
    truth = {row[0]: row[1:] for row in tour.exact_rows(question)}
    names = answer.columns
    columns = [names[0], *(c for name in names[1:] for c in (name, f"true {name}"))]
    rows = []
    for row in answer.rows:
        true = truth.get(row[0], (None,) * (len(names) - 1))
        pairs = zip(row[1:], map(_number, true), strict=True)
        rows.append([row[0], *(value for pair in pairs for value in pair)])
    stage.gap()
    stage.text(f"{question.words} {question.source}")
    stage.gap()
    stage.quote(question.sql)
    stage.table(columns, rows, bars=[float(row[1]) for row in answer.rows])


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _records(stage: Stage, tour: Demo, release: Release) -> None:
    import csv

    n = tour.synthesize(release)
    stage.heading("Synthetic records")
    stage.text(
        f"{n:,} made-up people whose counts are the model's. The first of them, some columns:"
    )
    with tour.files.records.open(encoding="utf-8", newline="") as file:
        rows = list(islice(csv.DictReader(file), 5))
    stage.table(_SHOWN, [[row[name] for name in _SHOWN] for row in rows])


def _files(stage: Stage, tour: Demo, seconds: float) -> None:
    files = tour.files
    stage.heading("What was written")
    stage.table(
        ("file", "what it is"),
        [
            (str(files.report), "the report: open it in a browser"),
            (str(files.release), "the release: may be given away"),
            (str(files.records), "synthetic records: may be given away"),
            (str(files.ledger), "the ledger: what was spent"),
            (str(files.schema), "the schema: what is public about the columns"),
        ],
    )
    stage.text(f"All in {seconds:.0f} seconds. Go on with:")
    stage.gap()
    stage.quote(
        f"juncture explore {files.release} --open\n"
        f'juncture query {files.release} "SELECT race, COUNT(*) FROM t GROUP BY race"\n'
        f"juncture report {files.release} --out another.html\n"
        f"juncture ledger show {files.ledger}\n"
        f"juncture plan --schema {files.schema} --epsilon 0.1 --marginals 1"
    )
    stage.gap()
    stage.text("A table of your own: juncture schema draft people.csv --out people.toml")
