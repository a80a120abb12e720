"""Every source gives the counts that plain Python gives, missing and outside values included."""

from __future__ import annotations

import datetime as dt
import math
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from juncture.errors import InvalidInput, UnreadableFile
from juncture.private.sources import duck
from juncture.private.sources.duck import DuckDB
from juncture.private.sources.read import read_table
from juncture.private.sources.source import CodedTable, Source
from juncture.tables.columns import (
    Boolean,
    Categorical,
    Column,
    Date,
    Integer,
    Number,
    Outside,
    Period,
)
from juncture.tables.domain import Domain
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import schema_toml

CODE, NEAREST = Outside.CODE, Outside.NEAREST
CITIES = ("Bern", "O'Fallon", 'say "x"', "back\\slash", "Zürich", "")
COLUMNS: dict[str, Column] = {
    "city": Categorical(values=CITIES[:5], missing=True, outside=CODE),
    "level": Categorical(values=(3, 1, 2), missing=True, outside=CODE),
    "member": Boolean(missing=True),
    "age": Integer(low=18, high=30, missing=True, outside=CODE),
    "five years": Integer(low=18, high=31, width=5, missing=True, outside=NEAREST),
    "income": Number(edges=(0.0, 0.1, 0.3, 1.0, 10.0), missing=True, outside=CODE),
    "wealth": Number.evenly(-1.0, 1.0, 7, missing=True, outside=NEAREST),
    "joined": Date(
        low=dt.date(2020, 2, 10), high=dt.date(2021, 3, 5), missing=True, outside=CODE
    ),
    "left": Date(
        low=dt.date(2020, 2, 10), high=dt.date(2021, 3, 5), period=Period.QUARTER, missing=True,
        outside=NEAREST,
    ),
    "week": Date(
        low=dt.date(2020, 2, 10), high=dt.date(2020, 4, 5), period=Period.WEEK, missing=True,
        outside=CODE,
    ),
}  # fmt: skip
SCHEMA = Schema(COLUMNS)
N = 400


def table() -> dict[str, list[Any]]:
    """Raw values: regular ones, missing ones, and ones outside the domain."""
    rng = np.random.default_rng(1)
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 500, N)]
    edge = [0.0, 0.1, 0.3, 1.0, 10.0, -0.5, 10.5, 0.25, 5.0, 0.30000000000000004]
    found: dict[str, list[Any]] = {
        "city": [(*CITIES[:5], "elsewhere")[i] for i in rng.integers(0, 6, N)],
        "level": [int(i) for i in rng.integers(0, 5, N)],
        "member": [bool(i) for i in rng.integers(0, 2, N)],
        "age": [int(i) for i in rng.integers(15, 34, N)],
        "five years": [int(i) for i in rng.integers(10, 40, N)],
        "income": [edge[i] for i in rng.integers(0, len(edge), N)],
        "wealth": [float(x) for x in rng.uniform(-1.5, 1.5, N)],
        "joined": days,
        "left": days[::-1],
        "week": [dt.date(2020, 2, 5) + dt.timedelta(days=int(d)) for d in rng.integers(0, 70, N)],
    }
    for column in found.values():
        for row in rng.integers(0, N, 20):
            column[int(row)] = None
    return found


def code(column: Column, value: Any) -> int:  # noqa: C901, PLR0911
    """The code of a raw value, the plain way."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        assert column.missing_code is not None
        return column.missing_code
    nearest = column.outside is NEAREST
    outside = -1 if column.outside_code is None else column.outside_code
    match column:
        case Categorical():
            return column.values.index(value) if value in column.values else outside
        case Boolean():
            return int(value)
        case Integer():
            inside = min(max(value, column.low), column.high) if nearest else value
            regular = column.low <= inside <= column.high
            return (inside - column.low) // column.width if regular else outside
        case Number():
            edges = column.edges
            inside = min(max(value, edges[0]), edges[-1]) if nearest else value
            if not edges[0] <= inside <= edges[-1]:
                return outside
            return max(i for i in range(column.n_regular) if edges[i] <= inside)
        case Date():
            day = min(max(value, column.low), column.high) if nearest else value
            if not column.low <= day <= column.high:
                return outside
            return max(i for i, start in enumerate(column.starts) if start <= day)
    raise AssertionError


def expected(clique: tuple[str, ...]) -> np.ndarray:
    """The counts of a clique, a record at a time."""
    raw, found = table(), np.zeros(SCHEMA.domain.project(clique).shape)
    for row in range(N):
        found[tuple(code(COLUMNS[name], raw[name][row]) for name in clique)] += 1
    return found


def arrow() -> pa.Table:
    """The table in Arrow."""
    return pa.table(table())


def csv_file(folder: Path) -> Path:
    """As CSV."""
    pa_csv.write_csv(arrow(), folder / "table.csv")
    return folder / "table.csv"


def parquet_folder(folder: Path) -> Path:
    """As a folder of Parquet files."""
    (folder / "parts" / "deeper").mkdir(parents=True)
    pq.write_table(arrow().slice(0, 150), folder / "parts" / "one.parquet")
    pq.write_table(arrow().slice(150), folder / "parts" / "deeper" / "two.parquet")
    return folder / "parts"


def relation(_folder: Path) -> duckdb.DuckDBPyRelation:
    """As a table of the user's own database."""
    connection = duckdb.connect()
    connection.register("arrow_table", arrow())
    connection.execute("CREATE TABLE people AS SELECT * FROM arrow_table")
    return connection.table("people")


