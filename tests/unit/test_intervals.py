"""Intervals: what answers rest on, replicas, widths, files, and bad input."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from scipy.stats import t as student

import juncture as jn
from juncture import queries
from juncture.errors import InvalidInput
from juncture.fit.basis import Bases, Basis
from juncture.fit.plain_estimates import PlainEstimate
from juncture.fit.replicas import ReplicaRecipe, Replicas, make_replicas
from juncture.fit.solvers import EarlyStopping
from juncture.fit.widths import Kind, Widths
from juncture.publish.intervals import CellInterval, IntervalSqlAnswer
from juncture.tables.noise import Noise
from juncture.tables.queries.products import Query

DOMAIN = jn.Domain({"a": 3, "b": 4, "c": 2})
SMALL = ReplicaRecipe(seed=1, n_replicas=6)


def draw_codes(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Records in which neighbours depend on each other."""
    rng = np.random.default_rng(seed)
    a = rng.choice(3, n, p=[0.7, 0.25, 0.05])
    b = np.where(rng.random(n) < 0.6, a, rng.choice(4, n, p=[0.6, 0.3, 0.05, 0.05]))
    return {"a": a, "b": b, "c": (rng.random(n) < 0.2 + 0.2 * b).astype(int)}


def count(codes: dict[str, np.ndarray], clique: tuple[str, ...]) -> np.ndarray:
    """The table of a clique."""
    table = np.zeros([DOMAIN[name] for name in clique])
    np.add.at(table, tuple(codes[name] for name in clique), 1.0)
    return table


def measure(
    codes: dict[str, np.ndarray],
    rng: np.random.Generator,
    stddev: float = 8.0,
    noise: str = "gaussian",
) -> list[jn.Measurement]:
    """Noisy tables of two cliques that meet in b."""
    kind = Noise.GAUSSIAN if noise == "gaussian" else Noise.LAPLACE
    return [
        jn.Measurement(
            clique,
            (exact := count(codes, clique)).reshape(-1) + kind.draw(rng, stddev, exact.size),
            stddev=stddev,
            noise=noise,
        )
        for clique in (("a", "b"), ("b", "c"))
    ]


def make_release(
    measurements: list[jn.Measurement], recipe: ReplicaRecipe = SMALL, total: float | None = None
) -> jn.Release:
    """A fit as a release."""
    fit = jn.estimate(DOMAIN, measurements, total=total)
    return jn.Release(model=fit.model, measurements=measurements, fit=fit.summary, replicas=recipe)


@pytest.fixture(scope="module")
def release() -> jn.Release:
    """Two noisy pairs and their model."""
    return make_release(measure(draw_codes(500), np.random.default_rng(3)))


def grade(measurements: list[jn.Measurement], query: queries.Kron) -> list[str]:
    """What each answer rests on, in words."""
    found = Bases(DOMAIN, measurements).find(query).reshape(-1)
    return [str(Basis(int(each))) for each in found]


def column(rows: IntervalSqlAnswer, index: int) -> list[CellInterval]:
    """The intervals of one column, all of which are there."""
    found = [row[index] for row in rows.intervals]
    assert all(found)
    return [each for each in found if each is not None]


def on(clique: tuple[str, ...], query: Query | None = None, n: int | None = None) -> jn.Measurement:
    """A measurement without content."""
    size = DOMAIN.size_of(clique) if n is None else n
    return jn.Measurement(clique, np.zeros(size), stddev=1.0, query=query)


def test_basis_of_marginals() -> None:
    """What one clique holds is measured, what none holds is assumed, whatever is summed out."""
    pairs = [on(("a", "b")), on(("c", "b"))]
    identity, total = queries.Identity(), queries.Total()
    assert set(grade(pairs, queries.Kron({"b": identity, "a": identity}))) == {"measured"}
    assert set(grade(pairs, queries.Kron({"a": identity, "c": total}))) == {"measured"}
    assert set(grade(pairs, queries.Kron({"a": identity, "c": identity}))) == {"assumed"}
    assert grade(pairs, queries.Kron({})) == ["measured"]


