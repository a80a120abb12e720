"""A new column kind is one class and one registration; half of one is refused."""

from __future__ import annotations

import csv
import datetime as dt
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import duckdb
import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from explorer_server import TOKEN, running
from juncture import Release, estimate, load
from juncture.errors import InvalidInput
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.privacy.price import Pure
from juncture.private.curator import Curator
from juncture.private.draft import exact_draft
from juncture.private.sources.duck import DuckDB
from juncture.publish.explorer.facts import collect_facts
from juncture.publish.explorer.server import create_app
from juncture.publish.records import write_records
from juncture.tables.codebook import Codebook, Coding, Meaning
from juncture.tables.columns import (
    Boolean,
    Column,
    ColumnSummary,
    Date,
    Dialect,
    Display,
    Integer,
    Outside,
    RawColumn,
    RawType,
    base,
    column_kinds,
    display_of,
    register_column_kind,
)
from juncture.tables.columns.base import TomlTable
from juncture.tables.columns.sql import number_literal, search_bin
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import parse_schema, read_schema, schema_toml

BUILT_IN = ["categorical", "boolean", "integer", "number", "date"]


@dataclass(frozen=True, kw_only=True)
class Grade(Column):
    """Marks of a school, best first, whatever their case."""

    kind: ClassVar[str] = "grade"
    worst: str = "F"

    @property
    def regular(self) -> tuple[Meaning, ...]:
        """The letters from A."""
        return tuple(chr(code) for code in range(ord("A"), ord(self.worst) + 1))

    def to_toml(self) -> TomlTable:
        """The last letter."""
        return {"worst": self.worst}

    def index_sql(self, raw: RawColumn, dialect: Dialect) -> str:
        """The index of the letter."""
        letters = [str(letter) for letter in self.regular]
        return dialect.index_of(f"upper({dialect.cast_to_text(raw.sql)})", letters)

    @property
    def arrow_type(self) -> Any:
        """One letter each."""
        return pa.large_string()

    @classmethod
    def draft(cls, summary: ColumnSummary) -> Self | None:
        """Where nothing but letters occur."""
        values = summary.list_values(26) if summary.raw_type is RawType.TEXT else None
        if values is None or not all(len(v) == 1 and "A" <= v.upper() <= "Z" for v in values):
            return None
        return cls(worst=max(values).upper(), missing=summary.has_missing)


@dataclass(frozen=True, kw_only=True)
class Decades(Column):
    """Positive numbers, told apart by their power of ten."""

    kind: ClassVar[str] = "decades"
    powers: int

    @property
    def edges(self) -> list[float]:
        """1, 10, 100 and so on."""
        return [10.0**power for power in range(self.powers + 1)]

    @property
    def regular(self) -> tuple[Meaning, ...]:
        """From one power to the next."""
        return Coding.of_bins(self.edges).meanings

    def to_toml(self) -> TomlTable:
        """Their number."""
        return {"powers": self.powers}

    def index_sql(self, raw: RawColumn, dialect: Dialect) -> str:  # noqa: ARG002
        """The power below."""
        low, high = number_literal(1.0), number_literal(self.edges[-1])
        inside = f"{raw.as_number} >= {low} AND {raw.as_number} < {high}"
        return f"CASE WHEN {inside} THEN {search_bin(self.edges, raw.as_number)} END"

    def missing_sql(self, raw: RawColumn) -> str:
        """Not-a-number is missing too."""
        return raw.is_null_or_nan

    @property
    def arrow_type(self) -> Any:
        """Short numbers."""
        return pa.float32()

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:
        """A number inside the decade, its logarithm evenly drawn."""
        return np.asarray(10.0 ** (codes + rng.uniform(0.1, 0.9, len(codes))))


@pytest.fixture(autouse=True)
def _own_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds are known beside the built-in ones, and unknown again to tests of other files."""
    monkeypatch.setattr(base, "_KINDS", {name: base._KINDS[name] for name in BUILT_IN})
    register_column_kind(Grade)
    register_column_kind(Decades)


SCHEMA_TEXT = """
format = "juncture schema"
version = 1

[columns.mark]
kind = "grade"
worst = "E"
missing = true
outside = "code"

[columns.pay]
kind = "decades"
powers = 3
missing = true

[columns.member]
kind = "boolean"
"""
ROWS: list[tuple[str, str, bool]] = [
    (mark, pay, (i + j) % 3 == 0)
    for i, mark in enumerate(["A", "a", "b", "C", "E", "F", "", "b"])
    for j, pay in enumerate(["1", "9.99", "10", "999", "NaN", "", "250", "42"])
] * 20


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    """A schema with both kinds, from its file."""
    (tmp_path / "schema.toml").write_text(SCHEMA_TEXT)
    return read_schema(tmp_path / "schema.toml")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A CSV file."""
    with (tmp_path / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("mark", "pay", "member"), *ROWS])
    return tmp_path / "table.csv"


