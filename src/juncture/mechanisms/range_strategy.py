"""What to measure on a fine grid so that counts of ranges have the smallest error.

Candidates are trees: the cells themselves, groups of b cells in a row, groups of b such groups and
so on, each level for its share of the price; and, on small grids, the strategy that HDMM optimises
for all ranges. What each would leave of a random range is known without data, and the best is
taken.

Trees. With noise of variance v_j on level j, whose groups have s_j cells, the least-squares
estimate has the inverse of G = sum_j B_j'B_j / v_j for its covariance, where B_j adds up the
groups. All B_j'B_j are block matrices of ones in nested blocks, so they commute: a vector that is
constant on the groups of level l, and adds up to 0 inside each group of level l - 1, is an
eigenvector of G with the eigenvalue sum over j >= l of s_j / v_j. The estimate is therefore a sum
of differences of means, one for each level, and its error for a range is the sum over the levels
of the squared length of the range's part there, over that eigenvalue. Nothing is inverted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from juncture.mechanisms.attribute_strategy import optimise_attribute
from juncture.privacy.accounting import Neighbours
from juncture.privacy.price import Price
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import AllRanges, Block, Buckets, Identity

Array = NDArray[np.float64]

_BRANCHES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
# HDMM's strategy for Gaussian noise takes seconds to optimise beyond this many cells.
_MAX_OPTIMISED = 96
# Random ranges by which strategies are compared; a fixed seed, so that plans do not vary.
_N_RANGES, _SEED = 400, 7
_STEPS = 60
# A level for less than this share of the price is not worth an event; a strategy that is worse than
# the best by less than this factor is taken if it has fewer.
_MIN_SHARE, _NEARLY = 0.01, 1.05


@dataclass(frozen=True)
class Query:
    """One measurement of a strategy: a block on the cells in their order, for a share."""

    block: Block
    share: float
    """The share of the strategy's price."""


@dataclass(frozen=True, eq=False)
class RangeStrategy:
    """What to measure on the cells of a grid, and the error that it leaves of a random range."""

    n_cells: int
    branch: int | None
    """How many groups make one of the next level; None for a matrix that was optimised."""
    queries: tuple[Query, ...]
    error: float
    """The root of the expected squared error of a random range, at the price it was made for."""

    @property
    def description(self) -> str:
        """What is measured, in words."""
        if self.branch is None:
            return f"{self.n_cells:,} cells by an optimised strategy"
        if len(self.queries) == 1:
            return f"{self.n_cells:,} cells one by one"
        return f"{self.n_cells:,} cells in a tree of {len(self.queries)} levels"

    def estimate(self, measured: Sequence[Measurement]) -> Array:
        """The least-squares estimate of the cells from the measurements of the queries, in order.

        The measurements' queries may act on codes in another order: only their answers are used.
        """
        variances = [float(np.mean(each.stddev) ** 2) for each in measured]
        if self.branch is None:
            (query,) = self.queries
            matrix = query.block.matrix(self.n_cells)
            return np.asarray(np.linalg.lstsq(matrix, measured[0].values, rcond=None)[0])
        sizes = _group_sizes(self.branch, len(self.queries))
        padded = sizes[0] * math.ceil(self.n_cells / sizes[0])
        weighted = np.zeros(padded)
        for each, variance, size in zip(measured, variances, sizes, strict=True):
            spread = np.repeat(each.values, size)[:padded] / variance
            weighted[: len(spread)] += spread
        return _solve(weighted, sizes, variances)[: self.n_cells]

    def covariance(self, measured: Sequence[Measurement], groups: NDArray[np.int64]) -> Array:
        """The covariance of the estimate's sums over groups of cells; each cell is in one group.

        It is B C B', where C is the covariance of the cells and B adds up the groups.
        """
        n_groups = int(groups.max()) + 1
        sums = np.eye(n_groups)[groups]  # a row for each cell
        variances = [float(np.mean(each.stddev) ** 2) for each in measured]
        if self.branch is None:
            matrix = self.queries[0].block.matrix(self.n_cells)
            inverse = variances[0] * np.linalg.pinv(matrix.T @ matrix)
            return np.asarray(sums.T @ inverse @ sums)
        sizes = _group_sizes(self.branch, len(self.queries))
        padded = np.zeros((sizes[0] * math.ceil(self.n_cells / sizes[0]), n_groups))
        padded[: self.n_cells] = sums
        columns = [_solve(column, sizes, variances) for column in padded.T]
        return np.asarray(np.array(columns) @ padded)


def _group_sizes(branch: int, n_levels: int) -> list[int]:
    """The number of cells in a group of each level, the largest groups first."""
    return [branch ** (n_levels - 1 - level) for level in range(n_levels)]


def _eigenvalues(sizes: Sequence[int], variances: Sequence[float]) -> Array:
    """For each level, the eigenvalue of its differences of means."""
    information = np.array([size / variance for size, variance in zip(sizes, variances)])  # noqa: B905
    return np.asarray(np.cumsum(information[::-1])[::-1])


def _solve(weighted: Array, sizes: Sequence[int], variances: Sequence[float]) -> Array:
    """Solve G x = weighted, level by level: means of groups, less those of the groups above.

    Cells beyond the last, up to a whole group, are taken as measured to be empty.
    """
    values, above = np.zeros_like(weighted), np.zeros_like(weighted)
    for size, eigenvalue in zip(sizes, _eigenvalues(sizes, variances), strict=True):
        means = np.repeat(weighted.reshape(-1, size).mean(axis=1), size)
        values += (means - above) / eigenvalue
        above = means
    return values


