"""An oracle that the package has never seen serves a fit, its model and a release."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import juncture
from juncture.engine.oracle import Beliefs, Oracle, Peak, build_plan
from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.engine.reference import Reference
from juncture.errors import InvalidInput, ModelTooLarge, UnreadableFile
from juncture.fit.estimation import estimate
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.fit.solvers.problem import Solver
from juncture.fit.solvers.proximal import Proximal
from juncture.fit.solvers.sequential import Sequential
from juncture.fit.summary import Status
from juncture.mechanisms.record_search import RecordSearch
from juncture.model.model import Model
from juncture.publish.release import Release, load
from juncture.tables.codebook import Codebook, Coding
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout, Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Kron
from juncture.tables.workload import Workload

DOMAIN = Domain({"a": 3, "b": 2, "c": 3, "d": 2, "e": 2})
CLIQUES = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
TOTAL = 300.0


class CountedOracle:
    """Brute force that reports its calls."""

    is_exact = True

    def __init__(self, plan: Plan, report: Callable[[str], None]) -> None:
        self.plan, self._report = plan, report
        self._inner = Reference(plan)
        self.layout = self._inner.layout

    def marginals(
        self, potentials: Vector, total: float = 1.0, *, out: Vector | None = None
    ) -> Beliefs:
        """Count, then ask brute force."""
        self._report("marginals")
        return self._inner.marginals(potentials, total, out=out)

    def maximum(self, potentials: Vector) -> Peak:
        """Count, then ask brute force."""
        self._report("maximum")
        return self._inner.maximum(potentials)


class Counting:
    """A factory of counted oracles, with all that they were asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, plan: Plan) -> CountedOracle:
        """Make an oracle."""
        self.calls.append("made")
        return CountedOracle(plan, self.calls.append)

    def count(self, kind: str) -> int:
        """How often something has happened."""
        return self.calls.count(kind)


def noisy_pairs() -> list[Measurement]:
    """Noisy counts of a random table on a cycle of four attributes; the fifth stays free."""
    rng = np.random.default_rng(4)
    table = Factor(DOMAIN, rng.multinomial(int(TOTAL), rng.dirichlet(np.ones(DOMAIN.size))
                                           ).reshape(DOMAIN.shape).astype(float))  # fmt: skip
    marginals = [table.project(clique).values.reshape(-1) for clique in CLIQUES]
    return [
        Measurement(clique, values + 4.0 * rng.normal(size=values.size), stddev=4.0)
        for clique, values in zip(CLIQUES, marginals, strict=True)
    ]


@pytest.fixture
def factory() -> Counting:
    """Give a factory that has made nothing yet."""
    return Counting()


@pytest.fixture
def model(factory: Counting) -> Model:
    """Give a fitted model of the counted oracle, its fit forgotten."""
    fitted = estimate(DOMAIN, noisy_pairs(), total=TOTAL, oracle=factory).model
    factory.calls.clear()
    return fitted


@pytest.fixture(scope="module")
def usual() -> Model:
    """Give the same model by message passing."""
    return estimate(DOMAIN, noisy_pairs(), total=TOTAL).model


@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        (None, "l2"),
        (None, "l1"),
        (EarlyStopping(), "l2"),
        (Sequential(Accelerated(), Proximal()), "l2"),
    ],
    ids=str,
)
def test_a_fit_runs_on_any_oracle(factory: Counting, solver: Solver | None, loss: str) -> None:
    """Every step is a call of an oracle that was made; model and status are the usual ones."""
    ours = estimate(
        DOMAIN, noisy_pairs(), total=TOTAL, loss=loss, solver=solver, oracle=factory, max_steps=3000
    )
    usual = estimate(DOMAIN, noisy_pairs(), total=TOTAL, loss=loss, solver=solver, max_steps=3000)
    # Newton's method, which finishes the default, has one of its own for the maximal cliques.
    assert factory.count("made") == (2 if solver is None else 1)
    assert factory.count("marginals") == ours.summary.oracle_calls
    assert factory.count("maximum") > 0
    assert ours.model.oracle is factory
    assert ours.status is usual.status
    for clique in CLIQUES:
        expected = usual.model.project(clique).values
        # Both walk the same way, but for rounding that a long path may enlarge.
        np.testing.assert_allclose(ours.model.project(clique).values, expected, atol=1e-3 * TOTAL)


