"""Every question to a model against the dense table, on random models."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute
import strategies
from brute import Array, Clique
from juncture.engine.oracle import find_node_marginals
from juncture.engine.propagation import Propagation
from juncture.errors import ImpossibleModel
from juncture.model.extension import Extension
from juncture.model.model import Model
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.queries import blocks
from juncture.tables.queries.products import Kron
from strategies import examples

TOTAL = 50.0
MODELS = strategies.models(max_attributes=5, max_size=4)
ORDINARY = strategies.models([strategies.ORDINARY, strategies.ZEROS], max_attributes=5, max_size=4)


def made(drawn: strategies.Model) -> Model:
    """Ours."""
    domain = Domain(drawn.sizes)
    factors = [Factor(domain.project(c), table) for c, table in drawn.potentials.items()]
    return Model.of_potentials(domain, factors, TOTAL)


def dense(drawn: strategies.Model) -> Array:
    """The masses of all records."""
    scores = brute.scores(drawn.sizes, drawn.potentials)
    mass = np.exp(scores - scores.max())
    return np.asarray(TOTAL * mass / mass.sum())


def marginal(table: Array, names: Clique, asked: Clique) -> Array:
    """The dense table summed onto some attributes, in the order asked."""
    kept = [names.index(name) for name in asked]
    summed = table.sum(axis=tuple(i for i in range(len(names)) if i not in kept))
    return np.asarray(summed.transpose([sorted(kept).index(place) for place in kept]))


def names_of(drawn: strategies.Model) -> Clique:
    """The attributes in order."""
    return tuple(name for name, _ in drawn.sizes)


@examples(150)
@given(MODELS, st.data())
def test_any_marginal(drawn: strategies.Model, data: st.DataObject) -> None:
    """Inside and across cliques, over free attributes, over none, in any order."""
    names = names_of(drawn)
    asked = data.draw(strategies.clique(names))
    found = made(drawn).project(asked)
    assert found.domain.attributes == asked
    expected = marginal(dense(drawn), names, asked)
    np.testing.assert_allclose(found.values, expected, rtol=1e-9, atol=1e-9 * TOTAL)


@examples(60)
@given(MODELS, st.data())
def test_many_marginals_are_those_asked_one_by_one(
    drawn: strategies.Model, data: st.DataObject
) -> None:
    """Sharing work changes nothing."""
    names, model = names_of(drawn), made(drawn)
    asked = data.draw(st.lists(strategies.clique(names), max_size=8))
    together = list(model.project_many(asked))
    for clique, found in zip(asked, together, strict=True):
        np.testing.assert_allclose(
            found.values, marginal(dense(drawn), names, clique), rtol=1e-9, atol=1e-9 * TOTAL
        )


@examples(80)
@given(MODELS)
def test_tables_of_all_maximal_cliques(drawn: strategies.Model) -> None:
    """From the messages of one call, or measured one by one, they are the dense table's sums."""
    distribution, table = made(drawn).distribution, dense(drawn) / TOTAL
    plan, potentials = distribution.plan, distribution.potentials
    measured = find_node_marginals(partial(Propagation, threads=1), plan, potentials)
    derived = find_node_marginals(Propagation, plan, potentials)
    for node, one, other in zip(plan.nodes, derived, measured, strict=True):
        expected = marginal(table, names_of(drawn), node.clique)
        np.testing.assert_allclose(one, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(other, expected, rtol=1e-9, atol=1e-9)


@examples(80)
@given(MODELS, st.data())
def test_questions_as_cliques_of_an_oracle_call(
    drawn: strategies.Model, data: st.DataObject
) -> None:
    """One call answers several questions about weighted records."""
    distribution, names, table = made(drawn).distribution, names_of(drawn), dense(drawn) / TOTAL
    extension = Extension(
        distribution.plan, distribution.potentials, distribution.log_partition, Propagation
    )
    mentioned = [name for name in names if name not in distribution.plan.free_attributes]
    asked = data.draw(st.lists(strategies.clique(mentioned), min_size=1, max_size=3))
    asked = [clique for clique in asked if clique]
    others = [name for name in mentioned if not any(name in clique for clique in asked)]
    weights = {name: np.arange(float(distribution.domain[name])) for name in others[:2]}
    for name, values in weights.items():
        shape = [len(values) if other == name else 1 for other in names]
        table = table * values.reshape(shape)
    for result in extension.ask(asked, weights):
        expected = marginal(table, names, result.axes)
        np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=1e-9)


