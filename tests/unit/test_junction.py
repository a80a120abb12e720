"""Tests of junction trees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs
import strategies
from graphs import Scope
from juncture.engine.junction import EMPTY_CLIQUE_ALONE, ROOT, JunctionTree, build_junction_tree
from juncture.engine.order_search import Bucket
from strategies import examples

Drawn = tuple[list[int], list[Scope]]


def buckets_in(order: list[int], cliques: list[Scope]) -> list[Bucket]:
    """Give the buckets of any order, eliminated by the book."""
    near = graphs.adjacency(order, cliques)
    return [Bucket(*pair) for pair in graphs.eliminated(near, order)]


@st.composite
def trees(draw: st.DrawFn) -> tuple[JunctionTree, list[Bucket], list[int], list[Scope]]:
    """Draw cliques and any elimination order, good or bad, and build its tree."""
    sizes, cliques = draw(strategies.scopes(max_vertices=8))
    buckets = buckets_in(draw(st.permutations(range(len(sizes)))), cliques)
    return build_junction_tree(buckets, sizes), buckets, sizes, cliques


Built = tuple[JunctionTree, list[Bucket], list[int], list[Scope]]


@examples(100)
@given(trees())
def test_nodes_are_the_maximal_cliques(built: Built) -> None:
    """The nodes are exactly the buckets that no other bucket contains, each once."""
    tree, buckets, _, _ = built
    expected = graphs.maximal(bucket.neighbours | {bucket.vertex} for bucket in buckets)
    assert sorted(map(sorted, expected)) == sorted(sorted(node.clique) for node in tree.nodes)


@examples(100)
@given(trees())
def test_running_intersection(built: Built) -> None:
    """The nodes that hold a vertex are connected: all but one of them pass it to their parent."""
    tree, _, sizes, _ = built
    for vertex in range(len(sizes)):
        holders = [node for node in tree.nodes if vertex in node.clique]
        tops = [node for node in holders if vertex not in node.separator]
        assert len(tops) == 1


@examples(100)
@given(trees())
def test_children_come_before_parents(built: Built) -> None:
    """Every child stands before its parent, and shares its separator with it."""
    tree, _, _, _ = built
    for place, node in enumerate(tree.nodes):
        if node.parent == ROOT:
            assert node.separator == frozenset()
            continue
        assert place < node.parent < len(tree.nodes)
        assert node.separator == node.clique & tree.nodes[node.parent].clique
        assert node.separator


@given(trees())
def test_one_root_per_component(built: Built) -> None:
    """The tree has as many parts as the graph has connected components."""
    tree, _, sizes, cliques = built
    roots = sum(node.parent == ROOT for node in tree.nodes)
    assert roots == graphs.n_components(graphs.adjacency(range(len(sizes)), cliques))


@given(trees())
def test_homes_hold_their_buckets(built: Built) -> None:
    """The home of a vertex holds its bucket, hence every clique whose first vertex it is."""
    tree, buckets, _, cliques = built
    for vertex, neighbours in buckets:
        assert neighbours | {vertex} <= tree.nodes[tree.home[vertex]].clique
    for clique in cliques:
        assert any(clique <= node.clique for node in tree.nodes)


@given(trees())
def test_roots_are_central(built: Built) -> None:
    """No branch below a root holds more than half of its part's cells."""
    tree, _, sizes, _ = built
    below = [graphs.cells(node.clique, sizes) for node in tree.nodes]
    for place, node in enumerate(tree.nodes):
        if node.parent != ROOT:
            below[node.parent] += below[place]
    for place, node in enumerate(tree.nodes):
        if node.parent != ROOT and tree.nodes[node.parent].parent == ROOT:
            assert 2 * below[place] <= below[node.parent]


def test_a_long_chain_does_not_recurse() -> None:
    """A chain of thousands of cliques is built and rooted in its middle."""
    n = 5000
    buckets = [Bucket(i, frozenset({i + 1})) for i in range(n - 1)] + [Bucket(n - 1, frozenset())]
    tree = build_junction_tree(buckets, [2] * n)
    root = next(node for node in tree.nodes if node.parent == ROOT)
    assert len(tree.nodes) == n - 1
    assert min(root.clique) == pytest.approx(n / 2, abs=2)


def test_no_buckets() -> None:
    """Without buckets there are no nodes; the empty clique alone is a tree of one node."""
    assert build_junction_tree([], []).nodes == ()
    assert EMPTY_CLIQUE_ALONE.nodes == ((frozenset(), frozenset(), ROOT),)
