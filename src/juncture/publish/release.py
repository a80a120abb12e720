"""What is published: the model with what it was made from, in one self-describing file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from juncture._util.notebook import list_html
from juncture._util.randomness import Random
from juncture._util.text import count_noun
from juncture._util.watch import Watch, ignore_progress
from juncture.engine.oracle import OracleFactory, make_oracle
from juncture.engine.propagation import Propagation
from juncture.errors import InvalidInput, JunctureError, UnknownAttribute, UnreadableFile
from juncture.fit.error_bounds import MarginalBound
from juncture.fit.replicas import ReplicaRecipe, Replicas
from juncture.fit.selection_proof import SelectionProof, read_proofs
from juncture.fit.summary import FitSummary
from juncture.fit.widths import check_level
from juncture.model.distribution import Distribution
from juncture.model.model import Model
from juncture.model.record_distribution import RecordDistribution
from juncture.privacy.guarantee import Guarantee
from juncture.publish import archive, format_1, format_2
from juncture.publish.archive import Document
from juncture.publish.found import FoundColumn
from juncture.publish.intervals import IntervalAnswer
from juncture.publish.record_io import check_records, write_records
from juncture.publish.release_io import (
    read_fine,
    read_measurement,
    read_model,
    recompute_marginals,
    refuse_large,
    write_codebook,
    write_fine,
    write_measurement,
)
from juncture.publish.replica_io import read_replicas, write_replicas
from juncture.publish.uncertainty import Uncertainty
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.foreign import refuse_foreign
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.products import Query
from juncture.tables.records import Records
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import parse_schema, schema_toml

if TYPE_CHECKING:
    from juncture.model.sql.answer import SqlAnswer
    from juncture.publish.intervals import IntervalSqlAnswer

# Version 4 is version 3 that may have the records of a model without a tree, version 5 is version 4
# that may have more entries: the ledger's hash and the person in its guarantee, replicas, what was
# found privately, and fine histograms.
FORMAT, VERSION, OLDEST = "juncture release", 5, 3


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """What is published: a model, its measurements, its privacy guarantee, and how well it fits.

    `juncture.release` makes one from a private table; `load` reads one from a file. Asking it
    costs no privacy.

    >>> from juncture import Domain, Measurement, estimate
    >>> counts = Measurement(("age",), [60.0, 40.0], stddev=2.0)
    >>> fit = estimate(Domain({"age": 2}), [counts])
    >>> release = Release(model=fit.model, measurements=[counts], fit=fit.summary)
    >>> release.guarantee is None, len(release.measurements)
    (True, 1)
    >>> print(release.sql("SELECT age, COUNT(*) AS n FROM people GROUP BY age"))
    age   n
      0  60
      1  40
    """

    model: Model
    measurements: Sequence[Measurement] = ()
    guarantee: Guarantee | None = None
    """What was spent, and who is protected; None where nothing is known about it."""
    fit: FitSummary | None = None
    """How the fit of the model ended; None where that is not known."""
    schema: Schema | None = None
    """What the columns hold, for decoding records; the model's codebook is then the schema's."""
    mechanism: str | None = None
    """What decided what to measure."""
    workload: Sequence[Clique] = ()
    """The cliques that the release was made for."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Other facts by name, for people: plain numbers, texts and lists."""
    check: Sequence[Measurement] = ()
    """What was measured to check the model, which it is not fitted to."""
    replicas: ReplicaRecipe | Replicas = field(default_factory=ReplicaRecipe)
    """How to make the replicas that intervals come from; or they themselves, where kept."""
    proofs: Sequence[SelectionProof] = ()
    """What private choices prove of marginals that were not measured."""
    found: Sequence[FoundColumn] = ()
    """How bins and values were found privately, for columns where they were."""

    def __post_init__(self) -> None:
        if self.schema is not None and self.schema.open_columns:
            raise InvalidInput(
                "`schema` must be closed: a release has the bins and values that were found; got "
                f"{', '.join(self.schema.open_columns)} still open."
            )
        if self.schema is not None:
            self.schema.refuse_draft("schema")
        if self.schema is not None and self.schema.domain != self.model.domain:
            raise InvalidInput(
                "`schema` must have the model's attributes and sizes; got others. Give the schema "
                "that the measurements were made with."
            )
        if self.schema is not None and self.model.codebook.is_plain:
            named = self.model.with_codebook(self.schema.codebook)
            object.__setattr__(self, "model", named)

    def _repr_html_(self) -> str:
        facts = [
            ("guarantee", str(self.guarantee or "not stated")),
            ("mechanism", self.mechanism or "not stated"),
            ("measurements", f"{len(self.measurements):,}"),
            ("fit", "not stated" if self.fit is None else self.fit.status.headline),
            *self._list_record_facts(),
            ("schema", "none" if self.schema is None else f"{len(self.schema.columns)} columns"),
        ]
        return list_html("Release", facts) + self.model._repr_html_()

    def _list_record_facts(self) -> list[tuple[str, str]]:
        words = "" if self.fit is None else self.fit.record_words
        return [("error of the records", words)] if words else []

    def save(self, path: str | Path) -> Path:
        """Write the release to a file, usually named `.jct`, and return its path."""
        arrays: list[Vector] = [self.model.potentials, self.model.probabilities]
        distribution = self.model.distribution
        records = isinstance(distribution, RecordDistribution)
        refuse_large(self.model.domain, self.model.cliques)
        document = {
            "format": FORMAT,
            "version": VERSION,
            "domain": [[name, size] for name, size in self.model.domain.items()],
            "schema": None if self.schema is None else schema_toml(self.schema),
            "codebook": write_codebook(self.model.codebook),
            "cliques": [list(clique) for clique in self.model.cliques],
            # Two numbers, since the number of records, total * exp(log_share), may be too small.
            "total": float(self.model.base_total),
            "log_share": float(self.model.log_share),
            "log_partition": None if records else self.model.log_partition,
            "measurements": [write_measurement(m, arrays) for m in self.measurements],
            "guarantee": None if self.guarantee is None else self.guarantee.to_json(),
            "fit": None if self.fit is None else self.fit.to_json(),
            "mechanism": self.mechanism,
            "workload": [list(clique) for clique in self.workload],
            "details": {name: _finite_or_none(value) for name, value in self.details.items()},
        }
        if isinstance(distribution, RecordDistribution):
            document["records"] = write_records(distribution, arrays)
        if self.check:
            document["check"] = [write_measurement(m, arrays) for m in self.check]
        if self.proofs:
            document["proofs"] = [proof.to_json() for proof in self.proofs]
        if self.replicas != ReplicaRecipe():
            document["replicas"] = write_replicas(self.replicas, arrays)
        self._add_found(document, arrays)
        target = Path(path)
        archive.write(target, document, arrays)
        return target

    def _add_found(self, document: Document, arrays: list[Vector]) -> None:
        """Add what was found privately, and the fine histograms, if there are any."""
        fine = {} if self.schema is None else write_fine(self.schema, arrays)
        if fine or self.found:
            document["fine"] = fine
            document["found"] = [each.to_json() for each in self.found]

    def __repr__(self) -> str:
        parts = [repr(self.model), count_noun(len(self.measurements), "measurement")]
        parts.append(str(self.guarantee or "no guarantee stated"))
        return f"Release({', '.join([*parts, 'with a schema' if self.schema else 'no schema'])})"

    @contextmanager
    def _explain_person(self) -> Iterator[None]:
        """Say why there are no answers about the column that tells people apart."""
        person = None if self.schema is None else self.schema.person
        try:
            yield
        except UnknownAttribute as error:
            if person is None or str(error.name).lower() != person.column.lower():
                raise
            raise UnknownAttribute(
                f"`attribute` must be one of the release; got {error.name!r}, which tells people "
                "apart. It only served to limit the rows of each person, and is no part of the "
                "release: a count for every person would single people out. Ask about other "
                "columns.",
                name=error.name,
            ) from None

    @overload
    def sql(
        self, query: str, *, max_groups: int | None = None, max_values: int | None = None
    ) -> SqlAnswer: ...

    @overload
    def sql(
        self, query: str, *, interval: float, population: bool = False,
        max_groups: int | None = None, max_values: int | None = None,
    ) -> IntervalSqlAnswer: ...  # fmt: skip

    def sql(
        self, query: str, *, interval: float | None = None, population: bool = False,
        max_groups: int | None = None, max_values: int | None = None,
    ) -> SqlAnswer:  # fmt: skip
        """The answer to a SELECT with aggregates: see `Model.sql`.

        With an `interval`, such as 0.95, every number that is made of counts has one, and says what
        it rests on: see `project`.
        """
        with self._explain_person():
            if interval is None:
                return self.model.sql(query, max_groups=max_groups, max_values=max_values)
            limits = (max_groups, max_values)
            return self.uncertainty.sql(query, interval, population=population, limits=limits)

    @overload
    def project(self, attributes: Iterable[str]) -> Factor: ...

    @overload
    def project(
        self, attributes: Iterable[str], *, interval: float, population: bool = False
    ) -> IntervalAnswer: ...

    def project(
        self,
        attributes: Iterable[str],
        *,
        interval: float | None = None,
        population: bool = False,
    ) -> Factor | IntervalAnswer:
        """The marginal on any attributes: see `Model.project`.

        - `interval`: how often intervals should hold the true answer, such as 0.95; the result is
          then an `IntervalAnswer` with `lower`, `upper` and `bases`. Replicas are made when they
          are first needed, which takes about 20 times as long as the fit did.
        - `population`: whether intervals cover what other tables of the same population would say,
          too. By default they cover this table's own numbers, over the noise.
        """
        with self._explain_person():
            if interval is None:
                return self.model.project(attributes)
            return self.uncertainty.project(attributes, interval, population=population)

    @overload
    def answer(self, query: Query) -> Vector: ...

    @overload
    def answer(
        self, query: Query, *, interval: float, population: bool = False
    ) -> IntervalAnswer: ...

    def answer(
        self, query: Query, *, interval: float | None = None, population: bool = False
    ) -> Vector | IntervalAnswer:
        """The answers to a factored query: see `Model.answer`; intervals are those of `project`."""
        if interval is None:
            return self.model.answer(query)
        return self.uncertainty.answer(query, interval, population=population)

    def bound_error(self, attributes: Iterable[str], *, level: float = 0.95) -> MarginalBound:
        """What the error of a marginal is below, in `level` of all releases, whatever the table.

        Intervals are shorter, and hold on average over questions; this holds for the marginal, by
        proof. Marginals that were measured have a bound, and those that an adaptive mechanism
        (`AIM`, `Tiers`, `MWEM`) could have chosen last and did not. It spends nothing.
        """
        with self._explain_person():
            return self.uncertainty.bounds.find(attributes, check_level(level, "level"))

    def bound_errors(self, *, level: float = 0.95) -> list[MarginalBound]:
        """The bounds of all marginals of the workload: see `bound_error`."""
        return [self.bound_error(clique, level=level) for clique in self.workload]

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """What gives intervals."""
        neighbours = None if self.guarantee is None else self.guarantee.neighbours
        return Uncertainty(
            self.model,
            tuple(self.measurements),
            self._recipe,
            self.replicas if isinstance(self.replicas, Replicas) else None,
            tuple(self.check),
            tuple(self.proofs),
            n_records_is_public=None if neighbours is None else neighbours.n_records_is_public,
            known=self._known,
        )

    @property
    def _known(self) -> tuple[Clique, ...]:
        """The columns of tables of counts that are public."""
        tables = () if self.schema is None else self.schema.known
        return tuple(self.model.domain.canonical(each.columns) for each in tables)

    @property
    def check_words(self) -> str:
        """How the check went, in a sentence; empty without one."""
        check = self.uncertainty.check
        return "" if check is None else check.words

    @property
    def _recipe(self) -> ReplicaRecipe:
        return self.replicas.recipe if isinstance(self.replicas, Replicas) else self.replicas

    def with_replicas(
        self, recipe: ReplicaRecipe | None = None, *, watch: Watch = ignore_progress
    ) -> Release:
        """The release with its replicas made, and kept in the file that `save` writes.

        - `recipe`: how many, and from which seed; by default, the release's own.
        - `watch`: called with the progress: a fit for each replica.

        It is post-processing, and spends nothing.
        """
        chosen = recipe or self._recipe
        fresh = replace(self.uncertainty, recipe=chosen, kept=None, watch=watch)
        return replace(self, replicas=fresh.replicas)

    def sample(self, n: int | None = None, *, rng: Random = None) -> Records:
        """Independent synthetic records; with a schema, they decode into the table's values."""
        return self.model.sample(n, rng=rng).with_schema(self.schema)

    def synthesize(self, n: int | None = None, *, rng: Random = None) -> Records:
        """Synthetic records with counts close to the model's; decoded like those of `sample`."""
        return self.model.synthesize(n, rng=rng).with_schema(self.schema)

    def write_records(
        self,
        path: str | Path,
        n: int | None = None,
        *,
        rng: Random = None,
        method: str = "synthesize",
        watch: Watch = ignore_progress,
    ) -> int:
        """Write synthetic records to a .csv or .parquet file, and return how many.

        - `n`: how many; by default the model's total, rounded.
        - `rng`: a seed or a generator; the same seed gives the same records.
        - `method`: "synthesize" for records whose counts are close to the model's;
          "sample" for independent draws, any number of which takes the same memory.
        - `watch`: called with what is done, the records written so far, and all.
        """
        from juncture.publish.records import write_records  # noqa: PLC0415  (slow to import)

        return write_records(self, path, n, rng=rng, method=method, watch=watch)


