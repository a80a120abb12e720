"""Questions to models that are too large to write out, and questions that make no sense."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from juncture import Codebook, Coding, Domain, Factor, InvalidInput, Model, ModelTooLarge
from juncture.tables.queries import (
    Buckets,
    Identity,
    Kron,
    Matrix,
    Range,
    Scaled,
    Stack,
    WeightedSum,
)

SIZE = 6
LONG = Domain({f"x{i}": SIZE for i in range(300)})


def transition() -> np.ndarray:
    """A Markov chain's matrix."""
    rows = np.random.default_rng(0).dirichlet(np.ones(SIZE), SIZE)
    return np.asarray(rows)


@pytest.fixture(scope="module")
def chain() -> Model:
    """A homogeneous Markov chain from a uniform start, as potentials on neighbours."""
    with np.errstate(divide="ignore"):
        log_rows = np.log(transition())
    factors = [Factor(LONG.project(pair), log_rows) for pair in pairwise(LONG)]
    return Model.of_potentials(LONG, factors, total=1000.0)


@pytest.mark.parametrize(("first", "second"), [(0, 299), (10, 290), (7, 9), (150, 20)])
def test_attributes_far_apart(chain: Model, first: int, second: int) -> None:
    """The joint of two attributes is a power of the chain's matrix, whichever comes first."""
    low, high = sorted((first, second))
    start = np.full(SIZE, 1 / SIZE) @ np.linalg.matrix_power(transition(), low)
    joint = 1000 * start[:, None] * np.linalg.matrix_power(transition(), high - low)
    found = chain.project((f"x{first}", f"x{second}")).values
    np.testing.assert_allclose(found, joint if first < second else joint.T, rtol=1e-9)
    (many,) = chain.project_many([(f"x{first}", f"x{second}")])
    np.testing.assert_allclose(many.values, found, rtol=1e-9)


def independent(n: int, size: int) -> Model:
    """Equal pairs of attributes, each pair with the same joint table."""
    domain = Domain({f"y{i}": size for i in range(n)})
    joint = np.random.default_rng(1).random((size, size))
    names = list(domain)
    factors = [Factor(domain.project(names[i : i + 2]), np.log(joint)) for i in range(0, n, 2)]
    return Model.of_potentials(domain, factors, total=500.0)


def test_a_distribution_function_at_two_points() -> None:
    """Over four attributes of a hundred values, without the table of a hundred million cells."""
    model = independent(4, 100)
    rows = np.zeros((2, 100))
    rows[0, :30] = rows[1, :70] = 1
    found = model.answer(Kron({name: Matrix(rows) for name in model.domain}))
    assert found.shape == (2, 2, 2, 2)
    pair = rows @ (model.project(("y0", "y1")).values / 500.0) @ rows.T
    np.testing.assert_allclose(found, 500.0 * np.multiply.outer(pair, pair), rtol=1e-10)


def test_a_range_over_ten_attributes() -> None:
    """One number from a domain of 10 to the 20."""
    model = independent(10, 100)
    found = model.answer(Kron({name: Range(20, 60) for name in model.domain}))
    pair = model.project(("y0", "y1")).values[20:61, 20:61].sum() / 500.0
    assert float(found.squeeze()) == pytest.approx(500.0 * pair**5, rel=1e-10)


def test_twenty_attributes_compressed_to_two_values() -> None:
    """A million answers from a domain of 10 to the 40."""
    model = independent(20, 100)
    halves = Buckets([0] * 50 + [1] * 50)
    found = model.answer(Kron(dict.fromkeys(model.domain, halves)))
    assert found.shape == (2,) * 20
    pair = model.project(("y0", "y1")).values.reshape(2, 50, 2, 50).sum(axis=(1, 3)) / 500.0
    expected = pair
    for _ in range(9):
        expected = np.multiply.outer(expected, pair)
    np.testing.assert_allclose(found, 500.0 * expected, rtol=1e-9)


def test_a_mean_given_another_attribute() -> None:
    """Two links apart in a chain, with numbers of one's own."""
    domain = Domain({"a": 3, "b": 4, "c": 2})
    rng = np.random.default_rng(3)
    factors = [Factor(domain.project(c), rng.normal(size=s)) for c, s in (
        (("a", "b"), (3, 4)), (("b", "c"), (4, 2)),
    )]  # fmt: skip
    model = Model.of_potentials(domain, factors)
    joint = model.project(("c", "a")).values
    values = (10.0, 20.0, 50.0)
    expected = joint @ values / joint.sum(axis=1)
    np.testing.assert_allclose(model.conditional_mean("a", ("c",), values), expected)
    book = Codebook({"a": Coding.of_bins([5, 15, 25, 75])})
    np.testing.assert_allclose(model.with_codebook(book).conditional_mean("a", ("c",)), expected)
    with pytest.raises(InvalidInput, match="must not have the averaged attribute"):
        model.conditional_mean("a", ("a",))
    words = model.with_codebook(Codebook({"a": Coding(("x", "y", "z"))}))
    with pytest.raises(InvalidInput, match="must have numbers for values"):
        words.conditional_mean("a", ("c",))


