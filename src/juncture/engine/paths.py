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
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import combinations, count
from operator import itemgetter

Scope = frozenset[int]
Path = int | tuple["Path", "Path"]
Cells = Callable[[Iterable[int]], int]

# Up to this many different scopes, all paths are compared; above, pairs are chosen greedily.
_EXHAUSTIVE = 6


def leaves(path: Path) -> list[int]:
    """The tables of a path, from left to right."""
    tables: list[int] = []
    waiting: list[Path] = [path]
    while waiting:
        top = waiting.pop()
        if isinstance(top, int):
            tables.append(top)
        else:
            waiting += (top[1], top[0])
    return tables


def find_best_path(scopes: Mapping[int, Scope], keep: Scope, cells: Cells) -> Path:
    """A cheap path that multiplies all tables and sums them onto `keep`.

    Tables on the same attributes are joined first: that never makes a table larger, and there may
    be hundreds of them in one clique, which no search over pairs could handle.
    """
    by_scope: dict[Scope, list[Path]] = {}
    for table, scope in scopes.items():
        by_scope.setdefault(scope, []).append(table)
    groups = {scope: _balance(tables) for scope, tables in by_scope.items()}
    if len(groups) <= 2:
        return _balance(list(groups.values()))
    if len(groups) <= _EXHAUSTIVE:
        return _Exhaustive(groups, keep, cells).path
    return _find_greedy_path(groups, keep, cells)


def _balance(paths: list[Path]) -> Path:
    """A path over all of them whose depth grows like the logarithm of their number."""
    while len(paths) > 1:
        pairs: list[Path] = [*zip(paths[::2], paths[1::2], strict=False)]
        paths = pairs + paths[len(pairs) * 2 :]
    return paths[0]


def _find_greedy_path(groups: Mapping[Scope, Path], keep: Scope, cells: Cells) -> Path:
    """The path that always contracts the pair whose union is smallest."""
    live = dict(enumerate(groups.items()))
    heap = [(cells(live[a][0] | live[b][0]), a, b) for a, b in combinations(live, 2)]
    heapq.heapify(heap)
    numbers = count(len(live))
    while len(live) > 1:
        _, first, second = heapq.heappop(heap)
        if first not in live or second not in live:
            continue
        left, right = live.pop(first), live.pop(second)
        needed = keep.union(*(scope for scope, _ in live.values()))
        scope, number = (left[0] | right[0]) & needed, next(numbers)
        for other, (around, _) in live.items():
            heapq.heappush(heap, (cells(scope | around), other, number))
        live[number] = (scope, (left[1], right[1]))
    return next(iter(live.values()))[1]


class _Exhaustive:
    """Dynamic programming over subsets of the tables, each subset a bit mask."""

    def __init__(self, groups: Mapping[Scope, Path], keep: Scope, cells: Cells) -> None:
        self.scopes = list(groups)
        self.paths = list(groups.values())
        self.keep = keep
        self.cells = cells

    @cached_property
    def path(self) -> Path:
        """The cheapest path of all tables."""
        full = (1 << len(self.scopes)) - 1
        best: dict[int, tuple[int, Path]] = {
            1 << index: (0, path) for index, path in enumerate(self.paths)
        }
        results = [self._result(subset, full) for subset in range(full + 1)]
        # What a subset's product is summed onto depends on its members alone, not on the order in
        # which they were joined. So the best path of a subset is made of best paths of its halves;
        # and both halves are smaller numbers, so they have been done before it.
        for subset in range(1, full + 1):
            if subset not in best:
                joined = (
                    self._join(best, results, half, subset ^ half) for half in _halves(subset)
                )
                best[subset] = min(joined, key=itemgetter(0))
        return best[full][1]

    def _result(self, subset: int, full: int) -> Scope:
        """What is left of a subset's attributes once the others no longer need them."""
        inside = frozenset[int]().union(*self._members(subset))
        return inside & self.keep.union(*self._members(full ^ subset))

    def _members(self, subset: int) -> list[Scope]:
        return [scope for index, scope in enumerate(self.scopes) if subset >> index & 1]

    def _join(
        self, best: Mapping[int, tuple[int, Path]], results: list[Scope], half: int, rest: int
    ) -> tuple[int, Path]:
        cost = self.cells(results[half] | results[rest]) + self.cells(results[half | rest])
        return best[half][0] + best[rest][0] + cost, (best[half][1], best[rest][1])


def _halves(subset: int) -> list[int]:
    """The proper subsets that hold the lowest member: each split in two once."""
    lowest = subset & -subset
    halves, half = [], (subset - 1) & subset
    while half:
        if half & lowest:
            halves.append(half)
        half = (half - 1) & subset
    return halves
