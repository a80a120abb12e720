"""Schemas: TOML there and back, every slip named, codes decoded to values inside their bins."""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from juncture.errors import InvalidInput, NotPublic, UnreadableFile
from juncture.private.draft import exact_draft
from juncture.private.sources.duck import DuckDB
from juncture.tables.arrow import RecordDecoder
from juncture.tables.codebook import OUTSIDE
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
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import parse_schema, read_schema, schema_toml

LOW, HIGH = dt.date(2020, 2, 10), dt.date(2021, 3, 5)
SCHEMA = Schema(
    {
        "city": Categorical(values=("Bern", 'say "x"', "Zürich\\"), missing=True),
        "level": Categorical(values=(3, 1, 2), outside=Outside.CODE),
        "is member": Boolean(),
        "age": Integer(low=-5, high=30, missing=True, outside=Outside.NEAREST),
        "decade": Integer(low=0, high=99, width=10),
        "income": Number(edges=(0.1, 0.30000000000000004, 1e300), outside=Outside.CODE),
        "joined": Date(low=LOW, high=HIGH, missing=True, outside=Outside.CODE),
        "left": Date(low=LOW, high=HIGH, period=Period.QUARTER),
        "day": Date(low=LOW, high=dt.date(2020, 2, 20), period=Period.DAY),
        "week": Date(low=LOW, high=HIGH, period=Period.WEEK),
        "year": Date(low=LOW, high=HIGH, period=Period.YEAR),
        "rate": Number.evenly(0.0, 0.7, 7),
        "score": Integer(low=0, high=9, missing=True, missing_values=("NA", "", -9, 9.5)),
    }
)


@pytest.mark.parametrize("drafted", [False, True])
def test_toml_round_trip(tmp_path: Path, drafted: bool) -> None:
    """Everything comes back, odd characters and exact edges included; drafts stay drafts."""
    schema = Schema(SCHEMA.columns, drafted=drafted)
    path = tmp_path / "schema.toml"
    path.write_text(schema_toml(schema), encoding="utf-8")
    found = read_schema(path)
    assert found.columns == schema.columns
    assert (found.drafted, found.is_public) == (drafted, not drafted)
    if drafted:
        path.write_text(
            path.read_text().replace("confirmed_public = false", "confirmed_public = true")
        )
        assert read_schema(path).is_public


def test_domain_and_codebook() -> None:
    """Regular codes first, then missing, then outside; periods in words."""
    assert SCHEMA.domain["city"] == 4
    assert SCHEMA.domain["joined"] == 14 + 2
    assert SCHEMA.codebook["city"].meanings == ("Bern", 'say "x"', "Zürich\\", None)
    assert SCHEMA.codebook["level"].meanings == (3, 1, 2, OUTSIDE)
    assert SCHEMA.codebook["decade"].labels[0] == "[0, 10)"
    assert SCHEMA.codebook["joined"].labels[:2] == ("2020-02", "2020-03")
    quarters = ("2020-Q1", "2020-Q2", "2020-Q3", "2020-Q4", "2021-Q1")
    assert SCHEMA.codebook["left"].labels == quarters
    assert SCHEMA.codebook["year"].labels == ("2020", "2021")
    assert SCHEMA.codebook["week"].labels[1] == "2020-02-17/2020-02-23"
    assert SCHEMA.columns["day"].n_regular == 11


def test_decoded_values_encode_to_the_same_codes() -> None:
    """Numbers and dates are drawn inside their bins; special codes become missing values."""
    rng = np.random.default_rng(0)
    records = {
        name: rng.integers(0, column.n_regular, 300).astype(np.int32)
        for name, column in SCHEMA.columns.items()
    }
    values = SCHEMA.decode(records, rng=1)
    found = DuckDB(pa.table(values), SCHEMA).exact_codes()
    for name, codes in records.items():
        (counts,) = found.exact_counts([(name,)])
        expected = np.bincount(codes, minlength=SCHEMA.domain[name])
        np.testing.assert_array_equal(counts.values, expected)
    special = {"age": np.array([36], np.int32), "joined": np.array([14, 15], np.int32)}
    assert SCHEMA.decode(special) == {"age": [None], "joined": [None, None]}


