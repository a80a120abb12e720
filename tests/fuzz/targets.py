"""What is attacked: everything that reads what a stranger wrote.

A target makes inputs from examples that are right, and reads an input as a user's program would. An
input is a text, so that one that failed can be kept in the corpus and read by people.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import juncture as jn
from fuzz.mutations import (
    NUMBERS,
    Rng,
    apply_changes,
    choose,
    choose_value,
    mutate_bytes,
    mutate_document,
    mutate_text,
    write_json,
)
from fuzz.statements import make_statement
from juncture import Codebook, Coding, Domain, Factor, Measurement, Model, Release
from juncture.engine.particles import Particles
from juncture.privacy.ledger import Ledger
from juncture.private.sources.read import read_table
from juncture.publish.explorer.facts import collect_facts
from juncture.publish.noisy_tables import ReadOptions, read_domain, read_measurements
from juncture.tables.queries import Identity, Kron, Prefix, Stack, Subset, Total
from juncture.tables.queries.products import Query
from juncture.tables.schema_toml import parse_schema, read_schema, schema_toml

SCHEMA = """format = "juncture schema"
version = 2
missing_values = ["NA"]
[columns.age]
kind = "integer"
low = 17
high = 40
[columns.pay]
kind = "number"
edges = [0.0, 10.0, 100.0]
missing = true
[columns.since]
kind = "date"
low = 2020-01-01
high = 2020-12-31
[columns.city]
kind = "categorical"
values = ["Bern", "Basel"]
outside = "code"
[columns.ok]
kind = "boolean"
"""


_TOML = ["inf", "nan", "-inf", "[]", "{}", "1e400", "-5", "9223372036854775808", '"x"', '""', "0"]
_TOML += ["1979-05-27T07:32:00Z", "07:32:00", "0001-01-01", "9999-12-31", "[[1], [2]]", "true"]
_TOML += ["[1, 2]", "[2, 1]", "[1, 1]", '["a", 1]', "[nan]", "[0.0, inf]", "1e308", "3000000", "17"]
_TOML += [
    '["\\u001b[31m"]',
    '["a", "A"]',
    "[true]",
    "{a = 1}",
    '"integer"',
    '"date"',
    "[-1e308, 1e308]",
]


class Target(ABC):
    """A reader under attack."""

    name: ClassVar[str]
    n_inputs: ClassVar[int]
    """How many inputs the tests try; together they are at least 2,000."""

    @abstractmethod
    def make(self, rng: Rng) -> str:
        """An input."""

    @abstractmethod
    def read(self, text: str, folder: Path) -> None:
        """Read an input, and use what was read; only our own errors may come."""


def _n_changes(rng: Rng) -> int:
    return int(rng.choice([1, 1, 1, 2, 3, 8]))


def pack_release(text: str, path: Path) -> Path:
    """A release file of a document and arrays, every checksum right, as an attacker would."""
    content = json.loads(text)
    arrays = [np.array(each, dtype="<f8").tobytes() for each in content["arrays"]]
    document = content["document"]
    if isinstance(document, dict) and "arrays" not in document:
        document["arrays"] = [
            {"length": len(a) // 8, "sha256": hashlib.sha256(a).hexdigest()} for a in arrays
        ]
    raw = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("document.json", raw)
        archive.writestr("document.sha256", hashlib.sha256(raw).hexdigest())
        for index, array in enumerate(arrays):
            archive.writestr(f"arrays/{index}.f64", array)
    return path


def unpack_release(release: Release, folder: Path) -> dict[str, Any]:
    """The document and the arrays of a release, as lists."""
    with zipfile.ZipFile(release.save(folder / "seed.jct")) as archive:
        document = json.loads(archive.read("document.json"))
        n_arrays = len(document.pop("arrays"))
        raw = [archive.read(f"arrays/{i}.f64") for i in range(n_arrays)]
    return {"document": document, "arrays": [np.frombuffer(each).tolist() for each in raw]}


def use_release(release: Release) -> None:
    """What people do with a release that they were sent."""
    model = release.model
    names = list(model.domain)[:2]
    for records in (model.synthesize(40, rng=0), model.sample(40, rng=0)):
        for name, codes in records.items():
            assert 0 <= codes.min() <= codes.max() < model.domain[name], name
    model.sql("SELECT COUNT(*) FROM t")
    if model.domain.size_of(names) < 10_000:
        column = '"' + names[0].replace('"', '""') + '"'
        model.sql(f"SELECT {column}, COUNT(*) FROM t GROUP BY 1 LIMIT 3")
        model.project(names)
    model.most_probable()
    repr(release)
    release._repr_html_()
    collect_facts(release, "some")


class ReleaseFile(Target):
    """A release file with right checksums."""

    name, n_inputs = "release", 420

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _seeds(self) -> list[dict[str, Any]]:
        return [unpack_release(make(), self._folder) for make in (_tree, _with_schema, _records)]

    def make(self, rng: Rng) -> str:
        """A seed with entries changed, or numbers of its arrays."""
        seed = choose(rng, [0, 0, 0, 1, 1, 2])
        content: dict[str, Any] = self._seeds[seed]
        arrays = [list(each) for each in content["arrays"]]
        document = content["document"]
        if rng.random() < 0.75:
            document = mutate_document(rng, document, _n_changes(rng))
        if rng.random() < 0.4:
            array: list[Any] = choose(rng, arrays)
            for _ in range(_n_changes(rng)):
                if array:
                    number = choose(rng, [n for n in NUMBERS if isinstance(n, float)])
                    array[int(rng.integers(len(array)))] = number
            if rng.random() < 0.1:
                del array[-1:]
        return write_json({"document": document, "arrays": arrays})

    def read(self, text: str, folder: Path) -> None:
        """Load it, and use it."""
        use_release(jn.load(pack_release(text, folder / "some.jct")))


def _tree() -> Release:
    rng, domain = np.random.default_rng(0), Domain({"a": 4, "b": 3, "c": 3, "free": 2})
    pairs = [Factor.random(domain.project(pair), rng) for pair in (("a", "b"), ("b", "c"))]
    book = Codebook({"a": Coding(("x", "y", None, "é")), "b": Coding(((0.0, 1.0), (1.0, 9.0), 5))})
    model = Model.of_potentials(domain, pairs, 90.0).with_codebook(book)
    queries: list[Query] = [
        Identity(),
        Kron({"a": Prefix(), "b": Total()}),
        Stack([Subset([0]), Total()]),
    ]
    cliques = [("a", "b"), ("a", "b"), ("c",)]
    measured = [
        Measurement(clique, query=query, stddev=2.0, values=np.ones(n))
        for clique, query, n in zip(cliques, queries, (12, 4, 2), strict=True)
    ]
    return Release(model=model, measurements=measured, details={"rounds": 3}, workload=cliques)


def _with_schema() -> Release:
    import tomllib  # noqa: PLC0415

    schema = parse_schema(tomllib.loads(SCHEMA))
    rng = np.random.default_rng(0)
    tables = [
        Factor.random(schema.domain.project(pair), rng)
        for pair in itertools.pairwise(schema.domain)
    ]
    return Release(model=Model.of_potentials(schema.domain, tables, 100.0), schema=schema)


def _records() -> Release:
    rng, domain = np.random.default_rng(0), Domain({"a": 3, "b": 2, "c": 3})
    pairs = [Factor.random(domain.project(p), rng) for p in (("a", "b"), ("b", "c"), ("a", "c"))]
    oracle = Particles(n_records=200, seed=1)
    return Release(model=Model.of_potentials(domain, pairs, 50.0, oracle=oracle))


class SchemaFile(Target):
    """A schema in TOML."""

    name, n_inputs = "schema", 450

    def make(self, rng: Rng) -> str:
        """The example with letters changed, or entries."""
        if rng.random() < 0.3:
            return mutate_text(rng, SCHEMA, _n_changes(rng))
        lines = SCHEMA.splitlines()
        for _ in range(_n_changes(rng)):
            index = int(rng.integers(2, len(lines)))
            if " = " in lines[index]:
                lines[index] = f"{lines[index].partition(' = ')[0]} = {choose(rng, _TOML)}"
        if rng.random() < 0.3:
            entry = choose(
                rng, ["missing", "outside", "edges", "width", "special", "outside_value"]
            )
            lines.append(f"{entry} = {choose(rng, _TOML)}")
        return "\n".join(lines)

    def read(self, text: str, folder: Path) -> None:
        """Read it, write it, and decode some records by it."""
        path = folder / "some.toml"
        path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
        schema = read_schema(path)
        repr(schema)
        schema_toml(schema)
        codes = {n: np.zeros(3, dtype=np.int32) for n in schema.domain}
        schema.decode(codes, rng=0)


class LedgerFile(Target):
    """A ledger."""

    name, n_inputs = "ledger", 200

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _seed(self) -> str:
        path = self._folder / "seed.ledger"
        ledger = Ledger.create(path, jn.Budget(epsilon=2.0))
        domain = Domain({"a": 2})
        source = read_table(pa.table({"a": [0, 1]}), jn.Schema({"a": jn.Integer(low=0, high=1)}))
        assert source.domain == domain
        curator = jn.Curator(source, ledger)
        for _ in range(3):
            curator.measure(("a",), jn.Pure(0.25))
        return path.read_text()

    def make(self, rng: Rng) -> str:
        """The example with lines, entries or letters changed."""
        lines = self._seed.splitlines()
        if rng.random() < 0.5:
            index = int(rng.integers(len(lines)))
            lines[index] = write_json(mutate_document(rng, json.loads(lines[index]), 1))
            return "\n".join(lines) + "\n"
        return mutate_text(rng, self._seed, _n_changes(rng))

    def read(self, text: str, folder: Path) -> None:
        """Open it and ask it everything."""
        path = folder / "some.ledger"
        path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
        ledger = Ledger(path)
        assert ledger.spent >= 0.0
        repr(ledger)
        assert ledger.remaining is not None
        list(ledger.events)


class CsvTable(Target):
    """A private table as CSV."""

    name, n_inputs = "csv", 120

    def make(self, rng: Rng) -> str:
        """Rows of the schema's values with letters changed."""
        rows = ["age,pay,since,city,ok"]
        rows += [
            f"{17 + i},{i}.5,2020-0{1 + i}-01,Bern,{'true' if i % 2 else 'false'}" for i in range(6)
        ]
        return mutate_text(rng, "\n".join(rows) + "\n", _n_changes(rng))

    def read(self, text: str, folder: Path) -> None:
        """Read it under the schema, and count."""
        path = folder / "some.csv"
        path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
        _count(path, folder)


