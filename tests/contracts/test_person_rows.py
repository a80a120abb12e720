"""Every engine counts at most so many rows of each person, chosen at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from juncture.errors import InvalidInput
from juncture.private.check import exact_check
from juncture.private.sources.duck import DuckDB
from juncture.private.sources.read import read_table
from juncture.private.sources.source import Source
from juncture.tables.columns import Categorical, Integer
from juncture.tables.person import Person
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import read_schema, schema_toml

LIMIT = 3
# The name of a row's person is an attribute here, for the test alone: codes are never persons.
N_PERSONS = 25
NAMES = tuple(f"p{i}" for i in range(N_PERSONS))
SCHEMA = Schema(
    {"name": Categorical(values=NAMES), "visit": Integer(low=0, high=N_PERSONS)},
    person=Person("patient no", max_rows=LIMIT),
)


def table() -> pa.Table:
    """Person i has i + 1 visits with numbers from 0; rows are in no order."""
    rows = [(f"p{i}", i * 7, j) for i in range(N_PERSONS) for j in range(i + 1)]
    mixed = [rows[k] for k in np.random.default_rng(3).permutation(len(rows))]
    name, patient, visit = zip(*mixed, strict=True)
    return pa.table({"name": name, "patient no": patient, "visit": visit})


def from_memory(_: Any, _folder: Path, raw: pa.Table, schema: Schema) -> Source:
    """Codes in memory."""
    return read_table(raw, schema)


def from_csv(_: Any, folder: Path, raw: pa.Table, schema: Schema) -> Source:
    """A file of texts, by a schema file."""
    pa_csv.write_csv(raw, folder / "raw.csv")
    (folder / "raw.toml").write_text(schema_toml(schema))
    return read_table(folder / "raw.csv", folder / "raw.toml")


def from_parquet(_: Any, folder: Path, raw: pa.Table, schema: Schema) -> Source:
    """Codes that stay in DuckDB."""
    pq.write_table(raw, folder / "raw.parquet")
    return DuckDB(folder / "raw.parquet", schema)


def from_relation(_: Any, _folder: Path, raw: pa.Table, schema: Schema) -> Source:
    """On a connection of the user's, with a seed that others know."""
    connection = duckdb.connect()
    connection.execute("SELECT setseed(0.5)").fetchall()
    return read_table(connection.from_arrow(raw), schema)


def from_spark(request: Any, folder: Path, raw: pa.Table, schema: Schema) -> Source:
    """Counted in Spark."""
    session = request.getfixturevalue("spark")
    pq.write_table(raw, folder / "raw.parquet")
    return read_table(session.read.parquet(str(folder / "raw.parquet")), schema)


