"""SQL over days and whole numbers in bins, against DuckDB on records spread evenly over them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from juncture.errors import InvalidInput
from juncture.model.model import Model
from juncture.tables.codebook import Codebook
from juncture.tables.columns import Column, Date, Integer, Number, Period
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor

FIRST, LAST = dt.date(2023, 11, 12), dt.date(2024, 9, 20)
GAIN = Integer.between([0, 1, 11, 40], special=(-1, 20))


def numbers_of(column: Column, code: int) -> list[Any]:
    """Every value that a code of a column stands for."""
    meaning = column.regular[code]
    if not isinstance(meaning, tuple):
        return [meaning]
    inside = range(int(meaning[0]), int(meaning[1]))
    if isinstance(column, Date):
        return [dt.date(1970, 1, 1) + dt.timedelta(days=day) for day in inside]
    return [number for number in inside if number not in column.regular]


class Case:
    """A column of bins beside another attribute: the model, and a table with the same counts."""

    def __init__(self, column: Column) -> None:
        rng = np.random.default_rng(5)
        values = [numbers_of(column, code) for code in range(column.n_regular)]
        unit = math.lcm(*{len(each) for each in values})
        masses = rng.integers(1, 4, (column.n_regular, 2))
        domain = Domain({"x": column.n_regular, "sex": 2})
        total = float(masses.sum()) * unit
        made = Model.of_potentials(domain, [Factor(domain, np.log(masses))], total)
        self.model = made.with_codebook(Codebook({"x": column.coding}))
        rows = [
            (value, sex, n * (unit // len(values[code])))
            for (code, sex), n in np.ndenumerate(masses)
            for value in values[code]
        ]
        x, sex, weight = zip(*rows, strict=True)
        self.table = duckdb.connect()
        self.table.register("w", pa.table({"x": x, "sex": sex, "weight": weight}))

    def compare(self, sql: str) -> None:
        """Ours equals DuckDB's answer on the records; counts are weighted there."""
        ours = [tuple(map(str_or_number, row)) for row in self.model.sql(sql).rows]
        weighted = sql.replace("COUNT(*)", "SUM(weight)").replace("SUM(x)", "SUM(weight * x)")
        weighted = weighted.replace("AVG(x)", "SUM(weight * x) / SUM(weight)")
        rows = self.table.execute(weighted.replace("FROM t", "FROM w")).fetchall()
        theirs = [tuple(map(str_or_number, row)) for row in rows if row[-1] != 0]
        assert len(ours) == len(theirs), (sql, ours, theirs)
        for mine, other in zip(sorted(ours, key=str), sorted(theirs, key=str), strict=True):
            for left, right in zip(mine, other, strict=True):
                if isinstance(right, float):
                    assert left == pytest.approx(right, rel=1e-9, abs=1e-9), (sql, mine, other)
                else:
                    assert left == right, (sql, mine, other)


def str_or_number(value: object) -> object:
    """A value that can be compared: dates as texts, numbers as floats, no counts as 0."""
    if value is None or isinstance(value, bool | str):
        return 0.0 if value is None else value
    if isinstance(value, dt.datetime):  # every one here is a midnight
        value = value.date()
    return float(value) if isinstance(value, int | float | Decimal) else str(value)


@cache
def case(name: str) -> Case:
    """The cases by name, each made once."""
    if name == "gain":
        return Case(GAIN)
    if name == "age":
        return Case(Integer(low=17, high=30, width=5))
    return Case(Date(low=FIRST, high=LAST, period=Period(name)))


