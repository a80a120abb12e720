"""Tests of the compiled routines that stand on their own."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from brute import Array
from juncture.engine.compiled import elementwise

# The largest relative error seen on nine million points is 3.3e-16: 1.5 units in the last place.
BOUND = 4e-16


def relative_error(x: float) -> float:
    """Give the relative error of fast_exp, with forty digits for the truth."""
    with localcontext() as context:
        context.prec = 40
        truth = Decimal(x).exp()
        return float(abs(Decimal(float(elementwise.fast_exp(x))) - truth) / truth)


def points() -> Array:
    """Give points over the whole range, denser near zero and at its ends."""
    rng = np.random.default_rng(0)
    return np.concatenate(
        [
            rng.uniform(-708, 700, 700),
            rng.uniform(-1, 1, 300),
            rng.uniform(-1e-8, 1e-8, 50),
            np.arange(-1021, 1010, 20) * np.log(2),
            (np.arange(-1020, 1009, 20) + 0.5) * np.log(2),
            [-708.0, -707.999, 0.0, -0.0, 5e-324, 1.0, -1.0, 699.999, 700.0],
        ]
    )


def test_fast_exp_is_accurate() -> None:
    """From -708 to 700 the relative error of fast_exp is below 4e-16."""
    assert max(map(relative_error, points())) < BOUND


def test_fast_exp_of_zero_is_one() -> None:
    """The largest entry of every table, exp(0), is exactly one."""
    assert elementwise.fast_exp(0.0) == 1.0


def test_fast_exp_follows_numpy() -> None:
    """On many more points fast_exp and NumPy's exp differ by two units in the last place."""
    x = np.linspace(-708, 700, 20001)
    found = np.array([elementwise.fast_exp(value) for value in x])
    np.testing.assert_allclose(found, np.exp(x), rtol=2 * BOUND)


@pytest.mark.parametrize("x", [-708.0, -707.5])
def test_fast_exp_stays_normal(x: float) -> None:
    """At the lower end of the range results are still normal numbers."""
    assert elementwise.fast_exp(x) >= np.finfo(np.float64).tiny