GOOD = {"format": "juncture schema", "version": 1}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "must begin with format"),
        ({**GOOD, "version": 9}, "must begin with format .*Upgrade"),
        ({**GOOD, "missing_values": "NA"}, "`missing_values` must be a list of texts"),
        (
            {**GOOD, "columns": {"x": {"kind": "boolean", "missing_values": [True]}}},
            "Column 'x'.*list",
        ),
        (GOOD, "a table \\[columns.NAME\\]"),
        ({**GOOD, "columns": {"x": 3}}, "Column 'x': `columns` must be tables"),
        ({**GOOD, "columns": {"x": {}}}, "`kind` must be one of categorical, boolean"),
        ({**GOOD, "columns": {"x": {"kind": "text"}}}, "`kind` must be one of"),
        ({**GOOD, "columns": {"x": {"kind": "integer", "low": 1}}}, "Column 'x'.*high"),
        ({**GOOD, "columns": {"x": {"kind": "boolean", "typo": 1}}}, "Column 'x'.*typo"),
        ({**GOOD, "columns": {"x": {"kind": "integer", "low": 5, "high": 1}}}, "make a range"),
        ({**GOOD, "columns": {"x": {"kind": "integer", "low": 0.5, "high": 1}}}, "whole numbers"),
        ({**GOOD, "columns": {"x": {"kind": "number", "edges": [1, 1]}}}, "each larger"),
        (
            {**GOOD, "columns": {"x": {"kind": "number", "low": 2, "high": 1, "bins": 3}}},
            "must make bins",
        ),
        ({**GOOD, "columns": {"x": {"kind": "categorical", "values": []}}}, "all of one kind"),
        ({**GOOD, "columns": {"x": {"kind": "categorical", "values": ["a", 1]}}}, "of one kind"),
        ({**GOOD, "columns": {"x": {"kind": "categorical", "values": ["a", "a"]}}}, "twice"),
        (
            {**GOOD, "columns": {"x": {"kind": "boolean", "outside": "nearest"}}},
            "values without an order",
        ),
        ({**GOOD, "columns": {"x": {"kind": "boolean", "outside": "maybe"}}}, "must be one of"),
        ({**GOOD, "columns": {"x": {"kind": "date", "low": "2020"}}}, "without quotes"),
        (
            {**GOOD, "columns": {"x": {"kind": "date", "low": LOW, "high": HIGH, "period": "era"}}},
            "`period` must be one of day, week, month, quarter, year; got 'era'",
        ),
        (
            {**GOOD, "columns": {"x": {"kind": "number", "low": 0}}},
            "Column 'x': must have the entries 'high' and 'bins'",
        ),
        (
            {**GOOD, "columns": {"x": {"kind": "date", "low": HIGH, "high": LOW}}},
            "must not be after",
        ),
        (
            {**GOOD, "columns": {"x": {"kind": "boolean"}}, "origin": {"confirmed_public": 1}},
            "`confirmed_public` must be true or false",
        ),
    ],
)
def test_slips_are_named(content: dict[str, Any], words: str) -> None:
    """With the column and what to write instead."""
    with pytest.raises(InvalidInput, match=words):
        parse_schema(content)


def test_missing_values_of_the_whole_table() -> None:
    """They hold for columns that say nothing themselves, and take no listed value away."""
    text = """
    format = "juncture schema"
    version = 2
    missing_values = ["NA", "?"]
    [columns.age]
    kind = "number"
    low = 0
    high = 1
    bins = 2
    [columns.country]
    kind = "categorical"
    values = ["NA", "ZA"]
    [columns.level]
    kind = "integer"
    low = 0
    high = 3
    missing_values = [-1]
    """
    found = parse_schema(tomllib.loads(text))
    values = [column.missing_values for column in found.columns.values()]
    assert values == [("NA", "?"), ("?",), (-1,)]
    assert parse_schema(tomllib.loads(schema_toml(found))) == found