def test_basis_of_partial_queries() -> None:
    """A row is measured where it lies in the span of the measured rows, and assumed elsewhere."""
    halves = queries.Buckets([0, 0, 1, 1])
    coarse = [on(("b",), halves, 2)]
    assert grade(coarse, queries.Kron({"b": queries.Range(0, 1)})) == ["measured"]
    assert grade(coarse, queries.Kron({"b": queries.Range(0, 2)})) == ["assumed"]
    assert grade(coarse, queries.Kron({"b": queries.Prefix()})) == [
        "assumed", "measured", "assumed", "measured",
    ]  # fmt: skip
    assert set(
        grade([on(("b",), queries.Prefix(), 4)], queries.Kron({"b": queries.Identity()}))
    ) == {"measured"}


def test_basis_of_several_measurements() -> None:
    """What only several measurements give together is implied; on one clique it is measured."""
    low, high = queries.Kron({"b": queries.Range(0, 1)}), queries.Kron({"b": queries.Range(2, 3)})
    rest = queries.Kron({"b": queries.Point(0)})
    one = [on(("b",), queries.Range(0, 1), 1), on(("b",), queries.Range(2, 3), 1)]
    assert grade(one, queries.Kron({"b": queries.Total()})) == ["measured"]
    two = [on(("a", "b"), low, 1), on(("b", "c"), high, 1)]
    assert grade(two, queries.Kron({"b": queries.Total()})) == ["implied"]
    assert grade(two, low) == ["measured"]
    assert grade(two, rest) == ["assumed"]


def test_basis_agrees_with_rank() -> None:
    """On random queries of one clique: in the span exactly if the rank does not grow."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        rows = rng.integers(0, 2, (rng.integers(1, 5), 4)).astype(float)
        rows = rows[rows.any(axis=1)]
        if not len(rows):
            continue
        asked = rng.integers(0, 3, 4).astype(float)
        if not asked.any():
            continue
        measured = [on(("b",), queries.Matrix(row[None]), 1) for row in rows]
        grown = np.linalg.matrix_rank(np.vstack([rows, asked]))
        expected = "measured" if grown == np.linalg.matrix_rank(rows) else "assumed"
        assert grade(measured, queries.Kron({"b": queries.Matrix(asked[None])})) == [expected]


def test_replicas_can_be_remade(release: jn.Release) -> None:
    """The same recipe gives the same replicas; another seed gives others; their truth is whole."""
    made = [
        make_replicas(release.model, release.measurements, recipe)
        for recipe in (SMALL, SMALL, ReplicaRecipe(seed=2, n_replicas=6))
    ]
    assert np.array_equal(made[0].fitted, made[1].fitted)
    assert not np.array_equal(made[0].fitted, made[2].fitted)
    tables = made[0].tables(made[0].counted, ("a", "b"))
    assert np.allclose(tables[-1], release.project(("a", "b")).values, rtol=1e-5, atol=1e-4)
    counted = tables[:-1]
    assert np.array_equal(counted, np.round(counted))
    assert (counted.sum(axis=(1, 2)) == round(release.model.total)).all()


def test_answers_agree(release: jn.Release) -> None:
    """Marginals, factored queries and SQL give one interval for one question."""
    table = release.project(("b", "a"), interval=0.9)
    same = release.answer(
        queries.Kron({"b": queries.Identity(), "a": queries.Identity()}), interval=0.9
    )
    rows = release.sql("SELECT a, b, COUNT(*) AS n FROM t GROUP BY a, b", interval=0.9)
    cells = column(rows, 2)
    assert np.allclose(table.lower, same.lower)
    for (a, b, n), cell in zip(rows.rows, cells, strict=True):
        assert n == pytest.approx(table.answer[b, a])
        assert cell.lower == pytest.approx(table.lower[b, a])
        assert cell.upper == pytest.approx(table.upper[b, a])
    assert {str(cell.basis) for cell in cells} == {"measured"}
    assert np.allclose(table.answer, release.project(("b", "a")).values)
    stacked = queries.Stack([same_part := queries.Kron({"a": queries.Prefix()}), same_part])
    both = release.answer(queries.Scaled(-2.0, stacked), interval=0.9)
    alone = release.answer(same_part, interval=0.9)
    assert np.allclose(both.lower[:3], -2.0 * alone.upper)
    assert (both.lower <= both.answer).all()


def find_ends(
    answers: np.ndarray, errors: np.ndarray, deviation: float, bias_factor: float
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of 95 % intervals of counts, by the rule as the page tells it."""
    own, moved = errors[:-1], errors[-1]
    bias, spread = bias_factor * own.mean(axis=0), own.std(axis=0, ddof=1)
    unsure = np.sqrt(spread**2 + 0.25 * (bias**2 + moved**2) + (0.12 * deviation) ** 2)
    wide, further = student.ppf(0.975, 2 * (len(own) - 1)) * unsure, bias - moved
    lower = answers - wide - np.where(further > 0.0, further, 0.0)
    return np.maximum(lower, 0.0), answers + wide - np.where(further < 0.0, further, 0.0)


