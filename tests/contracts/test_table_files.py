"""Every kind of file and value is read alike: zones, missing values, packed files, databases."""

from __future__ import annotations

import datetime as dt
import gzip
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import juncture as jn
from juncture.errors import InvalidInput, UnreadableFile
from juncture.private.check import exact_check
from juncture.private.sources.duck import DuckDB
from juncture.private.sources.mismatches import Mismatch
from juncture.tables.columns import Boolean, Categorical, Column, Date, Integer, Number, Outside
from juncture.tables.schema import Schema

ROWS: list[tuple[int | None, float, str, str]] = [
    (20, 0.1, "north", "2024-01-01"),
    (35, 0.30000000000000004, "it's, here", "2024-01-02"),
    (None, 7.5, "south", "2024-03-01"),
]
NAMES = ["age", "pay", "place", "day"]
SCHEMA = Schema(
    {
        "age": Integer(low=18, high=40, missing=True),
        "pay": Number(edges=(0.0, 0.1, 0.3, 0.30000000000000004, 10.0)),
        "place": Categorical(values=("north", "it's, here", "south")),
        "day": Date(low=dt.date(2024, 1, 1), high=dt.date(2024, 12, 31)),
    }
)


def texts(delimiter: str) -> bytes:
    """The rows as text, the place in quotes."""
    lines = [delimiter.join(NAMES)]
    for age, pay, place, day in ROWS:
        lines.append(
            delimiter.join(["" if age is None else str(age), repr(pay), f'"{place}"', day])
        )
    return "\n".join([*lines, ""]).encode()


def write(name: str, content: bytes) -> Callable[[Path], Any]:
    """A function that writes a file and gives its path."""

    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def sqlite_file(folder: Path) -> Path:
    """As a database of SQLite."""
    with sqlite3.connect(folder / "table.sqlite") as file:
        file.execute("CREATE TABLE people (age INTEGER, pay REAL, place TEXT, day TEXT)")
        file.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", ROWS)
    file.close()
    return folder / "table.sqlite"


def duckdb_file(folder: Path) -> str:
    """As one of two tables of a database of DuckDB."""
    with duckdb.connect(str(folder / "table.duckdb")) as file:
        file.execute("CREATE TABLE other AS SELECT 1 AS age")
        file.execute("CREATE TABLE people (age INTEGER, pay DOUBLE, place VARCHAR, day DATE)")
        file.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", ROWS)
    return f"{folder / 'table.duckdb'}::people"


def packed_folder(folder: Path) -> Path:
    """As a folder with two packed files."""
    (folder / "parts").mkdir()
    lines = texts(",").splitlines(keepends=True)
    (folder / "parts" / "a.csv.gz").write_bytes(gzip.compress(lines[0] + lines[1]))
    (folder / "parts" / "b.csv.gz").write_bytes(gzip.compress(lines[0] + b"".join(lines[2:])))
    return folder / "parts"


def bare_file(folder: Path) -> jn.TableFile:
    """As CSV without a line of names, under the names that its columns then have."""
    (folder / "bare.csv").write_bytes(texts(",").split(b"\n", 1)[1])
    return jn.TableFile(folder / "bare.csv", header=False)


FILES: dict[str, Callable[[Path], Any]] = {
    "csv": write("table.csv", texts(",")),
    "csv.gz": write("table.csv.gz", gzip.compress(texts(","))),
    "tsv": write("table.tsv", texts("\t")),
    "tsv.gz": write("table.TSV.gz", gzip.compress(texts("\t"))),
    "folder": packed_folder,
    "sqlite": sqlite_file,
    "duckdb": duckdb_file,
    "lazy": lambda _: pl.LazyFrame(ROWS, schema=NAMES, orient="row").with_columns(extra=pl.lit(1)),
    "no header": bare_file,
}


@pytest.mark.parametrize("kind", FILES)
def test_every_file_gives_the_same_counts(kind: str, tmp_path: Path) -> None:
    """Whatever holds the rows, each of them has the code that plain Python gives it."""
    schema = SCHEMA
    if kind == "no header":
        columns = SCHEMA.columns.values()
        schema = Schema({f"column_{i + 1}": column for i, column in enumerate(columns)})
    source = jn.read_table(FILES[kind](tmp_path), schema)
    counts = [each.values for each in source.exact_counts([(name,) for name in schema.columns])]
    assert [[int(i) for i in each.nonzero()[0]] for each in counts] == [
        [2, 17, 23],
        [1, 3],
        [0, 1, 2],
        [0, 2],
    ]
    assert counts[1].tolist() == [0, 1, 0, 2]
    assert source.exact_n_records == len(ROWS)


