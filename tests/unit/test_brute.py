"""The references themselves, checked on models small enough to write out by hand."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest

import brute
import problems
from brute import Answer, Tables
from problems import Problem

SIZES = (("a", 2), ("b", 3), ("c", 2))
TABLES = {
    ("b", "a"): np.array([[0.5, -1.0], [0.0, 2.0], [1.0, -np.inf]]),
    ("c",): np.array([0.25, -0.75]),
}


def records() -> list[tuple[int, int, int]]:
    """Give every record of the small model."""
    return list(product(range(2), range(3), range(2)))


def by_hand(a: int, b: int, c: int) -> float:
    """Give the weight of a record, by reading the two tables."""
    return math.exp(TABLES["b", "a"][b, a]) * math.exp(TABLES[("c",)][c])


def test_log_partition() -> None:
    """Log Z is the logarithm of the sum of all weights."""
    expected = math.log(math.fsum(by_hand(*record) for record in records()))
    assert brute.log_sum_exp(brute.scores(SIZES, TABLES)) == pytest.approx(expected, rel=1e-14)


def test_marginal_in_the_order_asked() -> None:
    """A marginal's axes are in the clique's order, and it sums to the total."""
    weight = math.fsum(by_hand(*record) for record in records())
    found = brute.marginal(SIZES, brute.scores(SIZES, TABLES), ("c", "a"), total=10.0)
    for c, a in product(range(2), range(2)):
        expected = 10.0 * math.fsum(by_hand(a, b, c) for b in range(3)) / weight
        assert found[c, a] == pytest.approx(expected, rel=1e-14)


def test_best_record() -> None:
    """The best record is the one with the largest weight."""
    dense = brute.scores(SIZES, TABLES)
    assert brute.best_record(SIZES, dense) == {"a": 1, "b": 1, "c": 0}
    assert brute.score_of(TABLES, {"a": 1, "b": 1, "c": 0}) == 2.25
    assert dense.max() == 2.25


def test_all_excluded() -> None:
    """Log Z is minus infinity when every record is excluded."""
    dense = brute.scores((("a", 2),), {("a",): np.full(2, -np.inf)})
    assert brute.log_sum_exp(dense) == -math.inf


def test_thousands_of_nats() -> None:
    """Log Z and marginals are right where exp of the scores overflows and underflows."""
    sizes = (("a", 3),)
    tables: Tables = {("a",): np.array([-9000.0, -9000.0 + math.log(3), -20000.0])}
    dense = brute.scores(sizes, tables)
    assert brute.log_sum_exp(dense) == pytest.approx(-9000.0 + math.log(4), rel=1e-14)
    found = brute.marginal(sizes, dense, ("a",))
    np.testing.assert_allclose(found, [0.25, 0.75, 0.0], rtol=1e-11)


def agree(left: Answer, right: Answer) -> None:
    """Check that two answers are the same."""
    assert left.log_partition == pytest.approx(right.log_partition, rel=1e-12)
    assert left.score == pytest.approx(right.score, rel=1e-12)
    for clique, table in left.marginals.items():
        np.testing.assert_allclose(table, right.marginals[clique], rtol=1e-11, atol=1e-14)


def test_transfer_matrix() -> None:
    """The closed form of a chain of equal tables equals writing out every record."""
    names = [name for name, _ in problems.attributes(*[3] * 6)]
    table = np.random.default_rng(1).standard_normal((3, 3))
    tables: Tables = dict.fromkeys(pairwise(names), table)
    dense = brute.solve(problems.attributes(*[3] * 6), tables)
    agree(brute.solve_uniform_chain(tables), dense)


@pytest.mark.parametrize("recipe", [problems.ordinary, problems.tug_of_war])
def test_hub(recipe: problems.Recipe) -> None:
    """The closed form of a hub equals writing out every record."""
    star = Problem(
        name="star",
        sizes=problems.attributes(3, 2, 4, 3, 2),
        cliques=problems.cliques("ab ac ad ae"),
        recipe=recipe,
    )
    agree(brute.solve_hub(star.potentials), star.answer)


def test_monotone_sequences() -> None:
    """The number of sequences that never decrease equals a count of them."""
    codes = product(range(4), repeat=5)
    count = sum(all(low <= high for low, high in pairwise(code)) for code in codes)
    assert brute.n_monotone(length=5, n_values=4) == count
