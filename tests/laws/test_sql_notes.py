"""What answers say of themselves: columns never measured together, ranges of numbers in bins."""

from __future__ import annotations

from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from juncture.model.model import Model
from juncture.model.sql.notes import InBins, NeverTogether, NotMeasured
from juncture.tables.codebook import Codebook
from juncture.tables.columns import Integer, Number
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor

PAY = Number(edges=(0.0, 10.0, 100.0, 1000.0), special=(0.0,))
AGE = Integer.between([0, 18, 30, 65, 99])
DOMAIN = Domain({"pay": 4, "age": 4, "sex": 2})
COUNTS = np.random.default_rng(3).integers(1, 6, DOMAIN.shape)


@cache
def model() -> Model:
    """The model of the counts, all measured together."""
    made = Model.of_potentials(DOMAIN, [Factor(DOMAIN, np.log(COUNTS))], float(COUNTS.sum()))
    return made.with_codebook(Codebook({"pay": PAY.coding, "age": AGE.coding}))


QUESTIONS = [
    "COUNT(*) FROM t WHERE pay > 50",
    "COUNT(*), SUM(pay), AVG(pay) FROM t WHERE pay > 50 AND age < 40",
    "SUM(pay), AVG(pay), AVG(age), COUNT(*) FROM t",
    "sex, AVG(pay), SUM(age), COUNT(*) FROM t WHERE age BETWEEN 20 AND 70 GROUP BY 1 ORDER BY 1",
    "age < 25 AS young, COUNT(*), AVG(pay) FROM t GROUP BY young ORDER BY young",
    "COUNT(*) FROM t WHERE pay BETWEEN 20 AND 30",
    "COUNT(*) FILTER (WHERE age = 40) FROM t",
    "AVG(pay) FROM t WHERE pay > 500",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_ranges_hold_wherever_numbers_lie_in_their_bins(question: str) -> None:
    """For tables with the same counts, however their numbers lie, answers are in the range."""
    sql = f"SELECT {question}"
    answer = model().sql(sql)
    assert answer.ranges
    rng, reached = np.random.default_rng(1), [[np.inf, -np.inf] for _ in answer.rows[0]]
    cells = np.repeat(np.arange(COUNTS.size), COUNTS.reshape(-1))
    pay, age, sex = np.unravel_index(cells, COUNTS.shape)
    for trial in range(24):
        # Numbers near one end of their bins, or anywhere.
        push = (0.0, 1.0, rng.random())[trial % 3] if trial % 2 else rng.random(4)[pay]
        shares = np.clip(rng.random(len(cells)) * 0.2 + 0.8 * push, 0.0, 1.0 - 1e-12)
        table = pa.table({"pay": place(pay, shares), "age": place_whole(age, shares), "sex": sex})
        connection = duckdb.connect()
        connection.register("t", table)
        rows = connection.execute(sql).fetchall()
        if len(rows) != len(answer.rows):
            continue  # a group without records
        for row, ranges in zip(rows, answer.ranges, strict=True):
            for index, (value, each) in enumerate(zip(row, ranges, strict=True)):
                if each is not None and value is not None:
                    slack = 1e-9 * max(1.0, abs(each.high))
                    assert each.low - slack <= value <= each.high + slack, (sql, value, each)
                    reached[index] = [min(reached[index][0], value), max(reached[index][1], value)]
    assert any(low < high for low, high in reached)


def place(codes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """A number for each code of PAY, at a share of the way through its bin."""
    low, high = np.array([0.0, 0.0, 10.0, 100.0]), np.array([0.0, 10.0, 100.0, 1000.0])
    return np.asarray(low[codes] + shares * (high - low)[codes])


def place_whole(codes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """A whole number for each code of AGE."""
    low, high = np.array([0, 18, 30, 65]), np.array([18, 30, 65, 100])
    return np.asarray(np.floor(low[codes] + shares * (high - low)[codes]).astype(int))


def test_what_no_bin_changes_has_no_range() -> None:
    """A condition at the edge of a bin, or for whole numbers beside it, leaves nothing open."""
    for condition in ("pay >= 10", "pay > 0", "age > 17", "age >= 18", "age < 29.5 OR age >= 30"):
        answer = model().sql(f"SELECT COUNT(*) FROM t WHERE {condition}")
        assert not any(any(row) for row in answer.ranges), condition
    cut = model().sql("SELECT COUNT(*) FROM t WHERE age > 18")
    assert cut.ranges[0][0] is not None
    zero = model().sql("SELECT COUNT(*) FROM t WHERE pay > 0").rows[0][0]
    assert zero == pytest.approx(COUNTS[1:].sum())


def test_notes_name_the_columns_that_are_divided_or_added_up() -> None:
    """Only where the answer needs more than the bins, and for the columns that do."""
    notes = model().sql("SELECT AVG(pay) FROM t WHERE age < 25 AND sex = 1").notes
    assert set(notes) == {InBins("pay", is_cut=False), InBins("age", is_cut=True)}
    assert model().sql("SELECT pay, age, COUNT(*) FROM t WHERE age < 30 GROUP BY ALL").notes == ()


def test_notes_say_what_was_never_measured_together() -> None:
    """Pairs in no clique: inferred where a chain links them, else independent; and unmeasured."""
    domain = Domain({"a": 2, "b": 2, "c": 2, "d": 2, "e": 2})
    tables = [Factor(domain.project(c), np.ones((2, 2))) for c in (("a", "b"), ("b", "c"))]
    alone = Factor(domain.project(("d",)), np.ones(2))
    made = Model.of_potentials(domain, [*tables, alone], 10.0)

    def notes(sql: str) -> tuple[object, ...]:
        return made.sql(sql).notes

    assert notes("SELECT a, COUNT(*) FROM t WHERE b = 1 GROUP BY a") == ()
    assert notes("SELECT AVG(a) FROM t WHERE c = 1") == (NeverTogether(("a", "c")),)
    assert notes("SELECT a, AVG(d) FROM t GROUP BY a") == (NeverTogether(("a", "d"), True),)
    assert notes("SELECT COUNT(*) FROM t WHERE e = 1 AND a = 1") == (NotMeasured("e"),)
    assert notes("SELECT (SELECT COUNT(*) FROM t WHERE a = c), COUNT(*) FROM t") == (
        NeverTogether(("a", "c")),
    )


def test_three_columns_measured_in_pairs_are_noted() -> None:
    """A triple whose pairs were all measured was still never measured as a whole."""
    domain = Domain({"a": 2, "b": 2, "c": 2})
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    tables = [Factor(domain.project(pair), np.ones((2, 2))) for pair in pairs]
    made = Model.of_potentials(domain, tables, 10.0)
    assert made.sql("SELECT COUNT(*) FROM t WHERE a = b AND c = 1").notes == (
        NeverTogether(("a", "b", "c")),
    )