def test_a_table_of_a_database_is_chosen_by_name(tmp_path: Path) -> None:
    """Without a name there must be one table; the error lists those that there are."""
    path = tmp_path / "table.duckdb"
    duckdb_file(tmp_path)
    schema = Schema({"age": Integer(low=0, high=99, missing=True)})
    for name, expected in (("people", 3), ("other", 1)):
        assert DuckDB(jn.TableFile(path, name), schema).exact_n_records == expected
    with pytest.raises(InvalidInput, match="which has other, people; none was chosen"):
        DuckDB(path, schema)
    with pytest.raises(InvalidInput, match="which has people; got 'nobody'"):
        DuckDB(f"{sqlite_file(tmp_path)}::nobody", schema)
    (tmp_path / "text.db").write_text("age\n1\n")
    with pytest.raises(UnreadableFile, match="a SQLite or DuckDB database; got"):
        DuckDB(tmp_path / "text.db", schema)


def test_a_column_of_sqlite_may_hold_anything(tmp_path: Path) -> None:
    """Each value is read as itself: numbers exactly, words as words, bytes as neither."""
    values = [7, 0.30000000000000004, "7", "NA", None, b"7", 2**53]
    with sqlite3.connect(tmp_path / "any.db") as file:
        file.execute("CREATE TABLE t (x)")
        file.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
    file.close()
    edges = (0.0, 0.30000000000000004, 1.0, float(2**53 - 1), float(2**53))
    column = Number(edges=edges, missing=True, outside=Outside.CODE, missing_values=("NA",))
    source = DuckDB(tmp_path / "any.db", Schema({"x": column}))
    assert source.exact_counts([("x",)])[0].values.tolist() == [0, 1, 2, 1, 2, 1]


def test_a_lazy_frame_computes_only_what_is_needed() -> None:
    """A column that the schema does not name may fail; one that it names must be there."""
    frame = pl.LazyFrame({"age": [1, 2]}).with_columns(
        bad=pl.col("age").cast(pl.String).str.to_date()
    )
    schema = Schema({"age": Integer(low=0, high=3)})
    assert jn.read_table(frame, schema).exact_counts([("age",)])[0].values.tolist() == [0, 1, 1, 0]
    with pytest.raises(InvalidInput, match="got none for pay"):
        jn.read_table(frame, Schema({"pay": Integer(low=0, high=3)}))


# The day that each zoned text or value shows in its own zone; in UTC it is another one.
ZONED = {
    "2024-01-01T23:30:00-05:00": dt.date(2024, 1, 1),
    "2024-01-03T00:30:00+05:00": dt.date(2024, 1, 3),
    "2024-01-05 23:30:00+00:00": dt.date(2024, 1, 5),
}
DAYS = Schema({"at": Date(low=dt.date(2024, 1, 1), high=dt.date(2024, 1, 6), period="day")})  # type: ignore[arg-type]


def instants(zone: str, unit: str = "us") -> pa.Table:
    """One instant late in the evening of 2 January in New York."""
    late = dt.datetime(2024, 1, 3, 2, 30, tzinfo=dt.UTC)
    return pa.table({"at": pa.array([late], pa.timestamp(unit, zone))})


def test_zoned_texts_keep_the_day_that_they_show(tmp_path: Path) -> None:
    """The day is the one written down, not that of another zone."""
    (tmp_path / "table.csv").write_text("\n".join(["at", *ZONED]))
    expected = [float(dt.date(2024, 1, n) in ZONED.values()) for n in range(1, 7)]
    for table in (tmp_path / "table.csv", pa.table({"at": list(ZONED)})):
        assert DuckDB(table, DAYS).exact_counts([("at",)])[0].values.tolist() == expected


@pytest.mark.parametrize(("zone", "day"), [("America/New_York", 2), ("UTC", 3), ("-05:00", 2)])
def test_zoned_values_have_the_day_of_their_zone(zone: str, day: int, tmp_path: Path) -> None:
    """In memory, in Parquet files, and in frames of Polars."""
    pq.write_table(instants(zone), tmp_path / "table.parquet")
    tables: list[Any] = [instants(zone), instants(zone, "ns"), tmp_path / "table.parquet"]
    if "/" in zone:
        tables.append(pl.from_arrow(instants(zone)))
    for table in tables:
        counts = DuckDB(table, DAYS).exact_counts([("at",)])[0].values
        assert counts.nonzero()[0].tolist() == [day - 1]


