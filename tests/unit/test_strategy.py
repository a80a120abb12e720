"""What HDMM measures: errors against traces of dense matrices, bounds and simulation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from juncture.errors import InvalidInput
from juncture.mechanisms.attribute_strategy import (
    gram,
    normalised_error,
    optimise_attribute,
    optimise_gram,
    p_identity,
    p_identity_error,
    trace_error,
)
from juncture.mechanisms.hdmm import HDMM, Estimation, Template
from juncture.mechanisms.least_squares import full_least_squares, local_least_squares
from juncture.mechanisms.marginal_strategy import (
    Spaces,
    marginals_error,
    optimise_marginals,
    residual_least_squares,
)
from juncture.mechanisms.strategy import Shares, divide_budget, optimise_product, optimise_union
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import AllRanges, Block, Identity, Prefix, Total
from juncture.tables.workload import Task, Workload

DOMAIN = Domain({"a": 2, "b": 3, "c": 4})


def dense(domain: Domain, task: Task) -> np.ndarray:
    """A task's matrix on the full table."""
    rows: np.ndarray = np.ones((1, 1))
    blocks = dict(zip(task.clique, task.blocks, strict=True))
    for name, size in domain.items():
        rows = np.kron(rows, blocks.get(name, Total()).matrix(size))
    return rows


