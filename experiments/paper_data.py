"""The paper's data sets and workloads, read from a folder that the user names."""

from __future__ import annotations

import csv
import gzip
import json
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture import Domain
from juncture.data.samples import adult_codes, adult_domain

N_TRIPLES = 15


class DataSet(NamedTuple):
    """A coded table with the paper's fifteen triples of attributes."""

    name: str
    domain: Domain
    codes: NDArray[np.int64]
    triples: tuple[tuple[str, ...], ...]


def load(name: str, folder: Path | None) -> DataSet:
    """One of adult, titanic, loans, stroke; Adult ships with the package."""
    if name == "adult":
        domain, codes = Domain(adult_domain()), adult_codes().astype(np.int64)
        kept = domain.without(("education",))
        return _with_triples(name, kept, codes[:, [domain.positions[n] for n in kept]])
    if folder is None:
        raise SystemExit(f"{name} needs --data FOLDER; only adult ships with the package")
    domain = Domain(json.loads((folder / f"{name}-domain.json").read_text()))
    with gzip.open(folder / f"{name}.csv.gz", "rt") as file:
        head, *rows = list(csv.reader(file))
    table = np.array([[int(float(value)) for value in row] for row in rows])
    return _with_triples(name, domain, table[:, [head.index(n) for n in domain]])


def _with_triples(name: str, domain: Domain, codes: NDArray[np.int64]) -> DataSet:
    """The paper's rule: fifteen of all triples with no more cells than records."""
    fitting = [c for c in combinations(domain, 3) if domain.size_of(c) <= len(codes)]
    chosen = np.random.RandomState(0).choice(len(fitting), N_TRIPLES, replace=False)
    return DataSet(name, domain, codes, tuple(fitting[place] for place in chosen))


def exact_counts(data: DataSet, clique: tuple[str, ...]) -> NDArray[np.float64]:
    """How many records fall into each cell of the clique's table."""
    part = data.domain.project(clique)
    columns = [data.codes[:, data.domain.positions[name]] for name in clique]
    return np.bincount(np.ravel_multi_index(columns, part.shape), minlength=part.size).astype(float)
