"""Questions across cliques: which way they go, the memory that was promised, and shared work.

Two square grids stand for the two ways. On the one of 12 x 12 the tables of all maximal cliques
need little memory; on the one of 16 x 16 they need seven times that of the model.
"""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import combinations

import numpy as np
import pytest

from exact import questions_of
from juncture import Domain, Factor, Model, ModelTooLarge, Plan
from juncture.engine.plan import UNNOTICED_BYTES
from juncture.engine.propagation import Propagation
from juncture.model import choice
from juncture.model.calibration import Calibration
from juncture.model.clique_tree import CliqueTree
from juncture.model.pair_query import PairQuery
from juncture.model.pair_routes import Routes
from juncture.model.tree_query import TreeQuery
from juncture.model.tree_walk import TreeWalk
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Identity, Matrix, Point, WeightedSum
from juncture.tables.queries.products import Kron

Links = dict[tuple[str, str], Vector]
SMALL, LARGE = 12, 16
# A question may need this many times the memory of the plan that has it as one more clique.
MAX_RATIO = 4
ROOM_FOR_ALL = 1 << 40
# Lists, names and NumPy's own buffers.
PYTHON_BYTES = 1 << 17


@cache
def links(side: int) -> Links:
    """A table for each two neighbours of a grid."""
    rng = np.random.default_rng(0)
    across = [(f"x{i}y{j}", f"x{i + 1}y{j}") for i in range(side - 1) for j in range(side)]
    down = [(f"x{i}y{j}", f"x{i}y{j + 1}") for i in range(side) for j in range(side - 1)]
    return {pair: rng.normal(0.0, 0.7, (2, 2)) for pair in (*across, *down)}


@cache
def grid(side: int) -> Model:
    """Binary attributes on a square grid."""
    domain = Domain({f"x{i}y{j}": 2 for i in range(side) for j in range(side)})
    factors = [Factor(domain.project(pair), table) for pair, table in links(side).items()]
    return Model.of_potentials(domain, factors)


def forget(model: Model) -> Model:
    """The same model, of which nothing has been asked."""
    return Model(replace(model.distribution))


def corners(side: int) -> tuple[str, str]:
    """Two opposite corners of a grid."""
    return "x0y0", f"x{side - 1}y{side - 1}"


def transfer(side: int) -> Vector:
    """The probabilities of two opposite corners, with one column of the grid at a time."""
    tables, result = links(side), np.zeros((2, 2))
    for corner in range(2):
        column = np.zeros((2,) * side)
        column[corner] = 1.0
        for i in range(side):
            for j in range(side - 1):
                shape = [2 if axis in (j, j + 1) else 1 for axis in range(side)]
                column = column * np.exp(tables[f"x{i}y{j}", f"x{i}y{j + 1}"]).reshape(shape)
            for j in range(side if i < side - 1 else 0):
                step = np.exp(tables[f"x{i}y{j}", f"x{i + 1}y{j}"])
                column = np.moveaxis(np.tensordot(column, step, (j, 0)), -1, j)
        result[corner] = column.sum(axis=tuple(range(side - 1)))
    return np.asarray(result / result.sum())


def peak_bytes(run: Callable[[], object]) -> int:
    """The largest memory in use at a time while something runs, beside what was there before."""
    tracemalloc.start()
    run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("side", [SMALL, LARGE])
def test_far_corners_of_a_grid(side: int) -> None:
    """Either way gives the probabilities that one column after another gives."""
    result = forget(grid(side)).project(corners(side))
    np.testing.assert_allclose(result.values, transfer(side), rtol=1e-9)


def test_little_memory_buys_the_tree() -> None:
    """Tables of all cliques within four megabytes are made, and stay within them."""
    model = forget(grid(SMALL))
    assert model.plan.affords_tree
    assert peak_bytes(lambda: model.project(corners(SMALL))) <= UNNOTICED_BYTES == 1 << 22
    assert questions_of(model).is_calibrated


def test_a_question_needs_little_more_than_its_own_plan() -> None:
    """Where the tables of all cliques need too much, the question becomes one more clique."""
    model, pair = forget(grid(LARGE)), corners(LARGE)
    own = model.plan.extend(pair).size_bytes
    assert not model.plan.affords_tree
    assert peak_bytes(lambda: model.project(pair)) <= 1.1 * own < MAX_RATIO * own
    assert not questions_of(model).is_calibrated


def test_questions_together_keep_the_limit_too() -> None:
    """One call for many pairs needs at most four times the memory of the model's own plan."""
    model = forget(grid(LARGE))
    pairs = [("x0y0", name) for name in model.domain.attributes[LARGE + 1 :: 20]]
    together = list[Factor]()
    peak = peak_bytes(lambda: together.extend(model.project_many(pairs)))
    assert peak <= MAX_RATIO * model.plan.size_bytes
    for pair, result in zip(pairs[:3], together, strict=False):
        expected = forget(grid(LARGE)).project(pair)
        np.testing.assert_allclose(result.values, expected.values, rtol=1e-9)


