"""SQL answered by a model, against DuckDB on the table written out record by record."""

from __future__ import annotations

import math
import tracemalloc
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pytest

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
                assert float(a) == pytest.approx(float(b), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("sql", CODES)
def test_codes(sql: str) -> None:
    """The attributes' codes are the values."""
    compare(model().sql(sql), expanded(labelled=False).execute(sql).fetchall())


@pytest.mark.parametrize("sql", LABELS)
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
        made.sql("SELECT age // 10 AS d, COUNT(*) FROM t GROUP BY d")
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
    ("SELECT * FROM t", "SELECT \\*"),
    ("SELECT age, sex FROM t", "got records"),
    ("SELECT COUNT(*) FROM t JOIN u ON t.age = u.age", "Joins"),
    ("SELECT COUNT(*) FROM (SELECT * FROM t)", "subquery"),
    ("SELECT COUNT(*) FROM t WHERE age IN (SELECT 1)", "subquery"),
    ("SELECT DISTINCT age FROM t GROUP BY age", "DISTINCT"),
    ("SELECT COUNT(DISTINCT age) FROM t", "distinct"),
    ("SELECT MAX(age) FROM t GROUP BY age", "are supported"),
    ("SELECT MEDIAN(age), COUNT(*) FROM t", "are supported"),
    ("SELECT COUNT(*) FROM t WHERE age = 1 OR sex = 'male'", "joined by AND only"),
    ("SELECT COUNT(*) FROM t WHERE age = sex", "joined by AND only"),
    ('SELECT SUM(age + "hours-per-week") FROM t', "one attribute in each part"),
    ("SELECT SUM(COUNT(*)) FROM t", "no aggregates in an aggregate"),
    ("SELECT COUNT(*) FROM t WHERE COUNT(*) > 1", "no aggregates"),
    ("SELECT sex, COUNT(*) FROM t", "group by every column"),
    ("SELECT COUNT(*) FROM t WHERE income = 1", "income"),
    ("SELECT COUNT(*) FROM t WHERE age = 77", "one that a code stands for"),
    ("SELECT COUNT(*) FROM t WHERE job = 'baker'", "'clerk', 'nurse', 'pilot', None"),
    ("SELECT COUNT(*) FROM t WHERE job < 3", "texts with texts"),
    ("SELECT SUM(job) FROM t", "add up numbers"),
    ("SELECT COUNT(*) OVER () FROM t", "window"),
    ("SELECT COUNT(*) FROM t USING SAMPLE 10%", "must"),
    ("SELECT COUNT(*) FROM t LIMIT 50%", "LIMIT"),
    ("SELECT COUNT(*) FROM t LIMIT -1", "LIMIT"),
    ("SELECT COUNT(*) FROM t LIMIT NULL", "LIMIT"),
    ("SELECT COUNT(*) FROM t FETCH FIRST 1 ROWS ONLY", "LIMIT"),
    ("SELECT COUNT(age, sex) FROM t", "one expression"),
    ("SELECT SUM(CAST(job AS INTEGER)) FROM t", "calculate with numbers"),
    ("SELECT SUM(-job) FROM t", "calculate with numbers"),
    ("SELECT SUM(ABS(job)) FROM t", "calculate with numbers"),
    ("SELECT SUM(ROUND(job)) FROM t", "calculate with numbers"),
    ("SELECT sex, COUNT(*) FROM t GROUP BY ROLLUP (sex)", "must"),
    ("SELECT COUNT(*) FROM t WHERE age = " + "(" * 3000 + "1" + ")" * 3000, "`sql` must"),
    ("SELECT age, COUNT(*) FROM t GROUP BY 7", "positions from 1 to 2"),
    ("DELETE FROM t", "another kind of statement"),
    ("SELECT 1; SELECT 2", "got 2 statements"),
    ("SELECT CAST(1e308 * 1e308 * COUNT(*) AS INTEGER) FROM t", "below 1e308"),
    ("SELECT (1e308 * 1e308) % 2, COUNT(*) FROM t", "below 1e308"),
    ("SELECT FROM WHERE", "one SELECT"),
    ("", "got nothing"),
    (" ; ", "got nothing"),
    ("WITH u AS (SELECT 1) SELECT COUNT(*) FROM u", "WITH|subquery"),
]


@pytest.mark.parametrize(("sql", "reason"), REFUSED)
def test_what_has_no_answer_is_refused_with_a_reason(sql: str, reason: str) -> None:
    """Every refusal says what is in the way."""
    with pytest.raises(InvalidInput, match=reason):
        model().with_codebook(BOOK).sql(sql)


@pytest.mark.parametrize("places", [-400, -300, -2, -1, 0, 1, 5, 15, 17, 22, 300, 400, 10**30])
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


def test_numbers_of_any_length() -> None:
    """A constant with more digits than any number has is infinite, not an accident."""
    long = "9" * 5000
    answer = model().sql(f"SELECT COUNT(*) * {long}, COUNT(*) FROM t WHERE age < {long}")
    assert answer.rows[0] == (math.inf, pytest.approx(model().total))


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

    run(sql, Source(BOOK.bind(DOMAIN), 1.0, ask))
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
    assert "calibration" not in vars(made)
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