def test_questions_go_to_the_models_own_oracle(
    model: Model, usual: Model, factory: Counting
) -> None:
    """What lies beyond the cliques takes one new oracle, and the answers are the usual ones."""
    model.project(("a", "b"))
    assert factory.calls == []  # a measured clique needs no oracle
    query = Kron({"a": Identity(), "c": Identity()})
    np.testing.assert_allclose(model.answer(query), usual.answer(query), atol=1e-3 * TOTAL)
    assert factory.calls == ["made", "marginals"]
    np.testing.assert_allclose(
        model.project(("b", "d", "e")).values, usual.project(("b", "d", "e")).values,
        atol=1e-3 * TOTAL,
    )  # fmt: skip
    assert model.sql("SELECT count(*) FROM t WHERE a = 1").rows
    assert factory.calls == ["made", "marginals"]


def test_later_models_keep_the_oracle(model: Model, usual: Model, factory: Counting) -> None:
    """Conditioning, naming and the most probable record all use the factory of the model."""
    book = Codebook({"a": Coding(("x", "y", "z"))})
    named = model.with_codebook(book)
    assert factory.calls == []
    given = named.condition({"a": "y", "e": 1})  # no clique holds e: the plan grows
    assert factory.calls == ["made", "marginals"]
    assert named.oracle is given.oracle is factory
    assert given.total == pytest.approx(
        usual.with_codebook(book).condition({"a": "y", "e": 1}).total, rel=1e-3
    )
    assert given.most_probable()["a"] == 1
    assert factory.calls == ["made", "marginals", "made", "maximum"]
    assert given.condition({"b": 0}).oracle is factory


def test_records_come_from_the_models_own_oracle(model: Model, factory: Counting) -> None:
    """Drawn, matched and completed records need the oracle once for each tree."""
    model.sample(10, rng=0)
    model.synthesize(10, rng=0)
    assert factory.calls == ["made", "marginals"]
    records = model.sample(given={"a": [0, 1], "c": [2, 2], "b": [1, 1], "d": [0, 1]}, rng=0)
    assert factory.count("made") > 1
    assert records["a"].tolist() == [0, 1]


def test_a_release_is_read_with_the_oracle_that_is_asked_for(
    model: Model, factory: Counting, tmp_path: Path
) -> None:
    """Reading checks the marginals with it, and the model that was read keeps it."""
    path = Release(model=model).save(tmp_path / "model.jct")
    assert factory.calls == []
    again = load(path, oracle=factory).model
    assert factory.calls == ["made", "marginals"]
    assert again.oracle is factory
    np.testing.assert_allclose(again.marginals, model.marginals, rtol=1e-12)
    assert load(path).model.oracle is Propagation


def test_the_oracle_is_no_part_of_what_a_model_shows(model: Model) -> None:
    """The factory says nothing about the distribution, so it is left out of the text."""
    assert "Counting" not in repr(model)


def test_potentials_and_record_searches_take_an_oracle(factory: Counting) -> None:
    """The two other places that need marginals or the best record use the factory too."""
    table = Factor(DOMAIN.project(("a", "b")), np.arange(6.0).reshape(3, 2))
    assert Model.of_potentials(DOMAIN, [table], oracle=factory).oracle is factory
    assert factory.calls == ["made", "marginals"]
    workload = Workload.of_marginals(DOMAIN, CLIQUES)
    search = RecordSearch(DOMAIN, workload, np.random.default_rng(0), oracle=factory)
    drawn = np.zeros(workload.n_queries)
    drawn[0] = 1.0  # the first cell of the first task: a = 0 and b = 0
    best = search.find_best(drawn)
    assert (best["a"], best["b"]) == (0, 0)
    assert factory.calls[-1] == "maximum"


def test_nobody_outside_the_engine_makes_a_certain_oracle() -> None:
    """Propagation occurs as a default, never as a call, in all rooms above the engine."""
    package = Path(juncture.__file__).parent
    callers = [
        str(path)
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] != "engine"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Propagation")
    ]
    assert callers == []


class NoMaximum:
    """An oracle without one of its methods."""

    is_exact = True

    def __init__(self, plan: Plan) -> None:
        self.plan, self.layout = plan, Layout(plan.domain, plan.cliques)

    def marginals(self, potentials: Vector, total: float = 1.0) -> Beliefs:
        """Give what was given."""
        return Beliefs(potentials * total, 0.0)