Read = Callable[[Any, Path, pa.Table, Schema], Source]
ENGINES: list[Any] = [
    from_memory, from_csv, from_parquet, from_relation,
    pytest.param(from_spark, marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.parametrize("read", ENGINES)
def test_each_person_counts_a_few_times(
    read: Read, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """At most the limit, all rows of those who have no more, and rows that exist, once each."""
    source = read(request, tmp_path, table(), SCHEMA)
    assert source.person == SCHEMA.person
    assert list(source.domain) == ["name", "visit"]
    assert source.exact_n_records == sum(min(LIMIT, i + 1) for i in range(N_PERSONS))
    persons, both, nothing = source.exact_counts([("name",), ("name", "visit"), ()])
    assert persons.values.tolist() == [min(LIMIT, i + 1) for i in range(N_PERSONS)]
    assert float(nothing.values) == source.exact_n_records
    exists = np.tri(N_PERSONS, N_PERSONS + 1)
    assert both.values.max() == 1
    assert (both.values <= exists).all()


@pytest.mark.parametrize("read", ENGINES)
def test_rows_are_chosen_evenly_and_anew(
    read: Read, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Neither the first nor the last rows of a person, nor the same ones in every release."""
    chosen = Counter[int]()
    n, seen = 3 if read is from_spark else 8, set()
    for _ in range(n):
        (both,) = read(request, tmp_path, table(), SCHEMA).exact_counts([("name", "visit")])
        visits = np.flatnonzero(both.values[N_PERSONS - 1])
        seen.add(tuple(visits))
        chosen.update(int(visit) for visit in visits)
    assert len(seen) > 1
    # The mean of 24 visits between 0 and 24, or of 9, lies within so much of 12: one in ten
    # thousand times it does not, but the first visits, or the last, are 11 away.
    mean = sum(visit * times for visit, times in chosen.items()) / (LIMIT * n)
    assert mean == pytest.approx(12.0, abs=6.0 if n == 8 else 9.5)


@pytest.mark.parametrize("read", ENGINES)
@pytest.mark.parametrize("absent", [None, "", "  ", "NA"])
def test_a_row_that_is_nobodys_is_refused(
    read: Read, absent: str | None, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """With their number and never a value."""
    schema = replace(SCHEMA, person=Person("patient no", LIMIT, missing_values=("NA",)))
    raw = table()
    patients = [absent, absent, *map(str, raw["patient no"].to_pylist()[2:])]
    index = raw.column_names.index("patient no")
    raw = raw.set_column(index, "patient no", pa.array(patients, pa.string()))
    with pytest.raises(InvalidInput, match="got 2 without a value in 'patient no'"):
        read(request, tmp_path, raw, schema)


@pytest.mark.parametrize("read", ENGINES)
def test_not_a_number_is_nobody(read: Read, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """As tables of pandas have it for missing numbers."""
    if read is from_csv:
        pytest.skip("files of texts have no such value")
    raw = table()
    numbers = [float("nan"), *map(float, raw["patient no"].to_pylist()[1:])]
    index = raw.column_names.index("patient no")
    raw = raw.set_column(index, "patient no", pa.array(numbers, pa.float64()))
    with pytest.raises(InvalidInput, match="got 1 without a value"):
        read(request, tmp_path, raw, SCHEMA)


def test_errors_in_rows_that_do_not_count_are_found_too() -> None:
    """Whether a table is refused does not depend on chance."""
    raw = table()
    visits = raw["visit"].to_pylist()
    row = next(i for i, name in enumerate(raw["name"].to_pylist()) if name == "p24")
    visits[row] = 999
    broken = raw.set_column(raw.column_names.index("visit"), "visit", pa.array(visits))
    for _ in range(5):
        with pytest.raises(InvalidInput, match="visit"):
            read_table(broken, SCHEMA)


def test_the_column_must_be_there(tmp_path: Path) -> None:
    """And must not be an attribute; a check of the schema says so without a release."""
    plain = table().drop_columns(["patient no"])
    with pytest.raises(InvalidInput, match="got none for patient no"):
        read_table(plain, SCHEMA)
    pq.write_table(plain, tmp_path / "raw.parquet")
    assert exact_check(tmp_path / "raw.parquet", SCHEMA).absent == ("patient no",)
    with pytest.raises(InvalidInput, match="is never released"):
        replace(SCHEMA, person=Person("name", 1))


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ("max_rows = 4", "must have the entries 'column'"),
        ('column = "x"', "must have the entries 'max_rows'"),
        ('column = "x"\nmax_rows = 0', "from 1 to 10,000"),
        ('column = "x"\nmax_rows = 2.5', "from 1 to 10,000"),
        ('column = "x"\nmax_rows = true', "from 1 to 10,000"),
        ('column = ""\nmax_rows = 2', "must be the name of the column"),
        ('column = "x"\nmax_rows = 2\nrows = 3', "does not know the entry 'rows'"),
    ],
)
def test_slips_in_the_schema_are_named(entries: str, words: str, tmp_path: Path) -> None:
    """One line, with what to write instead."""
    path = tmp_path / "visits.toml"
    path.write_text(
        f'format = "juncture schema"\nversion = 3\n[person]\n{entries}\n'
        '[columns.y]\nkind = "boolean"\n'
    )
    with pytest.raises(InvalidInput, match=f"\\[person\\]: .*{words}"):
        read_schema(path)


def test_a_schema_file_keeps_its_person(tmp_path: Path) -> None:
    """Also the default of missing values, which holds for the person too."""
    path = tmp_path / "visits.toml"
    path.write_text(
        'format = "juncture schema"\nversion = 3\nmissing_values = ["NA"]\n'
        '[person]\ncolumn = "who"\nmax_rows = 2\n[columns.y]\nkind = "boolean"\n'
    )
    found = read_schema(path)
    path.write_text(schema_toml(found))
    for schema in (found, read_schema(path)):
        assert schema.person == Person("who", 2)
        assert schema.person is not None
        assert schema.person.missing_values == ("NA",)
