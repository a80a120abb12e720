"""Counts of values that nobody listed: which become known, and what that costs.

A list of all values that occur would reveal values that a single person has. So each value's count
gets noise, and only values whose noisy count reaches a threshold become known. This is a stability
histogram (Korolova, Kenthapadi, Mishra and Ntoulas 2009; Bun, Nissim and Stemmer 2016), with
Gaussian noise.

Privacy. Let neighbours differ in at most m rows of one side, as the neighbour relation says, let k
be the smallest count that is looked at, s the standard deviation of the noise and T the threshold.

- Values with a count of at least k on both tables: their counts move by at most the L2 sensitivity
  of a table of counts. Noise of the scale that a price of rho buys for it makes them rho-zCDP, and
  dropping those below T is post-processing.
- Values with a count of at least k on one table and below k on the other, where they are never
  looked at: at most m of them on either side, each with a count of at most k - 1 + m. The chance
  that any of their noisy counts reaches T is at most m P[X >= T - (k - 1 + m)], where X is the
  noise; T is chosen so that this is at most delta. A discrete Gaussian variable exceeds t no more
  often than a continuous one exceeds t - 1 (Canonne, Kamath and Steinke 2020), which is used here.

Outside an event of probability delta the outcome has the rho-zCDP of the first part: together it is
delta-approximate rho-zCDP (Bun and Steinke 2016). Such events compose: rhos and deltas add up.
Looking only at counts from k on is free of charge, and what an engine needs not to list millions of
values that few records have: k is public, and small beside the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from juncture.errors import InvalidInput
from juncture.privacy.accounting import Cost, Neighbours
from juncture.privacy.price import ZCDP, Price

# Counts below about this share of the noise are not looked at; never more than so many.
_LEAST_SHARE, _MAX_LEAST = 0.1, 50
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Threshold:
    """From which noisy count on a value becomes known, and what it costs.

    >>> found = Threshold.of(ZCDP(0.005), 1e-7, Neighbours.ADD_OR_REMOVE)
    >>> found.least, found.scale, found.value
    (2, 10.0, 55)
    """

    price: ZCDP
    delta: float
    scale: float
    """The scale of the noise on each count."""
    least: int
    """The smallest count that is looked at."""
    value: int
    """The smallest noisy count of a value that becomes known."""

    @classmethod
    def of(cls, price: Price, delta: float, neighbours: Neighbours) -> Threshold:
        """The threshold for a price, and for a probability of revealing a value of one person."""
        from scipy.special import ndtri  # noqa: PLC0415  slow to import

        if not isinstance(price, ZCDP):
            raise InvalidInput(
                f"`price` must be a rho of zCDP for private values; got {price}. Use a budget with "
                "an epsilon and a delta."
            )
        if not 0.0 < delta < 1.0:
            raise InvalidInput(f"`delta` must be above 0 and below 1; got {delta}.")
        scale, rows = price.cell_scale(neighbours), neighbours.max_rows
        least = 1 + min(int(_LEAST_SHARE * scale), _MAX_LEAST)
        tail = -float(ndtri(delta / rows)) * (1.0 + _ROUNDING)
        value = math.ceil(least - 1 + rows + 1 + scale * max(tail, 0.0))
        return cls(price, delta, scale, least, value)

    @property
    def cost(self) -> Cost:
        """What an event with this threshold costs."""
        return Cost(epsilon=math.inf, rho=self.price.rho, delta=self.delta)