class OtherLayout(Reference):
    """An oracle that has put its cliques in another order."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.layout = Layout(plan.domain, plan.cliques[::-1])


def two_arguments(plan: Plan, device: int) -> Oracle:
    """Give an oracle only to callers who know more than the plan."""
    return Propagation(plan, threads=device)


BROKEN: list[tuple[Any, str]] = [
    (None, "must be callable with a plan alone; got None"),
    (Propagation(Plan.build(DOMAIN, CLIQUES)), "must be callable with a plan alone"),
    (two_arguments, "must be callable with a plan alone"),
    (NoMaximum, "got a NoMaximum without maximum"),
    (lambda _plan: None, "got a NoneType without plan, layout, is_exact, marginals, maximum"),
    (OtherLayout, "must keep the cliques of its plan"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN)
def test_a_broken_factory_is_refused(broken: Any, message: str, usual: Model) -> None:
    """Whoever takes a factory says what is wrong with one that makes no oracles."""
    with pytest.raises(InvalidInput, match=message):
        estimate(DOMAIN, noisy_pairs(), oracle=broken)
    tables = [usual.layout.factor(usual.potentials, clique) for clique in CLIQUES]
    with pytest.raises(InvalidInput, match=message):
        Model.of_potentials(DOMAIN, tables, oracle=broken)


@pytest.mark.parametrize(("broken", "message"), BROKEN)
def test_a_broken_factory_is_not_the_files_fault(
    broken: Any, message: str, usual: Model, tmp_path: Path
) -> None:
    """Reading a valid release with a broken factory does not call the release damaged."""
    path = Release(model=usual).save(tmp_path / "model.jct")
    with pytest.raises(InvalidInput, match=message) as caught:
        load(path, oracle=broken)
    assert not isinstance(caught.value, UnreadableFile)


def test_an_error_inside_an_oracle_is_not_hidden(usual: Model, tmp_path: Path) -> None:
    """A mistake in the oracle's own code reaches its author as it is."""

    class Failing(Reference):
        def marginals(self, *_: Any, **__: Any) -> Beliefs:
            raise TypeError("a mistake in the oracle")

    path = Release(model=usual).save(tmp_path / "model.jct")
    for use in (
        lambda: load(path, oracle=Failing),
        lambda: estimate(DOMAIN, noisy_pairs(), oracle=Failing),
    ):
        with pytest.raises(TypeError, match="a mistake in the oracle"):
            use()


class WeightedRecords:
    """Marginals as weighted counts of fixed records: an estimate, for trees of any width."""

    is_exact = False

    def __init__(self, plan: Plan) -> None:
        self.plan, self.layout = plan, Layout(plan.domain, plan.cliques)
        rng = np.random.default_rng(0)
        self._codes = {name: rng.integers(0, n, 4000) for name, n in plan.domain.items()}
        shapes = [[plan.domain[name] for name in clique] for clique in plan.cliques]
        self._cells = [
            start + np.ravel_multi_index([self._codes[name] for name in clique], shape)
            for clique, shape, start in zip(
                self.layout.cliques, shapes, self.layout.offsets, strict=False
            )
        ]

    @staticmethod
    def build_plan(domain: Domain, cliques: Iterable[Iterable[str]]) -> Plan:
        """Plan without a limit: the tree is never walked."""
        return Plan.build(domain, cliques, memory_limit=10**30)

    def _scores(self, potentials: Vector) -> Vector:
        return np.asarray(sum(potentials[cells] for cells in self._cells))

    def marginals(
        self, potentials: Vector, total: float = 1.0, *, out: Vector | None = None
    ) -> Beliefs:
        """Weigh the records by their potentials, and count."""
        scores = self._scores(potentials)
        weights = np.exp(scores - scores.max())
        shares = weights / weights.sum()
        result = np.empty(self.layout.size) if out is None else out
        result[:] = sum(
            np.bincount(cells, total * shares, self.layout.size) for cells in self._cells
        )
        log_size = sum(math.log(size) for size in self.plan.domain.values())
        log_partition = float(np.log(weights.mean()) + scores.max() + log_size)
        return Beliefs(result, log_partition, error=float(np.sqrt((shares**2).sum())))

    def maximum(self, potentials: Vector) -> Peak:
        """The best of the records."""
        scores = self._scores(potentials)
        best = int(scores.argmax())
        record = {name: int(codes[best]) for name, codes in self._codes.items()}
        return Peak(record, float(scores[best]))


WIDE = Domain({f"x{index}": 10 for index in range(12)})
ALL_PAIRS = list(combinations(WIDE, 2))


def wide_measurements() -> list[Measurement]:
    """Exact counts of all pairs of independent attributes with falling shares."""
    share = np.arange(10.0, 0.0, -1.0) / 55.0
    table = 1000.0 * np.multiply.outer(share, share).reshape(-1)
    return [Measurement(pair, table, stddev=5.0) for pair in ALL_PAIRS]


