"""The matrix of a query holds what its operator does, and is not written out where it is large."""

from __future__ import annotations

import numpy as np
import pytest

from juncture.fit.sparse_queries import SparseQueries, SparseQuery, find_entries
from juncture.tables.domain import Domain
from juncture.tables.layout import Layout
from juncture.tables.queries import blocks
from juncture.tables.queries.products import Kron, Query, Scaled, Stack, bind

DOMAIN = Domain({"a": 3, "b": 4, "c": 2})
QUERIES: list[Query] = [
    blocks.Identity(),
    blocks.Prefix(),
    Kron({"b": blocks.Buckets([1, 0, 1, 1]), "c": blocks.Identity()}),
    Kron({"a": blocks.AllRanges(), "b": blocks.Moments(2)}),
    Scaled(-0.5, Kron({"a": blocks.Matrix(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]))})),
    Stack([blocks.Total(), Kron({"b": blocks.Prefix()}), Scaled(3.0, blocks.Identity())]),
    Kron({"a": blocks.Point(1), "c": blocks.WeightedSum((0.0, -2.0))}),
]


@pytest.mark.parametrize("query", QUERIES)
def test_entries_are_those_of_the_operator(query: Query) -> None:
    """Every unit table has the same answers."""
    operator = bind(query, DOMAIN)
    entries = find_entries(operator)
    assert entries is not None
    matrix = np.zeros((operator.n_rows, DOMAIN.size))
    np.add.at(matrix, (entries.rows, entries.cells), entries.weights)
    units = [operator.apply(unit.reshape(DOMAIN.shape)) for unit in np.eye(DOMAIN.size)]
    np.testing.assert_allclose(matrix, np.array(units).T)
    assert (entries.weights != 0.0).all()


@pytest.mark.parametrize(
    ("query", "size"),
    [(blocks.Prefix(), 300), (blocks.Identity(), 400), (Stack([blocks.Identity()] * 90), 300)],
)
def test_large_ones_are_left_to_their_operators(query: Query, size: int) -> None:
    """Many entries, a large matrix of few, or many small parts: none is written out."""
    assert find_entries(bind(query, Domain({"a": size}))) is None


def test_answers_without_entries_and_cells_in_another_order() -> None:
    """An answer that no cell has a part in is zero, and a clique may be given in any order."""
    layout = Layout(DOMAIN, [("a", "b"), ("c",)])
    rng = np.random.default_rng(0)
    marginals, slope = rng.random(layout.size), rng.random(3)
    nothing = np.array([[0.0, 0.0], [1.0, 1.0]])
    asked: list[tuple[tuple[str, ...], Query]] = [
        (("c",), blocks.Matrix(nothing)),
        (("b", "a"), Kron({"b": blocks.Point(2), "a": blocks.Point(0)})),
    ]
    queries = []
    for clique, query in asked:
        operator = bind(query, DOMAIN.project(clique))
        entries = find_entries(operator)
        assert entries is not None
        values, stddev = np.ones(operator.n_rows), np.full(operator.n_rows, 2.0)
        queries.append(SparseQuery(clique, values, stddev, entries))
    batch = SparseQueries(layout, queries)
    answers = np.array([0.0, marginals[12:].sum(), marginals[2]])
    np.testing.assert_allclose(batch.errors(marginals), (answers - 1.0) / 2.0)
    gradient = np.zeros(layout.size)
    batch.add_slope(gradient, slope)
    np.testing.assert_allclose(gradient, batch.to_matrix(layout.size).T @ slope)
    assert gradient[2] == slope[2] / 2.0
    assert gradient[12] == slope[1] / 2.0