def test_stacks_and_weights(chain: Model) -> None:
    """Answers one after another, and multiplied."""
    one, two = Kron({"x1": Identity()}), Kron({"x1": WeightedSum(), "x90": Range(0, 2)})
    found = chain.answer(Stack([one, Scaled(-2.0, two)]))
    np.testing.assert_allclose(found[:-1], chain.project(("x1",)).values)
    joint = chain.project(("x1", "x90")).values
    assert found[-1] == pytest.approx(-2.0 * (np.arange(SIZE) @ joint[:, :3].sum(axis=1)))
    with pytest.raises(InvalidInput, match="say which attributes it is about"):
        chain.answer(Identity())


def test_answers_too_large_are_refused(chain: Model) -> None:
    """Before anything is allocated, with the size and what to do."""
    many = [f"x{i}" for i in range(0, 300, 10)]
    with pytest.raises(ModelTooLarge, match="Ask about fewer attributes"):
        chain.project(many)
    with pytest.raises(ModelTooLarge, match="Buckets"):
        chain.answer(Kron(dict.fromkeys(many, Identity())))
    compressed = chain.answer(Kron(dict.fromkeys(many[:12], Buckets([0, 0, 0, 1, 1, 1]))))
    assert compressed.sum() == pytest.approx(1000.0)


def test_queries_about_more_attributes_than_an_array_has_axes(chain: Model) -> None:
    """A range over a hundred attributes is one number, in SQL too."""
    query = Kron({f"x{i}": Range(0, 4) for i in range(100)})
    kept = transition()[:5, :5]
    expected = 1000.0 * (np.full(5, 1 / SIZE) @ np.linalg.matrix_power(kept, 99)).sum()
    assert float(chain.answer(query)) == pytest.approx(expected)
    where = " AND ".join(f"x{i} < 5" for i in range(100))
    (row,) = chain.sql(f"SELECT COUNT(*) FROM t WHERE {where}").rows
    assert row[0] == pytest.approx(expected)
    grouped = chain.answer(Kron({**query.blocks, "x3": Identity()}))
    assert grouped.shape == (SIZE,)


def test_evidence_about_intervals_and_missing_values() -> None:
    """An interval by its ends, its label or a number in it; a missing value by None."""
    domain = Domain({"a": 3})
    made = Model.of_potentials(domain, [Factor(domain, np.log([1.0, 2.0, 4.0]))], total=7.0)
    bins = made.with_codebook(Codebook({"a": Coding.of_bins([0, 20, 60, 100])}))
    for value in ((20.0, 60.0), "[20, 60)", 30, [25.0, 59], np.array(30.0)):
        assert bins.condition({"a": value}).total == pytest.approx(2.0)
    assert bins.condition({"a": [10, 99]}).total == pytest.approx(5.0)
    named = made.with_codebook(Codebook({"a": Coding(("x", None, "y"))}))
    assert named.condition({"a": None}).total == pytest.approx(2.0)
    assert named.condition({"a": ["x", None]}).total == pytest.approx(3.0)
    with pytest.raises(InvalidInput, match="ask for a range"):
        bins.condition({"a": 100})


def test_evidence_in_the_users_values() -> None:
    """A value, several, or what the codebook calls them; anything else is refused."""
    domain = Domain({"a": 3, "b": 2})
    masses = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    model = Model.of_potentials(domain, [Factor(domain, np.log(masses))], total=21.0)
    assert model.condition({"a": 1}).total == pytest.approx(7.0)
    assert model.condition({"a": [0, 2], "b": np.int64(1)}).total == pytest.approx(8.0)
    named = model.with_codebook(Codebook({"a": Coding(("low", "mid", "high"))}))
    assert named.condition({"a": "high"}).total == pytest.approx(11.0)
    assert named.condition({"a": ("low", "mid")}).codebook is named.codebook
    with pytest.raises(InvalidInput, match="The values are 'low', 'mid', 'high'"):
        named.condition({"a": 0})
    with pytest.raises(InvalidInput, match="leave a value of 'a' possible"):
        model.condition({"a": []})
    with pytest.raises(InvalidInput, match="one that a code stands for; got 3"):
        model.condition({"a": 3})


def test_codebooks_are_checked() -> None:
    """One meaning for each code, all different, intervals the right way round."""
    domain = Domain({"a": 3})
    with pytest.raises(InvalidInput, match="must have 3 meanings for 'a'; got 2"):
        Codebook({"a": Coding(("x", "y"))}).bind(domain)
    with pytest.raises(InvalidInput, match="must differ from code to code"):
        Coding(("x", "x"))
    with pytest.raises(InvalidInput, match="a lower and a higher number"):
        Coding.of_bins([3, 2, 1])
    bins = Coding.of_bins([0, 10, 20])
    np.testing.assert_allclose(bins.share_below(15), [1.0, 0.5])
    np.testing.assert_allclose(bins.numbers, [5.0, 15.0])
    np.testing.assert_allclose(Coding((1, 2, None)).share_below(2), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(Coding((1, 2, None)).share_below(2, inclusive=True), [1.0, 1.0, 0.0])
    with pytest.raises(InvalidInput, match="ask for a range"):
        bins.match_exact(5)
    with pytest.raises(InvalidInput, match="to be compared by size"):
        Coding(("x", "y")).share_below(1)