def load(path: str | Path, oracle: OracleFactory = Propagation) -> Release:
    """Read a release from a file; a damaged or hostile file gets a clear error.

    - `path`: the file that `Release.save` or the command line wrote.
    - `oracle`: what computes marginals: to check the stored ones, and for the model's answers.

    >>> from tempfile import TemporaryDirectory
    >>> from juncture import Domain, Model
    >>> model = Model.of_potentials(Domain({"age": 2}), [], total=100)
    >>> with TemporaryDirectory() as folder:
    ...     path = Release(model=model).save(f"{folder}/people.jct")
    ...     load(path).model
    Model(100 records over 1 attribute, 0 cliques)
    """
    source = Path(path)
    document, arrays = archive.read(source)
    with refuse_foreign("path", source, "Get the file again from its source."):
        try:
            release = _read_release(document, arrays, oracle)
        except JunctureError as error:
            raise _refuse(source, error) from None
    distribution = release.model.distribution
    if isinstance(distribution, Distribution):
        # Outside, since its faults are not the file's.
        engine = make_oracle(oracle, release.model.plan)
    try:
        if isinstance(distribution, Distribution):
            release = replace(release, model=recompute_marginals(release.model, engine))
        else:
            check_records(distribution, arrays[1])
    except JunctureError as error:
        raise _refuse(source, error) from None
    return release


