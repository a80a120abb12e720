"""What measurements alone say: held against dense least squares, and against many draws."""

from __future__ import annotations

import numpy as np
import pytest

import juncture as jn
from juncture import queries
from juncture.fit.plain_estimates import PlainEstimates
from juncture.mechanisms.residual_planner import make_residual_query
from juncture.tables.domain import Clique
from juncture.tables.queries.blocks import Block, Identity, Prefix
from juncture.tables.queries.products import Kron, Query, bind

DOMAIN = jn.Domain({"a": 3, "b": 4, "c": 2})
COARSE = queries.Kron({"b": queries.Buckets([0, 0, 1, 1]), "a": queries.Identity()})


def random_measurement(
    rng: np.random.Generator, query: Query, clique: tuple[str, ...]
) -> jn.Measurement:
    """Random values, a deviation for each."""
    made = jn.Measurement(clique, np.zeros(n_rows(query, clique)), stddev=1.0, query=query)
    n = made.n_rows
    return jn.Measurement(clique, rng.normal(size=n) * 9, stddev=2.5, query=query)


def n_rows(query: Query, clique: tuple[str, ...]) -> int:
    """How many answers a query has."""
    return bind(query, DOMAIN.project(clique)).n_rows


def dense(measurement: jn.Measurement) -> np.ndarray:
    """The rows of a measurement over the full table."""
    operator = measurement.operator(DOMAIN)
    own = DOMAIN.project(measurement.clique)
    rows = np.array([operator.adjoint(row) for row in np.eye(operator.n_rows)])
    table = rows.reshape([-1, *own.shape])
    order = [tuple(own).index(name) for name in DOMAIN if name in own]
    table = table.transpose([0, *(1 + axis for axis in order)])
    sizes = [DOMAIN[name] if name in own else 1 for name in DOMAIN]
    full = np.broadcast_to(table.reshape([-1, *sizes]), [len(rows), *DOMAIN.shape])
    return full.reshape(len(rows), -1)


def asked_rows(question: queries.Kron) -> np.ndarray:
    """The rows of a question over the full table, in the order of the domain."""
    rows: np.ndarray = np.ones((1, 1))
    for name in DOMAIN:
        block: Block = question.blocks.get(name, queries.Total())
        size = DOMAIN[name]
        rows = np.kron(rows, block.adjoint(np.eye(block.n_rows(size)), size))
    return rows


@pytest.mark.parametrize(
    ("query", "clique"),
    [
        (queries.Identity(), ("b", "a")),
        (COARSE, ("a", "b")),
        (queries.Kron({"a": queries.Prefix(), "b": queries.AllRanges()}), ("b", "a")),
        (
            queries.Scaled(-0.5, queries.Kron({"a": queries.Identity(), "b": queries.Prefix()})),
            ("a", "b"),
        ),
    ],
)
def test_one_measurement_is_least_squares(query: Query, clique: tuple[str, ...]) -> None:
    """Weights, values and deviations are those of the pseudo-inverse; nothing outside the span."""
    measured = random_measurement(np.random.default_rng(3), query, clique)
    question = queries.Kron(
        {"b": queries.Matrix([[1, 1, 0, 0], [0, 1, 0, 0]]), "a": queries.Identity()}
    )
    found = PlainEstimates(DOMAIN, [measured]).find(question)
    assert found.values.shape == (2, 3)
    rows = asked_rows(question).reshape(3, 2, -1).transpose(1, 0, 2).reshape(6, -1)
    matrix = dense(measured)
    weights = rows @ np.linalg.pinv(matrix)
    held = np.abs(weights @ matrix - rows).max(axis=1) < 1e-9
    assert np.array_equal(np.isfinite(found.values.reshape(-1)), held)
    assert held.any()
    expected = weights @ measured.values
    deviation = measured.stddev * np.linalg.norm(weights, axis=1)
    assert np.allclose(found.values.reshape(-1)[held], expected[held])
    assert np.allclose(found.stddev.reshape(-1)[held], deviation[held])


def test_several_are_combined_by_their_variances() -> None:
    """Two tables that hold a question, and one that does not: the inverse variances add up."""
    one = jn.Measurement(("a",), [10.0, 20.0, 30.0], stddev=2.0)
    two = jn.Measurement(("c", "a"), np.arange(6.0), stddev=3.0)
    other = jn.Measurement(("b",), np.ones(4), stddev=0.1)
    found = PlainEstimates(DOMAIN, [one, two, other]).find(queries.Kron({"a": queries.Identity()}))
    sums, variance = np.arange(6.0).reshape(2, 3).sum(axis=0), 2 * 9.0
    precision = 1 / 4.0 + 1 / variance
    assert np.allclose(found.values, (one.values / 4.0 + sums / variance) / precision)
    assert np.allclose(found.stddev, precision**-0.5)
    total = PlainEstimates(DOMAIN, [other]).find(queries.Kron({"c": queries.Total()}))
    assert total.values.item() == pytest.approx(4.0)
    assert total.stddev.item() == pytest.approx(0.2)