DATE_QUESTIONS = [
    "COUNT(*) FROM t WHERE x >= '2024-06-01'",
    "COUNT(*) FROM t WHERE x < DATE '2024-03-17'",
    "COUNT(*) FROM t WHERE x BETWEEN '2024-07-03' AND '2024-07-09'",
    "COUNT(*) FROM t WHERE x = '2024-02-29'",
    "COUNT(*) FROM t WHERE x <> '2024-02-29' AND sex = 1",
    "COUNT(*) FROM t WHERE x IN ('2024-01-31', '2024-02-01')",
    "COUNT(*) FROM t WHERE x > TIMESTAMP '2024-05-05 13:00:00'",
    "COUNT(*) FROM t WHERE DATE '2024-01-01' <= x",
    "COUNT(*) FROM t WHERE YEAR(x) = 2024 AND MONTH(x) IN (2, 7)",
    "EXTRACT(quarter FROM x) AS q, sex, COUNT(*) FROM t GROUP BY q, sex",
    "DATE_TRUNC('month', x) AS m, COUNT(*) FROM t GROUP BY m",
    "DATE_PART('year', x) AS y, COUNT(*) FROM t GROUP BY y",
    "DAYOFWEEK(x) AS d, COUNT(*) FROM t GROUP BY d",
    "STRFTIME(x, '%Y-%m') AS m, COUNT(*) FROM t GROUP BY m",
    "DATE_DIFF('day', DATE '2024-01-01', x) // 30 AS d, COUNT(*) FROM t GROUP BY d",
    "x + INTERVAL 2 MONTHS >= DATE '2024-08-01' AS late, COUNT(*) FROM t GROUP BY late",
    "x + 7 > DATE '2024-08-01' AS late, COUNT(*) FROM t GROUP BY late",
    "sex, COUNT(*) FROM t WHERE x IS NOT NULL AND (x < '2024-01-10' OR sex = 0) GROUP BY sex",
    "MIN(x), MAX(x), COUNT(*) FROM t",
]


@pytest.mark.parametrize(
    "period",
    [p if p == "month" else pytest.param(p, marks=pytest.mark.slow) for p in Period],
)
@pytest.mark.parametrize("question", DATE_QUESTIONS)
def test_periods_are_intervals_of_days(question: str, period: str) -> None:
    """Every question about dates is answered as on records spread evenly over each period."""
    case(period).compare(f"SELECT {question}")


NUMBER_QUESTIONS = [
    "COUNT(*) FROM t WHERE x > 0",
    "COUNT(*) FROM t WHERE x >= 1",
    "COUNT(*) FROM t WHERE x > 5.5",
    "COUNT(*) FROM t WHERE x BETWEEN 18 AND 25",
    "COUNT(*) FROM t WHERE x = 20",
    "COUNT(*) FROM t WHERE x IN (20, 21, 22)",
    "COUNT(*) FROM t WHERE x <> 19 AND sex = 1",
    "sex, AVG(x), SUM(x), COUNT(*) FROM t WHERE x > 0 GROUP BY sex",
    "x % 2 AS odd, COUNT(*) FROM t GROUP BY odd",
    "x * x > 300 AS large, COUNT(*) FROM t GROUP BY large",
    "FLOOR(x / 10) AS tens, COUNT(*) FROM t GROUP BY tens",
    "CASE WHEN x < 20 THEN 'young' ELSE 'old' END AS age, COUNT(*) FROM t GROUP BY age",
    "x > sex * 20 AS more, COUNT(*) FROM t GROUP BY more",
    "MIN(x), MAX(x), COUNT(*) FROM t",
]


@pytest.mark.parametrize("name", ["gain", "age"])
@pytest.mark.parametrize("question", NUMBER_QUESTIONS)
def test_bins_of_whole_numbers_hold_whole_numbers(question: str, name: str) -> None:
    """Every question is answered as on records spread evenly over the numbers of each bin."""
    case(name).compare(f"SELECT {question}")


def test_moments_of_whole_numbers_are_exact() -> None:
    """Squares and products are added up over the numbers themselves, not over an interval."""
    made = case("gain")
    sql = "SELECT AVG(x * x), VAR_POP(x), AVG(POWER(x, 3)) FROM t"
    squares, variance, cubes = made.model.sql(sql).rows[0]
    rows = made.table.execute("SELECT x, weight FROM w").fetchnumpy()
    x, weight = np.asarray(rows["x"], float), np.asarray(rows["weight"], float)
    mean = np.average(x, weights=weight)
    assert squares == pytest.approx(np.average(x**2, weights=weight))
    assert variance == pytest.approx(np.average((x - mean) ** 2, weights=weight))
    assert cubes == pytest.approx(np.average(x**3, weights=weight))


