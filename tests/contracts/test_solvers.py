"""Every solver reaches the optimum that an independent solver finds on the dense table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize, nnls

from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.errors import InvalidInput
from juncture.fit.estimation import Estimate, estimate
from juncture.fit.loss import FitLoss
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.dual_averaging import DualAveraging, clique_constant, record_constant
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.fit.solvers.interior_gradient import InteriorGradient
from juncture.fit.solvers.mirror_descent import MirrorDescent
from juncture.fit.solvers.newton import Newton
from juncture.fit.solvers.problem import Iterate, Iterates, Problem, Solver
from juncture.fit.solvers.proximal import Proximal
from juncture.fit.solvers.sequential import Sequential
from juncture.fit.solvers.smoothed import Smoothed
from juncture.fit.summary import Status
from juncture.private.samples import adult_codes, adult_domain
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries import blocks
from juncture.tables.queries.products import Kron, Query, bind

Array = NDArray[np.float64]
TOTAL = 200.0
DOMAIN = Domain({"a": 3, "b": 2, "c": 3, "d": 2})


@dataclass(frozen=True)
class Case:
    """Cliques with queries, and how noisy their answers are."""

    name: str
    queries: tuple[tuple[tuple[str, ...], Query], ...]
    stddevs: tuple[float, ...]

    def __str__(self) -> str:
        """Give the name, which pytest shows."""
        return self.name


def plain(*cliques: str) -> tuple[tuple[tuple[str, ...], Query], ...]:
    """Cliques written as letters, each cell counted."""
    return tuple((tuple(clique), blocks.Identity()) for clique in cliques)


CASES = [
    Case("chain", plain("ab", "bc", "cd"), (3.0, 3.0, 3.0)),
    Case("cycle", plain("ab", "bc", "cd", "da"), (5.0, 5.0, 5.0, 5.0)),
    Case("unequal noise", plain("abc", "cd", "a"), (1.0, 20.0, 4.0)),
    Case("repeated and nested", plain("ab", "ba", "b", "d"), (3.0, 9.0, 2.0, 5.0)),
    Case(
        "prefixes",
        ((("a", "c"), Kron({"a": blocks.Prefix(), "c": blocks.Prefix()})), *plain("bd")),
        (4.0, 4.0),
    ),
    Case(
        "random queries",
        ((("c", "a"), blocks.Matrix(np.random.default_rng(5).normal(size=(7, 9)))), *plain("ab")),
        (2.0, 2.0),
    ),
]
ADULT_CLIQUES = [
    ("age", "sex"),
    ("sex", "hours-per-week"),
    ("age", "education-num"),
    ("occupation", "relationship", "sex"),
    ("occupation", "education-num"),
]
LAPLACE = [
    Case("chain", plain("ab", "bc", "cd"), (3.0, 3.0, 3.0)),
    Case("cycle, unequal noise", plain("ab", "bc", "cd", "da"), (1.0, 9.0, 4.0, 5.0)),
    CASES[4],
    CASES[5],
]
SOLVERS: list[tuple[Solver, float]] = [
    (Accelerated(), 1e-7),
    (DualAveraging(), 1e-3),
    (MirrorDescent(), 1e-2),
    (InteriorGradient(), 1e-3),
    (Sequential(Accelerated(), Proximal()), 1e-7),
    (Newton(), 1e-7),
]


def measured(case: Case, laplace: tuple[bool, ...] = (False,) * 9) -> list[Measurement]:
    """Noisy answers about a random table."""
    rng = np.random.default_rng(7)
    table = rng.multinomial(int(TOTAL), rng.dirichlet(np.ones(DOMAIN.size) * 0.3))
    found = []
    for (clique, query), stddev, heavy in zip(case.queries, case.stddevs, laplace, strict=False):
        answers = matrix_of(clique, query) @ table
        noisy = answers + rng.normal(size=len(answers)) * stddev
        noise = "laplace" if heavy else "gaussian"
        found.append(Measurement(clique, noisy, stddev=stddev, query=query, noise=noise))
    return found


def matrix_of(clique: tuple[str, ...], query: Query) -> Array:
    """The query on the full table, a column for each record, one record at a time."""
    part = DOMAIN.project(clique)
    operator, columns = bind(query, part), []
    for record in product(*map(range, DOMAIN.shape)):
        one = np.zeros(part.shape)
        one[tuple(record[DOMAIN.positions[name]] for name in clique)] = 1.0
        columns.append(operator.apply(one))
    return np.array(columns).T


def optimum(measurements: list[Measurement]) -> float:
    """The least loss over all tables with the total, by active sets on the dense table."""
    rows = [matrix_of(m.clique, m.query) / m.stddev for m in measurements]
    goals = [m.values / m.stddev for m in measurements]
    heavy = 1e5
    matrix = np.vstack([*rows, np.full((1, DOMAIN.size), heavy)])
    table, _ = nnls(matrix, np.concatenate([*goals, [heavy * TOTAL]]))
    table *= TOTAL / table.sum()
    pairs = zip(rows, goals, strict=True)
    return sum(0.5 * float(np.sum((r @ table - g) ** 2)) for r, g in pairs)


def least_likelihood(measurements: list[Measurement]) -> float:
    """The least negative log-likelihood, absolute terms by slack variables, by SLSQP or HiGHS."""
    rows = [matrix_of(m.clique, m.query) / m.stddev for m in measurements]
    goals = [m.values / m.stddev for m in measurements]
    heavy = [str(m.noise) == "laplace" for m in measurements]
    kinked = np.vstack([r for r, h in zip(rows, heavy, strict=True) if h])
    target = np.concatenate([g for g, h in zip(goals, heavy, strict=True) if h])
    n, k = DOMAIN.size, len(target)
    cost = np.concatenate([np.zeros(n), np.full(k, math.sqrt(2.0))])
    sides = np.block([[kinked, -np.eye(k)], [-kinked, -np.eye(k)]])
    limits = np.concatenate([target, -target])
    whole = np.concatenate([np.ones(n), np.zeros(k)])
    if all(heavy):
        found = linprog(cost, A_ub=sides, b_ub=limits, A_eq=whole[None], b_eq=[TOTAL])
        return float(found.fun)
    square = np.vstack([r for r, h in zip(rows, heavy, strict=True) if not h])
    centre = np.concatenate([g for g, h in zip(goals, heavy, strict=True) if not h])

    def objective(v: Array) -> tuple[float, Array]:
        error = square @ v[:n] - centre
        slope = np.concatenate([square.T @ error, np.zeros(k)])
        return float(cost @ v + 0.5 * error @ error), cost + slope

    start = np.concatenate([np.full(n, TOTAL / n), np.full(k, 1e3)])
    constraints = [
        {"type": "eq", "fun": lambda v: whole @ v - TOTAL, "jac": lambda _: whole},
        {"type": "ineq", "fun": lambda v: limits - sides @ v, "jac": lambda _: -sides},
    ]
    found = minimize(
        objective, start, jac=True, method="SLSQP", bounds=[(0, None)] * (n + k),
        constraints=constraints, options={"ftol": 1e-13, "maxiter": 2000},
    )  # fmt: skip
    return float(found.fun)


def fitted(case: Case, solver: Solver) -> Estimate:
    """A long fit."""
    return estimate(
        DOMAIN, measured(case), total=TOTAL, solver=solver, tolerance=1e-9, max_steps=20_000
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "accuracy"),
    SOLVERS,
    ids=["accelerated", "dual", "mirror", "interior", "relay", "newton"],
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_optimum_is_reached(case: Case, solver: Solver, accuracy: float) -> None:
    """The loss is that of the independent solver, up to the accuracy the method can give."""
    best = optimum(measured(case))
    assert fitted(case, solver).summary.loss == pytest.approx(best, rel=accuracy, abs=accuracy)


@pytest.mark.slow
@pytest.mark.parametrize("laplace", [(True,) * 4, (True, False, True, False)], ids=["l1", "mixed"])
@pytest.mark.parametrize("case", LAPLACE, ids=str)
def test_the_likelihood_of_laplace_noise(case: Case, laplace: tuple[bool, ...]) -> None:
    """Absolute and mixed losses reach what linear programming or SLSQP finds, certified."""
    measurements = measured(case, laplace)
    result = estimate(
        DOMAIN,
        measurements,
        total=TOTAL,
        loss="likelihood",
        tolerance=1e-8,
        max_steps=30_000,
    )
    best = least_likelihood(measurements)
    assert result.summary.loss == pytest.approx(best, rel=1e-6)
    assert best * (1 - 1e-5) <= result.summary.lower_bound <= best * (1 + 1e-7)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_certificate_is_valid(case: Case) -> None:
    """The certified bound is never above the true optimum, and the loss never below it."""
    best, summary = optimum(measured(case)), fitted(case, Accelerated()).summary
    assert summary.lower_bound <= best * (1 + 1e-7) + 1e-7
    assert summary.loss >= best * (1 - 1e-6) - 1e-6
    assert summary.gap >= summary.loss - best - 1e-6
    assert math.isfinite(summary.lower_bound)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_dual_certifies_tightly(case: Case) -> None:
    """The proximal method's bound meets the optimum, from below."""
    solver = Sequential(Accelerated(), Proximal())
    best, summary = optimum(measured(case)), fitted(case, solver).summary
    assert best * (1 - 1e-5) - 1e-5 <= summary.lower_bound <= best * (1 + 1e-7) + 1e-7
    assert summary.loss == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_the_dual_respects_impossible_cells() -> None:
    """A certificate with structural zeros is that of the smaller polytope."""
    impossible = np.zeros((2, 3), dtype=bool)
    impossible[0, 1] = impossible[1, 2] = True
    summary = estimate(
        DOMAIN, measured(CASES[0]), total=TOTAL, constraints={("b", "c"): impossible},
        solver=Sequential(Accelerated(), Proximal()), tolerance=1e-9, max_steps=20_000,
    ).summary  # fmt: skip
    assert summary.lower_bound > optimum(measured(CASES[0])) * 1.01
    assert summary.gap <= 1e-5 * summary.loss