def _count(path: Path, folder: Path) -> None:
    schema = folder / "fixed.toml"
    schema.write_text(SCHEMA)
    source = read_table(path, schema)
    source.exact_counts([("age",), ("city", "ok")])


class ParquetTable(Target):
    """A private table as Parquet."""

    name, n_inputs = "parquet", 100

    @cached_property
    def _seed(self) -> bytes:
        sink = pa.BufferOutputStream()
        parquet.write_table(pa.table(_columns()), sink)
        return bytes(sink.getvalue().to_pybytes())

    def make(self, rng: Rng) -> str:
        """The example with bytes changed."""
        return write_json(mutate_bytes(rng, self._seed, int(rng.integers(1, 20))))

    def read(self, text: str, folder: Path) -> None:
        """Read it under the schema, and as a noisy table."""
        path = folder / "some.parquet"
        path.write_bytes(apply_changes(self._seed, json.loads(text)))
        _try_all(lambda: _count(path, folder), lambda: _read_noisy(path))


def _columns() -> dict[str, list[Any]]:
    return {
        "age": [17, 18, 19],
        "pay": [1.0, None, 50.0],
        "since": ["2020-01-01", "2020-05-05", "2020-09-09"],
        "city": ["Bern", "Basel", "Bern"],
        "ok": [True, False, True],
        "value": [1.0, 2.0, 3.0],
    }