def _refuse(source: Path, error: JunctureError) -> UnreadableFile:
    """The error about a part of a file as one about the file."""
    if isinstance(error, UnreadableFile):
        return UnreadableFile(f"`path` must be a release; got {source}: {error}")
    return UnreadableFile(f"`path` must be a valid release; got {source}, which is not: {error}")


def _read_release(document: Document, arrays: list[Vector], oracle: OracleFactory) -> Release:
    if document.get("format") != FORMAT:
        raise UnreadableFile("it is a file of another kind. Give a file that Release.save wrote.")
    if document.get("version") == 1:
        document, arrays = format_1.upgrade(document), format_1.upgrade_arrays(document, arrays)
    if document.get("version") == 2:
        document = format_2.upgrade(document)
    if document.get("version") not in range(OLDEST, VERSION + 1):
        raise UnreadableFile(
            f"it has version {document.get('version')!r} of the format, and this Juncture reads up "
            f"to {VERSION}. Install the Juncture that wrote it."
        )
    domain = Domain([(name, size) for name, size in document["domain"]])
    refuse_large(domain, document["cliques"])
    guarantee, fit = document["guarantee"], document["fit"]
    text, fine = document["schema"], document.get("fine", {})
    schema = None if text is None else read_fine(parse_schema(tomllib.loads(text)), fine, arrays)
    measurements = tuple(read_measurement(m, domain, arrays) for m in document["measurements"])
    model = read_model(document, domain, arrays, oracle)
    if schema is not None and fine:  # the codebook of the file does not know what lies inside bins
        model = model.with_codebook(schema.codebook)
    replicas = document.get("replicas")
    return Release(
        schema=schema,
        model=model,
        found=tuple(FoundColumn.from_json(each) for each in document.get("found", ())),
        measurements=measurements,
        check=tuple(read_measurement(m, domain, arrays) for m in document.get("check", ())),
        replicas=ReplicaRecipe()
        if replicas is None
        else read_replicas(replicas, model, measurements, arrays),
        proofs=read_proofs(document.get("proofs", ())),
        guarantee=None if guarantee is None else Guarantee.from_json(guarantee),
        fit=None if fit is None else FitSummary.from_json(fit),
        mechanism=None if document["mechanism"] is None else str(document["mechanism"]),
        workload=tuple(domain.canonical(clique) for clique in document["workload"]),
        details=dict(document["details"]),
    )


def _finite_or_none(value: object) -> object:
    """The value, with None for infinities and not-a-number, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
