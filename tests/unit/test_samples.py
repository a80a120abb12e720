"""Tests of the Adult data set that ships with the package."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from juncture.private import samples
from juncture.private.samples import adult_codes, adult_domain, adult_schema
from juncture.private.sources.duck import DuckDB
from juncture.tables.schema import Schema

TEST_PART = 16281  # records of the original test part, which come first


@pytest.fixture(scope="module")
def codes() -> NDArray[np.uint8]:
    """Give the coded records, loaded once for this module."""
    return adult_codes()


def column(codes: NDArray[np.uint8], name: str) -> NDArray[np.uint8]:
    """Give the codes of one attribute."""
    return codes[:, list(adult_domain()).index(name)]


def test_shape_and_type(codes: NDArray[np.uint8]) -> None:
    """The table has the published number of records and 15 attributes of small integers."""
    assert codes.shape == (48842, 15)
    assert codes.dtype == np.uint8


def test_domain_names_and_sizes() -> None:
    """The domain lists the attributes of Adult in the order of the columns."""
    assert list(adult_domain().items()) == [
        ("age", 85),
        ("workclass", 9),
        ("fnlwgt", 100),
        ("education", 16),
        ("education-num", 16),
        ("marital-status", 7),
        ("occupation", 15),
        ("relationship", 6),
        ("race", 5),
        ("sex", 2),
        ("capital-gain", 100),
        ("capital-loss", 100),
        ("hours-per-week", 99),
        ("native-country", 42),
        ("income>50K", 2),
    ]


@pytest.mark.parametrize("name", list(adult_domain()))
def test_codes_lie_inside_the_domain(codes: NDArray[np.uint8], name: str) -> None:
    """No code of an attribute reaches the attribute's size."""
    assert column(codes, name).max() < adult_domain()[name]


@pytest.mark.parametrize("name", ["workclass", "education", "occupation", "native-country"])
def test_every_category_occurs(codes: NDArray[np.uint8], name: str) -> None:
    """Each category of a categorical attribute occurs in at least one record."""
    assert np.unique(column(codes, name)).size == adult_domain()[name]


@pytest.mark.parametrize(
    ("name", "code", "count"),
    [
        ("income>50K", 1, 11687),  # more than 50K
        ("sex", 0, 16192),  # women
        ("workclass", 8, 2799),  # missing
        ("occupation", 14, 2809),  # missing
        ("native-country", 41, 857),  # missing
    ],
)
def test_published_counts(codes: NDArray[np.uint8], name: str, code: int, count: int) -> None:
    """The number of records with a given code agrees with the published figure."""
    assert np.count_nonzero(column(codes, name) == code) == count


def test_published_counts_of_the_training_part(codes: NDArray[np.uint8]) -> None:
    """The training part comes second, with 32561 records of which 7841 are above 50K."""
    training = codes[TEST_PART:]
    assert len(training) == 32561
    assert np.count_nonzero(column(training, "income>50K")) == 7841


def test_education_and_its_number_determine_each_other(codes: NDArray[np.uint8]) -> None:
    """The 16 values of education pair off one to one with the 16 values of education-num."""
    education, number = column(codes, "education"), column(codes, "education-num")
    pairs = set(zip(education.tolist(), number.tolist(), strict=True))
    assert len(pairs) == 16
    assert {first for first, _ in pairs} == set(range(16))
    assert {second for _, second in pairs} == set(range(16))


def test_first_record(codes: NDArray[np.uint8]) -> None:
    """The first record, which opens the original test part, agrees with its coding by hand.

    Raw: 25, Private, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, Black,
    Male, 0, 0, 40, United-States, <=50K.
    """
    assert codes[0].tolist() == [9, 0, 14, 2, 6, 2, 7, 1, 4, 1, 0, 0, 39, 0, 0]


def test_first_training_record(codes: NDArray[np.uint8]) -> None:
    """The record that opens the original training part agrees with its coding by hand.

    Raw: 39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family,
    White, Male, 2174, 0, 40, United-States, <=50K.
    """
    assert codes[TEST_PART].tolist() == [23, 5, 4, 0, 12, 2, 8, 3, 0, 1, 2, 0, 39, 0, 0]


@pytest.mark.parametrize(
    ("row", "name", "code"),
    [
        (36697, "capital-loss", 77),  # raw 3900 = 78 * 50
        (40083, "capital-loss", 77),  # raw 3900 = 78 * 50
        (21019, "fnlwgt", 7),  # raw 129200 = 10000 + 8 * 14900
    ],
)
def test_edges_belong_to_the_lower_bin(
    codes: NDArray[np.uint8], row: int, name: str, code: int
) -> None:
    """A raw value that lies exactly on the edge between two bins has the code of the lower."""
    assert column(codes, name)[row] == code


def test_each_call_gives_a_new_array(codes: NDArray[np.uint8]) -> None:
    """Writing into one loaded array leaves the next one untouched."""
    spoiled = adult_codes()
    spoiled[:] = 0
    assert np.array_equal(adult_codes(), codes)


TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "build_adult.py"))


def test_the_schema_is_what_the_tool_writes() -> None:
    """The shipped schema and attribution come from the tool's one table of columns."""
    folder = Path(samples.__file__).parent / "adult"
    assert (folder / "schema.toml").read_text() == TOOL["schema"]()
    assert (folder / "ATTRIBUTION.md").read_text() == TOOL["attribution"]()


@pytest.mark.parametrize("name", list(adult_domain()))
def test_the_schema_codes_as_the_tool_does(name: str) -> None:
    """Any raw value gets the same code from the schema, inside the engine, as from the tool."""
    coder = TOOL["COLUMNS"][name]
    raw = raw_values(coder)
    column = adult_schema().columns[name]
    source = DuckDB(pa.table({name: raw}), Schema({name: column}))
    expected = np.bincount([coder.code(text) for text in raw], minlength=coder.size)
    assert source.exact_counts([(name,)])[0].values.tolist() == expected.tolist()


def raw_values(coder: Any) -> list[str]:
    """Every value, or the ends of every bin, in unequal numbers so that codes cannot be swapped."""
    if hasattr(coder, "names"):
        values = coder.names
    elif hasattr(coder, "width"):
        starts = [coder.low + coder.width * k for k in range(coder.size + 1)]
        values = [*map(str, starts), *(str(start + 1) for start in starts[:-1])]
    else:
        values = [str(coder.first + k) for k in range(coder.size)]
    return [value for place, value in enumerate(values) for _ in range(place + 1)]


def test_the_first_record_in_words(codes: NDArray[np.uint8]) -> None:
    """The first record, decoded, is the raw one; binned numbers are in the raw value's bin."""
    schema = adult_schema()
    record = {name: column(codes, name)[:1].astype(np.int32) for name in adult_domain()}
    found = {name: value for name, (value,) in schema.decode(record, rng=0).items()}
    assert 218_601 <= found.pop("fnlwgt") < 233_501
    assert 0 <= found.pop("capital-gain") < 1_001
    assert 0 <= found.pop("capital-loss") < 51
    assert list(found.values()) == [
        25, "Private", "11th", 7, "Never-married", "Machine-op-inspct", "Own-child", "Black",
        "Male", 40, "United-States", "<=50K",
    ]  # fmt: skip
