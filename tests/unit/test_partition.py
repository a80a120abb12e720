"""Tests of dividing a tree between threads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from juncture.engine.partition import Partition, partition
from strategies import examples

Forest = tuple[list[int | None], list[int]]


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    """Draw parents that come after their children, and the work of every node."""
    n = draw(st.integers(1, 40))
    parents: list[int | None] = []
    for node in range(n):
        later = st.integers(node + 1, n - 1) if node + 1 < n else st.nothing()
        parents.append(draw(st.one_of(st.none(), later)))
    return parents, draw(st.lists(st.integers(0, 1000), min_size=n, max_size=n))


def time_of(division: Partition, work: list[int]) -> int:
    """Give the time when every thread works at the same speed and the top comes last."""
    loads = [sum(work[node] for node in group) for group in division.groups]
    return max(loads, default=0) + sum(work[node] for node in division.top)


@examples(150)
@given(forests(), st.integers(1, 5))
def test_every_node_is_somewhere_once(forest: Forest, threads: int) -> None:
    """Groups and top together hold every node exactly once, each in schedule order."""
    parents, work = forest
    groups, top = partition(parents, work, threads)
    assert sorted([*top, *(node for group in groups for node in group)]) == list(range(len(work)))
    assert all(list(part) == sorted(part) for part in (*groups, top))
    assert len(groups) in {0, threads}


@examples(150)
@given(forests(), st.integers(1, 5))
def test_groups_need_nothing_from_each_other(forest: Forest, threads: int) -> None:
    """A node's children are in its own group, or, for the top, anywhere; parents never below."""
    parents, work = forest
    groups, top = partition(parents, work, threads)
    home = {node: number for number, group in enumerate(groups) for node in group}
    home |= dict.fromkeys(top, -1)
    for node, parent in enumerate(parents):
        if parent is not None:
            assert home[parent] in {home[node], -1}


@examples(150)
@given(forests(), st.integers(1, 5))
def test_dividing_is_never_slower(forest: Forest, threads: int) -> None:
    """The time is no more than that of one thread and no less than a fair share."""
    parents, work = forest
    time = time_of(partition(parents, work, threads), work)
    assert sum(work) / threads <= time <= sum(work)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_one_node_is_not_divided(threads: int) -> None:
    """A single node, or a single thread, leaves everything at the top."""
    assert partition([None], [5], threads) == Partition((), (0,))
    assert partition([1, None], [5, 5], 1) == Partition((), (0, 1))
    assert partition([], [], threads) == Partition((), ())


def test_two_equal_branches() -> None:
    """Two equal branches go to two threads, and their common root stays at the top."""
    division = partition([2, 2, None], [10, 10, 1], 2)
    assert division == Partition(((0,), (1,)), (2,))


def test_separate_trees_have_no_top() -> None:
    """Trees that are not connected are divided whole."""
    division = partition([1, None, 3, None], [4, 5, 5, 4], 2)
    assert division.top == ()
    assert sorted(division.groups) == [(0, 1), (2, 3)]


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_a_wide_star_is_divided_evenly(threads: int) -> None:
    """Sixty equal leaves of a light root are shared out to within one leaf."""
    division = partition([60] * 60 + [None], [10] * 60 + [1], threads)
    assert time_of(division, [10] * 60 + [1]) == 10 * 60 // threads + 1


def test_a_chain_rooted_in_its_middle() -> None:
    """The two halves of a chain run at the same time."""
    parents: list[int | None] = [1, 2, 6, 4, 5, 6, None]
    division = partition(parents, [3] * 7, 2)
    assert division == Partition(((0, 1, 2), (3, 4, 5)), (6,))
