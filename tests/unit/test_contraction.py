"""Tests of pairwise contraction against einsum of everything at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from brute import Array, einsum
from juncture.engine.contraction import ONE, Axes, Contraction, Step
from juncture.engine.paths import Path, annotate, find_best_path
from juncture.engine.plan import Plan
from packing import plan_of
from problems import ONCE_FAILED, PROBLEMS, Problem
from strategies import examples

Scope = frozenset[int]
Question = tuple[list[int], list[Axes], Scope]


@st.composite
def questions(draw: st.DrawFn, max_tables: int = 7) -> Question:
    """Draw sizes, the axes of some tables in any order, and the axes to keep."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    axis = st.integers(0, len(sizes) - 1)
    scope = st.lists(axis, unique=True, max_size=4).map(tuple)
    tables = draw(st.lists(scope, min_size=1, max_size=max_tables))
    return sizes, tables, draw(st.frozensets(axis, max_size=4))


def arrays_of(contraction: Contraction) -> list[Array]:
    """Give random tables for the given axes."""
    rng = np.random.default_rng(0)
    shapes = ([contraction.sizes[a] for a in axes] for axes in contraction.axes)
    return [np.asarray(rng.random(shape)) for shape in shapes]


def run(contraction: Contraction, steps: Sequence[Step], given_tables: list[Array]) -> Array:
    """Carry the steps out with einsum; gives the last result."""
    tables = dict(enumerate(given_tables))
    axes = contraction.axes
    for left, right, result in steps:
        operands = [(tables[t], axes[t]) for t in (left, right) if t != ONE]
        tables[result] = einsum(operands, axes[result])
    return tables[steps[-1].result]


def all_at_once(contraction: Contraction, given_tables: list[Array], result: Axes) -> Array:
    """Give the product of all tables, summed onto the result's axes."""
    return einsum(list(zip(given_tables, contraction.axes, strict=False)), result)


@examples(250)
@given(questions())
@example(([2, 3], [(0,), (1,)], frozenset([0])))  # the larger table is summed out entirely
def test_steps_equal_einsum(question: Question) -> None:
    """The steps give the product of all tables summed onto what is kept."""
    sizes, tables, keep = question
    contraction = Contraction(sizes, tables)
    given_tables = arrays_of(contraction)
    steps = contraction.join(range(len(tables)), keep)
    result = contraction.axes[steps[-1].result]
    mentioned = {axis for table in tables for axis in table}
    assert set(result) == {axis for axis in keep & mentioned if sizes[axis] > 1}
    np.testing.assert_allclose(
        run(contraction, steps, given_tables),
        all_at_once(contraction, given_tables, result),
        rtol=1e-12,
    )


@examples(100)
@given(questions())
def test_every_table_is_used_once(question: Question) -> None:
    """Each table but the last result is an operand exactly once, and after it was made."""
    sizes, tables, keep = question
    contraction = Contraction(sizes, tables)
    steps = contraction.join(range(len(tables)), keep)
    operands = [t for step in steps for t in (step.left, step.right) if t != ONE]
    assert sorted(operands) == list(range(steps[-1].result))
    assert [step.result for step in steps] == list(range(len(tables), len(tables) + len(steps)))
    assert all(max(step.left, step.right) < step.result for step in steps)


@given(questions())
def test_no_intermediate_table_leaves_the_tables(question: Question) -> None:
    """A step's result has no axis that neither operand has, and none of length one."""
    sizes, tables, keep = question
    contraction = Contraction(sizes, tables)
    for left, right, result in contraction.join(range(len(tables)), keep):
        scope = {*contraction.axes[left], *(() if right == ONE else contraction.axes[right])}
        assert scope >= set(contraction.axes[result])
        assert len(set(contraction.axes[result])) == len(contraction.axes[result])
        assert all(sizes[axis] > 1 for axis in contraction.axes[result])


@given(questions())
def test_covering_steps(question: Question) -> None:
    """A step covers if its left table has every axis; its multiplications are the union's cells."""
    sizes, tables, keep = question
    contraction = Contraction(sizes, tables)
    for step in contraction.join(range(len(tables)), keep):
        left = set(contraction.axes[step.left])
        union = left | set(() if step.right == ONE else contraction.axes[step.right])
        assert contraction.covers(step) == (left == union)
        assert contraction.union_cells(step) == math.prod(sizes[axis] for axis in union)


def leaves(path: Path) -> list[int]:
    """Give the tables of a path, from left to right."""
    return [path] if isinstance(path, int) else leaves(path[0]) + leaves(path[1])


def price(path: Path, scopes: Sequence[Scope], keep: Scope, sizes: Sequence[int]) -> int:
    """Give the multiplications plus the cells of the results of a path, from their definition.

    An axis that one table alone has is summed out of it first; that costs every path the same
    and is left out here.
    """

    def cells(scope: Scope) -> int:
        return math.prod(sizes[axis] for axis in scope)

    def scope_of(part: Path) -> Scope:
        inside = set(leaves(part))
        outside = (scope for table, scope in enumerate(scopes) if table not in inside)
        members = frozenset[int]().union(*(scopes[table] for table in inside))
        return members & keep.union(*outside)

    def walk(part: Path) -> int:
        if isinstance(part, int):
            return 0
        here = cells(scope_of(part[0]) | scope_of(part[1])) + cells(scope_of(part))
        return here + walk(part[0]) + walk(part[1])

    return walk(path)