def test_widths_are_those_of_the_replicas(release: jn.Release) -> None:
    """Deviation and bias of the errors, a share of the plain deviation, Student's quantile."""
    made, widths = release.uncertainty.replicas, release.uncertainty.widths
    errors = made.tables(made.fitted, ("b", "c")) - made.tables(made.counted, ("b", "c"))
    factor, spread = widths.strain
    assert spread == 1.0  # the fit is close to what was measured
    found = release.project(("b", "c"), interval=0.95)
    ends = find_ends(found.answer, errors, 8.0, factor)
    assert np.allclose([found.lower, found.upper], ends, atol=1e-3)
    summed = release.project(("c",), interval=0.95)
    ends = find_ends(summed.answer, errors.sum(axis=1), 16.0, factor)
    assert np.allclose([summed.lower, summed.upper], ends, atol=1e-3)


def test_a_bias_reaches_to_one_side(release: jn.Release) -> None:
    """Errors that are all too large move the lower end, and averages further than counts."""
    answers, up = np.array([100.0]), np.linspace(4.0, 6.0, SMALL.n_replicas)
    errors = np.array([*up, 0.0])[:, None]
    reaches = {
        kind: release.uncertainty.widths.find(answers, errors, 0.95, kind)
        for kind in (Kind.COUNT, Kind.RATIO)
    }
    factor = release.uncertainty.widths.strain.bias_factor
    assert reaches[Kind.COUNT].down - reaches[Kind.COUNT].up == pytest.approx(factor * 5.0)
    assert reaches[Kind.RATIO].down - reaches[Kind.RATIO].up == pytest.approx(1.6 * factor * 5.0)
    mirrored = release.uncertainty.widths.find(answers, -errors, 0.95, Kind.COUNT)
    assert mirrored.up == pytest.approx(reaches[Kind.COUNT].down)


def test_averages_are_held_against_measurements() -> None:
    """A model that is wrong about an average has an interval that reaches the measured one.

    By brute force: the mean of the noisy table, and its deviation to first order.
    """
    codes, rng = draw_codes(4000), np.random.default_rng(3)
    measured = measure(codes, rng, stddev=4.0)
    flat = [
        jn.Factor(DOMAIN.project(m.clique), np.zeros(DOMAIN.project(m.clique).shape))
        for m in measured
    ]
    wrong = jn.Model.of_potentials(DOMAIN, flat, total=4000.0)
    made = jn.Release(model=wrong, measurements=measured, replicas=SMALL)
    query = "SELECT b, AVG(a * a + 1) AS mean FROM t GROUP BY b ORDER BY b"
    seen = list[tuple[np.ndarray, np.ndarray]]()
    widths = made.uncertainty.widths

    class Watched(Widths):
        """Keeps what measurements say."""

        def find(self, *arguments: Any) -> Any:
            seen.append(arguments[4])
            return super().find(*arguments)

    made.uncertainty.widths = Watched(widths.replicas, widths.plain)
    rows = made.sql(query, interval=0.95)
    x, table = np.arange(3.0) ** 2 + 1.0, measured[0].values.reshape(3, 4)
    means = np.array([row[1] for row in rows.rows])
    n = 4000.0 / 4.0
    off = x[:, None] - means
    assert np.allclose(seen[0][0], means + (off * table).sum(axis=0) / n)
    assert np.allclose(seen[0][1], 4.0 * np.sqrt((off**2).sum(axis=0)) / n)
    for cell, plain in zip(column(rows, 1), seen[0][0], strict=True):
        assert cell.lower <= plain <= cell.upper