def test_a_method_that_ends_by_itself_is_slow_without_a_proof() -> None:
    """Only the rule for stopping at the noise says that noise is what is left."""
    result = estimate(
        DOMAIN, measured(LAPLACE[0], (True,) * 4), total=TOTAL, loss="l1", tolerance=0.0,
        solver=Smoothed(patience=1000), max_steps=100_000,
    )  # fmt: skip
    assert result.summary.gap > 0.5 * result.summary.loss
    assert result.status is Status.SLOW


@dataclass(frozen=True)
class PassedOn:
    """A solver that shows the points of another, and counts them."""

    inner: Solver
    seen: list[float]
    patience: int = 10

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """Pass on the points and the reason."""
        iterates = self.inner.iterates(problem, potentials)
        while True:
            try:
                iterate = next(iterates)
            except StopIteration as end:
                return Status(end.value)
            self.seen.append(iterate.candidate.loss)
            yield iterate


@pytest.mark.parametrize(
    "wrapped",
    [
        PassedOn(EarlyStopping(), []),
        Sequential(Accelerated(), EarlyStopping()),
        Sequential(MirrorDescent(), PassedOn(EarlyStopping(), [])),
        PassedOn(Sequential(Accelerated(), EarlyStopping()), []),
    ],
    ids=["wrapped", "last of two", "wrapped, last of two", "last of two, wrapped"],
)
def test_a_wrapped_solver_still_says_why_it_ends(wrapped: Solver) -> None:
    """Stopping at the noise keeps its status and its model, whatever is around it."""
    given = measured(CASES[1])
    alone = estimate(DOMAIN, given, total=TOTAL, solver=EarlyStopping(), tolerance=1e-9)
    result = estimate(DOMAIN, given, total=TOTAL, solver=wrapped, tolerance=1e-9, max_steps=50_000)
    assert alone.status is result.status is Status.AT_NOISE
    np.testing.assert_array_equal(result.model.marginals, alone.model.marginals)
    assert result.summary.loss == alone.summary.loss


