"""The lower bound of a plan's memory: never above a plan, and soon known."""

from __future__ import annotations

import math
import tracemalloc
from itertools import combinations

import pytest
from hypothesis import given

import strategies
from graphs import Scope
from juncture.engine.elimination import build_graph
from juncture.engine.lower_bound import find_tight_core
from juncture.engine.plan import Plan
from juncture.errors import ModelTooLarge
from juncture.tables.domain import Domain
from strategies import examples

Drawn = tuple[list[int], list[Scope]]


@examples(300)
@given(drawn=strategies.scopes(max_vertices=9))
def test_no_plan_is_smaller(drawn: Drawn) -> None:
    """Every plan stores at least the cells of the bound, at sixteen bytes each."""
    sizes, cliques = drawn
    cliques = [*cliques, *(frozenset({vertex}) for vertex in range(len(sizes)))]
    domain = Domain({f"x{vertex}": size for vertex, size in enumerate(sizes)})
    core = find_tight_core(build_graph(range(len(sizes)), cliques), sizes)
    plan = Plan.build(domain, [[f"x{vertex}" for vertex in clique] for clique in cliques])
    assert math.exp(core.log_cells) * 16 <= plan.size_bytes * (1.0 + 1e-12)


def test_the_bound_of_a_complete_graph_and_its_tail() -> None:
    """Of five attributes tied in pairs and a chain hanging on them, the five give the bound."""
    sizes = [2, 3, 4, 5, 6, 7, 7]
    pairs = [frozenset(pair) for pair in combinations(range(5), 2)]
    chain = [frozenset({4, 5}), frozenset({5, 6})]
    core = find_tight_core(build_graph(range(7), pairs + chain), sizes)
    assert core.vertices == (0, 1, 2, 3, 4)
    assert math.exp(1.5 * core.log_cells) == pytest.approx(math.factorial(6))


@pytest.mark.parametrize("n_missing", [0, 40])
def test_what_cannot_fit_is_refused_without_planning(n_missing: int) -> None:
    """Nearly all pairs of 86 attributes are refused with little memory, in plain words."""
    domain = Domain({f"x{i}": 2 + i % 9 for i in range(86)})
    cliques = list(combinations(domain, 2))[n_missing:]
    tracemalloc.start()
    with pytest.raises(ModelTooLarge, match=r"at least .*e\d+ bytes, because \d\d attributes"):
        Plan.build(domain, cliques)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


def test_one_clique_too_many_is_refused_without_planning() -> None:
    """A plan that must not grow is not planned anew: the bound of the larger graph refuses it."""
    domain = Domain({f"x{i}": 2 for i in range(300)})
    plan = Plan.build(domain, [(f"x{i}", f"x{i + 1}") for i in range(299)])
    with pytest.raises(ModelTooLarge, match="because 60 attributes"):
        plan.extend([f"x{i}" for i in range(60)], memory_limit=1_000_000)
