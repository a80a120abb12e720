"""Synthetic records for people: tables of values, files and streams, all the same records."""

from __future__ import annotations

import datetime as dt
import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from juncture.errors import InvalidInput, ModelTooLarge
from juncture.model import sampling
from juncture.model.model import Model
from juncture.publish.records import write_records
from juncture.publish.release import Release
from juncture.tables.codebook import OUTSIDE, Codebook, Coding
from juncture.tables.columns import Boolean, Categorical, Date, Integer, Number, Outside
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.records import Records
from juncture.tables.schema import Schema

SCHEMA = Schema(
    {
        "city": Categorical(values=("Bern", "Basel"), missing=True, outside=Outside.CODE),
        "level": Categorical(values=(3, 1)),
        "member": Boolean(),
        "age": Integer(low=10, high=29, width=10),
        "pay": Number(edges=(0.0, 0.5, 9.0), missing=True),
        "since": Date(low=dt.date(2020, 1, 1), high=dt.date(2020, 3, 31)),
    }
)
BOOK = Codebook({"city": Coding(("x", None, 7, (0.0, 1.0))), "level": Coding(("lo", "hi"))})
METHODS = ["synthesize", "sample"]


def release(schema: Schema | None = SCHEMA, codebook: Codebook | None = None) -> Release:
    """A model of independent attributes, all values alike."""
    domain = SCHEMA.domain
    first = Factor(domain.project(("city",)), np.zeros(domain["city"]))
    model = Model.of_potentials(domain, [first], total=400.0)
    return Release(
        model=model if codebook is None else model.with_codebook(codebook), schema=schema
    )


RELEASES = {
    "schema": release(),
    "codebook": release(None, BOOK),
    "codes": release(None),
}


def test_values_are_inside_the_schema(tmp_path: Path) -> None:
    """Every column has its type, and its values lie where the schema says."""
    assert write_records(release(), tmp_path / "r.parquet", rng=0) == 400
    read = pq.read_table(tmp_path / "r.parquet")
    kinds = [pa.string(), pa.int64(), pa.bool_(), pa.int64(), pa.float64(), pa.date32()]
    assert read.schema.types == kinds
    table = read.to_pydict()
    assert set(table["city"]) == {"Bern", "Basel", None, "(outside)"}
    assert set(table["level"]) == {1, 3}
    assert set(table["member"]) == {False, True}
    assert min(table["age"]) >= 10
    assert max(table["age"]) <= 29
    assert all(pay is None or 0.0 <= pay < 9.0 for pay in table["pay"])
    assert all(dt.date(2020, 1, 1) <= day <= dt.date(2020, 3, 31) for day in table["since"])


def test_values_belong_to_their_codes() -> None:
    """The value of every record, put back into the schema's bins, has the record's code."""
    records = release().sample(500, rng=1)
    table = records.to_arrow().to_pydict()
    for code, value in zip(records["age"], table["age"], strict=True):
        assert value // 10 - 1 == code
    for code, value in zip(records["pay"], table["pay"], strict=True):
        assert (2 if value is None else int(value >= 0.5)) == code
    for code, value in zip(records["since"], table["since"], strict=True):
        assert value.month - 1 == code
    for code, value in zip(records["city"], table["city"], strict=True):
        assert value == ("Bern", "Basel", None, "(outside)")[code]
    assert len(set(table["pay"])) > 100  # not one number for a bin


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_one_seed_gives_one_set_of_records(
    name: str, method: str, suffix: str, tmp_path: Path
) -> None:
    """A file, in chunks of any size, holds what the release gives in memory."""
    made, n = RELEASES[name], 45_000
    expected = getattr(made, method)(n, rng=5).to_arrow()
    files = []
    for chunk_size in (7_001, 100_000):
        path = tmp_path / f"{chunk_size}.{suffix}"
        write_records(made, path, n, rng=5, method=method, chunk_size=chunk_size)
        files.append(io.BytesIO(path.read_bytes()))
    made.write_records(tmp_path / f"r.{suffix}", n, rng=5, method=method)
    files.append(io.BytesIO((tmp_path / f"r.{suffix}").read_bytes()))
    if suffix == "parquet":
        assert all(pq.read_table(file).equals(expected) for file in files)
    else:
        options = pc.ConvertOptions(
            column_types=expected.schema, strings_can_be_null=True, null_values=[""]
        )
        assert all(pc.read_csv(file, convert_options=options).equals(expected) for file in files)


