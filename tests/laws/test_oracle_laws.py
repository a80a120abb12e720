"""What holds for every oracle on every model, checked on exact message passing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import brute
import packing
import strategies
from brute import Array, Clique, Tables
from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.errors import ImpossibleModel
from juncture.tables.domain import Domain
from juncture.tables.layout import Layout
from strategies import Model, examples

POSSIBLE = strategies.models()
FINITE = strategies.models(strategies.FINITE)
SMALL = strategies.models((strategies.ORDINARY, strategies.ZEROS), max_attributes=4)
TOTALS = st.sampled_from([1.0, 48842.0, 1e-3])
# A product of ordinary numbers, whose own product with the next table needs exponents.
EXTENDED_LATER = Model(
    sizes=(("a", 3), ("b", 2), ("e", 4), ("f", 1)),
    cliques=(("b", "a"), ("b", "e"), ("b", "f")),
    potentials={
        ("b", "a"): np.array([[-1399.7, -708.3, -699.1], [0.45, -0.54, -739.4]]),
        ("b", "e"): np.array([[-709.3, -0.78, -709.3, -575.0], [-700.3, -1398.7, -574.0, -711.7]]),
        ("b", "f"): np.array([[-350.5], [-646.6]]),
    },
)
# A product of ordinary numbers whose scale is 1e-257.
SMALL_SCALE = Model(
    sizes=(("p", 1), ("a", 4), ("q", 1), ("b", 2)),
    cliques=(("p", "a", "b"), ("a", "q", "b"), ("b",), ("p", "q", "b")),
    potentials={
        ("p", "a", "b"): np.array(
            [[[-295.8, 45.0], [89.0, 152.1], [186.0, 183.5], [-255.9, -465.7]]]
        ),
        ("a", "q", "b"): np.array(
            [[[214.0, 68.9]], [[63.2, 181.5]], [[109.9, -206.4]], [[-248.0, 738.7]]]
        ),
        ("b",): np.array([129.5, 199.5]),
        ("p", "q", "b"): np.array([[[-4.7, -163.7]]]),
    },
)


def oracle_of(model: Model, threads: int = 1) -> Propagation:
    """Give exact message passing on the model's cliques as they were given."""
    return Propagation(Plan.build(Domain(model.sizes), model.cliques), threads=threads)


def answer(model: Model, total: float = 1.0) -> tuple[Layout, Array, float]:
    """Give layout, marginals and log Z of a fresh oracle."""
    oracle = oracle_of(model)
    beliefs = oracle.marginals(packing.pack(oracle.layout, model.potentials), total)
    return oracle.layout, beliefs.marginals, beliefs.log_partition


def shifted(tables: Tables, clique: Clique, amount: float) -> dict[Clique, Array]:
    """Give the same tables with a constant added to one of them."""
    return {one: table + (amount if one == clique else 0.0) for one, table in tables.items()}


@examples(200)
@given(POSSIBLE, TOTALS)
def test_marginals_equal_brute_force(model: Model, total: float) -> None:
    """Every marginal equals the sum over all records, to 1e-10 of the total."""
    layout, vector, _ = answer(model, total)
    dense = brute.scores(model.sizes, model.potentials)
    for clique in model.potentials:
        expected = brute.marginal(model.sizes, dense, clique, total)
        found = packing.unpack(layout, vector, clique)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * total)


@examples(100)
@given(strategies.models(max_attributes=3, max_size=17))
def test_long_loops_equal_brute_force(model: Model) -> None:
    """Tables long enough for unrolled and vector code have the marginals of brute force."""
    layout, vector, log_partition = answer(model)
    expected = brute.solve(model.sizes, model.potentials)
    assert log_partition == pytest.approx(expected.log_partition, rel=1e-10, abs=1e-10)
    for clique, table in expected.marginals.items():
        found = packing.unpack(layout, vector, clique)
        np.testing.assert_allclose(found, table, rtol=0, atol=1e-10)


@examples(200)
@given(POSSIBLE)
def test_log_partition_equals_brute_force(model: Model) -> None:
    """Log Z equals the logarithm of the sum over all records, to 1e-10."""
    _, _, log_partition = answer(model)
    expected = brute.log_sum_exp(brute.scores(model.sizes, model.potentials))
    assert log_partition == pytest.approx(expected, rel=1e-10, abs=1e-10)


@examples(100)
@given(strategies.models((strategies.ANY_ZEROS,)))
def test_impossible_exactly_when_no_record_is_left(model: Model) -> None:
    """An oracle refuses a model if and only if its zeros exclude every record."""
    expected = brute.log_sum_exp(brute.scores(model.sizes, model.potentials))
    if expected > -np.inf:
        assert answer(model)[2] == pytest.approx(expected, rel=1e-10, abs=1e-10)
        return
    with pytest.raises(ImpossibleModel, match="must leave at least one record possible"):
        answer(model)