def test_what_stopping_early_left_out_counts() -> None:
    """The same measurements, fitted to the end and stopped at the noise: the latter is wider."""
    measured = measure(draw_codes(500), np.random.default_rng(3))
    ended = jn.estimate(DOMAIN, measured, total=500.0)
    stopped = jn.estimate(DOMAIN, measured, total=500.0, solver=EarlyStopping())
    moved = {}
    for name, fit in (("ended", ended), ("stopped", stopped)):
        made = make_replicas(fit.model, measured, SMALL)
        moved[name] = np.abs(made.fitted[-1] - made.counted[-1])
        own = [fit.model.project(clique).values.reshape(-1) for clique in made.layout.cliques]
        assert np.allclose(made.counted[-1], np.concatenate(own), atol=1e-3)
    assert moved["ended"].max() < 0.5 < moved["stopped"].max()


def test_models_that_contradict_measurements_are_wide() -> None:
    """A model far from what was measured has intervals that reach what was measured."""
    measured = measure(draw_codes(500), np.random.default_rng(3))
    flat = [
        jn.Factor(DOMAIN.project(m.clique), np.zeros(DOMAIN.project(m.clique).shape))
        for m in measured
    ]
    wrong = jn.Model.of_potentials(DOMAIN, flat, total=500.0)  # knows nothing
    made = jn.Release(model=wrong, measurements=measured, replicas=SMALL)
    table = made.project(("a", "b"), interval=0.95)
    plain = measured[0].values.reshape(3, 4)
    far = np.abs(plain - table.answer) > 2.5 * 8.0
    assert far.any()
    assert (table.lower <= np.maximum(plain, 0.0))[far].all()
    assert (plain <= table.upper)[far].all()
    rows = made.sql("SELECT a, b, COUNT(*) AS n FROM t GROUP BY a, b", interval=0.95)
    for (a, b, _), cell in zip(rows.rows, column(rows, 2), strict=True):
        assert cell.upper == pytest.approx(table.upper[a, b])
        assert cell.lower == pytest.approx(table.lower[a, b])
    sums = made.sql("SELECT b, SUM(a) AS s FROM t GROUP BY b", interval=0.95)
    assert all(cell.half_width > 0.0 for cell in column(sums, 1))


def test_measurements_that_contradict_each_other_strain_the_fit() -> None:
    """No model fits both: all errors grow."""
    measured = measure(draw_codes(500), np.random.default_rng(3))
    other = jn.Measurement(("a", "b"), measured[0].values[::-1].copy(), stddev=8.0)
    strained = make_release([*measured, other], total=500.0).uncertainty.widths.strain
    assert strained.spread > 2.0


def test_a_count_that_may_be_noise_alone_reaches_zero(release: jn.Release) -> None:
    """A tenth of it is bias, and its plain estimate does not tell it from zero."""
    widths = release.uncertainty.widths
    errors = np.array([*np.linspace(19.0, 21.0, SMALL.n_replicas), 0.0])[:, None]
    for answer, deviation, reaches in (
        (150.0, 100.0, True),
        (150.0, 50.0, False),
        (250.0, 200.0, False),
    ):
        plain = PlainEstimate(np.array([answer]), np.array([deviation]))
        reach = widths.find(np.array([answer]), errors, 0.95, Kind.COUNT, plain)
        assert (reach.down[0] >= answer) == reaches, (answer, deviation)
        assert widths.find(np.array([answer]), errors, 0.95, Kind.SUM, plain).down[0] < answer


def test_ratios_have_intervals(release: jn.Release) -> None:
    """Averages, shares and medians have them; what depends on other rows has none, and says why."""
    rows = release.sql(
        "SELECT b, AVG(a) AS mean, COUNT(*) FILTER (WHERE a = 0) / COUNT(*) AS share, MEDIAN(a) "
        "AS middle FROM t GROUP BY b ORDER BY b",
        interval=0.95,
    )
    assert {row[0] for row in rows.intervals} == {None}
    for index in (1, 2, 3):
        for row, cell in zip(rows.rows, column(rows, index), strict=True):
            assert cell.lower <= row[index] <= cell.upper
            assert index == 3 or cell.half_width > 0.0
    assert "+- mean" in str(rows)
    windows = release.sql(
        "SELECT b, COUNT(*) / SUM(COUNT(*)) OVER () AS s FROM t GROUP BY b", interval=0.95
    )
    assert windows.intervals[0] == (None, None)
    assert "one by one" in windows.reasons[0]


