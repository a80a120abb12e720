"""The estimated total is unbiased and has the variance that it states."""

from __future__ import annotations

import numpy as np
import pytest

import matrices
from juncture.errors import InvalidInput
from juncture.fit.total import estimate_total, estimate_total_from
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement
from juncture.tables.queries import blocks
from juncture.tables.queries.products import Kron, Query, Scaled, Stack

DOMAIN = Domain({"a": 3, "b": 4})
TRUTH = np.arange(1.0, 13.0).reshape(3, 4)
PREFIX = np.kron(matrices.prefix(3), matrices.prefix(4))
CASES: list[tuple[Query, object]] = [
    (blocks.Identity(), np.eye(12)),
    (Kron({"a": blocks.Prefix(), "b": blocks.Prefix()}), PREFIX),
    (Kron({"a": blocks.AllRanges()}), np.kron(matrices.ranges(3), np.ones((1, 4)))),
    (Scaled(0.5, Kron({})), np.full((1, 12), 0.5)),
    (
        Stack([Kron({"a": blocks.Identity()}), Kron({"b": blocks.Identity()})]),
        np.vstack([np.kron(np.eye(3), np.ones((1, 4))), np.kron(np.ones((1, 3)), np.eye(4))]),
    ),
]
every_case = pytest.mark.parametrize(("query", "matrix"), CASES, ids=range(len(CASES)))


@every_case
@pytest.mark.parametrize("unequal", [False, True])
def test_best_linear_unbiased(query: Query, matrix: np.ndarray, unequal: bool) -> None:
    """Estimate and variance are those of generalised least squares on the written-out matrix."""
    rng = np.random.default_rng(0)
    stddev = rng.random(len(matrix)) + 0.5 if unequal else np.full(len(matrix), 2.0)
    values = matrix @ TRUTH.reshape(-1) + rng.normal(size=len(matrix)) * stddev
    given = stddev if unequal else 2.0
    found = estimate_total_from(DOMAIN, Measurement(("a", "b"), values, stddev=given, query=query))
    scaled = matrix / stddev[:, None]
    weights = np.linalg.pinv(scaled).sum(axis=0)
    assert found is not None
    assert found.total == pytest.approx(weights @ (values / stddev), rel=1e-7)
    assert found.variance == pytest.approx(weights @ weights, rel=1e-6)


def test_unbiased_with_the_stated_variance() -> None:
    """Over 4000 draws the combined estimate has the right mean and variance.

    Mean within 6 standard errors, variance within 15 %: wrong alarms below one in 10**8.
    """
    rng, totals = np.random.default_rng(1), []
    for _ in range(4000):
        cells = Measurement(("a", "b"), TRUTH + rng.normal(0, 2, (3, 4)), stddev=2.0)
        sums = np.cumsum(TRUTH.sum(axis=0)) + rng.laplace(0, 3, 4)
        prefix = Measurement(("b",), sums, stddev=3 * 2**0.5, query=blocks.Prefix())
        estimate = estimate_total(DOMAIN, [cells, prefix])
        totals.append(estimate.total)
    assert np.mean(totals) == pytest.approx(78.0, abs=6 * np.sqrt(estimate.variance / 4000))
    assert np.var(totals) == pytest.approx(estimate.variance, rel=0.15)


def test_measurements_that_do_not_know_it_are_left_out() -> None:
    """A range that covers only some values says nothing about the total."""
    part = Measurement(("b",), [5.0], stddev=1.0, query=blocks.Range(0, 2))
    whole = Measurement(("a",), [1.0, 2.0, 3.0], stddev=1.0)
    assert estimate_total_from(DOMAIN, part) is None
    assert estimate_total(DOMAIN, [part, whole]).total == pytest.approx(6.0)
    with pytest.raises(InvalidInput, match="Give it, or measure a marginal"):
        estimate_total(DOMAIN, [part])