@given(POSSIBLE, TOTALS)
def test_mass_is_the_total_and_never_negative(model: Model, total: float) -> None:
    """Every marginal sums to the total and has no negative cell."""
    layout, vector, _ = answer(model, total)
    assert (vector >= 0).all()
    for clique in layout.cliques:
        mass = packing.unpack(layout, vector, clique).sum()
        assert mass == pytest.approx(total, rel=1e-10)


@given(POSSIBLE)
def test_marginals_agree_on_what_they_share(model: Model) -> None:
    """Any two marginals, summed onto their common attributes, are the same table."""
    layout, vector, _ = answer(model)
    for left, right in combinations(layout.cliques, 2):
        shared = [name for name in left if name in right]
        sums = [_summed_onto(packing.unpack(layout, vector, c), c, shared) for c in (left, right)]
        np.testing.assert_allclose(sums[0], sums[1], rtol=0, atol=1e-10)


def _summed_onto(table: Array, clique: Clique, kept: list[str]) -> Array:
    dropped = tuple(place for place, name in enumerate(clique) if name not in kept)
    return np.asarray(table.sum(axis=dropped))


@given(POSSIBLE)
def test_excluded_cells_have_no_mass(model: Model) -> None:
    """A cell whose potential is minus infinity has a marginal of exactly zero."""
    oracle = oracle_of(model)
    vector = packing.pack(oracle.layout, model.potentials)
    assert (oracle.marginals(vector).marginals[np.isneginf(vector)] == 0.0).all()


@given(POSSIBLE, st.floats(-2000, 2000), st.data())
def test_a_constant_moves_log_z_alone(model: Model, amount: float, data: st.DataObject) -> None:
    """Adding a constant to a table adds it to log Z and leaves all marginals."""
    if not model.cliques:
        return
    clique = data.draw(st.sampled_from(model.cliques))
    moved = model._replace(potentials=shifted(model.potentials, clique, amount))
    _, before, log_before = answer(model)
    _, after, log_after = answer(moved)
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-10)
    assert log_after == pytest.approx(log_before + amount, rel=1e-10, abs=1e-9)


@examples(30)
@given(SMALL)
def test_marginals_are_the_gradient_of_log_z(model: Model) -> None:
    """The central difference of log Z in each potential equals its marginal."""
    oracle = oracle_of(model)
    vector = packing.pack(oracle.layout, model.potentials)
    expected = oracle.marginals(vector).marginals.copy()
    step = 1e-4
    for place in range(len(vector)):
        up, down = vector.copy(), vector.copy()
        up[place] += step
        down[place] -= step
        rise = oracle.marginals(up).log_partition - oracle.marginals(down).log_partition
        assert rise / (2 * step) == pytest.approx(expected[place], abs=1e-8)


@example(EXTENDED_LATER)
@example(SMALL_SCALE)
@examples(150)
@given(POSSIBLE)
def test_small_marginals_are_accurate_too(model: Model) -> None:
    """Every marginal above 1e-50 is right relative to itself, to 1e-9."""
    layout, vector, _ = answer(model)
    dense = brute.scores(model.sizes, model.potentials)
    for clique in model.potentials:
        expected = brute.marginal(model.sizes, dense, clique, 1.0)
        found = packing.unpack(layout, vector, clique)
        shown = expected > 1e-50
        np.testing.assert_allclose(found[shown], expected[shown], rtol=1e-9)


@given(strategies.models((strategies.ORDINARY, strategies.ZEROS)))
def test_structural_zeros_cost_nothing(model: Model) -> None:
    """Where no product can underflow, zeros make none be computed again."""
    oracle = oracle_of(model)
    oracle.marginals(packing.pack(oracle.layout, model.potentials))
    assert oracle.repeated == 0


@given(POSSIBLE)
def test_no_multiplication_is_repeated_twice(model: Model) -> None:
    """However far potentials are spread, a call takes its multiplications twice at most."""
    oracle = oracle_of(model)
    oracle.marginals(packing.pack(oracle.layout, model.potentials))
    assert oracle.repeated <= oracle.plan.operations


@given(POSSIBLE)
def test_threads_agree(model: Model) -> None:
    """One, two and three threads give the same numbers to 1e-12."""
    oracles = [oracle_of(model, threads) for threads in (1, 2, 3)]
    vector = packing.pack(oracles[0].layout, model.potentials)
    one, *others = (oracle.marginals(vector) for oracle in oracles)
    for other in others:
        np.testing.assert_allclose(other.marginals, one.marginals, rtol=0, atol=1e-12)
        assert other.log_partition == pytest.approx(one.log_partition, rel=1e-12, abs=1e-12)


@given(POSSIBLE)
def test_out_receives_the_same_numbers(model: Model) -> None:
    """With `out`, the marginals are that very array and hold the same bytes."""
    oracle = oracle_of(model)
    vector = packing.pack(oracle.layout, model.potentials)
    out = np.full(oracle.layout.size, np.nan)
    beliefs = oracle.marginals(vector, 7.0, out=out)
    again = oracle_of(model).marginals(vector, 7.0)
    assert beliefs.marginals is out
    assert out.tobytes() == again.marginals.tobytes()
    assert beliefs.log_partition == again.log_partition


