"""Noisy marginals of other systems: every way of writing them gives the same measurement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from juncture.errors import InvalidInput, UnreadableFile
from juncture.publish.noisy_tables import ReadOptions, read_domain, read_measurements
from juncture.tables.codebook import Codebook
from juncture.tables.columns import Boolean, Categorical, Integer, Number, Outside
from juncture.tables.domain import Domain
from juncture.tables.noise import Noise
from juncture.tables.schema import Schema

SCHEMA = Schema(
    {
        "sex": Categorical(values=("f", "m"), missing=True, outside=Outside.CODE),
        "age": Integer(low=17, high=19),
        "pay": Number(edges=(0.0, 10.0, 25.0)),
        "member": Boolean(),
    }
)
READING = ReadOptions(SCHEMA.domain, SCHEMA.codebook.bind(SCHEMA.domain), stddev=2.0)
PLAIN = Domain({"x": 2, "y": 3})


def plain(stddev: float | None = 2.0) -> ReadOptions:
    """How to read tables of codes."""
    return ReadOptions(PLAIN, Codebook.plain(PLAIN), stddev)


def written(folder: Path, name: str, text: str) -> Path:
    """A file with that text."""
    path = folder / name
    path.write_text(text)
    return path


CELLS = [(x, y) for x in range(2) for y in range(3)]
VALUES = [10.5, -3.0, 7.0, 0.25, 1.0, 2.0]


def test_formats_agree(tmp_path: Path) -> None:
    """The same marginal as CSV with rows in another order, Parquet, and JSON is the same."""
    rows = [f"{y},{v},{x}" for (x, y), v in zip(CELLS, VALUES, strict=True)]
    text = "\n".join(["y,value,x", *reversed(rows)])
    table = pa.table({"x": [c[0] for c in CELLS], "y": [c[1] for c in CELLS], "value": VALUES})
    pq.write_table(table, tmp_path / "m.parquet")
    document = {"measurements": [{"clique": ["x", "y"], "values": VALUES}]}
    files = [
        written(tmp_path, "m.csv", text),
        tmp_path / "m.parquet",
        written(tmp_path, "m.json", json.dumps(document)),
    ]
    of_csv, of_parquet, of_json = read_measurements(files, plain())
    assert of_csv.clique == ("y", "x")
    assert np.array_equal(of_csv.values.reshape(3, 2).T.ravel(), VALUES)
    for found in (of_parquet, of_json):
        assert found.clique == ("x", "y")
        assert np.array_equal(found.values, VALUES)
        assert float(found.stddev) == 2.0


def test_words_of_the_schema_name_cells(tmp_path: Path) -> None:
    """Labels, a missing value, numbers inside a bin and truth values find their codes."""
    text = "sex,value\nm,2\n,3\n(outside),4\nf,1\n"
    (found,) = read_measurements([written(tmp_path, "s.csv", text)], READING)
    assert list(found.values) == [1, 2, 3, 4]
    text = 'pay,member,value\n12,true,4\n12,false,3\n"[0, 10)",false,1\n3.5,true,2\n'
    (found,) = read_measurements([written(tmp_path, "p.csv", text)], READING)
    assert list(found.values) == [1, 2, 3, 4]
    (found,) = read_measurements(
        [written(tmp_path, "a.csv", "age,value\n18,2\n17,1\n19,3")], READING
    )
    assert list(found.values) == [1, 2, 3]


def test_each_cell_may_have_its_own_noise(tmp_path: Path) -> None:
    """A column of standard deviations goes with its rows, before the one for all."""
    path = written(tmp_path, "m.csv", "x,value,stddev\n1,20,4\n0,10,3\n")
    (found,) = read_measurements([path], plain())
    assert list(found.values) == [10, 20]
    assert list(found.stddev) == [3, 4]


def test_a_document_says_its_noise(tmp_path: Path) -> None:
    """Kind and scale in the document come before those for all; a bare list will do."""
    entries = [
        {"clique": ["x"], "values": [1, 2], "stddev": [3, 4], "noise": "laplace"},
        {"clique": [], "values": [5]},
    ]
    path = written(tmp_path, "m.json", json.dumps(entries))
    first, second = read_measurements([path], plain())
    assert (first.noise, list(first.stddev)) == (Noise.LAPLACE, [3, 4])
    assert (second.noise, float(second.stddev)) == (Noise.GAUSSIAN, 2.0)
    assert second.clique == ()


def test_a_domain_has_sizes_or_values(tmp_path: Path) -> None:
    """A list of values gives the size and the words; a number gives codes."""
    path = written(tmp_path, "d.json", '{"x": 3, "sex": ["f", "m"]}')
    domain, book = read_domain(path)
    assert domain == Domain({"x": 3, "sex": 2})
    assert book["sex"].labels == ("f", "m")
    assert book["x"].labels == (0, 1, 2)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("m.csv", "x,count\n0,1\n1,2\n", "must have a column 'value'"),
        ("m.csv", "z,value\n0,1\n", "got 'z'"),
        ("m.csv", "x,value\n0,1\n", "each of the 2 cells; got 1 rows for 1"),
        ("m.csv", "x,value\n0,1\n0,2\n", "got 2 rows for 1 cells"),
        ("m.csv", "x,value\n0,1\n1,2\n1,3\n", "got 3 rows for 2 cells"),
        ("m.csv", "x,value\n0,1\n7,2\n", "Column 'x'.*got 7"),
        ("m.csv", "x,value\n0,one\n1,2\n", "`value` must be a number in every row"),
        ("m.csv", "x,value\n0,1\n1\n", "line 3 has another number of values"),
        ("m.csv", "x,x,value\n0,0,1\n", "a name occurs twice"),
        ("m.csv", "", "no line of names"),
        ("m.csv", "x,value\n0,nan\n1,2\n", "must be finite"),
        ("m.csv", "x,value,stddev\n0,1,0\n1,2,1\n", "must be positive"),
        ("m.json", "{", "not valid JSON"),
        ("m.json", '{"a": 1}', '"measurements"'),
        ("m.json", '[{"values": [1]}]', "entry 1"),
        ("m.json", '[{"clique": ["x"], "values": ["a", "b"]}]', "entry 1"),
        ("m.json", "[3]", "entry 1"),
        ("m.json", '[{"clique": ["x"], "values": [1, 2, 3]}]', "must have 2 entries"),
        ("m.json", '[{"clique": ["x"], "values": [1, 2], "noise": "loud"}]', "one of gaussian"),
        ("m.parquet", "not parquet", "not a Parquet file"),
        ("m.txt", "x,value\n", "must end in .csv"),
    ],
)
def test_mistakes_are_named(name: str, text: str, words: str, tmp_path: Path) -> None:
    """Every mistake gets an error that names the file and what to do."""
    path = written(tmp_path, name, text)
    with pytest.raises((InvalidInput, UnreadableFile), match=words) as caught:
        read_measurements([path], plain())
    assert str(path) in str(caught.value)


def test_noise_must_be_known(tmp_path: Path) -> None:
    """A file without a standard deviation needs one from outside."""
    path = written(tmp_path, "m.csv", "x,value\n0,1\n1,2\n")
    with pytest.raises(InvalidInput, match="`stddev` must be known"):
        read_measurements([path], plain(stddev=None))


@pytest.mark.parametrize("content", [[1], {}, {"x": 0}, {"x": "three"}, {"x": [1, 1]}])
def test_a_domain_that_is_none_is_refused(content: Any, tmp_path: Path) -> None:
    """Something else than sizes or values gets a clear error."""
    path = written(tmp_path, "d.json", json.dumps(content))
    with pytest.raises((InvalidInput, UnreadableFile), match="must"):
        read_domain(path)


@pytest.mark.parametrize(("no", "yes"), [("false", "true"), ("False", "True"), ("FALSE", "TRUE")])
def test_truth_values_in_any_letters(no: str, yes: str, tmp_path: Path) -> None:
    """A table of truth values is read however its program writes them."""
    path = written(tmp_path, "m.csv", f"member,value\n{yes},7\n{no},5\n")
    (found,) = read_measurements([path], READING)
    assert found.values.tolist() == [5.0, 7.0]
