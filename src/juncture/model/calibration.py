"""A model as a tree of probability tables, one for each maximal clique.

The distribution is the marginal of any one node, times what every other node adds given its
separator from it. All entries are probabilities, so sums over branches of the tree need no
normalising and no logarithms, however far the potentials were spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from juncture._util.memory import free_memory_bytes
from juncture.engine.oracle import OracleFactory, find_node_marginals, predict_tree_bytes
from juncture.engine.plan import SHARE_OF_FREE_MEMORY, Plan
from juncture.engine.plan_text import abbreviate, format_bytes
from juncture.errors import ModelTooLarge
from juncture.model.clique_tree import CliqueTree
from juncture.tables.layout import Layout, Vector


class Calibration(CliqueTree):
    """The marginals of all maximal cliques, and the tree between them.

    Make one with `Calibration.of_model`.
    """

    def __init__(
        self, plan: Plan, tables: Sequence[Vector], potentials: Vector, oracle: OracleFactory
    ) -> None:
        super().__init__(plan)
        self._tables, self._potentials, self._oracle = tables, potentials, oracle
        self._masses: dict[int, Vector] = {}

    @classmethod
    def of_potentials(cls, plan: Plan, potentials: Vector, oracle: OracleFactory) -> Calibration:
        """The tree of a model with these potentials; refused if its tables do not fit in memory."""
        _check_memory(plan, oracle)
        return cls(plan, find_node_marginals(oracle, plan, potentials), potentials, oracle)

    @classmethod
    def of_model(
        cls, plan: Plan, potentials: Vector, probabilities: Vector, oracle: OracleFactory
    ) -> Calibration:
        """The tree of a model with known marginals; where these are all of its tables, of them."""
        if not plan.measures_all_nodes:
            return cls.of_potentials(plan, potentials, oracle)
        layout = Layout(plan.domain, plan.cliques)
        tables = [layout.view(probabilities, node.clique) for node in plan.nodes]
        return cls(plan, tables, potentials, oracle)

    def with_clique(self, attributes: Iterable[str]) -> Calibration:
        """A tree of the same distribution with a node that holds all of these attributes."""
        names = self.plan.domain.canonical(name for name in attributes if name in self.home)
        if any(set(names).issubset(node.clique) for node in self.nodes):
            return self
        grown, size = self.plan.extend(names), self.plan.domain.size_of(names)
        potentials = np.concatenate([self._potentials, np.zeros(size)])
        return Calibration.of_potentials(grown, potentials, self._oracle)

    def marginal(self, index: int) -> Vector:
        """The probabilities of a node's cells, an axis for each attribute of its clique."""
        return self._tables[index]

    def separator_mass(self, index: int) -> Vector:
        """The probabilities of the separator between a node and its parent."""
        if index not in self._masses:
            clique, separator = self.nodes[index].clique, self.nodes[index].separator
            summed = tuple(axis for axis, name in enumerate(clique) if name not in separator)
            self._masses[index] = np.asarray(self._tables[index].sum(axis=summed))
        return self._masses[index]

    def mass_between(self, left: int, right: int) -> Vector:
        """The probabilities of the separator between two neighbours, as a flat vector."""
        child = left if self.nodes[left].parent == right else right
        return self.separator_mass(child).reshape(-1)


def _check_memory(plan: Plan, oracle: OracleFactory) -> None:
    """Refuse tables that do not fit in memory, whatever the oracle: they are stored in full."""
    needed, limit = predict_tree_bytes(oracle, plan), free_memory_bytes() * SHARE_OF_FREE_MEMORY
    if needed > limit:
        raise ModelTooLarge(
            f"`model` must have tables for all of its maximal cliques within "
            f"{format_bytes(int(limit))}; got {format_bytes(needed)}, the largest table over "
            f"({abbreviate(plan.largest_clique)}). Fit a model without a clique that closes a "
            "cycle through these attributes, or ask where more memory is free."
        )
