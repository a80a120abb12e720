"""Fine histograms that follow the counts of a model, held against densities in closed form."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from juncture.tables.columns import Date, Integer
from juncture.tables.histogram import FineHistogram

Below = Callable[[np.ndarray], np.ndarray]
CURVES: dict[str, Below] = {
    "normal": stats.norm(500, 150).cdf,
    "exponential": stats.expon(scale=150).cdf,
    "gamma": stats.gamma(2.0, scale=120.0).cdf,
}
EDGES = np.array([0, 60, 140, 200, 260, 320, 400, 450, 500, 560, 640, 720, 800, 900, 1000.0])


def total_between(fine: FineHistogram, low: float, high: float) -> float:
    """The mass between two numbers."""
    return float(fine.inside(low, high)[1].sum())


@pytest.mark.parametrize("name", CURVES)
def test_smooth_densities_are_followed(name: str) -> None:
    """Bins keep their counts; running sums are at most half as far off as those of even bins."""
    counts = 40_000.0 * np.diff(CURVES[name](EDGES))
    even = FineHistogram(tuple(EDGES), tuple(counts))
    smooth = even.follow_counts(list(pairwise(EDGES.tolist())), counts, whole=True)
    held = [total_between(smooth, low, high) for low, high in pairwise(EDGES.tolist())]
    np.testing.assert_allclose(held, counts, rtol=1e-9)
    assert set(smooth.edges) <= set(range(1001))
    numbers = np.arange(1.0, 1000.0)
    truth = 40_000.0 * (CURVES[name](numbers) - CURVES[name](np.array(0.0)))
    off = [
        np.abs([total_between(fine, 0.0, number) for number in numbers] - truth).mean()
        for fine in (smooth, even)
    ]
    assert off[0] <= 0.5 * off[1]


def test_counts_take_the_place_of_masses() -> None:
    """Pieces keep their shares of a bin; an empty bin is even, and a negative count is none."""
    fine = FineHistogram((0.0, 2.0, 10.0, 20.0), (30.0, 10.0, 0.0))
    found = fine.follow_counts([(0.0, 10.0), (10.0, 20.0)], np.array([80.0, -3.0]), whole=False)
    assert total_between(found, 0.0, 10.0) == pytest.approx(80.0)
    assert total_between(found, 0.0, 2.0) == pytest.approx(60.0)
    assert total_between(found, 10.0, 20.0) == 0.0


def test_a_spike_bends_nobody() -> None:
    """Bins beside a heavy number are as they would be without it, and so is the number."""
    edges = (0.0, 1.0, 101.0, 201.0, 301.0)
    fine = FineHistogram(edges, (9000.0, 200.0, 200.0, 200.0))
    found = fine.follow_counts(
        list(pairwise(edges)), np.array([9000.0, 200.0, 200.0, 200.0]), whole=True
    )
    assert total_between(found, 0.0, 1.0) == pytest.approx(9000.0)
    for low in range(1, 301, 50):
        assert total_between(found, low, low + 50) == pytest.approx(100.0, rel=1e-9)


def test_columns_of_numbers_and_days_follow_their_counts() -> None:
    """The numbers drawn from a bin lean to where its neighbours are heavier."""
    fine = FineHistogram((0.0, 50.0, 100.0, 150.0), (600.0, 300.0, 60.0))
    counts = np.array([600.0, 300.0, 60.0])
    even = Integer.between([0, 50, 100, 149])
    number = replace(even, fine=fine).with_likely_spread(counts, 1.0)
    assert number.coding.numbers[1] < even.coding.numbers[1] - 1.0
    first = dt.date(1970, 1, 1)
    days = tuple(first + dt.timedelta(days=n) for n in (0, 50, 100, 149))
    date = Date(low=days[0], high=days[-1], edges=days, fine=fine).with_likely_spread(counts, 1.0)
    rng = np.random.default_rng(0)
    drawn = date.draw(np.full(4000, 1, dtype=np.int32), rng).astype(np.int64)
    assert 50 <= drawn.min() <= drawn.max() < 100
    assert drawn.mean() < 73.5
