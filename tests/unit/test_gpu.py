"""What a card does, without a card: levels run by NumPy, and kernels compiled for the processor."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from card_arrays import ArrayCard, StrictArithmetic
from emulated_card import COMPILER, EmulatedBackend, EmulatedCard
from juncture import Domain, Measurement, estimate
from juncture.engine import oracle_choice, vector_ops
from juncture.engine.gpu.arithmetic import CardArithmetic
from juncture.engine.gpu.card import find_card
from juncture.engine.gpu.interpreter import NumpyDevice
from juncture.engine.gpu.levels import divide, lower_to_levels
from juncture.engine.gpu.opcodes import FIRST_LOOP, KEPT_CELLS, LANES, N_KEPT, SPLITS, SUMMED_CELLS
from juncture.engine.gpu.propagation import GpuPropagation
from juncture.engine.gpu.runner import Device, Modules
from juncture.engine.oracle_choice import Reason, choose_oracle, count_card_bytes
from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.errors import InvalidInput
from juncture.fit import sparse_queries
from juncture.fit.card_loss import CardLoss
from juncture.fit.loss import FitLoss
from juncture.fit.solvers import Accelerated, EarlyStopping, Smoothed
from juncture.model import card_tree
from juncture.model.card_sampling import CardDrawer
from juncture.model.distribution import Distribution, make_distribution
from juncture.model.sampling import Sampler
from juncture.tables.queries.blocks import Buckets, Identity, Matrix, Prefix, Total
from juncture.tables.queries.products import Kron, Scaled, Stack, bind


def numpy_device(busy_blocks: int) -> NumpyDevice:
    """Give NumPy in place of a card that so many blocks keep busy."""
    return NumpyDevice(busy_blocks=busy_blocks)


DEVICES: list[Callable[[int], Device]] = [numpy_device]
DEVICES += [EmulatedCard] if COMPILER else []
NUMPY = Modules(np, "scipy.sparse")


def random_problem(rng: np.random.Generator) -> tuple[Plan, np.ndarray]:
    """Give a plan of random cliques, and potentials with a few structural zeros."""
    names = [f"x{i}" for i in range(int(rng.integers(2, 8)))]
    domain = Domain({name: int(rng.integers(1, 7)) for name in names})
    cliques = [
        tuple(rng.choice(names, int(rng.integers(1, min(4, len(names) + 1))), replace=False))
        for _ in range(int(rng.integers(1, 8)))
    ]
    plan = Plan.build(domain, cliques)
    potentials = rng.normal(size=plan.layout.size) * rng.choice([1.0, 5.0, 200.0])
    potentials[rng.random(len(potentials)) < 0.03] = -np.inf
    return plan, potentials


@pytest.mark.parametrize("make", DEVICES)
@pytest.mark.parametrize("busy_blocks", [1, 8, 1024])
def test_random_problems(make: Callable[[int], Device], busy_blocks: int) -> None:
    """Marginals, log Z and best scores are the processor's, however sums are divided."""
    rng = np.random.default_rng(busy_blocks)
    done = 0
    while done < 70:
        plan, potentials = random_problem(rng)
        expected = Propagation(plan)
        try:
            beliefs = expected.marginals(potentials, 100.0)
        except ArithmeticError:
            continue  # the zeros exclude everything
        done += 1
        oracle = GpuPropagation(plan, device=make(busy_blocks))
        found = oracle.marginals(potentials, 100.0)
        np.testing.assert_allclose(found.marginals, beliefs.marginals, rtol=1e-10, atol=1e-100)
        assert found.log_partition == pytest.approx(beliefs.log_partition, rel=1e-12, abs=1e-12)
        score = oracle.maximum_score(oracle.put(potentials))
        assert score == pytest.approx(expected.maximum(potentials).score, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("make", DEVICES)
def test_single_precision(make: Callable[[int], Device]) -> None:
    """Tables in single precision give marginals within 1e-5 of their own size, or of 1e-30."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        plan, potentials = random_problem(rng)
        potentials = np.clip(potentials, -60.0, 60.0)
        expected = Propagation(plan).marginals(potentials).marginals
        oracle = GpuPropagation(plan, precision="single", device=make(64))
        found = oracle.marginals(potentials).marginals
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-30)
        assert oracle.put(potentials).dtype == np.float32


def test_unknown_precision_is_refused() -> None:
    """Precisions have names."""
    plan = Plan.build(Domain({"a": 2}), [("a",)])
    with pytest.raises(InvalidInput, match="`precision` must be"):
        GpuPropagation(plan, precision="half", device=NumpyDevice())  # type: ignore[arg-type]


def test_long_chains_are_shallow() -> None:
    """A chain rooted in its middle has about as many levels up as half its length."""
    names = [f"x{i}" for i in range(20)]
    plan = Plan.build(Domain(dict.fromkeys(names, 3)), pairwise(names))
    program = lower_to_levels(plan)
    assert len(program.levels) < 2 * len(names) + 4
    assert sum(len(np.unique(tiles[:, 0])) for tiles in program.levels) == len(program.operations)


def test_tiles_cover_every_cell() -> None:
    """The tiles of an operation have a thread for each cell that is kept, and loops for each."""
    rng = np.random.default_rng(2)
    for _ in range(30):
        plan, _ = random_problem(rng)
        program = lower_to_levels(plan, busy_blocks=4)
        counts = np.bincount(np.concatenate([tiles[:, 0] for tiles in program.levels]))
        for row, count in zip(program.operations, counts, strict=True):
            kept = program.loops[row[FIRST_LOOP] : row[FIRST_LOOP] + row[N_KEPT], 0]
            assert math.prod(kept.tolist()) == row[KEPT_CELLS]
            lanes = count // row[SPLITS] * LANES
            assert lanes >= row[KEPT_CELLS]


def test_sums_are_split_where_few_cells_are_kept() -> None:
    """One long sum is shared by many blocks, and each has something to do."""
    lanes = divide([], [(10**6, 1, 1, 0)], busy_blocks=1000)
    assert lanes.kept == 1
    assert 100 < lanes.splits <= 1000
    assert lanes.splits * lanes.sums <= 10**6
    domain = Domain({"a": 50, "b": 60})
    row = lower_to_levels(Plan.build(domain, [("a", "b")]), busy_blocks=4).operations[0]
    assert row[SPLITS] > 1
    assert row[SUMMED_CELLS] == 3000


DOMAIN = Domain({"a": 4, "b": 3, "c": 5})
QUERIES: list[tuple[tuple[str, ...], Any]] = [
    (("a",), Identity()),
    (("b", "a"), Identity()),
    (("a", "c"), Kron({"a": Prefix(), "c": Identity()})),
    (("c", "a"), Kron({"c": Prefix(), "a": Total()})),
    (("a", "b"), Matrix(np.random.default_rng(1).normal(size=(7, 12)))),
    (("b", "c"), Kron({"b": Matrix(sparse.random(4, 3, 0.6, random_state=1)), "c": Prefix()})),
    (("b", "c"), Stack([Total(), Scaled(0.5, Identity())])),
    (("c",), Buckets([0, 1, 0, 2, 1])),
    ((), Total()),
    (("a",), Total()),
]


@pytest.mark.parametrize("kind", ["l2", "l1"])
@pytest.mark.parametrize("width", [0.0, 0.7])
@pytest.mark.parametrize("max_entries", [0, 20_000])
def test_losses_on_a_card(
    kind: str, width: float, max_entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values and gradients of every kind of query are those of the loss on the processor.

    Both of queries that are computed one by one, and of those that are small.
    """
    monkeypatch.setattr(sparse_queries, "_MAX_ENTRIES", max_entries)
    rng = np.random.default_rng(4)
    plan = Plan.build(DOMAIN, [clique for clique, _ in QUERIES])
    measurements = []
    for clique, query in QUERIES:
        size = bind(query, DOMAIN.project(clique)).n_rows
        measurements.append(Measurement(clique, rng.normal(10, 5, size), stddev=2.0, query=query))
    loss = FitLoss(plan.layout, measurements, kind).round_off(width)
    card = CardLoss(loss, NUMPY, np.dtype(np.float64))
    marginals = rng.random(plan.layout.size) * 10
    value, gradient = loss.value_and_gradient(marginals)
    found, slope = card.value_and_gradient(marginals)
    assert found == pytest.approx(value, rel=1e-12)
    assert card.value(marginals) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slope, gradient, rtol=1e-10, atol=1e-12)
    shifts = [np.ones(len(m.values)) for m in measurements]
    shifted = card.shift_values(shifts).value(marginals)
    assert shifted == pytest.approx(loss.shift_values(shifts).value(marginals), rel=1e-12)


