"""The problem of one clique in a fit with records: compiled steps beside those in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from juncture.fit.loss import FitLoss
from juncture.fit.solvers.clique_problems import AnyQueries, Products, make_problem
from juncture.mechanisms.residual_planner import make_residual_query
from juncture.privacy.lattice import round_to_lattice
from juncture.tables.domain import Clique, Domain
from juncture.tables.layout import Layout, Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Matrix, Prefix, Total
from juncture.tables.queries.products import Kron, Query, bind

DOMAIN = Domain({"a": 2, "b": 5, "c": 12, "d": 1, "e": 30})
RNG = np.random.default_rng(3)
TOTAL = 700.0
# Contrasts as they are measured, in any order of columns; more answers than cells; other matrices.
CASES: list[tuple[Clique, Query]] = [
    (("a", "b"), make_residual_query(DOMAIN, ("a", "b"))),
    (("c", "b"), round_to_lattice(make_residual_query(DOMAIN, ("c", "b")), DOMAIN)[0]),
    (("e", "c"), make_residual_query(DOMAIN, ("c", "e"))),
    (("b", "c", "a"), make_residual_query(DOMAIN, ("a", "b", "c"))),
    (("b", "d"), Kron({"b": Matrix(RNG.normal(size=(9, 5))), "d": Total()})),
    (("c", "a"), Kron({"c": Prefix(), "a": Matrix(RNG.normal(size=(4, 2)))})),
    (("c",), Matrix(RNG.normal(size=(3, 12)))),
]


def make_loss(clique: Clique, query: Query, *, evenly: bool = True) -> FitLoss:
    """The loss of noisy answers about a random table of a clique."""
    operator = bind(query, DOMAIN.project(clique))
    truth = TOTAL * RNG.dirichlet(np.full(DOMAIN.size_of(clique), 0.5))
    stddev = np.full(operator.n_rows, 6.0) if evenly else RNG.uniform(2.0, 9.0, operator.n_rows)
    answers = operator.apply_flat(truth) + stddev * RNG.normal(size=operator.n_rows)
    measured = Measurement(clique, answers, stddev=stddev, query=query)
    return FitLoss(Layout(DOMAIN, [DOMAIN.canonical(clique)]), [measured], "l2")


def make_base(n: int) -> Vector:
    """What other cliques imply: some cells are empty."""
    base = RNG.dirichlet(np.full(n, 0.7))
    base[RNG.random(n) < 0.1] = 0.0
    return np.asarray(base / base.sum())


@pytest.mark.parametrize("evenly", [True, False])
@pytest.mark.parametrize(("clique", "query"), CASES)
def test_compiled_steps_are_those_in_numpy(clique: Clique, query: Query, *, evenly: bool) -> None:
    """Loss and balance are the same as in the solver for any queries, whatever the order."""
    loss = make_loss(clique, query, evenly=evenly)
    compiled, plain = make_problem(loss, clique), AnyQueries(loss.restrict(clique))
    assert isinstance(compiled, Products)
    counts = TOTAL * RNG.dirichlet(np.ones(loss.layout.size))
    assert compiled.loss(counts) == pytest.approx(loss.value(counts), rel=1e-9)
    assert compiled.expected == plain.expected
    base, guess = make_base(loss.layout.size), RNG.normal(0.0, 0.1, loss.layout.size)
    for tau in (0.003, 0.1):
        change = compiled.balance(base, guess, tau, TOTAL)
        assert np.allclose(change, plain.balance(base, guess, tau, TOTAL), rtol=0.0, atol=1e-7)


@pytest.mark.parametrize(("clique", "query"), CASES)
def test_loss_and_divergence_are_balanced(clique: Clique, query: Query) -> None:
    """In the end, the change of potentials is minus the slope over tau, at the counts it makes."""
    loss, tau = make_loss(clique, query), 1.0
    problem = make_problem(loss, clique)
    assert problem is not None
    base = make_base(loss.layout.size)
    change = np.zeros(len(base))
    for _ in range(500):  # each does some steps
        change = problem.balance(base, change, tau, TOTAL)
    weights = base * np.exp(np.where(base > 0, change - change[base > 0].max(), 0.0))
    slope = loss.value_and_gradient(TOTAL * weights / weights.sum())[1]
    left = (change + slope / tau)[base > 0]
    assert np.ptp(left) < 1e-3 * np.ptp(slope[base > 0] / tau)
    assert np.allclose(change[base == 0], -slope[base == 0] / tau, rtol=1e-6)


def test_large_matrices_are_not_written_out() -> None:
    """A column of many values keeps the solver that only multiplies."""
    domain = Domain({"a": 400, "b": 2})
    query = make_residual_query(domain, ("a", "b"))
    values = np.zeros(bind(query, domain.project(("a", "b"))).n_rows)
    measured = Measurement(("a", "b"), values, stddev=1.0, query=query)
    loss = FitLoss(Layout(domain, [("a", "b")]), [measured], "l2")
    assert isinstance(make_problem(loss, ("a", "b")), AnyQueries)


def test_no_room_is_made_for_more_than_fits() -> None:
    """Many answers on one axis, and many values on another: together they would take gigabytes."""
    domain = Domain({"a": 2, "b": 20_000})
    rows = np.linspace(-1.0, 1.0, 40_000).reshape(20_000, 2)
    query = Kron({"a": Matrix(rows), "b": Matrix(np.ones((1, 20_000)))})
    measured = Measurement(("a", "b"), np.zeros(20_000), stddev=1.0, query=query)
    loss = FitLoss(Layout(domain, [("a", "b")]), [measured], "l2")
    assert isinstance(make_problem(loss, ("a", "b")), AnyQueries)
