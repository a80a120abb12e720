"""A fitted distribution: potentials on cliques, with the marginals that are theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from juncture.domain import Clique, Domain
from juncture.errors import InvalidInput
from juncture.factor import Factor
from juncture.layout import Layout, Vector
from juncture.plan import Plan


@dataclass(frozen=True, eq=False)
class Model:
    """A distribution over the whole table, with the number of records that it stands for."""

    plan: Plan
    potentials: Vector
    marginals: Vector
    log_partition: float
    total: float

    @property
    def domain(self) -> Domain:
        """The attributes with their sizes."""
        return self.plan.domain

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The cliques that have potentials."""
        return self.plan.cliques

    @property
    def layout(self) -> Layout:
        """Where the table of each clique lies in the vectors."""
        return Layout(self.plan.domain, self.plan.cliques)

    def project(self, attributes: Iterable[str]) -> Factor:
        """The marginal on attributes that lie together in one clique, in the order asked."""
        asked = self.domain.project(attributes)
        fitting = [clique for clique in self.cliques if set(clique).issuperset(asked)]
        if not fitting:
            raise InvalidInput(
                f"`attributes` must lie together in one clique of the model; got "
                f"{asked.attributes}. Measure them together, or ask for fewer."
            )
        smallest = min(fitting, key=self.domain.size_of)
        return self.layout.factor(self.marginals, smallest).project(asked)

    @property
    def entropy(self) -> float:
        """The entropy of the distribution of one record, in nats."""
        occupied = self.marginals > 0
        energy = float(self.potentials[occupied] @ self.marginals[occupied]) / self.total
        return self.log_partition - energy
