"""Drafts: read in one pass, round, without what identifies people, and with words that teach."""

from __future__ import annotations

import datetime as dt
import math
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from juncture.errors import InvalidInput
from juncture.private.draft import exact_draft, exact_explained_draft
from juncture.private.header import count_doubtful_names
from juncture.private.sources.duck import DuckDB
from juncture.private.sources.files import TableFile
from juncture.tables.columns import Boolean, Categorical, Date, Integer, Number, Period
from juncture.tables.columns.rounding import (
    MAX_DRAFT_BINS,
    even_edges,
    round_dates,
    round_range,
    uneven_edges,
)
from juncture.tables.schema_toml import parse_schema

N = 300


def write(path: Path, columns: dict[str, list[Any]]) -> Path:
    """A CSV file of texts as they stand."""
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join([*lines, ""]))
    return path


@pytest.mark.slow
def test_wide_files(tmp_path: Path) -> None:
    """Many columns are asked about some at a time, and all are described."""
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.integers(0, 50, N).tolist() for i in range(120)}
    path = write(tmp_path / "wide.csv", columns)
    draft = exact_draft(path)
    assert list(draft.columns) == list(columns)
    assert DuckDB(path, draft).exact_n_records == N


def test_types_of_texts(tmp_path: Path) -> None:
    """Numbers, dates, truth values and codes with zeros, beside texts for missing values."""
    columns: dict[str, list[Any]] = {
        "age": [["17", "NA", "45", "80"][i % 4] for i in range(N)],
        "rate": [["0.25", "?", "0.75", "null"][i % 4] for i in range(N)],
        "born": [["1980-02-03", "", "1999-12-31"][i % 3] for i in range(N)],
        "at": [["2024-01-01T23:30:00-05:00", "2024-12-31T23:59:59-05:00"][i % 2] for i in range(N)],
        "ok": [["true", "False", "n/a"][i % 3] for i in range(N)],
        "post code": [["01234", "80331"][i % 2] for i in range(N)],
        "city": [["Bern", "Basel", "NA"][i % 3] for i in range(N)],
        "mixed": [["1", "2", "3", "many"][i % 4] for i in range(N)],
    }
    path = write(tmp_path / "t.csv", columns)
    schema = exact_draft(path)
    assert [type(column) for column in schema.columns.values()] == [
        Integer, Number, Date, Date, Boolean, Categorical, Categorical, Categorical,
    ]  # fmt: skip
    assert {name: column.missing_values for name, column in schema.columns.items()} == {
        "age": ("NA",), "rate": ("?", "null"), "born": (), "at": (), "ok": ("n/a",),
        "post code": (), "city": ("NA",), "mixed": (),
    }  # fmt: skip
    at, city = schema.columns["at"], schema.columns["city"]
    assert isinstance(at, Date)
    assert (at.low, at.high, at.missing) == (dt.date(2024, 1, 1), dt.date(2024, 12, 31), False)
    assert city.regular == ("Basel", "Bern")
    assert city.missing
    assert DuckDB(path, schema).exact_n_records == N


def test_zoned_timestamps_of_an_engine() -> None:
    """They are described by their days, and nothing else has to be installed for it."""
    relation: Any = duckdb.sql("SELECT TIMESTAMPTZ '2024-05-06 12:00:00+00' AS at, 1 AS x")
    column = exact_draft(relation).columns["at"]
    assert isinstance(column, Date)
    assert (column.low, column.high) == (dt.date(2024, 1, 1), dt.date(2024, 12, 31))


def test_a_late_surprise_makes_a_column_text(tmp_path: Path) -> None:
    """A word far behind the sample is found; the file is not blamed for it."""
    values: list[Any] = ["1", "2", "3"] * 40_000 + ["surprise"]
    column = exact_draft(write(tmp_path / "t.csv", {"x": values})).columns["x"]
    assert column.regular == ("1", "2", "3", "surprise")


def test_what_identifies_people_is_left_out(tmp_path: Path) -> None:
    """With the reason, as a comment; amounts that all differ stay."""
    columns: dict[str, list[Any]] = {
        "id": list(range(1000, 1000 + N)),
        "Account-No": [7_000_000 + i * i * 13 for i in range(N)],
        "name": [f"person {i}" for i in range(N)],
        "notes": [f"note {i % 250}" for i in range(N)],
        "pay": [i * i * 7 for i in range(N)],
        "birth date": [f"{1 + i % 28:02}.{1 + i % 12:02}.{1930 + i // 28}" for i in range(N)],
        "none": [""] * N,
        "x": [i % 3 for i in range(N)],
    }
    draft = exact_explained_draft(write(tmp_path / "t.csv", columns))
    assert list(draft.schema.columns) == ["pay", "x"]
    assert {name: reason.split()[0] for name, reason in draft.omitted.items()} == {
        "id": "almost", "Account-No": "almost", "name": "almost", "notes": "free", "none": "no",
        "birth date": "a",
    }  # fmt: skip
    assert "not written as 2024-01-31" in draft.omitted["birth date"]
    assert any("its own value" in remark for remark in draft.remarks["pay"])
    assert not any("its own value" in remark for remark in draft.remarks["x"])
    text = draft.to_toml()
    assert '# "id": almost every record has a value of its own' in text
    assert parse_schema(tomllib.loads(text)) == draft.schema