def test_another_seed_gives_other_records() -> None:
    """Codes and the numbers inside their bins both depend on the seed."""
    one, other = (release().synthesize(50, rng=seed).to_arrow() for seed in (1, 2))
    assert one["level"] != other["level"]
    assert one["pay"] != other["pay"]


def test_records_are_a_mapping_of_codes() -> None:
    """Whatever takes a dictionary of columns takes records, and a copy decodes like them."""
    records = release().sample(30, rng=0)
    assert isinstance(records, dict)
    assert list(records) == list(SCHEMA.columns)
    assert records["city"].dtype == np.int32
    assert records.n_records == 30
    assert release().model.log_probability(records).shape == (30,)
    again = release().model.sample(given={name: records[name] for name in ("city", "age")}, rng=1)
    assert (again["age"] == records["age"]).all()
    assert pickle.loads(pickle.dumps(records)).to_arrow().equals(records.to_arrow())


def test_decoding_is_repeatable() -> None:
    """The numbers inside bins are the same each time that the same records are decoded."""
    records = release().sample(100, rng=np.random.default_rng(3))
    assert records.to_arrow().equals(records.to_arrow())


def test_without_a_schema_codes_or_labels(tmp_path: Path) -> None:
    """Codes stand for themselves; a codebook's words take their place; mixed ones become text."""
    write_records(release(schema=None), tmp_path / "codes.parquet", rng=0)
    codes = pq.read_table(tmp_path / "codes.parquet").to_pydict()
    assert set(codes["city"]) == {0, 1, 2, 3}
    write_records(release(None, BOOK), tmp_path / "words.parquet", rng=0)
    words = pq.read_table(tmp_path / "words.parquet").to_pydict()
    assert set(words["city"]) == {"x", None, "7", "[0, 1)"}
    assert set(words["level"]) == {"lo", "hi"}


@pytest.mark.parametrize(
    ("meanings", "kind"),
    [
        ((1, 2), pa.int64()),
        ((1, 2.5), pa.float64()),
        ((True, False), pa.bool_()),
        ((1, OUTSIDE), pa.string()),
        ((1, 2**70), pa.string()),
        ((None, "a"), pa.string()),
    ],
)
def test_labels_of_one_kind_keep_it(meanings: tuple[Any, ...], kind: pa.DataType) -> None:
    """Numbers stay numbers beside missing values; what no number can hold becomes text."""
    codes = np.array([1, 0, 1], dtype=np.int32)
    records = Records({"a": codes}, codebook=Codebook({"a": Coding(meanings)}))
    column = records.to_arrow()["a"]
    assert column.type == kind
    labels = Coding(meanings).labels
    expected = [labels[code] for code in codes]
    texts = [None if label is None else str(label) for label in expected]
    assert column.to_pylist() == (texts if kind == pa.string() else expected)


def test_pandas_gets_the_same_values() -> None:
    """A frame has the values of the Arrow table, dates as timestamps."""
    records = release().sample(40, rng=0)
    frame, table = records.to_pandas(), records.to_arrow().to_pydict()
    assert list(frame.columns) == list(table)
    assert frame["age"].tolist() == table["age"]
    assert [day.date() for day in frame["since"]] == table["since"]
    assert frame["pay"].isna().tolist() == [value is None for value in table["pay"]]


@pytest.mark.slow
def test_without_pandas_one_is_told_what_to_install() -> None:
    """Nothing of ours needs pandas until a frame is asked for, and then it is named."""
    script = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from juncture import Domain, Factor, JunctureError, Model
model = Model.of_potentials(Domain({"a": 2}), [])
model.sample(3).to_arrow()
for each in (model.sample(3), model.project(("a",)), model.sql("SELECT COUNT(*) FROM t")):
    try:
        each.to_pandas()
    except JunctureError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("pip install pandas") == 3