def test_an_oracle_without_a_tree_fits_what_has_none() -> None:
    """A factory that plans by itself gets past the memory limit, which others keep."""
    with pytest.raises(ModelTooLarge):
        build_plan(Propagation, WIDE, ALL_PAIRS)
    fit = estimate(
        WIDE, wide_measurements(), total=1000.0, oracle=WeightedRecords, max_steps=40,
    )  # fmt: skip
    assert fit.model.oracle is WeightedRecords
    start = estimate(WIDE, wide_measurements(), total=1000.0, oracle=WeightedRecords, max_steps=1)
    assert fit.summary.loss < 0.5 * start.summary.loss
    assert fit.model.project(("x3", "x7")).values.sum() == pytest.approx(1000.0)
    assert fit.model.condition({"x0": 0}).oracle is WeightedRecords


def test_an_estimated_oracle_certifies_nothing() -> None:
    """Its best record may not be the best of all, so no bound is made from it."""
    fit = estimate(
        DOMAIN, noisy_pairs(), total=TOTAL, oracle=WeightedRecords, max_steps=200, tolerance=0.1
    )
    assert fit.summary.lower_bound == -math.inf
    assert fit.status is not Status.CERTIFIED
    exact = estimate(DOMAIN, noisy_pairs(), total=TOTAL, max_steps=200, tolerance=0.1)
    assert exact.summary.lower_bound > -math.inf


def test_an_oracle_without_a_tree_answers_but_draws_no_records() -> None:
    """Questions become cliques of an oracle call; only records need the tables of a tree."""
    model = estimate(
        WIDE, wide_measurements(), total=1000.0, oracle=WeightedRecords, max_steps=1
    ).model
    answer = model.project(("x0", "x1", "x2"))
    assert answer.values.shape == (10, 10, 10)
    assert answer.values.sum() == pytest.approx(1000.0)
    with pytest.raises(ModelTooLarge, match="must have tables for all of its maximal cliques"):
        model.sample(10)


def test_a_plan_made_before_is_used() -> None:
    """The model has the very plan that was given, and the fit is the same."""
    plan = Plan.build(DOMAIN, [("b", "a"), *CLIQUES[1:]])
    given = estimate(DOMAIN, noisy_pairs(), total=TOTAL, plan=plan)
    usual = estimate(DOMAIN, noisy_pairs(), total=TOTAL)
    assert given.model.plan is plan
    np.testing.assert_allclose(given.model.marginals, usual.model.marginals, rtol=1e-12)


def test_a_plan_may_have_more_cliques() -> None:
    """Cliques that nothing was measured on get potentials of zero, and change no marginal."""
    plan = Plan.build(DOMAIN, [*CLIQUES, ("a", "c"), ("e",)])
    larger = estimate(DOMAIN, noisy_pairs(), total=TOTAL, plan=plan).model
    usual = estimate(DOMAIN, noisy_pairs(), total=TOTAL).model
    assert larger.cliques == plan.cliques
    np.testing.assert_allclose(
        larger.project(("a", "b")).values, usual.project(("a", "b")).values, atol=1e-3 * TOTAL
    )


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"plan": Plan.build(DOMAIN, CLIQUES[1:])}, r"\(a, b\)"),
        ({"plan": Plan.build(DOMAIN, [("a", "b", "d"), *CLIQUES[1:3]])}, r"\(a, b\)"),
        ({"cliques": [("e",)]}, r"\(e\)"),
        ({"constraints": {("b", "d"): np.zeros((2, 2), dtype=bool)}}, r"\(b, d\)"),
        ({"start": Model.of_potentials(DOMAIN, [Factor.full(DOMAIN.project(("a", "c")), 0.0)])},
         r"\(a, c\)"),
    ],
)  # fmt: skip
def test_a_plan_that_lacks_a_clique_is_refused(changes: dict[str, Any], missing: str) -> None:
    """Each clique with a measurement, a constraint or a potential must be in the plan itself."""
    given = {"plan": Plan.build(DOMAIN, CLIQUES), **changes}
    with pytest.raises(InvalidInput, match=f"`plan` must have every clique.*without {missing}"):
        estimate(DOMAIN, noisy_pairs(), total=TOTAL, **given)


def test_a_plan_of_another_domain_is_refused() -> None:
    """The same names with other sizes are another table."""
    other = Plan.build(Domain({**DOMAIN, "e": 5}), CLIQUES)
    with pytest.raises(InvalidInput, match="`plan` must be over the domain"):
        estimate(DOMAIN, noisy_pairs(), plan=other)