@pytest.mark.parametrize("size", [5, 16])
def test_the_gradient_of_a_strategy(size: int) -> None:
    """Against finite differences, and the value against the trace of the matrix itself."""
    rng = np.random.default_rng(1)
    theta, target = rng.random((3, size)), gram(Prefix(), size)
    value, slope = p_identity_error(theta, target)
    assert value == pytest.approx(trace_error(p_identity(theta), target), rel=1e-9)
    for place in [(0, 0), (1, size - 1), (2, size // 2)]:
        moved = [theta.copy(), theta.copy()]
        moved[0][place] += 1e-6
        moved[1][place] -= 1e-6
        ends = [p_identity_error(each, target)[0] for each in moved]
        assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)


@pytest.mark.parametrize(("size", "published"), [(16, 105.8), (32, 314.4), (64, 906.4)])
def test_published_errors_of_prefixes_are_reached(size: int, published: float) -> None:
    """Within two percent of what the method's authors reach, and far below counting."""
    found = optimise_gram(gram(Prefix(), size), restarts=3, rows=max(1, size // 16))
    rows = optimise_gram(gram(Prefix(), size), restarts=3, rows=4)
    assert min(found.error, rows.error) <= 1.02 * published
    assert min(found.error, rows.error) < np.trace(gram(Prefix(), size))


def test_rows_that_say_nothing_are_left_out() -> None:
    """More rows than are of use: those kept are large enough to be measured on a lattice."""
    found = optimise_gram(gram(Prefix(), 40), restarts=1, rows=12)
    rows = found.block.matrix(40)[40:]
    assert 0 < len(rows) <= 12
    assert rows.max(axis=1).min() > 1e-3
    assert found.error == pytest.approx(
        trace_error(found.block.matrix(40), gram(Prefix(), 40)), rel=1e-9
    )


def test_plain_attributes_have_plain_strategies() -> None:
    """Counts are measured as counts, and totals as totals."""
    assert isinstance(optimise_attribute(Identity(), 7).block, Identity)
    assert optimise_attribute(Identity(), 7).error == 7
    assert isinstance(optimise_attribute(Total(), 7).block, Total)


def test_shares_minimise_the_total_error() -> None:
    """Against a grid, for both kinds of noise."""
    errors, sizes, rng = [1.0, 8.0, 27.0], [5.0, 1.0, 0.1], np.random.default_rng(0)
    for gaussian, power in ((False, 2), (True, 1)):
        for by in (Shares.TOTAL, Shares.RELATIVE):
            best = divide_budget(errors, by, gaussian=gaussian, sizes=sizes)
            assert sum(best) == pytest.approx(1.0)

            def whole(parts: Sequence[float], by: Shares = by, power: int = power) -> float:
                squared = [e / s**power for e, s in zip(errors, parts, strict=True)]
                if by is Shares.TOTAL:
                    return sum(squared)
                return float(sum(np.sqrt(e * n) for e, n in zip(squared, sizes, strict=True)))

            for other in rng.dirichlet(np.ones(3), 500):
                assert whole(other) >= whole(best) - 1e-9
    assert divide_budget(errors, Shares.EQUAL, gaussian=False) == [1 / 3] * 3


def test_least_squares_on_the_full_table() -> None:
    """Against the pseudo-inverse of the stacked matrix."""
    rng = np.random.default_rng(0)
    domain = Domain({"a": 3, "b": 2})
    measured = [
        Measurement(("a",), rng.normal(size=3), stddev=2.0),
        Measurement(("b", "a"), rng.normal(size=6), stddev=1.0),
        Measurement(("b",), rng.normal(size=2), stddev=0.5, query=Prefix()),
    ]
    rows, goal = [], []
    for m in measured:
        part = domain.project(m.clique)
        columns = []
        for cell in np.eye(6):
            table = Factor(domain, cell.reshape(3, 2)).project(part)
            columns.append(m.operator(domain).apply(table.values) / m.stddev)
        rows.append(np.array(columns).T)
        goal.append(m.values / m.stddev)
    expected = np.linalg.pinv(np.vstack(rows)) @ np.concatenate(goal)
    found = full_least_squares(domain, measured).values.reshape(-1)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_the_gradient_of_a_normalised_matrix() -> None:
    """Against finite differences, and the value against the trace of the matrix itself."""
    rng = np.random.default_rng(2)
    free, target = rng.normal(size=(6, 6)), gram(Prefix(), 6)
    value, slope = normalised_error(free, target)
    scaled = free / np.linalg.norm(free, axis=0)
    assert value == pytest.approx(np.trace(np.linalg.inv(scaled.T @ scaled) @ target))
    for place in [(0, 0), (3, 5), (5, 2)]:
        moved = [free.copy(), free.copy()]
        moved[0][place] += 1e-6
        moved[1][place] -= 1e-6
        ends = [normalised_error(each, target)[0] for each in moved]
        assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4)


@pytest.mark.parametrize("block", [Prefix(), AllRanges()], ids=["prefix", "ranges"])
@pytest.mark.parametrize("size", [8, 40])
def test_gaussian_strategies_come_near_the_bound(block: Block, size: int) -> None:
    """No strategy errs less than the squared sum of singular values over the size."""
    target = gram(block, size)
    bound = np.sqrt(np.maximum(np.linalg.eigvalsh(target), 0.0)).sum() ** 2 / size
    found = optimise_attribute(block, size, gaussian=True)
    assert bound * (1 - 1e-9) <= found.error <= bound * 1.1
    norms = np.linalg.norm(found.block.matrix(size), axis=0)
    assert norms == pytest.approx(np.ones(size))
    own = np.linalg.inv(found.block.matrix(size).T @ found.block.matrix(size))
    assert found.error == pytest.approx(np.trace(own @ target))


@pytest.mark.slow
def test_large_gaussian_attributes_have_a_strategy_too() -> None:
    """Beyond the size of square matrices, one of few rows: valid, and better than counting."""
    found = optimise_attribute(Prefix(), 260, gaussian=True, restarts=1)
    assert np.linalg.norm(found.block.matrix(260), axis=0).max() == pytest.approx(1.0)
    assert found.error < 0.5 * np.trace(gram(Prefix(), 260))


@pytest.mark.slow
@pytest.mark.parametrize("gaussian", [False, True], ids=["laplace", "gaussian"])
def test_one_product_for_several_tasks(gaussian: bool) -> None:
    """Its errors are the traces of the dense product, and it beats measuring them apart."""
    domain = Domain({"a": 5, "b": 40})
    tasks = (
        Task(("a", "b"), (Identity(), Prefix())),
        Task(("b", "a"), (AllRanges(), Identity())),
    )
    workload = Workload(domain, tasks)
    found = optimise_product(workload, [0, 1], gaussian=gaussian)
    strategy = np.kron(*(b.matrix(s) for b, s in zip(found.blocks, (5, 40), strict=True)))
    norm = 2 if gaussian else 1
    assert np.linalg.norm(strategy, norm, axis=0).max() == pytest.approx(1.0)
    inverse = np.linalg.pinv(strategy.T @ strategy)
    for task, error in zip(tasks, found.errors, strict=True):
        own = dense(domain, task)
        assert error == pytest.approx(np.trace(inverse @ own.T @ own), rel=1e-6)
    counted = sum(float((dense(domain, t) ** 2).sum()) for t in tasks)
    assert found.error < counted
    union = optimise_union(workload, gaussian=gaussian, rule=Shares.TOTAL)
    assert len(union.queries) == 1
    assert [part.share for part in union.queries] == [1.0]


@pytest.mark.slow
def test_tasks_that_want_different_things_are_measured_apart() -> None:
    """Where one product serves two tasks worse than two do, there are two."""
    domain = Domain({"a": 40, "b": 40})
    totals = (
        Task(("a", "b"), (Identity(), Total())),
        Task(("a", "b"), (Total(), Identity())),
    )
    union = optimise_union(Workload(domain, totals), gaussian=False, rule=Shares.TOTAL)
    assert len(union.queries) == 2
    assert union.expected_squared_errors([2.0, 1.0]) == pytest.approx([160.0, 40.0])


def test_marginal_errors_are_traces_of_dense_matrices() -> None:
    """On 2 x 3 x 4 cells, for any shares, tasks with prefixes included."""
    tasks = (
        Task(("a", "b"), (Identity(), Prefix())),
        Task(("c", "b"), (AllRanges(), Identity())),
        Task(("c",), (Identity(),)),
    )
    workload = Workload(DOMAIN, tasks)
    spaces, rng = Spaces.of(workload), np.random.default_rng(0)
    goal = spaces.dimensions * spaces.eigenvalues(spaces.weights_of(tasks))
    amounts = rng.random(len(spaces.sets))
    stacked = np.vstack([
        amount * dense(DOMAIN, Task(each, (Identity(),) * len(each)))
        for amount, each in zip(amounts, spaces.sets, strict=True)
    ])  # fmt: skip
    whole = np.vstack([dense(DOMAIN, task) for task in tasks])
    inverse = np.linalg.pinv(stacked.T @ stacked)
    trace = float(np.trace(inverse @ whole.T @ whole))
    for gaussian, share in ((False, amounts), (True, amounts**2)):
        value, slope = marginals_error(spaces, goal, np.log(share), gaussian=gaussian)
        scale = share.sum() if gaussian else share.sum() ** 2
        unit = share.max() if gaussian else share.max() ** 2
        assert value == pytest.approx(trace * scale, rel=1e-8), (gaussian, unit)
        for place in (0, 3, len(share) - 1):
            ends = []
            for step in (1e-6, -1e-6):
                logs = np.log(share)
                logs[place] += step
                ends.append(marginals_error(spaces, goal, logs, gaussian=gaussian)[0])
            assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("k", [1, 2])
def test_gaussian_marginals_are_optimal(k: int) -> None:
    """The problem is convex: no marginal's share is worth more than what all are worth together.

    And no linear strategy errs less than the squared sum of singular values over the cells.
    """
    workload = Workload.all_marginals(DOMAIN, k)
    whole = np.vstack([dense(DOMAIN, task) for task in workload.tasks])
    bound = np.linalg.svd(whole, compute_uv=False).sum() ** 2 / DOMAIN.size
    found = optimise_marginals(workload, gaussian=True)
    stddevs = [part.share**-0.5 for part in found.queries]
    error = sum(found.expected_squared_errors(stddevs))
    assert sum(part.share for part in found.queries) == pytest.approx(1.0)
    assert bound <= error <= 1.1 * bound
    strategy = sum(
        part.share * _dense_gram(Task(part.clique, (Identity(),) * len(part.clique)))
        for part in found.queries
    )
    inverse = np.linalg.pinv(np.asarray(strategy))
    assert error == pytest.approx(np.trace(inverse @ whole.T @ whole))
    curved = inverse @ whole.T @ whole @ inverse
    for each in Spaces.of(workload).sets:
        own = _dense_gram(Task(each, (Identity(),) * len(each)))
        assert np.trace(curved @ own) <= 1.01 * error


def _dense_gram(task: Task) -> np.ndarray:
    rows = dense(DOMAIN, task)
    return np.asarray(rows.T @ rows)


def test_weighted_marginals_beat_a_product_for_each_clique() -> None:
    """For all pairs of six attributes with Laplace noise, by total error."""
    domain = Domain(dict.fromkeys("abcdef", 4))
    workload = Workload.all_marginals(domain, 2)
    union = HDMM(Budget(epsilon=1.0), shares=Shares.TOTAL)
    marginals = HDMM(Budget(epsilon=1.0), template=Template.MARGINALS)
    best = HDMM(Budget(epsilon=1.0), shares=Shares.TOTAL, template=Template.BEST)
    errors = [sum(each.expected_squared_errors(workload)) for each in (union, marginals, best)]
    assert errors[1] < errors[0]
    assert errors[2] == pytest.approx(errors[1])


def test_least_squares_of_marginals_without_the_full_table() -> None:
    """The same as least squares on the full table, in any order of attributes."""
    rng = np.random.default_rng(4)
    sets = [("a", "b"), ("c", "b"), ("a",), (), ("b", "c")]
    measured = [
        Measurement(s, rng.normal(size=DOMAIN.size_of(s)), stddev=float(rng.uniform(1, 3)))
        for s in sets
    ]
    full = full_least_squares(DOMAIN, measured)
    asked = [("b", "a"), ("b", "c"), ("a",), ()]
    found = residual_least_squares(DOMAIN, measured, asked)
    for clique in asked:
        np.testing.assert_allclose(found[clique].values, full.project(clique).values, atol=1e-6)
    with pytest.raises(InvalidInput, match="must hold a marginal with"):
        residual_least_squares(DOMAIN, measured, [("a", "c")])


def test_local_least_squares_of_several_measurements() -> None:
    """Those of one clique are joined, each by its own noise."""
    rng = np.random.default_rng(5)
    measured = [
        Measurement(("a", "b"), rng.normal(size=6), stddev=1.0),
        Measurement(("b", "a"), rng.normal(size=6), stddev=2.0),
        Measurement(("c",), rng.normal(size=4), stddev=2.0),
    ]
    found = local_least_squares(DOMAIN, measured)
    turned = measured[1].values.reshape(3, 2).T
    mean = (measured[0].values.reshape(2, 3) + turned / 4.0) / 1.25
    np.testing.assert_allclose(found["a", "b"].values, mean, atol=1e-7)
    np.testing.assert_allclose(found["c",].values, measured[2].values)


FORMS = [
    HDMM(Budget(epsilon=0.1), shares=Shares.TOTAL),
    HDMM(Budget(epsilon=0.1), template=Template.MARGINALS, restarts=1),
    HDMM(Budget(rho=0.02), shares=Shares.TOTAL),
    HDMM(Budget(rho=0.02), template=Template.MARGINALS, restarts=1),
]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", FORMS, ids=["union", "marginals", "union-g", "marginals-g"])
@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS)
def test_expected_error_is_what_simulation_shows(
    mechanism: HDMM, neighbours: Neighbours, tmp_path: Path
) -> None:
    """The formula, task by task, against many runs of local least squares."""
    from dataclasses import replace  # noqa: PLC0415

    tasks = (
        Task(("a", "c"), (Identity(), AllRanges())),
        Task(("b", "c"), (Identity(), Identity())),
    )
    workload = Workload(DOMAIN, tasks)
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, size, 500) for name, size in DOMAIN.items()}
    source = CodedTable(DOMAIN, columns)
    true = [
        task.operator(DOMAIN).apply(table.values)
        for task, table in zip(tasks, source.exact_counts(workload.cliques), strict=True)
    ]
    local = replace(mechanism, estimation=Estimation.LOCAL)
    squared = np.zeros((250, 2))
    for run, row in enumerate(squared):
        ledger = Ledger.create(tmp_path / f"{run}", Budget(epsilon=1e9, delta=0.5), neighbours)
        curator = SimulatedCurator(source, ledger, rng=rng)
        answers = local.run(curator, workload).answers(workload)
        row[:] = [((a - t) ** 2).sum() for a, t in zip(answers, true, strict=True)]
    expected = mechanism.expected_squared_errors(workload, neighbours)
    # Eight standard errors: a false alarm in less than one of a million seeds.
    slack = 8.0 * squared.std(axis=0) / np.sqrt(len(squared))
    assert (np.abs(squared.mean(axis=0) - expected) <= slack).all()
    assert (slack < 0.5 * np.array(expected)).all()


def test_subsets_of_many_attributes_stay_few() -> None:
    """Fifty attributes in pairs: no more sets than pairs, singles and the empty one."""
    domain = Domain({f"x{i}": 3 for i in range(50)})
    workload = Workload.all_marginals(domain, 2)
    assert len(Spaces.of(workload).sets) == len(list(combinations(range(50), 2))) + 50 + 1
    found = optimise_marginals(workload, gaussian=True, restarts=1)
    assert sum(part.share for part in found.queries) == pytest.approx(1.0)
