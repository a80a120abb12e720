"""Synthetic records in files: values as the table itself would hold them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from juncture.errors import InvalidInput
from juncture.model.model import Model
from juncture.publish.records import write_records
from juncture.publish.release import Release
from juncture.tables.codebook import Codebook, Coding
from juncture.tables.columns import Boolean, Categorical, Date, Integer, Number, Outside
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.schema import Schema

SCHEMA = Schema(
    {
        "city": Categorical(values=("Bern", "Basel"), missing=True, outside=Outside.CODE),
        "level": Categorical(values=(3, 1)),
        "member": Boolean(),
        "age": Integer(low=10, high=29, width=10),
        "pay": Number(edges=(0.0, 0.5, 9.0)),
        "since": Date(low=dt.date(2020, 1, 1), high=dt.date(2020, 3, 31)),
    }
)


def release(schema: Schema | None = SCHEMA, codebook: Codebook | None = None) -> Release:
    """A model of independent attributes, all values alike."""
    domain = SCHEMA.domain
    first = Factor(domain.project(("city",)), np.zeros(domain["city"]))
    model = Model.of_potentials(domain, [first], total=400.0)
    return Release(
        model=model if codebook is None else model.with_codebook(codebook), schema=schema
    )


def test_values_are_inside_the_schema(tmp_path: Path) -> None:
    """Every column has its type, and its values lie where the schema says."""
    assert write_records(release(), tmp_path / "r.parquet", rng=0) == 400
    table = pq.read_table(tmp_path / "r.parquet").to_pydict()
    assert set(table["city"]) == {"Bern", "Basel", None}
    assert set(table["level"]) == {1, 3}
    assert set(table["member"]) == {False, True}
    assert min(table["age"]) >= 10
    assert max(table["age"]) <= 29
    assert all(0.0 <= pay < 9.0 for pay in table["pay"])
    assert all(dt.date(2020, 1, 1) <= day <= dt.date(2020, 3, 31) for day in table["since"])


def test_both_kinds_of_file_hold_the_same(tmp_path: Path) -> None:
    """One seed gives the same records as CSV and as Parquet, and another seed others."""
    for name, seed in (("a.csv", 1), ("a.parquet", 1), ("b.csv", 2)):
        write_records(release(), tmp_path / name, 50, rng=seed)
    first, other = (pc.read_csv(tmp_path / name).to_pydict() for name in ("a.csv", "b.csv"))
    whole = pq.read_table(tmp_path / "a.parquet").to_pydict()
    assert [first[n] for n in ("level", "age", "pay")] == [
        whole[n] for n in ("level", "age", "pay")
    ]
    assert first["pay"] != other["pay"]


def test_without_a_schema_codes_or_labels(tmp_path: Path) -> None:
    """Codes stand for themselves; a codebook's words take their place; mixed ones become text."""
    write_records(release(schema=None), tmp_path / "codes.parquet", rng=0)
    codes = pq.read_table(tmp_path / "codes.parquet").to_pydict()
    assert set(codes["city"]) == {0, 1, 2, 3}
    book = Codebook({"city": Coding(("x", None, 7, (0.0, 1.0))), "level": Coding(("lo", "hi"))})
    write_records(release(None, book), tmp_path / "words.parquet", rng=0)
    words = pq.read_table(tmp_path / "words.parquet").to_pydict()
    assert set(words["city"]) == {"x", None, "7", "[0, 1)"}
    assert set(words["level"]) == {"lo", "hi"}


def test_matched_records_have_the_counts_of_the_model(tmp_path: Path) -> None:
    """Four cities of one probability get a hundred records each, up to rounding."""
    write_records(release(schema=None), tmp_path / "r.parquet", rng=0, matched=True)
    counts = np.bincount(pq.read_table(tmp_path / "r.parquet")["city"].to_numpy())
    assert np.abs(counts - 100).max() <= 1


def test_chunks_are_counted(tmp_path: Path) -> None:
    """Whoever watches is told of every chunk, and all records are there."""
    seen = []
    n = 250_000
    write_records(
        release(schema=None), tmp_path / "r.parquet", n, rng=0,
        watch=lambda _what, done, most: seen.append((done, most)),
    )  # fmt: skip
    assert seen == [(0, n), (100_000, n), (200_000, n), (n, n)]
    assert pq.read_metadata(tmp_path / "r.parquet").num_rows == n


def test_other_kinds_of_file_are_refused(tmp_path: Path) -> None:
    """A name that ends otherwise gets a clear error, and nothing is written."""
    with pytest.raises(InvalidInput, match="must end in .csv or .parquet"):
        write_records(release(), tmp_path / "r.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_has_its_columns(tmp_path: Path) -> None:
    """No records at all still make a table with names."""
    assert write_records(release(), tmp_path / "r.csv", 0) == 0
    assert (tmp_path / "r.csv").read_text().count('"') == 2 * len(SCHEMA.columns)


def test_a_domain_is_used(tmp_path: Path) -> None:
    """A model without cliques has all its attributes in the file."""
    empty = Release(model=Model.of_potentials(Domain({"x": 2, "y": 3}), [], total=6.0))
    write_records(empty, tmp_path / "r.parquet")
    assert pq.read_table(tmp_path / "r.parquet").column_names == ["x", "y"]
