"""What Newton's method is made of, against sums over all records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.fit.loss import FitLoss
from juncture.fit.solvers.covariance import TreeCovariance
from juncture.fit.solvers.rows import Rows, count_rows
from juncture.tables.domain import Domain
from random_fits import FitProblem, random_problem
from strategies import examples

Array = NDArray[np.float64]
SEEDS = st.integers(0, 10**6)


def small_problem(seed: int) -> FitProblem:
    """A problem whose records can all be listed; its attributes are enough for several nodes."""
    return random_problem(seed, max_cells=200, max_size=10**4)


def grown_plan(problem: FitProblem) -> tuple[Plan, Plan]:
    """The plan of a fit, and the one that measures its maximal cliques too."""
    plan = Plan.build(problem.domain, [m.clique for m in problem.measurements])
    nodes = [node.clique for node in plan.nodes]
    return plan, Plan.build(problem.domain, [*plan.cliques, *nodes])


def answers_of_records(domain: Domain, rows: Rows) -> Array:
    """The answer of each row to each single record."""
    codes = np.indices(domain.shape).reshape(len(domain.shape), -1)
    pieces = []
    for block in rows.blocks:
        own = [codes[domain.positions[name]] for name in block.clique]
        cell = np.ravel_multi_index(own, domain.project(block.clique).shape)
        matrix = np.diag(block.matrix) if block.counts_cells else block.matrix
        pieces.append(matrix[:, cell])
    return np.vstack(pieces)


@examples(40)
@given(SEEDS)
def test_the_covariance_is_that_of_single_records(seed: int) -> None:
    """The matrix from the tree is the one that the list of all records gives."""
    problem = small_problem(seed)
    plan, grown = grown_plan(problem)
    oracle = Propagation(grown)
    rows = Rows(FitLoss(Propagation(plan).layout, problem.measurements, problem.loss))
    potentials = np.random.default_rng(seed).normal(size=oracle.layout.size)
    marginals = oracle.marginals(potentials, problem.total).marginals
    log = sum(
        (oracle.layout.factor(potentials, c).expand(problem.domain).values for c in grown.cliques),
        start=np.zeros(problem.domain.shape),
    ).reshape(-1)
    shares = np.exp(log - log.max())
    shares /= shares.sum()
    answers = answers_of_records(problem.domain, rows)
    centred = answers - (answers @ shares)[:, None]
    expected = problem.total * (centred * shares) @ centred.T
    scale = problem.total * np.sqrt(np.outer(*2 * [(answers**2) @ shares]))
    result = TreeCovariance(grown, rows.blocks).matrix(marginals, problem.total)
    assert np.all(np.abs(result - expected) <= 1e-12 * scale + 1e-300)


@examples(40)
@given(SEEDS)
def test_fewer_rows_say_the_same(seed: int) -> None:
    """The loss of the combined rows, with their constant, is the loss of the measurements."""
    problem = small_problem(seed)
    layout = Propagation(grown_plan(problem)[0]).layout
    loss = FitLoss(layout, problem.measurements, problem.loss)
    rows = Rows(loss)
    marginals = np.random.default_rng(seed).exponential(problem.total, layout.size)
    residuals = rows.residuals(marginals)
    squares, sizes = residuals[rows.squared], np.abs(residuals[~rows.squared])
    total = rows.constant + 0.5 * squares @ squares + np.sqrt(2.0) * sizes.sum()
    assert total == pytest.approx(loss.value(marginals), rel=1e-9)
    assert len(residuals) == count_rows(loss)[0] <= problem.n_answers


@examples(20)
@given(SEEDS)
def test_the_slope_is_that_of_the_rows(seed: int) -> None:
    """On tables of equal mass, multipliers times residuals change as their slope says."""
    problem = small_problem(seed)
    layout = Propagation(grown_plan(problem)[0]).layout
    rows = Rows(FitLoss(layout, problem.measurements, problem.loss))
    rng = np.random.default_rng(seed)
    multipliers, move = rng.normal(size=len(rows.goal)), rng.normal(size=layout.size)
    for clique in layout.cliques:
        view = layout.view(move, clique)
        view -= view.mean()
    change = rows.residuals(move) + rows.goal
    size = np.abs(multipliers) @ np.abs(change) + 1e-300
    assert abs(rows.adjoint(multipliers) @ move - multipliers @ change) <= 1e-9 * size
