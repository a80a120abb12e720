"""A budget that is spent step by step, where what a step costs depends on earlier outcomes."""

from __future__ import annotations

import math
from dataclasses import replace

from juncture.privacy.price import Price

# This share of the whole is kept back: no rounding of costs or of their sum takes it above.
_ROUNDING = 1e-12


class Spending:
    """What was spent of a price, and what is left of it.

    A privacy filter: prices are chosen after earlier outcomes were seen, and none is given out that
    would take the sum above the whole. For pure epsilons (Rogers, Roth, Ullman and Vadhan 2016) and
    for rhos of zCDP (Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers and Wu 2023) such a run
    costs no more than the whole, as if all prices had been fixed beforehand.

    >>> from juncture.privacy.price import ZCDP
    >>> spending = Spending(ZCDP(1.0))
    >>> spending.take(ZCDP(0.6)), round(spending.take(ZCDP(0.6)).amount, 9), spending.is_over
    (ZCDP(0.6), 0.4, True)
    """

    def __init__(self, whole: Price) -> None:
        self._limit = whole.amount * (1.0 - _ROUNDING)
        self._spent: list[float] = []
        self.is_over = False
        """Whether everything was spent."""

    @property
    def left(self) -> float:
        """The amount that is left."""
        return 0.0 if self.is_over else max(0.0, self._limit - math.fsum(self._spent))

    @property
    def spent_share(self) -> float:
        """The share of the whole that was spent."""
        return 1.0 - self.left / self._limit

    def take(self, price: Price) -> Price:
        """Spend a price, or all that is left where that is less."""
        return self._take(price) if price.amount < self.left else self._take_rest(price)

    def take_round(self, price: Price) -> Price:
        """Spend a price; where less than another one would be left, all of it."""
        return self._take(price) if self.left >= 2.0 * price.amount else self._take_rest(price)

    def _take_rest(self, price: Price) -> Price:
        taken = self._take(replace(price, amount=self.left))
        self.is_over = True
        return taken

    def _take(self, price: Price) -> Price:
        self._spent.append(price.amount)
        return price