def draw_blocks(size: int, seed: int) -> st.SearchStrategy[blocks.Block]:
    """Every kind of block that fits an attribute of this size; random matrices go below zero."""
    rng = np.random.default_rng(seed)
    code = st.integers(0, size - 1)
    return st.one_of(
        st.just(blocks.Identity()),
        st.just(blocks.Total()),
        code.map(blocks.Point),
        st.sets(code, min_size=1).map(blocks.Subset),
        st.tuples(code, code).map(lambda ends: blocks.Range(min(ends), max(ends))),
        st.just(blocks.Prefix()),
        st.just(blocks.AllRanges()),
        st.just(blocks.Buckets(tuple(int(b) for b in np.arange(size) // 2))),
        st.just(blocks.WeightedSum()),
        st.just(blocks.Moments(2)),
        st.integers(1, 5).map(lambda rows: blocks.Matrix(rng.normal(size=(rows, size)))),
    )


@examples(200)
@given(MODELS, st.data())
def test_any_factored_query(drawn: strategies.Model, data: st.DataObject) -> None:
    """Any mix of blocks over any attributes equals their matrices on the dense table."""
    names, sizes = names_of(drawn), dict(drawn.sizes)
    asked = data.draw(strategies.clique(names))
    seed = data.draw(strategies.seeds())
    chosen = {name: data.draw(draw_blocks(sizes[name], seed)) for name in asked}
    found = made(drawn).answer(Kron(chosen))
    expected = marginal(dense(drawn), names, asked)
    for axis, (name, each) in enumerate(chosen.items()):
        matrix = each.matrix(sizes[name])
        expected = np.moveaxis(np.tensordot(expected, matrix, (axis, 1)), -1, axis)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * TOTAL)


@examples(80)
@given(MODELS, st.data())
def test_conditioning_is_a_slice(drawn: strategies.Model, data: st.DataObject) -> None:
    """The conditioned model is the dense table where the evidence holds, however little that is."""
    names, sizes = names_of(drawn), dict(drawn.sizes)
    known = data.draw(strategies.clique(names, max_size=2))
    codes = {
        name: sorted(data.draw(st.sets(st.integers(0, sizes[name] - 1), min_size=1)))
        for name in known
    }
    scores = brute.scores(drawn.sizes, drawn.potentials)
    kept = np.ones(scores.shape, dtype=np.bool_)
    for axis, name in enumerate(names):
        if name in codes:
            inside = np.isin(np.arange(sizes[name]), codes[name])
            kept &= inside.reshape([-1 if i == axis else 1 for i in range(len(names))])
    left = np.where(kept, scores, -np.inf)
    model = made(drawn)
    if np.isneginf(left).all():
        with pytest.raises(ImpossibleModel):
            model.condition(codes)
        return
    found = model.condition(codes)
    log_share = brute.log_sum_exp(left) - brute.log_sum_exp(scores)
    # Potentials of thousands cancel: what is left of their rounding is all that may differ.
    slack = 1e-12 * max(1.0, abs(scores[np.isfinite(scores)]).max())
    assert found.log_total == pytest.approx(math.log(TOTAL) + log_share, rel=1e-12, abs=slack)
    assert found.total == pytest.approx(TOTAL * math.exp(log_share), rel=1e-8)
    probabilities = np.exp(left - brute.log_sum_exp(left))
    for name in names:
        np.testing.assert_allclose(
            found.with_total(1.0).project((name,)).values,
            marginal(probabilities, names, (name,)),
            rtol=1e-8,
            atol=1e-8,
        )


@examples(60)
@given(ORDINARY, st.data())
def test_information(drawn: strategies.Model, data: st.DataObject) -> None:
    """Entropies, mutual information, log-probabilities and means, from the dense table."""
    names, model, table = names_of(drawn), made(drawn), dense(drawn)

    def entropy(asked: Clique) -> float:
        p = marginal(table, names, asked).reshape(-1) / TOTAL
        return -float((p[p > 0] * np.log(p[p > 0])).sum())

    left, right = (data.draw(strategies.clique(names, max_size=2)) for _ in range(2))
    assert model.entropy == pytest.approx(entropy(names), abs=1e-8)
    assert model.entropy_of(left) == pytest.approx(entropy(left), abs=1e-8)
    both = tuple(dict.fromkeys((*left, *right)))
    shared = entropy(left) + entropy(right) - entropy(both)
    assert model.mutual_information(left, right) == pytest.approx(shared, abs=1e-7)
    cells = np.indices(table.shape).reshape(len(names), -1)
    with np.errstate(divide="ignore"):
        expected = np.log(table.reshape(-1) / TOTAL)
    found = model.log_probability(dict(zip(names, cells, strict=True)))
    np.testing.assert_allclose(found, expected, atol=1e-8)
    best = model.most_probable()
    assert table[tuple(best[name] for name in names)] == pytest.approx(table.max())
    if len(names) > 1:
        number, group = names[0], names[1]
        joint = marginal(table, names, (group, number))
        with np.errstate(invalid="ignore"):
            means = joint @ np.arange(joint.shape[1]) / joint.sum(axis=1)
        np.testing.assert_allclose(model.conditional_mean(number, (group,)), means, atol=1e-8)


@examples(40)
@given(ORDINARY, st.data())
def test_samples_stay_on_the_support(drawn: strategies.Model, data: st.DataObject) -> None:
    """No record falls on a structural zero, whether drawn, rounded or given in part."""
    names, model, table = names_of(drawn), made(drawn), dense(drawn)
    seed = data.draw(strategies.seeds())
    fixed = data.draw(strategies.clique(names, max_size=2))
    records = model.sample(300, rng=seed)
    known = {name: records[name] for name in fixed}
    for each in (
        records,
        model.synthesize(300, rng=seed),
        model.sample(300, rng=seed, given=known),
        model.synthesize(300, rng=seed, given=known),
    ):
        assert tuple(each) == names
        assert (table[tuple(each[name] for name in names)] > 0).all()
    for each in (model.sample(given=known), model.synthesize(given=known)) if known else ():
        assert all((each[name] == column).all() for name, column in known.items())


def test_impossible_evidence_is_refused() -> None:
    """Nothing is left of a model when what is known cannot be."""
    domain = Domain({"a": 2, "b": 2})
    table = np.array([[0.0, -math.inf], [0.0, -math.inf]])
    model = Model.of_potentials(domain, [Factor(domain, table)])
    with pytest.raises(ImpossibleModel):
        model.condition({"b": 1})
    with pytest.raises(ImpossibleModel, match="got 2 whose combination of values has no mass"):
        model.sample(given={"b": [0, 1, 1]})
