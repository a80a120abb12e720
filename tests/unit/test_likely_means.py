"""The likely means of bins: heavy tails are followed, and noise makes none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from juncture.mechanisms.hdmm import HDMM
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.publish.release import load
from juncture.tables.columns import Integer, Number
from juncture.tables.schema import Schema
from juncture.tables.workload import Workload

N = 40_000
NOISE = 30.0


def mean_by_bins(column: Number | Integer, numbers: np.ndarray, seed: int = 0) -> float:
    """The mean that bins with noisy counts give."""
    special = np.isin(numbers, column.special)
    edges = np.array([b[0] for b in column.bins if isinstance(b, tuple)] + [np.inf])
    codes = np.searchsorted(edges, numbers[~special], side="right") - 1
    counts = np.bincount(codes, minlength=len(column.bins)).astype(float)
    counts += np.random.default_rng(seed).normal(0, NOISE, len(counts))
    own = [float((numbers == value).sum()) for value in column.special]
    likely = column.with_likely_spread(np.array([*own, *counts]), 2 * NOISE)
    weights = np.maximum(np.array([*own, *counts]), 0.0)
    return float(likely.coding.numbers @ weights / weights.sum())


RNG = np.random.default_rng(1)
SAMPLES = {
    "lognormal": np.minimum(RNG.lognormal(10, 1, N), 499_999.0),
    "exponential": np.minimum(RNG.exponential(30_000, N), 499_999.0),
    "lomax": np.minimum(10_000 * RNG.pareto(2.5, N), 499_999.0),
}
EDGES = {
    "eight": tuple(np.linspace(0, 500_000, 9).tolist()),
    "four": (0.0, 10_000.0, 30_000.0, 100_000.0, 500_000.0),
}


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("name", SAMPLES)
def test_heavy_tails_are_followed(name: str, edges: str) -> None:
    """The error of the mean is at most a third of what the middles of bins give."""
    column, numbers = Number(edges=EDGES[edges]), SAMPLES[name]
    middles = column.coding.numbers
    codes = np.searchsorted(EDGES[edges], numbers, side="right") - 1
    plain = abs(middles[codes].mean() / numbers.mean() - 1.0)
    likely = abs(mean_by_bins(column, numbers) / numbers.mean() - 1.0)
    assert plain > 0.2
    assert likely < plain / 3.0


@pytest.mark.parametrize(
    "numbers", [RNG.uniform(0, 100, N), np.clip(RNG.normal(50, 15, N), 0, 99.99)]
)
def test_even_and_symmetric_columns_keep_their_mean(numbers: np.ndarray) -> None:
    """Noise alone makes no slope."""
    column = Number.evenly(0, 100, 10)
    for seed in range(5):
        assert mean_by_bins(column, numbers, seed) == pytest.approx(numbers.mean(), rel=0.01)


def test_spikes_do_not_bend_their_neighbours() -> None:
    """A special value beside the bins tells nothing about how they are filled."""
    numbers = np.where(RNG.random(N) < 0.9, 0.0, RNG.uniform(1, 1000, N))
    column = Number(edges=tuple(np.linspace(0, 1000, 6).tolist()), special=(0.0,))
    assert mean_by_bins(column, numbers) == pytest.approx(numbers.mean(), rel=0.05)
    alone = Integer.between([0, 1, 200, 400, 600, 999])
    likely = alone.with_likely_spread(np.array([9000.0, 199, 200, 200, 400]), 1.0)
    np.testing.assert_allclose(likely.coding.numbers, alone.coding.numbers, rtol=2e-3)


def test_public_means_stay(tmp_path: Path) -> None:
    """What the schema says is not replaced; a release keeps what it inferred."""
    public = Number(edges=(0.0, 10.0, 20.0, 30.0), means=(4.0, 14.0, 24.0))
    assert public.with_likely_spread(np.array([900.0, 90.0, 9.0]), 1.0) is public
    far = Number(edges=(1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3))
    assert far.with_likely_spread(np.array([900.0, 90.0, 9.0]), 1.0).means
    schema = Schema({"pay": Number(edges=EDGES["four"]), "age": Integer(low=0, high=9)})
    codes = np.searchsorted(EDGES["four"], SAMPLES["lognormal"], side="right") - 1
    source = CodedTable(schema.domain, {"pay": codes, "age": codes % 10}, schema)
    ledger = Ledger.create(tmp_path / "l", Budget(epsilon=1.0))
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(0))
    made = HDMM(Budget(epsilon=1.0)).run(curator, Workload.all_marginals(schema.domain, 1))
    again = load(made.release().save(tmp_path / "x.jct"))
    mean = again.sql("SELECT AVG(pay) FROM t").rows[0][0]
    assert mean == pytest.approx(SAMPLES["lognormal"].mean(), rel=0.1)
    drawn = again.synthesize(20_000, rng=0).to_arrow()["pay"].to_numpy()
    assert drawn.mean() == pytest.approx(mean, rel=0.03)
