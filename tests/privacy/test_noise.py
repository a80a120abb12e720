"""The samplers of releases draw what they say."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import chi2

from juncture.private import noise
from juncture.tables.noise import Noise

N = 40_000
# The chance that a sound sampler fails any one of these tests.
FALSE_ALARM = 1e-7


def masses(kind: Noise, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers and their probabilities under discrete noise."""
    numbers = np.arange(-int(40 * scale) - 10, int(40 * scale) + 11)
    exponent = np.abs(numbers) / scale if kind is Noise.LAPLACE else numbers**2 / (2 * scale**2)
    weights = np.exp(-exponent)
    return numbers, weights / weights.sum()


@pytest.mark.parametrize("kind", [Noise.LAPLACE, Noise.GAUSSIAN], ids=str)
@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.4, 3.0, 11.5])
def test_noise_has_its_distribution(kind: Noise, scale: float) -> None:
    """Pearson's test against the exact probabilities, and the stated standard deviation."""
    add = noise.add_laplace if kind is Noise.LAPLACE else noise.add_gaussian
    drawn = add(np.full(N, 7), scale) - 7
    numbers, probabilities = masses(kind, scale)
    spread = np.sqrt(float((probabilities * numbers**2).sum()))
    assert kind.discrete_stddev(scale) == pytest.approx(spread, rel=1e-6)
    common = probabilities * N >= 8
    observed = np.array([(drawn == number).sum() for number in numbers[common]])
    expected = probabilities[common] * N
    rest = N - observed.sum(), N - expected.sum()
    statistic = ((observed - expected) ** 2 / expected).sum()
    statistic += (rest[0] - rest[1]) ** 2 / max(rest[1], 1e-9) if rest[1] > 5 else 0.0
    assert statistic < chi2.isf(FALSE_ALARM, common.sum())


def test_noise_is_fresh_and_exact() -> None:
    """No two calls agree, values are not touched where the noise is small, and nothing is lost."""
    zeros = np.zeros(1000, dtype=np.int64)
    assert (noise.add_laplace(zeros, 50.0) != noise.add_laplace(zeros, 50.0)).any()
    large = np.full(1000, 2**52 + 1)
    found = noise.add_laplace(large, 1e-3)
    assert (found == large).all()


def test_selection_prefers_large_scores() -> None:
    """The exponential mechanism's probabilities, from the scores."""
    scores, unit, rho = np.array([0, 1, 3]) * 2**20, 2**20, 0.5
    chosen = np.bincount(
        [noise.select_exponential(scores, unit, rho) for _ in range(1500)], minlength=3
    )
    weights = np.exp(np.sqrt(8 * rho) * np.array([0, 1, 3]) / 2)
    expected = 1500 * weights / weights.sum()
    assert ((chosen - expected) ** 2 / expected).sum() < chi2.isf(FALSE_ALARM, 2)
    certain = [noise.select_noisy_max(scores * 1000, unit, 1.0) for _ in range(20)]
    assert certain == [2] * 20


def test_noise_needs_nothing_for_learning() -> None:
    """What OpenDP brings for scikit-learn and data frames is seconds and megabytes for nothing."""
    names = "{'sklearn', 'pandas', 'polars'}"
    code = f"import sys, juncture.private.noise; print({names} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
