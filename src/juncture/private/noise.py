"""The noise of releases: OpenDP's exact samplers on integers. No seed can be given.

Answers are whole multiples of a power of two (see `lattice`), so they are passed as integers and
the noise is a discrete Laplace or discrete Gaussian variable on the same lattice: nothing is
rounded, and the low bits of a released number reveal nothing that the mechanism does not allow.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from opendp import domains, measurements, measures, metrics  # the prelude imports scikit-learn
from opendp.mod import enable_features

from juncture.errors import InvalidInput
from juncture.privacy import score_units
from juncture.privacy.price import ZCDP, Price, Pure
from juncture.tables.noise import Noise

Integers = NDArray[np.int64]
AddNoise = Callable[[Integers, float], Integers]
"""Takes values and a scale; gives values with noise of that scale, exact on whole numbers."""

enable_features("contrib")


class Sampler(Protocol):
    """Where a curator's randomness comes from."""

    def refuse_unknown(self, noise: Noise) -> None:
        """Refuse a kind of noise that cannot be drawn, before anything is paid."""

    def add_noise(self, values: Integers, noise: Noise, scale: float) -> Integers:
        """The values with independent discrete noise of that kind and scale."""

    def select(self, scores: Integers, sensitivity: int, price: Price) -> int:
        """The index of a high score, for a price; scores move by at most `sensitivity`."""

    def draw(self, exponents: NDArray[np.float64], draws: int) -> Integers:
        """Draw indices with probabilities proportional to the exponentials of their exponents."""


class ExactSampler:
    """OpenDP's exact samplers, seeded by the operating system."""

    def refuse_unknown(self, noise: Noise) -> None:
        """See `Sampler.refuse_unknown`."""
        if noise not in _ADDERS:
            raise InvalidInput(
                f"`price` must buy noise that can be drawn exactly; got {noise}. Register a "
                "sampler for it with juncture.private.noise.register_sampler."
            )

    def add_noise(self, values: Integers, noise: Noise, scale: float) -> Integers:
        """See `Sampler.add_noise`."""
        self.refuse_unknown(noise)
        return _ADDERS[noise](values, scale)

    def select(self, scores: Integers, sensitivity: int, price: Price) -> int:
        """See `Sampler.select`."""
        match price:
            case ZCDP():
                return select_exponential(scores, sensitivity, price.rho)
            case Pure():
                return select_noisy_max(scores, sensitivity, price.epsilon)
            case _:
                raise InvalidInput(f"`price` must be pure or zCDP for a selection; got {price}.")

    def draw(self, exponents: NDArray[np.float64], draws: int) -> Integers:
        """See `Sampler.draw`."""
        return score_units.draw(exponents, draws, secrets.randbelow)


def add_laplace(values: Integers, scale: float) -> Integers:
    """Add independent discrete Laplace noise to each value.

    With an L1 sensitivity of s it costs the pure epsilon s / scale.
    """
    release = measurements.make_laplace(_vector_domain(), metrics.l1_distance(T="i64"), scale=scale)
    return np.asarray(release(values), dtype=np.int64)


def add_gaussian(values: Integers, stddev: float) -> Integers:
    """Add independent discrete Gaussian noise to each value.

    With an L2 sensitivity of s it costs the rho s^2 / (2 stddev^2) of zCDP.
    """
    release = measurements.make_gaussian(
        _vector_domain(), metrics.l2_distance(T="f64"), scale=stddev
    )
    return np.asarray(release(values), dtype=np.int64)


def select_noisy_max(scores: Integers, sensitivity: int, epsilon: float) -> int:
    """The index of a high score, at the pure cost epsilon.

    Each score may change by `sensitivity` in either direction between neighbouring tables.
    """
    return _select(scores, sensitivity, measures.max_divergence(), epsilon, epsilon)


def select_exponential(scores: Integers, sensitivity: int, rho: float) -> int:
    """The index of a high score by the exponential mechanism, at the cost rho of zCDP."""
    epsilon = math.sqrt(8.0 * rho)
    return _select(scores, sensitivity, measures.zero_concentrated_divergence(), rho, epsilon)


def _select(
    scores: Integers,
    sensitivity: int,
    measure: Any,  # noqa: ANN401
    cost: float,
    epsilon: float,
) -> int:
    """Two scores may move apart by twice the sensitivity: the scale follows from that."""
    scale = 2.0 * sensitivity / epsilon
    while True:
        selection: Any = measurements.make_noisy_max(
            _vector_domain(), metrics.linf_distance(T="i64"), measure, scale=scale
        )
        if selection.map(sensitivity) <= cost:  # OpenDP rounds the cost that it states up
            return int(selection(scores))
        scale *= 1.0 + 1e-12


@cache
def _vector_domain() -> Any:  # noqa: ANN401
    return domains.vector_domain(domains.atom_domain(T="i64"))


_ADDERS: dict[Noise, AddNoise] = {Noise.LAPLACE: add_laplace, Noise.GAUSSIAN: add_gaussian}


def register_sampler(noise: Noise, add: AddNoise) -> None:
    """Register a sampler for a kind of noise that has none.

    `add` must be exact on whole numbers: every release that uses it depends on that.
    """
    if noise in _ADDERS:
        raise InvalidInput(f"`noise` must be a kind without a sampler; got {noise}, which has one.")
    _ADDERS[noise] = add