def test_heavy_tails_get_edges_of_their_own(tmp_path: Path) -> None:
    """No bin but that of a single value holds most records, and the draft says why."""
    rng = np.random.default_rng(0)
    tail = np.round(rng.lognormal(3, 2, 5000), 2)
    gain = np.where(rng.random(5000) < 0.8, 0, rng.integers(1, 9_000_000, 5000))
    path = write(tmp_path / "t.csv", {"tail": tail.tolist(), "gain": gain.tolist()})
    draft = exact_explained_draft(path)
    source = DuckDB(path, draft.schema)
    shares = [each.values / 5000 for each in source.exact_counts([("tail",), ("gain",)])]
    assert shares[0].max() < 0.2
    assert shares[1][0] == (gain == 0).mean()
    assert shares[1][1:].max() < 0.1
    for name in ("tail", "gain"):
        assert any("heavy tail" in remark for remark in draft.remarks[name])
        assert draft.schema.columns[name].n_regular <= MAX_DRAFT_BINS
    kinds = [type(column) for column in draft.schema.columns.values()]
    assert kinds == [Number, Integer]  # whole numbers stay whole


WHOLE = st.integers(-(10**12), 10**12)


@given(WHOLE, WHOLE)
def test_ranges_are_round_and_hold_their_bounds(first: int, second: int) -> None:
    """At most 32 codes; the bounds are multiples of the width, or of five, or few numbers."""
    low, high = sorted((first, second))
    start, end, width = round_range(low, high)
    assert start <= low <= high <= end
    assert -(-(end - start + 1) // width) <= MAX_DRAFT_BINS
    assert end - start + 1 < 10 + 1 or start % max(width, 5) == 0 or (start, end) == (low, high)


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_edges_are_round_and_hold_their_bounds(first: float, second: float) -> None:
    """At most 32 bins of one width."""
    low, high = sorted((first, second))
    edges = even_edges(low, high)
    assert edges[0] <= low + 1e-9 * abs(low)
    assert high <= edges[-1] + 1e-9 * abs(high)
    assert 1 <= len(edges) - 1 <= MAX_DRAFT_BINS
    assert np.all(np.diff(edges) > 0)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=50), st.booleans())
def test_uneven_edges_hold_their_bounds(values: list[float], whole: bool) -> None:
    """They grow, reach around all values, and none is made where even ones will do."""
    numbers = sorted(float(math.floor(v)) if whole else v for v in values)
    edges = uneven_edges(numbers[0], numbers[-1], numbers, whole=whole)
    if edges is not None:
        assert edges[0] <= numbers[0] + 1e-9 * abs(numbers[0])
        assert numbers[-1] <= edges[-1] + 1e-9 * abs(numbers[-1])
        assert all(a < b for a, b in pairwise(edges))
        assert len(edges) - 1 <= MAX_DRAFT_BINS


@pytest.mark.parametrize(
    ("first", "last", "period"),
    [(2024, 2025, "month"), (2015, 2024, "quarter"), (1930, 2024, "year")],
)
def test_dates_are_whole_years(first: int, last: int, period: str) -> None:
    """Few codes, whose first and last day nobody's record gives away."""
    low, high, chosen = round_dates(dt.date(first, 5, 6), dt.date(last, 7, 8))
    assert (low, high, chosen) == (dt.date(first, 1, 1), dt.date(last, 12, 31), period)
    assert Date(low=low, high=high, period=Period(chosen)).n_regular <= 100


def test_a_record_in_place_of_names_is_noticed(tmp_path: Path) -> None:
    """Numbers, dates, repeated names and values of the column; without a header, no name is odd."""
    rows = ["39,1985-02-01,Bern,Bern,0", "40,1990-01-01,Basel,Bern,1", "41,1991-01-01,Bern,Chur,0"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(rows * 30))
    assert exact_explained_draft(path).n_doubtful_names == 5
    bare = exact_explained_draft(TableFile(path, header=False))
    assert bare.n_doubtful_names == 0
    assert list(bare.schema.columns) == [f"column_{i}" for i in range(1, 6)]
    path.write_text("\n".join(["age,born,city,work,x", *rows]))
    assert exact_explained_draft(path).n_doubtful_names == 0
    assert count_doubtful_names(["a", "", "2019", "a"]) == 4


def test_a_table_without_anything_to_describe() -> None:
    """Is refused with what to do."""
    with pytest.raises(InvalidInput, match="Write the schema by hand"):
        exact_draft(pa.table({"x": pa.nulls(3, pa.string())}))
