"""Workloads: which tasks they have, and what their weights are."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from juncture.errors import InvalidInput
from juncture.tables.domain import Domain
from juncture.tables.queries.blocks import Identity, Prefix
from juncture.tables.workload import Workload, workload_error


def test_the_papers_workload() -> None:
    """The first triples, prefixes where sizes are 100 or 101, and the number of queries."""
    domain = Domain({"p": 100, "q": 3, "r": 101, "s": 4, "t": 5, "u": 2, "v": 2})
    workload = Workload.paper_triples(domain, 10_000)
    assert len(workload.tasks) == 15
    assert workload.cliques == Workload.paper_triples(domain, 10_000).cliques
    for task in workload.tasks:
        for name, each in zip(task.clique, task.blocks, strict=True):
            assert isinstance(each, Prefix if name in ("p", "r") else Identity)
    with pytest.raises(InvalidInput, match="sets of 3 attributes that are small enough"):
        Workload.paper_triples(Domain({"a": 2, "b": 2, "c": 2}), 100)


DOMAIN = Domain({"big": 200, "wide": 90, "small": 3, "tiny": 2})


def test_sets_that_are_too_large_leave_what_lies_below_them() -> None:
    """Every subset of a left-out set is asked for, unless it is too large or in another set."""
    for k in (2, 3, 4):
        for max_cells in (1, 10, 300, 1000, 20_000, 10**9):
            cliques = Workload.all_marginals(DOMAIN, k, max_cells=max_cells).cliques
            asked = {frozenset(clique) for clique in cliques}
            assert len(asked) == len(cliques)
            assert all(len(c) == 1 or DOMAIN.size_of(c) <= max_cells for c in cliques)
            for size in range(1, k + 1):
                for some in combinations(DOMAIN, size):
                    small = size == 1 or DOMAIN.size_of(some) <= max_cells
                    assert small == any(frozenset(some) <= each for each in asked)
            assert not any(one < other for one in asked for other in asked)
    plain = Workload.all_marginals(DOMAIN, 2)
    assert Workload.all_marginals(DOMAIN, 2, max_cells=10**9).cliques == plain.cliques
    with pytest.raises(InvalidInput, match="max_cells"):
        Workload.all_marginals(DOMAIN, 2, max_cells=0)


def test_a_target_with_every_two_others() -> None:
    """All triples that hold it; of those too large, their pairs."""
    triples = Workload.with_target(DOMAIN, "small")
    assert set(triples.cliques) == {
        ("big", "wide", "small"), ("big", "small", "tiny"), ("wide", "small", "tiny"),
    }  # fmt: skip
    few = Workload.with_target(DOMAIN, "small", max_cells=1200)
    pairs = Workload.with_target(DOMAIN, "small", 2)
    assert set(pairs.cliques) == {("big", "small"), ("wide", "small"), ("small", "tiny")}
    assert set(few.cliques) == {("big", "small", "tiny"), ("wide", "small", "tiny")}
    assert Workload.with_target(Domain({"x": 2}), "x").cliques == (("x",),)


def test_weights_count_in_the_error_and_are_checked() -> None:
    """A weighted mean; unknown columns and useless numbers are refused."""
    workload = Workload.all_marginals(Domain({"a": 2, "b": 2}), 1).weigh({("b",): 3.0})
    truth = [np.array([5.0, 5.0]), np.array([5.0, 5.0])]
    answers = [np.array([6.0, 4.0]), np.array([5.0, 5.0])]
    assert workload_error(truth, answers, workload.weights) == pytest.approx(0.1 / 4.0)
    assert workload.is_weighted
    assert workload.clique_weights == {("a",): 1.0, ("b",): 3.0}
    assert not workload.weigh({("a",): 3.0}).is_weighted
    for weight in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="`weights` must be positive"):
            workload.weigh({("a",): weight})
    with pytest.raises(InvalidInput, match="which none has together"):
        workload.weigh({("a", "b"): 2.0})


@pytest.mark.parametrize("k", [0, -1])
def test_sets_of_no_columns_are_refused(k: int) -> None:
    """At least one column, or the error says how many are usual."""
    with pytest.raises(InvalidInput, match="`k` must be at least 1"):
        Workload.all_marginals(DOMAIN, k)
    with pytest.raises(InvalidInput, match="`k` must be at least 1"):
        Workload.with_target(DOMAIN, "small", k)
