"""Where cliques go: no two in one place, and few lanes whatever the tree."""

from __future__ import annotations

import math

import numpy as np
import pytest

from juncture.publish.report.tree_layout import arrange_boxes, arrange_outline


def forest(n: int, seed: int) -> list[int | None]:
    """Random parents, each after its children, as a plan has them."""
    rng = np.random.default_rng(seed)
    parents: list[int | None] = []
    for place in range(n):
        above = int(rng.integers(place + 1, n + 1))
        parents.append(above if above < n and rng.random() < 0.95 else None)
    return parents


@pytest.mark.parametrize("n", [1, 2, 15, 60])
@pytest.mark.parametrize("seed", range(5))
def test_boxes_do_not_touch(n: int, seed: int) -> None:
    """Boxes lie within the drawing, apart from each other, and children below their parents."""
    parents, rng = forest(n, seed), np.random.default_rng(seed)
    heights = rng.uniform(20, 90, n).tolist()
    places, width, height = arrange_boxes(parents, heights, width=100.0, gap=10.0, level=30.0)
    for one in range(n):
        assert 0 <= places[one].x <= width - 100.0 + 1e-9
        assert 0 <= places[one].y <= height - heights[one] + 1e-9
        for other in range(one):
            aside = abs(places[one].x - places[other].x) >= 110.0 - 1e-9
            low, high = sorted((one, other), key=lambda node: places[node].y)
            assert aside or places[low].y + heights[low] + 30.0 <= places[high].y + 1e-9
        parent = parents[one]
        assert parent is None or places[parent].y + heights[parent] <= places[one].y - 30.0 + 1e-9


@pytest.mark.parametrize("n", [1, 2, 15, 200])
@pytest.mark.parametrize("seed", range(5))
def test_an_outline_is_narrow_and_its_lines_do_not_cross(n: int, seed: int) -> None:
    """Every node has a row below its parent's, in a lane that no row between them uses."""
    parents = forest(n, seed)
    rows = arrange_outline(parents)
    assert sorted(row.node for row in rows) == list(range(n))
    assert max(row.lane for row in rows) <= math.log2(n)
    for place, row in enumerate(rows):
        parent = parents[row.node]
        if parent is None:
            assert (row.parent, row.lane) == (None, 0)
            continue
        assert row.parent is not None
        assert rows[row.parent].node == parent
        assert row.parent < place
        lane = rows[row.parent].lane
        assert all(each.lane > lane for each in rows[row.parent + 1 : place])


def test_a_chain_stays_in_one_lane() -> None:
    """However long a chain is, it is one line."""
    parents: list[int | None] = [*range(1, 500), None]
    assert {row.lane for row in arrange_outline(parents)} == {0}
