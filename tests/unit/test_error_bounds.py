"""Bounds on whole marginals: by measurements, and by what private choices prove."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

import juncture as jn
from juncture.errors import InvalidInput
from juncture.fit.error_bounds import ErrorBounds, Support, find_noise_quantile
from juncture.fit.plain_estimates import PlainEstimates
from juncture.fit.selection_proof import Choice, SelectionProof, bound_shortfall, read_proofs
from juncture.mechanisms.aim import AIM
from juncture.mechanisms.mechanism import Mechanism
from juncture.mechanisms.mwem import MWEM
from juncture.mechanisms.tiers import Tiers
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector
from juncture.tables.noise import Noise
from juncture.tables.queries.blocks import Identity, Range
from juncture.tables.queries.products import Kron

DOMAIN = jn.Domain({"a": 3, "b": 4, "c": 2})
KINDS = [Noise.GAUSSIAN, Noise.LAPLACE]


def measure(noise: Noise, rng: np.random.Generator, stddev: float = 5.0) -> list[jn.Measurement]:
    """Noise alone, on two tables that hold (a, b)."""
    return [
        jn.Measurement(clique, noise.draw(rng, stddev, DOMAIN.size_of(clique)), stddev=stddev,
                       noise=noise)
        for clique in (("b", "a"), ("a", "b", "c"))
    ]  # fmt: skip


@pytest.mark.parametrize("noise", KINDS)
def test_quantile_of_the_noise(noise: Noise) -> None:
    """The noise of a combined table is below its quantile so often; half the noise is caught."""
    question = Kron({"a": Identity(), "b": Identity()})
    seen, hits, broken = 400, 0, 0
    rows = list(
        PlainEstimates(DOMAIN, measure(noise, np.random.default_rng(0))).list_rows(question)
    )
    quantile = find_noise_quantile(rows, 0.9)
    for seed in range(seen):
        found = PlainEstimates(DOMAIN, measure(noise, np.random.default_rng(seed))).find(question)
        size = float(np.abs(found.values).sum())
        hits += size <= quantile
        broken += size <= quantile / 2.0
    assert binom.cdf(hits, seen, 0.88) > 1e-6
    assert binom.sf(hits, seen, 0.94) > 1e-6 or hits / seen < 0.96
    assert binom.cdf(broken, seen, 0.88) < 1e-6


@pytest.mark.parametrize("noise", KINDS)
@pytest.mark.parametrize("size", [0.0, 3.0, 1000.0])
def test_shortfall(noise: Noise, size: float) -> None:
    """The distance of a noisy table rarely falls short of the true one by more than the bound."""
    rng, n_cells, stddev, runs = np.random.default_rng(1), 30, 4.0, 2000
    true = np.full(n_cells, size)
    limit = bound_shortfall(noise, stddev, n_cells, 0.1)
    drawn = np.array([noise.draw(rng, stddev, n_cells) for _ in range(runs)])
    short = true.sum() - np.abs(true + drawn).sum(axis=1)
    assert binom.sf((short > limit).sum(), runs, 0.1) > 1e-6
    if size == 1000.0:  # a bound of a third of it is too short
        assert binom.sf((short > limit / 4.0).sum(), runs, 0.1) < 1e-6


def choose_and_prove(seed: int, n: int) -> tuple[SelectionProof, float]:
    """A choice among n equal tables and one that is far worse, by the exponential mechanism."""
    rng, scale, stddev = np.random.default_rng(seed), 10.0, 0.01
    gap = 1.02 * scale * math.log(1.0 / 0.05)
    domain = jn.Domain({f"x{i}": 2 for i in range(n + 1)})
    errors = np.full(n + 1, 40.0)
    errors[0] += gap
    chances = np.exp((errors - errors.max()) / scale)
    index = int(rng.choice(n + 1, p=chances / chances.sum()))
    cliques: list[Clique] = [(name,) for name in domain]
    truth = {
        clique: np.array([100.0 + e, 100.0]) for clique, e in zip(cliques, errors, strict=True)
    }
    scored: dict[Clique, Vector] = {clique: np.array([100.0, 100.0]) for clique in cliques}
    chosen = cliques[index]
    noisy = jn.Measurement(chosen, truth[chosen] + rng.normal(size=2) * stddev, stddev=stddev)
    choice = Choice(scored, dict.fromkeys(cliques, 0.0), None, scale, n + 1, chosen)
    proof = choice.prove(
        [noisy], lambda wanted: [jn.Factor(domain.project(c), scored[c]) for c in wanted]
    )
    assert proof is not None
    return proof, float(errors[0])


def test_choice_proves_a_bound() -> None:
    """The worst candidate is rarely left with a larger error than is proved.

    A copy that forgets how many candidates there were is caught.
    """
    runs, misses, broken = 300, 0, 0
    for seed in range(runs):
        proof, error = choose_and_prove(seed, 40)
        bound = proof.bound(("x0",), 0.95)
        if bound is None:  # it was chosen
            continue
        misses += error > bound
        forgetful = dataclasses.replace(proof, n_candidates=1).bound(("x0",), 0.90)
        assert forgetful is not None
        broken += error > forgetful
    assert binom.sf(misses, runs, 0.05) > 1e-6
    assert binom.sf(broken, runs, 0.10) < 1e-6


def draw_table(seed: int = 0, n: int = 1500) -> CodedTable:
    """Seven columns, most of which depend on their neighbours a little."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 3, n)]
    for size in (2, 4, 3, 2, 3, 4):
        fresh = rng.integers(0, size, n)
        columns.append(np.where(rng.random(n) < 0.3, columns[-1] % size, fresh))
    domain = jn.Domain(dict(zip("abcdefg", (3, 2, 4, 3, 2, 3, 4), strict=True)))
    return CodedTable(domain, dict(zip(domain, columns, strict=True)))


