"""What one event may cost: a pure epsilon, or a rho of zCDP.

A price knows everything that follows from it: a share of it, its cost in the ledger, and which
noise it buys and how much. Nowhere else in the package is a noise scale derived from a budget.

>>> Pure(1.0).share(0.25)
Pure(0.25)
>>> ZCDP(0.5).scale(sensitivity=1.0)
1.0
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from juncture.errors import InvalidInput
from juncture.privacy.accounting import Cost, Neighbours, l1_sensitivity, l2_sensitivity
from juncture.tables.domain import Domain
from juncture.tables.noise import Noise
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Operator, bind

_MAX_AMOUNT = 1e100


@dataclass(frozen=True, repr=False)
class Price(ABC):
    """An amount of one notion of privacy, and the noise that it buys: `Pure` or `ZCDP`.

    >>> from juncture.privacy.accounting import Neighbours
    >>> round(Pure(1.0).cell_stddev(Neighbours.ADD_OR_REMOVE), 3)
    1.414
    """

    amount: float
    unit: ClassVar[str]
    """The name of the amount: epsilon or rho."""
    noise: ClassVar[Noise]
    """The kind of noise that it buys."""
    norm: ClassVar[int]
    """The norm in which that noise hides a change of the answers: 1 or 2."""

    def __post_init__(self) -> None:
        try:
            amount = float(self.amount)
        except (TypeError, ValueError, OverflowError):
            amount = math.nan
        if not 0.0 < amount < _MAX_AMOUNT:
            raise InvalidInput(
                f"`{self.unit}` must be a positive number below {_MAX_AMOUNT:g}; got "
                f"{self.amount!r}. Typical values are 0.1 to 10."
            )
        object.__setattr__(self, "amount", amount)

    def share(self, fraction: float) -> Self:
        """A fraction of this price: fractions that add up to 1 cost together what it costs."""
        return replace(self, amount=self.amount * fraction)

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What a measurement at this price costs."""

    @property
    @abstractmethod
    def selection_cost(self) -> Cost:
        """What a choice by the exponential mechanism at this price costs."""

    @property
    @abstractmethod
    def selection_epsilon(self) -> float:
        """The epsilon of the exponential mechanism that this price buys."""

    @abstractmethod
    def sensitivity(self, operator: Operator, neighbours: Neighbours) -> float:
        """How far a neighbouring table moves the answers, in the norm that the noise hides."""

    def lattice_sensitivity(
        self, operator: Operator, neighbours: Neighbours, binary_places: int
    ) -> float:
        """The sensitivity in units of a lattice with `binary_places` binary places."""
        return self.sensitivity(operator, neighbours) * 2.0**binary_places

    @abstractmethod
    def scale(self, sensitivity: float) -> float:
        """The scale of the noise for answers of this sensitivity."""

    def stddev(self, operator: Operator, neighbours: Neighbours) -> float:
        """The standard deviation of the noise on each answer of a query.

        The curator's noise is discrete and may differ from this in the last digits.
        """
        return self.noise.stddev(self.scale(self.sensitivity(operator, neighbours)))

    def cell_stddev(self, neighbours: Neighbours) -> float:
        """The standard deviation of the noise on each count of a table with at least two cells."""
        return self.stddev(_COUNTS, neighbours)

    def cell_scale(self, neighbours: Neighbours) -> float:
        """The scale of the noise on each count of a table with at least two cells."""
        return self.scale(self.sensitivity(_COUNTS, neighbours))

    def __str__(self) -> str:
        return f"{self.unit} {self.amount:.4g}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.amount!r})"


# Every count of a table; their sensitivity does not depend on how many there are.
_COUNTS = bind(Identity(), Domain({"cell": 2}))


@dataclass(frozen=True, repr=False)
class Pure(Price):
    """A pure epsilon. It buys Laplace noise, whose scale is the L1 sensitivity over epsilon.

    >>> Pure(0.5).scale(sensitivity=1.0)
    2.0
    """

    unit = "epsilon"
    noise = Noise.LAPLACE
    norm = 1

    @property
    def epsilon(self) -> float:
        """The amount, under its usual name."""
        return self.amount

    @property
    def cost(self) -> Cost:
        """See `Price.cost`."""
        return Cost.pure(self.amount)

    @property
    def selection_cost(self) -> Cost:
        """See `Price.selection_cost`.

        The choice is made by report-noisy-max with exponential noise. Its epsilon is pure, but its
        loss is not known to lie in a range of width epsilon: so not the smaller rho of
        `Cost.selection`.
        """
        return Cost.pure(self.amount)

    @property
    def selection_epsilon(self) -> float:
        """See `Price.selection_epsilon`."""
        return self.amount

    def sensitivity(self, operator: Operator, neighbours: Neighbours) -> float:
        """The sensitivity in L1."""
        return l1_sensitivity(operator, neighbours)

    def lattice_sensitivity(
        self, operator: Operator, neighbours: Neighbours, binary_places: int
    ) -> float:
        """The sensitivity in L1, rounded up to whole units: answers on a lattice move by those."""
        units = super().lattice_sensitivity(operator, neighbours, binary_places)
        nearest = round(units)
        return float(nearest if abs(units - nearest) <= 1e-6 else math.ceil(units))

    def scale(self, sensitivity: float) -> float:
        """See `Price.scale`."""
        return _check_sensitivity(sensitivity) / self.amount


@dataclass(frozen=True, repr=False)
class ZCDP(Price):
    """A rho of zCDP. It buys Gaussian noise: the L2 sensitivity over the root of 2 rho.

    >>> ZCDP(0.125).scale(sensitivity=1.0)
    2.0
    """

    unit = "rho"
    noise = Noise.GAUSSIAN
    norm = 2

    @property
    def rho(self) -> float:
        """The amount, under its usual name."""
        return self.amount

    @property
    def cost(self) -> Cost:
        """See `Price.cost`."""
        return Cost.concentrated(self.amount)

    @property
    def selection_cost(self) -> Cost:
        """See `Price.selection_cost`: the exponential mechanism at rho is also pure."""
        return Cost.selection(self.selection_epsilon)

    @property
    def selection_epsilon(self) -> float:
        """See `Price.selection_epsilon`: epsilon squared over 8 is rho (Cesar and Rogers 2021)."""
        return math.sqrt(8.0 * self.amount)

    def sensitivity(self, operator: Operator, neighbours: Neighbours) -> float:
        """The sensitivity in L2."""
        return l2_sensitivity(operator, neighbours)

    def scale(self, sensitivity: float) -> float:
        """See `Price.scale`."""
        return _check_sensitivity(sensitivity) / math.sqrt(2.0 * self.amount)


def _check_sensitivity(sensitivity: float) -> float:
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise InvalidInput(
            f"`sensitivity` must be positive and finite; got {sensitivity}. Do not measure "
            "a query that no record can move."
        )
    return sensitivity
