"""Kinds of noise, each described by one class.

A measurement names the kind of its noise. The class says what follows from the kind: which loss is
its likelihood, how fresh noise of that kind is drawn, how much its discrete form spreads. To add a
kind, define a class and register one instance of it:

    class Uniform(Noise):
        name = "uniform"
        ...

    register_noise(Uniform())

A kind that is not registered is refused wherever its name is read. The exact samplers of releases
belong to the trust boundary (`juncture.private.noise`): a kind without one is refused there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture.errors import InvalidInput

Array = NDArray[np.float64]


class Noise(ABC):
    """One kind of noise, symmetric around zero. `str(noise)` is its name in files.

    >>> Noise.LAPLACE, round(Noise.LAPLACE.stddev(scale=1.0), 4)
    (<Noise laplace>, 1.4142)
    """

    GAUSSIAN: ClassVar[Noise]
    LAPLACE: ClassVar[Noise]

    name: ClassVar[str]
    squared_loss: ClassVar[bool]
    """Whether its likelihood is the squared residual; otherwise it is the absolute one."""
    kurtosis: ClassVar[float]
    """The mean fourth power over the squared variance: 3 for Gaussian noise."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, stddev: ArrayLike, n: int) -> Array:
        """`n` fresh draws with that standard deviation (one, or one for each): for simulations."""

    @abstractmethod
    def mean_absolute(self, stddev: float) -> float:
        """The mean absolute value of noise with that standard deviation."""

    @abstractmethod
    def stddev(self, scale: float) -> float:
        """The standard deviation of noise with that scale, the parameter of its density."""

    @abstractmethod
    def discrete_stddev(self, scale: float) -> float:
        """The standard deviation of the kind's form on whole numbers, for the same scale."""

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Noise {self.name}>"


class Gaussian(Noise):
    """Normal noise; its scale is its standard deviation."""

    name = "gaussian"
    squared_loss = True
    kurtosis = 3.0

    def draw(self, rng: np.random.Generator, stddev: ArrayLike, n: int) -> Array:
        """See `Noise.draw`."""
        return np.asarray(rng.normal(size=n) * np.asarray(stddev))

    def mean_absolute(self, stddev: float) -> float:
        """See `Noise.mean_absolute`."""
        return stddev * math.sqrt(2.0 / math.pi)

    def stddev(self, scale: float) -> float:
        """See `Noise.stddev`."""
        return scale

    def discrete_stddev(self, scale: float) -> float:
        """See `Noise.discrete_stddev`."""
        if scale > 10.0:  # the continuous form differs by less than a double can hold
            return scale
        numbers = np.arange(-200, 201)
        weights = np.exp(-(numbers**2) / (2.0 * scale**2))
        return math.sqrt(float((weights * numbers**2).sum() / weights.sum()))


class Laplace(Noise):
    """Double exponential noise: with scale b, the density of x is proportional to e^(-|x| / b)."""

    name = "laplace"
    squared_loss = False
    kurtosis = 6.0

    def draw(self, rng: np.random.Generator, stddev: ArrayLike, n: int) -> Array:
        """See `Noise.draw`."""
        return np.asarray(rng.laplace(size=n) * np.asarray(stddev) / math.sqrt(2.0))

    def mean_absolute(self, stddev: float) -> float:
        """See `Noise.mean_absolute`: the scale itself."""
        return stddev / math.sqrt(2.0)

    def stddev(self, scale: float) -> float:
        """See `Noise.stddev`."""
        return math.sqrt(2.0) * scale

    def discrete_stddev(self, scale: float) -> float:
        """See `Noise.discrete_stddev`."""
        return math.sqrt(2.0 * math.exp(-1.0 / scale)) / -math.expm1(-1.0 / scale)


_KINDS: dict[str, Noise] = {}


def register_noise(noise: Noise) -> Noise:
    """Make a kind of noise known by its name: to measurements, release files and commands."""
    known = _KINDS.setdefault(noise.name, noise)
    if type(known) is not type(noise):
        raise InvalidInput(
            f"`noise` must have a name of its own; got {noise.name!r}, which {known!r} has."
        )
    return known


def find_noise(noise: str | Noise) -> Noise:
    """The kind of noise with that name; refuses a kind that is not registered."""
    known = _KINDS.get(str(noise))
    if known is None or (isinstance(noise, Noise) and known is not noise):
        raise InvalidInput(
            f"`noise` must be one of {', '.join(_KINDS)}; got {str(noise)!r}. A new kind is made "
            "known with `juncture.tables.noise.register_noise`."
        )
    return known


Noise.GAUSSIAN = register_noise(Gaussian())
Noise.LAPLACE = register_noise(Laplace())