DUCK: dict[str, Callable[[Path], Any]] = {
    "pyarrow": lambda _: arrow(),
    "pandas": lambda _: arrow().to_pandas(date_as_object=True),
    "polars": lambda _: pl.from_arrow(arrow()),
    "csv": csv_file,
    "parquet folder": parquet_folder,
    "relation": relation,
}


@pytest.fixture(params=[*DUCK, "memory", pytest.param("spark", marks=pytest.mark.slow)])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    """The same table behind every implementation."""
    if request.param == "spark":
        from juncture.private.sources.spark import Spark  # noqa: PLC0415

        session = request.getfixturevalue("spark")
        pq.write_table(arrow(), tmp_path / "table.parquet")
        return Spark(session.read.parquet(str(tmp_path / "table.parquet")), SCHEMA)
    if request.param == "memory":
        return DuckDB(arrow(), SCHEMA).exact_codes()
    return DuckDB(DUCK[request.param](tmp_path), SCHEMA)


def test_counts(source: Source) -> None:
    """All single columns, some pairs, a triple, a repeated and permuted one, and no column."""
    names = tuple(COLUMNS)
    cliques: list[tuple[str, ...]] = [(name,) for name in names]
    cliques += list(combinations(names, 2))[::7]
    cliques += [("member", "city", "age"), ("age", "member"), ("member", "age"), ()]
    assert source.domain == SCHEMA.domain
    assert source.schema is SCHEMA
    assert source.is_public
    assert source.exact_n_records == N
    for clique, found in zip(cliques, source.exact_counts(cliques), strict=True):
        assert found.domain.attributes == clique
        np.testing.assert_array_equal(found.values, expected(clique))


