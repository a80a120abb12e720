"""A fitted distribution with the number of records that it stands for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from juncture._util.notebook import Line, max_lines, model_html
from juncture._util.randomness import Random
from juncture._util.text import count_noun
from juncture.engine.oracle import OracleFactory
from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.errors import InvalidInput
from juncture.model import information
from juncture.model.distribution import Distribution, make_distribution
from juncture.model.evidence import Evidence, find_allowed_codes
from juncture.model.record_distribution import RecordDistribution
from juncture.model.record_sampler import RecordSampler
from juncture.model.sampling import Sampler, check_count, draw_key
from juncture.tables.codebook import Codebook
from juncture.tables.domain import Clique, Domain, refuse_many_axes
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout, Vector
from juncture.tables.queries.blocks import Block, Identity, WeightedSum
from juncture.tables.queries.products import Kron, Query
from juncture.tables.records import Codes, Records

if TYPE_CHECKING:
    from juncture.model.sql.answer import SqlAnswer
    from juncture.model.sql.replication import ReplicatedAnswer, Replies
    from juncture.model.sql.select import Source


@dataclass(frozen=True, eq=False)
class Model:
    """A distribution over the whole table, with the number of records that it stands for.

    `estimate` fits one; `Release.model` has one. Answers are numbers of records:
    `model.project(("age", "sex"))` adds up to `model.total`.

    >>> domain = Domain({"age": 2, "sex": 2})
    >>> weights = Factor(domain, np.log([[30.0, 10.0], [20.0, 40.0]]))
    >>> model = Model.of_potentials(domain, [weights], total=100)
    >>> model.project(("sex",)).values.round(6)
    array([50., 50.])
    >>> print(model.sql("SELECT age, COUNT(*) AS n FROM people WHERE sex = 0 GROUP BY age"))
    age   n
      0  30
      1  20
    >>> model.synthesize(10, rng=0)
    Records(10 records of age, sex; codes)
    """

    distribution: Distribution | RecordDistribution
    """The distribution of one record."""
    base_total: float = 1.0
    """The number of records, before any condition."""
    log_share: float = 0.0
    """The logarithm of the share of these records that agrees with all conditions."""
    codebook: Codebook = field(default_factory=Codebook)
    """What the codes stand for; the codes themselves, where nothing else is known."""

    def __post_init__(self) -> None:
        if not 0.0 < self.base_total < math.inf:
            raise InvalidInput(f"`total` must be positive and finite; got {self.base_total}.")
        object.__setattr__(self, "codebook", self.codebook.bind(self.domain))

    @classmethod
    def of_potentials(
        cls,
        domain: Domain,
        potentials: Iterable[Factor],
        total: float = 1.0,
        *,
        oracle: OracleFactory = Propagation,
    ) -> Model:
        """The model with given potentials, whose sums are log-probabilities up to a constant."""
        return cls(make_distribution(domain, potentials, oracle), total)

    @property
    def total(self) -> float:
        """The expected number of records; zero where it is too small for a number."""
        return self.base_total * math.exp(self.log_share)

    @property
    def log_total(self) -> float:
        """The logarithm of the number of records, however few they are."""
        return math.log(self.base_total) + self.log_share

    @property
    def marginals(self) -> Vector:
        """The expected counts on the cliques, in the order of `layout`."""
        return self.total * self.probabilities

    @property
    def probabilities(self) -> Vector:
        """The marginals of the distribution: each clique's table adds up to one."""
        return self.distribution.probabilities

    @property
    def potentials(self) -> Vector:
        """A record's log-probability is the sum of its potentials, less `log_partition`."""
        return self.distribution.potentials

    @property
    def log_partition(self) -> float:
        """The logarithm of the sum of exp(potentials) over all possible records."""
        return self.distribution.log_partition

    @property
    def plan(self) -> Plan:
        """The junction tree of the cliques that have potentials."""
        return self.distribution.plan

    @property
    def oracle(self) -> OracleFactory:
        """What computes marginals, for this model and for all that are made from it."""
        return self.distribution.oracle

    @property
    def domain(self) -> Domain:
        """The attributes with their sizes."""
        return self.plan.domain

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The cliques that have potentials."""
        return self.plan.cliques

    @property
    def unmeasured(self) -> Clique:
        """The attributes of which nothing is known: all their possible values count the same."""
        return self.distribution.unmeasured

    def excluding(self, codes: Mapping[str, Iterable[int]]) -> Model:
        """The same number of records, none of which has one of these codes of an attribute.

        For attributes that were not measured: what nobody knows anything about should not be
        missing, or outside its domain.
        """
        if not codes:
            return self
        left = {name: sorted(set(range(self.domain[name])) - set(codes[name])) for name in codes}
        return replace(self, distribution=self.distribution.condition(left))

    @property
    def layout(self) -> Layout:
        """Where the table of each clique lies in the vectors."""
        return self.distribution.layout

    @property
    def sampler(self) -> Sampler | RecordSampler:
        """What draws the model's records, made when first needed."""
        return self.distribution.sampler

    def __repr__(self) -> str:
        attributes = count_noun(len(self.domain), "attribute")
        cliques = count_noun(len(self.cliques), "clique")
        return f"Model({self.total:,.0f} records over {attributes}, {cliques})"

    def _repr_html_(self) -> str:
        shown = self.domain.attributes[: max_lines()]
        lines = [Line(n, self.domain[n], self.one_way(n)) for n in shown]
        title = f"Model of {self.total:,.0f} records over {len(self.domain)} attributes"
        return model_html(title, lines, len(self.domain))

    def with_codebook(self, codebook: Codebook) -> Model:
        """The same model with names for its codes."""
        return replace(self, codebook=codebook)

    def with_total(self, total: float) -> Model:
        """The same distribution for another number of records; for 1, counts are probabilities."""
        return replace(self, base_total=float(total), log_share=0.0)

    def with_records(self, n_records: int) -> Model:
        """The same model with so many records to answer from, if it is made of records."""
        if not isinstance(self.distribution, RecordDistribution):
            return self
        return replace(self, distribution=self.distribution.renew(n_records))

    def project(self, attributes: Iterable[str]) -> Factor:
        """The expected counts over any attributes, in the given order."""
        subdomain = self.domain.project(attributes)
        refuse_many_axes(tuple(subdomain))
        return self._count(self.distribution.project(subdomain))

    def one_way(self, attribute: str) -> Vector:
        """The expected number of records with each value of one attribute."""
        if attribute in self.plan.free_attributes:
            return np.full(self.domain[attribute], self.total / self.domain[attribute])
        return self.project((attribute,)).values

    def project_many(self, cliques: Iterable[Iterable[str]]) -> Iterator[Factor]:
        """The marginals on many sets of attributes, one after another, sharing their work."""
        subdomains = [self.domain.project(clique) for clique in cliques]
        for subdomain in subdomains:
            refuse_many_axes(tuple(subdomain))
        return map(self._count, self.distribution.project_many(subdomains))

    def _count(self, shares: Factor) -> Factor:
        """A table of probabilities as numbers of records, with the codebook's names."""
        counts = Factor.of_finite(shares.domain, self.total * shares.values)
        return counts if self.codebook.is_plain else counts.with_codebook(self.codebook)

    def answer(self, query: Query) -> Vector:
        """The answers to a factored query, over any attributes.

        For a `Kron`, an array with an axis for each of its attributes, in its order (beyond 64
        attributes, only for those with several answers); for a `Stack`, all answers one after
        another. The marginal on the query's attributes is not formed where the answers are fewer.
        """
        return self.total * self.distribution.answer(query)

    def conditional_mean(
        self, attribute: str, given: Iterable[str], values: Sequence[float] | None = None
    ) -> Vector:
        """The mean of an attribute within each group, as an array with an axis per group attribute.

        - `attribute`: what is averaged.
        - `given`: the attributes that form the groups.
        - `values`: the numbers that the attribute's codes stand for; by default, the codebook's.

        A group without mass has no mean; its entry is not-a-number.
        """
        groups = self.domain.project(given)
        if attribute in groups:
            raise InvalidInput(
                f"`given` must not have the averaged attribute; got {attribute!r} in both."
            )
        numbers = self.codebook.numbers(attribute) if values is None else values
        blocks: dict[str, Block] = dict.fromkeys(groups, Identity())
        query = Kron({**blocks, attribute: WeightedSum(tuple(numbers))})
        sums, mass = (
            self.distribution.answer(query)[..., 0],
            self.distribution.project(groups).values,
        )
        empty = np.full(groups.shape, math.nan)
        return np.asarray(np.divide(sums, mass, out=empty, where=mass > 0))

    def condition(self, evidence: Evidence) -> Model:
        """The model of the records that agree with the evidence.

        The evidence gives one value, or several, for some attributes: codes, or the codebook's
        names for them. The total becomes the expected number of such records. However small that
        is, also where it is too small for a number and becomes zero, their distribution is exact,
        and `log_total` is the logarithm of their number.
        """
        return self.condition_codes(find_allowed_codes(self.codebook, evidence))

    def condition_codes(self, codes: Mapping[str, Iterable[int]]) -> Model:
        """The same where the evidence is codes, whatever they stand for."""
        given = self.distribution.condition(codes)
        log_share = self.log_share + given.log_mass - self.distribution.log_mass
        return replace(self, distribution=given, log_share=log_share)

    @property
    def entropy(self) -> float:
        """The entropy of the distribution of one record, in nats."""
        return self.distribution.entropy

    def entropy_of(self, attributes: Iterable[str]) -> float:
        """The entropy of the marginal on some attributes, in nats."""
        return information.entropy(
            self.distribution.project(self.domain.project(attributes)).values
        )

    def mutual_information(self, left: Iterable[str], right: Iterable[str]) -> float:
        """The mutual information between two sets of attributes, in nats."""
        names, others = self.domain.project(left), self.domain.project(right)
        both = self.domain.project((*names, *(n for n in others if n not in names)))
        return information.mutual_information(self.distribution.project(both), names, others)

    def log_probability(self, records: Mapping[str, ArrayLike]) -> Vector:
        """The logarithm of the probability of each record, given as a column for each attribute."""
        return information.log_probability(
            self.layout, self.potentials, self.log_partition, records
        )

    def sample(
        self,
        n: int | None = None,
        *,
        rng: Random = None,
        given: Mapping[str, ArrayLike] | None = None,
    ) -> Records:
        """Independent synthetic records: a column of codes for each attribute.

        - `n`: how many; by default the total, rounded.
        - `rng`: a generator or a seed; the same seed gives the same records.
        - `given`: columns of codes that are fixed, one code per record. The others are drawn from
          their exact distribution given these.
        """
        sampler, count, columns = self._make_sampler(n, given)
        key = draw_key(rng)
        return self._records(sampler.sample(count, key, columns), key)

    def synthesize(
        self,
        n: int | None = None,
        *,
        rng: Random = None,
        given: Mapping[str, ArrayLike] | None = None,
    ) -> Records:
        """Synthetic records whose counts are closer to the model's than those of independent draws.

        Parameters are those of `sample`. The records are in random order.

        - Averaged over seeds, every count over any attributes is exactly the model's: each record
          on its own is a draw from the model. Structural zeros never appear.
        - Counts over a clique are off by a few records where its cells expect many. Where most
          states of a separator have less than one record, single cells are as random as in
          independent draws, but sums over such cells stay close.
        - More records than wanted are made, and halved until they are as many, so that all tables
          of pairs and triples stay close. Where columns are given, nothing is halved.
        - With a model made of records, counts averaged over seeds are nearly the model's: rare
          cells have a little less.
        - The records are not independent of each other: for that, see `sample`.
        """
        sampler, count, columns = self._make_sampler(n, given)
        key = draw_key(rng)
        return self._records(sampler.synthesize(count, key, columns), key)

    def _make_sampler(
        self, n: int | None, given: Mapping[str, ArrayLike] | None
    ) -> tuple[Sampler | RecordSampler, int, dict[str, Codes]]:
        if not given:
            return self.sampler, check_count(round(self.total) if n is None else n), {}
        codes = information.check_columns(self.domain, given, self.domain.project(given))
        count = len(next(iter(codes.values())))
        if n is not None and n != count:
            raise InvalidInput(
                f"`n` must be the length of the given columns, {count}; got {n}. Leave it out."
            )
        columns = {name: column.astype(np.int32) for name, column in codes.items()}
        return self.distribution.make_sampler(codes), count, columns

    def _records(self, codes: Codes, key: int) -> Records:
        columns = dict(zip(self.domain, codes, strict=True))
        return Records(columns, codebook=self.codebook, seed=key)

    def sql(
        self, query: str, *, max_groups: int | None = None, max_values: int | None = None
    ) -> SqlAnswer:
        """The answer to a SELECT with aggregates, over one table of any name.

        Columns are the attributes; values are the codebook's names, or the codes. The answer is
        DuckDB's on the records that the model stands for, with expected counts as weights. A query
        that makes more than `max_groups` groups, or whose groups times outputs or aggregates are
        more than `max_values`, is refused, where possible before anything is computed.
        """
        from juncture.model.sql import select  # noqa: PLC0415  (the parser is slow to import)

        limits = select.Limits(max_groups, max_values)
        return select.run(query, self._sql_source(), limits)

    def sql_replicated(
        self, query: str, replies: Replies, max_groups: int | None, max_values: int | None
    ) -> ReplicatedAnswer:
        """The answer to a SELECT, with what replicas answer to it: see `Release.sql`."""
        from juncture.model.sql import select  # noqa: PLC0415

        limits = select.Limits(max_groups, max_values)
        return select.run_replicated(query, self._sql_source(), replies, limits)

    def sql_counts(self, query: str, *, max_groups: int | None = None) -> Vector:
        """The number of records in every group of a SELECT, an axis for each grouped attribute.

        All groups are there, in the order of the codes, even those that `sql` leaves out because
        they have no records; what is selected does not matter.
        """
        from juncture.model.sql import select  # noqa: PLC0415

        return select.count_groups(query, self._sql_source(), select.Limits(max_groups))

    def _sql_source(self) -> Source:
        from juncture.model.sql.select import Source  # noqa: PLC0415

        silent = set(self.unmeasured)
        cliques = tuple(clique for clique in self.cliques if not silent.issuperset(clique))
        return Source(self.codebook, self.total, self.distribution.answer, cliques)

    def most_probable(self) -> dict[str, int]:
        """The record with the largest probability; ties go to low codes."""
        return self.distribution.most_probable()
