"""The marginals that a model has from its fit, and the questions that they answer."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from juncture.model.table import Table
from juncture.tables.domain import Clique
from juncture.tables.layout import Layout, Vector


class Measured:
    """The probabilities on the measured cliques."""

    def __init__(self, layout: Layout, probabilities: Vector) -> None:
        self._layout, self._probabilities = layout, probabilities

    @cached_property
    def _holders(self) -> dict[str, list[Clique]]:
        """The cliques that have each attribute, the smallest first."""
        holders: dict[str, list[Clique]] = {}
        for clique in sorted(self._layout.cliques, key=self._layout.domain.size_of):
            for name in clique:
                holders.setdefault(name, []).append(clique)
        return holders

    def find_holder(self, names: Clique) -> Clique | None:
        """The smallest clique that has all of these attributes, each of which is in some clique.

        Of no attributes any clique knows the mass, and without cliques the empty one.
        """
        if not names:
            return min(self._layout.cliques, key=self._layout.domain.size_of, default=())
        fewest, wanted = min([self._holders[name] for name in names], key=len), set(names)
        for clique in fewest:
            if wanted.issubset(clique):
                return clique
        return None

    def project(self, holder: Clique, names: Clique) -> Table:
        """The marginal on attributes that a clique has."""
        if not names:
            return Table(np.ones(()), ())
        return Table(self._layout.view(self._probabilities, holder), holder).sum_onto(names)
