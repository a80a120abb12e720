"""What is measured on a fine grid, held against dense least squares; and the bins made of it."""

from __future__ import annotations

import numpy as np
import pytest

from juncture.mechanisms import range_strategy
from juncture.mechanisms.binning import choose_bins, make_nonnegative
from juncture.mechanisms.range_strategy import RangeStrategy, choose_strategy
from juncture.privacy.accounting import Neighbours
from juncture.privacy.price import ZCDP, Price, Pure
from juncture.tables.measurement import Measurement

ADD = Neighbours.ADD_OR_REMOVE
PRICES = [ZCDP(0.5), Pure(1.0)]


def measure(
    strategy: RangeStrategy, price: Price, counts: np.ndarray, rng: np.random.Generator
) -> list[Measurement]:
    """Noisy answers to the strategy's queries, as the curator would give them."""
    found = []
    for query in strategy.queries:
        matrix = query.block.matrix(len(counts))
        norm = np.linalg.norm(matrix, ord=price.norm, axis=0).max()
        stddev = price.share(query.share).cell_stddev(ADD) * norm
        noisy = matrix @ counts + price.noise.draw(rng, stddev, len(matrix))
        found.append(Measurement(("x",), noisy, stddev=stddev, noise=price.noise))
    return found


@pytest.mark.parametrize("price", PRICES, ids=str)
@pytest.mark.parametrize(("branch", "levels", "n_cells"), [(2, 1, 9), (3, 3, 27), (4, 2, 16)])
def test_trees_are_solved_by_least_squares(
    price: Price, branch: int, levels: int, n_cells: int
) -> None:
    """Estimate and stated error are those of a dense solution."""
    strategy = range_strategy._make_tree(n_cells, branch, levels, price, ADD)
    rng = np.random.default_rng(0)
    measured = measure(strategy, price, rng.integers(0, 50, n_cells).astype(float), rng)
    rows = [
        query.block.matrix(n_cells) / float(each.stddev)
        for query, each in zip(strategy.queries, measured, strict=True)
    ]
    weighted = np.concatenate([each.values / float(each.stddev) for each in measured])
    dense = np.linalg.lstsq(np.vstack(rows), weighted, rcond=None)[0]
    np.testing.assert_allclose(strategy.estimate(measured), dense, atol=1e-9)
    covariance = np.linalg.inv(np.vstack(rows).T @ np.vstack(rows))
    groups = np.arange(n_cells) % 4
    sums = np.eye(4)[groups]
    found = strategy.covariance(measured, groups)
    np.testing.assert_allclose(found, sums.T @ covariance @ sums, rtol=1e-9)
    ends = np.sort(np.random.default_rng(7).integers(0, n_cells + 1, (400, 2)), axis=1)
    index = np.arange(n_cells)
    ranges = ((index >= ends[:, :1]) & (index < ends[:, 1:])).astype(float)
    error = np.einsum("ij,jk,ik->i", ranges, covariance, ranges).mean()
    assert strategy.error == pytest.approx(np.sqrt(error))


@pytest.mark.parametrize("price", PRICES, ids=str)
@pytest.mark.parametrize("n_cells", [2, 40, 121, 1000])
def test_the_chosen_strategy_errs_as_it_says(price: Price, n_cells: int) -> None:
    """Over many draws of noise, and never more than counting cells one by one."""
    strategy = choose_strategy(n_cells, price, ADD)
    assert sum(query.share for query in strategy.queries) == pytest.approx(1.0)
    plain = range_strategy._make_tree(n_cells, 2, 1, price, ADD)
    assert strategy.error <= 1.05 * plain.error
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 100, n_cells).astype(float)
    ends = np.sort(rng.integers(0, n_cells + 1, (200, 2)), axis=1)
    below = [
        np.concatenate([[0.0], np.cumsum(strategy.estimate(measure(strategy, price, counts, rng)))])
        for _ in range(60)
    ]
    truth = np.concatenate([[0.0], np.cumsum(counts)])
    errors = [
        (b[ends[:, 1]] - b[ends[:, 0]]) - (truth[ends[:, 1]] - truth[ends[:, 0]]) for b in below
    ]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(strategy.error, rel=0.2)


def test_counts_are_made_nonnegative_without_moving_ranges_further() -> None:
    """No running sum is further from the truth than the worst one was."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        truth = rng.exponential(1.0, 80) * (rng.random(80) < 0.3)
        noisy = truth + rng.normal(size=80)
        found = make_nonnegative(noisy)
        assert (found >= 0.0).all()
        before = np.abs(np.cumsum(noisy) - np.cumsum(truth)).max()
        assert np.abs(np.cumsum(found) - np.cumsum(truth)).max() <= before + 1e-9


def covers(spans: tuple[tuple[int, int], ...], n_cells: int) -> bool:
    """Whether spans follow each other over all cells."""
    ends = [0, *(stop for _, stop in spans)]
    return [first for first, _ in spans] == ends[:-1] and ends[-1] == n_cells


@pytest.mark.parametrize("seed", range(30))
def test_bins_stand_above_the_noise_and_are_few_enough(seed: int) -> None:
    """For masses of every shape; heavy cells stand alone, and pieces divide bins."""
    rng = np.random.default_rng(seed)
    n_cells, max_bins = int(rng.integers(2, 400)), int(rng.integers(2, 40))
    masses = rng.exponential(10.0, n_cells) * (rng.random(n_cells) < rng.random())
    masses[rng.integers(n_cells)] += 5000.0
    noise = float(rng.uniform(0.1, 60.0))
    chosen = choose_bins(masses, max_bins, range_noise=noise)
    assert covers(chosen.bins, n_cells)
    assert covers(chosen.pieces, n_cells)
    assert len(chosen.bins) <= max_bins
    held = [masses[first:stop].sum() for first, stop in chosen.bins]
    assert len(held) == 1 or min(held) >= 0.25 * noise
    assert {stop for _, stop in chosen.bins} <= {stop for _, stop in chosen.pieces}
    heavy = int(np.argmax(masses))
    others = masses.sum() - masses[heavy]
    if max_bins > 2 and min(masses[:heavy].sum(), masses[heavy + 1 :].sum()) >= max(
        3.0 * noise, others / 2
    ):
        assert (heavy, heavy + 1) in chosen.bins


def test_a_smooth_column_of_few_numbers_keeps_bins_for_its_tails() -> None:
    """Numbers that are all heavy, but no heavier than those beside them, do not each take a bin."""
    masses = 40_000.0 * np.exp(-((np.arange(121) - 30.0) ** 2) / 60.0) / 13.7
    bins = choose_bins(masses, 32, range_noise=60.0).bins
    assert sum(stop == first + 1 for first, stop in bins) < 20
    spiked = masses + 3000.0 * (np.arange(121) == 40)
    assert (40, 41) in choose_bins(spiked, 32, range_noise=60.0).bins


def test_equal_masses_make_equal_bins() -> None:
    """A thousand equal cells in ten bins."""
    bins = choose_bins(np.ones(1000), 10, range_noise=1.0).bins
    assert [stop - first for first, stop in bins] == [100] * 10
