"""Tests of elimination orders against elimination by the book and the best of all orders."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import assume, given

import graphs
import strategies
from graphs import Scope
from juncture.engine.elimination import Bucket, build_graph, eliminate
from strategies import examples

Drawn = tuple[list[int], list[Scope]]


def buckets_of(sizes: Sequence[int], cliques: Sequence[Scope], restarts: int = 12) -> list[Bucket]:
    """Give the buckets that the search finds."""
    graph = build_graph(range(len(sizes)), cliques)
    return eliminate(graph, sizes, restarts=restarts)


def cycle(length: int) -> list[Scope]:
    """Give the edges of a cycle."""
    return [frozenset({i, (i + 1) % length}) for i in range(length)]


def grid(width: int, height: int) -> list[Scope]:
    """Give the edges of a grid, numbered row by row."""
    across = [(y * width + x, y * width + x + 1) for y in range(height) for x in range(width - 1)]
    down = [(y * width + x, (y + 1) * width + x) for y in range(height - 1) for x in range(width)]
    return [frozenset(edge) for edge in across + down]


@given(strategies.scopes(max_vertices=9))
def test_closed_graph(drawn: Drawn) -> None:
    """Two vertices are adjacent if and only if a clique holds both; each is its own neighbour."""
    sizes, cliques = drawn
    near = graphs.adjacency(range(len(sizes)), cliques)
    expected = {vertex: others | {vertex} for vertex, others in near.items()}
    assert build_graph(range(len(sizes)), cliques) == expected


@pytest.mark.parametrize("restarts", [0, 12])
@examples(100)
@given(drawn=strategies.scopes(max_vertices=9))
def test_buckets_are_an_elimination(drawn: Drawn, restarts: int) -> None:
    """The buckets are what eliminating their vertices one by one leaves as neighbours."""
    sizes, cliques = drawn
    buckets = buckets_of(sizes, cliques, restarts)
    order = [bucket.vertex for bucket in buckets]
    near = graphs.adjacency(range(len(sizes)), cliques)
    assert sorted(order) == list(range(len(sizes)))
    assert buckets == graphs.eliminated(near, order)


@given(strategies.scopes(max_vertices=9))
def test_the_filled_graph_is_chordal(drawn: Drawn) -> None:
    """With the edges of all buckets added, the order is a perfect elimination order."""
    sizes, cliques = drawn
    buckets = buckets_of(sizes, cliques)
    filled = graphs.adjacency(range(len(sizes)), [b.neighbours | {b.vertex} for b in buckets])
    assert graphs.is_chordal(filled)
    assert buckets == graphs.eliminated(filled, [bucket.vertex for bucket in buckets])


@examples(150)
@given(strategies.scopes(max_vertices=8))
def test_chordal_graphs_are_not_filled(drawn: Drawn) -> None:
    """On a chordal graph no edge is added: every bucket is a clique of the graph."""
    sizes, cliques = drawn
    near = graphs.adjacency(range(len(sizes)), cliques)
    assume(graphs.is_chordal(near))
    for vertex, neighbours in buckets_of(sizes, cliques, restarts=0):
        assert all(neighbours - {other} <= near[other] for other in neighbours)
        assert neighbours <= near[vertex]


@examples(60)
@given(strategies.scopes(max_vertices=6, min_size=2))
def test_chordal_graphs_are_solved(drawn: Drawn) -> None:
    """On a chordal graph of at least two values each, the tree has the fewest cells of all."""
    sizes, cliques = drawn
    near = graphs.adjacency(range(len(sizes)), cliques)
    assume(graphs.is_chordal(near))
    found = graphs.tree_cells(buckets_of(sizes, cliques, restarts=0), sizes)
    assert found == graphs.least_tree_cells(near, sizes)


@examples(60)
@given(strategies.scopes(max_vertices=6, min_size=2))
def test_other_graphs_are_nearly_solved(drawn: Drawn) -> None:
    """On any graph of six vertices the tree found has at most 1.25 times the fewest cells."""
    sizes, cliques = drawn
    near = graphs.adjacency(range(len(sizes)), cliques)
    found = graphs.tree_cells(buckets_of(sizes, cliques), sizes)
    assert found <= 1.25 * graphs.least_tree_cells(near, sizes)


@pytest.mark.parametrize("length", [4, 5, 6, 7])
def test_cycles_are_solved(length: int) -> None:
    """A cycle of equal sizes needs its length minus two triangles, and no more."""
    found = graphs.tree_cells(buckets_of([3] * length, cycle(length)), [3] * length)
    assert found == (length - 2) * 27


@pytest.mark.parametrize("width", [2, 3, 4, 5])
def test_grids_have_narrow_trees(width: int) -> None:
    """The largest clique of a square grid has width plus one vertices: its treewidth."""
    buckets = buckets_of([2] * width**2, grid(width, width), restarts=40)
    assert max(len(bucket.neighbours) for bucket in buckets) == width


@pytest.mark.parametrize("huge", range(4))
def test_sizes_are_heeded(huge: int) -> None:
    """A cycle through one huge attribute is cut so that one triangle alone holds it."""
    sizes = [2, 2, 2, 2]
    sizes[huge] = 100
    found = graphs.tree_cells(buckets_of(sizes, cycle(4)), sizes)
    assert found == 100 * 2 * 2 + 2 * 2 * 2


def test_more_restarts_are_never_worse() -> None:
    """The order found with restarts costs no more than the order found without."""
    sizes = [2, 5, 3, 4, 2, 5, 3, 4, 2, 5, 3, 4, 2, 5, 3, 4]

    def cost(restarts: int) -> int:
        buckets = buckets_of(sizes, grid(4, 4), restarts)
        return sum(graphs.cells({b.vertex, *b.neighbours}, sizes) for b in buckets)

    costs = [cost(restarts) for restarts in (0, 3, 12, 48)]
    assert costs == sorted(costs, reverse=True)


def test_nothing_to_eliminate() -> None:
    """The empty graph has no buckets, and isolated vertices have empty ones."""
    assert eliminate({}, [], restarts=3) == []
    assert set(buckets_of([2, 3], [])) == {(0, frozenset()), (1, frozenset())}


@pytest.mark.parametrize(
    "edges",
    [
        [frozenset({i, i + 1}) for i in range(799)],
        [frozenset({i, (i - 1) // 2}) for i in range(1, 800)],
        [frozenset({4 * i + a, 4 * i + (a + 1) % 4}) for i in range(200) for a in range(4)],
    ],
    ids=["chain", "binary tree", "200 cycles"],
)
def test_eight_hundred_vertices_are_all_eliminated(edges: list[Scope]) -> None:
    """Every vertex of a large graph gets one bucket."""
    buckets = buckets_of([2] * 800, edges, restarts=2)
    assert sorted(bucket.vertex for bucket in buckets) == list(range(800))
