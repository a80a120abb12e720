"""Kept counts: the same answers, counted once, within a limit."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from juncture.private.sources.kept_counts import KeptCounts
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor

DOMAIN = Domain({"a": 2, "b": 3, "c": 4, "d": 5})
CLIQUES = [(), *combinations(DOMAIN, 1), *combinations(DOMAIN, 2), ("b", "a")]


class Counted(CodedTable):
    """A table that remembers which cliques were counted."""

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        columns = {name: rng.integers(0, size, 50) for name, size in DOMAIN.items()}
        super().__init__(DOMAIN, columns)
        self.counted: list[Clique] = []
        self.n_scans = 0

    def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
        """Count, and remember what."""
        asked = list(cliques)
        self.counted += asked
        self.n_scans += bool(asked)
        return super().exact_counts(asked)


def ask(kept: KeptCounts, cliques: list[Clique]) -> None:
    """Ask for some cliques, and compare with a table that keeps nothing."""
    answers, expected = kept.exact_counts(cliques), Counted().exact_counts(cliques)
    for answer, reference in zip(answers, expected, strict=True):
        assert answer.domain == reference.domain
        np.testing.assert_array_equal(answer.values, reference.values)


@pytest.mark.parametrize("max_bytes", [0, 2000, 10**6])
@given(rounds=st.lists(st.lists(st.sampled_from(CLIQUES)), max_size=5))
def test_answers_are_those_of_the_source(max_bytes: int, rounds: list[list[Clique]]) -> None:
    """Whatever is asked in whatever order, with repetitions, the counts are exact."""
    kept = KeptCounts(Counted(), max_bytes)
    for cliques in rounds:
        ask(kept, cliques)
        assert kept.kept_bytes <= max_bytes


def test_a_candidate_is_counted_once() -> None:
    """Of two rounds with the same candidates, the first is one scan, the second counts nothing."""
    source = Counted()
    kept = KeptCounts(source)
    ask(kept, CLIQUES)
    ask(kept, CLIQUES[::-1])
    assert source.counted == CLIQUES
    assert source.n_scans == 1


def test_what_was_not_used_for_longest_is_dropped() -> None:
    """With room for two tables, the third drops the one that was asked for before the other."""
    source = Counted()
    kept = KeptCounts(source, max_bytes=1200)
    for clique in (("a",), ("b",), ("a",), ("c",)):
        ask(kept, [clique])
    source.counted.clear()
    ask(kept, [("a",), ("c",), ("b",)])
    assert source.counted == [("b",)]


def test_a_kept_table_owns_its_cells() -> None:
    """One table of many that were counted together does not keep the memory of all of them."""
    kept = KeptCounts(Counted(), max_bytes=10**6)
    ask(kept, CLIQUES)
    assert all(table.values.base is None for table in kept.exact_counts(CLIQUES))
