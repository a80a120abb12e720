"""The score of groups of marginals: its value by hand, its bound, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from juncture.errors import InvalidInput
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.score import GroupError, Setting
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor

DOMAIN = Domain({"a": 2, "b": 3})
ANSWERS: dict[Clique, list[float]] = {("a",): [4.0, 6.0], ("b",): [1.0, 2.0, 7.0]}
WEIGHTS: dict[Clique, float] = {("a",): 3.0, ("b",): 1.0}


def evaluate(score: GroupError, neighbours: Neighbours, *counts: list[float]) -> np.ndarray:
    """The scores for exact counts of `a` and of `b`."""
    tables = [Factor(DOMAIN.project((n,)), c) for n, c in zip(DOMAIN, counts, strict=True)]
    return score.bind(Setting(DOMAIN, neighbours, None)).evaluate(tables)


def test_weighted_distances_less_the_penalty() -> None:
    """Three quarters of the distance of `a`, one quarter of that of `b`."""
    groups: list[list[Clique]] = [[], [("b",)], [("a",), ("b",)]]
    score = GroupError(ANSWERS, groups, [0.0, 0.5, 1.0], weights=WEIGHTS)
    found = evaluate(score, Neighbours.ADD_OR_REMOVE, [7.0, 5.0], [1.0, 6.0, 5.0])
    assert found == pytest.approx([0.0, 0.25 * 6.0 - 0.5, 0.75 * 4.0 + 0.25 * 6.0 - 1.0])


@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS, ids=str)
def test_the_bound_is_met_by_all_cliques_and_not_exceeded(neighbours: Neighbours) -> None:
    """A record that brings both tables nearer at once; half the bound would be too little."""
    both: list[Clique] = [("a",), ("b",)]
    score = GroupError(ANSWERS, [[], both], [0.0, 0.0], weights=WEIGHTS)
    before = evaluate(score, neighbours, [9.0, 1.0], [9.0, 1.0, 0.0])
    last = [8.0, 2.0], [8.0, 1.0, 1.0]
    if neighbours is Neighbours.ADD_OR_REMOVE:
        last = [8.0, 1.0], [8.0, 1.0, 0.0]
    moved = float(np.abs(evaluate(score, neighbours, *last) - before).max())
    stated = score.bind(Setting(DOMAIN, neighbours, None)).sensitivity
    assert moved <= stated
    assert moved == pytest.approx(stated, rel=1e-4)


def test_what_is_refused() -> None:
    """Cliques without an answer, and groups without a penalty."""
    with pytest.raises(InvalidInput, match="groups"):
        GroupError(ANSWERS, [[("a", "b")]], [0.0])
    with pytest.raises(InvalidInput, match="penalty for each"):
        GroupError(ANSWERS, [[], [("a",)]], [0.0])
    with pytest.raises(InvalidInput, match="weights"):
        GroupError(ANSWERS, [[("a",)]], [0.0], weights={("a",): 0.0, ("b",): 1.0})
