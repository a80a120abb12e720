"""What answers rest on where what was measured of a clique is not its cells."""

from __future__ import annotations

import numpy as np
import pytest

import juncture as jn
from juncture.fit.basis import Bases, Basis
from juncture.mechanisms.residual_planner import make_residual_query
from juncture.tables.domain import Clique
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Kron, bind

DOMAIN = jn.Domain({"a": 3, "b": 4, "c": 2})


def measure_together(clique: Clique) -> jn.Measurement:
    """What the columns of a clique say together, and no fewer do."""
    query = make_residual_query(DOMAIN, clique)
    n_rows = bind(query, DOMAIN.project(clique)).n_rows
    return jn.Measurement(clique, np.zeros(n_rows), stddev=1.0, query=query)


def measure_column(name: str) -> jn.Measurement:
    """Every count of one column."""
    return jn.Measurement((name,), np.zeros(DOMAIN[name]), stddev=1.0)


def find(measurements: list[jn.Measurement], clique: Clique) -> set[Basis]:
    """The bases of the cells of a clique."""
    question = Kron({name: Identity() for name in clique})
    return {Basis(int(each)) for each in Bases(DOMAIN, measurements).find(question).reshape(-1)}


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_cells_follow_from_contrasts_and_columns(order: Clique) -> None:
    """With both columns; with one of them they do not."""
    together = measure_together(("a", "b"))
    both = [together, measure_column("a"), measure_column("b")]
    assert find(both, order) == {Basis.IMPLIED}
    assert find(both[:2], order) == {Basis.ASSUMED}
    assert find([together], order) == {Basis.ASSUMED}


def test_contrasts_of_a_triple_need_those_of_its_pairs() -> None:
    """A cell is a sum over all sets of its columns: without one pair nothing follows."""
    columns = [measure_column(name) for name in DOMAIN]
    pairs = [measure_together(pair) for pair in (("a", "b"), ("a", "c"), ("b", "c"))]
    triple = measure_together(("a", "b", "c"))
    assert find([*columns, *pairs, triple], ("a", "b", "c")) == {Basis.IMPLIED}
    assert find([*columns, *pairs[1:], triple], ("a", "b", "c")) == {Basis.ASSUMED}
    assert find([*columns, *pairs[1:], triple], ("b", "c")) == {Basis.IMPLIED}
