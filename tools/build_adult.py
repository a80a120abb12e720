"""Build the integer-coded Adult data set that ships with juncture.

The raw table is the file ``adult.csv`` carried by version 0.4.1 of the Python package
``dataprep``: all 48842 records of the original data set, the test part (16281 records)
first and the training part (32561 records) after it. To obtain it and rebuild::

    pip download --no-deps dataprep==0.4.1
    unzip dataprep-0.4.1-py3-none-any.whl dataprep/datasets/data/adult.csv
    python tools/build_adult.py dataprep/datasets/data/adult.csv

The script needs numpy only. It writes ``codes.npz``, ``domain.json``, ``schema.toml`` and
``ATTRIBUTION.md`` into ``src/juncture/private/adult`` (or the folder given with ``--out``), and
every run on the same raw file with the same compression library writes the same bytes. All four say
the same about the codes: they come from one table, ``COLUMNS``.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RAW_SHA256 = "a4889633d51e42867b8be390444b96b4b719d3000ec4ce2f835dd000b0b8f679"
DEFAULT_OUT = Path(__file__).resolve().parents[1] / "src" / "juncture" / "data" / "adult"


@dataclass(frozen=True)
class Integers:
    """Consecutive whole numbers; the code of a number is its distance from the first."""

    first: int
    size: int

    def code(self, text: str) -> int:
        """Give the code of one raw value."""
        code = int(text) - self.first
        if not 0 <= code < self.size:
            raise ValueError(f"the value {text} lies outside the range")
        return code

    def describe(self) -> str:
        """Say in words how a value becomes a code."""
        return f"value minus {self.first}"

    def toml(self) -> str:
        """The column in a schema."""
        return f'kind = "integer"\nlow = {self.first}\nhigh = {self.first + self.size - 1}\n'


@dataclass(frozen=True)
class Bins:
    """Bins of equal width, each with its upper edge; the first also holds its lower edge."""

    low: int
    width: int
    size: int

    def code(self, text: str) -> int:
        """Give the code of one raw value."""
        above = int(text) - self.low
        code = (above - 1) // self.width if above else 0
        if not 0 <= code < self.size:
            raise ValueError(f"the value {text} lies outside the bins")
        return code

    def describe(self) -> str:
        """Say in words how a value becomes a code."""
        start = f"{self.low} + {self.width}k" if self.low else f"{self.width}k"
        return (
            f"k where the value is above {start} and at most {self.width} above it"
            f" (0 for the value {self.low})"
        )

    def toml(self) -> str:
        """The column in a schema, whose bins have their lower edge: values are whole numbers."""
        starts = [self.low + self.width * k + 1 for k in range(1, self.size)]
        edges = [self.low, *starts, self.low + self.width * self.size]
        return f'kind = "number"\nedges = [{", ".join(map(str, edges))}]\n'


@dataclass(frozen=True)
class Categories:
    """Category names between spaces; the code of a name is its position, counted from 0."""

    text: str

    @property
    def names(self) -> list[str]:
        """The category names in the order of their codes."""
        return self.text.split()

    @property
    def size(self) -> int:
        """The number of categories."""
        return len(self.names)

    def code(self, text: str) -> int:
        """Give the code of one raw value."""
        if text not in self.names:
            raise ValueError(f"the category {text!r} is not known")
        return self.names.index(text)

    def describe(self) -> str:
        """Say in words how a value becomes a code."""
        return "position, counted from 0, in: " + ", ".join(f"`{name}`" for name in self.names)

    def toml(self) -> str:
        """The column in a schema."""
        return f'kind = "categorical"\nvalues = {json.dumps(self.names)}\n'


# The columns in the order of the raw file. Its last column, "class", is renamed.
COLUMNS: dict[str, Integers | Bins | Categories] = {
    "age": Integers(first=16, size=85),
    "workclass": Categories(
        "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay"
        " Never-worked ?"
    ),
    "fnlwgt": Bins(low=10_000, width=14_900, size=100),
    "education": Categories(
        "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th"
        " Masters 1st-4th 10th Doctorate 5th-6th Preschool"
    ),
    "education-num": Integers(first=1, size=16),
    "marital-status": Categories(
        "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent"
        " Married-AF-spouse"
    ),
    "occupation": Categories(
        "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty"
        " Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving"
        " Priv-house-serv Protective-serv Armed-Forces ?"
    ),
    "relationship": Categories("Wife Own-child Husband Not-in-family Other-relative Unmarried"),
    "race": Categories("White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"),
    "sex": Categories("Female Male"),
    "capital-gain": Bins(low=0, width=1_000, size=100),
    "capital-loss": Bins(low=0, width=50, size=100),
    "hours-per-week": Integers(first=1, size=99),
    "native-country": Categories(
        "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc)"
        " India Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica"
        " Vietnam Mexico Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti"
        " Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador"
        " Trinadad&Tobago Peru Hong Holand-Netherlands ?"
    ),
    "income>50K": Categories("<=50K >50K"),
}

ATTRIBUTION = """\
# Adult

