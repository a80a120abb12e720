"""The noise of releases: OpenDP's exact samplers on integers. No seed can be given.

Answers are whole multiples of a power of two (see `lattice`), so they are handed over as integers
and the noise is a discrete Laplace or discrete Gaussian variable on the same lattice: nothing is
rounded, and the low bits of a released number tell nothing that the mechanism does not allow.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray

Integers = NDArray[np.int64]

dp.enable_features("contrib")


def add_laplace(values: Integers, scale: float) -> Integers:
    """Each value plus independent discrete Laplace noise.

    With an L1 sensitivity of s it costs the pure epsilon s / scale.
    """
    release = dp.m.make_laplace(_vector_domain(), dp.l1_distance(T="i64"), scale=scale)
    return np.asarray(release(values), dtype=np.int64)


def add_gaussian(values: Integers, stddev: float) -> Integers:
    """Each value plus independent discrete Gaussian noise.

    With an L2 sensitivity of s it costs the rho s^2 / (2 stddev^2) of zCDP.
    """
    release = dp.m.make_gaussian(_vector_domain(), dp.l2_distance(T="f64"), scale=stddev)
    return np.asarray(release(values), dtype=np.int64)


def select_noisy_max(scores: Integers, sensitivity: int, epsilon: float) -> int:
    """The place of a large score, at the pure cost epsilon.

    Each score may change by `sensitivity` in either direction between neighbouring tables.
    """
    return _select(scores, sensitivity, dp.max_divergence(), epsilon, epsilon)


def select_exponential(scores: Integers, sensitivity: int, rho: float) -> int:
    """The place of a large score by the exponential mechanism, at the cost rho of zCDP."""
    epsilon = math.sqrt(8.0 * rho)
    return _select(scores, sensitivity, dp.zero_concentrated_divergence(), rho, epsilon)


def _select(
    scores: Integers,
    sensitivity: int,
    measure: Any,  # noqa: ANN401
    cost: float,
    epsilon: float,
) -> int:
    """Scores may move against each other by twice their sensitivity: the scale follows."""
    scale = 2.0 * sensitivity / epsilon
    while True:
        selection: Any = dp.m.make_noisy_max(
            _vector_domain(), dp.linf_distance(T="i64"), measure, scale=scale
        )
        if selection.map(sensitivity) <= cost:  # OpenDP rounds what it claims upwards
            return int(selection(scores))
        scale *= 1.0 + 1e-12


@cache
def _vector_domain() -> Any:  # noqa: ANN401
    return dp.vector_domain(dp.atom_domain(T="i64"))