def test_matched_records_have_the_counts_of_the_model(tmp_path: Path) -> None:
    """By default four cities of one probability get a hundred records each, up to rounding."""
    write_records(release(schema=None), tmp_path / "r.parquet", rng=0)
    counts = np.bincount(pq.read_table(tmp_path / "r.parquet")["city"].to_numpy())
    assert np.abs(counts - 100).max() <= 1


def test_chunks_are_counted(tmp_path: Path) -> None:
    """Whoever watches is told of every chunk, and all records are there."""
    seen = []
    n = 600_000
    release(schema=None).write_records(
        tmp_path / "r.parquet", n, rng=0, method="sample",
        watch=lambda _what, done, most: seen.append((done, most)),
    )  # fmt: skip
    assert seen == [(0, n), (250_000, n), (500_000, n), (n, n)]
    assert pq.read_metadata(tmp_path / "r.parquet").num_rows == n


@pytest.mark.slow
def test_draws_take_constant_memory(tmp_path: Path) -> None:
    """Ten times the chunks need no more memory at their peak than one chunk, up to a quarter."""
    script = """
import resource, sys
import numpy as np
from juncture import Domain, Factor, Model, Release
from juncture.publish.records import write_records
domain = Domain({f"x{i}": 10 for i in range(20)})
release = Release(model=Model.of_potentials(domain, [Factor.full(domain.project(("x0",)), 0.0)]))
for n in (100_000, 1_000_000):
    write_records(release, sys.argv[1], n, method="sample", chunk_size=100_000)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    command = [sys.executable, "-c", script, str(tmp_path / "r.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    small, large = map(int, done.stdout.split())
    assert large < 1.25 * small


def test_more_matched_records_than_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit is refused before any is made, with the way that needs no memory."""
    monkeypatch.setattr(sampling, "free_memory_bytes", lambda: 1 << 26)
    with pytest.raises(ModelTooLarge, match='method="sample"'):
        release().write_records(tmp_path / "r.csv", 3_000_000)
    with pytest.raises(ModelTooLarge, match="must be a number of records that fit"):
        release().model.sample(10**12)
    assert list(tmp_path.iterdir()) == []
    assert release().synthesize(1_000_000).n_records == 1_000_000


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_failed_write_leaves_nothing(suffix: str, tmp_path: Path) -> None:
    """Whatever stops the writing, also the user, leaves no file behind."""

    def stop(_what: str, done: int, _all: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release().write_records(tmp_path / f"r.{suffix}", 100, watch=stop)
    assert not list(tmp_path.iterdir())


def test_slips_are_refused(tmp_path: Path) -> None:
    """Another ending, an unknown method and empty chunks get clear errors; nothing is written."""
    with pytest.raises(InvalidInput, match="must end in .csv or .parquet"):
        write_records(release(), tmp_path / "r.xlsx")
    with pytest.raises(InvalidInput, match="`method` must be one of synthesize, sample"):
        write_records(release(), tmp_path / "r.csv", method="guess")
    with pytest.raises(InvalidInput, match="`chunk_size` must be at least 1"):
        write_records(release(), tmp_path / "r.csv", chunk_size=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", RELEASES)
def test_an_empty_file_has_its_columns(name: str, tmp_path: Path) -> None:
    """No records at all still make a table with names."""
    assert write_records(RELEASES[name], tmp_path / "r.csv", 0) == 0
    assert (tmp_path / "r.csv").read_text().count('"') == 2 * len(SCHEMA.columns)
    assert RELEASES[name].sample(0).to_arrow().num_rows == 0


def test_a_domain_is_used(tmp_path: Path) -> None:
    """A model without cliques has all its attributes in the file."""
    empty = Release(model=Model.of_potentials(Domain({"x": 2, "y": 3}), [], total=6.0))
    write_records(empty, tmp_path / "r.parquet")
    assert pq.read_table(tmp_path / "r.parquet").column_names == ["x", "y"]