def choose_strategy(n_cells: int, price: Price, neighbours: Neighbours) -> RangeStrategy:
    """The strategy that leaves the least error of random ranges, without looking at data."""
    candidates = [
        _make_tree(n_cells, branch, n_levels, price, neighbours)
        for branch, n_levels in _list_trees(n_cells)
    ]
    if 1 < n_cells <= _MAX_OPTIMISED:
        candidates.append(_make_optimised(n_cells, price, neighbours))
    useful = [each for each in candidates if min(q.share for q in each.queries) >= _MIN_SHARE]
    best = min(each.error for each in useful)
    # Fewer events, where hardly anything is lost.
    return min(
        (each for each in useful if each.error <= _NEARLY * best),
        key=lambda each: (len(each.queries), each.error),
    )


def _list_trees(n_cells: int) -> list[tuple[int, int]]:
    """Branches and numbers of levels; the top level has at least two groups."""
    trees = [(2, 1)]
    for branch in _BRANCHES:
        n_levels = 2
        while branch ** (n_levels - 1) < n_cells:
            trees.append((branch, n_levels))
            n_levels += 1
    return trees


def _make_tree(
    n_cells: int, branch: int, n_levels: int, price: Price, neighbours: Neighbours
) -> RangeStrategy:
    sizes = _group_sizes(branch, n_levels)
    parts = _range_parts(n_cells, branch, n_levels)
    unit = price.cell_stddev(neighbours) ** 2
    power = 2.0 / price.norm  # the variance for a share of the price is 1 / share^power
    shares = _divide(parts, sizes, power)
    variances = [unit / share**power for share in shares]
    eigenvalues = _eigenvalues(sizes, variances)
    queries = tuple(
        Query(_groups(n_cells, size), float(share))
        for size, share in zip(sizes, shares)  # noqa: B905
    )
    return RangeStrategy(n_cells, branch, queries, float(math.sqrt((parts / eigenvalues).sum())))


def _groups(n_cells: int, size: int) -> Block:
    return Identity() if size == 1 else Buckets(np.arange(n_cells) // size)


@lru_cache(maxsize=512)
def _range_parts(n_cells: int, branch: int, n_levels: int) -> Array:
    """The mean squared length of a random range's part on each level."""
    rng = np.random.default_rng(_SEED)
    ends = np.sort(rng.integers(0, n_cells + 1, (_N_RANGES, 2)), axis=1)
    return _squared_parts(ends, _group_sizes(branch, n_levels))


def _squared_parts(ends: NDArray[np.int64], sizes: Sequence[int]) -> Array:
    """The mean squared length of the ranges' parts, by the squared lengths of their means.

    A range fills groups in the middle and a part of at most two groups at its ends: the squared
    length of its means over groups of one size is the sum of the squared overlaps over the size.
    """
    low, high = ends[:, 0], ends[:, 1]
    lengths = []
    for size in sizes:
        first, last = low // size, np.maximum(high - 1, low) // size
        same = first == last
        head = np.where(same, high - low, (first + 1) * size - low)
        tail = np.where(same, 0, high - last * size)
        inner = np.where(same, 0, last - first - 1) * size
        lengths.append(((head**2 + tail**2) / size + inner).mean())
    return np.diff(np.array([0.0, *lengths]))


def _divide(parts: Array, sizes: Sequence[int], power: float) -> Array:
    """Shares of a price for the levels: those that leave the least error, by steps of descent.

    The error is a sum of parts over eigenvalues, and these are sums of sizes times powers of the
    shares. Multiplying shares by the root of what they gain, and dividing by the sum, descends.
    """
    shares, weights = np.full(len(sizes), 1.0 / len(sizes)), np.asarray(sizes, dtype=np.float64)
    for _ in range(_STEPS):
        eigenvalues = np.cumsum((weights * shares**power)[::-1])[::-1]
        gains = np.cumsum(parts / eigenvalues**2) * weights * power * shares ** (power - 1.0)
        shares = shares * np.sqrt(np.maximum(gains, 1e-300))
        shares = np.maximum(shares / shares.sum(), 1e-6)
        shares = shares / shares.sum()
    return shares


@lru_cache(maxsize=64)
def _optimise(n_cells: int, gaussian: bool) -> tuple[Block, Array]:
    strategy = optimise_attribute(AllRanges(), n_cells, gaussian=gaussian, restarts=2)
    matrix = strategy.block.matrix(n_cells)
    return strategy.block, np.asarray(np.linalg.pinv(matrix.T @ matrix))


def _make_optimised(n_cells: int, price: Price, neighbours: Neighbours) -> RangeStrategy:
    block, inverse = _optimise(n_cells, price.norm == 2)
    matrix = block.matrix(n_cells)
    norms = np.abs(matrix).sum(axis=0) if price.norm == 1 else np.sqrt((matrix**2).sum(axis=0))
    variance = (price.cell_stddev(neighbours) * float(norms.max())) ** 2
    rng = np.random.default_rng(_SEED)
    ends = np.sort(rng.integers(0, n_cells + 1, (_N_RANGES, 2)), axis=1)
    index = np.arange(n_cells)
    ranges = ((index >= ends[:, :1]) & (index < ends[:, 1:])).astype(np.float64)
    error = variance * float(np.einsum("ij,jk,ik->i", ranges, inverse, ranges).mean())
    return RangeStrategy(n_cells, None, (Query(block, 1.0),), math.sqrt(max(error, 0.0)))
