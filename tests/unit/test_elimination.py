"""Tests of elimination orders against elimination by the book and the best of all orders."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import assume, given

import graphs
import strategies
from graphs import Scope
from juncture.engine import elimination
from juncture.engine.elimination import build_graph, eliminate
from juncture.engine.order_search import NO_REPETITION, USUAL_EFFORT, Bucket, Effort, search_order
from strategies import examples

Drawn = tuple[list[int], list[Scope]]


def buckets_of(
    sizes: Sequence[int], cliques: Sequence[Scope], effort: Effort = USUAL_EFFORT
) -> list[Bucket]:
    """Give the buckets that the search finds."""
    graph = build_graph(range(len(sizes)), cliques)
    return eliminate(graph, sizes, effort=effort)


def attempts(n: int) -> Effort:
    """So many attempts, whatever is at stake."""
    return Effort(n, 10**12, 0.0, 0)


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


@pytest.mark.parametrize("effort", [NO_REPETITION, USUAL_EFFORT], ids=["plain", "repeated"])
@examples(100)
@given(drawn=strategies.scopes(max_vertices=9))
def test_buckets_are_an_elimination(drawn: Drawn, effort: Effort) -> None:
    """The buckets are what eliminating their vertices one by one leaves as neighbours."""
    sizes, cliques = drawn
    buckets = buckets_of(sizes, cliques, effort)
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
    for vertex, neighbours in buckets_of(sizes, cliques, NO_REPETITION):
        assert all(neighbours - {other} <= near[other] for other in neighbours)
        assert neighbours <= near[vertex]


@examples(60)
@given(strategies.scopes(max_vertices=6, min_size=2))
def test_chordal_graphs_are_solved(drawn: Drawn) -> None:
    """On a chordal graph of at least two values each, the tree has the fewest cells of all."""
    sizes, cliques = drawn
    near = graphs.adjacency(range(len(sizes)), cliques)
    assume(graphs.is_chordal(near))
    found = graphs.tree_cells(buckets_of(sizes, cliques, NO_REPETITION), sizes)
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
    buckets = buckets_of([2] * width**2, grid(width, width))
    assert max(len(bucket.neighbours) for bucket in buckets) == width


@pytest.mark.parametrize("huge", range(4))
def test_sizes_are_heeded(huge: int) -> None:
    """A cycle through one huge attribute is cut so that one triangle alone holds it."""
    sizes = [2, 2, 2, 2]
    sizes[huge] = 100
    found = graphs.tree_cells(buckets_of(sizes, cycle(4)), sizes)
    assert found == 100 * 2 * 2 + 2 * 2 * 2


UNEVEN = [2, 5, 3, 4] * 4


def test_more_attempts_are_never_worse() -> None:
    """The tree found with more attempts has no more cells than the tree found with fewer."""
    costs = [
        graphs.tree_cells(buckets_of(UNEVEN, grid(4, 4), attempts(n)), UNEVEN)
        for n in (0, 3, 12, 48, 192)
    ]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize(
    ("width", "height", "most"), [(10, 30, 310_000), (20, 20, 300_000_000)], ids=["long", "square"]
)
def test_large_grids_have_small_trees(width: int, height: int, most: int) -> None:
    """Where much is at stake the search goes on until the tree is small."""
    sizes = [2] * (width * height)
    assert graphs.tree_cells(buckets_of(sizes, grid(width, height)), sizes) <= most


def work_on_grid(width: int, size: int, effort: Effort) -> tuple[int, int]:
    """Give the attempts and the work of a search on a square grid of equal sizes."""
    graph = build_graph(range(width**2), grid(width, width))
    result = search_order(graph, range(width**2), [size] * width**2, effort)
    return result.attempts, result.work


def test_the_work_follows_what_is_at_stake() -> None:
    """The same graph is searched longer when its tables are larger."""
    effort = Effort(8, 10_000, 1.0, 10**9)
    found = [work_on_grid(5, size, effort) for size in (2, 6, 10)]
    assert found == sorted(found)
    assert found[0][0] < found[1][0] < found[2][0]


def test_little_at_stake_is_searched_little() -> None:
    """A tree of few cells gets the attempts that every graph gets, and not one more."""
    assert work_on_grid(3, 2, Effort(min_attempts=20))[0] == 20


def test_the_work_is_bounded() -> None:
    """However much is at stake, the search ends with the attempt that reaches the bound."""
    _, one = work_on_grid(6, 2, NO_REPETITION)
    for bound in (50_000, 500_000):
        _, work = work_on_grid(6, 10**9, Effort(max_work=bound, min_work=0))
        assert bound <= work <= bound + one


def test_small_graphs_are_searched_little() -> None:
    """A graph of few vertices has few orders: not even the largest stake is worth many attempts."""
    assert work_on_grid(2, 10**200, USUAL_EFFORT)[0] <= 64 * 4


def test_sizes_beyond_every_float_are_searched() -> None:
    """Attributes of astronomic size leave the heuristics and their sums finite."""
    sizes = [10**400, 10**200, 10**200, 10**200, 2]
    buckets = buckets_of(sizes, cycle(5))
    assert sorted(bucket.vertex for bucket in buckets) == [0, 1, 2, 3, 4]


@examples(60)
@given(strategies.scopes(max_vertices=9))
def test_sets_and_bits_eliminate_alike(drawn: Drawn) -> None:
    """The heuristics on sets, for graphs too large for bits, give an elimination as well."""
    sizes, cliques = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "MAX_VERTICES", 0)
        buckets = buckets_of(sizes, cliques)
    near = graphs.adjacency(range(len(sizes)), cliques)
    assert buckets == graphs.eliminated(near, [bucket.vertex for bucket in buckets])
    assert graphs.tree_cells(buckets_of(sizes, cliques), sizes) <= graphs.tree_cells(buckets, sizes)


def test_nothing_to_eliminate() -> None:
    """The empty graph has no buckets, and isolated vertices have empty ones."""
    assert eliminate({}, []) == []
    assert set(buckets_of([2, 3], [])) == {(0, frozenset()), (1, frozenset())}


@pytest.mark.parametrize(
    "edges",
    [
        [frozenset({i, i + 1}) for i in range(799)],
        [frozenset({i, (i - 1) // 2}) for i in range(1, 800)],
        [frozenset({4 * i + a, 4 * i + (a + 1) % 4}) for i in range(200) for a in range(4)],
        cycle(800),
    ],
    ids=["chain", "binary tree", "200 cycles", "one cycle"],
)
def test_eight_hundred_vertices_are_all_eliminated(edges: list[Scope]) -> None:
    """Every vertex of a large graph gets one bucket."""
    buckets = buckets_of([2] * 800, edges)
    assert sorted(bucket.vertex for bucket in buckets) == list(range(800))
