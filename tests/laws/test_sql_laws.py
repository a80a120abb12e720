"""SQL answered by a model, against DuckDB on the table written out record by record."""

from __future__ import annotations

import math
import tracemalloc
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pytest

from exact import questions_of
from juncture.errors import InvalidInput, ModelTooLarge
from juncture.model.model import Model
from juncture.model.sql.select import Source, run
from juncture.tables.codebook import OUTSIDE, Codebook, Coding
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.queries.blocks import Buckets, Identity, Matrix
from juncture.tables.queries.products import Kron

DOMAIN = Domain({"age": 6, "sex": 2, "job": 4, "hours-per-week": 3})
JOBS = ("clerk", "nurse", "pilot", None)
BOOK = Codebook({"job": Coding(JOBS), "sex": Coding(("female", "male"))})


def counts() -> np.ndarray:
    """Whole counts of all records, some of them none."""
    rng = np.random.default_rng(4)
    found: np.ndarray = rng.integers(0, 4, DOMAIN.shape) * (rng.random(DOMAIN.shape) < 0.7)
    return found


def model() -> Model:
    """The model whose expected counts are those counts."""
    with np.errstate(divide="ignore"):
        table = Factor(DOMAIN, np.log(counts()))
    return Model.of_potentials(DOMAIN, [table], float(counts().sum()))


def expanded(labelled: bool) -> duckdb.DuckDBPyConnection:
    """A table t with one row for each record."""
    connection = duckdb.connect()
    job, sex = ("VARCHAR", "VARCHAR") if labelled else ("BIGINT", "BIGINT")
    connection.execute(
        f'CREATE TABLE t (age BIGINT, sex {sex}, job {job}, "hours-per-week" BIGINT)'
    )
    rows: list[tuple[Any, ...]] = []
    for cell, n in np.ndenumerate(counts()):
        age, sex_code, job_code, hours = map(int, cell)
        record = (age, sex_code, job_code, hours)
        if labelled:
            record = (age, ("female", "male")[sex_code], JOBS[job_code], hours)  # type: ignore[assignment]
        rows += [record] * int(n)
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    return connection


