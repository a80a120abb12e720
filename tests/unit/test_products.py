"""Queries on cliques equal the matrices that they stand for."""

from __future__ import annotations

import tracemalloc
from functools import reduce
from typing import Any

import numpy as np
import pytest

import matrices
from juncture.errors import InvalidInput
from juncture.tables.domain import Domain
from juncture.tables.queries import blocks
from juncture.tables.queries.products import Kron, Query, Scaled, Stack, bind

DOMAIN = Domain({"a": 3, "b": 4, "c": 2})
CELLS = DOMAIN.size
RANDOM = np.random.default_rng(0).normal(size=(5, CELLS))


def kron(*parts: Any) -> Any:
    """The Kronecker product of several matrices."""
    return reduce(np.kron, parts)


PREFIX_TOTAL = kron(matrices.prefix(3), np.ones((1, 4)), np.eye(2))
MIXED = kron(np.eye(3), matrices.powers([0, 1, 2, 3], 2), matrices.chosen(2, {1}))
CASES: list[tuple[Query, Any]] = [
    (blocks.Identity(), np.eye(CELLS)),
    (blocks.Matrix(RANDOM), RANDOM),
    (Kron({}), np.ones((1, CELLS))),
    (Kron({"c": blocks.Identity(), "a": blocks.Prefix()}), PREFIX_TOTAL),
    (
        Kron({"a": blocks.Identity(), "b": blocks.Moments(2), "c": blocks.Point(1)}),
        MIXED,
    ),
    (Scaled(-0.5, Kron({"a": blocks.Identity()})), -0.5 * kron(np.eye(3), np.ones((1, 8)))),
    (Scaled(2.0, blocks.Identity()), 2.0 * np.eye(CELLS)),
    (
        Stack([Kron({"a": blocks.Prefix(), "c": blocks.Identity()}), blocks.Matrix(RANDOM)]),
        np.vstack([PREFIX_TOTAL, RANDOM]),
    ),
    (
        Stack([Scaled(3.0, Kron({"a": blocks.Identity()})), Kron({"b": blocks.Identity()})]),
        np.vstack(
            [3 * kron(np.eye(3), np.ones((1, 8))), kron(np.ones((1, 3)), np.eye(4), [[1.0, 1.0]])]
        ),
    ),
    (Stack([blocks.Matrix(RANDOM)]), RANDOM),
]
every_case = pytest.mark.parametrize(("query", "matrix"), CASES, ids=range(len(CASES)))


@every_case
def test_apply_and_adjoint(query: Query, matrix: Any) -> None:
    """Applying multiplies the flattened table by the matrix, the adjoint by its transpose."""
    operator, rng = bind(query, DOMAIN), np.random.default_rng(1)
    table, answers = rng.normal(size=DOMAIN.shape), rng.normal(size=len(matrix))
    assert operator.n_rows == len(matrix)
    np.testing.assert_allclose(operator.apply(table), matrix @ table.reshape(-1), atol=1e-12)
    expected = (matrix.T @ answers).reshape(DOMAIN.shape)
    np.testing.assert_allclose(operator.adjoint(answers), expected, atol=1e-12)


@every_case
def test_sensitivities(query: Query, matrix: Any) -> None:
    """Sensitivities are the largest column norms of the matrix."""
    operator = bind(query, DOMAIN)
    assert operator.l1_sensitivity == pytest.approx(np.abs(matrix).sum(axis=0).max())
    assert operator.l2_sensitivity == pytest.approx(np.sqrt((matrix**2).sum(axis=0).max()))
    squares = (matrix**2).sum(axis=0).reshape(DOMAIN.shape)
    np.testing.assert_allclose(operator.column_squares(), squares)


@every_case
def test_largest_eigenvalue(query: Query, matrix: Any) -> None:
    """The largest eigenvalue is the square of the largest singular value."""
    expected = matrices.largest_eigenvalue(matrix)
    assert bind(query, DOMAIN).largest_eigenvalue == pytest.approx(expected)


@every_case
def test_weights_for_the_total(query: Query, matrix: Any) -> None:
    """The weights for the total are those of the pseudo-inverse, or there are none."""
    expected, found = matrices.total_weights(matrix), bind(query, DOMAIN).total_weights
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_products_form_no_matrix() -> None:
    """A product of prefixes over a million cells takes a few tables' memory, not a matrix's."""
    domain = Domain({"a": 100, "b": 100, "c": 100})
    table = np.ones(domain.shape)
    tracemalloc.start()
    operator = bind(Kron({name: blocks.Prefix() for name in domain}), domain)
    answers = operator.apply(table)
    operator.adjoint(answers)
    numbers = operator.l1_sensitivity, operator.l2_sensitivity, operator.largest_eigenvalue
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answers[-1] == pytest.approx(1e6)
    assert numbers[:2] == pytest.approx((1e6, 1e3))
    assert peak < 6 * table.nbytes


def test_queries_that_do_not_fit_are_refused() -> None:
    """Unknown attributes, empty stacks and weights of nothing are refused."""
    with pytest.raises(InvalidInput, match="over attributes of the clique .* got \\['z'\\]"):
        bind(Kron({"z": blocks.Prefix()}), DOMAIN)
    with pytest.raises(InvalidInput, match="`queries` must not be empty"):
        bind(Stack([]), DOMAIN)
    with pytest.raises(InvalidInput, match="`weight` must be finite and not zero; got 0"):
        Scaled(0.0, blocks.Identity())
    with pytest.raises(InvalidInput, match="one column for each of the 24 values; got 23"):
        bind(blocks.Matrix(np.ones((1, 23))), DOMAIN)
