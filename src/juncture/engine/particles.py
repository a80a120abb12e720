"""An oracle made of records: marginals of any cliques, whatever the tree-width of their graph."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from juncture._util.memory import free_memory_bytes
from juncture.engine.gibbs import EXCLUDED, draw_uniform_codes
from juncture.engine.oracle import IMPOSSIBLE_MESSAGE, Beliefs, Peak, check_call
from juncture.engine.plan import SHARE_OF_FREE_MEMORY, Plan
from juncture.engine.population import Population
from juncture.engine.tempering import move_to
from juncture.errors import ImpossibleModel, InvalidInput
from juncture.tables.domain import Domain
from juncture.tables.layout import Layout, Vector
from juncture.tables.records import Codes

# The fewest and the most records that a fit chooses by itself.
MIN_RECORDS, MAX_RECORDS = 100_000, 1_000_000
# Records of the most probable ones from which the peak is sought.
_CLIMBERS = 64
# A marginal is within so many standard errors of its cells.
_DEVIATIONS = 4.0


@dataclass(frozen=True, kw_only=True)
class Particles:
    """The oracle made of records, for cliques whose junction tree is too large.

    Give it to `estimate` as `oracle`, or the word "records" for its defaults. It holds weighted
    records instead of tables: its work grows with the records, the cliques and the attributes, not
    with the tree. Its marginals are estimates, so no fit with it is certified.

    - `n_records`: how many there are at the end of a fit. By default, so many that what they leave
      to chance is small beside the noise of the measurements: 100,000 to 1,000,000.
    - `seed`: of all random numbers. The same seed gives the same result with any number of threads.
    - `effort`: multiplies the number of records that is chosen; time grows with it.

    >>> from juncture import Domain, Measurement, estimate
    >>> counts = Measurement(("a", "b"), [40.0, 10.0, 20.0, 30.0], stddev=1.0)
    >>> fit = estimate(Domain({"a": 2, "b": 2}), [counts], oracle=Particles(n_records=2_000))
    >>> fit.model.project(("a",)).values.round()
    array([50., 50.])
    """

    n_records: int | None = None
    seed: int = 0
    effort: float = 1.0

    def __post_init__(self) -> None:
        if self.n_records is not None and not self.n_records >= 100:
            raise InvalidInput(f"`n_records` must be at least 100; got {self.n_records}.")
        if not 0.0 < self.effort <= 100.0:
            raise InvalidInput(
                f"`effort` must be above 0 and at most 100; got {self.effort}. 1 is the default."
            )

    def __call__(self, plan: Plan) -> RecordOracle:
        """The oracle for a plan."""
        return RecordOracle(plan, self)

    def build_plan(self, domain: Domain, cliques: Iterable[Iterable[str]]) -> Plan:
        """The plan of the cliques without a tree: see `Plan.without_tree`."""
        n_records = int(self.effort * MAX_RECORDS) if self.n_records is None else self.n_records
        return Plan.without_tree(domain, cliques, n_records)

    def limit_records(self, wanted: float, n_attributes: int) -> int:
        """The number of records: as chosen, or as wanted within the limits and the free memory."""
        if self.n_records is not None:
            return self.n_records
        allowed = int(free_memory_bytes() * SHARE_OF_FREE_MEMORY / (12 * n_attributes + 64))
        chosen = self.effort * min(max(wanted, MIN_RECORDS), MAX_RECORDS)
        return max(1_000, min(int(chosen), allowed))


class RecordOracle:
    """Weighted records that follow the potentials: see `Particles`."""

    is_exact = False

    def __init__(self, plan: Plan, settings: Particles) -> None:
        self.plan, self.settings = plan, settings
        self.layout = Layout(plan.domain, plan.cliques)
        self.error_beside_noise: float | None = None
        """After a fit: what the records leave to chance, as a share of the noise of the answers."""
        self._population: Population | None = None
        self._log_start = 0.0

    @property
    def population(self) -> Population:
        """The records; made when first needed, uniform at potentials of zero."""
        if self._population is None:
            self.begin(self.layout.zeros())
        assert self._population is not None
        return self._population

    def begin(self, potentials: Vector, n: int | None = None) -> Population:
        """A new population at given potentials, from uniform records."""
        count = n or self.settings.limit_records(0.0, len(self.plan.domain))
        shape = self.plan.domain.shape
        codes = draw_uniform_codes(shape, count, np.random.default_rng(self.settings.seed))
        start = np.where(np.isneginf(potentials), -np.inf, 0.0)
        population = Population(self.layout, codes, start, self.settings.seed)
        population.repair()
        # The structural zeros' share of all records is not known.
        self._log_start = float(np.log(np.array(shape, dtype=float)).sum())
        self.adopt(population)
        move_to(population, potentials)
        return population

    def adopt(self, population: Population) -> None:
        """Go on with a population, which has this oracle's layout."""
        self._population = population

    def bring_to(self, potentials: Vector) -> Population:
        """The population at given potentials."""
        if self._population is None:
            return self.begin(potentials)
        if (np.isneginf(self._population.potentials) & ~np.isneginf(potentials)).any():
            return self.begin(potentials, self._population.n_records)
        move_to(self._population, potentials)
        return self._population

    def marginals(
        self, potentials: Vector, total: float = 1.0, *, out: Vector | None = None
    ) -> Beliefs:
        """Marginals that sum to the total, by weighted counts; log Z is an estimate."""
        call = check_call(self.layout, potentials, total, out)
        population = self.bring_to(call.potentials)
        call.out[:] = call.total * population.marginals()
        error = 0.5 * _DEVIATIONS / math.sqrt(population.effective_number)
        return Beliefs(call.out, self._log_start + population.log_mass, error)

    def maximum(self, potentials: Vector) -> Peak:
        """A record with a large sum of potentials: the best that climbing from many finds."""
        vector = self.layout.as_vector(potentials)
        population = self.bring_to(vector)
        scores = population.score(vector)
        first = np.lexsort((*population.codes[::-1], -scores))[:_CLIMBERS]
        codes, best = np.take(population.codes, first, axis=1), scores[first]
        for _ in range(100):
            for axis, size in enumerate(self.plan.domain.shape):
                best = _climb(self.layout, vector, codes, axis, size)
            if (best <= scores[first] + 1e-12).all():
                break
            scores[first] = best
        order = np.lexsort((*codes[::-1], -best))[0]
        if best[order] < 0.5 * EXCLUDED:
            raise ImpossibleModel(IMPOSSIBLE_MESSAGE)
        record = dict(zip(self.plan.domain, codes[:, order].tolist(), strict=True))
        return Peak(record, float(best[order]))


def _climb(layout: Layout, potentials: Vector, codes: Codes, axis: int, size: int) -> Vector:
    """Set one attribute of each record to its best value, ties to low codes; gives the scores."""
    finite = np.maximum(potentials, EXCLUDED)
    columns = np.repeat(codes[:, :, None], size, axis=2)
    columns[axis] = np.arange(size)
    scores = np.zeros(columns.shape[1:])
    for clique in layout.cliques:
        cells = tuple(columns[layout.domain.positions[name]] for name in clique)
        scores += layout.view(finite, clique)[cells]
    codes[axis] = scores.argmax(axis=1)
    return np.asarray(scores.max(axis=1))
