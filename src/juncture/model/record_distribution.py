"""The distribution of one record where no tree fits: potentials, and weighted records at them.

It answers what a `Distribution` answers, by sums over its records: any marginal and any factored
query takes a time that grows with the records alone. What needs the sum over all possible records,
the log-partition function and the entropy, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn

import numpy as np

from juncture.engine.gibbs import Pair, mix_key
from juncture.engine.oracle import OracleFactory, build_plan, make_oracle
from juncture.engine.plan import Plan
from juncture.engine.plan_text import abbreviate, format_count
from juncture.engine.population import Population
from juncture.engine.tempering import move_to
from juncture.errors import InvalidInput, ModelTooLarge
from juncture.model.evidence import apply_evidence
from juncture.model.query_parts import answer_parts
from juncture.model.record_sampler import RecordSampler
from juncture.model.unmeasured import find_unmeasured
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout, Vector
from juncture.tables.queries.blocks import Block, Identity
from juncture.tables.queries.products import Kron, Query, bind
from juncture.tables.records import Codes

# Tables of answers may have this many cells.
_MAX_CELLS = 1 << 27
# With fewer effective records than these, evidence is held while sweeps make more; and so many.
_FEW, _REFILLED = 5_000, 50_000
_SWEEPS = 20


@dataclass(frozen=True, eq=False)
class RecordDistribution:
    """Potentials on cliques, and weighted records that stand for what follows from them."""

    plan: Plan
    potentials: Vector
    """A record's log-probability is the sum of its potentials, less a number that is not known."""
    codes: Codes = field(repr=False)
    """The records: a row for each attribute, a column for each record."""
    weights: Vector = field(repr=False)
    """The share of each record; they add up to one."""
    oracle: OracleFactory = field(repr=False)
    """What makes such records, here and for all distributions that are made from this one."""
    log_mass: float = 0.0
    """The logarithm of the share of all records that agrees with every condition so far."""
    pairs: tuple[Pair, ...] = ()
    """Attributes that are drawn together."""
    seed: int = 0

    @classmethod
    def of_population(
        cls, plan: Plan, population: Population, oracle: OracleFactory, log_mass: float = 0.0
    ) -> RecordDistribution:
        """The distribution that a population stands for."""
        population.settle()
        return cls(
            plan,
            population.potentials,
            population.codes,
            population.weights / population.weights.sum(),
            oracle,
            log_mass,
            population.sweeper.pairs,
            population.next_key(),
        )

    @property
    def domain(self) -> Domain:
        """The attributes with their sizes."""
        return self.plan.domain

    @cached_property
    def layout(self) -> Layout:
        """Where the table of each clique lies in the vectors."""
        return self.plan.layout

    @cached_property
    def probabilities(self) -> Vector:
        """The marginals on the cliques, in the order of `layout`: each adds up to one."""
        parts = [self._count(clique, self.weights).reshape(-1) for clique in self.plan.cliques]
        return np.concatenate(parts) if parts else np.zeros(0)

    @cached_property
    def unmeasured(self) -> Clique:
        """The attributes of which nothing is known but which values are possible."""
        return find_unmeasured(self.plan, self.layout, self.potentials)

    @property
    def effective_number(self) -> float:
        """How many records of equal weight would tell as much."""
        return 1.0 / float(self.weights @ self.weights)

    @property
    def log_partition(self) -> float:
        """Not known: see the error."""
        _refuse("a log-partition function or a log-probability")

    @property
    def entropy(self) -> float:
        """Not known: see the error."""
        _refuse("the entropy of whole records")

    @cached_property
    def sampler(self) -> RecordSampler:
        """What draws records, made when first needed."""
        return self.make_sampler(())

    def make_sampler(self, given: Iterable[str]) -> RecordSampler:
        """What draws records of which some columns are given."""
        return RecordSampler(self.make_population(), tuple(given))

    def make_population(self) -> Population:
        """The records as a population of their own, at the potentials."""
        population = Population(self.layout, self.codes, self.potentials, self.seed)
        population.weights = self.weights * len(self.weights)
        population.effective_share = self.effective_number / len(self.weights)
        if self.pairs:
            population.sweeper = population.sweeper.with_pairs(self.pairs)
        return population

    def renew(self, n: int) -> RecordDistribution:
        """The same distribution by so many records, drawn anew by a sweep."""
        population = self.make_population()
        population.renew(n)
        return self.of_population(self.plan, population, self.oracle, self.log_mass)

    def project(self, subdomain: Domain) -> Factor:
        """The probabilities of the cells of any attributes."""
        return Factor.of_finite(subdomain, self._spread(tuple(subdomain), self.weights))

    def project_many(self, subdomains: Sequence[Domain]) -> Iterator[Factor]:
        """The same for many sets of attributes, one after another."""
        return map(self.project, subdomains)

    def answer(self, query: Query) -> Vector:
        """The answers to a factored query for one record: see `Model.answer`."""

        def ask(part: Kron) -> Vector:
            names = self.domain.project(part.blocks)
            return self._answer_blocks({name: part.blocks[name] for name in names})

        return answer_parts(query, ask)

    def _answer_blocks(self, blocks: Mapping[str, Block]) -> Vector:
        """The answers of blocks: those with one answer weigh the records."""
        rows = {name: block.n_rows(self.domain[name]) for name, block in blocks.items()}
        weights, kept = self.weights, dict[str, Block]()
        for name, block in blocks.items():
            if rows[name] > 1 or isinstance(block, Identity):
                kept[name] = block
                continue
            values = block.adjoint(np.ones(1), self.domain[name])
            if name in self.plan.free_attributes:
                weights = weights * float(values.mean())
            else:
                weights = weights * values[self.codes[self.domain.positions[name]]]
        table = self._spread(tuple(kept), weights)
        if kept:
            query = bind(Kron(kept), self.domain.project(kept))
            table = query.apply(np.ascontiguousarray(table))
        shape = [n for n in rows.values() if n > 1] if len(rows) > 64 else list(rows.values())
        return np.asarray(table).reshape(shape)

    def _spread(self, names: tuple[str, ...], weights: Vector) -> Vector:
        """Weighted counts; attributes that no clique mentions are uniform."""
        self._check_cells(names)
        free = [name for name in names if name in self.plan.free_attributes]
        if not free:
            return self._count(names, weights)
        counts = self._count(tuple(n for n in names if n not in free), weights)
        shape = [1 if name in free else self.domain[name] for name in names]
        share = 1.0 / math.prod(self.domain[name] for name in free)
        full = np.empty([self.domain[name] for name in names])
        full[...] = share * counts.reshape(shape)
        return full

    def _count(self, names: Sequence[str], weights: Vector) -> Vector:
        sizes = [self.domain[name] for name in names]
        columns = [self.codes[self.domain.positions[name]] for name in names]
        cells = np.zeros(len(weights), dtype=np.int64)
        for index, (size, column) in enumerate(zip(sizes, columns, strict=True)):
            if index > 0:
                cells *= size
            cells += column
        counts: Vector = np.bincount(cells, weights, math.prod(sizes)).astype(np.float64)
        return counts.reshape(sizes)

    def _check_cells(self, names: tuple[str, ...]) -> None:
        cells = math.prod(self.domain[name] for name in names)
        if cells > _MAX_CELLS:
            raise ModelTooLarge(
                f"`query` must be over at most {format_count(_MAX_CELLS)} cells; got "
                f"{format_count(cells)} of ({abbreviate(names)}). Ask about fewer attributes, or "
                "for sums over them."
            )

    def condition(self, codes: Mapping[str, Iterable[int]]) -> RecordDistribution:
        """The distribution given that attributes have one of these codes.

        Where enough records agree, they are kept. Where few do, sweeps that hold the evidence make
        more of them; where none does, the records are led there step by step.
        """
        allowed = {name: sorted(set(given)) for name, given in codes.items()}
        new = [(name,) for name in allowed if name in self.plan.free_attributes]
        grown = [*self.plan.cliques, *new]
        plan = build_plan(self.oracle, self.domain, grown) if new else self.plan
        potentials = apply_evidence(plan, self.potentials, allowed)
        agrees = np.ones(len(self.weights), dtype=np.bool_)
        for name, given in allowed.items():
            agrees &= np.isin(self.codes[self.domain.positions[name]], given)
        share = float(self.weights @ agrees)
        if share == 0.0:
            return self._lead(plan, potentials)
        weights = self.weights[agrees] / share
        kept = np.ascontiguousarray(self.codes[:, agrees])
        log_mass = self.log_mass + math.log(share)
        if 1.0 / float(weights @ weights) < min(_FEW, len(self.weights) // 4):
            population = Population(Layout(self.domain, plan.cliques), kept, potentials, self.seed)
            population.weights = weights * len(weights)
            if self.pairs:
                population.sweeper = population.sweeper.with_pairs(self.pairs)
            population.renew(min(_REFILLED, len(self.weights)), _SWEEPS)
            return self.of_population(plan, population, self.oracle, log_mass)
        return RecordDistribution(
            plan, potentials, kept, weights, self.oracle, log_mass, self.pairs,
            mix_key(self.seed, 1),
        )  # fmt: skip

    def _lead(self, plan: Plan, potentials: Vector) -> RecordDistribution:
        """The distribution given evidence that no record agrees with."""
        start = np.concatenate([self.potentials, np.zeros(len(potentials) - len(self.potentials))])
        codes = self.make_population().resample(min(_REFILLED, len(self.weights)), self.seed)
        population = Population(Layout(self.domain, plan.cliques), codes, start, self.seed)
        if self.pairs:
            population.sweeper = population.sweeper.with_pairs(self.pairs)
        move_to(population, potentials, _SWEEPS)
        return self.of_population(
            plan, population, self.oracle, self.log_mass + population.log_mass
        )

    def most_probable(self) -> dict[str, int]:
        """The most probable record that climbing from many finds; nothing proves that it is."""
        engine = make_oracle(self.oracle, self.plan)
        if hasattr(engine, "adopt"):
            engine.adopt(self.make_population())
        return engine.maximum(self.potentials).record


def _refuse(what: str) -> NoReturn:
    raise InvalidInput(
        f"`oracle` must be exact for {what}; got a model made of records, which knows only their "
        "shares. Fit with the default oracle where the tree fits into memory."
    )
