"""Fits end, and say what is true, with numbers at the edge of what doubles hold."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from juncture import Domain, Measurement, estimate
from juncture.errors import InvalidInput
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.mirror_descent import MirrorDescent
from juncture.fit.solvers.newton import Newton
from juncture.fit.solvers.proximal import Proximal
from juncture.fit.summary import Status
from juncture.tables.queries.blocks import Matrix

PAIR, CHAIN = Domain({"a": 2, "b": 2}), Domain({"a": 2, "b": 2, "c": 2})
SOLVERS = [None, MirrorDescent(), Proximal(), Newton(), Accelerated()]


def two(left: list[float], right: list[float], stddev: float) -> list[Measurement]:
    """Two tables that share an attribute."""
    pairs = ((("a", "b"), left), (("b", "c"), right))
    return [Measurement(clique, values, stddev=stddev) for clique, values in pairs]


@pytest.mark.parametrize("stddev", [1e-9, 1.0])
@pytest.mark.parametrize("values", [[3.0, -4.0, 5.0, 6.0], [10.0, 0.0, 0.0, 0.0]])
@pytest.mark.parametrize("loss", ["l2", "l1"])
@pytest.mark.parametrize("domain", [PAIR, Domain({"a": 4})], ids=["pair", "column"])
def test_mirror_descent_ends(domain: Domain, values: list[float], stddev: float, loss: str) -> None:
    """Within its steps, with a loss that is not above that of the start."""
    measured = Measurement(tuple(domain), values, stddev=stddev)
    fit = estimate(domain, [measured], solver=MirrorDescent(), loss=loss, max_steps=300)
    even = float(((np.array(values) - sum(values) / 4) ** 2).sum()) / (2.0 * stddev**2)
    assert fit.summary.oracle_calls <= 300 + 1
    assert math.isfinite(fit.summary.loss)
    assert loss == "l1" or fit.summary.loss <= even * (1.0 + 1e-9)


@pytest.mark.parametrize("ratio", [1e9, 1e13, 1e17, 1e19, 1e25, 1e60])
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("unit", [1.0, 1e-20, 1e20])
def test_certificates_hold_whatever_the_noise(ratio: float, solver: Any, unit: float) -> None:
    """No bound lies above the loss, and every clique of a model adds up to its total."""
    rng = np.random.default_rng(int(math.log10(ratio)))
    for _ in range(3):
        left, right = (list(unit * rng.integers(-5, 20, 4)) for _ in range(2))
        fit = estimate(
            CHAIN, two(left, right, unit / ratio), total=20.0 * unit, solver=solver, max_steps=200
        )
        assert math.isfinite(fit.summary.loss)
        assert fit.summary.lower_bound <= fit.summary.loss * (1.0 + 1e-6)
        for clique in (("a", "b"), ("b", "c")):
            table = fit.model.project(clique).values
            assert table.sum() == pytest.approx(20.0 * unit, rel=1e-9)


@pytest.mark.parametrize(("value", "stddev"), [(1e200, 1.0), (1.0, 1e-155), (1.0, 1e155)])
def test_numbers_whose_squares_overflow_are_refused(value: float, stddev: float) -> None:
    """With words about the unit, before any fit."""
    with pytest.raises(InvalidInput, match=r"squares of .* overflow"):
        Measurement(("a",), [value, 0.0], stddev=stddev)


def test_the_largest_numbers_that_are_taken_can_be_fitted() -> None:
    """Up to the limits, the fit is what it would be in another unit."""
    for unit in (1e-80, 1.0, 1e80):
        fit = estimate(CHAIN, two([3 * unit] * 4, [3 * unit] * 4, unit), total=12.0 * unit)
        assert fit.status is Status.CERTIFIED
        np.testing.assert_allclose(fit.model.project(("a",)).values, 6.0 * unit)


@pytest.mark.parametrize(
    "entries",
    [
        [[1.0, math.nan]],
        [[1.0, math.inf]],
        [[1e308, 1e308]],
        [["a", "b"]],
        [[1j, 2.0]],
        [[1.0], [1.0, 2.0]],
        np.array([[1.0, math.nan]]),
        scipy.sparse.csr_array([[1.0, math.nan]]),
    ],
)
def test_a_matrix_of_anything_but_numbers_is_refused(entries: Any) -> None:
    """When it is made: a query that is not a number would poison what it is measured with."""
    with pytest.raises(InvalidInput, match="`entries` must be"):
        Matrix(entries)


MANY = Domain({**{f"a{i}": 1 for i in range(70)}, "z": 2})


def test_many_attributes_of_one_value_are_refused_in_words() -> None:
    """No table has so many axes: not a measured one, not one of the tree, not one asked for."""
    whole = Measurement(tuple(MANY), [1.0, 2.0], stddev=1.0)
    pairs = [
        Measurement(pair, [3.0] * MANY.size_of(pair), stddev=1.0) for pair in combinations(MANY, 2)
    ]
    for measured in ([whole], pairs):
        with pytest.raises(InvalidInput, match="at most 64 attributes"):
            estimate(MANY, measured)
    model = estimate(MANY, [Measurement(("z",), [1.0, 2.0], stddev=1.0)]).model
    with pytest.raises(InvalidInput, match="at most 64 attributes"):
        model.project(tuple(MANY))
    assert len(model.synthesize(5, rng=0)) == 71
