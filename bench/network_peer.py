"""The peer's side of the comparison on networks: pyAgrum, in an environment of its own."""

from __future__ import annotations

from functools import cached_property

import network_tasks
import numpy as np
import pyagrum as gum
from bif import Array, Network
from network_tasks import Pair, Question


class Asked:
    """The peer's network, with lazy propagation on a junction tree: its exact inference."""

    def __init__(self, network: Network) -> None:
        self.net = gum.BayesNet()
        for name, size in network.sizes.items():
            self.net.add(gum.LabelizedVariable(name, name, size))
        for name, parents in network.parents.items():
            for parent in parents:
                self.net.addArc(parent, name)
        for name, table in network.tables.items():
            cpt, axes = self.net.cpt(name), (*network.parents[name], name)
            # The peer's arrays have their first variable last.
            order = [axes.index(other) for other in reversed(cpt.names)]
            cpt[:] = np.ascontiguousarray(table.transpose(order))

    @cached_property
    def engine(self) -> gum.LazyPropagation:
        """The inference without evidence, made for the first answer."""
        engine = gum.LazyPropagation(self.net)
        engine.makeInference()
        return engine

    def posterior(self, name: str) -> Array:
        """See `network_tasks.Side`."""
        return np.array(self.engine.posterior(name).toarray())

    def joint(self, pair: Pair) -> Array:
        """See `network_tasks.Side`."""
        # The fastest of its ways to answer a pair that was not asked for beforehand.
        self.engine.addJointTarget(set(pair))
        self.engine.makeInference()
        table = self.engine.jointPosterior(set(pair))
        self.engine.eraseJointTarget(set(pair))
        axes = [*reversed(table.names)]
        return np.array(table.toarray()).transpose([axes.index(name) for name in pair])

    def posterior_given(self, question: Question) -> Array:
        """See `network_tasks.Side`."""
        self.conditioned.setEvidence({question.given: question.code})
        self.conditioned.makeInference()
        return np.array(self.conditioned.posterior(question.asked).toarray())

    @cached_property
    def conditioned(self) -> gum.LazyPropagation:
        """The inference that is given evidence."""
        return gum.LazyPropagation(self.net)


if __name__ == "__main__":
    network_tasks.main(Asked)
