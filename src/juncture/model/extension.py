"""Questions asked with an oracle call of their own: the question becomes one more clique.

Potentials of zero on a new clique change no probability, and the call gives the clique's marginal.
The plan is searched anew, so it is about as small as any plan that answers the question. An asked
attribute with a single answer and no negative weights needs no axis: the logarithms of its weights
are added to the potentials of a clique that it is in, and the mass of the model changes by the
share that the answer is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from juncture.engine.oracle import OracleFactory, PlanBuilder, build_plan, make_oracle
from juncture.engine.plan import Plan
from juncture.errors import ImpossibleModel
from juncture.model.table import Table
from juncture.tables.domain import Clique
from juncture.tables.layout import Layout, Vector

# So many plans are kept: a search takes longer than most calls.
_MAX_PLANS = 16
# Whether a plan fits is for the caller to say.
_NO_LIMIT = 1 << 200


class Extension:
    """A model whose plan can take in questions."""

    def __init__(
        self, plan: Plan, potentials: Vector, log_partition: float, oracle: OracleFactory
    ) -> None:
        self.plan, self._potentials = plan, potentials
        self._log_partition, self._oracle = log_partition, oracle
        self._plans: dict[tuple[Clique, ...], Plan] = {}

    def plan_with(self, cliques: Sequence[Clique]) -> Plan:
        """The plan with these cliques added, however large it is."""
        new = tuple(dict.fromkeys(map(self.plan.domain.canonical, cliques)))
        if new not in self._plans:
            if len(self._plans) == _MAX_PLANS:
                del self._plans[next(iter(self._plans))]
            self._plans[new] = self._search(new)
        return self._plans[new]

    def _search(self, new: tuple[Clique, ...]) -> Plan:
        domain, old = self.plan.domain, self.plan.cliques
        if set(new).issubset(old):
            return self.plan
        if isinstance(self._oracle, PlanBuilder):
            return build_plan(self._oracle, domain, [*old, *new])
        if len(new) == 1:
            return self.plan.extend(new[0], memory_limit=_NO_LIMIT)
        return Plan.build(domain, [*old, *new], memory_limit=_NO_LIMIT)

    def size_bytes(self, plan: Plan) -> int:
        """The memory that a call with this plan needs.

        Of an oracle that plans by itself only the potentials and the marginals are known.
        """
        if isinstance(self._oracle, PlanBuilder):
            return 8 * 2 * Layout(plan.domain, plan.cliques).size
        return plan.size_bytes

    def ask(
        self, cliques: Sequence[Clique], weights: Mapping[str, Vector] | None = None
    ) -> list[Table]:
        """The shares of the records on each clique, each record weighted.

        - `cliques`: attributes that cliques of the model mention.
        - `weights`: for some of the other attributes, a weight for each value; none is negative.
        """
        plan = self.plan_with(cliques)
        oracle = make_oracle(self._oracle, plan)
        start = np.concatenate(
            [self._potentials, np.zeros(oracle.layout.size - len(self._potentials))]
        )
        for name, values in (weights or {}).items():
            clique = min((c for c in plan.cliques if name in c), key=plan.domain.size_of)
            table = np.moveaxis(oracle.layout.view(start, clique), clique.index(name), -1)
            with np.errstate(divide="ignore"):
                table += np.log(values)
        names = [plan.domain.canonical(clique) for clique in cliques]
        try:
            beliefs = oracle.marginals(start)
        except ImpossibleModel:  # no record has a weight
            return [Table(np.zeros([plan.domain[n] for n in clique]), clique) for clique in names]
        share = math.exp(beliefs.log_partition - self._log_partition) if weights else 1.0
        # Copies, for the vector of all marginals is much larger.
        return [
            Table(share * oracle.layout.view(beliefs.marginals, clique), clique) for clique in names
        ]