def mark_code(text: str) -> int:
    """Letters A to E, then missing, then outside."""
    return 5 if not text else "ABCDE".find(text.upper()) % 7


def pay_code(text: str) -> int:
    """The power of ten below, then missing."""
    missing = not text or math.isnan(float(text))
    return 3 if missing else len(str(int(float(text)))) - 1


def exact_counts() -> NDArray[np.float64]:
    """The table of marks and pay, a row at a time."""
    counts = np.zeros((7, 4))
    for mark, pay, _ in ROWS:
        counts[mark_code(mark), pay_code(pay)] += 1
    return counts


@pytest.fixture
def release(schema: Schema, table: Path, tmp_path: Path) -> Release:
    """Through the real curator, with little noise, saved and loaded."""
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=20.0), Neighbours.ADD_OR_REMOVE)
    curator = Curator(DuckDB(table, schema), ledger)
    measurements = [curator.measure(clique, Pure(10.0)) for clique in (("mark", "pay"), ("pay",))]
    fit = estimate(schema.domain, measurements)
    made = Release(
        model=fit.model, measurements=measurements, guarantee=curator.guarantee, schema=schema
    )
    return load(made.save(tmp_path / "release.jct"))


def test_a_new_kind_comes_back_from_toml(schema: Schema, tmp_path: Path) -> None:
    """A schema that is written and read again is the same, entry by entry."""
    path = tmp_path / "again.toml"
    path.write_text(schema_toml(schema))
    assert read_schema(path) == schema
    assert schema.columns["mark"] == Grade(worst="E", missing=True, outside=Outside.CODE)
    assert dict(schema.domain) == {"mark": 7, "pay": 4, "member": 2}


def test_a_new_kind_is_encoded_where_the_data_is(schema: Schema, table: Path) -> None:
    """DuckDB's counts of a CSV file are those of plain Python, missing and outside included."""
    (counts,) = DuckDB(table, schema).exact_counts([("mark", "pay")])
    np.testing.assert_array_equal(counts.values, exact_counts())


def test_a_new_kind_is_released_and_asked_by_its_labels(release: Release) -> None:
    """SQL on letters and numbers answers what the rows say, but for the noise."""
    exact = exact_counts()
    for condition, expected in (
        ("mark = 'B'", exact[1].sum()),
        ("mark IN ('A', 'E') AND pay < 100", exact[[0, 4], :2].sum()),
        ("mark IS NULL", exact[5].sum()),
    ):
        answer = release.model.sql(f"SELECT COUNT(*) FROM t WHERE {condition}")
        assert answer.rows[0][0] == pytest.approx(expected, abs=10.0)
    assert release.schema is not None
    assert isinstance(release.schema.columns["mark"], Grade)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_synthetic_records_have_the_types_that_kinds_say(
    release: Release, tmp_path: Path, suffix: str
) -> None:
    """Values are of the kind's own domain, and Parquet has the type that the kind says."""
    path = tmp_path / f"records.{suffix}"
    write_records(release, path, 500, rng=0)
    if suffix == "parquet":
        records = pq.read_table(path)
        assert records.schema.types == [pa.string(), pa.float32(), pa.bool_()]
        marks, pay = records["mark"].to_pylist(), records["pay"].to_pylist()
    else:
        with path.open() as file:
            rows = list(csv.DictReader(file))
        marks = [row["mark"] or None for row in rows]
        pay = [float(row["pay"]) if row["pay"] else None for row in rows]
    assert {"A", "B", "C", "E", None} <= set(marks) <= {*"ABCDE", None}
    assert {pay_code(str(value)) for value in pay if value is not None} == {0, 1, 2}
    assert None in pay


def test_the_explorer_shows_a_new_kind(release: Release) -> None:
    """Letters are categories, decades are intervals, and records can be downloaded."""
    attributes = collect_facts(release, "school")["attributes"]
    assert [each["kind"] for each in attributes] == ["texts", "intervals", "texts"]
    assert [value["label"] for value in attributes[1]["values"][:2]] == ["[1, 10)", "[10, 100)"]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with running(create_app(release, token=TOKEN)) as url:
        asked = f"{url}/api/sample?n=50&seed=7&format=parquet"
        records = pq.read_table(io.BytesIO(httpx.get(asked, headers=headers).content))
    assert records.schema.types == [pa.string(), pa.float32(), pa.bool_()]


def test_a_kind_may_say_how_it_is_shown(monkeypatch: pytest.MonkeyPatch, release: Release) -> None:
    """What the kind says goes before what its codes look like, unless a codebook renames them."""
    monkeypatch.setattr(Grade, "display", property(lambda _self: Display.DATES))
    assert collect_facts(release, "school")["attributes"][0]["kind"] == "dates"
    book = Codebook({"mark": Coding((1, 2, 3, 4, 5, 6, 7))})
    renamed = Release(model=release.model.with_codebook(book), schema=release.schema)
    kinds = [each["kind"] for each in collect_facts(renamed, "school")["attributes"]]
    assert kinds == ["numbers", "codes", "codes"]