@pytest.mark.parametrize("period", ["month", "quarter", "year"])
def test_names_of_periods_are_understood(period: str) -> None:
    """A period compared with a date is all its days: before, in or after it."""
    made = case(period).model

    def count(condition: str) -> float:
        return float(made.sql(f"SELECT COUNT(*) FROM t WHERE {condition}").rows[0][0])

    february = "x BETWEEN '2024-02-01' AND '2024-02-29'"
    assert count("x = '2024-02'") == pytest.approx(count(february))
    assert count("x IN ('2024-02', '2024-07-01')") == pytest.approx(
        count(f"{february} OR x = '2024-07-01'")
    )
    assert count("x <> '2024-02'") == pytest.approx(made.total - count(february))
    assert count("x <= '2024-02'") == pytest.approx(count("x < '2024-03-01'"))
    assert count("x < '2024-Q2'") == pytest.approx(count("x < '2024-04-01'"))
    assert count("x > '2023'") == pytest.approx(count("x > '2023-12-31'"))
    assert count("'2024-02' <= x") == pytest.approx(count("x >= '2024-02-01'"))
    assert count("x BETWEEN '2024-02' AND '2024-Q2'") == pytest.approx(
        count("x BETWEEN '2024-02-01' AND '2024-06-30'")
    )
    names = [row[0] for row in made.sql("SELECT x, COUNT(*) FROM t GROUP BY x ORDER BY x").rows]
    counts = [count(f"x = '{name}'") for name in names]
    assert sum(counts) == pytest.approx(made.total)
    with pytest.raises(InvalidInput, match="Write a day such as '2024-06-30'"):
        count("x = 'spring'")


def test_means_of_bins_are_kept() -> None:
    """The mean of a bin is what AVG gives; parts of the bin share it out without contradiction."""
    column = Number(edges=(0.0, 100.0, 1000.0), means=(20.0, 300.0), special=(0.0,))
    made = Model.of_potentials(Domain({"x": 3}), [], 300.0)
    model = made.with_codebook(Codebook({"x": column.coding}))
    assert model.sql("SELECT AVG(x) FROM t WHERE x > 0").rows[0][0] == pytest.approx(160.0)
    parts = "SELECT x < 50, SUM(x), COUNT(*) FROM t WHERE x > 0 AND x < 100 GROUP BY 1 ORDER BY 2"
    (_, high, n_high), (_, low, n_low) = model.sql(parts).rows
    assert (high + low, n_high + n_low) == (pytest.approx(2000.0), pytest.approx(100.0))
    assert low / n_low < 50.0 < high / n_high
    drawn = column.draw(np.repeat([0, 1, 2], 40_000), np.random.default_rng(1))
    assert (drawn[:40_000] == 0.0).all()
    assert drawn[40_000:80_000].mean() == pytest.approx(20.0, rel=0.02)
    assert drawn[80_000:].mean() == pytest.approx(300.0, rel=0.02)
    assert ((drawn[40_000:80_000] >= 0) & (drawn[40_000:80_000] < 100.0)).all()


def test_records_have_the_numbers_of_their_bins() -> None:
    """Draws of whole numbers reach every number of a bin equally often, and no other."""
    drawn = GAIN.draw(np.repeat(np.arange(GAIN.n_regular), 30_000), np.random.default_rng(2))
    for code in range(GAIN.n_regular):
        values, counts = np.unique(drawn[code * 30_000 : (code + 1) * 30_000], return_counts=True)
        assert values.tolist() == sorted(numbers_of(GAIN, code))
        usual = counts[values != 21]  # which also gets what would have been 20
        assert np.ptp(usual) < 8 * math.sqrt(30_000 / len(counts))
