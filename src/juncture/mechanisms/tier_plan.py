"""Which pairs `Tiers` measures: what noisy distances say, and which tables are worth their price.

All of it is arithmetic on public numbers: noisy scores, and models fitted to what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture.mechanisms.tier_tables import expect_error
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector

Array = NDArray[np.float64]

# The distances that are thought possible: none, and so many others, from this part of the noise on.
_N_DISTANCES, _NEAREST = 48, 0.125
# Passes over all distances to learn how common each is. A few leave the answer smooth.
_N_PASSES = 30
# How sure a doubt is itself, as a part of it.
_DOUBT_SPREAD = 0.3
# A fit to many tables leaves this part of the error that noise would leave of one alone.
_FITTED = 0.9
# Pairs are ranked as if columns and this part of all pairs were measured.
_RANKING_PARTS = (0.0, 0.1, 1.0)
# The levels of noise at which errors are known, and the numbers of tables that are tried at most.
_N_LEVELS, _N_TRIED = 16, 100


def estimate_distances(
    noisy: Vector, stddev: float, doubts: Vector, *, largest: float = math.inf
) -> Array:
    """What distances are expected to be, from all of them with noise.

    - `doubts`: how far each would be off for another reason, which does not count.
    - `largest`: what no distance exceeds.

    How common each distance is, is learned from all of them (the nonparametric estimate of
    Kiefer and Wolfowitz, by a few steps of expectation maximisation); each is then expected to be
    the mean of what is likely for it. So where all look like noise, they are expected to be alike,
    and one that stands out is believed.

    >>> noisy = np.array([3.0, -4.0, 5.0, -2.0, 1.0, -5.0, 2.0, 100.0])
    >>> found = estimate_distances(noisy, 4.0, np.zeros(8))
    >>> bool((found[:-1] < 2.5).all()), bool(found[-1] > 90.0)
    (True, True)
    """
    top = max(float(noisy.max(initial=0.0)), 0.0) + 2.0 * stddev
    possible = np.append(0.0, np.geomspace(_NEAREST * stddev, top, _N_DISTANCES))
    possible = np.minimum(possible, largest)
    seen = np.hypot(possible, doubts[:, None])
    spread = np.hypot(stddev, _DOUBT_SPREAD * doubts)[:, None]
    logs = -0.5 * ((noisy[:, None] - seen) / spread) ** 2
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    common = np.full(len(possible), 1.0 / len(possible))
    for _ in range(_N_PASSES):
        common = _weigh(likely, common).mean(axis=0)
        common = np.maximum(common, 1e-9)
    return np.asarray(_weigh(likely, common) @ possible)


def _weigh(likely: Array, common: Array) -> Array:
    """How likely each possible distance is for each table."""
    joint = likely * common
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


class PairPlan(NamedTuple):
    """Which pairs to measure, for which shares of the price."""

    chosen: list[Clique]
    shares: dict[Clique, float]
    """Of those chosen, and of those that were measured before; with columns they add up to one."""


@dataclass(frozen=True)
class PairPlanner:
    """What is known of all pairs before some of them are measured.

    A pair's error has two parts, which are as good as independent: that of its two columns, and
    that of what they say together. Unmeasured, the second part is the distance d from what the
    model says. Measured, it is e if noise hides little of it; a fit takes for noise what is below
    that, so in all d e / sqrt(d^2 + e^2). Columns are known by their own share of the price, and
    from each pair that is measured whole.
    """

    tables: Mapping[Clique, Vector]
    """What each pair would be if its columns were independent."""
    weights: Mapping[Clique, float]
    joint: Mapping[Clique, float]
    """The part of the numbers of each pair that its columns alone do not tell."""
    columns: Mapping[str, Vector]
    noise: float
    """The mean absolute noise on a count if the whole price is spent on one table."""
    single_need: float
    """What a column needs for each pair that it answers, beside what a pair needs."""
    by_contrasts: bool = False
    """Whether that part of the numbers alone is measured; columns learn nothing from it."""

    def plan(
        self, distances: Mapping[Clique, float], known: Sequence[Clique], max_pairs: int
    ) -> PairPlan:
        """The pairs whose measurement makes the mean error of all pairs least.

        - `distances`: how far each pair is expected to be off without a measurement.
        - `known`: pairs that were measured before.

        Every pair more leaves less of the price for each. So pairs are added in the order of what
        they gain for their price, and the number is taken at which the mean is least.

        >>> even, pairs = np.full(4, 1000.0), [("a", "b"), ("b", "c"), ("a", "c")]
        >>> planner = PairPlanner(
        ...     dict.fromkeys(pairs, np.full(16, 250.0)), dict.fromkeys(pairs, 1.0),
        ...     dict.fromkeys(pairs, 9 / 16), dict.fromkeys("abc", even), 20.0, 0.5,
        ... )
        >>> planner.plan(dict(zip(pairs, [900.0, 5.0, 10.0])), [], 3).chosen
        [('a', 'b')]
        """
        open_ones, m = list(distances), len(distances)
        pairs = [*open_ones, *known]
        problem = _Problem(self, pairs, np.append(list(distances.values()), [np.inf] * len(known)))
        best = (math.inf, np.zeros(0, dtype=np.int64), np.zeros(0))
        for order in problem.rank(m):
            for k in _list_numbers(min(m, max_pairs)):
                measured = np.concatenate([order[:k], np.arange(m, len(pairs))]).astype(np.int64)
                shares, total = problem.expect(measured)
                if total < best[0]:
                    best = total, order[:k], shares
        _, taken, shares = best
        chosen = [open_ones[index] for index in taken.tolist()]
        return PairPlan(chosen, dict(zip([*chosen, *known], shares.tolist(), strict=True)))


class _Problem:
    """What each choice of pairs would lead to, in arrays over pairs and over columns."""

    def __init__(self, planner: PairPlanner, pairs: Sequence[Clique], distances: Vector) -> None:
        self.distances, self.noise = distances, planner.noise
        self.by_contrasts, self.single_need = planner.by_contrasts, planner.single_need
        columns = list(planner.columns)
        self.sizes = np.array([len(table) for table in planner.columns.values()], dtype=np.float64)
        position = {name: index for index, name in enumerate(columns)}
        self.ends = np.array([[position[name] for name in pair] for pair in pairs])
        self.weights = np.array([planner.weights[pair] for pair in pairs])
        joint = np.array([planner.joint[pair] for pair in pairs])
        # Contrasts cost and tell this part. Of whole tables, it is that of a sum of squares.
        self.cost = joint if self.by_contrasts else np.ones(len(pairs))
        self.parts = joint if self.by_contrasts else np.sqrt(joint)
        tables = [*(planner.tables[pair] for pair in pairs), *planner.columns.values()]
        self.curves = _Curves(tables, self.noise, len(tables))

    def rank(self, m: int) -> Iterator[NDArray[np.int64]]:
        """The first m pairs by what measuring each gains for its price, at some levels of noise.

        Where all are measured, noise hides the large tables that few would show.
        """
        for part in _RANKING_PARTS:
            n = len(self.sizes) + part * len(self.weights)
            left = self.curves.at(self.noise * math.sqrt(n))[:m]
            own = np.maximum(left * self.cost[:m], 1e-9)
            d, e = self.distances[:m], _FITTED * self.parts[:m] * left
            gain = d - d * e / np.maximum(np.hypot(d, e), 1e-9)
            yield np.argsort(-gain * np.sqrt(self.weights[:m] / own), kind="stable")

    def expect(self, measured: NDArray[np.int64]) -> tuple[Array, float]:
        """The shares of pairs that are measured, and the sum of the errors of all pairs."""
        k, ends = len(measured), self.ends[measured]
        answered = self.weights.copy()  # by their columns alone
        if not self.by_contrasts:
            answered[measured] = 0.0
        uses = np.bincount(self.ends.ravel(), np.repeat(answered, 2), len(self.sizes))
        n = k + len(self.sizes)
        errors = self.curves.at(self.noise * math.sqrt(n))
        errors = np.concatenate([errors[measured], errors[len(self.weights) :]])
        wanted = self.weights[measured] * self.cost[measured]
        roots = np.sqrt(np.maximum(errors * np.append(wanted, self.single_need * uses), 1e-12))
        shares = roots / roots.sum()
        known = shares.copy()
        if not self.by_contrasts:
            for side in (0, 1):
                told = shares[:k] / self.sizes[ends[:, 1 - side]]
                known[k:] += np.bincount(ends[:, side], told, len(self.sizes))
        errors /= np.sqrt(n * known)  # more noise where the share is below the mean
        together, left = self.distances.copy(), _FITTED * self.parts[measured] * errors[:k]
        together[measured] = left / np.hypot(1.0, left / np.maximum(together[measured], 1e-9))
        singles = errors[k:][self.ends]
        total = self.weights @ np.sqrt(together**2 + (singles**2).sum(axis=1))
        return shares[:k], float(total)


class _Curves:
    """How far each table will be off, by the mean absolute noise on its counts."""

    def __init__(self, tables: Sequence[Vector], noise: float, n: int) -> None:
        self._levels = noise * np.sqrt(np.geomspace(1.0, max(n, 2), _N_LEVELS))
        self._errors = np.array(
            [[expect_error(table, level) for level in self._levels] for table in tables]
        )

    def at(self, noise: float) -> Array:
        """The error of each at a level of noise, between those that are known."""
        place = float(np.interp(noise, self._levels, np.arange(_N_LEVELS)))
        low = min(int(place), _N_LEVELS - 2)
        part = place - low
        return np.asarray((1.0 - part) * self._errors[:, low] + part * self._errors[:, low + 1])


def _list_numbers(n: int) -> list[int]:
    """The numbers of tables that are tried: all up to n, or some where these are many.

    >>> _list_numbers(3)
    [0, 1, 2, 3]
    """
    if n <= _N_TRIED:
        return list(range(n + 1))
    return sorted({0, n, *np.geomspace(1, n, _N_TRIED).round().astype(int).tolist()})


def keep_forest(pairs: Iterable[Clique]) -> list[Clique]:
    """Those of the pairs that join columns which no earlier ones join.

    >>> keep_forest([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")])
    [('a', 'b'), ('b', 'c'), ('c', 'd')]
    """
    part, kept = dict[str, set[str]](), list[Clique]()
    for left, right in pairs:
        one, two = part.get(left, {left}), part.get(right, {right})
        if one is not two:
            one |= two
            part.update(dict.fromkeys(one, one))
            kept.append((left, right))
    return kept


def divide_what_is_left(
    shares: Mapping[Clique, float], spent: Mapping[Clique, float], left: float
) -> dict[Clique, float]:
    """How much more to spend on each table, so that all together come near to their shares.

    What was spent before is not taken back: those that had more than their share get nothing, and
    the others have the less.

    >>> divide_what_is_left({("a",): 0.5, ("b",): 0.5}, {("a",): 0.3}, left=0.5)
    {('a',): 0.1, ('b',): 0.4}
    """
    before = np.array([spent.get(clique, 0.0) for clique in shares])
    wanted = np.array(list(shares.values()))
    # Shares of a level at which exactly what is left is missing: found among those that get more.
    open_ones = np.ones(len(wanted), dtype=bool)
    level = 0.0
    while open_ones.any():
        level = (left + before[open_ones].sum()) / wanted[open_ones].sum()
        over = open_ones & (before > level * wanted)
        if not over.any():
            break
        open_ones &= ~over
    more = np.where(open_ones, level * wanted - before, 0.0)
    return {c: round(float(x), 15) for c, x in zip(shares, more, strict=True)}
