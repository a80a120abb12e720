"""SQL over numbers in intervals, against DuckDB on records spread evenly over every interval."""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from juncture.errors import InvalidInput
from juncture.model.model import Model
from juncture.tables.codebook import OUTSIDE, Codebook, Coding
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor

EDGES = {"x": (0.0, 10.0, 40.0, 100.0), "y": (-4.0, 0.0, 1.0)}
DOMAIN = Domain({"x": 3, "y": 2, "sex": 2})
MASSES = np.array([[[2, 1], [3, 5]], [[4, 0], [1, 6]], [[2, 3], [0, 1]]])
GRID = {"x": 60, "y": 40}
"""Points over each interval; the steps and cuts of the questions fall between them."""
SPREAD = GRID["x"] * GRID["y"]
"""Records for each of a cell."""


@cache
def model() -> Model:
    """The model of these counts, as many as there are records in the grids."""
    with np.errstate(divide="ignore"):
        table = Factor(DOMAIN, np.log(MASSES))
    codings = {name: Coding.of_bins(edges) for name, edges in EDGES.items()}
    total = float(MASSES.sum()) * SPREAD
    return Model.of_potentials(DOMAIN, [table], total).with_codebook(Codebook(codings))


@cache
def table() -> duckdb.DuckDBPyConnection:
    """A table t with a grid of records for each cell."""
    parts: list[np.ndarray] = []
    grid = {name: (np.arange(n) + 0.5) / n for name, n in GRID.items()}
    for (i, j, sex), n in np.ndenumerate(MASSES):
        x = EDGES["x"][i] + grid["x"] * (EDGES["x"][i + 1] - EDGES["x"][i])
        y = EDGES["y"][j] + grid["y"] * (EDGES["y"][j + 1] - EDGES["y"][j])
        xs, ys = (each.ravel() for each in np.meshgrid(x, y))
        parts += [np.array([xs, ys, np.full(xs.size, sex)])] * int(n)
    columns = dict(zip(("x", "y", "sex"), np.concatenate(parts, axis=1), strict=True))
    connection = duckdb.connect()
    connection.register("t", pa.table(columns))
    return connection


QUESTIONS = [
    "AVG(x), AVG(x * x), AVG(x * x * y), AVG(x * y), SUM(x + y), AVG(x - 2 * y)",
    "VAR_POP(x), STDDEV_POP(y), COVAR_POP(x, y), CORR(x, y), REGR_SLOPE(x, y), VARIANCE(x + y)",
    "AVG(SQRT(x + 1)), AVG(LN(x + 1)), AVG(EXP(y)), AVG(POWER(x, 3)), AVG(1 / (x + 5)), AVG(x / 3)",
    "AVG(CASE WHEN x < 25 THEN x * x ELSE y END), AVG(GREATEST(x, 25)), AVG(LEAST(y, -1))",
    "COUNT(*) FILTER (WHERE x < 25 OR sex = 1), COUNT(*) FILTER (WHERE NOT (x > 10 AND y < 0))",
    "SUM(FLOOR(x / 10)), AVG(FLOOR((x - 5) / 10) * x), SUM(x // 20), AVG(ROUND(y)), SUM(CEIL(-y))",
    "AVG(CAST(x / 4 AS INTEGER)), COUNT_IF(FLOOR(x / 10) = 3 OR sex = 0), AVG(ROUND(x, -1))",
    "SUM(CASE WHEN x > 70 AND y < -2 THEN 1 ELSE 0 END), COUNT_IF(x BETWEEN 5 AND 55)",
]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("group", ["", " GROUP BY sex ORDER BY sex", " GROUP BY x < 25 ORDER BY 1"])
def test_intervals_are_spread_evenly(question: str, group: str) -> None:
    """Every answer is that of many records spread evenly over their intervals."""
    sql = f"SELECT {question} FROM t{group}"
    ours, theirs = model().sql(sql).rows, table().execute(sql).fetchall()
    if "ORDER BY 1" in sql:
        ours, theirs = tuple(sorted(ours)), sorted(theirs)
    np.testing.assert_allclose(
        np.array(ours, dtype=float), np.array(theirs, dtype=float), rtol=2e-3, atol=1e-9
    )


@pytest.mark.parametrize("group", ["", " GROUP BY sex ORDER BY sex"])
def test_quantiles_of_intervals_lie_between_neighbouring_records(group: str) -> None:
    """They are those of many records, but for half the step between these."""
    sql = f"SELECT MEDIAN(x), QUANTILE_CONT(x, 0.9), QUANTILE_CONT(y, 0.1) FROM t{group}"
    ours = np.array(model().sql(sql).rows)
    theirs = np.array(table().execute(sql).fetchall())
    assert (np.abs(ours - theirs) <= 0.51 * np.array([1, 1, 0.1])).all()


