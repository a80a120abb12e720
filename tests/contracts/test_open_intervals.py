"""Intervals on columns with private bins: the fine grid's measurements are part of the release."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from juncture._util.watch import ignore_progress
from juncture.fit.plain_estimates import PlainEstimates
from juncture.fit.total import estimate_total
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.read import read_table
from juncture.publish.release import Release, load
from juncture.tables.columns import Categorical, OpenInteger
from juncture.tables.queries.blocks import Matrix
from juncture.tables.queries.products import Kron
from juncture.tables.schema import Schema
from juncture.workflow.closing import plan_closing
from juncture.workflow.release import _release_open, make_workload

SCHEMA = Schema(
    {"x": OpenInteger(low=0, high=499, max_bins=16), "y": Categorical(values=("a", "b"))}
)
BUDGET, ADD, N = Budget(rho=0.05), Neighbours.ADD_OR_REMOVE, 5000


def make_table() -> pa.Table:
    """A skewed number, and a column that depends on it."""
    rng = np.random.default_rng(7)
    x = np.minimum(rng.gamma(2.0, 60.0, N), 499).astype(int)
    y = np.where(rng.random(N) < 0.5, x > 100, rng.random(N) < 0.5)
    return pa.table({"x": x, "y": np.where(y, "b", "a").astype(object)})


def make_release(folder: Path, seed: int, mechanism: str = "tiers") -> Release:
    """A release with noise that can be repeated."""
    source = read_table(make_table(), SCHEMA)
    ledger = Ledger.create(folder / f"{mechanism}-{seed}.ledger", BUDGET, ADD)
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(seed))
    closing = plan_closing(SCHEMA, BUDGET, ADD, 0.1)
    wanted = make_workload(SCHEMA.widest, None)
    return _release_open(curator, source, closing, mechanism, wanted, None, ignore_progress)


def count_bins(release: Release) -> np.ndarray:
    """The true counts of the bins that were found."""
    assert release.schema is not None
    closed = Schema({"x": release.schema.columns["x"]})
    (table,) = read_table(make_table().select(["x"]), closed).exact_counts([("x",)])
    return table.values.astype(np.float64)


def all_ranges(size: int) -> Matrix:
    """Every range of bins, but all of them together."""
    ends = [(a, b) for a in range(size) for b in range(a + 1, size + 1) if b - a < size]
    index = np.arange(size)
    return Matrix([((index >= a) & (index < b)).astype(float) for a, b in ends])


def test_what_was_measured_of_the_grid_is_in_the_release(tmp_path: Path) -> None:
    """Its noise reads as that of a bin, the number of records follows it, and a file keeps it."""
    made = make_release(tmp_path, 0)
    (tree,) = [each for each in made.measurements if isinstance(each.query, Matrix)]
    assert tree.clique == ("x",)
    truth = count_bins(made)
    rows = tree.query.matrix(len(truth))  # type: ignore[union-attr]
    norms = np.linalg.norm(rows, axis=1)
    assert 0.5 < norms.min() <= norms.max() < 5.0
    off = (tree.values - rows @ truth) / tree.stddev
    assert 0.4 < np.sqrt(np.mean(off**2)) < 1.8
    assert made.model.total == pytest.approx(
        estimate_total(made.model.domain, made.measurements)[0]
    )
    made.save(tmp_path / "x.jct")
    again = load(tmp_path / "x.jct")
    np.testing.assert_array_equal(again.measurements[-1].values, made.measurements[-1].values)


def test_plain_estimates_of_ranges_are_surer_with_the_grid(tmp_path: Path) -> None:
    """By more than what the same price would buy as counts of bins."""
    made = make_release(tmp_path, 0)
    without = tuple(each for each in made.measurements if not isinstance(each.query, Matrix))
    ranges = Kron({"x": all_ranges(made.model.domain["x"])})
    wide, narrow = (
        PlainEstimates(made.model.domain, measured).find(ranges).stddev.mean()
        for measured in (without, made.measurements)
    )
    assert narrow < 0.97 * wide


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["tiers", "hdmm"])
def test_intervals_of_ranges_hold_the_truth(mechanism: str, tmp_path: Path) -> None:
    """Over seeds and all ranges of bins, about as often as they say."""
    held = []
    for seed in range(8):
        made = make_release(tmp_path, seed, mechanism)
        truth = count_bins(made)
        ranges = all_ranges(len(truth))
        answer = made.answer(Kron({"x": ranges}), interval=0.95)
        true = ranges.matrix(len(truth)) @ truth
        held.append(((answer.lower <= true) & (true <= answer.upper)).mean())
    assert 0.9 <= np.mean(held) <= 0.995
