"""What no interval reaches: values that cannot be, more records than there are, and extremes."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import juncture as jn
from juncture.privacy.accounting import Neighbours

SCHEMA = jn.Schema({"age": jn.Integer(low=20, high=69), "city": jn.Categorical(values=("x", "y"))})


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> jn.Release:
    """Ten records beside much noise, all of them of the middle ages; nothing measured together."""
    folder = tmp_path_factory.mktemp("limits")
    table = pa.table({"age": np.arange(40, 50), "city": ["x", "y"] * 5})
    return jn.release(
        table, SCHEMA, jn.Budget(epsilon=0.5), ledger=folder / "ledger", check=0.2,
        mechanism="independent", workload=[("age",), ("city",)], neighbours=Neighbours.REPLACE,
    )  # fmt: skip


def list_ends(answer: object) -> list[tuple[float, float]]:
    """The ends of all intervals."""
    rows = getattr(answer, "intervals")  # noqa: B009
    return [(cell.lower, cell.upper) for row in rows for cell in row if cell is not None]


def test_averages_stay_among_their_values(release: jn.Release) -> None:
    """Measured or assumed, an average lies between the least and the largest possible value."""
    for query, low, high in (
        ("SELECT AVG(age) FROM t", 20, 69),
        ("SELECT city, AVG(age) FROM t GROUP BY city", 20, 69),
        ("SELECT city, AVG(age) FROM t WHERE age BETWEEN 30 AND 60 GROUP BY city", 30, 60),
    ):
        ends = list_ends(release.sql(query, interval=0.99))
        assert ends
        assert all(low <= lower <= upper <= high for lower, upper in ends)


def test_assumed_counts_stay_among_the_records(release: jn.Release) -> None:
    """Where their number is public, no assumed count is above it."""
    query = "SELECT city, COUNT(*) FROM t WHERE age < 45 GROUP BY city"
    for ends in (
        list_ends(release.sql(query, interval=0.99)),
        list(zip(*(getattr(release.project(("age", "city"), interval=0.99), end).reshape(-1)
                   for end in ("lower", "upper")), strict=True)),
    ):  # fmt: skip
        assert all(0.0 <= lower <= upper <= 10.0 + 1e-9 for lower, upper in ends)


def test_extremes_have_no_interval(release: jn.Release) -> None:
    """The least value of a model is the schema's, whatever the table: nothing is said of it."""
    answer = release.sql("SELECT MIN(age), MAX(age) FROM t", interval=0.95)
    assert np.isnan(list_ends(answer)).all()
    assert any("every possible value" in reason for reason in answer.reasons)
    assert release.sql("SELECT AVG(age) FROM t", interval=0.95).reasons == ()


def test_averages_of_nothing(release: jn.Release) -> None:
    """An average over no possible value is unknown, has no interval, and nothing warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = release.sql("SELECT AVG(age), COUNT(*) FROM t WHERE age < 20", interval=0.95)
    assert answer.rows[0] == (None, 0.0)
    (mean, count) = list_ends(answer)
    assert np.isnan(mean).all()
    assert count == (0.0, 0.0)


def test_no_file_is_needed(release: jn.Release, tmp_path: Path) -> None:
    """A release from a file has the same limits: what is public is written there."""
    back = jn.load(release.save(tmp_path / "t.jct"))
    query = "SELECT city, COUNT(*), AVG(age) FROM t WHERE age < 45 GROUP BY city"
    assert list_ends(back.sql(query, interval=0.9)) == list_ends(release.sql(query, interval=0.9))
