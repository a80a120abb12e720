"""Scores move between neighbouring tables by no more than they say, and only ours are trusted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from juncture.errors import InvalidInput
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.dependence import Dependence
from juncture.privacy.ledger import Ledger
from juncture.privacy.price import ZCDP, Pure
from juncture.privacy.score import (
    BoundScore,
    DependenceScore,
    MarginalError,
    QueryError,
    RowError,
    Score,
    Setting,
)
from juncture.private.curator import Curator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.queries import Buckets, Identity, Kron, Prefix

DOMAIN = Domain({"a": 3, "b": 2})
RNG = np.random.default_rng(5)
ANSWERS: dict[Clique, Any] = {("a",): RNG.uniform(0, 3, 3), ("b", "a"): RNG.uniform(0, 2, (2, 3))}
SCORES: dict[str, Score[Any]] = {
    "marginals": MarginalError(ANSWERS),
    "penalised": MarginalError(ANSWERS, penalties={("a",): 0.7, ("b", "a"): 2.3}),
    "weighted": MarginalError(
        ANSWERS,
        penalties={("a",): 0.7, ("b", "a"): 2.3},
        weights={("a",): 0.37, ("b", "a"): 3.3},
    ),
    "queries": QueryError([(("a",), [0.2, 1.0, 0.0]), (("b",), [1.0, 0.0])], [1.3, 0.4]),
    "rows": RowError(
        [(("a",), Kron({"a": Prefix()})), (("a", "b"), Identity())],
        [RNG.uniform(0, 3, 3), RNG.uniform(0, 2, 6)],
    ),
    "dependences": DependenceScore([("a", ("b",)), ("b", ("a",))], Dependence.DISTANCE),
}


def tables(n: int) -> list[CodedTable]:
    """All tables of n records."""
    cells = list(np.ndindex(*DOMAIN.shape))
    return [
        CodedTable(DOMAIN, {"a": [c[0] for c in rows], "b": [c[1] for c in rows]})
        for rows in combinations_with_replacement(cells, n)
    ]


def evaluate(score: Score[Any], setting: Setting, table: CodedTable) -> tuple[np.ndarray, float]:
    """The scores of all candidates, and how far they are said to move."""
    bound: BoundScore = score.bind(setting)
    values = bound.evaluate(table.exact_counts(bound.cliques))
    assert len(values) == bound.n_candidates
    return values, bound.sensitivity


def neighbours_of(table: CodedTable, others: Sequence[CodedTable]) -> list[CodedTable]:
    """The tables that differ by one record added or replaced."""
    (own,) = table.exact_counts([("a", "b")])
    limit = 1 if others[0].exact_n_records != table.exact_n_records else 2
    return [
        other
        for other in others
        if np.abs(other.exact_counts([("a", "b")])[0].values - own.values).sum() <= limit
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS)
def test_no_neighbour_moves_a_score_further_than_stated(name: str, neighbours: Neighbours) -> None:
    """Over all tables of three records and all their neighbours; and the bound is nearly met."""
    replaced = neighbours == Neighbours.REPLACE
    if name == "dependences" and not replaced:
        pytest.skip("needs the number of records")
    setting = Setting(DOMAIN, neighbours, 3 if replaced else None)
    left, right = tables(3), tables(3 if replaced else 4)
    most, stated = 0.0, 0.0
    for table in left:
        values, stated = evaluate(SCORES[name], setting, table)
        for other in neighbours_of(table, right):
            most = max(
                most, float(np.abs(evaluate(SCORES[name], setting, other)[0] - values).max())
            )
    assert most <= stated
    assert most >= 0.3 * stated


def curator(folder: Path) -> Curator:
    """A curator of a small table with a large budget."""
    table = CodedTable(DOMAIN, {"a": [0, 0, 1, 2, 2, 2], "b": [0, 1, 1, 0, 0, 1]})
    return Curator(table, Ledger.create(folder / "ledger", Budget(epsilon=1e6)))


def test_weights_decide(tmp_path: Path) -> None:
    """A marginal that is a little wrong is chosen where its weight is large enough."""
    door = curator(tmp_path)
    wrong: dict[Clique, Any] = {("a",): [2.0, 1.0, 9.0], ("b",): [3.0, 4.0]}
    assert door.select(MarginalError(wrong), Pure(200.0)) == ("a",)
    weights: dict[Clique, float] = {("a",): 0.01, ("b",): 5.0}
    for price in (Pure(900.0), ZCDP(9000.0)):
        assert door.select(MarginalError(wrong, weights=weights), price) == ("b",)
    for bad in (0.0, -1.0, np.nan, np.inf, 1e9):
        with pytest.raises(InvalidInput, match="`weights` must be positive"):
            MarginalError(wrong, weights={("a",): bad, ("b",): 1.0})


def test_candidates_are_what_was_given(tmp_path: Path) -> None:
    """A clique, an index, a pair of query and row, an attribute with its set."""
    door = curator(tmp_path)
    exact = [[2.0, 3.0, 6.0], [2.0, 50.0, 3.0, 3.0, 0.0, 1.0]]
    rows = RowError([(("a",), Kron({"a": Prefix()})), (("a", "b"), Identity())], exact)
    assert door.select(rows, Pure(500.0)) == (1, 1)
    assert rows.candidate(0) == (0, 0)
    assert rows.candidate(3) == (1, 0)
    queries = QueryError([(("a",), [1.0, 0, 0]), (("b",), [0.0, 1.0])], [2.0, 90.0])
    assert door.select(queries, Pure(500.0)) == 1


def test_a_score_of_others_sees_no_counts(tmp_path: Path) -> None:
    """Neither a foreign class nor a subclass of ours is handed exact tables, or costs anything."""
    seen: list[Any] = []

    class Greedy(MarginalError):
        """Keeps what it is shown."""

        def bind(self, setting: Setting) -> BoundScore:
            """Keep the tables."""
            bound = super().bind(setting)
            return BoundScore(bound.cliques, 0.0, 1, lambda tables: seen.extend(tables) or [0.0])  # type: ignore[func-returns-value, arg-type, return-value]

    door = curator(tmp_path)
    with pytest.raises(InvalidInput, match="must be one of MarginalError"):
        door.select(Greedy(ANSWERS), Pure(1.0))
    assert seen == []
    assert door.ledger.events == []


def test_nothing_to_choose_from_costs_nothing(tmp_path: Path) -> None:
    """An empty choice is refused before it is paid for."""
    door = curator(tmp_path)
    empty: list[Score[Any]] = [MarginalError({}), QueryError([], []), RowError([], [])]
    for score in empty:
        with pytest.raises(InvalidInput, match="must have at least one candidate"):
            door.select(score, Pure(1.0))
    assert door.ledger.events == []


def test_each_candidate_has_its_own_distance() -> None:
    """Whole tables and merged ones, axes in any order: each score is that of its own counts."""
    table, rng = tables(3)[7], np.random.default_rng(2)
    merged = Kron({"a": Buckets([0, 1, 1]), "b": Identity()})
    answers: dict[Clique, Any] = {
        ("a",): rng.uniform(0, 3, 3),
        ("a", "b"): rng.uniform(0, 2, 4),
        ("b", "a"): Factor(DOMAIN, rng.uniform(0, 2, (3, 2))),
        ("b",): rng.uniform(0, 3, 2),
    }
    score = MarginalError(answers, queries={("a", "b"): merged})
    counts = table.exact_counts(list(answers))
    found = score.bind(Setting(DOMAIN, Neighbours.ADD_OR_REMOVE, None)).evaluate(counts)
    pair = counts[1].values
    expected = [
        np.abs(counts[0].values - answers["a",]).sum(),
        np.abs([*pair[0], *(pair[1] + pair[2])] - answers["a", "b"]).sum(),
        np.abs(counts[2].values.T - answers["b", "a"].values).sum(),
        np.abs(counts[3].values - answers["b",]).sum(),
    ]
    np.testing.assert_allclose(found, expected, atol=1e-5)  # answers are rounded to the unit
