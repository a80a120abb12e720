"""What is given away: the model with what it was made from, in one self-describing file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from juncture._util.notebook import list_html
from juncture._util.randomness import Random
from juncture._util.text import count_noun
from juncture._util.watch import Watch, ignore_progress
from juncture.engine.oracle import Oracle, OracleFactory, build_plan, make_oracle
from juncture.engine.propagation import Propagation
from juncture.errors import (
    ImpossibleModel,
    InvalidInput,
    JunctureError,
    UnreadableFile,
)
from juncture.fit.summary import FitSummary
from juncture.model.model import Model
from juncture.privacy.guarantee import Guarantee
from juncture.publish import archive
from juncture.publish import query_io as query_text
from juncture.publish.archive import Document
from juncture.publish.format_1 import upgrade
from juncture.tables.codebook import Codebook, Coding, Meaning, Special
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout, Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.products import Query
from juncture.tables.records import Records
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import parse_schema, schema_toml

if TYPE_CHECKING:
    from juncture.model.sql.answer import SqlAnswer

FORMAT, VERSION = "juncture release", 2
_MALFORMED = (
    AttributeError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
# How far stored marginals may be from those of the stored potentials, as a share of the total.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """A model, the measurements behind it, what was spent on them, and how well it fits."""

    model: Model
    measurements: Sequence[Measurement] = ()
    guarantee: Guarantee | None = None
    """What was spent on whose privacy; None where nothing is known of it."""
    fit: FitSummary | None = None
    """How the fit of the model ended, where that is known."""
    schema: Schema | None = None
    """What the columns hold, for decoding records; the model's codebook is then the schema's."""
    mechanism: str | None = None
    """What decided what to measure."""
    workload: Sequence[Clique] = ()
    """The cliques that the release was made for."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else is known, by name: plain numbers, texts and lists. Nothing is read from it."""

    def __post_init__(self) -> None:
        if self.schema is not None:
            self.schema.refuse_draft("schema")
        if self.schema is not None and self.schema.domain != self.model.domain:
            raise InvalidInput(
                "`schema` must have the model's attributes and sizes; got others. Give the schema "
                "that the measurements were taken under."
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
            ("schema", "none" if self.schema is None else f"{len(self.schema.columns)} columns"),
        ]
        return list_html("Release", facts) + self.model._repr_html_()

    def save(self, path: str | Path) -> Path:
        """Write the release to a file, usually named `.jct`."""
        arrays: list[Vector] = [self.model.potentials, self.model.marginals]
        document = {
            "format": FORMAT,
            "version": VERSION,
            "domain": [[name, size] for name, size in self.model.domain.items()],
            "schema": None if self.schema is None else schema_toml(self.schema),
            "codebook": _write_codebook(self.model.codebook),
            "cliques": [list(clique) for clique in self.model.cliques],
            "total": float(self.model.total),
            "log_partition": self.model.log_partition,
            "measurements": [_write_measurement(m, arrays) for m in self.measurements],
            "guarantee": None if self.guarantee is None else self.guarantee.to_json(),
            "fit": None if self.fit is None else self.fit.to_json(),
            "mechanism": self.mechanism,
            "workload": [list(clique) for clique in self.workload],
            "details": {name: _finite_or_none(value) for name, value in self.details.items()},
        }
        target = Path(path)
        archive.write(target, document, arrays)
        return target

    # What can be asked of it: the model's own answers, records in the schema's words.

    def __repr__(self) -> str:
        parts = [repr(self.model), count_noun(len(self.measurements), "measurement")]
        parts.append(str(self.guarantee or "no guarantee stated"))
        return f"Release({', '.join([*parts, 'with a schema' if self.schema else 'no schema'])})"

    def sql(self, query: str, *, max_groups: int | None = None) -> SqlAnswer:
        """The answer to a SELECT with counts, sums and averages: see `Model.sql`."""
        return self.model.sql(query, max_groups=max_groups)

    def project(self, attributes: Iterable[str]) -> Factor:
        """The marginal on any attributes: see `Model.project`."""
        return self.model.project(attributes)

    def answer(self, query: Query) -> Vector:
        """The answers of a factored query: see `Model.answer`."""
        return self.model.answer(query)

    def sample(self, n: int | None = None, *, rng: Random = None) -> Records:
        """Independent synthetic records; with a schema, they decode into the table's values."""
        return self.model.sample(n, rng=rng).with_schema(self.schema)

    def synthesize(self, n: int | None = None, *, rng: Random = None) -> Records:
        """Synthetic records whose counts match the model's; they decode like those of `sample`."""
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

        - `n`: how many; the model's total, rounded, if not given.
        - `rng`: a seed or a generator; the same seed gives the same records.
        - `method`: "synthesize" for records whose counts match the model's up to rounding;
          "sample" for independent draws, any number of which takes the same memory.
        - `watch`: called with what is done, the records written so far, and all.
        """
        from juncture.publish.records import write_records  # noqa: PLC0415  (slow to import)

        return write_records(self, path, n, rng=rng, method=method, watch=watch)


def load(path: str | Path, oracle: OracleFactory = Propagation) -> Release:
    """Read a release; a damaged or hostile file gets a clear error and nothing large is made.

    `oracle` computes the marginals that the stored ones are checked against, and those of all
    models that are made from the release's own.
    """
    source = Path(path)
    document, arrays = archive.read(source)
    try:
        release = _read_release(document, arrays, oracle)
    except UnreadableFile as error:
        raise UnreadableFile(f"`path` must be a release; got {source}: {error}") from None
    except JunctureError as error:
        raise UnreadableFile(
            f"`path` must be a sound release; got {source}, which is not: {error}"
        ) from None
    except _MALFORMED as error:
        raise UnreadableFile(
            f"`path` must be a sound release; got {source}, whose document does not fit together "
            f"({type(error).__name__}: {error}). Ask for it again where it came from."
        ) from None
    engine = make_oracle(oracle, release.model.plan)  # outside: its faults are not the file's
    try:
        _check_marginals(release.model, engine)
    except JunctureError as error:
        raise UnreadableFile(
            f"`path` must be a sound release; got {source}, which is not: {error}"
        ) from None
    return release


def _read_release(document: Document, arrays: list[Vector], oracle: OracleFactory) -> Release:
    if document.get("format") != FORMAT:
        raise UnreadableFile("it is a file of another kind. Give a file that Release.save wrote.")
    if document.get("version") == 1:
        document = upgrade(document)
    if document.get("version") != VERSION:
        raise UnreadableFile(
            f"it has version {document.get('version')!r} of the format, and this is version "
            f"{VERSION}. Install the Juncture that wrote it."
        )
    domain = Domain([(name, size) for name, size in document["domain"]])
    schema, guarantee, fit = document["schema"], document["guarantee"], document["fit"]
    return Release(
        schema=None if schema is None else parse_schema(tomllib.loads(schema)),
        model=_read_model(document, domain, arrays, oracle),
        measurements=tuple(_read_measurement(m, domain, arrays) for m in document["measurements"]),
        guarantee=None if guarantee is None else Guarantee.from_json(guarantee),
        fit=None if fit is None else FitSummary.from_json(fit),
        mechanism=None if document["mechanism"] is None else str(document["mechanism"]),
        workload=tuple(domain.canonical(clique) for clique in document["workload"]),
        details=dict(document["details"]),
    )


def _read_model(
    document: Document, domain: Domain, arrays: list[Vector], oracle: OracleFactory
) -> Model:
    """The model as it is stored; `_check_marginals` compares its parts."""
    layout = Layout(domain, [tuple(clique) for clique in document["cliques"]])
    potentials, marginals = layout.as_vector(arrays[0]), layout.as_vector(arrays[1])
    total, log_partition = float(document["total"]), float(document["log_partition"])
    if not (math.isfinite(total) and total > 0 and math.isfinite(log_partition)):
        raise ValueError(total, log_partition)
    plan = build_plan(oracle, domain, layout.cliques)
    codebook = document["codebook"]
    book = Codebook() if codebook is None else _read_codebook(codebook)
    return Model(plan, potentials, marginals, log_partition, total, book, oracle)


def _check_marginals(model: Model, engine: Oracle) -> None:
    """Refuse marginals that are not those of the potentials, as far as the oracle can tell."""
    beliefs = engine.marginals(model.potentials, model.total)
    tolerance = _TOLERANCE + beliefs.error
    wrong = np.abs(beliefs.marginals - model.marginals).max(initial=0.0)
    off = abs(beliefs.log_partition - model.log_partition)
    same = off <= tolerance * max(1.0, abs(model.log_partition))
    if not (wrong <= tolerance * model.total and same and model.marginals.min(initial=0.0) >= 0.0):
        raise ImpossibleModel("`marginals` must be those of the potentials; got others.")


def _write_measurement(measurement: Measurement, arrays: list[Vector]) -> Document:
    arrays += [measurement.values, np.atleast_1d(measurement.stddev)]
    return {
        "clique": list(measurement.clique),
        "values": len(arrays) - 2,
        "stddev": len(arrays) - 1,
        "noise": str(measurement.noise),
        "query": query_text.to_dict(measurement.query, arrays),
    }


def _read_measurement(text: Document, domain: Domain, arrays: list[Vector]) -> Measurement:
    values, stddev = arrays[text["values"]], arrays[text["stddev"]]
    measurement = Measurement(
        tuple(text["clique"]),
        values,
        stddev=stddev[0] if len(stddev) == 1 else stddev,
        query=query_text.from_dict(text["query"], arrays),
        noise=text["noise"],
    )
    measurement.operator(domain)
    return measurement


def _write_codebook(codebook: Codebook) -> Document | None:
    if codebook.is_plain:
        return None
    return {name: [_write_meaning(m) for m in c.meanings] for name, c in codebook.codings.items()}


def _write_meaning(meaning: object) -> object:
    if isinstance(meaning, Special):
        return {"special": meaning.name}
    return list(meaning) if isinstance(meaning, tuple) else meaning


def _read_meaning(text: Any) -> Meaning:  # noqa: ANN401
    if isinstance(text, dict):
        return Special(str(text["special"]))
    return tuple(text) if isinstance(text, list) else text


def _read_codebook(text: Document) -> Codebook:
    return Codebook(
        {
            str(name): Coding(tuple(_read_meaning(m) for m in meanings))
            for name, meanings in text.items()
        }
    )


def _finite_or_none(value: object) -> object:
    """JSON has no infinities: what is unknown is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