- Data set: Adult (also known as Census Income)
- Creators: Barry Becker and Ronny Kohavi
- Source: UCI Machine Learning Repository, 1996, <https://doi.org/10.24432/C5XW20>
- Licence: Creative Commons Attribution 4.0 International (CC BY 4.0),
  <https://creativecommons.org/licenses/by/4.0/>

## What was changed

Every value was replaced by an integer code as listed below, which puts the numbers of
`fnlwgt`, `capital-gain` and `capital-loss` into bins, and the class column was named
`income>50K`. All 48842 records are kept, the original test part first and the training
part after it. A missing value, written `?`, is a category of its own.

| column | codes | code of a value |
|---|---|---|
"""

SCHEMA = """\
# What the codes of the Adult data set stand for.
#
# Adult (also known as Census Income) is by Barry Becker and Ronny Kohavi, UCI Machine Learning
# Repository, 1996, https://doi.org/10.24432/C5XW20, CC BY 4.0. The names of the categories are the
# data set's own, spelling included; "?" is its sign for a missing value. ATTRIBUTION.md says what
# was changed.
format = "juncture schema"
version = 1
"""


def read_raw(path: Path) -> list[list[str]]:
    """Read the records of the raw file, after checking that it is the expected file."""
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != RAW_SHA256:
        raise ValueError(f"{path} is not the adult.csv of dataprep 0.4.1: its SHA-256 differs")
    rows = csv.reader(io.StringIO(content.decode("ascii")), skipinitialspace=True)
    header = next(rows)
    if header != [*list(COLUMNS)[:-1], "class"]:
        raise ValueError(f"unexpected columns: {header}")
    return list(rows)


def encode(rows: Sequence[Sequence[str]]) -> NDArray[np.uint8]:
    """Turn the raw records into codes, one row for each record, in the same order."""
    coders = list(COLUMNS.values())
    coded = [[c.code(text) for c, text in zip(coders, row, strict=True)] for row in rows]
    return np.array(coded, dtype=np.uint8)


def pack(arrays: Mapping[str, NDArray[np.uint8]]) -> bytes:
    """Give the bytes of a compressed npz file with fixed dates and permissions."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.create_system = 3
            member.external_attr = 0o644 << 16
            plain = io.BytesIO()
            np.save(plain, array, allow_pickle=False)
            archive.writestr(member, plain.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)
    return packed.getvalue()


def attribution() -> str:
    """Give the text that credits the creators and says how the values were coded."""
    lines = [f"| `{name}` | {c.size} | {c.describe()} |\n" for name, c in COLUMNS.items()]
    return ATTRIBUTION + "".join(lines)


def schema() -> str:
    """Give the schema of the columns, in TOML."""
    parts = [f"\n[columns.{json.dumps(name)}]\n{c.toml()}" for name, c in COLUMNS.items()]
    return SCHEMA + "".join(parts)


def build(raw: Path, out: Path) -> None:
    """Write the four files of the coded data set into a folder."""
    domain = {name: coder.size for name, coder in COLUMNS.items()}
    files = {
        "codes.npz": pack({"codes": encode(read_raw(raw))}),
        "domain.json": (json.dumps(domain, indent=2) + "\n").encode("ascii"),
        "schema.toml": schema().encode("ascii"),
        "ATTRIBUTION.md": attribution().encode("ascii"),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (out / name).write_bytes(content)


def main() -> None:
    """Run the build from the command line."""
    parser = argparse.ArgumentParser(description="Build the integer-coded Adult data set.")
    parser.add_argument("raw", type=Path, help="adult.csv from dataprep 0.4.1")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder to write into")
    arguments = parser.parse_args()
    build(arguments.raw, arguments.out)


if __name__ == "__main__":
    main()
