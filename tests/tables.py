"""A tiny private table with its schema, as files: for tests of the command line."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

SCHEMA = """
format = "juncture schema"
version = 1

[columns.age]
kind = "integer"
low = 20
high = 29

[columns.sex]
kind = "categorical"
values = ["f", "m"]

[columns.pay]
kind = "number"
edges = [0, 10, 20, 50]
missing = true
"""


class Table(NamedTuple):
    """Where the files lie."""

    folder: Path
    data: Path
    schema: Path


def write_table(folder: Path, n: int = 400, schema: str = SCHEMA) -> Table:
    """The table and its schema in a folder."""
    rng = np.random.default_rng(0)
    age, sex = rng.integers(20, 30, n), rng.integers(0, 2, n)
    pay = np.minimum(rng.gamma(2.0, 6.0, n) + 8 * sex, 49.0)
    data, text = folder / "people.csv", folder / "people.toml"
    with data.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["age", "sex", "pay"])
        for row in zip(age, sex, pay, strict=True):
            known = f"{row[2]:.2f}" if row[0] != 25 else ""
            rows.writerow([row[0], "fm"[row[1]], known])
    text.write_text(schema)
    return Table(folder, data, text)
