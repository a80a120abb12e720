"""Blocks equal the matrices that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import matrices
from juncture.errors import InvalidInput
from juncture.tables.queries import blocks
from juncture.tables.queries.blocks import Block

SIZE = 6
VALUES = [2.0, -1.0, 0.5, 3.0, 3.0, 1.0]
RANDOM = np.random.default_rng(0).normal(size=(4, SIZE))

CASES: list[tuple[Block, Any]] = [
    (blocks.Identity(), np.eye(SIZE)),
    (blocks.Total(), np.ones((1, SIZE))),
    (blocks.Point(2), matrices.chosen(SIZE, {2})),
    (blocks.Subset([4, 1, 1]), matrices.chosen(SIZE, {1, 4})),
    (blocks.Subset(range(SIZE)), np.ones((1, SIZE))),
    (blocks.Range(1, 3), matrices.chosen(SIZE, {1, 2, 3})),
    (blocks.Prefix(), matrices.prefix(SIZE)),
    (blocks.AllRanges(), matrices.ranges(SIZE)),
    (blocks.Buckets([0, 2, 2, 1, 0, 0]), matrices.buckets([0, 2, 2, 1, 0, 0])),
    (blocks.WeightedSum(), np.arange(6.0)[None]),
    (blocks.WeightedSum(tuple(VALUES)), np.array([VALUES])),
    (blocks.Moments(3, tuple(VALUES)), matrices.powers(VALUES, 3)),
    (blocks.Moments(2), matrices.powers([0, 1, 2, 3, 4, 5], 2)),
    (blocks.Matrix(RANDOM), RANDOM),
    (blocks.Matrix(RANDOM.tolist()), RANDOM),
    (blocks.Matrix(sparse.csr_array(RANDOM)), RANDOM),
    (blocks.Matrix(aslinearoperator(RANDOM)), RANDOM),
    (blocks.Matrix(matrices.prefix(SIZE)[2:]), matrices.prefix(SIZE)[2:]),
]
every_case = pytest.mark.parametrize(("given", "matrix"), CASES, ids=str)


@every_case
def test_rows_and_matrix(given: Block, matrix: Any) -> None:
    """A block has the rows of its matrix, and shows that matrix."""
    assert given.n_rows(SIZE) == len(matrix)
    np.testing.assert_allclose(given.matrix(SIZE), matrix)


@every_case
@pytest.mark.parametrize("around", [(), (3,), (2, 3)], ids=str)
def test_apply_acts_on_the_last_axis(given: Block, matrix: Any, around: tuple[int, ...]) -> None:
    """Applying a block multiplies the last axis by the matrix."""
    table = np.random.default_rng(1).normal(size=(*around, SIZE))
    np.testing.assert_allclose(given.apply(table), table @ matrix.T, atol=1e-12)


@every_case
@pytest.mark.parametrize("around", [(), (3,), (2, 3)], ids=str)
def test_adjoint_is_the_transpose(given: Block, matrix: Any, around: tuple[int, ...]) -> None:
    """The adjoint multiplies the last axis by the transposed matrix."""
    answers = np.random.default_rng(2).normal(size=(*around, len(matrix)))
    np.testing.assert_allclose(given.adjoint(answers, SIZE), answers @ matrix, atol=1e-12)


@every_case
def test_norms_of_columns(given: Block, matrix: Any) -> None:
    """Column sums and squares are those of the matrix."""
    np.testing.assert_allclose(given.column_sums(SIZE), np.abs(matrix).sum(axis=0))
    np.testing.assert_allclose(given.column_squares(SIZE), (matrix**2).sum(axis=0))


@every_case
def test_largest_eigenvalue(given: Block, matrix: Any) -> None:
    """The largest eigenvalue is the square of the largest singular value."""
    assert given.largest_eigenvalue(SIZE) == pytest.approx(matrices.largest_eigenvalue(matrix))


@every_case
def test_weights_for_the_total(given: Block, matrix: Any) -> None:
    """The weights for the total are those of the pseudo-inverse, or there are none."""
    expected, found = matrices.total_weights(matrix), given.total_weights(SIZE)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("size", [1, 2, 7, 600])
def test_prefix_eigenvalue_in_closed_form(size: int) -> None:
    """The closed form of the prefix block holds for other sizes too."""
    expected = matrices.largest_eigenvalue(matrices.prefix(size))
    assert blocks.Prefix().largest_eigenvalue(size) == pytest.approx(expected)


def test_large_blocks_without_a_dense_matrix() -> None:
    """Above the size for dense treatment, iterative results agree with the matrix."""
    matrix = np.random.default_rng(3).normal(size=(40, 700))
    matrix[:, :] += np.eye(40, 700)
    given = blocks.Matrix(sparse.csr_array(matrix))
    assert given.largest_eigenvalue(700) == pytest.approx(matrices.largest_eigenvalue(matrix))
    assert given.total_weights(700) is None
    whole = blocks.Matrix(sparse.vstack([sparse.csr_array(matrix), np.ones((2, 700))]).tocsr())
    expected, found = (
        matrices.total_weights(np.vstack([matrix, np.ones((2, 700))])),
        whole.total_weights(700),
    )
    assert expected is not None
    assert found is not None
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (blocks.Point(6), "`codes` must be one or more of 0 to 5; got \\[6\\]"),
        (blocks.Point(-1), "`codes` must be one or more of 0 to 5"),
        (blocks.Subset([]), "`codes` must be one or more of 0 to 5; got \\[\\]"),
        (blocks.Range(3, 2), "`codes` must be one or more of"),
        (blocks.WeightedSum((1.0, 2.0)), "`values` must be 6 finite numbers"),
        (blocks.Moments(2, (1.0,) * 5 + (np.nan,)), "`values` must be 6 finite numbers"),
        (blocks.Buckets([0, 1]), "one bucket for each of the 6 values; got 2"),
        (blocks.Matrix(np.ones((2, 5))), "one column for each of the 6 values; got 5"),
    ],
    ids=str,
)
def test_blocks_that_do_not_fit_are_refused(given: Block, message: str) -> None:
    """A block for another number of values is refused when its rows are asked for."""
    with pytest.raises(InvalidInput, match=message):
        given.n_rows(SIZE)


def test_nonsense_is_refused() -> None:
    """Buckets with gaps and matrices that are none are refused at once."""
    with pytest.raises(InvalidInput, match="without a gap; got \\[0, 2\\]"):
        blocks.Buckets([0, 2, 2])
    with pytest.raises(InvalidInput, match="`entries` must be a matrix"):
        blocks.Matrix([1.0, 2.0])
