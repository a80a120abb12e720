"""The demo's steps: Adult as if it were private, released through the real curator.

Everything a person does with a table of their own happens here, in the same order and with the same
code. Only `exact_rows` and `exact_errors` bypass the curator, to show the truth beside an answer;
with a private table that would not be possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from juncture._util.atomic_file import atomic_write
from juncture._util.watch import Watch, ignore_progress
from juncture.errors import InvalidInput
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.proximal import Proximal
from juncture.fit.solvers.sequential import Sequential
from juncture.mechanisms.hdmm import HDMM
from juncture.mechanisms.least_squares import local_least_squares
from juncture.mechanisms.mechanism import Run
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.curator import Curator
from juncture.private.samples import adult_codes, adult_schema
from juncture.private.sources.source import CodedTable
from juncture.publish.release import Release
from juncture.publish.report.document import write_report
from juncture.tables.schema_toml import schema_toml
from juncture.tables.workload import Workload, workload_error

EPSILON = 1.0
CLIQUES = (
    ("age", "marital-status"),
    ("age", "income>50K"),
    ("marital-status", "relationship", "sex"),
    ("education", "education-num"),
    ("education", "income>50K"),
    ("education", "occupation"),
    ("workclass", "occupation"),
    ("occupation", "sex", "income>50K"),
    ("hours-per-week", "income>50K"),
    ("race", "native-country"),
    ("race", "sex", "income>50K"),
    ("capital-gain", "income>50K"),
    ("capital-loss", "income>50K"),
    ("fnlwgt",),
)


@dataclass(frozen=True)
class Question:
    """A question: in words, in SQL, and where the answer comes from."""

    text: str
    sql: str
    source: str


QUESTIONS = (
    Question(
        "In which occupations do people earn more than 50K?",
        "SELECT occupation, COUNT(*) AS people FROM adult\n"
        "WHERE \"income>50K\" = '>50K' GROUP BY occupation ORDER BY people DESC LIMIT 6",
        "These columns were measured together.",
    ),
    Question(
        "How long did people of 30 and over study, and how long do they work?",
        'SELECT "income>50K", COUNT(*) AS people, AVG("education-num") AS years,\n'
        'AVG("hours-per-week") AS hours FROM adult\n'
        'WHERE age >= 30 GROUP BY "income>50K" ORDER BY "income>50K"',
        "Three tables that share a column are joined.",
    ),
    Question(
        "How do graduates live?",
        'SELECT "marital-status", COUNT(*) AS people, AVG(age) AS mean_age FROM adult\n'
        "WHERE education IN ('Bachelors', 'Masters')\n"
        'GROUP BY "marital-status" ORDER BY people DESC LIMIT 4',
        "Education and marital status were never measured together: they meet through income and "
        "sex alone, so expect the outline, not the detail.",
    ),
)


@dataclass(frozen=True)
class Files:
    """The files that the demo writes."""

    folder: Path

    @property
    def ledger(self) -> Path:
        """The record of what was spent."""
        return self.folder / "adult.ledger"

    @property
    def release(self) -> Path:
        """The release, which may be published."""
        return self.folder / "adult.jct"

    @property
    def report(self) -> Path:
        """The page about the release."""
        return self.folder / "adult.html"

    @property
    def records(self) -> Path:
        """The synthetic records."""
        return self.folder / "adult-synthetic.csv"

    @property
    def schema(self) -> Path:
        """What the columns may hold, as public knowledge."""
        return self.folder / "adult.toml"

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files."""
        return (self.schema, self.ledger, self.release, self.report, self.records)

    def prepare(self, *, force: bool) -> None:
        """Make the folder; with `force`, remove the files of an earlier demo and nothing else."""
        if self.folder.exists() and not force:
            raise InvalidInput(
                f"`--folder` must be a new folder; got {self.folder}, which exists. Choose another "
                "name, or add --force to replace an earlier demo."
            )
        if self.folder.exists():
            self._refuse_others()
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.paths:
            path.unlink(missing_ok=True)

    def _refuse_others(self) -> None:
        own = {path.name for path in self.paths}
        if not self.folder.is_dir() or {path.name for path in self.folder.iterdir()} - own:
            raise InvalidInput(
                f"`--folder` must hold nothing but an earlier demo; got {self.folder}, which is or "
                "holds something else."
            )


class Demo:
    """One run of the demo: the table, the workload and the steps from ledger to report."""

    budget = Budget(epsilon=EPSILON)
    neighbours = Neighbours.ADD_OR_REMOVE
    questions = QUESTIONS
    mechanism = HDMM(budget, solver=Sequential(Accelerated(), Proximal()))

    def __init__(self, folder: str | Path) -> None:
        self.files = Files(Path(folder))
        self.schema = adult_schema()
        self.workload = Workload.of_marginals(self.schema.domain, CLIQUES)

    @cached_property
    def _codes(self) -> Mapping[str, NDArray[np.uint8]]:
        return dict(zip(self.schema.domain, adult_codes().T, strict=True))

    @cached_property
    def source(self) -> CodedTable:
        """The table, as a source of counts."""
        return CodedTable(self.schema.domain, self._codes, schema=self.schema)

    def begin(self, *, force: bool = False) -> Ledger:
        """Make the folder, with the schema and a new ledger."""
        self.files.prepare(force=force)
        with atomic_write(self.files.schema) as file:
            file.write(schema_toml(self.schema).encode())
        return Ledger.create(self.files.ledger, self.budget, self.neighbours)

    @cached_property
    def run(self) -> Run:
        """What will be measured with how much noise, and the model's plan; looks at no data."""
        return self.mechanism.prepare(self.workload, self.neighbours)

    def open_curator(self, ledger: Ledger) -> Curator:
        """The only access to the table."""
        return Curator(self.source, ledger)

    def release(self, curator: Curator, watch: Watch = ignore_progress) -> Release:
        """Measure, fit, and write the release."""
        made = self.run(curator, watch=watch).release()
        made.save(self.files.release)
        return made

    def report(self, release: Release) -> Path:
        """Write the page about the release."""
        return write_report(release, self.files.report, source=self.files.release)

    def synthesize(self, release: Release) -> int:
        """Write synthetic records whose counts match the model's; gives their number."""
        return release.write_records(self.files.records, rng=0)

    def exact_rows(self, question: Question) -> list[tuple[Any, ...]]:
        """The true answer, from the rows themselves; only for the demo."""
        import duckdb  # noqa: PLC0415  slow to import, and only needed here
        import pyarrow as pa  # noqa: PLC0415

        labels = {name: self.schema.codebook[name].labels for name in self._codes}
        table = pa.table(
            {
                name: pa.DictionaryArray.from_arrays(codes.astype(np.int32), list(labels[name]))
                for name, codes in self._codes.items()
            }
        )
        with duckdb.connect() as engine:
            engine.register("adult", table)
            # All groups: the first ones may not be those of the model.
            return engine.execute(question.sql.split(" LIMIT ")[0]).fetchall()

    def exact_errors(self, release: Release) -> tuple[float, float]:
        """The errors of the measurements alone and of the model, as shares; only for the demo."""
        domain, workload = self.schema.domain, self.workload
        truth = workload.answers(lambda clique: self.source.exact_counts([clique])[0])
        alone = local_least_squares(domain, release.measurements)
        apart = workload.answers(lambda clique: alone[clique])
        return (
            workload_error(truth, apart),
            workload_error(truth, workload.answers(release.model.project)),
        )