def left_to_right(n_tables: int) -> Path:
    """Give the path that takes the tables in the order given."""
    path: Path = 0
    for table in range(1, n_tables):
        path = (path, table)
    return path


def all_paths(tables: Sequence[int]) -> Iterator[Path]:
    """Give every way to pair the tables."""
    if len(tables) == 1:
        yield tables[0]
    first, rest = tables[0], tables[1:]
    for chosen in range(1 << len(rest)):
        with_first = [first, *(t for i, t in enumerate(rest) if chosen >> i & 1)]
        others = [t for i, t in enumerate(rest) if not chosen >> i & 1]
        if others:
            for left in all_paths(with_first):
                yield from ((left, right) for right in all_paths(others))


def found_path(question: Question) -> tuple[Path, list[Scope]]:
    """Give the path chosen for the tables, and their scopes."""
    sizes, tables, keep = question
    scopes = [frozenset(table) for table in tables]

    return find_best_path(dict(enumerate(scopes)), keep, sizes), scopes


@examples(200)
@given(questions(max_tables=6))
def test_no_worse_than_left_to_right(question: Question) -> None:
    """A path of up to six tables costs no more than taking them in the order given."""
    sizes, _, keep = question
    path, scopes = found_path(question)
    assert sorted(leaves(path)) == list(range(len(scopes)))
    worst = price(left_to_right(len(scopes)), scopes, keep, sizes)
    assert price(path, scopes, keep, sizes) <= worst


@examples(150)
@given(questions(max_tables=5))
def test_few_tables_are_solved(question: Question) -> None:
    """A path of up to five tables is the cheapest of all paths."""
    sizes, _, keep = question
    path, scopes = found_path(question)
    best = min(price(other, scopes, keep, sizes) for other in all_paths(range(len(scopes))))
    assert price(path, scopes, keep, sizes) == best


@given(questions())
def test_parts_of_a_path_know_their_attributes(question: Question) -> None:
    """Every part of a path is annotated with the attributes of all of its tables."""
    path, scopes = found_path(question)
    waiting = [(path, annotate(path, dict(enumerate(scopes))))]
    for part, (table, scope, halves) in waiting:  # grows while it is walked
        assert scope == frozenset[int]().union(*(scopes[leaf] for leaf in leaves(part)))
        if isinstance(part, int) or halves is None:
            assert (part, halves) == (table, None)
        else:
            waiting += zip(part, halves, strict=True)


def test_cliques_of_a_thousand_attributes_have_a_path() -> None:
    """Three tables that share a thousand attributes are paired like any others."""
    scopes = dict(enumerate(frozenset(range(first, first + 1000)) for first in range(3)))
    assert sorted(leaves(find_best_path(scopes, frozenset(), [2] * 1002))) == [0, 1, 2]


def test_all_paths_are_counted() -> None:
    """The enumeration used above has the known number of pairings of n tables: (2n - 3)!!."""
    assert [len(set(all_paths(range(n)))) for n in range(1, 7)] == [1, 1, 3, 15, 105, 945]


def test_many_tables_are_paired() -> None:
    """All pairs of seven attributes are contracted far below the cost of the full table."""
    pairs = [frozenset({a, b}) for a in range(7) for b in range(a)]
    sizes = [4] * 7
    path = find_best_path(dict(enumerate(pairs)), frozenset(), sizes)
    assert sorted(leaves(path)) == list(range(len(pairs)))
    left = price(left_to_right(len(pairs)), pairs, frozenset(), sizes)
    assert price(path, pairs, frozenset(), sizes) <= left


def test_equal_scopes_are_paired_in_a_balanced_way() -> None:
    """Tables on one scope are multiplied along a path of logarithmic depth."""

    def depth(path: Path) -> int:
        return 0 if isinstance(path, int) else 1 + max(depth(path[0]), depth(path[1]))

    path = find_best_path(dict.fromkeys(range(1000), frozenset({0})), frozenset(), [3])
    assert sorted(leaves(path)) == list(range(1000))
    assert depth(path) <= 10


def reorders(plan: Plan) -> list[Step]:
    """Give the steps that only put a table's axes into another order."""
    axes = plan.contraction.axes
    steps = [step for node in plan.nodes for step in node.steps if step.right == ONE]
    return [
        step
        for step in steps
        if sorted(axes[step.left]) == sorted(axes[step.result]) and axes[step.left]
    ]


@pytest.mark.parametrize("problem", ONCE_FAILED[:2], ids=str)
def test_the_once_failed_cycle_needs_a_copy(problem: Problem) -> None:
    """The problem kept for the sake of reordered copies really has one."""
    turned = reorders(plan_of(problem.sizes, problem.potentials))
    assert any(turned)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_plans_share_no_table(problem: Problem) -> None:
    """In a whole plan, every table but the roots' results is an operand exactly once."""
    plan = plan_of(problem.sizes, problem.potentials)
    steps = [step for node in plan.nodes for step in node.steps]
    operands = [t for step in steps for t in (step.left, step.right) if t != ONE]
    roots = {node.steps[-1].result for node in plan.nodes if node.parent is None}
    everything = set(range(len(plan.contraction.axes)))
    assert len(operands) == len(set(operands))
    assert set(operands) == everything - roots


def test_the_problems_hold_the_hard_case() -> None:
    """Matrix-like products, where neither table covers the other, do occur in the problems."""
    plans = [plan_of(problem.sizes, problem.potentials) for problem in PROBLEMS]
    covers = [p.contraction.covers(s) for p in plans for n in p.nodes for s in n.steps]
    assert {True, False} == set(covers)