CODED: list[tuple[Column, list[str | None], list[int]]] = [
    (
        Integer(low=0, high=9, missing=True, missing_values=("NA", -9, 7)),
        ["3", "NA", "-9", "-9.0", "7", None],
        [3, 10, 10, 10, 10, 10],
    ),
    (
        Number(edges=(0.0, 1.0, 2.0), missing=True, outside=Outside.NEAREST, missing_values=("?",)),
        ["0.5", "?", "5", None],
        [0, 2, 1, 2],
    ),
    (
        Categorical(
            values=("a", "null"), missing=True, outside=Outside.CODE, missing_values=("null",)
        ),
        ["a", "null", "NULL", None],
        [0, 2, 3, 2],
    ),
    (Boolean(missing=True, missing_values=("it's",)), ["true", "it's", None], [1, 2, 2]),
    (
        Date(low=dt.date(2024, 1, 1), high=dt.date(2024, 3, 1), missing=True,
             missing_values=("1900-01-01", 0)),
        ["2024-02-01", "1900-01-01", "0"],
        [1, 3, 3],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("column", "values", "codes"), CODED)
def test_listed_values_are_missing(
    column: Column, values: list[str | None], codes: list[int]
) -> None:
    """Texts letter by letter, numbers by their size; even where they would be regular values."""
    source = DuckDB(pa.table({"x": pa.array(values, pa.string())}), Schema({"x": column}))
    counts = source.exact_counts([("x",)])[0].values
    assert counts.tolist() == [codes.count(code) for code in range(len(counts))]


@pytest.mark.slow
def test_spark_agrees(spark: Any) -> None:
    """The same missing values, the same days of zoned texts, the same words of refusal."""
    from juncture.private.sources.spark import Spark  # noqa: PLC0415

    for column, values, codes in CODED:
        frame = spark.createDataFrame([(value,) for value in values], "x STRING")
        counts = Spark(frame, Schema({"x": column})).exact_counts([("x",)])[0].values
        assert counts.tolist() == [codes.count(code) for code in range(len(counts))]
    frame = spark.createDataFrame([(text,) for text in ZONED], "at STRING")
    expected = [float(dt.date(2024, 1, n) in ZONED.values()) for n in range(1, 7)]
    assert Spark(frame, DAYS).exact_counts([("at",)])[0].values.tolist() == expected
    wrong = spark.createDataFrame([("one", "5"), ("2", None)], "x STRING, y STRING")
    with pytest.raises(InvalidInput, match=REFUSAL):
        Spark(wrong, STRICT)


STRICT = Schema({"x": Integer(low=0, high=4), "y": Integer(low=0, high=4)})
REFUSAL = (
    "got 1 rows of 'x' that are not a number, 1 rows of 'y' that are outside its domain and 1 rows "
    "of 'y' that are missing. .*`missing_values`.*`outside`.*`missing` to true"
)


def test_all_columns_are_refused_at_once() -> None:
    """One error says everything that is wrong, and calls a word among numbers not a number."""
    with pytest.raises(InvalidInput, match=REFUSAL):
        DuckDB(pa.table({"x": ["one", "2"], "y": ["5", None]}), STRICT)
    nearest = Integer(low=0, high=4, outside=Outside.NEAREST)
    with pytest.raises(InvalidInput, match="got 1 rows of 'x' that are not a number. "):
        DuckDB(pa.table({"x": ["one", "9"]}), Schema({"x": nearest}))


def test_a_check_counts_what_a_release_would_not_refuse() -> None:
    """Also values that have a code of their own, or that the nearest one stands for."""
    schema = Schema(
        {
            "x": Integer(low=0, high=4, missing=True, outside=Outside.NEAREST),
            "y": Categorical(values=("a",), outside=Outside.CODE, missing_values=("?",)),
            "z": Boolean(),
        }
    )
    table = pa.table({"x": ["9", None, "1", "one"], "y": ["a", "b", "?", "c"], "w": [1, 2, 3, 4]})
    found = exact_check(table, schema)
    assert found.mismatches == {"x": Mismatch(1, 1, 1), "y": Mismatch(0, 2, 1)}
    assert (found.n_records, found.absent, found.extra) == (4, ("z",), ("w",))
    assert found.refused == ("z", "x", "y")