CODES = [
    "SELECT COUNT(*) FROM t",
    "SELECT COUNT(*) AS n, SUM(age), AVG(age) FROM t WHERE age BETWEEN 1 AND 3 AND sex = 1",
    "SELECT sex, COUNT(*), AVG(age) FROM t WHERE age >= 2 AND job IN (0, 2) "
    "GROUP BY sex ORDER BY 1",
    "SELECT job, sex, COUNT(*) n FROM t GROUP BY job, sex HAVING COUNT(*) > 8 "
    "ORDER BY n DESC, job, sex",
    'SELECT "hours-per-week" AS h, SUM(age * "hours-per-week") / COUNT(*) FROM t '
    "GROUP BY h ORDER BY h",
    "SELECT AGE, Count(*) FROM T WHERE NOT (age = 2 OR age = 3) GROUP BY age "
    "ORDER BY age DESC LIMIT 2 OFFSET 1",
    "SELECT age > 2 AS old, COUNT(*) FROM t GROUP BY old ORDER BY old",
    "SELECT CASE WHEN age < 2 THEN 'young' WHEN age < 4 THEN 'middle' ELSE 'old' END AS c, "
    "COUNT(*), AVG(job) FROM t GROUP BY c ORDER BY c",
    "SELECT SUM(CASE WHEN job = 2 THEN 1 ELSE 0 END) / COUNT(*), ROUND(AVG(2 * age + 1), 3) FROM t",
    "SELECT COUNT(*) FILTER (WHERE sex = 0), SUM(age) FILTER (WHERE job <> 1 AND sex = 1) FROM t",
    "SELECT sex, AVG(age) - AVG(job) AS d FROM t GROUP BY sex HAVING d > -10 ORDER BY d",
    "SELECT age % 2 AS odd, COUNT(*) FROM t WHERE 1 = 1 GROUP BY odd ORDER BY odd",
    "SELECT COUNT(*), SUM(age), AVG(age) FROM t WHERE age < 1 AND age > 3",
    "SELECT sex, COUNT(*) FROM t WHERE age < 1 AND age > 3 GROUP BY sex",
    "SELECT SUM(3), COUNT(1), SUM(-age), AVG(age) * 100 FROM t WHERE TRUE AND age IN (-0, 5)",
    "SELECT sex, age, COUNT(*) FROM t GROUP BY 1, 2 ORDER BY 3, 2, 1",
    "SELECT age AS a, COUNT(*) FROM t GROUP BY a ORDER BY a",
    "SELECT age AS a, COUNT(*) AS N FROM t GROUP BY age HAVING n > 3 ORDER BY N, A",
    "SELECT age AS sex, COUNT(*) AS age FROM t GROUP BY t.age ORDER BY age, sex LIMIT 2",
    "SELECT (age % 2) + 1, COUNT(*) FROM t GROUP BY age % 2 ORDER BY 1",
    "SELECT ROUND(age / 2) AS r, COUNT(*) FROM t GROUP BY r ORDER BY r",
    "SELECT (age - 3) // 2 AS h, COUNT(*) FROM t GROUP BY h ORDER BY h",
    "SELECT COUNT(*) FROM t WHERE " + " OR ".join(["age = 1", "age = 2"] * 300),
    "SELECT COUNT(*) FROM t WHERE " + " AND ".join(["age < 4", "age > 0"] * 300),
    "SELECT COALESCE(NULLIF(COUNT(*), 0), -1), ABS(-SUM(age)), CAST(AVG(age) AS INTEGER) FROM t",
]
TIED = [
    "SELECT COUNT(*) FROM t WHERE age = 1 OR sex = 1",
    "SELECT job, COUNT(*) FROM t WHERE NOT (age > 2 AND sex = 0) GROUP BY job ORDER BY job",
    "SELECT COUNT(*) FROM t WHERE (age, sex) IN ((1, 0), (2, 1), (5, 1))",
    "SELECT COUNT(*) FROM t WHERE age > job AND sex = 1",
    'SELECT sex, SUM(CASE WHEN age > job THEN "hours-per-week" ELSE -1 END) FROM t '
    "GROUP BY sex ORDER BY sex",
    "SELECT CASE WHEN age > 2 AND sex = 1 THEN 'x' WHEN job = 0 THEN 'y' END AS c, COUNT(*), "
    "AVG(age) FROM t GROUP BY c ORDER BY c NULLS FIRST",
    "SELECT sex, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM t GROUP BY sex ORDER BY 1",
    "SELECT sex, job, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY sex) FROM t "
    "GROUP BY sex, job ORDER BY ALL",
    "SELECT job, COUNT(*) / (SELECT COUNT(*) FROM t WHERE sex = 1) FROM t WHERE sex = 1 "
    "GROUP BY job ORDER BY job",
    "SELECT COUNT(*) FROM t WHERE age > (SELECT AVG(age) FROM t)",
    "SELECT COUNT(*) FROM t WHERE age IN (SELECT age FROM t GROUP BY age HAVING COUNT(*) > 40)",
    "SELECT SUM(age + job), AVG(age - job), SUM((age + 1) * (job - 2) + sex), SUM(-(age + sex)) "
    "FROM t",
    "SELECT sex, STDDEV(age), STDDEV_POP(age), VARIANCE(age), VAR_POP(age), VAR_SAMP(job) FROM t "
    "GROUP BY sex ORDER BY sex",
    "SELECT CORR(age, job), COVAR_POP(age, job), COVAR_SAMP(age, job), REGR_SLOPE(age, job), "
    "REGR_INTERCEPT(age, job), REGR_R2(age, job), REGR_COUNT(age, job) FROM t WHERE age < 5",
    "SELECT CORR(age, sex), REGR_SLOPE(age, sex), REGR_R2(sex, age) FROM t WHERE sex = 1",
    "SELECT STDDEV(age + 2 * job) FROM t",
    "SELECT sex, MEDIAN(age), QUANTILE_CONT(age, 0.3), QUANTILE_DISC(age, 0.25), MIN(age), "
    "MAX(age), MODE(age), PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age DESC) FROM t "
    "GROUP BY sex ORDER BY sex",
    "SELECT MEDIAN(age + job) FILTER (WHERE sex = 1), MIN(age * job) FROM t",
    "SELECT MEDIAN(age), MIN(age), MODE(age), STDDEV(age) FROM t WHERE age > 5",
    "WITH old AS (SELECT age AS a, sex FROM t WHERE age > 2) "
    "SELECT sex, AVG(a) FROM old GROUP BY sex ORDER BY sex",
    "SELECT AVG(n) FROM (SELECT job, COUNT(*) AS n FROM t GROUP BY job)",
    "WITH a AS (SELECT * FROM t WHERE sex = 1), b AS (SELECT age * 2 AS d, job FROM a) "
    "SELECT d, COUNT(*) FROM b WHERE d > 2 GROUP BY d ORDER BY d",
    "SELECT x.n FROM (SELECT age, COUNT(*) AS n FROM t GROUP BY age) AS x "
    "ORDER BY x.n DESC LIMIT 2",
    "SELECT sex, job, COUNT(*), GROUPING(sex, job) FROM t GROUP BY ROLLUP (sex, job) "
    "ORDER BY 1, 2, 3",
    "SELECT sex, job, AVG(age) FROM t GROUP BY CUBE (sex, job) ORDER BY 1, 2, 3",
    "SELECT sex, job, SUM(age) FROM t WHERE age = 3 GROUP BY GROUPING SETS ((sex, job), sex, ()) "
    "ORDER BY 1, 2, 3",
    "SELECT sex, COUNT(*) FROM t WHERE age > 5 GROUP BY ROLLUP (sex)",
    "SELECT FLOOR(age / 2) AS f, CEIL(age / 4), POWER(age // 4, 2), COUNT(*) FROM t "
    "GROUP BY ALL ORDER BY ALL",
    "SELECT SUM(SQRT(age)), SUM(LN(age + 1)), AVG(GREATEST(age, 3)), AVG(LEAST(age, job)), "
    "SUM(EXP(age)), SUM(SIGN(age - 3)) FROM t",
    "SELECT DISTINCT sex FROM t ORDER BY sex DESC",
    "SELECT DISTINCT COUNT(*) > 60 FROM t GROUP BY age ORDER BY 1",
    "SELECT age, RANK() OVER (ORDER BY COUNT(*) DESC), SUM(COUNT(*)) OVER (ORDER BY age) FROM t "
    "GROUP BY age ORDER BY age",
    "SELECT age, COUNT(*) FROM t GROUP BY age QUALIFY ROW_NUMBER() OVER (ORDER BY age DESC) <= 2 "
    "ORDER BY age",
    "SELECT COUNT(*) FROM t WHERE age IS DISTINCT FROM 3 AND sex IS NOT DISTINCT FROM 1",
    "SELECT CAST(AVG(age) AS DECIMAL(10, 2)), AVG(age)::DECIMAL(6, 1), SUM(age::DECIMAL(4, 1)) "
    "FROM t",
    "SELECT SUM(1 / age), COUNT(*) FILTER (WHERE 1 / age > 1), AVG(age / 0) FROM t",
    "SELECT COUNT_IF(age > job), COUNT(*) FILTER (WHERE age > job OR sex = 1) FROM t",
    "SELECT MAX(age) FROM t GROUP BY age ORDER BY 1",
    "SELECT COUNT(*) FROM t HAVING COUNT(*) > 1000000",
    "SELECT COUNT(*) FROM t AS people WHERE people.age = 1 OR people.sex = 0 OR 2 > 3",
    "SELECT TRY_CAST(age AS VARCHAR) AS v, COUNT(*) FROM t GROUP BY v ORDER BY v",
    'SELECT AVG(age + sex) FROM t WHERE age = 1 OR job = 2 OR "hours-per-week" = 1',
]
TIED_LABELS = [
    "SELECT COUNT(*) FROM t WHERE job = 'clerk' OR sex = 'male'",
    "SELECT COUNT(*) FROM t WHERE NOT (job = 'clerk' AND sex = 'male')",
    "SELECT UPPER(LEFT(job, 1)) AS u, LENGTH(job), SUBSTRING(sex, 1, 2), COUNT(*) FROM t "
    "GROUP BY ALL ORDER BY ALL",
    "SELECT sex || '-' || COALESCE(job, '?') AS b, COUNT(*) FROM t GROUP BY b ORDER BY b",
    "SELECT COUNT(*) FROM t WHERE regexp_matches(job, '^[cn]') OR job SIMILAR TO 'p.*t'",
    "SELECT COUNT(*) FROM t WHERE job LIKE '%l_t' OR job ILIKE 'C%K' OR job LIKE 'n!_%' ESCAPE '!'",
    "SELECT MIN(job), MAX(job), MEDIAN(job), MODE(job) FROM t WHERE age < 4",
    "SELECT job, sex, COUNT(*) FROM t GROUP BY ROLLUP (job, sex) ORDER BY 1, 2, 3",
    "SELECT COUNT(*) FROM t WHERE job IS DISTINCT FROM 'clerk' AND sex > 'f'",
    "SELECT (job, sex) IN (('clerk', 'male'), ('nurse', 'female')) AS p, COUNT(*) FROM t "
    "GROUP BY p ORDER BY p",
    "SELECT COUNT(*) FROM t WHERE (job = 'clerk') IS TRUE OR TRY_CAST(job AS INTEGER) = 1",
    "SELECT job, SUM(age) / SUM(SUM(age)) OVER () FROM t GROUP BY job HAVING job IS NOT NULL "
    "ORDER BY job",
]
LABELS = [
    "SELECT job, COUNT(*) FROM t GROUP BY job ORDER BY job",
    "SELECT job, COUNT(*) FROM t GROUP BY job ORDER BY job NULLS FIRST",
    "SELECT COUNT(*), COUNT(job) FROM t WHERE sex = 'male'",
    "SELECT COUNT(*) FROM t WHERE job IS NULL",
    "SELECT sex, AVG(age) FROM t WHERE job IS NOT NULL AND job <> 'nurse' "
    "GROUP BY sex ORDER BY sex",
    "SELECT COUNT(*) FROM t WHERE job LIKE '%l%' AND NOT job = 'pilot'",
    "SELECT COUNT(*) FROM t WHERE job IN ('clerk', 'pilot') OR job IS NULL",
    "SELECT COUNT(*) FROM t WHERE job NOT LIKE 'c%'",
    "SELECT COUNT(*) FROM t WHERE job NOT ILIKE 'C%' AND sex NOT IN ('male')",
    "SELECT job, COUNT(*) FROM t GROUP BY job ORDER BY COUNT(*) DESC, job",
    "SELECT job IN ('clerk', 'nurse') AS ground, COUNT(*) FROM t GROUP BY ground ORDER BY ground",
]