def test_a_draft_asks_new_kinds_first() -> None:
    """A kind that suits a column is proposed before the built-in one, and else not."""
    sql = "SELECT 'A' AS mark, 'Bern' AS city, 3 AS level UNION ALL SELECT 'd', 'Basel', 4"
    relation: Any = duckdb.sql(sql)
    columns = exact_draft(relation).columns
    assert columns["mark"] == Grade(worst="D")
    assert [column.kind for column in columns.values()] == ["grade", "categorical", "integer"]


def without(*names: str) -> type[Column]:
    """A kind that leaves something out."""
    members = {name: value for name, value in vars(Grade).items() if name not in names}
    for name in ("__dict__", "__weakref__", "__abstractmethods__", "_abc_impl"):
        members.pop(name, None)
    return type("Half", (Column,), members)


@pytest.mark.parametrize("name", ["arrow_type", "index_sql", "to_toml", "regular"])
def test_half_a_kind_cannot_be_made_or_registered(name: str) -> None:
    """A class that leaves out what has no default fails, and the error names what is absent."""
    half = without(name)
    with pytest.raises(TypeError, match=f"abstract.*{name}"):
        half()
    with pytest.raises(InvalidInput, match=f"got Half without {name}"):
        register_column_kind(half)
    assert column_kinds()["grade"] is Grade


def test_a_kind_must_be_registered_under_a_name_of_its_own() -> None:
    """Columns that no schema file could be read with cannot be made."""

    @dataclass(frozen=True, kw_only=True)
    class Stranger(Grade):
        """It has the name of another kind."""

    with pytest.raises(InvalidInput, match="of a registered kind; got Stranger"):
        Stranger()
    with pytest.raises(InvalidInput, match="a name of its own; got 'grade' for Stranger"):
        register_column_kind(Stranger)
    with pytest.raises(InvalidInput, match="must be the name of Half in TOML; got None"):
        register_column_kind(without("kind"))


def test_a_class_that_is_defined_again_takes_its_place() -> None:
    """As happens in a notebook: the last definition counts."""

    def define() -> type[Column]:
        @register_column_kind
        @dataclass(frozen=True, kw_only=True)
        class Again(Grade):
            kind: ClassVar[str] = "again"

        return Again

    first, second = define(), define()
    assert column_kinds()["again"] is second
    assert second().coding.size == 6
    with pytest.raises(InvalidInput, match="of a registered kind"):
        first()


def test_intervals_are_not_decoded_by_default() -> None:
    """A kind of intervals that does not draw from them fails instead of writing pairs."""

    @register_column_kind
    @dataclass(frozen=True, kw_only=True)
    class Lazy(Decades):
        kind: ClassVar[str] = "lazy"
        draw = Column.draw

    with pytest.raises(NotImplementedError, match="Lazy has codes for intervals"):
        Lazy(powers=2).decode(np.array([0], np.int32), np.random.default_rng(0))


def test_entries_that_toml_cannot_hold_are_refused() -> None:
    """Nothing is written that could not be read again."""

    @register_column_kind
    @dataclass(frozen=True, kw_only=True)
    class Odd(Grade):
        kind: ClassVar[str] = "odd"

        def to_toml(self) -> TomlTable:
            return {"worst": None}

    with pytest.raises(InvalidInput, match="`to_toml` must give texts.*got None"):
        schema_toml(Schema({"x": Odd()}))


@pytest.mark.parametrize("kind", ["grades", None, 7, ["grade"]])
def test_an_unknown_kind_is_refused_with_those_there_are(kind: object) -> None:
    """The error names the column and lists every kind, the new ones included."""
    listed = ", ".join([*BUILT_IN, "grade", "decades"])
    content = {"format": "juncture schema", "version": 1, "columns": {"x": {"kind": kind}}}
    with pytest.raises(InvalidInput, match=f"Column 'x': `kind` must be one of {listed}; got"):
        parse_schema(content)


def test_the_display_follows_from_meanings() -> None:
    """Only numbers and intervals in ascending order are shown as such; dates say so themselves."""
    low, high = (0.0, 1.0), (1.0, 2.0)
    assert display_of(Coding((low, high, None))) is Display.INTERVALS
    assert display_of(Coding((high, low))) is Display.TEXTS
    assert display_of(Coding((1, 2.5))) is Display.NUMBERS
    assert display_of(Coding((2, 1))) is Display.TEXTS
    assert display_of(Coding(("1", "2"))) is Display.TEXTS
    assert display_of(Boolean().coding) is Display.TEXTS
    assert Integer(low=0, high=5).display is Display.NUMBERS
    assert Integer(low=0, high=5, width=2).display is Display.INTERVALS
    assert Date(low=dt.date(2020, 1, 1), high=dt.date(2020, 5, 1)).display is Display.DATES
