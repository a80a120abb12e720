"""The order of pairs in which the tables of one clique are contracted.

A path is a table's number, or a pair of paths whose results are multiplied. Its cost is the
number of multiplications plus the cells of the intermediate tables.

The order of pairs decides. With 30, 20 and 10 values of a, b and c, tables 0 on ab, 1 on bc and 2
on c, to be summed onto a:

    (0, (1, 2))    bc by c: 200, gives b: 20; ab by b: 600, gives a: 30          850
    ((0, 1), 2)    ab by bc: 6000, gives ac: 300; ac by c: 300, gives a: 30     6630
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from itertools import combinations, count
from typing import NamedTuple

Scope = frozenset[int]
Path = int | tuple["Path", "Path"]

# Up to this many different scopes, all paths are compared; above, pairs are chosen greedily.
_EXHAUSTIVE = 6


class ScopedPath(NamedTuple):
    """A path with the attributes of all of its tables, and so are its halves."""

    table: int
    scope: Scope
    halves: tuple[ScopedPath, ScopedPath] | None


def annotate(path: Path, scopes: Mapping[int, Scope]) -> ScopedPath:
    """The path with the attributes of the tables of every part of it."""
    if isinstance(path, int):
        return ScopedPath(path, scopes[path], None)
    left, right = annotate(path[0], scopes), annotate(path[1], scopes)
    return ScopedPath(-1, left.scope | right.scope, (left, right))


def find_best_path(scopes: Mapping[int, Scope], keep: Scope, sizes: Sequence[int]) -> Path:
    """A cheap path that multiplies all tables and sums them onto `keep`.

    Tables on the same attributes are joined first: that never makes a table larger, and there may
    be hundreds of them in one clique, which no search over pairs could handle.
    """
    by_scope: dict[Scope, list[Path]] = {}
    for table, scope in scopes.items():
        by_scope.setdefault(scope, []).append(table)
    paths = [_balance(tables) for tables in by_scope.values()]
    if len(paths) <= 2:
        return _balance(paths)
    masks = _Masks([*by_scope], keep, sizes)
    if len(paths) == 3:
        return _compare_three(paths, masks)
    return _compare_all(paths, masks) if len(paths) <= _EXHAUSTIVE else _pair_up(paths, masks)


def _balance(paths: list[Path]) -> Path:
    """A path over all of them whose depth grows like the logarithm of their number."""
    while len(paths) > 1:
        pairs: list[Path] = [*zip(paths[::2], paths[1::2], strict=False)]
        paths = pairs + paths[len(pairs) * 2 :]
    return paths[0]


class _Masks:
    """Scopes as bit masks of the attributes that occur in them, and the cells of tables on them."""

    def __init__(self, scopes: Sequence[Scope], keep: Scope, sizes: Sequence[int]) -> None:
        attributes = sorted(frozenset().union(*scopes))
        bit = {attribute: 1 << index for index, attribute in enumerate(attributes)}
        self._sizes = [sizes[attribute] for attribute in attributes]
        self._cells = {0: 1}
        self.scopes = [sum([bit[attribute] for attribute in scope]) for scope in scopes]
        self.keep = sum([bit[attribute] for attribute in attributes if attribute in keep])

    def cells(self, mask: int) -> int:
        """The number of cells of a table on the attributes of a mask."""
        known = self._cells.get(mask)
        if known is None:
            known, rest = 1, mask
            while rest:
                lowest = rest & -rest
                known *= self._sizes[lowest.bit_length() - 1]
                rest ^= lowest
            self._cells[mask] = known
        return known


def _pair_up(paths: Sequence[Path], masks: _Masks) -> Path:
    """The path that always contracts the pair whose union is smallest."""
    live = dict(enumerate(zip(masks.scopes, paths, strict=True)))
    heap = [(masks.cells(live[a][0] | live[b][0]), a, b) for a, b in combinations(live, 2)]
    heapq.heapify(heap)
    numbers = count(len(live))
    while len(live) > 1:
        _, first, second = heapq.heappop(heap)
        if first not in live or second not in live:
            continue
        left, right = live.pop(first), live.pop(second)
        needed = masks.keep
        for scope, _ in live.values():
            needed |= scope
        scope, number = (left[0] | right[0]) & needed, next(numbers)
        for other, (around, _) in live.items():
            heapq.heappush(heap, (masks.cells(scope | around), other, number))
        live[number] = (scope, (left[1], right[1]))
    return next(iter(live.values()))[1]


def _compare_three(paths: Sequence[Path], masks: _Masks) -> Path:
    """What `_compare_all` finds for three tables, the most frequent case: which pair goes first."""
    (a, b, c), cells, keep = masks.scopes, masks.cells, masks.keep
    a, b, c = a & (keep | b | c), b & (keep | a | c), c & (keep | a | b)

    def cost(first: int, second: int, last: int) -> int:
        union = first | second
        result = union & (keep | last)
        return cells(union) + cells(result) + cells(result | last)

    costs = (cost(a, c, b), cost(a, b, c), cost(b, c, a))
    one, two, three = paths
    return (((one, three), two), ((one, two), three), (one, (two, three)))[costs.index(min(costs))]


def _compare_all(paths: Sequence[Path], masks: _Masks) -> Path:
    """The cheapest path, by dynamic programming over subsets of the tables, as bit masks.

    What a subset's product is summed onto depends on its members alone, not on the order in which
    they were joined. So the best path of a subset is made of best paths of its halves; and both
    halves are smaller numbers, so they have been done before it.
    """
    full = (1 << len(paths)) - 1
    results, cells = _find_results(masks, full), masks.cells
    costs: list[int] = [0] * (full + 1)
    best: list[Path] = [0] * (full + 1)
    for subset in range(1, full + 1):
        lowest = subset & -subset
        if subset == lowest:
            best[subset] = paths[subset.bit_length() - 1]
            continue
        least: float | int = math.inf
        half = chosen = (subset - 1) & subset
        while half:
            if half & lowest:  # each split in two once
                rest = subset ^ half
                cost = costs[half] + costs[rest] + cells(results[half] | results[rest])
                if cost < least:
                    least, chosen = cost, half
            half = (half - 1) & subset
        costs[subset] = int(least) + cells(results[subset])
        best[subset] = (best[chosen], best[subset ^ chosen])
    return best[full]


def _find_results(masks: _Masks, full: int) -> list[int]:
    """What is left of each subset's attributes once the other tables no longer need them."""
    unions = [0] * (full + 1)
    for subset in range(1, full + 1):
        lowest = subset & -subset
        unions[subset] = unions[subset ^ lowest] | masks.scopes[lowest.bit_length() - 1]
    return [unions[subset] & (masks.keep | unions[full ^ subset]) for subset in range(full + 1)]