def test_the_last_of_two_solvers_says_why_it_ends() -> None:
    """What ended the first of them is not the reason for the whole."""
    solver = Sequential(EarlyStopping(), Smoothed(patience=1000))
    result = estimate(
        DOMAIN, measured(CASES[1]), total=TOTAL, solver=solver, tolerance=0.0, max_steps=100_000
    )
    assert result.status is Status.SLOW


def test_a_solver_must_say_why_it_ends() -> None:
    """A generator that simply ends is refused, and told what to return."""

    class Silent:
        patience = 1

        def iterates(self, problem: Problem, potentials: Vector) -> Any:
            yield Iterate(problem.evaluate(potentials))

    with pytest.raises(InvalidInput, match="`solver` must return a Status.*got None"):
        estimate(DOMAIN, measured(CASES[1]), total=TOTAL, solver=Silent())


def test_the_split_noise_is_repeatable() -> None:
    """A seed, or a generator in the same state, gives the same model; other seeds, another."""
    models = [
        estimate(DOMAIN, measured(CASES[1]), total=TOTAL, solver=EarlyStopping(rng=rng)).model
        for rng in (3, 3, 4, np.random.default_rng(3), np.random.default_rng(3), None)
    ]
    first, same, other, drawn, redrawn, fresh = (model.marginals for model in models)
    np.testing.assert_array_equal(first, same)
    np.testing.assert_array_equal(drawn, redrawn)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, drawn)  # a seed is combined with the measured values
    assert fresh.sum() == pytest.approx(first.sum())