def test_unreadable_files(tmp_path: Path) -> None:
    """Absent files and files that are no TOML."""
    with pytest.raises(UnreadableFile, match="can be read"):
        read_schema(tmp_path / "nothing.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("[columns\n")
    with pytest.raises(UnreadableFile, match=r"valid TOML; got .*bad.toml: .*line 1.* Fix that"):
        read_schema(bad)


def test_a_draft_is_marked_and_fits_its_data(tmp_path: Path) -> None:
    """Every column that can be described is, free text is left out, and nothing is public yet."""
    rng = np.random.default_rng(0)
    n = 1000
    table = pa.table(
        {
            "city": rng.choice(["Bern", "Basel"], n),
            "age": rng.integers(17, 90, n),
            "pay": rng.integers(0, 100_000, n),
            "rate": rng.normal(size=n),
            "member": rng.random(n) < 0.5,
            "joined": [LOW + dt.timedelta(days=int(d)) for d in rng.integers(0, 300, n)],
            "name": [f"person {i}" for i in range(n)],
            "empty": pa.nulls(n, pa.float64()),
        }
    )
    pq.write_table(table, tmp_path / "table.parquet")
    schema = exact_draft(tmp_path / "table.parquet")
    assert list(schema.columns) == ["city", "age", "pay", "rate", "member", "joined"]
    assert schema.drafted
    assert not schema.is_public
    kinds: list[type[Column]] = [Categorical, Integer, Integer, Number, Boolean, Date]
    assert [type(column) for column in schema.columns.values()] == kinds
    assert max(schema.domain.values()) <= 201
    assert DuckDB(tmp_path / "table.parquet", schema).exact_n_records == n
    assert "made by looking at private data" in schema_toml(schema)
    assert "confirmed_public = false" in schema_toml(schema)


def test_slips_in_python_are_named() -> None:
    """Texts for choices are taken, others refused; dates have no time and an end."""
    assert Integer(low=0, high=3, outside="code").outside is Outside.CODE  # type: ignore[arg-type]
    for make, words in (
        (lambda: Boolean(missing="no"), "`missing` must be true or false"),  # type: ignore[arg-type]
        (lambda: Boolean(outside="x"), "`outside` must be one of"),  # type: ignore[arg-type]
        (lambda: Date(low=LOW, high=dt.date(9999, 12, 31)), "of the years 2 to 9998"),
        (lambda: Date(low=dt.datetime(2020, 1, 1), high=HIGH), "without a time"),
    ):
        with pytest.raises(InvalidInput, match=words):
            make()


def test_a_draft_leaves_out_what_it_cannot_describe() -> None:
    """And says nothing of the values in it."""
    sql = "SELECT 9007199254740995 AS id, 3 AS level UNION ALL SELECT 123, 4"
    relation: Any = duckdb.sql(sql)
    draft = exact_draft(relation)
    assert list(draft.columns) == ["level"]


def test_a_draft_is_refused_by_the_name_that_it_was_given(tmp_path: Path) -> None:
    """The error names the argument and the file; what is public or confirmed passes."""
    draft = Schema(SCHEMA.columns, drafted=True)
    with pytest.raises(NotPublic, match="^`schema` must be public knowledge; got a draft made"):
        draft.refuse_draft("schema")
    with pytest.raises(NotPublic, match="^`--schema` must be .*; got .*x.toml, a draft made"):
        draft.refuse_draft("--schema", tmp_path / "x.toml")
    SCHEMA.refuse_draft("schema")
    Schema(SCHEMA.columns, drafted=True, confirmed=True).refuse_draft("schema")


def test_a_schema_needs_columns() -> None:
    """Nothing can be counted without any."""
    with pytest.raises(InvalidInput, match="must not be empty"):
        Schema({})


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ('kind = "integer"\nlow = 0\nhigh = 9000000000000000', "at most 1,000,000 values"),
        ('kind = "number"\nlow = 0\nhigh = 1\nbins = 1000000000', "at most 1,000,000 values"),
        ('kind = "integer"\nlow = 0\nhigh = 9\ncolour = 1', "does not know the entry 'colour'"),
        ('kind = "integer"\nlow = 0', "must have the entries 'high'"),
    ],
)
def test_what_no_memory_holds_and_slips_in_names(entries: str, words: str, tmp_path: Path) -> None:
    """Absurd numbers of values are refused before they are made, and wrong entries are named."""
    path = tmp_path / "schema.toml"
    path.write_text(f'format = "juncture schema"\nversion = 1\n[columns.x]\n{entries}\n')
    with pytest.raises(InvalidInput, match=words):
        read_schema(path)


