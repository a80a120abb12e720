"""The paper's data sets with their workloads and true answers.

Adult ships with the package. The other three are read from a folder that the user names, as
NAME.csv.gz with a header and NAME-domain.json with the size of each column. Adult and Titanic in
the coding of AIM's author lie in its folder `aim-coding`, if at all, and tables of the user's own
in its folder `others`.
"""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from bank_data import FILE as BANK_FILE
from bank_data import read_bank
from made_up import MADE_UP
from numpy.typing import NDArray
from other_tables import list_others, read_other

from juncture.private.samples import adult_codes, adult_domain
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.workload import Workload

NAMES = ("titanic", "adult", "loans", "stroke")
# For quick runs: a small table that is made here.
TOY = "toy"
# Adult with `education`, which says the same as `education-num`, as in the paper's PrivBayes runs.
ADULT_15 = "adult15"
# In the coding of AIM's author, in a folder of their own: attributes have at most 91 values.
AIM_FOLDER = "aim-coding"
BANK = "bank"
AIM_CODING = {"adult-aim": "adult", "titanic-aim": "titanic"}


@dataclass(frozen=True, eq=False)
class DataSet:
    """A table in memory, with the paper's workload on it."""

    name: str
    source: CodedTable
    workload: Workload

    @property
    def domain(self) -> Domain:
        """Attributes with sizes."""
        return self.source.domain

    @property
    def n_records(self) -> int:
        """Public in these experiments, where neighbours replace a record."""
        return self.source.exact_n_records

    @cached_property
    def tables(self) -> dict[Clique, Factor]:
        """The true counts of the workload's cliques."""
        cliques = self.workload.cliques
        return dict(zip(cliques, self.source.exact_counts(cliques), strict=True))

    @cached_property
    def truth(self) -> list[Vector]:
        """The true answers to the workload."""
        return self.workload.answers(self.tables.__getitem__)


def load(name: str, folder: Path | None) -> DataSet:
    """One of the paper's data sets, or the toy."""
    if name == ADULT_15:
        whole = Domain(adult_domain())
        tasks = load("adult", folder).workload.tasks
        return DataSet(name, make_source(whole, adult_codes()), Workload(whole, tasks))
    domain, codes = read_codes(name, folder)
    return DataSet(name, make_source(domain, codes), Workload.paper_triples(domain, len(codes)))


def available(folder: Path | None) -> tuple[str, ...]:
    """The data sets that can be loaded."""
    return NAMES if folder else ("adult",)


def has_aim_coding(folder: Path | None) -> bool:
    """Whether Adult and Titanic in the coding of AIM's author can be loaded."""
    return folder is not None and (folder / AIM_FOLDER).is_dir()


def has_bank(folder: Path | None) -> bool:
    """Whether the table of a bank's marketing can be loaded."""
    return folder is not None and (folder / BANK_FILE).is_file()


def make_source(domain: Domain, codes: NDArray[np.integer]) -> CodedTable:
    """Records in memory, given as rows of codes."""
    return CodedTable(domain, dict(zip(domain, codes.astype(np.int64).T, strict=True)))


def read_codes(name: str, folder: Path | None) -> tuple[Domain, NDArray[np.integer]]:
    """The attributes with sizes, and the codes: a row for each record."""
    if name == TOY:
        return _toy()
    if name in MADE_UP:
        return MADE_UP[name]()
    if name == "adult":
        whole, codes = Domain(adult_domain()), adult_codes()
        kept = whole.without(("education",))
        return kept, codes[:, [whole.positions[n] for n in kept]]
    if folder is None:
        raise SystemExit(f"{name} needs --data FOLDER; only adult ships with the package")
    if name == BANK:
        return read_bank(folder)
    if name not in NAMES and name in list_others(folder):
        return read_other(name, folder)
    if name in AIM_CODING:
        folder, name = folder / AIM_FOLDER, AIM_CODING[name]
    domain = Domain(json.loads((folder / f"{name}-domain.json").read_text()))
    with gzip.open(folder / f"{name}.csv.gz", "rt") as file:
        head, *rows = list(csv.reader(file))
    table = np.array([[int(float(value)) for value in row] for row in rows])
    return domain, table[:, [head.index(n) for n in domain]]


def _toy() -> tuple[Domain, NDArray[np.integer]]:
    """A chain of seven attributes, one of them with a hundred values."""
    rng, n = np.random.default_rng(0), 3000
    domain = Domain(dict(zip("abcdefg", (3, 4, 100, 2, 5, 3, 2), strict=True)))
    columns = [rng.integers(0, domain.shape[0], n)]
    for size in domain.shape[1:]:
        fresh = np.minimum(rng.geometric(3.0 / (size + 2), n) - 1, size - 1)
        columns.append(np.where(rng.random(n) < 0.6, columns[-1] % size, fresh))
    return domain, np.array(columns).T