def test_the_dual_needs_measurements() -> None:
    """A loss that is a function has no multipliers."""

    def nothing(marginals: Any) -> tuple[float, Any]:
        return 0.0, {clique: table * 0.0 for clique, table in marginals.items()}

    for solver in (Newton(), Proximal(), Smoothed()):
        with pytest.raises(InvalidInput, match="`loss` must be made of measurements"):
            estimate(DOMAIN, measured(CASES[0]), total=TOTAL, loss=nothing, solver=solver)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_potentials_belong_to_the_marginals(case: Case) -> None:
    """The dense table of the returned potentials has the returned marginals and entropy."""
    model = fitted(case, Accelerated()).model
    log_table = np.zeros(DOMAIN.shape)
    for clique in model.cliques:
        potential = model.layout.factor(model.potentials, clique)
        log_table = log_table + potential.expand(DOMAIN).values
    weights = np.exp(log_table - log_table.max())
    weights /= weights.sum()
    for clique in model.cliques:
        dropped = tuple(i for i, name in enumerate(DOMAIN) if name not in clique)
        expected = TOTAL * weights.sum(axis=dropped)
        np.testing.assert_allclose(model.project(clique).values, expected, atol=1e-8)
    positive = weights[weights > 0]
    assert model.entropy == pytest.approx(-np.sum(positive * np.log(positive)), abs=1e-8)


def test_impossible_cells_stay_empty() -> None:
    """Structural zeros have no mass, and the optimum is that of the table without them."""
    impossible = np.zeros((2, 3), dtype=bool)
    impossible[0, 1] = impossible[1, 2] = True
    measurements = measured(CASES[0])
    model = estimate(
        DOMAIN, measurements, total=TOTAL, constraints={("b", "c"): impossible}, tolerance=1e-9
    ).model
    found = model.project(("b", "c")).values
    assert (found[impossible] == 0).all()
    assert found.sum() == pytest.approx(TOTAL)
    allowed = np.broadcast_to(~impossible[None, :, :, None], DOMAIN.shape).reshape(-1)
    rows = np.vstack([matrix_of(m.clique, m.query) / m.stddev for m in measurements])
    goal = np.concatenate([m.values / m.stddev for m in measurements])
    heavy = np.full((1, int(allowed.sum())), 1e5)
    table, _ = nnls(np.vstack([rows[:, allowed], heavy]), np.append(goal, 1e5 * TOTAL))
    expected = rows[:, allowed] @ table
    answers = [(m.operator(DOMAIN).apply(model.project(m.clique).values)) for m in measurements]
    reached = np.concatenate([a / m.stddev for a, m in zip(answers, measurements, strict=True)])
    np.testing.assert_allclose(reached, expected, atol=1e-2)


def test_bad_constraints_are_refused() -> None:
    """A table of numbers, or of another shape, is not a mask."""
    for mask in (np.zeros((2, 3)), np.zeros((3, 2), dtype=bool)):
        with pytest.raises(InvalidInput, match="`constraints` must be true-or-false tables"):
            estimate(DOMAIN, measured(CASES[0]), total=TOTAL, constraints={("b", "c"): mask})


def test_a_start_of_another_structure_is_taken_up() -> None:
    """With one more measurement, starting from the last model takes fewer calls."""
    measurements = measured(CASES[1])
    before = estimate(DOMAIN, measurements[:3], total=TOTAL).model
    cold = estimate(DOMAIN, measurements, total=TOTAL)
    warm = estimate(DOMAIN, measurements, total=TOTAL, start=before)
    assert warm.trace[0][1] < cold.trace[0][1]
    assert warm.summary.loss == pytest.approx(cold.summary.loss, rel=0.01)


@pytest.mark.parametrize("max_steps", [1, 2, 5, 40])
@pytest.mark.parametrize("solver", [solver for solver, _ in SOLVERS], ids=str)
def test_running_out_of_steps_is_a_status(solver: Solver, max_steps: int) -> None:
    """With few steps the status says so and advises more; the model is a model all the same."""
    result = estimate(
        DOMAIN, measured(CASES[1]), total=TOTAL, solver=solver, max_steps=max_steps, tolerance=0.0
    )
    assert result.status is Status.OUT_OF_STEPS
    assert "Raise `max_steps`" in result.status.advice
    assert result.model.project(("a",)).values.sum() == pytest.approx(TOTAL)


