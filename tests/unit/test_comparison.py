"""How far two sets of counts lie apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from juncture.publish.comparison import compare_counts, list_small_cliques
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor

DOMAIN = Domain({"a": 2, "b": 2})


def test_figures_of_one_clique() -> None:
    """Half the relative L1 distance, and the mean and largest difference of a cell."""
    part = Domain({"a": 2})

    def truth(_cliques: Sequence[Clique]) -> list[Factor]:
        return [Factor(part, np.array([30.0, 70.0]))]

    def other(_cliques: Sequence[Clique]) -> list[Factor]:
        return [Factor(part, np.array([40.0, 66.0]))]

    (found,) = compare_counts([("a",)], truth, other)
    assert found.error == pytest.approx(14 / 200)
    assert (found.mean, found.largest, found.cells) == (7.0, 10.0, 2)


def test_every_small_clique_once() -> None:
    """Attributes, pairs and what is given beside them, without repetition or empty ones."""
    assert list_small_cliques(DOMAIN, [("b", "a"), (), ("a",)]) == [("a",), ("b",), ("a", "b")]


def test_pairs_beyond_all_measure_are_left_out() -> None:
    """A pair of a million million cells is not compared."""
    wide = Domain({"a": 10**6, "b": 10**6, "c": 2})
    assert ("a", "b") not in list_small_cliques(wide)
    assert ("c",) in list_small_cliques(wide)