@given(POSSIBLE)
def test_potentials_are_left_alone(model: Model) -> None:
    """No call writes into the potentials."""
    oracle = oracle_of(model)
    vector = packing.pack(oracle.layout, model.potentials)
    before = vector.tobytes()
    oracle.marginals(vector)
    oracle.maximum(vector)
    assert vector.tobytes() == before


@given(POSSIBLE, st.sampled_from((*strategies.POSSIBLE, strategies.ANY_ZEROS)), strategies.seeds())
def test_an_oracle_forgets(model: Model, kind: str, seed: int) -> None:
    """What an oracle was asked before, even if impossible, does not change its next answer."""
    oracle = oracle_of(model)
    other = strategies.potentials(model.sizes, model.cliques, kind, seed)
    try:
        oracle.marginals(packing.pack(oracle.layout, other), 3.0)
    except ImpossibleModel:
        assert kind == strategies.ANY_ZEROS
    vector = packing.pack(oracle.layout, model.potentials)
    used, fresh = oracle.marginals(vector), oracle_of(model).marginals(vector)
    np.testing.assert_allclose(used.marginals, fresh.marginals, rtol=1e-13, atol=0)
    assert used.log_partition == pytest.approx(fresh.log_partition, rel=1e-13)


@given(POSSIBLE)
def test_results_are_not_overwritten(model: Model) -> None:
    """Marginals returned by one call survive the next call."""
    oracle = oracle_of(model)
    vector = packing.pack(oracle.layout, model.potentials)
    first = oracle.marginals(vector).marginals
    before = first.tobytes()
    oracle.marginals(oracle.layout.zeros())
    assert first.tobytes() == before


@given(POSSIBLE)
def test_the_order_of_cliques_does_not_matter(model: Model) -> None:
    """Giving the cliques in reverse leaves log Z and each marginal."""
    layout, vector, log_partition = answer(model)
    reverse = model._replace(cliques=model.cliques[::-1])
    other_layout, other, other_log = answer(reverse)
    assert other_log == pytest.approx(log_partition, rel=1e-10, abs=1e-10)
    for clique in layout.cliques:
        found, expected = (packing.unpack(*pair, clique) for pair in (
            (other_layout, other), (layout, vector)
        ))  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@given(POSSIBLE)
def test_a_plan_grown_clique_by_clique_answers_alike(model: Model) -> None:
    """Extending a plan by one clique at a time gives the same answers as planning at once."""
    plan = Plan.build(Domain(model.sizes), [])
    for clique in model.cliques:
        plan = plan.extend(clique)
    oracle = Propagation(plan, threads=1)
    beliefs = oracle.marginals(packing.pack(oracle.layout, model.potentials))
    expected = brute.solve(model.sizes, model.potentials)
    assert beliefs.log_partition == pytest.approx(expected.log_partition, rel=1e-10, abs=1e-10)
    for clique, table in expected.marginals.items():
        found = packing.unpack(oracle.layout, beliefs.marginals, clique)
        np.testing.assert_allclose(found, table, rtol=0, atol=1e-10)


@examples(150)
@given(POSSIBLE)
def test_the_maximum_equals_brute_force(model: Model) -> None:
    """The peak's score is the highest of all records, and its record attains it."""
    oracle = oracle_of(model)
    peak = oracle.maximum(packing.pack(oracle.layout, model.potentials))
    expected = brute.scores(model.sizes, model.potentials).max()
    assert peak.score == pytest.approx(expected, rel=1e-12, abs=1e-11)
    assert list(peak.record) == [name for name, _ in model.sizes]
    assert all(0 <= peak.record[name] < size for name, size in model.sizes)
    attained = brute.score_of(model.potentials, peak.record)
    assert attained == pytest.approx(expected, rel=1e-12, abs=1e-11)


@given(FINITE)
def test_free_attributes_of_the_peak_are_zero(model: Model) -> None:
    """Attributes that no clique mentions have code 0 in the peak's record."""
    oracle = oracle_of(model)
    peak = oracle.maximum(packing.pack(oracle.layout, model.potentials))
    mentioned = {name for clique in model.cliques for name in clique}
    assert all(code == 0 for name, code in peak.record.items() if name not in mentioned)


@given(POSSIBLE)
def test_the_peak_weighs_no_more_than_everything(model: Model) -> None:
    """Log Z lies between the best score and the best score plus log of the number of records."""
    oracle = oracle_of(model)
    vector = packing.pack(oracle.layout, model.potentials)
    log_partition, score = oracle.marginals(vector).log_partition, oracle.maximum(vector).score
    n_records = np.prod([size for _, size in model.sizes])
    slack = 1e-10 * max(1.0, abs(score))
    assert score - slack <= log_partition <= score + np.log(n_records) + slack