def test_no_steps_are_refused() -> None:
    """A fit without any oracle call has no model to show."""
    with pytest.raises(InvalidInput, match="`max_steps` must be at least 1; got 0"):
        estimate(DOMAIN, measured(CASES[1]), max_steps=0)


@pytest.mark.parametrize("tolerance", [-1e-3, math.nan])
def test_negative_tolerances_are_refused(tolerance: float) -> None:
    """No gap and no progress is below a negative number."""
    with pytest.raises(InvalidInput, match="`tolerance` must not be negative"):
        estimate(DOMAIN, measured(CASES[1]), tolerance=tolerance)


def test_the_trace_falls_to_the_loss() -> None:
    """The trace has a point for each cycle, in order of calls, and ends at the fit's own loss."""
    result = estimate(DOMAIN, measured(CASES[1]), total=TOTAL, tolerance=1e-6)
    calls, losses = zip(*result.trace, strict=True)
    assert len(calls) > 1
    assert list(calls) == sorted(set(calls))
    assert list(losses) == sorted(losses, reverse=True)
    assert (calls[-1], losses[-1]) == (result.summary.oracle_calls, result.summary.loss)


def test_unequal_noise_is_worth_respecting() -> None:
    """Fits that know the noise scales are nearer to the truth than fits that ignore them."""
    rng, errors = np.random.default_rng(3), {True: 0.0, False: 0.0}
    for _ in range(10):
        table = rng.multinomial(500, rng.dirichlet(np.ones(DOMAIN.size)))
        parts = [
            (tuple(clique), stddev) for clique, stddev in (("ab", 1.0), ("bc", 30.0), ("ab", 30.0))
        ]
        truth = {c: matrix_of(c, blocks.Identity()) @ table for c, _ in parts}
        noisy = [(c, truth[c] + rng.normal(size=len(truth[c])) * s, s) for c, s in parts]
        for knows in errors:
            given = [Measurement(c, y, stddev=s if knows else 10.0) for c, y, s in noisy]
            model = estimate(DOMAIN, given, total=500.0).model
            errors[knows] += sum(
                float(np.abs(model.project(c).values.reshape(-1) - truth[c]).sum()) for c in truth
            )
    assert errors[True] < 0.8 * errors[False]


def test_no_measurements_are_refused() -> None:
    """There is nothing to fit without measurements."""
    with pytest.raises(InvalidInput, match="`measurements` must not be empty"):
        estimate(DOMAIN, [])


def test_a_custom_loss_is_fitted() -> None:
    """The squared loss written as a function of factors gives the built-in one's model."""
    given = measured(CASES[0])

    def squares(marginals: Any) -> tuple[float, Any]:
        errors = {
            m.clique: marginals[m.clique]
            - Factor(DOMAIN.project(m.clique), m.values.reshape(DOMAIN.project(m.clique).shape))
            for m in given
        }
        return (
            sum(float((error * error).sum()) / 18.0 for error in errors.values()),
            {clique: error / 9.0 for clique, error in errors.items()},
        )

    ours = estimate(DOMAIN, given, total=TOTAL, tolerance=1e-8)
    custom = estimate(DOMAIN, given, total=TOTAL, tolerance=1e-8, loss=squares)
    assert custom.summary.loss == pytest.approx(ours.summary.loss, rel=1e-6)


def test_the_constants_bound_the_curvature() -> None:
    """Both constants of dual averaging are at least the loss's curvature in their geometry."""
    for case in CASES:
        given = measured(case)
        oracle = Propagation(Plan.build(DOMAIN, [m.clique for m in given]))
        loss = FitLoss(oracle.layout, given, "l2")
        rows = np.vstack([matrix_of(m.clique, m.query) / m.stddev for m in given])
        assert record_constant(loss) >= (rows**2).sum(axis=0).max() * (1 - 1e-12)
        for node in oracle.plan.nodes:
            hosted = [m for m in given if DOMAIN.canonical(m.clique) in node.measured]
            if hosted:
                part = np.vstack([matrix_of(m.clique, m.query) / m.stddev for m in hosted])
                inside = DOMAIN.size_of(node.clique) / DOMAIN.size
                exact = np.linalg.norm(part, 2) ** 2 * inside
                assert clique_constant(loss, oracle.plan) >= exact * (1 - 1e-9)


