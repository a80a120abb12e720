"""Random questions to a model, against DuckDB on the table written out record by record."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import duckdb
import numpy as np
import pytest

from juncture.errors import InvalidInput
from juncture.model.model import Model
from juncture.tables.codebook import Codebook, Coding
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor

VALUES: dict[str, tuple[Any, ...]] = {
    "a": (-1, 0, 1, 2, 7),
    "b": (0.5, 1.5, 2.0, None),
    "s": ("ab", "b", "Abc", "c%d", None),
    "f": (False, True),
}
TYPES = {"a": "BIGINT", "b": "DOUBLE", "s": "VARCHAR", "f": "BOOLEAN"}
DOMAIN = Domain({name: len(values) for name, values in VALUES.items()})


def counts() -> np.ndarray:
    """Whole counts of all records, many of them none."""
    rng = np.random.default_rng(11)
    table: np.ndarray = rng.integers(1, 4, DOMAIN.shape) * (rng.random(DOMAIN.shape) < 0.4)
    return table


@cache
def model() -> Model:
    """The model whose expected counts are those counts."""
    with np.errstate(divide="ignore"):
        table = Factor(DOMAIN, np.log(counts()))
    book = Codebook({name: Coding(values) for name, values in VALUES.items()})
    return Model.of_potentials(DOMAIN, [table], float(counts().sum())).with_codebook(book)


@cache
def table() -> duckdb.DuckDBPyConnection:
    """A table t with one row for each record."""
    connection = duckdb.connect()
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    connection.execute(f"CREATE TABLE t ({columns})")
    rows: list[tuple[Any, ...]] = []
    for cell, n in np.ndenumerate(counts()):
        record = tuple(VALUES[name][code] for name, code in zip(VALUES, cell, strict=True))
        rows += [record] * int(n)
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    return connection


class Asker:
    """Makes questions up: every kind of expression, nested, in every clause."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._depth = 0

    def _pick(self, *options: Callable[[], str] | str) -> str:
        """One of the options; deep inside, one of the first two."""
        self._depth += 1
        shallow = options[:2] if self._depth > 4 else options
        chosen = self._random.choice(shallow)
        text = chosen if isinstance(chosen, str) else chosen()
        self._depth -= 1
        return text

    def number(self) -> str:
        """A number."""
        n = self.number
        return self._pick(
            "a",
            "b",
            "a",
            lambda: str(self._random.choice([-2, 0, 1, 3, 0.5, 2.5])),
            lambda: f"({n()} + {n()})",
            lambda: f"({n()} - {n()})",
            lambda: f"({n()} * {n()})",
            lambda: f"({n()} / {self._random.choice([2, 4, 3, 0])})",
            lambda: f"(- {n()})",
            lambda: f"CASE WHEN {self.condition()} THEN {n()} ELSE {n()} END",
            lambda: f"CASE WHEN {self.condition()} THEN {n()} END",
            lambda: f"{self._random.choice(['ABS', 'FLOOR', 'CEIL', 'ROUND', 'SIGN'])}({n()})",
            lambda: (
                f"{self._random.choice(['GREATEST', 'LEAST', 'COALESCE', 'NULLIF'])}({n()}, {n()})"
            ),
            lambda: f"SQRT(ABS({n()}))",
            lambda: f"LN(ABS({n()}) + 1)",
            lambda: f"POWER({n()}, 2)",
            lambda: f"(a {self._random.choice(['%', '//'])} 3)",
            lambda: f"LENGTH({self.text()})",
            lambda: f"CAST({n()} AS {self._random.choice(['INTEGER', 'DECIMAL(8, 1)', 'DOUBLE'])})",
        )

    def text(self) -> str:
        """A text."""
        return self._pick(
            "s",
            "s",
            lambda: f"{self._random.choice(['LOWER', 'UPPER', 'TRIM'])}({self.text()})",
            lambda: f"{self._random.choice(['LEFT', 'RIGHT'])}({self.text()}, 1)",
            lambda: f"SUBSTRING({self.text()}, 2, 1)",
            lambda: f"({self.text()} || 'x')",
            lambda: f"COALESCE({self.text()}, '?')",
            lambda: f"CASE WHEN {self.condition()} THEN {self.text()} ELSE 'no' END",
            lambda: f"TRY_CAST({self.text()} AS VARCHAR)",
        )

    def condition(self) -> str:
        """A condition."""
        c = self.condition
        compare = self._random.choice(["<", "<=", ">", ">=", "=", "<>"])
        order = self._random.choice(["<", "<=", ">", ">="])
        distinct = self._random.choice(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
        return self._pick(
            "f",
            lambda: f"a {order} {self._random.choice([0, 1, 3])}",
            lambda: f"b {order} a",
            lambda: f"({self.number()} + 0) {compare} {self.number()}",
            lambda: f"({self.text()} || '') {compare} {self.text()}",
            lambda: f"({c()} AND {c()})",
            lambda: f"({c()} OR {c()})",
            lambda: f"NOT {c()}",
            lambda: f"a {self._random.choice(['IN', 'NOT IN'])} (0, 2, 7)",
            lambda: f"s {self._random.choice(['IN', 'NOT IN'])} ('ab', 'c%d')",
            lambda: "(a, s) IN ((0, 'ab'), (2, 'b'), (7, 'Abc'))",
            lambda: f"{self.number()} BETWEEN {self.number()} AND {self.number()}",
            lambda: (
                f"{self._random.choice(['b', 's', 'f'])} IS {self._random.choice(['', 'NOT'])} NULL"
            ),
            lambda: f"{self.text()} {self._random.choice(['', 'NOT'])} LIKE '%b%'",
            lambda: f"{self.text()} ILIKE '_B%'",
            lambda: f"{self.text()} LIKE 'c!%_' ESCAPE '!'",
            lambda: f"regexp_matches({self.text()}, '^[aA]b*')",
            lambda: f"{self.number()} {distinct} {self.number()}",
            lambda: f"s {distinct} 'b'",
            lambda: "a > (SELECT AVG(a) FROM t)",
        )

    def aggregate(self) -> str:
        """An aggregate, perhaps with FILTER."""
        self._depth += 1
        n, choose = self.number, self._random.choice
        spread = choose(["STDDEV", "STDDEV_POP", "VARIANCE", "VAR_POP", "VAR_SAMP"])
        pair = choose(["COVAR_POP", "COVAR_SAMP", "REGR_COUNT"])
        text = self._pick(
            "COUNT(*)",
            "SUM(a)",
            lambda: f"COUNT({choose([n, self.text, self.condition])()})",
            lambda: f"SUM({n()})",
            lambda: f"AVG({n()})",
            lambda: f"{choose(['MIN', 'MAX'])}({choose([n, self.text])()})",
            lambda: f"{spread}({choose(['a', 'b', 'a + b'])})",
            lambda: f"{pair}({choose(['a', 'b'])}, {choose(['b', 'LENGTH(s)'])})",
            lambda: f"COUNT_IF({self.condition()})",
            lambda: f"MEDIAN({choose(['a', 'b', 'a + b', 's'])})",
            lambda: f"QUANTILE_CONT({choose(['a', 'b'])}, {choose([0.1, 0.25, 0.9, 1])})",
            lambda: f"QUANTILE_DISC({choose(['a', 'b', 's'])}, {choose([0.1, 0.25, 0.9, 0])})",
        )
        self._depth -= 1
        filtered = self._random.random() < 0.2
        return f"{text} FILTER (WHERE {self.condition()})" if filtered else text

    def select(self) -> str:
        """A whole SELECT."""
        chance, choose = self._random.random, self._random.choice
        n_keys = choose([0, 1, 1, 2])
        kinds: list[Any] = ["a", "b", "s", "f", self.text, self.condition, self.number]
        keys = [
            kind if isinstance(kind, str) else kind()
            for kind in self._random.choices(kinds, k=n_keys)
        ]
        keys = list(dict.fromkeys(keys))
        n_keys = len(keys)
        outputs = [f"{key} AS k{i}" for i, key in enumerate(keys)]
        outputs += [f"{self.aggregate()} AS o{i}" for i in range(choose([1, 2, 3]))]
        if chance() < 0.2:
            outputs.append("COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share")
        source, before = "t", ""
        if chance() < 0.1:
            source = f"(SELECT a, b, s, f FROM t WHERE {self.condition()})"
        elif chance() < 0.1:
            before, source = (
                f"WITH u AS (SELECT *, a + 1 AS c FROM t WHERE {self.condition()}) ",
                "u",
            )
            outputs.append("SUM(c) AS sum_of_c")
        text = f"{before}SELECT {', '.join(outputs)} FROM {source}"
        if chance() < 0.6:
            text += f" WHERE {' AND '.join(self.condition() for _ in range(choose([1, 1, 2])))}"
        if keys:
            listed = ", ".join(f"k{i}" for i in range(n_keys))
            sets = choose(["", "", "", "", "ROLLUP", "CUBE"])
            text += f" GROUP BY {sets}({listed})" if sets else f" GROUP BY {listed}"
            if chance() < 0.2:
                text += f" HAVING COUNT(*) > {choose([1, 5, 20])}"
        return text


def order(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key to sort rows by: texts and truth values as they are, numbers roughly."""
    return tuple(
        (0, "")
        if v is None
        else (1, str(v))
        if isinstance(v, str | bool)
        else (2, "nan")
        if math.isnan(v)
        else (3, round(float(v), 5) + 0.0)
        for v in row
    )


def is_close(ours: Any, theirs: Any) -> bool:
    """The same value, numbers up to rounding."""
    if theirs is None or isinstance(theirs, str | bool):
        return bool(ours == theirs and type(ours) is type(theirs))
    if ours is None or isinstance(ours, str):
        return False
    return float(ours) == pytest.approx(float(theirs), rel=1e-8, abs=1e-7, nan_ok=True)


def compare(seed: int) -> bool:
    """Ask one question on both sides; False where DuckDB itself refuses it."""
    sql = Asker(seed).select()
    try:
        theirs = sorted(table().execute(sql).fetchall(), key=order)
    except duckdb.Error:
        return False
    ours = sorted(model().sql(sql).rows, key=order)
    assert len(ours) == len(theirs), sql
    for mine, other in zip(ours, theirs, strict=True):
        assert all(map(is_close, mine, other)), (sql, mine, other)
    return True


def test_random_questions_equal_duckdb() -> None:
    """A model answers what DuckDB answers on its records."""
    n_compared = sum(compare(seed) for seed in range(200))
    assert n_compared > 150


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 250))
def test_more_random_questions_equal_duckdb(first: int) -> None:
    """The same for many more questions."""
    assert sum(compare(seed) for seed in range(first, first + 250)) > 180


def test_the_questions_vary() -> None:
    """The questions made up are different ones, and no question is refused that DuckDB answers."""
    assert len({Asker(seed).select() for seed in range(200)}) > 190
    with pytest.raises(InvalidInput):
        model().sql("SELECT a, COUNT(*) FROM t")
