"""Counts of single columns by all that was measured of them, and models that follow them."""

from __future__ import annotations

import numpy as np
import pytest

from juncture.fit.column_counts import estimate_counts, match_columns
from juncture.fit.estimation import estimate
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Buckets, Identity, Matrix, Prefix
from juncture.tables.queries.products import Kron, Stack, bind

DOMAIN = Domain({"a": 4, "b": 3})
TABLE = np.array([[40.0, 30.0, 20.0], [60.0, 10.0, 30.0], [5.0, 80.0, 15.0], [50.0, 50.0, 10.0]])


def make_measurements(rng: np.random.Generator) -> list[Measurement]:
    """Of the column alone, in a pair, and with the other column in groups."""
    a, pair = TABLE.sum(axis=1), TABLE.reshape(-1)
    merged = Kron({"a": Identity(), "b": Buckets([0, 1, 1])})
    coarse = bind(merged, DOMAIN).apply(TABLE)
    tree = np.array([[1.0, 1.0, 0.0, 0.0], [0.5, -0.5, 2.0, 1.0]])
    return [
        Measurement(("a",), np.cumsum(a) + rng.normal(0, 2, 4), stddev=2.0, query=Prefix()),
        Measurement(("a",), tree @ a + rng.normal(0, 1, 2), stddev=1.0, query=Matrix(tree)),
        Measurement(("a", "b"), pair + rng.normal(0, 3, 12), stddev=3.0),
        Measurement(("a", "b"), coarse + rng.normal(0, 4, 8), stddev=4.0, query=merged),
    ]


def test_counts_are_those_of_dense_least_squares() -> None:
    """Each measurement as rows on the column alone, with the noise that its sums have."""
    measured = make_measurements(np.random.default_rng(0))
    tree = measured[1].query.matrix(4)  # type: ignore[union-attr]
    parts = [
        (np.tril(np.ones((4, 4))), measured[0].values, 2.0),
        (tree, measured[1].values, 1.0),
        (np.eye(4), measured[2].values.reshape(4, 3).sum(axis=1), 3.0 * 3**0.5),
        (np.eye(4), measured[3].values.reshape(4, 2).sum(axis=1), 4.0 * 2**0.5),
        (np.ones((1, 4)), np.array([400.0]), 1e-6),
    ]
    rows = np.vstack([matrix / stddev for matrix, _, stddev in parts])
    values = np.concatenate([answers / stddev for _, answers, stddev in parts])
    expected = np.linalg.lstsq(rows, values, rcond=None)[0]
    np.testing.assert_allclose(estimate_counts(DOMAIN, "a", measured, 400.0), expected, atol=0.05)


def test_what_does_not_tell_is_left_out() -> None:
    """Queries that are no products, and those that have no total of the other columns."""
    plain = Measurement(("a",), [100.0, 100.0, 100.0, 100.0], stddev=1.0)
    odd = Measurement(("a", "b"), np.zeros(24), stddev=0.1, query=Stack([Identity(), Identity()]))
    part = Kron({"a": Identity(), "b": Matrix([[1.0, -1.0, 0.0]])})
    none = Measurement(("a", "b"), np.zeros(4), stddev=0.1, query=part)
    found = estimate_counts(DOMAIN, "a", [plain, odd, none], 400.0)
    np.testing.assert_allclose(found, 100.0, atol=1e-6)


def test_no_count_is_below_zero() -> None:
    """And they add up to the total."""
    measured = [Measurement(("a",), [-30.0, 200.0, 150.0, 110.0], stddev=5.0)]
    found = estimate_counts(DOMAIN, "a", measured, 400.0)
    assert (found >= 0.0).all()
    assert found.sum() == pytest.approx(400.0, rel=1e-3)


def test_least_squares_that_do_not_end_give_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget is spent by then, so an error would lose what was paid for."""

    def never(*_: object, **__: object) -> None:
        raise RuntimeError("Maximum number of iterations reached.")

    measured = make_measurements(np.random.default_rng(0))
    expected = estimate_counts(DOMAIN, "a", measured, TABLE.sum())
    monkeypatch.setattr("scipy.optimize.nnls", never)
    found = estimate_counts(DOMAIN, "a", measured, TABLE.sum())
    assert found == pytest.approx(expected, rel=1e-6)  # none of these would be below zero


def test_a_model_follows_its_columns_and_keeps_its_dependence() -> None:
    """The column has the estimated counts; odds ratios beside the other column stay."""
    measured = make_measurements(np.random.default_rng(1))
    model = estimate(DOMAIN, measured[2:3], total=400.0).model
    moved = match_columns(model, ["a"], measured)
    wanted = estimate_counts(DOMAIN, "a", measured, 400.0)
    np.testing.assert_allclose(moved.project(("a",)).values, wanted, rtol=2e-4)
    before, after = (each.project(("a", "b")).values for each in (model, moved))
    odds = [np.log(t[:-1, :-1] * t[1:, 1:] / (t[1:, :-1] * t[:-1, 1:])) for t in (before, after)]
    np.testing.assert_allclose(odds[0], odds[1], atol=1e-6)
