"""What is public about a table beside its domain: impossible cells, and totals that are known.

Impossible cells are potentials of minus infinity: no answer and no record has any. Known totals
take part in the fit as measurements with little noise, so that everything else moves with them, and
are then made exact by iterative proportional fitting: the model becomes, of all distributions with
these marginals, the one nearest to the fit in relative entropy (Csiszar 1975). Each step multiplies
one table, so the model keeps its structure; with one known table, one step is exact.

Nothing here looks at data: it is post-processing of the noisy answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from juncture._util.watch import Watch, ignore_progress
from juncture.engine.oracle import OracleFactory, make_oracle
from juncture.errors import ImpossibleModel, InvalidInput, ModelTooLarge
from juncture.fit.estimation import Estimate, estimate
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.model.distribution import Distribution
from juncture.model.model import Model
from juncture.model.record_distribution import RecordDistribution
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.schema import Schema

Mask = NDArray[np.bool_]
# How far a known count may be off in the end, relative to itself.
_EXACT = 1e-10
_MAX_ROUNDS = 1000
LITTLE_NOISE = 0.1
"""The noise that known totals have in a fit, beside the least of what was measured."""


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """Impossible cells and known totals of a table.

    >>> facts = PublicFacts(Domain({"a": 2}), known=(Factor(Domain({"a": 2}), [30.0, 10.0]),))
    >>> fit = facts.fit([Measurement(("a",), [25.0, 17.0], stddev=3.0)], total=42.0)
    >>> fit.model.project(("a",)).values.round(6)
    array([30., 10.])
    """

    domain: Domain
    zeros: Mapping[Clique, Mask] = field(default_factory=dict)
    """For some cliques, a table that is true where no record can be."""
    known: tuple[Factor, ...] = ()
    """Tables of counts that hold exactly."""

    @classmethod
    def of_schema(cls, schema: Schema) -> PublicFacts:
        """The rules and known totals of a schema; refuses those that contradict each other."""
        zeros: dict[Clique, Mask] = {}
        for each in schema.zeros:
            before = zeros.get(each.clique)
            zeros[each.clique] = each.excluded if before is None else before | each.excluded
        domain = schema.domain
        known = (
            Factor(domain.project(domain.canonical(k.columns)), k.table(schema.codebook))
            for k in schema.known
        )
        facts = cls(domain, zeros, tuple(known))
        facts.refuse_contradictions()
        return facts

    @classmethod
    def find_constraints(cls, schema: Schema | None) -> dict[Clique, Mask]:
        """The impossible cells of a schema; none without one."""
        return {} if schema is None else cls.of_schema(schema).constraints

    def __bool__(self) -> bool:
        return bool(self.zeros or self.known)

    @cached_property
    def total(self) -> float | None:
        """The number of records, where a known table says it."""
        totals = [float(table.values.sum()) for table in self.known]
        if totals and not all(math.isclose(t, totals[0], rel_tol=1e-9) for t in totals):
            raise InvalidInput(
                f"`known` must have tables of one number of records; got {min(totals):,g} and "
                f"{max(totals):,g}. Correct their counts."
            )
        return totals[0] if totals else None

    @cached_property
    def constraints(self) -> dict[Clique, Mask]:
        """The impossible cells: those of the rules, and known ones that are empty."""
        found = dict(self.zeros)
        for table in self.known:
            clique, empty = table.domain.attributes, table.values == 0.0
            found[clique] = found[clique] | empty if clique in found else empty
        return {clique: mask for clique, mask in found.items() if mask.any()}

    def refuse_contradictions(self) -> None:
        """Refuse facts that no table can have, before anything is spent.

        They are imposed on a model that knows nothing else. A fit leaves every cell possible that
        is not excluded here, so what holds for this model can be made to hold for a fit.
        """
        if not self:
            return
        try:
            self.impose(Model.of_potentials(self.domain, [], self.total or 1.0))
        except ImpossibleModel:
            raise InvalidInput(
                "`rule` and `known` must leave some record possible; got some that contradict each "
                "other. Remove one of them."
            ) from None
        except ModelTooLarge:  # a fit by records has no tree; it is judged by its own records
            return

    def fit(
        self,
        measurements: Sequence[Measurement],
        total: float,
        *,
        oracle: OracleFactory | str = "auto",
        watch: Watch = ignore_progress,
    ) -> Estimate:
        """Fit measurements with these facts: by a tree if it is small enough, else by records."""
        noise = min((float(np.min(each.stddev)) for each in measurements), default=1.0)
        soft = [
            Measurement(table.domain.attributes, table.values, stddev=LITTLE_NOISE * noise)
            for table in self.known
        ]
        fitted = estimate(
            self.domain, [*measurements, *soft], total=self.total or total,
            constraints=self.constraints, solver=EarlyStopping(), oracle=oracle, watch=watch,
        )  # fmt: skip
        return replace(fitted, model=self.impose(fitted.model), measurements=tuple(measurements))

    def impose(self, model: Model, tolerance: float = _EXACT) -> Model:
        """The nearest model in which these facts hold, up to a share of each known count."""
        distribution = model.distribution
        cliques = [*self.constraints, *(table.domain.attributes for table in self.known)]
        held = set(distribution.plan.cliques)
        if isinstance(distribution, Distribution) and not held.issuperset(cliques):
            # Its potentials on a larger plan, with the impossible cells.
            own = [distribution.layout.factor(distribution.potentials, c) for c in held]
            new = [self._zero_factor(clique) for clique in dict.fromkeys(cliques)]
            grown = Model.of_potentials(self.domain, [*own, *new], model.total)
            distribution = grown.distribution
        if self.known:
            distribution = (
                _rake_records(distribution, self.known, tolerance)
                if isinstance(distribution, RecordDistribution)
                else _rake_tree(distribution, self.known, tolerance)
            )
        return replace(
            model, distribution=distribution, base_total=self.total or model.total, log_share=0.0
        )

    def _zero_factor(self, clique: Clique) -> Factor:
        domain = self.domain.project(clique)
        mask = self.constraints.get(clique, np.zeros(domain.shape, dtype=np.bool_))
        return Factor(domain, np.where(mask, -np.inf, 0.0))


def _rake_tree(
    distribution: Distribution, known: Sequence[Factor], tolerance: float
) -> Distribution:
    """Scale one table after another until all known marginals hold."""
    engine, layout = make_oracle(distribution.oracle, distribution.plan), distribution.layout
    potentials = distribution.potentials.copy()
    beliefs = engine.marginals(potentials)
    for _ in range(_MAX_ROUNDS):
        worst = 0.0
        for table in known:
            own = layout.factor(beliefs.marginals, table.domain.attributes).values
            factor, off = _find_factor(own, table.values)
            worst = max(worst, off)
            if off > tolerance:
                potentials = potentials + layout.pack([Factor(table.domain, np.log(factor))])
                beliefs = engine.marginals(potentials)
        if worst <= tolerance:
            return Distribution(
                distribution.plan, potentials, beliefs.marginals.copy(), beliefs.log_partition,
                distribution.oracle,
            )  # fmt: skip
    raise ImpossibleModel("`known` must be marginals of one table; got some that contradict.")


def _rake_records(
    distribution: RecordDistribution, known: Sequence[Factor], tolerance: float
) -> RecordDistribution:
    """The same for weighted records: their weights follow the potentials."""
    weights, potentials = distribution.weights.copy(), distribution.potentials.copy()
    layout, positions = distribution.layout, distribution.domain.positions
    cells = [
        np.ravel_multi_index(
            [distribution.codes[positions[name]] for name in table.domain], table.domain.shape
        )
        for table in known
    ]
    for _ in range(_MAX_ROUNDS):
        worst = 0.0
        for table, cell in zip(known, cells, strict=True):
            own = np.bincount(cell, weights=weights, minlength=table.domain.size)
            shaped = own.astype(np.float64).reshape(table.domain.shape)
            factor, off = _find_factor(shaped, table.values)
            worst = max(worst, off)
            if off > tolerance:
                weights *= factor.reshape(-1)[cell]
                weights /= weights.sum()
                potentials += layout.pack([Factor(table.domain, np.log(factor))])
        if worst <= tolerance:
            return replace(distribution, weights=weights, potentials=potentials)
    raise ImpossibleModel("`known` must be marginals of one table; got some that contradict.")


def _find_factor(own: Vector, wanted: Vector) -> tuple[Vector, float]:
    """What a marginal must be multiplied with, and how far it is off, relative to what is wanted.

    Empty cells are excluded already, and keep their factor of one.
    """
    shares = wanted / wanted.sum()
    occupied = shares > 0.0
    if (own[occupied] <= 0.0).any():
        raise ImpossibleModel("`known` must not count what rules exclude; got some that do.")
    factor = np.ones_like(shares)
    factor[occupied] = shares[occupied] / own[occupied]
    return factor, float(np.abs(factor - 1.0).max(initial=0.0))