@pytest.mark.parametrize("solver", [None, Accelerated(), EarlyStopping(), Smoothed()])
@pytest.mark.parametrize(
    "device", [NumpyDevice(), ArrayCard(), *([EmulatedCard()] if COMPILER else [])]
)
def test_fits_on_a_card(solver: Any, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit on a card ends with the marginals of a fit on the processor."""
    monkeypatch.setattr(vector_ops, "_find_card_arithmetic", StrictArithmetic)
    rng = np.random.default_rng(0)
    tables = [
        Measurement(pair, rng.normal(20, 6, DOMAIN.size_of(pair)), stddev=3.0)
        for pair in (("a", "b"), ("b", "c"))
    ]
    on_card = partial(GpuPropagation, device=device)
    loss = "l1" if isinstance(solver, Smoothed) else "l2"
    here = estimate(DOMAIN, tables, solver=solver or Accelerated(), loss=loss)
    there = estimate(DOMAIN, tables, solver=solver, loss=loss, oracle=on_card)
    np.testing.assert_allclose(
        there.model.project(("a", "c")).values, here.model.project(("a", "c")).values, rtol=1e-4
    )
    assert there.summary.lower_bound == pytest.approx(here.summary.lower_bound, rel=1e-3)


def test_without_cupy_the_card_is_refused() -> None:
    """Without CuPy, or without a card, asking for one says what to do; "cpu" and "auto" work."""
    tables = [Measurement(("a",), [1.0, 2.0, 3.0, 4.0], stddev=1.0)]
    if find_card() is None:
        with pytest.raises(InvalidInput, match="juncture\\[gpu\\]|there is none"):
            estimate(DOMAIN, tables, oracle="gpu")
    assert estimate(DOMAIN, tables, oracle="cpu").model.total == pytest.approx(10.0)
    assert choose_oracle("auto", DOMAIN, [("a",)]).factory is Propagation


def test_small_cards_fall_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the card's memory is too small, the processor takes over and says so."""

    class SmallCard(NumpyDevice):
        free_bytes = 1000

    monkeypatch.setattr(oracle_choice, "Card", SmallCard)
    with pytest.warns(UserWarning, match="on the card it would need"):
        choice = choose_oracle("gpu", DOMAIN, [("a", "b", "c")])
    assert choice.factory is Propagation
    assert choice.reason is Reason.CARD_TOO_SMALL
    assert "on the processor" in str(choice)
    assert count_card_bytes(choice.plan) > 1000


@pytest.mark.skipif(COMPILER is None, reason="needs a compiler of C++")
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_vector_kernels(kind: type[np.floating]) -> None:
    """Every routine on vectors gives what NumPy gives, whatever the length."""
    rng, close = np.random.default_rng(3), 1e-13 if kind is np.float64 else 2e-6
    card = CardArithmetic(EmulatedBackend())
    for n in (1, 255, 1000, 70_000):
        a, b, c, out = (rng.random(n).astype(kind) + kind(0.1) for _ in range(4))
        card.mix(a, b, 0.3, out)
        np.testing.assert_allclose(out, a + 0.3 * (b - a), rtol=close)
        card.descend(a, b, 0.3, out)
        np.testing.assert_allclose(out, a - 0.3 * b, rtol=close, atol=close)
        x, y, z = (v.astype(np.float64) for v in (a, b, c))
        assert card.dot(a, b) == pytest.approx(x @ y, rel=1e-12)
        assert card.find_distance(a, b) == pytest.approx(np.abs(x - y).sum(), rel=1e-12)
        expected = 0.5 * (z * (x - y) ** 2).sum()
        assert card.quadratic_value(a, b, c) == pytest.approx(expected, rel=1e-12)
        assert card.quadratic(a, b, c, out) == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(out, z * (x - y), rtol=close, atol=close)
        card.take_logarithms(a, 0.5, out)
        np.testing.assert_allclose(out, np.log(np.maximum(x, 0.5)), rtol=close, atol=close)
        card.rescale_towards(a, b, c, 0.2, 0.5, out)
        goal = x + 0.2 * (y - np.log(np.maximum(z, 0.5)))
        np.testing.assert_allclose(out, goal, rtol=close, atol=close)
        b[::3] = -np.inf
        card.direct_away(a, b, out)
        np.testing.assert_array_equal(out, np.where(b == -np.inf, b, -a))
        assert card.find_largest(-a) == x.max()
        assert card.find_largest(np.full(n, -np.inf, dtype=kind)) == 0.0


@pytest.mark.skipif(COMPILER is None, reason="needs a compiler of C++")
def test_records_drawn_on_a_card() -> None:
    """A card draws the same records as the processor, also beside given columns."""
    rng = np.random.default_rng(1)
    domain = Domain({"a": 3, "b": 4, "c": 2, "d": 5, "free": 3})
    tables = [
        Measurement(pair, rng.random(domain.size_of(pair)) * 50, stddev=1.0)
        for pair in (("a", "b"), ("b", "c"), ("c", "d"))
    ]
    model = estimate(domain, tables).model
    for given in ((), ("b",)):
        assert isinstance(model.distribution, Distribution)
        tree = model.distribution.questions.tree
        sampler = Sampler(tree, given)
        columns = {name: rng.integers(4, size=1000).astype(np.int32) for name in given}
        expected = sampler.sample(1000, 7, columns, first=5)
        codes = np.zeros_like(expected)
        for name in given:
            codes[domain.positions[name]] = columns[name]
        drawer = CardDrawer(EmulatedBackend(), sampler._node_stages, sampler._aliases)
        np.testing.assert_array_equal(drawer.draw(codes, 7, 5, has_given=bool(given)), expected)


@pytest.mark.parametrize("room", [1 << 40, 40_000, 0])
def test_many_questions_on_a_card(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Marginals by tables on a card are the processor's, also where only some walks fit there."""
    rng, card, walked = np.random.default_rng(room % 97), ArrayCard(), 0
    monkeypatch.setattr(card_tree, "WORTH_A_CARD", 0)
    names = [f"x{index}" for index in range(9)]
    for _ in range(8):
        domain = Domain({name: int(rng.integers(1, 5)) for name in names})
        cliques = [tuple(rng.choice(names, 2, replace=False)) for _ in range(9)]
        plan = Plan.build(domain, cliques)
        potentials = 3 * rng.normal(size=plan.layout.size)
        factors = [plan.layout.factor(potentials, clique) for clique in plan.cliques]
        here, there = (make_distribution(domain, factors, Propagation) for _ in range(2))
        asked = [domain.project(c) for size in (1, 2, 3) for c in combinations(names, size)]
        expected = [table.values for table in here.project_many(asked)]
        card.free_bytes = 1 << 40
        monkeypatch.setattr(card_tree, "find_card", lambda: card)
        assert isinstance(there, Distribution)
        moved = there.questions._card_tree
        assert moved is not None
        monkeypatch.undo()
        monkeypatch.setattr(card_tree, "WORTH_A_CARD", 0)
        card.free_bytes = room
        found = [table.values for table in there.project_many(asked)]
        walked += len(moved._placed)
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-15)
    assert (walked > 0) is (room > 0)
