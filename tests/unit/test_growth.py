"""Tests of how much a junction tree grows by one more clique."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import graphs
import strategies
from graphs import Scope
from juncture.engine.elimination import build_graph, eliminate
from juncture.engine.growth import IncrementalElimination
from juncture.engine.order_search import Bucket
from juncture.engine.plan import Plan
from juncture.tables.domain import Domain
from strategies import examples

Asked = tuple[list[int], list[Scope], list[Bucket], Scope]


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    """Draw cliques, an elimination order of them (found or any), and one more clique."""
    sizes, cliques = draw(strategies.scopes(max_vertices=8))
    n = len(sizes)
    if draw(st.booleans()):
        buckets = eliminate(build_graph(range(n), cliques), sizes)
    else:
        near = graphs.adjacency(range(n), cliques)
        order = draw(st.permutations(range(n)))
        buckets = [Bucket(*pair) for pair in graphs.eliminated(near, order)]
    return sizes, cliques, buckets, draw(st.frozensets(st.integers(0, n - 1), max_size=4))


def growth_of(question: Asked) -> IncrementalElimination:
    """Give the growth of the drawn cliques."""
    sizes, cliques, buckets, _ = question
    return IncrementalElimination(buckets, [sorted(clique) for clique in cliques], sizes)


def used_by(cliques: list[Scope]) -> Scope:
    """Give the vertices that some clique mentions."""
    return frozenset[int]().union(*cliques)


def tree_cells(buckets: list[Bucket], used: Scope, sizes: list[int]) -> int:
    """Give the cells of the tree of the buckets whose vertices are used."""
    return graphs.tree_cells([b for b in buckets if b.vertex in used], sizes)


@examples(150)
@given(asked())
def test_cells_are_those_of_the_tree(question: Asked) -> None:
    """Before anything is added, `cells` is the size of the junction tree."""
    sizes, cliques, buckets, _ = question
    assert growth_of(question).cells == tree_cells(buckets, used_by(cliques), sizes)


@examples(300)
@given(asked())
def test_buckets_with_are_an_elimination(question: Asked) -> None:
    """The buckets with a clique added are those of eliminating the larger graph in their order."""
    sizes, cliques, _, clique = question
    buckets = growth_of(question).buckets_with(clique)
    order = [bucket.vertex for bucket in buckets]
    near = graphs.adjacency(range(len(sizes)), [*cliques, clique])
    assert sorted(order) == list(range(len(sizes)))
    assert buckets == graphs.eliminated(near, order)


@examples(300)
@given(asked())
def test_cells_with_is_the_size_of_that_tree(question: Asked) -> None:
    """What `cells_with` foretells is the size of the tree of `buckets_with`, exactly."""
    sizes, cliques, _, clique = question
    growth = growth_of(question)
    expected = tree_cells(growth.buckets_with(clique), used_by([*cliques, clique]), sizes)
    assert growth.cells_with(clique) == expected
    assert growth.which_fit([clique, clique], expected) == [True, True]
    assert growth.which_fit([clique, clique], expected - 1) == [False, False]


@examples(150)
@given(asked())
def test_no_worse_than_the_order_kept(question: Asked) -> None:
    """Adding the clique and keeping the order gives a tree that is no smaller."""
    sizes, cliques, buckets, clique = question
    used = used_by(cliques)
    # Vertices that were not mentioned before may be eliminated first at no cost.
    order = [b.vertex for b in buckets if b.vertex not in used]
    order += [b.vertex for b in buckets if b.vertex in used]
    near = graphs.adjacency(range(len(sizes)), [*cliques, clique])
    kept = [Bucket(*pair) for pair in graphs.eliminated(near, order)]
    bound = tree_cells(kept, used | clique, sizes)
    assert growth_of(question).cells_with(clique) <= bound


@examples(150)
@given(asked())
def test_asking_changes_nothing(question: Asked) -> None:
    """The same question has the same answer however often it is asked."""
    clique = question[3]
    growth = growth_of(question)
    first = growth.cells, growth.cells_with(clique), growth.buckets_with(clique)
    growth.cells_with(frozenset({0}))
    assert (growth.cells, growth.cells_with(clique), growth.buckets_with(clique)) == first


@examples(150)
@given(asked())
def test_a_clique_inside_the_tree_adds_nothing(question: Asked) -> None:
    """A clique that lies inside a used bucket leaves the tree as large as it is."""
    _, cliques, buckets, _ = question
    growth = growth_of(question)
    for vertex, neighbours in buckets:
        if vertex in used_by(cliques):
            assert growth.cells_with(neighbours | {vertex}) == growth.cells


@pytest.mark.parametrize("seed", range(4))
def test_wide_trees_grow_as_small_ones(seed: int) -> None:
    """Rows of bits of several words, regions too large to search, and answers by threads."""
    rng = np.random.default_rng(seed)
    n = 150
    sizes = rng.integers(2, 6, n).tolist()
    # Near pairs along a line, and a few long ones: most that is added reaches far.
    pairs = [(i, i + int(rng.integers(1, 4))) for i in range(n - 4)]
    pairs += rng.integers(0, n // 2, (20, 2)).tolist()
    cliques = [frozenset(pair) for pair in pairs]
    buckets = eliminate(build_graph(range(n), cliques), sizes)
    growth = IncrementalElimination(buckets, [sorted(clique) for clique in cliques], sizes)
    asked = [frozenset(pair) for pair in rng.integers(0, n, (600, 2)).tolist()]
    cells = [growth.cells_with(clique) for clique in asked]
    limit = int(np.median(cells))
    assert growth.which_fit(asked, limit) == [each <= limit for each in cells]
    for clique, expected in [*zip(asked, cells, strict=True)][:40]:
        found = growth.buckets_with(clique)
        near = graphs.adjacency(range(n), [*cliques, clique])
        assert found == graphs.eliminated(near, [bucket.vertex for bucket in found])
        assert tree_cells(found, used_by([*cliques, clique]), sizes) == expected


@examples(150)
@given(strategies.models((strategies.ORDINARY,)), st.data())
def test_extend_is_never_larger(model: strategies.Model, data: st.DataObject) -> None:
    """An extended plan has no more cells than `cells_with` foretold, and holds the clique."""
    domain = Domain(model.sizes)
    plan = Plan.build(domain, model.cliques)
    clique = data.draw(strategies.clique(domain.attributes, max_size=4))
    assume(clique or any(plan.cliques))
    extended = plan.extend(clique)
    assert extended.cells <= plan.cells_with(clique)
    assert extended.cliques == tuple(dict.fromkeys((*plan.cliques, domain.canonical(clique))))


CHAIN = Plan.build(Domain({"a": 2, "b": 3, "c": 4, "d": 5}), [("a", "b"), ("b", "c"), ("c", "d")])


@pytest.mark.parametrize(
    ("clique", "cells"),
    [
        (("a", "b"), 6 + 12 + 20),
        (("a",), 6 + 12 + 20),
        ((), 6 + 12 + 20),
        (("a", "c"), 24 + 20),
        (("b", "d"), 6 + 60),
        (("d", "a"), min(24 + 40, 30 + 60)),
        (("a", "b", "c", "d"), 120),
    ],
)
def test_a_chain_by_hand(clique: tuple[str, ...], cells: int) -> None:
    """Closing a chain of four costs what the triangles drawn by hand cost."""
    assert CHAIN.cells_with(clique) == cells
    assert CHAIN.extend(clique).cells == cells


def test_any_iterable_is_a_clique() -> None:
    """A clique given as a generator is extended by as well as one given as a tuple."""
    expected = CHAIN.extend(("d", "a"))
    extended = CHAIN.extend(name for name in ("d", "a"))
    assert extended.nodes == expected.nodes
    assert CHAIN.cells_with(iter(("d", "a"))) == expected.cells


def test_extending_by_what_is_there() -> None:
    """A clique that the plan has already, in whatever order, leaves its cliques."""
    assert CHAIN.extend(("b", "a")).cliques == CHAIN.cliques


def test_extending_an_empty_plan() -> None:
    """The first clique of a plan costs its own cells."""
    plan = Plan.build(Domain({"a": 2, "b": 3}), [])
    assert (plan.cells, plan.cells_with(("b",)), plan.cells_with(("a", "b"))) == (0, 3, 6)


@pytest.mark.parametrize("cliques", [[], [()]])
def test_the_empty_clique_alone(cliques: list[tuple[str, ...]]) -> None:
    """The empty clique is a tree of one cell, foretold and built alike."""
    plan = Plan.build(Domain({"a": 2}), cliques)
    assert plan.extend(()).cells == 1
    assert plan.cells_with(()) == 1