def test_deviations_of_each_answer_and_stacks() -> None:
    """A deviation for each answer counts where it is used; stacked queries are taken one by one."""
    stddev = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    stack = queries.Stack(
        [queries.Total(), queries.Kron({"a": queries.Identity(), "c": queries.Identity()})]
    )
    measured = jn.Measurement(("a", "c"), np.arange(7.0), stddev=stddev, query=stack)
    found = PlainEstimates(DOMAIN, [measured]).find(queries.Kron({"a": queries.Point(1)}))
    assert found.values.item() == pytest.approx(3.0 + 4.0)
    assert found.stddev.item() == pytest.approx(np.hypot(4.0, 5.0))


def test_errors_are_as_stated() -> None:
    """Over many draws the estimate has no bias and the stated deviation."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 40, (3, 4)).astype(float)
    question = queries.Kron({"a": queries.Range(0, 1), "b": queries.Prefix()})
    exact = truth[:2].sum(axis=0).cumsum()
    query = queries.Kron({"a": queries.Identity(), "b": queries.AllRanges()})
    operator = jn.Measurement(("a", "b"), np.zeros(30), stddev=1.0, query=query).operator(DOMAIN)
    errors = []
    for _ in range(400):
        noisy = operator.apply(truth) + rng.normal(size=30) * 4.0
        made = PlainEstimates(DOMAIN, [jn.Measurement(("a", "b"), noisy, stddev=4.0, query=query)])
        found = made.find(question)
        errors.append((found.values.reshape(-1) - exact) / found.stddev.reshape(-1))
    table = np.array(errors)
    assert np.abs(table.mean(axis=0)).max() < 5 / np.sqrt(400)
    assert np.abs((table**2).mean(axis=0) - 1.0).max() < 5 * np.sqrt(2 / 400)


def test_what_columns_say_together_is_joined_with_each_of_them() -> None:
    """Unbiased, with the deviation stated; not where columns were never measured together."""
    domain = jn.Domain({"a": 3, "b": 2, "c": 2})
    rng = np.random.default_rng(0)
    truth = {("a", "b"): rng.integers(0, 50, (3, 2)).astype(float)}
    asked: dict[Clique, Query] = {("b", "a"): make_residual_query(domain, ("b", "a"))}
    found, question = [], Kron({"b": Identity(), "a": Prefix()})
    exact = truth["a", "b"].cumsum(axis=0).T
    for _ in range(400):
        measured = []
        tables: list[tuple[Clique, np.ndarray, float]] = [
            (("a",), truth["a", "b"].sum(axis=1), 2.0),
            (("b",), truth["a", "b"].sum(axis=0), 3.0),
            (("b", "a"), truth["a", "b"].T, 1.5),
        ]
        for clique, table, stddev in tables:
            query = asked.get(clique, Identity())
            plain = bind(query, domain.project(clique)).apply(table).reshape(-1)
            noisy = plain + rng.normal(0.0, stddev, plain.size)
            measured.append(jn.Measurement(clique, noisy, stddev=stddev, query=query))
        estimates = PlainEstimates(domain, measured)
        found.append((estimates.find(question).values - exact) / estimates.find(question).stddev)
    scores = np.array(found)
    assert np.abs(scores.mean(axis=0)).max() < 4.5 / np.sqrt(400)
    assert scores.std(axis=0) == pytest.approx(np.ones((2, 3)), abs=0.16)
    alone = PlainEstimates(domain, measured[:2])
    assert np.isnan(alone.find(question).values).all()
    assert np.isnan(PlainEstimates(domain, measured[2:]).find(question).values).all()
    with_c = Kron({"a": Identity(), "c": Identity()})
    assert np.isnan(estimates.find(with_c).values).all()


@pytest.mark.parametrize("counts_records", [True, False])
def test_a_column_counted_and_asked_how_its_values_differ_is_least_squares(
    *, counts_records: bool
) -> None:
    """All that was asked of the column alone by one least squares, then what others tell of it."""
    rng = np.random.default_rng(1)
    contrasts = make_residual_query(DOMAIN, ("b",))
    own = [
        jn.Measurement(("b",), rng.normal(size=4) * 9, stddev=4.0),
        jn.Measurement(("b",), rng.normal(size=3) * 9, stddev=1.0, query=contrasts),
    ]
    if counts_records:
        own.append(jn.Measurement((), [40.0], stddev=2.0))
    above = jn.Measurement(("a", "b"), rng.normal(size=12) * 9, stddev=3.0)
    question = Kron({"b": Prefix()})
    found = PlainEstimates(DOMAIN, [*own, above]).find(question)
    # The counts of the larger table, summed, have three times its variance.
    summed = above.values.reshape(3, 4).sum(axis=0)
    rows = np.concatenate([np.eye(4) / 4.0, contrasts.blocks["b"].matrix(4)])
    answers = np.concatenate([own[0].values / 4.0, own[1].values])
    if counts_records:
        rows, answers = np.vstack([rows, np.full(4, 0.5)]), np.append(answers, 20.0)
    asked = np.tril(np.ones((4, 4)))
    solved = asked @ np.linalg.pinv(rows)
    one, two = (solved**2).sum(axis=1), (asked**2).sum(axis=1) * 27.0
    expected = (solved @ answers / one + asked @ summed / two) / (1.0 / one + 1.0 / two)
    assert found.values == pytest.approx(expected)
    assert found.stddev == pytest.approx((1.0 / one + 1.0 / two) ** -0.5)