def test_the_users_database_is_left_as_it_was() -> None:
    """A relation's connection gets a temporary table, and nothing else."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT 20 AS age")
    before = connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary")
    names = before.fetchall()
    DuckDB(connection.table("people"), Schema({"age": Integer(low=18, high=30)}))
    after = connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary")
    assert after.fetchall() == names


def strict(column: Column, values: list[Any]) -> DuckDB:
    """A one-column table under a strict schema."""
    return DuckDB(pa.table({"x": values}), Schema({"x": column}))


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        (Integer(low=0, high=5), [1, 7, 9, 2], "got 2 rows of 'x' that are outside its domain"),
        (Integer(low=0, high=5), [1, None], "got 1 rows of 'x' that are missing"),
        (Integer(low=0, high=5), ["1", "secret"], "got 1 rows of 'x' that are not a number"),
        (Number(edges=(0.0, 1.0)), [0.5, math.inf], "got 1 rows of 'x' that are outside"),
        (Number(edges=(0.0, 1.0)), [0.5, math.nan], "got 1 rows of 'x' that are missing"),
        (Categorical(values=("a", "b")), ["a", "secret"], "got 1 rows of 'x' that are outside"),
        (Boolean(), ["true", "secret"], "got 1 rows of 'x' that are not true or false"),
        (
            Date(low=dt.date(2020, 1, 1), high=dt.date(2020, 12, 31)),
            ["2020-05-01", "secret"],
            "got 1 rows of 'x' that are not a date",
        ),
    ],
)
def test_errors_name_the_column_and_the_count_never_the_value(
    column: Column, values: list[Any], words: str
) -> None:
    """Nothing of a private value is in the message."""
    with pytest.raises(InvalidInput, match=words) as caught:
        strict(column, values)
    assert "secret" not in str(caught.value)


@pytest.mark.slow
def test_spark_refuses_in_the_same_words(spark: Any) -> None:
    """The rules are those of the other engines."""
    from juncture.private.sources.spark import Spark  # noqa: PLC0415

    frame = spark.createDataFrame([(1,), (7,)], "x INT")
    with pytest.raises(InvalidInput, match="got 1 rows of 'x' that are outside its domain"):
        Spark(frame, Schema({"x": Integer(low=0, high=5)}))
    with pytest.raises(InvalidInput, match="got none for y"):
        Spark(frame, Schema({"y": Integer(low=0, high=5)}))


@pytest.mark.parametrize("kind", DUCK)
def test_one_function_reads_every_table(kind: str, tmp_path: Path) -> None:
    """Files, folders, tables in memory and relations are all counted as plain Python does."""
    source = read_table(DUCK[kind](tmp_path), SCHEMA, memory_limit="500MB")
    for clique in (("city",), ("joined", "age")):
        np.testing.assert_array_equal(source.exact_counts([clique])[0].values, expected(clique))


def test_codes_are_counted_in_memory_if_they_fit() -> None:
    """A code is a byte, or four where a column has over 256 values; one byte less is too few."""
    wide = Schema({**COLUMNS, "age": Integer(low=0, high=256, missing=True)})
    for schema, n_bytes in ((SCHEMA, N * len(COLUMNS)), (wide, 4 * N * len(COLUMNS))):
        assert isinstance(read_table(arrow(), schema, max_code_bytes=n_bytes), CodedTable)
        assert isinstance(read_table(arrow(), schema, max_code_bytes=n_bytes - 1), DuckDB)


def test_codes_in_memory_leave_nothing_in_the_users_database() -> None:
    """The temporary table of a relation is dropped once its codes are in memory."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT 20 AS age")
    read_table(connection.table("people"), Schema({"age": Integer(low=18, high=30)}))
    tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert tables == [("people",)]


