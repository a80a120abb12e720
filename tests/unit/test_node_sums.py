"""Sums of nodes' tables: the same as summed at once, and made once."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from juncture.model.node_sums import NodeSums
from juncture.model.table import Table

AXES = ("a", "b", "c", "d")
TABLE = Table(np.random.default_rng(0).random((2, 5, 3, 4)), AXES)
SUBSETS = [frozenset(each) for n in range(len(AXES) + 1) for each in combinations(AXES, n)]


@pytest.mark.parametrize("max_bytes", [0, 300, 10**6])
def test_sums_are_those_of_the_table(max_bytes: int) -> None:
    """Whatever was asked before, and however little may be kept."""
    sums = NodeSums(max_bytes)
    for keep in [*SUBSETS, *SUBSETS[::-1]]:
        result = sums.sum_onto(3, TABLE, keep)
        assert result.axes == tuple(name for name in AXES if name in keep)
        summed = tuple(i for i, name in enumerate(AXES) if name not in keep)
        np.testing.assert_allclose(result.values, TABLE.values.sum(axis=summed), rtol=1e-12)


def test_what_is_known_is_not_summed_again() -> None:
    """A second question about the same axes, or fewer, needs the table no more."""
    sums = NodeSums(10**6)
    first = sums.sum_onto(0, TABLE, frozenset("ac"))
    empty = Table(np.full_like(TABLE.values, np.nan), AXES)
    np.testing.assert_array_equal(sums.sum_onto(0, empty, frozenset("ac")).values, first.values)
    assert np.isfinite(sums.sum_onto(0, empty, frozenset("a")).values).all()
    assert np.isnan(sums.sum_onto(1, empty, frozenset("ac")).values).all()
