"""Juncture's side of the comparison on networks."""

from __future__ import annotations

from functools import cached_property

import network_tasks
import numpy as np
from bif import Array, Network
from network_tasks import Pair, Question

from juncture import Domain, Factor, Model


class Asked:
    """Our model: a network's tables are potentials, as logarithms."""

    def __init__(self, network: Network) -> None:
        self.domain = Domain(network.sizes)
        with np.errstate(divide="ignore"):
            self.factors = [
                Factor(self.domain.project((*network.parents[name], name)), np.log(table))
                for name, table in network.tables.items()
            ]

    @cached_property
    def model(self) -> Model:
        """The model, made for the first answer."""
        return Model.of_potentials(self.domain, self.factors)

    def posterior(self, name: str) -> Array:
        """See `network_tasks.Side`."""
        return self.model.project((name,)).values

    def joint(self, pair: Pair) -> Array:
        """See `network_tasks.Side`."""
        return self.model.project(pair).values

    def posterior_given(self, question: Question) -> Array:
        """See `network_tasks.Side`."""
        given = self.model.condition({question.given: question.code})
        return given.project((question.asked,)).values / given.total


if __name__ == "__main__":
    network_tasks.main(Asked)