def _try_all(*readers: Callable[[], object]) -> None:
    """Try each, also where one refuses; refused by all, the input is refused."""
    refusals: list[jn.JunctureError] = []
    for read in readers:
        try:
            read()
        except jn.JunctureError as error:
            refusals.append(error)
    if len(refusals) == len(readers):
        raise refusals[0]


class Sql(Target):
    """A question in SQL."""

    name, n_inputs = "sql", 400

    @cached_property
    def _models(self) -> list[Model]:
        return [_tree().model, _with_schema().model]

    def make(self, rng: Rng) -> str:
        """A statement of the grammar, often with letters changed."""
        statement = make_statement(rng, int(rng.integers(2)))
        return mutate_text(rng, statement, _n_changes(rng)) if rng.random() < 0.4 else statement

    def read(self, text: str, folder: Path) -> None:
        """Ask it of two models."""
        del folder
        _try_all(*(lambda m=model: str(m.sql(text, max_groups=50_000)) for model in self._models))


def _read_noisy(path: Path) -> None:
    domain = Domain({"age": 3, "sex": 2})
    book = Codebook({"age": Coding(((0.0, 5.0), (5.0, 9.0), None)), "sex": Coding(("f", "m"))})
    read_measurements([path], ReadOptions(domain, book.bind(domain), stddev=1.0))