def test_groups_by_steps_of_an_interval() -> None:
    """An interval is cut where a step function jumps, and its groups get their shares."""
    sql = "SELECT FLOOR(x / 25) * 25 AS f, COUNT(*), AVG(x) FROM t GROUP BY f ORDER BY f"
    ours, theirs = model().sql(sql).rows, table().execute(sql).fetchall()
    np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-9)
    (first,) = model().sql(f"{sql} LIMIT 1").rows
    masses = MASSES.sum(axis=(1, 2)) * SPREAD
    assert first[:2] == pytest.approx((0, masses[0] + masses[1] / 2))
    with pytest.raises(InvalidInput, match="larger steps"):
        model().sql("SELECT FLOOR(x * 1e9) AS f, COUNT(*) FROM t GROUP BY f")


def test_moments_of_intervals_are_exact() -> None:
    """Polynomials are integrated, not taken at the middle: the variance has width^2 / 12 in it."""
    (row,) = model().sql("SELECT AVG(x * x), AVG(POWER(x, 5)), VAR_POP(x) FROM t WHERE x < 10").rows
    assert row == pytest.approx((100 / 3, 1e5 / 6, 100 / 12), rel=1e-11)
    (row,) = model().sql("SELECT AVG(x * x * x) FROM t WHERE x > 20 AND x < 30").rows
    assert row == pytest.approx(((30**4 - 20**4) / 40,), rel=1e-11)


def test_extremes_of_intervals_are_their_ends() -> None:
    """The least and the largest number are where the pieces with records end."""
    (row,) = (
        model().sql("SELECT MIN(x), MAX(x), MIN(y), MAX(y) FROM t WHERE x < 25 AND y < -1").rows
    )
    assert row == (0.0, 25.0, -4.0, -1.0)


REFUSED = [
    *("SUM(FLOOR(x * x))", "SUM(x % 2)", "AVG(ABS(y))", "MIN(x + 1)", "SUM(x::DECIMAL(4, 1))"),
    *(
        "MIN(FLOOR(x))",
        "SUM(FLOOR(x + y))",
        "SUM(FLOOR(1 / x))",
        "MEDIAN(2 * x)",
        "COUNT_IF(x > y)",
    ),
    *("COUNT(*) FILTER (WHERE x + 1 > 3)", "SUM(CASE WHEN 2 * x > 3 THEN 1 END)", "MODE(x)"),
    *("COUNT_IF(x IS DISTINCT FROM 3)", "QUANTILE_DISC(x, 0.5)", "SUM(LENGTH(x::TEXT))"),
    *("AVG(GREATEST(x, y))", "COUNT_IF(x = 3)", "COUNT_IF((x, sex) IN ((3, 1)))"),
]


@pytest.mark.parametrize("question", REFUSED)
def test_what_would_not_be_right_for_intervals_is_refused(question: str) -> None:
    """Steps, corners and comparisons of two intervals have no exact answer."""
    with pytest.raises(InvalidInput, match="interval"):
        model().sql(f"SELECT {question} FROM t")


def test_groups_of_intervals_keep_their_order() -> None:
    """Labels are sorted by their intervals, alone and in windows and sums of groups."""
    sql = (
        "SELECT x, COUNT(*), SUM(COUNT(*)) OVER (ORDER BY x) FROM t GROUP BY ROLLUP (x) ORDER BY x"
    )
    rows = model().sql(sql).rows
    assert [row[0] for row in rows] == ["[0, 10)", "[10, 40)", "[40, 100)", None]
    masses = MASSES.sum(axis=(1, 2)) * SPREAD
    np.testing.assert_allclose([row[1] for row in rows], [*masses, masses.sum()])
    np.testing.assert_allclose([row[2] for row in rows[:3]], np.cumsum(masses))


def test_values_outside_the_domain_stay_apart_in_joint_tables() -> None:
    """They are not missing, no comparison is true of them, and an average leaves them out."""
    domain = Domain({"x": 4, "z": 2})
    masses = np.outer([1.0, 2.0, 4.0, 8.0], [1.0, 1.0])
    book = Codebook({"x": Coding((1, 2, None, OUTSIDE))})
    made = Model.of_potentials(domain, [Factor(domain, np.log(masses))], 30.0).with_codebook(book)

    def ask(sql: str) -> Any:
        return made.sql(f"SELECT {sql} FROM t").rows[0][0]

    assert ask("COUNT(*) FILTER (WHERE x IS NULL OR z = 5 - 5)") == pytest.approx(15 + 4)
    assert ask("COUNT(*) FILTER (WHERE x IS NOT NULL OR z > 1)") == pytest.approx(22)
    assert ask("COUNT(*) FILTER (WHERE NOT (x = 1 AND z < 5))") == pytest.approx(4)
    assert ask("AVG(x)") == pytest.approx(10 / 6)
    assert ask("SUM(COALESCE(x, 0) + z)") == pytest.approx(10 + 7)
    assert ask("MAX(x)") == 2
    rows = made.sql("SELECT x, MEDIAN(z) FROM t GROUP BY x ORDER BY x").rows
    assert [row[0] for row in rows] == [1, 2, "(outside)", None]
    for wrong in ("GREATEST(x, 1)", "CONCAT(x, '')", "x IS DISTINCT FROM 1"):
        with pytest.raises(InvalidInput, match="outside the domain"):
            ask(f"COUNT({wrong})")