def test_joint_conditions_have_intervals(release: jn.Release) -> None:
    """A condition that ties columns of one clique together has the interval of its complement."""
    either = release.sql("SELECT COUNT(*) FROM t WHERE a = 0 OR b = 0", interval=0.95)
    neither = release.sql("SELECT COUNT(*) FROM t WHERE a <> 0 AND b <> 0", interval=0.95)
    total = release.sql("SELECT COUNT(*) FROM t", interval=0.95)
    assert column(either, 0)[0].basis is Basis.MEASURED
    halves = [column(each, 0)[0].half_width for each in (either, neither, total)]
    assert abs(halves[0] - halves[1]) <= halves[2] + 1e-9


def test_assumed_answers_say_why(release: jn.Release) -> None:
    """An answer across cliques has no interval without a check, and says what would give one."""
    table = release.project(("a", "c"), interval=0.95)
    assert np.isnan(table.lower).all()
    assert {str(each) for each in table.bases} == {"assumed"}
    assert "check" in table.notes[0]
    rows = release.sql("SELECT a, COUNT(*) FROM t WHERE c = 1 GROUP BY a", interval=0.95)
    assert not column(rows, 1)[0].is_known
    assert "check" in rows.reasons[0]


def test_populations_are_wider(release: jn.Release) -> None:
    """With the sampling of the population, counts and averages are less sure."""
    query = "SELECT b, COUNT(*) AS n, AVG(a) AS m FROM t GROUP BY b ORDER BY b"
    own = release.sql(query, interval=0.95)
    wide = release.sql(query, interval=0.95, population=True)
    for index in (1, 2):
        for left, right in zip(column(own, index), column(wide, index), strict=True):
            assert right.half_width > left.half_width
    table = release.project(("b",), interval=0.95, population=True)
    n, counts = release.model.total, table.answer
    plain = release.project(("b",), interval=0.95)
    extra = (table.upper - counts) ** 2 - (plain.upper - counts) ** 2
    assert np.allclose(extra, 1.96**2 * counts * (1 - counts / n), rtol=1e-3)


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 2, math.nan, "much", True, None])
def test_levels_are_checked(release: jn.Release, level: Any) -> None:
    """A level outside (0, 1) gets one clear error."""
    if level is None:
        assert isinstance(release.project(("a",)), jn.Factor)
        return
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        release.project(("a",), interval=level)
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        release.sql("SELECT COUNT(*) FROM t", interval=level)


def test_no_measurements() -> None:
    """A release without measurements says that it cannot tell; what is asked for anyway is."""
    model = jn.Model.of_potentials(DOMAIN, [], total=10)
    bare = jn.Release(model=model)
    assert {str(each) for each in bare.project(("a",), interval=0.95).bases} == {"assumed"}
    with pytest.raises(InvalidInput, match="must not be empty for intervals"):
        bare.with_replicas()


@pytest.mark.parametrize("name", ["format-1-plain", "format-1-hdmm", "format-2-codebook"])
def test_old_formats_have_intervals(name: str) -> None:
    """Releases of format 1 and 2 have intervals if they hold measurements."""
    old = jn.load(Path(__file__).parents[1] / "files" / f"{name}.jct")
    clique = old.measurements[0].clique
    table = old.project(clique, interval=0.95)
    known = table.grades < Basis.ASSUMED
    assert known.any()
    assert np.isfinite(table.lower[known]).all()