class NoisyTable(Target):
    """A noisy marginal of somebody else, as JSON or CSV."""

    name, n_inputs = "noisy", 200

    def make(self, rng: Rng) -> str:
        """A document with entries changed, or a table with letters changed."""
        if rng.random() < 0.6:
            entry = {"clique": ["age", "sex"], "values": [1.0] * 6, "stddev": 2, "noise": "laplace"}
            document = {"measurements": [entry, {"clique": ["sex"], "values": [3, 4]}]}
            return "json:" + write_json(mutate_document(rng, document, _n_changes(rng)))
        rows = [f"{age},{sex},{age}.5,1" for age in ("2", "7", "") for sex in "fm"]
        table = "\n".join(["age,sex,value,stddev", *rows])
        return "csv:" + mutate_text(rng, table, _n_changes(rng))

    def read(self, text: str, folder: Path) -> None:
        """Read it under a domain."""
        kind, _, content = text.partition(":")
        path = folder / f"some.{kind}"
        path.write_bytes(content.encode("utf-8", errors="surrogatepass"))
        _read_noisy(path)


class DomainFile(Target):
    """A domain as JSON."""

    name, n_inputs = "domain", 200

    def make(self, rng: Rng) -> str:
        """A document with entries changed."""
        document = {"age": 85, "sex": ["f", "m"], "pay": [1.5, True, None, "x"]}
        if rng.random() < 0.3:
            return mutate_text(rng, write_json(document), _n_changes(rng))
        return write_json(mutate_document(rng, document, _n_changes(rng)))

    def read(self, text: str, folder: Path) -> None:
        """Read it."""
        path = folder / "domain.json"
        path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
        domain, book = read_domain(path)
        repr(domain)
        for name in domain:
            if domain[name] < 10_000:
                assert len(book[name].labels) == domain[name]


class Estimation(Target):
    """Measurements with extreme numbers."""

    name, n_inputs = "estimate", 60

    def make(self, rng: Rng) -> str:
        """One to three measurements of values and deviations from all over the doubles."""
        scale = 10.0 ** float(
            rng.integers(-300, 300) if rng.random() < 0.5 else rng.integers(-9, 9)
        )
        listed = []
        for clique, size in ((["a"], 3), (["b"], 2), (["a", "b"], 6))[: int(rng.integers(1, 4))]:
            values = (rng.normal(size=size) * scale * 10.0 ** rng.integers(-3, 3)).tolist()
            stddev = float(abs(rng.normal()) * scale * 10.0 ** float(rng.integers(-12, 6)))
            if rng.random() < 0.2:
                values[0] = choose_value(rng)
            if rng.random() < 0.1:
                stddev = choose(rng, NUMBERS)
            listed.append({"clique": clique, "values": values, "stddev": stddev})
        return write_json({"measurements": listed, "total": None if rng.random() < 0.7 else scale})

    def read(self, text: str, folder: Path) -> None:
        """Fit them; what comes out is a distribution, and no bound lies above its loss."""
        del folder
        content = json.loads(text)
        measured = [Measurement(**each) for each in content["measurements"]]
        fit = jn.estimate(Domain({"a": 3, "b": 2}), measured, total=content["total"])
        assert np.isfinite(fit.model.probabilities).all()
        for clique in fit.model.cliques:
            whole = fit.model.project(clique).values.sum()
            assert abs(whole / fit.model.total - 1.0) < 1e-6, (clique, whole, fit.model.total)
        assert not np.isnan(fit.summary.loss)
        slack = 1e-6 * abs(fit.summary.loss) + 1e-9
        assert fit.summary.lower_bound <= fit.summary.loss + slack


def make_targets(folder: Path) -> list[Target]:
    """All targets; `folder` is for their examples."""
    return [
        ReleaseFile(folder), SchemaFile(), LedgerFile(folder), CsvTable(), ParquetTable(), Sql(),
        NoisyTable(), DomainFile(), Estimation(),
    ]  # fmt: skip