def run_release(mechanism: str, budget: jn.Budget, seed: int, tmp_path: Path) -> jn.Release:
    """A release of all pairs with simulated noise."""
    source = draw_table()
    ledger = jn.Ledger.create(tmp_path / f"{mechanism}-{seed}", budget, jn.Neighbours.REPLACE)
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(seed))
    workload = jn.Workload.all_marginals(source.domain, 2)
    made: dict[str, Mechanism] = {
        "aim": AIM(budget, rounds=12),
        "mwem": MWEM(budget, rounds=4),
        "tiers": Tiers(budget, max_pairs=8),
    }
    return made[mechanism].run(curator, workload).release()


@pytest.mark.slow
@pytest.mark.parametrize("budget", [jn.Budget(epsilon=1.0), jn.Budget(epsilon=1.0, delta=1e-6)])
@pytest.mark.parametrize("mechanism", ["aim", "mwem", "tiers"])
def test_bounds_of_adaptive_releases(mechanism: str, budget: jn.Budget, tmp_path: Path) -> None:
    """Every marginal of the workload is within its bound, so often; both supports occur."""
    source = draw_table()
    workload = jn.Workload.all_marginals(source.domain, 2)
    truth = dict(zip(workload.cliques, source.exact_counts(workload.cliques), strict=True))
    held, seen, supports = 0, 0, set[Support]()
    for seed in range(6):
        made = run_release(mechanism, budget, seed, tmp_path)
        for bound in made.bound_errors(level=0.9):
            table = truth[bound.clique].values
            error = float(np.abs(bound.table.values - table).sum())
            held += error <= bound.error
            assert (bound.lower <= bound.upper).all()
            if error <= bound.error:
                assert ((bound.lower <= table + 1e-9) & (table <= bound.upper + 1e-9)).all()
            seen += 1
            supports.add(bound.support)
            assert bound.error <= 2.0 * made.model.total
    assert binom.cdf(held // 6, seen // 6, 0.9) > 1e-6
    assert Support.MEASURED in supports
    # With Laplace noise on so few records, Tiers chooses a group of pairs: that proves nothing.
    assert Support.CHOICE in supports or (mechanism == "tiers" and budget.delta is None)


def test_bounds_in_files_and_answers(tmp_path: Path) -> None:
    """Proofs come back from the file; assumed counts have their intervals."""
    made = run_release("aim", jn.Budget(epsilon=1.0, delta=1e-6), 0, tmp_path)
    back = jn.load(made.save(tmp_path / "t.jct"))
    ours, theirs = made.bound_errors(), back.bound_errors()
    assert [b.error for b in ours] == pytest.approx([b.error for b in theirs])
    left = next(b for b in ours if b.support is Support.CHOICE)
    table = back.project(left.clique, interval=0.95)
    assert np.allclose(table.upper, left.upper)
    assert {str(each) for each in table.bases} == {"assumed"}
    assert "choice proves" in table.notes[0]
    some = back.answer(Kron({name: Range(0, 1) for name in left.clique}), interval=0.95)
    assert some.upper.item() == pytest.approx(some.answer.item() + left.cell_error)
    wide = back.project(left.clique, interval=0.95, population=True)
    assert np.isnan(wide.upper).all()


def test_bounds_in_sql(tmp_path: Path) -> None:
    """Assumed counts and sums of a marginal that a choice left have its bound; averages say why."""
    made = run_release("aim", jn.Budget(epsilon=1.0, delta=1e-6), 0, tmp_path)
    left = next(b for b in made.bound_errors() if b.support is Support.CHOICE)
    x, y = left.clique
    rows = made.sql(f"SELECT {x}, {y}, COUNT(*), SUM(3 * {x}), AVG({x}) FROM t GROUP BY {x}, {y}",
                    interval=0.95)  # fmt: skip
    for (i, j, n, *_), (*_, count, total, mean) in zip(rows.rows, rows.intervals, strict=True):
        assert count is not None
        assert total is not None
        assert mean is not None
        assert count.upper == pytest.approx(left.upper[i, j])
        assert count.lower == pytest.approx(left.lower[i, j])
        assert total.upper - 3 * i * n == pytest.approx(
            3 * (made.model.domain[x] - 1) * left.cell_error
        )
        assert not mean.is_known
    assert ["wide" in each for each in rows.reasons] == [True, False]
    assert "without an interval" in rows.reasons[1]
    joint = made.sql(f"SELECT COUNT(*) FROM t WHERE {x} = 0 OR {y} = 0", interval=0.95)
    (either,) = joint.intervals[0]
    assert either is not None
    assert either.upper - joint.rows[0][0] == pytest.approx(left.cell_error)
    assert len(joint.reasons) == 1
    wider = made.sql(f"SELECT {x}, {y}, COUNT(*) FROM t GROUP BY {x}, {y}", interval=0.95,
                     population=True)  # fmt: skip
    assert all(row[2] is not None and not row[2].is_known for row in wider.intervals)


@pytest.mark.parametrize("same_total", [True, False])
def test_sums_move_by_no_more_than_their_bound(*, same_total: bool) -> None:
    """By linear programming: the worst errors of that size reach the bound, and none exceeds it."""
    rng = np.random.default_rng(4)
    model = jn.Model.of_potentials(DOMAIN, [], total=1.0)
    bounds = ErrorBounds(model, PlainEstimates(DOMAIN, []), (), same_total)
    for _ in range(20):
        weights = rng.normal(size=6).round(2)
        sums = {"A_eq": np.array([[1.0] * 6 + [-1.0] * 6]), "b_eq": [0.0]} if same_total else {}
        worst = linprog(  # errors are p - q, and all p and q add up to 5 at most
            np.concatenate([-weights, weights]), A_ub=np.ones((1, 12)), b_ub=[5.0], **sums
        )
        proved = bounds.find_sum_error(5.0, weights.min(), weights.max())
        assert -worst.fun == pytest.approx(proved)


def test_bounds_without_anything() -> None:
    """What was neither measured nor left by a choice has the bound of any two tables, or none."""
    model = jn.Model.of_potentials(DOMAIN, [], total=50)
    plain = PlainEstimates(DOMAIN, [])
    public = ErrorBounds(model, plain, same_total=True).find(("a", "c"), 0.9)
    assert (public.support, public.error, public.cell_error) == (Support.NONE, 100.0, 50.0)
    assert math.isinf(jn.Release(model=model).bound_error(("a",)).error)
    with pytest.raises(InvalidInput, match="`level` must lie between 0 and 1"):
        jn.Release(model=model).bound_error(("a",), level=1.0)


def test_floors_and_subsets() -> None:
    """A floor needs no measurement; a set of columns has the least bound of those that hold it."""
    proof = SelectionProof(
        (("a", "b"), ("a", "c")), np.array([30.0, 10.0]), np.array([1.0, 0.5]), 2.0, 8
    )
    noise = 2.0 * math.log(8 / 0.05)
    assert proof.bound(("b",), 0.95) == pytest.approx(30.0 + noise, abs=1e-3)
    assert proof.bound(("a",), 0.95) == pytest.approx(min(30.0 + noise, 10.0 + 2 * noise), abs=1e-3)
    assert proof.bound(("b", "c"), 0.95) is None
    again = SelectionProof.from_json(proof.to_json())
    assert again.bound(("a",), 0.5) == proof.bound(("a",), 0.5)
    with pytest.raises(InvalidInput, match="positive weight"):
        SelectionProof.from_json({**proof.to_json(), "weights": [1.0, 0.0]})
    with pytest.raises(InvalidInput, match="positive weight"):
        SelectionProof.from_json({**proof.to_json(), "offsets": [1.0]})


def test_proofs_of_told_distances_are_left_out() -> None:
    """A release of an earlier state is read without what no longer counts as a proof."""
    proof = SelectionProof((("a", "b"),), np.array([5.0]), np.ones(1), 2.0, 3)
    told = {**proof.to_json(), "scale": 0.0, "stddev": 12.0}
    plain = {**proof.to_json(), "stddev": 0.0}
    (read,) = read_proofs([told, plain])
    assert read.to_json() == proof.to_json()