def test_structural_zeros_stay() -> None:
    """Impossible cells are impossible in replicas too: their interval is zero."""
    impossible = np.zeros((3, 4), dtype=bool)
    impossible[0, 1] = impossible[2, 3] = True
    codes = draw_codes(300)
    keep = ~impossible[codes["a"], codes["b"]]
    codes = {name: column[keep] for name, column in codes.items()}
    measured = measure(codes, np.random.default_rng(0))
    fit = jn.estimate(DOMAIN, measured, constraints={("a", "b"): impossible})
    made = jn.Release(
        model=fit.model, measurements=measured, fit=fit.summary, replicas=SMALL
    ).project(("a", "b"), interval=0.95)
    assert (made.upper[impossible] == 0.0).all()
    assert (made.upper[~impossible] > 0.0).all()


def test_one_record() -> None:
    """A table of one record has intervals, and they are as wide as the noise makes them."""
    codes = {name: column[:1] for name, column in draw_codes(1).items()}
    made = make_release(measure(codes, np.random.default_rng(1)))
    table = made.project(("a", "b"), interval=0.95)
    assert np.isfinite(table.upper).all()
    assert (table.lower >= 0.0).all()


@pytest.mark.parametrize("kept", [False, True])
def test_files(release: jn.Release, tmp_path: Path, kept: bool) -> None:
    """The recipe, or the replicas themselves, come back from the file with the same intervals."""
    made = release.with_replicas() if kept else release
    back = jn.load(made.save(tmp_path / "t.jct"))
    assert isinstance(back.replicas, Replicas) is kept
    query = "SELECT b, COUNT(*) AS n, AVG(c) AS m FROM t GROUP BY b"
    ours, theirs = (each.sql(query, interval=0.8) for each in (made, back))
    for index in (1, 2):
        for left, right in zip(column(ours, index), column(theirs, index), strict=True):
            assert left.lower == pytest.approx(right.lower, abs=1e-3)
            assert left.upper == pytest.approx(right.upper, abs=1e-3)


def test_plain_files_have_no_replicas(release: jn.Release, tmp_path: Path) -> None:
    """Where nothing was asked for, the file says nothing about replicas."""
    plain = jn.Release(model=release.model, measurements=release.measurements)
    assert b'"replicas"' not in plain.save(tmp_path / "t.jct").read_bytes()


@pytest.mark.parametrize("options", [{"seed": -1}, {"n_replicas": 2}, {"n_replicas": 1e3}])
def test_recipes_are_checked(options: dict[str, int]) -> None:
    """A recipe that makes no sense gets one clear error."""
    with pytest.raises(InvalidInput, match="must be a whole number"):
        ReplicaRecipe(**options)


def covered(noise_share: float, runs: int) -> tuple[int, int]:
    """How many of the true cells and averages lie in intervals made from a share of the noise."""
    codes, hits, asked = draw_codes(400, seed=9), 0, 0
    truth = count(codes, ("a", "b"))
    means = truth @ np.arange(4) / truth.sum(axis=1)
    for run in range(runs):
        rng, noise = np.random.default_rng(100 + run), ("gaussian", "laplace")[run % 2]
        real = measure(codes, rng, noise=noise)
        claimed = [
            jn.Measurement(m.clique, m.values, stddev=noise_share * m.stddev, noise=noise)
            for m in real
        ]
        made = make_release(claimed, ReplicaRecipe(run), total=400.0)
        table = made.project(("a", "b"), interval=0.95)
        rows = made.sql("SELECT a, AVG(b) FROM t GROUP BY a ORDER BY a", interval=0.95)
        averages = column(rows, 1)
        inside = (table.lower - 1e-9 <= truth) & (truth <= table.upper + 1e-9)
        hits += int(inside.sum())
        hits += sum(c.lower <= m <= c.upper for c, m in zip(averages, means, strict=True))
        asked += inside.size + len(averages)
    return hits, asked


@pytest.mark.slow
def test_coverage() -> None:
    """Intervals of 95 % hold the truth that often; those made from half the noise do not.

    Answers of one run depend on each other, at most as one for every two of them: the test is that
    of a binomial with half of the trials, at 1e-6.
    """
    hits, asked = covered(1.0, 20)
    n = asked // 2
    assert binom.cdf(hits // 2, n, 0.95) > 1e-6
    assert hits / asked > 0.93
    halved, asked = covered(0.5, 30)
    assert binom.cdf(halved // 2, asked // 2, 0.95) < 1e-6