def test_records_write_missing_and_outside_as_the_table_does() -> None:
    """Outside is not missing: each is written by a value of its own where the type can hold one."""
    text = Categorical(values=("a",), missing=True, outside="code", missing_values=("?",))  # type: ignore[arg-type]
    plain = Categorical(values=("a",), missing=True, outside="code", missing_values=(-9,))  # type: ignore[arg-type]
    number = Integer(
        low=0, high=1, missing=True, outside=Outside.CODE, missing_values=("NA", -9),
        outside_value=99,
    )  # fmt: skip
    day = Date(low=LOW, high=HIGH, missing=True, outside=Outside.CODE, outside_value=dt.date.max)
    schema = Schema({"text": text, "plain": plain, "number": number, "day": day})
    codes = {name: np.arange(c.n_regular, c.n_regular + 2) for name, c in schema.columns.items()}
    records = {name: each.astype(np.int32) for name, each in codes.items()}
    expected = {
        "text": ["?", "(outside)"],
        "plain": [None, "(outside)"],
        "number": [-9, 99],
        "day": [None, dt.date.max],
    }
    assert schema.decode(records) == expected
    table = RecordDecoder(schema.columns, None, schema).decode(records)
    assert table.to_pydict() == expected
    assert parse_schema(tomllib.loads(schema_toml(schema))) == schema
    again = DuckDB(table, schema).exact_codes()
    for name, wanted in codes.items():
        counts = again.exact_counts([(name,)])[0].values
        assert counts[wanted].tolist() == [1.0, 1.0], name


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (lambda: Integer(low=0, high=1, outside_value=5), "must come with outside = 'code'"),
        (lambda: Integer(low=0, high=1, outside=Outside.CODE, outside_value="x"), "can hold"),
        (lambda: Integer(low=0, high=1, outside=Outside.CODE, outside_value=0.5), "can hold"),
    ],
)
def test_a_value_for_outside_must_fit(column: Callable[[], Column], words: str) -> None:
    """What no record could hold, or no code stands for, is refused."""
    with pytest.raises(InvalidInput, match=words):
        column()


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ("edges = [3, 2]", "`edges` must be at least two whole numbers, each larger"),
        ("edges = [0, 1, 1, 5]", "`edges` must be at least two whole numbers, each larger"),
        ('edges = "no"', "`edges` must be at least two whole numbers"),
        ("edges = [0, 1.5]", "`edges` must be at least two whole numbers"),
        ("edges = [0, 10]\nspecial = 3", "`special` must be a list of whole numbers; got 3"),
        ("low = 0\nhigh = 5\nspecial = [2.5]", "`special` must be a list of whole numbers"),
        ("edges = [0, 1, 9]\nspecial = [0]", "must not have a number that is a bin of its own"),
        ("edges = [0, 5, 9]\nmeans = [1]", "one number for each of the 2 bins; got 1"),
        ("edges = [0, 5, 9]\nmeans = [1, 3]", "`means` must lie in their intervals"),
    ],
)
def test_slips_in_bins_of_whole_numbers_are_named(entries: str, words: str) -> None:
    """The error is about the entry that a person wrote."""
    text = f'format = "juncture schema"\nversion = 2\n[columns.x]\nkind = "integer"\n{entries}'
    with pytest.raises(InvalidInput, match=words):
        parse_schema(tomllib.loads(text))
