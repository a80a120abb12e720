"""Work divided between threads: compiled routines release the lock that Python threads share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_parallel(run: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Run a function on all items at the same time; gives their results in order."""
    if not items:
        return []
    others = [_pool(len(items) - 1).submit(run, item) for item in items[1:]]
    return [run(items[0]), *(other.result() for other in others)]


def cpu_count() -> int:
    """The processors that this process may use, perhaps fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def split_range(n: int, min_size: int) -> list[tuple[int, int]]:
    """Split a range into at most one part per processor, each of at least `min_size`.

    >>> split_range(10, min_size=100)
    [(0, 10)]
    """
    n_parts = max(1, min(cpu_count(), n // min_size))
    ends = [n * part // n_parts for part in range(n_parts + 1)]
    return list(pairwise(ends))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(1, threads), thread_name_prefix="juncture")


# A forked child inherits the pools but not their threads.
os.register_at_fork(after_in_child=_pool.cache_clear)