def test_the_model_has_maximum_entropy() -> None:
    """Among all tables with the fitted marginals, none has more entropy (SLSQP on the table)."""
    model = estimate(DOMAIN, measured(CASES[1]), total=TOTAL, solver=EarlyStopping()).model
    rows = np.vstack([matrix_of(c, blocks.Identity()) for c in model.cliques])
    goal = np.concatenate([model.project(c).values.reshape(-1) for c in model.cliques]) / TOTAL
    independent = np.linalg.svd(rows)[2][: np.linalg.matrix_rank(rows)]
    fixed = independent @ np.linalg.lstsq(rows, goal, rcond=None)[0]

    def negative_entropy(p: Array) -> tuple[float, Array]:
        safe = np.maximum(p, 1e-12)
        return float(safe @ np.log(safe)), np.log(safe) + 1.0

    found = minimize(
        negative_entropy, np.full(DOMAIN.size, 1 / DOMAIN.size), jac=True, method="SLSQP",
        bounds=[(0, 1)] * DOMAIN.size,
        constraints={"type": "eq", "fun": lambda p: independent @ p - fixed,
                     "jac": lambda _: independent},
        options={"maxiter": 1000, "ftol": 1e-12},
    )  # fmt: skip
    assert model.entropy == pytest.approx(-found.fun, abs=1e-4)


def test_multiplicative_weights_reach_the_same_solution() -> None:
    """The paper's update of the full table, iterated, ends at our marginals."""
    given = measured(CASES[0])
    rows = np.vstack([matrix_of(m.clique, m.query) / m.stddev for m in given])
    goal = np.concatenate([m.values / m.stddev for m in given])
    table = np.full(DOMAIN.size, TOTAL / DOMAIN.size)
    for _ in range(60_000):
        table = table * np.exp(rows.T @ (goal - rows @ table) / (2 * TOTAL))
        table *= TOTAL / table.sum()
    model = estimate(DOMAIN, given, total=TOTAL, tolerance=1e-9).model
    for m in given:
        expected = matrix_of(m.clique, m.query) @ table
        found = m.operator(DOMAIN).apply(model.project(m.clique).values)
        np.testing.assert_allclose(found, expected, atol=0.02)


def test_stopping_at_the_noise_is_nearer_to_the_truth() -> None:
    """On Adult with Laplace noise of scale 30, the early end is nearer to the truth, by far."""
    domain, codes = Domain(adult_domain()), adult_codes()
    rng, given, truth = np.random.default_rng(0), [], {}
    for clique in ADULT_CLIQUES:
        part = domain.project(clique)
        cells = np.ravel_multi_index([codes[:, domain.positions[n]] for n in clique], part.shape)
        truth[clique] = np.bincount(cells, minlength=part.size)
        noisy = truth[clique] + rng.laplace(0, 30, part.size)
        given.append(Measurement(clique, noisy, stddev=30 * 2**0.5, noise="laplace"))
    errors = []
    for solver in (EarlyStopping(), Accelerated()):
        model = estimate(domain, given, total=48_842.0, solver=solver).model
        found = {c: model.project(c).values.reshape(-1) for c in truth}
        errors.append(sum(float(np.abs(found[c] - truth[c]).sum()) for c in truth))
    assert errors[0] < 0.95 * errors[1]


@pytest.mark.parametrize("stddev", [3.0, 0.5])
def test_little_noise_stops_nothing_early(stddev: float) -> None:
    """Where there is next to no noise, the fit that stops at it is as close to the truth."""
    flags = Domain({f"x{i}": 2 for i in range(8)})
    rng = np.random.default_rng(0)
    codes = rng.random((20_000, 8)) < rng.uniform(0.1, 0.6, (2, 8))[rng.integers(0, 2, 20_000)]
    given, truths = [], {}
    for one, two in combinations(range(8), 2):
        table = np.bincount(2 * codes[:, one] + codes[:, two], minlength=4).astype(float)
        truths[f"x{one}", f"x{two}"] = table
        noisy = table + rng.normal(0.0, stddev, 4)
        given.append(Measurement((f"x{one}", f"x{two}"), noisy, stddev=stddev))
    errors = []
    for solver in (EarlyStopping(), None):
        model = estimate(flags, given, total=20_000.0, solver=solver, max_steps=5000).model
        off = [model.project(c).values.reshape(-1) - table for c, table in truths.items()]
        errors.append(float(np.abs(off).mean()))
    assert errors[0] < 1.15 * errors[1]
