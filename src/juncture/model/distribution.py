"""The distribution of one record, and what can be asked of it without any number of records.

Nothing in this module knows how many records there are. That is the point of it: evidence may be
less probable than the smallest floating-point number, so that the number of records that agree with
it is zero, but their distribution is as good as any. Probabilities, means, entropies and drawn
records come from here; a `Model` multiplies by its total.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from juncture.engine.oracle import OracleFactory, build_plan, make_oracle
from juncture.engine.particles import RecordOracle
from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.model.evidence import apply_evidence
from juncture.model.query_parts import answer_parts
from juncture.model.questions import Questions
from juncture.model.record_distribution import RecordDistribution
from juncture.model.sampling import Sampler
from juncture.model.unmeasured import find_unmeasured
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout, Vector
from juncture.tables.queries.products import Kron, Query


@dataclass(frozen=True, eq=False)
class Distribution:
    """Potentials on cliques, with the probabilities that follow from them."""

    plan: Plan
    """The junction tree of the cliques that have potentials."""
    potentials: Vector
    """A record's log-probability is the sum of its potentials, less `log_partition`."""
    probabilities: Vector
    """The marginals on the same cliques, in the order of `layout`: each adds up to one."""
    log_partition: float
    """The logarithm of the sum of exp(potentials) over all possible records."""
    oracle: OracleFactory = field(default=Propagation, repr=False)
    """What computes marginals, here and for all distributions that are made from this one."""

    @classmethod
    def _of_vector(cls, plan: Plan, potentials: Vector, oracle: OracleFactory) -> Distribution:
        beliefs = make_oracle(oracle, plan).marginals(potentials)
        return cls(plan, potentials, beliefs.marginals, beliefs.log_partition, oracle)

    @property
    def domain(self) -> Domain:
        """The attributes with their sizes."""
        return self.plan.domain

    @cached_property
    def layout(self) -> Layout:
        """Where the table of each clique lies in the vectors."""
        return self.plan.layout

    @cached_property
    def unmeasured(self) -> Clique:
        """The attributes of which nothing is known but which values are possible."""
        return find_unmeasured(self.plan, self.layout, self.potentials)

    @cached_property
    def questions(self) -> Questions:
        """What answers questions, made when first needed."""
        return Questions(
            self.plan, self.potentials, self.probabilities, self.log_partition, self.oracle
        )

    @property
    def log_mass(self) -> float:
        """What falls, by a condition, by the logarithm of the share of records that agree."""
        return self.log_partition

    @cached_property
    def sampler(self) -> Sampler:
        """What draws records, made when first needed."""
        return Sampler(self.questions.tree)

    def make_sampler(self, given: Iterable[str]) -> Sampler:
        """What draws records of which some columns are given."""
        names = tuple(given)
        return Sampler(self.questions.tree.with_clique(names), names)

    def project(self, subdomain: Domain) -> Factor:
        """The probabilities of the cells of any attributes."""
        return Factor.of_finite(subdomain, self.questions.project(tuple(subdomain)))

    def project_many(self, subdomains: Sequence[Domain]) -> Iterator[Factor]:
        """The same for many sets of attributes, one after another, sharing their work."""
        answers = self.questions.project_many([tuple(each) for each in subdomains])
        return map(Factor.of_finite, subdomains, answers)

    def answer(self, query: Query) -> Vector:
        """The answers to a factored query for one record: see `Model.answer`."""

        def ask(part: Kron) -> Vector:
            names = self.domain.project(part.blocks)
            return self.questions.answer({name: part.blocks[name] for name in names})

        return answer_parts(query, ask)

    def condition(self, codes: Mapping[str, Iterable[int]]) -> Distribution:
        """The distribution given that attributes have one of these codes.

        Potentials are only ever excluded, so the difference of the two `log_partition` is the
        logarithm of the probability of the codes.
        """
        new = [(name,) for name in codes if name in self.plan.free_attributes]
        grown = [*self.plan.cliques, *new]
        plan = build_plan(self.oracle, self.domain, grown) if new else self.plan
        return self._of_vector(plan, apply_evidence(plan, self.potentials, codes), self.oracle)

    @property
    def entropy(self) -> float:
        """The entropy, in nats."""
        occupied = self.probabilities > 0
        energy = float(self.potentials[occupied] @ self.probabilities[occupied])
        return self.log_partition - energy

    def most_probable(self) -> dict[str, int]:
        """The record with the largest probability; ties go to low codes."""
        return make_oracle(self.oracle, self.plan).maximum(self.potentials).record


def make_distribution(
    domain: Domain, potentials: Iterable[Factor], oracle: OracleFactory
) -> Distribution | RecordDistribution:
    """The distribution with given potentials."""
    factors = list(potentials)
    plan = build_plan(oracle, domain, [tuple(factor.domain) for factor in factors])
    vector = plan.layout.pack(factors)
    engine = make_oracle(oracle, plan)
    if isinstance(engine, RecordOracle):
        return RecordDistribution.of_population(plan, engine.bring_to(vector), oracle)
    beliefs = engine.marginals(vector)
    return Distribution(plan, vector, beliefs.marginals, beliefs.log_partition, oracle)
