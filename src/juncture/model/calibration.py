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
from juncture.model.table import Table
from juncture.tables.layout import Layout, Vector


class Calibration(CliqueTree):
    """The marginals of all maximal cliques, and the tree between them.

    Make one with `Calibration.of_model`.
    """

    def __init__(
        self, plan: Plan, tables: Sequence[Vector], potentials: Vector, oracle: OracleFactory
    ) -> None:
        super().__init__(plan)
        self.tables, self.potentials, self.oracle = tables, potentials, oracle
        self._divisors: dict[int, Vector] = {}

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
        potentials = np.concatenate([self.potentials, np.zeros(size)])
        return Calibration.of_potentials(grown, potentials, self.oracle)

    def marginal(self, index: int) -> Vector:
        """The probabilities of a node's cells, an axis for each attribute of its clique."""
        return self.tables[index]

    def separator_divisor(self, index: int) -> Vector:
        """The probabilities of the separator between a node and its parent, and one where zero.

        What is to be divided by a zero is zero itself, and stays it when divided by one.
        """
        if index not in self._divisors:
            clique, separator = self.nodes[index].clique, self.nodes[index].separator
            mass = Table(self.marginal(index), clique).sum_onto(separator).values
            self._divisors[index] = np.where(mass > 0, mass, 1.0)
        return self._divisors[index]

    def divisor_between(self, left: int, right: int) -> Vector:
        """The divisor of the separator between two neighbours, as a flat vector."""
        child = left if self.nodes[left].parent == right else right
        return self.separator_divisor(child).reshape(-1)

    def put(self, values: Vector) -> Vector:
        """Numbers of NumPy where the tables are; see `juncture.model.card_tree`."""
        return values

    def fetch(self, values: Vector) -> Vector:
        """Numbers that lie where the tables do, as numbers of NumPy."""
        return values


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
