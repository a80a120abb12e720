"""Tests of nested loops, walked in plain Python, against einsum."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute import Array, einsum
from juncture.engine.contraction import ONE
from juncture.engine.loops import Axes, Loop, LoopTable, loop_order
from packing import plan_of
from problems import PROBLEMS, Problem
from strategies import examples

Question = tuple[list[int], Axes, Axes, Axes]


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Draw sizes, the axes of two tables, and some of their axes as the result's."""
    sizes = draw(st.lists(st.integers(2, 4), min_size=1, max_size=5))
    scope = st.lists(st.integers(0, len(sizes) - 1), unique=True, max_size=4).map(tuple)
    left, right = draw(scope), draw(scope)
    union = sorted({*left, *right})
    order = draw(st.permutations(union))
    return sizes, left, right, tuple(order[: draw(st.integers(0, len(order)))])


def walked(rows: list[Loop], left: Array, right: Array, n_result: int) -> Array:
    """Carry nested loops out, tick by tick, on flat tables."""
    p, q, r = left.ravel(), right.ravel(), np.zeros(n_result)
    for ticks in product(*(range(row[0]) for row in rows)):
        at = [sum(t * row[c] for t, row in zip(ticks, rows, strict=True)) for c in (1, 2, 3)]
        r[at[2]] += p[at[0]] * q[at[1]]
    return r


def table(axes: Axes, sizes: list[int], seed: int) -> Array:
    """Give a random table."""
    return np.asarray(np.random.default_rng(seed).random([sizes[axis] for axis in axes]))


@examples(200)
@given(questions(), st.data())
def test_loops_equal_einsum(question: Question, data: st.DataObject) -> None:
    """Whatever the order of the axes, walking the loops gives the product and the sum."""
    sizes, left, right, result = question
    order = tuple(data.draw(st.permutations(loop_order(left, right, result))))
    loops = LoopTable(sizes)
    first, n_rows = loops.nest(order, (left, right, result))
    p, q = table(left, sizes, 1), table(right, sizes, 2)
    expected = einsum([(p, left), (q, right)], result)
    found = walked(loops.rows[first : first + n_rows], p, q, expected.size)
    np.testing.assert_allclose(found, expected.ravel(), rtol=1e-12)


@examples(100)
@given(questions())
def test_there_are_two_loops_at_least(question: Question) -> None:
    """The kernels' two innermost loops always exist, and all ticks together cover the union."""
    sizes, left, right, result = question
    loops = LoopTable(sizes)
    first, n_rows = loops.nest(loop_order(left, right, result), (left, right, result))
    assert n_rows >= 2
    ticks = math.prod(row[0] for row in loops.rows[first : first + n_rows])
    assert ticks == math.prod(sizes[axis] for axis in {*left, *right})


@given(questions())
def test_loop_order_names_each_axis_once(question: Question) -> None:
    """The order of the loops holds every axis of the two tables, each once."""
    _, left, right, result = question
    order = loop_order(left, right, result)
    assert sorted(order) == sorted({*left, *right})
    assert [axis for axis in order if axis in left] == list(left)


def test_neighbouring_axes_become_one_loop() -> None:
    """Axes that lie next to each other in all tables that have them are walked as one."""
    loops = LoopTable([2, 3, 4])
    first, n_rows = loops.nest((0, 1, 2), ((0, 1, 2), (), (0, 1, 2)))
    assert loops.rows[first : first + n_rows] == [(1, 0, 0, 0), (24, 1, 0, 1)]


def test_products_of_the_same_shape_share_rows() -> None:
    """Two products that differ in the names of their axes alone have the same rows."""
    loops = LoopTable([2, 3, 4, 2, 3, 4])
    one = loops.nest((0, 1, 2), ((0, 1), (1, 2), (0, 2)))
    other = loops.nest((3, 4, 5), ((3, 4), (4, 5), (3, 5)))
    different = loops.nest((0, 1, 5), ((0, 1), (1, 5), (5, 0)))
    assert one == other != different


def test_flat() -> None:
    """A flat loop walks two tables cell by cell, with the number one on the right."""
    loops = LoopTable([])
    first, n_rows = loops.flat(5)
    cells = np.arange(5.0)
    found = walked(loops.rows[first : first + n_rows], cells, np.ones(1), 5)
    assert found.tolist() == cells.tolist()
    assert loops.flat(5) == (first, n_rows)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_innermost_loops_are_contiguous(problem: Problem) -> None:
    """In every product of every plan, the innermost loop steps by one cell or stands still."""
    contraction = plan_of(problem.sizes, problem.potentials).contraction
    nodes = plan_of(problem.sizes, problem.potentials).nodes
    loops = LoopTable(contraction.sizes)
    for left, right, result in (step for node in nodes for step in node.steps):
        if right == ONE:  # a copy in another order cannot be contiguous on both sides
            continue
        axes = contraction.axes[left], contraction.axes[right], contraction.axes[result]
        first, n_rows = loops.nest(loop_order(*axes), axes)
        assert set(loops.rows[first + n_rows - 1][1:]) <= {0, 1}
