"""What a mechanism may spend: a pure epsilon with Laplace noise, or a rho with Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass

from juncture.errors import InvalidInput


@dataclass(frozen=True)
class Price:
    """An amount of one kind."""

    kind: str
    amount: float

    @property
    def gaussian(self) -> bool:
        """Whether it is paid in zCDP."""
        return self.kind == "rho"

    def part(self, share: float) -> dict[str, float]:
        """A share of it, as the curator takes it."""
        return {self.kind: self.amount * share}


def price_of(epsilon: float | None, rho: float | None) -> Price:
    """The one price that is given."""
    if epsilon is not None and rho is None:
        return Price("epsilon", float(epsilon))
    if rho is not None and epsilon is None:
        return Price("rho", float(rho))
    raise InvalidInput(
        f"`epsilon` or `rho` must be given, and only one of them; got {epsilon!r} and {rho!r}. "
        "Choose the noise."
    )
