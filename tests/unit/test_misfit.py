"""Contradictory measurements are flagged, and honest ones are not."""

from __future__ import annotations

import numpy as np
import pytest

from juncture.fit.estimation import estimate
from juncture.fit.misfit import find_misfits, measure_misfit
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement

DOMAIN = Domain({"a": 8, "b": 9, "c": 7})
CLIQUES = [("a", "b"), ("b", "c"), ("c", "a")]


def measured(noise: str, seed: int) -> list[Measurement]:
    """Noisy counts of a random table, with the noise that they state."""
    rng = np.random.default_rng(seed)
    table = rng.multinomial(20_000, rng.dirichlet(np.ones(DOMAIN.size))).reshape(DOMAIN.shape)
    found = []
    for clique in CLIQUES:
        axes = [DOMAIN.positions[name] for name in clique]
        dropped = tuple(axis for axis in range(3) if axis not in axes)
        counts = table.sum(axis=dropped)
        counts = counts.T if axes != sorted(axes) else counts
        draw = rng.normal if noise == "gaussian" else rng.laplace
        scale = 5.0 if noise == "gaussian" else 5.0 / 2**0.5
        noisy = counts + draw(0, scale, counts.shape)
        found.append(Measurement(clique, noisy, stddev=5.0, noise=noise))
    return found


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_honest_measurements_are_not_flagged(noise: str) -> None:
    """Over ten tables no honest measurement is flagged.

    Thirty sums of about sixty squares, each six standard deviations from the line: right code
    fails less than once in 10**5.
    """
    for seed in range(10):
        given = measured(noise, seed)
        model = estimate(DOMAIN, given, total=20_000).model
        assert find_misfits(model, given) == []


def test_too_small_a_scale_is_flagged() -> None:
    """A measurement that understates its noise tenfold is flagged, and it alone."""
    given = measured("gaussian", 0)
    rng = np.random.default_rng(1)
    noisy = given[1].values + rng.normal(0, 50, given[1].n_rows)
    lying = Measurement(("b", "c"), noisy, stddev=5.0)
    model = estimate(DOMAIN, given, total=20_000).model
    flagged = find_misfits(model, [*given, lying])
    assert [misfit.measurement for misfit in flagged] == [lying]
    assert measure_misfit(model, lying).ratio == pytest.approx(100, rel=0.5)


def test_a_wrong_total_is_noticed() -> None:
    """Half the true total leaves residuals that no noise explains."""
    given = measured("gaussian", 0)
    model = estimate(DOMAIN, given, total=10_000).model
    assert len(find_misfits(model, given)) == 3


def test_an_estimate_knows_its_misfits() -> None:
    """What contradicts its noise is flagged by the fit itself, and honest measurements are not."""
    given = measured("gaussian", 0)
    lying = Measurement(("b", "c"), given[1].values + 500.0, stddev=5.0)
    assert estimate(DOMAIN, given, total=20_000).misfits == []
    fit = estimate(DOMAIN, [*given, lying], total=20_000)
    assert fit.measurements == (*given, lying)
    assert lying in [misfit.measurement for misfit in fit.misfits]
    assert fit.misfits == find_misfits(fit.model, [*given, lying])