def compare(ours: Any, theirs: list[tuple[Any, ...]]) -> None:
    """The same rows in the same order, numbers up to rounding."""
    assert len(ours.rows) == len(theirs)
    for mine, other in zip(ours.rows, theirs, strict=True):
        for a, b in zip(mine, other, strict=True):
            if isinstance(b, str | bool) or b is None:
                assert a == b
            else:
                assert float(a) == pytest.approx(float(b), rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("sql", CODES + TIED)
def test_codes(sql: str) -> None:
    """The attributes' codes are the values."""
    compare(model().sql(sql), expanded(labelled=False).execute(sql).fetchall())


@pytest.mark.parametrize("sql", LABELS + TIED_LABELS)
def test_values(sql: str) -> None:
    """With a codebook, the user's values are, and a code may stand for a missing one."""
    answer = model().with_codebook(BOOK).sql(sql)
    compare(answer, expanded(labelled=True).execute(sql).fetchall())


def test_intervals_count_in_proportion() -> None:
    """Conditions cut intervals where they fall, as if numbers were spread evenly."""
    domain = Domain({"age": 3, "sex": 2})
    masses = np.array([[10.0, 20.0], [40.0, 10.0], [5.0, 15.0]])
    made = Model.of_potentials(domain, [Factor(domain, np.log(masses))], 100.0)
    made = made.with_codebook(Codebook({"age": Coding.of_bins([0, 20, 60, 100])}))

    def ask(sql: str) -> tuple[Any, ...]:
        (row,) = made.sql(sql).rows
        return row

    assert ask("SELECT COUNT(*) FROM t WHERE age < 30")[0] == pytest.approx(30 + 50 / 4)
    assert ask("SELECT COUNT(*) FROM t WHERE age > 30 AND age < 40")[0] == pytest.approx(50 / 4)
    assert ask("SELECT COUNT(*) FROM t WHERE age BETWEEN 30 AND 40")[0] == pytest.approx(50 / 4)
    assert ask("SELECT AVG(age) FROM t WHERE age > 30 AND age < 40 AND sex = 1")[
        0
    ] == pytest.approx(35)
    assert ask("SELECT COUNT(*) FROM t WHERE NOT (age < 10 OR age >= 80)")[0] == pytest.approx(
        15 + 50 + 10
    )
    assert ask("SELECT COUNT(*) FROM t WHERE age < 10 + 20")[0] == pytest.approx(42.5)
    assert ask("SELECT COUNT(*) FROM t WHERE 30 > age")[0] == pytest.approx(42.5)
    assert ask("SELECT SUM(CASE WHEN age < 30 THEN 1 ELSE 0 END) FROM t")[0] == pytest.approx(42.5)
    for wrong in ("age * 2 < 60", "ABS(age - 30) < 5", "age + 5 < 35", "age < age"):
        with pytest.raises(InvalidInput, match="solve the condition for the column"):
            ask(f"SELECT COUNT(*) FROM t WHERE {wrong}")
    with pytest.raises(InvalidInput, match="solve the condition for the column"):
        made.sql("SELECT age % 10 AS d, COUNT(*) FROM t GROUP BY d")
    rows = made.sql("SELECT age, COUNT(*) FROM t GROUP BY age ORDER BY age DESC").rows
    assert [row[0] for row in rows] == ["[60, 100)", "[20, 60)", "[0, 20)"]


def test_interval_labels_do_not_run_together() -> None:
    """Groups are told apart however alike their ends look."""
    domain = Domain({"x": 3})
    made = Model.of_potentials(domain, [Factor(domain, np.log([1.0, 2.0, 3.0]))], 6.0)
    book = Codebook({"x": Coding.of_bins([1_000_000, 1_000_001, 1_000_002, 1_000_003])})
    rows = made.with_codebook(book).sql("SELECT x, COUNT(*) FROM t GROUP BY x").rows
    assert [round(count) for _, count in rows] == [1, 2, 3]
    assert rows[0][0] == "[1e+06, 1000001.0)"
    for meanings in ((1, True, 5), (1, 1.0, 5), ("[0, 1)", (0.0, 1.0), 5)):
        with pytest.raises(InvalidInput, match="must differ from code to code"):
            Coding(meanings)


def test_values_outside_the_domain_are_neither_missing_nor_comparable() -> None:
    """They are counted, and no condition on values is true of them."""
    domain = Domain({"x": 4})
    made = Model.of_potentials(domain, [Factor(domain, np.log([1.0, 2.0, 4.0, 8.0]))], 15.0)
    named = made.with_codebook(Codebook({"x": Coding((1, 2, None, OUTSIDE))}))

    def count(sql: str) -> Any:
        return named.sql(f"SELECT {sql} FROM t").rows[0][0]

    assert count("COUNT(*)") == pytest.approx(15.0)
    assert count("COUNT(x)") == pytest.approx(11.0)
    assert count("COUNT(*) FILTER (WHERE x IS NULL)") == pytest.approx(4.0)
    assert count("COUNT(*) FILTER (WHERE x > 0)") == pytest.approx(3.0)
    assert count("COUNT(*) FILTER (WHERE NOT x > 1)") == pytest.approx(1.0)
    assert count("SUM(x)") == pytest.approx(5.0)
    rows = named.sql("SELECT x, COUNT(*) FROM t GROUP BY x ORDER BY 2").rows
    assert [row[0] for row in rows] == [1, 2, None, "(outside)"]


REFUSED = [
    ("SELECT * FROM t", "got records"),
    ("SELECT age, sex FROM t", "got records"),
    ("SELECT COUNT(*) FROM t JOIN u ON t.age = u.age", "Joins"),
    ("SELECT COUNT(*) FROM t, u", "Joins"),
    ("SELECT COUNT(*) FROM t WHERE age IN (SELECT 1)", "no FROM"),
    ("SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM t)", "Use IN"),
    ("SELECT COUNT(*) FROM t a WHERE age > (SELECT AVG(age) FROM t b WHERE b.sex = a.sex)",
     "a.sex"),
    ("SELECT COUNT(*) FROM (SELECT age FROM t) WHERE sex = 'male'", "'sex'"),
    ("SELECT COUNT(*) FROM t WHERE age = (SELECT age FROM t GROUP BY age)", "one row"),
    ("SELECT COUNT(*) FROM t WHERE age = (SELECT 1 AS a, COUNT(*) FROM t)", "one column"),
    ("SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM t", "another kind"),
    ("WITH RECURSIVE u AS (SELECT age FROM t) SELECT COUNT(*) FROM u", "recursion"),
    ("SELECT COUNT(DISTINCT age) FROM t", "distinct"),
    ("SELECT DISTINCT ON (age) age, COUNT(*) FROM t GROUP BY age", "DISTINCT ON"),
    ("SELECT age AS a, b AS c, c AS b, COUNT(*) FROM t", "circle"),
    ("SELECT COUNT(*) FROM read_csv('records.csv')", "understood here"),
    ("SELECT ARG_MAX(job, age) FROM t", "understood here"),
    ("SELECT COUNT(*) FROM t WHERE age BETWEEN SYMMETRIC 3 AND 1", "understood here"),
    ("SELECT COUNT(*) FROM t WHERE age = sex", "read as each other"),
    ("SELECT SUM(COUNT(*)) FROM t", "no aggregates in an aggregate"),
    ("SELECT COUNT(*) FROM t WHERE COUNT(*) > 1", "no aggregates"),
    ("SELECT sex, COUNT(*) FROM t", "group by every column"),
    ("SELECT COUNT(*) FROM t WHERE income = 1", "income"),
    ("SELECT COUNT(*) FROM t WHERE age = 77", "one that a code stands for"),
    ("SELECT COUNT(*) FROM t WHERE (age, sex) IN ((77, 'male'))", "one that a code stands for"),
    ("SELECT COUNT(*) FROM t WHERE job = 'baker'", "'clerk', 'nurse', 'pilot', None"),
    ("SELECT COUNT(*) FROM t WHERE job < 3", "suit the types .*Cannot compare"),
    ("SELECT SUM(job) FROM t", r"suit the types .*sum\(VARCHAR\)"),
    ("SELECT COUNT(*) OVER () FROM t", "got records"),
    ("SELECT COUNT(*) FROM t USING SAMPLE 10%", "must"),
    ("SELECT COUNT(*) FROM t LIMIT 50%", "understood here"),
    ("SELECT COUNT(*) FROM t LIMIT -1", "LIMIT"),
    ("SELECT COUNT(*) FROM t LIMIT NULL", "LIMIT"),
    ("SELECT COUNT(*) FROM t FETCH FIRST 1 ROWS ONLY", "FETCH"),
    ("SELECT COUNT(age, sex) FROM t", "one expression"),
    ("SELECT SUM(CAST(job AS INTEGER)) FROM t", "Could not convert string 'clerk'"),
    ("SELECT SUM(-job) FROM t", "suit the types"),
    ("SELECT AVG(age > 2) FROM t", r"avg\(BOOLEAN\)"),
    ("SELECT COUNT(*) FROM t WHERE age % 0 = 1", "Division by zero"),
    ("SELECT COUNT(*) FROM t WHERE job LIKE sex", "pattern of LIKE"),
    ("SELECT QUANTILE_CONT(age, 2) FROM t", "QUANTILE"),
    ("SELECT QUANTILE_CONT(age, -0.5) FROM t", "from 0 to 1"),
    ("SELECT GETENV('HOME'), COUNT(*) FROM t", "understood here"),
    ("SELECT COUNT(*) FROM t WHERE REPEAT(job, 1000000000) = ''", "understood here"),
    ("SELECT COUNT(*) FROM t WHERE regexp_matches(job, '(a{1000}){1000}')", "repetition"),
    ("SELECT COUNT(*) FROM t WHERE age = " + "(" * 3000 + "1" + ")" * 3000, "`sql` must"),
    ("SELECT age, COUNT(*) FROM t GROUP BY 7", "positions from 1 to 2"),
    ("SELECT age, COUNT(*) FROM t GROUP BY CUBE(age, sex, job), CUBE(age, sex, job), "
     "CUBE(age, sex, job)", "grouping sets"),
    ("SELECT age, COUNT(*) FROM t GROUP BY ROLLUP(age, age)", "each column once"),
    ("DELETE FROM t", "another kind of statement"),
    ("SELECT 1; SELECT 2", "got 2 statements"),
    ("SELECT CAST(1e308 * 1e308 * COUNT(*) AS INTEGER) FROM t", "out of range"),
    ("SELECT COUNT(*) * " + "9" * 5000 + " FROM t", "read as each other.{,250}$"),
    ("SELECT ROUND(COUNT(*), " + str(10**30) + ") FROM t", "suit the types"),
    ("SELECT FROM WHERE", "one SELECT"),
    ("", "got nothing"),
    (" ; ", "got nothing"),
    ("WITH u AS (SELECT 1) SELECT COUNT(*) FROM u", "no FROM"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "reason"), REFUSED)
def test_what_has_no_answer_is_refused_with_a_reason(sql: str, reason: str) -> None:
    """Every refusal says what is in the way."""
    with pytest.raises(InvalidInput, match=reason):
        model().with_codebook(BOOK).sql(sql)


@pytest.mark.parametrize("places", [-400, -300, -2, -1, 0, 1, 5, 15, 17, 22, 300, 400])
def test_rounding_to_any_number_of_places(places: int) -> None:
    """ROUND gives the nearest number with so many places, whatever their number."""
    sql = f"SELECT ROUND(COUNT(*), {places}), ROUND(1e300 * COUNT(*), {places}), COUNT(*) FROM t"
    ((rounded, large, count),) = model().sql(sql).rows
    exact = Decimal(count)
    unit = Decimal(10) ** -max(-400, min(400, places))
    assert abs(Decimal(rounded) - exact) <= unit / 2 + exact * Decimal(2) ** -51
    assert abs(Decimal(large) / 10**300 - exact) <= unit / Decimal(10) ** 300 + exact / 10**14
    if places >= 17:
        assert rounded == count


def test_answers_can_be_read() -> None:
    """As text and as dictionaries."""
    answer = model().sql("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex")
    assert answer.columns == ("sex", "n")
    assert [row["sex"] for row in answer.to_dicts()] == [0, 1]
    assert str(answer).splitlines()[0].split() == ["sex", "n"]
    empty = model().sql("SELECT SUM(age) FROM t WHERE age < 0")
    assert str(empty).split()[-1] == "NULL"
    assert not math.isnan(model().total)


def asked_blocks(sql: str) -> dict[str, Any]:
    """The blocks of the counts behind a query."""
    asked = []

    def ask(query: Kron) -> np.ndarray:
        asked.append(query)
        return model().answer(query)

    run(sql, Source(BOOK.bind(DOMAIN), 1.0, ask, ()))
    return dict(asked[0].blocks)


def test_a_plain_group_by_asks_for_the_marginal() -> None:
    """Grouping by columns needs no matrix; grouping values together makes buckets of codes."""
    plain = asked_blocks("SELECT sex, age, COUNT(*) FROM t GROUP BY sex, age")
    assert plain == {"sex": Identity(), "age": Identity()}
    filtered = asked_blocks("SELECT sex, COUNT(*) FILTER (WHERE age < 2) FROM t GROUP BY sex")
    assert filtered["sex"] == Identity()
    together = asked_blocks("SELECT age % 2 AS odd, COUNT(*) FROM t GROUP BY odd")
    assert together == {"age": Buckets(code % 2 for code in range(DOMAIN["age"]))}
    weighted = asked_blocks("SELECT age, COUNT(*) FROM t WHERE age > 1 GROUP BY age")
    assert isinstance(weighted["age"], Matrix)


def test_a_known_marginal_is_not_sought_in_the_tree() -> None:
    """Counts inside one measured clique come from its table: no tree is made for them."""
    made = model()
    answer = made.sql("SELECT sex, COUNT(*) FROM t WHERE age > 1 GROUP BY sex ORDER BY sex")
    assert not questions_of(made).is_calibrated
    expected = counts()[2:].sum(axis=(0, 2, 3))
    np.testing.assert_allclose([row[1] for row in answer.rows], expected)


def test_large_attributes_need_no_square_matrix() -> None:
    """Sums grouped by an attribute of many values, which are as many rows as columns."""
    size = 4000
    domain = Domain({"x": size, "y": 2})
    masses = np.arange(1.0, size + 1)
    table = Factor(domain.project(("x",)), np.log(masses))
    made = Model.of_potentials(domain, [table], float(masses.sum()))
    tracemalloc.start()
    answer = made.sql("SELECT x, SUM(x), AVG(y) FROM t WHERE x % 2 = 0 GROUP BY x ORDER BY x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size * size  # a byte for each entry of the matrix
    found = np.array(answer.rows)
    np.testing.assert_allclose(found[:, 0], np.arange(0, size, 2))
    np.testing.assert_allclose(found[:, 1], (np.arange(size) * masses)[::2])
    np.testing.assert_allclose(found[:, 2], 0.5)


@pytest.mark.parametrize(
    ("sql", "n_groups"),
    [
        ("SELECT COUNT(*) FROM t WHERE age < 3", 1),
        ("SELECT age, COUNT(*) FROM t GROUP BY age", DOMAIN["age"]),
        ("SELECT age, sex, COUNT(*) FROM t GROUP BY 1, 2", DOMAIN["age"] * 2),
        ("SELECT age % 2 AS odd, sex, COUNT(*) FROM t GROUP BY 1, 2", 4),
        ("SELECT age, age % 2 AS odd, COUNT(*) FROM t GROUP BY 1, 2", DOMAIN["age"]),
    ],
)
def test_a_limit_counts_the_groups_of_a_query(sql: str, n_groups: int) -> None:
    """As many groups as a query makes are allowed; one fewer is refused, by counts alone too."""
    made = model()
    unlimited, table = made.sql(sql), made.sql_counts(sql)
    assert table.size == n_groups
    assert made.sql(sql, max_groups=n_groups) == unlimited
    np.testing.assert_array_equal(made.sql_counts(sql, max_groups=n_groups), table)
    for ask in (made.sql, made.sql_counts):
        with pytest.raises(ModelTooLarge, match=f"at most {n_groups - 1} groups; got {n_groups}"):
            ask(sql, max_groups=n_groups - 1)


def test_counts_of_groups_are_all_there() -> None:
    """Unlike an answer's rows, the table holds the groups without records, as zeros."""
    sql = 'SELECT job, "hours-per-week", COUNT(*) FROM t WHERE age = 0 AND sex = 0 GROUP BY 1, 2'
    expected = counts()[0, 0]
    assert (expected == 0).any()
    np.testing.assert_allclose(model().sql_counts(sql), expected, atol=1e-9)
    assert len(model().sql(sql).rows) == (expected > 0).sum()


@pytest.mark.parametrize(
    ("sql", "n_groups"),
    [
        ("SELECT age, COUNT(*) FROM t WHERE age > 1 OR sex = 1 GROUP BY age", 6),
        ("SELECT age + sex AS s, COUNT(*) FROM t GROUP BY s", 7),
        ("SELECT age, MEDIAN(job) FROM t WHERE age < 4 GROUP BY age", 4),
        ("SELECT age, sex, COUNT(*) FROM t GROUP BY ROLLUP (age, sex)", 12 + 6 + 1),
    ],
)
def test_a_limit_counts_the_groups_of_joint_tables_too(sql: str, n_groups: int) -> None:
    """As many groups as there are in the answer are allowed; one fewer is refused."""
    assert len(model().sql(sql, max_groups=max(n_groups, 6)).rows) == n_groups
    with pytest.raises(ModelTooLarge, match="groups"):
        model().sql(sql, max_groups=n_groups - 1)


def test_counts_of_groups_under_tied_conditions() -> None:
    """Counts by single attributes may have conditions on several, and come in the order asked."""
    sql = "SELECT job, age > 2, COUNT(*) FROM t WHERE age = 1 OR sex = 1 GROUP BY job, age > 2"
    masked = counts()[:, :, :, :].astype(float)
    masked[[0, 2, 3, 4, 5], 0] = 0.0
    by_age = masked.sum(axis=(1, 3))
    expected = np.array([by_age[:3].sum(axis=0), by_age[3:].sum(axis=0)]).T
    np.testing.assert_allclose(model().sql_counts(sql), expected, atol=1e-9)
    with pytest.raises(InvalidInput, match="single attributes"):
        model().sql_counts("SELECT age + sex, COUNT(*) FROM t GROUP BY 1")


def test_a_joint_table_that_is_too_large_is_refused_before_it_is_made() -> None:
    """The limit and the attributes are named, nothing is allocated, and AND stays possible."""
    domain = Domain({f"x{i}": 100 for i in range(5)})
    made = Model.of_potentials(domain, [], 1000.0)
    tracemalloc.start()
    with pytest.raises(ModelTooLarge, match=r"1,048,576 combinations.*x0 \(100\), x1 \(100\)"):
        made.sql("SELECT COUNT(*) FROM t WHERE x0 + x1 + x2 + x3 > x4")
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()
    sql = "SELECT COUNT(*) FROM t WHERE x0 > x1 AND x2 < 50 AND x3 < 10 AND x4 = 7"
    assert made.sql(sql).rows[0][0] == pytest.approx(1000 * 0.495 * 0.5 * 0.1 * 0.01)
    factored = "SELECT STDDEV_POP(x0), CORR(x1, x2), AVG(x3 - x4), SUM(x0 + x1 * x2) FROM t"
    (row,) = made.sql(factored).rows
    assert row == pytest.approx((math.sqrt(9999 / 12), 0.0, 0.0, 1000 * (49.5 + 49.5**2)), abs=1e-6)


@pytest.mark.parametrize(
    "condition",
    [
        "x LIKE '" + "%a_" * 300 + "%b'",
        "x ILIKE '" + "%a%_" * 300 + "%b'",
        "regexp_matches(x, '(a*)*(a|aa)*(a*)*c$')",
        "x SIMILAR TO '(a|aa|aaa)+c'",
    ],
)
def test_hostile_patterns_take_linear_time(condition: str) -> None:
    """Patterns that make backtracking matchers hang are answered: no text matches these."""
    book = Codebook({"x": Coding(("a" * 5000, "a" * 4999))})
    made = Model.of_potentials(Domain({"x": 2}), [], 10.0).with_codebook(book)
    assert made.sql(f"SELECT COUNT(*) FROM t WHERE {condition}").rows == ((0.0,),)


def test_answers_of_inner_queries_may_be_empty() -> None:
    """A query over an answer without rows, or with missing values only, still has an answer."""
    inner = "SELECT age, COUNT(*) AS n, SUM(age) AS s FROM t WHERE age > 5 GROUP BY age"
    sql = f"SELECT SUM(n), MAX(age), COUNT(*) FROM ({inner})"
    assert model().sql(sql).rows == ((None, None, 0),)
    compare(
        model().sql("SELECT SUM(s) FROM (SELECT SUM(age) AS s FROM t WHERE age > 5)"), [(None,)]
    )


@pytest.mark.parametrize("total", [1e-300, 0.5, 1.0, 1e15])
def test_means_do_not_depend_on_the_number_of_records(total: float) -> None:
    """Averages, correlations and spreads of the population are those of the distribution."""
    sql = (
        "SELECT sex, AVG(age), CORR(age, job), VAR_POP(age + job), MIN(age), MAX(age), "
        "QUANTILE_DISC(age, 0.4), COUNT(*) / SUM(COUNT(*)) OVER () FROM t GROUP BY sex ORDER BY sex"
    )
    ours = np.array(model().with_total(total).sql(sql).rows)
    np.testing.assert_allclose(ours, np.array(model().sql(sql).rows), rtol=1e-9)
    (row,) = model().with_total(total).sql("SELECT COUNT(*), SUM(age), MEDIAN(age) FROM t").rows
    mean = model().sql("SELECT AVG(age) FROM t").rows[0][0]
    assert row[:2] == pytest.approx((total, total * mean), rel=1e-9)
    if total <= 1.0:  # of a single record, the median is the mean
        assert row[2] == pytest.approx(mean)


_LONG, _PATTERN = f"'{'a' * 2000}'", f"'{'%a' * 40}%b'"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) FROM t WHERE {_LONG} LIKE {_PATTERN}",
        f"SELECT {_LONG} LIKE {_PATTERN} AS found FROM (SELECT COUNT(*) AS n FROM t)",
        f"SELECT COUNT(*) FROM (SELECT sex FROM t GROUP BY sex) WHERE {_LONG} ILIKE {_PATTERN}",
        f"SELECT COUNT(*) FILTER (WHERE {_LONG} LIKE {_PATTERN} ESCAPE '!') FROM t",
        f"SELECT SUM(n) FILTER (WHERE {_LONG} LIKE {_PATTERN}) FROM (SELECT COUNT(*) AS n FROM t)",
        f"SELECT COUNT(*) FROM t HAVING {_LONG} LIKE {_PATTERN}",
        f"SELECT n FROM (SELECT COUNT(*) AS n FROM t) QUALIFY MAX({_LONG} LIKE {_PATTERN}) OVER ()",
    ],
)
def test_like_takes_linear_time_wherever_it_stands(sql: str) -> None:
    """Also over the rows of an answer: a matcher that backtracks would never come back."""
    rows = model().sql(sql).rows
    assert rows in ((), ((0.0,),), ((False,),), ((None,),))


