"""Weights of records and their counts, as loops in plain Python have them."""

from __future__ import annotations

import numpy as np
import pytest

from juncture.engine.compiled.loader import pointer, routine
from juncture.engine.compiled.opcodes import SQUARE_UNIT, WEIGHT_UNIT

SIZES = (3, 2, 4, 5)


def strides_of(axes: list[int]) -> list[int]:
    """Give the strides of a table over some columns, the last one fastest."""
    return [int(np.prod([SIZES[axis] for axis in axes[at + 1 :]])) for at in range(len(axes))]


@pytest.mark.parametrize("moved", [[], [1], [0, 2], [3, 0, 1]])
@pytest.mark.parametrize("counted", [[], [2], [1, 3], [0, 1, 2]])
def test_weights_move_and_are_counted(moved: list[int], counted: list[int]) -> None:
    """Whatever the numbers of columns, some of which have loops of their own."""
    rng, n, first, last = np.random.default_rng(7), 500, 20, 480
    codes = np.array([rng.integers(0, size, n) for size in SIZES], dtype=np.int32)
    before = rng.gamma(1.0, size=n)
    weights, squares = before.copy(), np.zeros(1, dtype=np.int64)
    factor = rng.gamma(5.0, 0.2, int(np.prod([SIZES[axis] for axis in moved])))
    table = np.zeros(int(np.prod([SIZES[axis] for axis in counted])), dtype=np.int64)
    arrays = [np.array(each, dtype=np.int64) for each in (moved, counted)]
    steps = [np.array(strides_of(each), dtype=np.int64) for each in (moved, counted)]
    routine("weigh_records")(
        pointer(codes), *codes.shape, pointer(weights), first, last,
        pointer(arrays[0]), pointer(steps[0]), len(moved), pointer(factor), len(factor),
        pointer(arrays[1]), pointer(steps[1]), len(counted), pointer(table), len(table),
        pointer(squares),
    )  # fmt: skip
    expected, sums, square = before.copy(), [0] * len(table), 0
    for record in range(first, last):
        values = codes[:, record].tolist()
        cells = [
            sum(values[axis] * step for axis, step in zip(axes, strides_of(axes), strict=True))
            for axes in (moved, counted)
        ]
        expected[record] *= factor[cells[0]]
        square += int(expected[record] ** 2 * SQUARE_UNIT)
        sums[cells[1]] += int(expected[record] * WEIGHT_UNIT)
    np.testing.assert_array_equal(weights, expected)
    assert table.tolist() == sums
    assert squares.tolist() == [square]