def test_answers_of_a_call_are_those_of_the_marginal() -> None:
    """Attributes with one answer become weights, others axes; negative weights are applied last."""
    model, (first, last) = forget(grid(LARGE)), corners(LARGE)
    middle, sign = "x7y8", Matrix(np.array([[1.0, -2.0]]))
    joint = model.project((first, middle, last)).values
    weighted = model.answer(Kron({first: Point(1), middle: Identity(), last: WeightedSum()}))
    np.testing.assert_allclose(weighted[0, :, 0], joint[1, :, 1], rtol=1e-9)
    signed = model.answer(Kron({first: sign, middle: Point(0), last: Identity()}))
    np.testing.assert_allclose(signed[0, 0], [1.0, -2.0] @ joint[:, 0], rtol=1e-9)
    number = model.answer(Kron({first: Point(1), middle: Point(0), last: Point(0)}))
    np.testing.assert_allclose(number, joint[1, 0, 0], rtol=1e-9)
    assert not questions_of(model).is_calibrated


def test_what_fits_in_neither_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what both ways need, and what to do."""
    model = forget(grid(LARGE))
    monkeypatch.setattr(choice, "free_memory_bytes", lambda: 10 << 20)
    with pytest.raises(
        ModelTooLarge,
        match=r"`query` must need at most 5\.2 MB; got one over \(x0y0, x15y15\) that needs "
        r".* MB as one more clique, and .* MB with the tables of all cliques\. Ask about fewer",
    ):
        model.project(corners(LARGE))


def test_the_plan_says_what_questions_need() -> None:
    """Its text has the memory of the tables, or of a question where these are too large."""
    assert "questions       3.2 MB for the tables of all cliques" in str(grid(SMALL).plan)
    assert "questions       from 12.4 MB each; the tables of all" in str(grid(LARGE).plan)


def make_network(n: int, max_size: int, seed: int) -> Model:
    """A network in which each attribute depends on one or two of the eight before it."""
    rng = np.random.default_rng(seed)
    domain = Domain({f"x{i}": int(rng.integers(2, max_size + 1)) for i in range(n)})
    names, factors = domain.attributes, list[Factor]()
    for i, name in enumerate(names):
        near = names[max(0, i - 8) : i]
        count = min(len(near), int(rng.integers(1, 3)))
        parents = [near[int(k)] for k in rng.choice(len(near), count, replace=False)]
        scope = domain.project(domain.canonical([*parents, name]))
        factors.append(Factor(scope, rng.normal(0.0, 1.0, scope.shape)))
    return Model.of_potentials(domain, factors)


@pytest.fixture(scope="module")
def network() -> Model:
    """A network with tables large enough that their memory is more than that of Python objects."""
    return make_network(30, 14, 1)


def test_the_memory_of_the_tree_is_as_promised(network: Model) -> None:
    """Filling the tree takes what the plan says at most, and not much less."""
    plan, potentials = network.plan, network.potentials
    fill = partial(Calibration.of_potentials, plan, potentials, Propagation)
    fill()
    assert 0.5 * plan.tree_bytes <= peak_bytes(fill) <= plan.tree_bytes + PYTHON_BYTES


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_memory_of_a_walk_is_as_promised(network: Model, n: int) -> None:
    """A question over the tree takes what its steps say at most."""
    tree, rng = questions_of(network).tree, random.Random(n)
    for _ in range(10):
        names = rng.sample(network.domain.attributes, n)
        walk = TreeWalk(tree, dict.fromkeys(names, Identity()))
        TreeQuery(tree, walk).answer()  # the tree keeps the masses of separators
        peak = peak_bytes(TreeQuery(tree, walk).answer)
        assert peak <= walk.size_bytes + PYTHON_BYTES


@pytest.mark.parametrize("max_bytes", [0, 1 << 18, ROOM_FOR_ALL])
def test_the_memory_of_pairs_is_as_promised(network: Model, max_bytes: int) -> None:
    """Pairs that go together take what their routes say, and the answers, at most."""
    tree, pairs = questions_of(network).tree, all_pairs(network)
    routes = Routes(tree, pairs, max_bytes)
    answers = PairQuery(tree).answer(routes)
    kept = sum(table.values.nbytes for table in answers.values())
    peak = peak_bytes(lambda: PairQuery(tree).answer(routes))
    assert peak <= routes.size_bytes + kept + 4 * PYTHON_BYTES


def all_pairs(model: Model) -> list[Clique]:
    """All pairs of attributes in a random order."""
    pairs = list[Clique](combinations(model.domain.attributes, 2))
    random.Random(0).shuffle(pairs)
    return pairs


def count_operations(tree: Calibration, pairs: list[Clique]) -> int:
    """The work for pairs that go together."""
    query = PairQuery(tree)
    assert len(query.answer(Routes(tree, pairs, ROOM_FOR_ALL))) == len(pairs)
    return query.operations


@pytest.mark.parametrize("seed", range(4))
def test_pairs_together_take_less_work_than_one_by_one(seed: int) -> None:
    """Never more work for a few random pairs, and a third at most for all pairs."""
    model = make_network(40, 4, seed)
    tree, pairs = questions_of(model).tree, all_pairs(model)
    alone = [count_operations(tree, [pair]) for pair in pairs]
    for n in (1, 2, 5, 50):
        assert count_operations(tree, pairs[:n]) <= sum(alone[:n])
    assert 3 * count_operations(tree, pairs) <= sum(alone)


def test_what_a_walk_takes_is_known_without_tables() -> None:
    """The forecast needs the plan alone: a chain too long for any table has one."""
    plan = Plan.build(
        Domain({f"x{i}": 1000 for i in range(50)}),
        [(f"x{i}", f"x{i + 1}") for i in range(49)],
        memory_limit=ROOM_FOR_ALL,
    )
    walk = TreeWalk(CliqueTree(plan), {"x0": Identity(), "x49": Point(3)})
    assert 8 * 1000**2 <= walk.size_bytes <= 4 * 8 * 1000**2