def test_like_over_rows_means_what_it_means_over_records() -> None:
    """Over the rows of an answer, patterns find what they say."""
    inner = "SELECT CASE WHEN sex = 0 THEN 'ab_c' ELSE 'AXYZ' END AS w FROM t GROUP BY sex"
    for condition, found in {
        "w LIKE 'a%'": ["ab_c"],
        "w ILIKE 'A%'": ["AXYZ", "ab_c"],
        "w NOT LIKE 'a%'": ["AXYZ"],
        "w LIKE '%!_%' ESCAPE '!'": ["ab_c"],
        "w LIKE 'A_YZ'": ["AXYZ"],
        "w LIKE 'a'": [],
    }.items():
        rows = model().sql(f"SELECT w FROM ({inner}) WHERE {condition} ORDER BY w").rows
        assert [row[0] for row in rows] == found, condition


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM t WHERE " + " OR ".join(f"age = {i % 5}" for i in range(8000)),
        "SELECT SUM(x) FROM (" * 24 + "SELECT age AS x FROM t" + ")" * 24,
        "WITH q0 AS (SELECT COUNT(*) AS n FROM t), "
        + ", ".join(
            f"q{i + 1} AS (SELECT COUNT(*) AS n FROM t WHERE age < (SELECT n FROM q{i}) "
            f"OR sex < (SELECT n FROM q{i}))"
            for i in range(20)
        )
        + " SELECT n FROM q20",
    ],
    ids=["conditions", "levels", "queries"],
)
def test_long_questions_are_refused_before_they_are_answered(sql: str) -> None:
    """Parts of the syntax tree, what names stand for, and queries inside queries have limits."""
    doubled = sql.replace("SUM(x) FROM (", "x + x AS x FROM (").replace(
        "SELECT x + x AS x FROM (", "SELECT COUNT(*) FROM (SELECT x + x AS x FROM (", 1
    )
    text = doubled + ")" if doubled != sql else sql
    with pytest.raises((ModelTooLarge, InvalidInput), match="`sql` must"):
        model().sql(text)


def test_outputs_times_groups_have_a_limit() -> None:
    """The sums of all groups are counted before the first is computed."""
    made = Model.of_potentials(Domain({"x": 500, "y": 90}), [], 1000.0)
    sums = ", ".join(f"SUM(x + {i})" for i in range(20))
    with pytest.raises(ModelTooLarge, match="at most 500,000 values; got 45,000 groups of 20"):
        made.sql(f"SELECT {sums} FROM t GROUP BY x, y", max_values=500_000)
    with pytest.raises(ModelTooLarge, match="at most 300 values; got 90 groups of 4 each"):
        made.sql("SELECT y, y, y, COUNT(*) FROM t GROUP BY y", max_values=300)
    nested = "SELECT y, y, y, n FROM (SELECT y, COUNT(*) AS n FROM t GROUP BY y)"
    with pytest.raises(ModelTooLarge, match="at most 300 values"):
        made.sql(nested, max_values=300)
    assert len(made.sql("SELECT y, COUNT(*) FROM t GROUP BY y", max_values=300).rows) == 90