def test_a_scan_counts_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that passes through memory in pieces of a few records has the counts of the whole."""
    monkeypatch.setattr(duck, "_PIECE_BYTES", 64)
    cliques: list[tuple[str, ...]] = [("city",), ("joined", "age"), (), ("member", "city", "age")]
    for clique, found in zip(cliques, DuckDB(arrow(), SCHEMA).exact_counts(cliques), strict=True):
        np.testing.assert_array_equal(found.values, expected(clique))


def test_a_schema_may_be_given_by_its_file(tmp_path: Path) -> None:
    """A path, as text or not, stands for the schema in it."""
    path = tmp_path / "schema.toml"
    path.write_text(schema_toml(SCHEMA), encoding="utf-8")
    for given in (path, str(path)):
        assert read_table(arrow(), given).schema == SCHEMA


@pytest.mark.slow
def test_a_spark_table_stays_in_spark(spark: Any) -> None:
    """A DataFrame is counted in its session, although Arrow could fetch all of its rows."""
    from juncture.private.sources.spark import Spark  # noqa: PLC0415

    frame = spark.createDataFrame([(1,), (3,), (3,)], "x INT")
    source = read_table(frame, Schema({"x": Integer(low=0, high=3)}))
    assert isinstance(source, Spark)
    assert source.exact_counts([("x",)])[0].values.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (7, "a pandas, Polars or Arrow table, .*; got int\\.$"),
        ({"x": [1]}, "got dict. Pass `pyarrow.table"),
        (np.zeros((2, 2)), "got numpy.ndarray"),
        (pl.Series("x", [1]), "`table` must be one that Arrow can hold; got Series"),
        (pd.DataFrame({"x": [1, "secret"]}), "got DataFrame .*values of one type"),
    ],
)
def test_other_things_are_no_tables(table: Any, words: str) -> None:
    """The error says what is read, what came instead, and nothing of the values."""
    with pytest.raises(InvalidInput, match=words) as caught:
        read_table(table, Schema({"x": Integer(low=0, high=5)}))
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_other_things_are_no_schemas() -> None:
    """A mapping of columns is not taken for a schema."""
    with pytest.raises(InvalidInput, match="`schema` must be a Schema or the path .*; got dict"):
        read_table(arrow(), COLUMNS)  # type: ignore[arg-type]


def test_bad_tables_are_refused(tmp_path: Path) -> None:
    """Absent columns, other files, ragged or missing ones: one line each, with what to do."""
    schema = Schema({"x": Integer(low=0, high=5, missing=True)})
    with pytest.raises(InvalidInput, match="must have every column of the schema; got none for x"):
        DuckDB(pa.table({"y": [1]}), schema)
    with pytest.raises(UnreadableFile, match="an existing file or a folder"):
        DuckDB(tmp_path / "nothing.csv", schema)
    with pytest.raises(UnreadableFile, match="an existing file or a folder"):
        DuckDB(tmp_path, schema)
    odd = tmp_path / "table.xlsx"
    odd.write_text("x")
    with pytest.raises(UnreadableFile, match=r"\.parquet, .* or \.duckdb files of one kind"):
        DuckDB(odd, schema)
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("x,y\n1,2\n3\n4,secret,6,7\n")
    with pytest.raises((UnreadableFile, InvalidInput), match="`table` must") as caught:
        DuckDB(ragged, schema)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 not really")
    with pytest.raises(UnreadableFile, match="that DuckDB can read"):
        DuckDB(torn, schema)
    with pytest.raises(InvalidInput, match="a DuckDB relation or an Arrow table; got int"):
        DuckDB(7, schema)  # type: ignore[arg-type]


def test_a_csv_file_is_read_as_it_stands(tmp_path: Path) -> None:
    """No character is taken for a comment, however the other rows look."""
    schema = Schema({"unit": Categorical(values=("#1", "7"), outside=CODE)})
    path = tmp_path / "units.csv"
    path.write_text("unit,note\n" + "#1,x\n" * 100 + "7,y\n" * 100)
    assert DuckDB(path, schema).exact_n_records == 200
    path.write_text("unit,note\n" + "#1,x\n" * 100 + "7,y\n" * 100 + "z,y\n")
    assert DuckDB(path, schema).exact_counts([("unit",)])[0].values.tolist() == [100, 100, 1]
    path.write_text("Jane Doe,HIV positive\nJohn,none\n")
    with pytest.raises(InvalidInput) as caught:
        DuckDB(path, schema)
    assert "Jane" not in str(caught.value)


@pytest.mark.parametrize("name", ["juncture_count", "a{b}", "{codes}", "a{{x", "n", "c0", 'q"q'])
def test_odd_column_names(name: str) -> None:
    """Names that could be taken for something else."""
    schema = Schema({name: Integer(low=0, high=200), "b": Integer(low=0, high=1)})
    source = DuckDB(pa.table({name: [200, 200, 3], "b": [0, 1, 1]}), schema)
    (counts,) = source.exact_counts([(name,)])
    assert (counts.values[200], counts.values[3], counts.values.sum()) == (2, 1, 3)
    assert source.exact_codes().exact_counts([("b",)])[0].values.tolist() == [1, 2]


def test_only_the_files_that_are_meant(tmp_path: Path) -> None:
    """Copies that programs keep do not count, and no name is a pattern."""
    schema = Schema({"a": Integer(low=0, high=3)})
    (tmp_path / "f" / ".ipynb_checkpoints").mkdir(parents=True)
    (tmp_path / "f" / "x.csv").write_text("a\n1\n")
    (tmp_path / "f" / ".ipynb_checkpoints" / "x.csv").write_text("a\n1\n")
    assert DuckDB(tmp_path / "f", schema).exact_n_records == 1
    (tmp_path / "d[1].csv").write_text("a\n1\n")
    (tmp_path / "d1.csv").write_text("a\n2\n2\n")
    assert DuckDB(tmp_path / "d[1].csv", schema).exact_counts([("a",)])[0].values[1] == 1
    (tmp_path / "h" / "a=3").mkdir(parents=True)
    (tmp_path / "h" / "a=3" / "_p.csv").write_text("a\n0\n")
    assert (
        DuckDB(tmp_path / "h" / "a=3" / "_p.csv", schema).exact_counts([("a",)])[0].values[0] == 1
    )


def test_a_draft_stays_a_draft() -> None:
    """Also when its codes are brought into memory."""
    schema = Schema({"a": Integer(low=0, high=3)}, drafted=True)
    source = DuckDB(pa.table({"a": [1]}), schema)
    assert not source.is_public
    assert not source.exact_codes().is_public
    assert source.exact_codes().schema is schema


def test_threads_may_share_a_source() -> None:
    """Questions wait for each other."""
    source = DuckDB(arrow(), SCHEMA)
    pool = ThreadPoolExecutor(4)
    found = list(pool.map(lambda _: source.exact_counts([("age", "city")])[0].values, range(12)))
    assert all((each == found[0]).all() for each in found)


def test_narrow_types_and_not_a_number() -> None:
    """Differences do not overflow, and not-a-number is missing in every column of numbers."""

    def counts(values: Any, column: Column) -> list[float]:
        source = DuckDB(pa.table({"x": values}), Schema({"x": column}))
        found: list[float] = source.exact_counts([("x",)])[0].values.tolist()
        return found

    wide = Integer(low=-100, high=100, width=67)
    assert counts(pa.array([100, -100, 0], pa.int8()), wide) == [1, 1, 1]
    assert counts([math.nan, 1.0], Integer(low=0, high=1, missing=True, outside=CODE)) == [
        0,
        1,
        1,
        0,
    ]
    assert counts([math.nan, 1.0], Boolean(missing=True)) == [0, 1, 1]
    assert counts([math.nan, 2.0], Categorical(values=(2, 3), missing=True)) == [1, 0, 1]
    with pytest.raises(InvalidInput, match="got 2 rows of 'x' that are outside"):
        counts([7.0, 0.3, 1.0], Boolean())
    with pytest.raises(InvalidInput, match="up to 2\\^53"):
        Categorical(values=(2**53 + 1, 2))


@pytest.mark.slow
def test_spark_does_not_count_an_older_file(spark: Any, tmp_path: Path) -> None:
    """A path that was written anew has new rows."""
    from juncture.private.sources.spark import Spark  # noqa: PLC0415

    schema, path = Schema({"a": Integer(low=0, high=3)}), tmp_path / "t.parquet"
    for rows, expected in (([0, 0, 0], [3, 0, 0, 0]), ([1, 2], [0, 1, 1, 0])):
        pq.write_table(pa.table({"a": rows}), path)
        spark.catalog.refreshByPath(str(path))
        source = Spark(spark.read.parquet(str(path)), schema)
        assert source.exact_counts([("a",)])[0].values.tolist() == expected


def test_an_empty_table_has_no_records() -> None:
    """No rows are no error."""
    empty = DuckDB(pa.table({"x": pa.array([], pa.int64())}), Schema({"x": Integer(low=0, high=2)}))
    assert empty.exact_n_records == 0
    assert empty.exact_counts([("x",), ()])[0].values.sum() == 0


def test_bad_codes_are_refused() -> None:
    """Codes in memory must fit their domain."""
    domain = Domain({"a": 3, "b": 2})
    cases: list[tuple[dict[str, Any], str]] = [
        ({"a": [0]}, "got none for 'b'"),
        ({"a": [0], "b": [2]}, "codes from 0 to 1 for 'b'; got 1 others"),
        ({"a": [-1], "b": [0]}, "codes from 0 to 2 for 'a'"),
        ({"a": [0.5], "b": [0]}, "integer codes"),
        ({"a": [0, 1], "b": [0]}, "one length"),
    ]
    for columns, words in cases:
        with pytest.raises(InvalidInput, match=words):
            CodedTable(domain, columns)
    schema = Schema({"a": Integer(low=0, high=2)})
    with pytest.raises(InvalidInput, match="`schema` must have the domain's attributes"):
        CodedTable(domain, {"a": [0], "b": [0]}, schema)


@pytest.mark.parametrize("n_records", [0, 1, 4095, 4096, 4097, 12_289])
@pytest.mark.parametrize("largest", [3, 300])
def test_records_are_counted_some_at_a_time(n_records: int, largest: int) -> None:
    """Whatever the number of records, of columns, and the type of their codes."""
    domain = Domain({"a": largest, "b": 2, "c": 5, "d": 3})
    rng = np.random.default_rng(n_records)
    columns = {name: rng.integers(0, size, n_records) for name, size in domain.items()}
    cliques = [("b",), ("a", "c"), ("d", "b", "c"), ("c", "a", "d", "b"), ()]
    for clique, table in zip(
        cliques, CodedTable(domain, columns).exact_counts(cliques), strict=True
    ):
        shape = [domain[name] for name in clique]
        expected = np.zeros(shape)
        np.add.at(expected, tuple(columns[name] for name in clique), 1.0 if clique else n_records)
        np.testing.assert_array_equal(table.values, expected)
