"""What error to expect of each mechanism, and so which one to take, before any data is seen.

Nobody knows beforehand how much the columns depend on each other. So two tables are made up (see
`imagined`), one of independent columns and one whose columns depend, and a mechanism is rehearsed
on both, with simulated noise. Where that would take long, what noise alone leaves of the tables is
computed instead, for the mechanisms whose measurements are known beforehand.

    for each in forecast(["tiers", "aim"], budget, workload, neighbours, n_records=10_000):
        print(each)
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache, reduce
from pathlib import Path

import numpy as np

from juncture.errors import JunctureError, ModelTooLarge
from juncture.mechanisms.mechanism import Run
from juncture.mechanisms.registry import make_mechanism
from juncture.mechanisms.tier_tables import expect_error
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.tables.domain import Clique, Domain
from juncture.tables.layout import Vector
from juncture.tables.workload import Workload, workload_error
from juncture.workflow.imagined import Dependence, imagine

# The number of records where nobody says it.
ASSUMED_RECORDS = 10_000
# What a rehearsal may hold: more would take seconds. So many records stand for more.
_MAX_TASKS, _MAX_CELLS, _MAX_JOINT, _MAX_RECORDS = 21, 50_000, 1_000_000, 200_000
_REHEARSALS = 2
# All cells of a workload that are counted.
_MAX_TABLE_CELLS = 5_000_000
# A mean absolute error is this part of the root of the mean square, for a normal distribution.
_MEAN_ABSOLUTE = (2.0 / math.pi) ** 0.5


class Method(StrEnum):
    """How an error was found."""

    REHEARSAL = "rehearsed on made-up tables"
    NOISE = "what its noise leaves of made-up tables"
    CHOICE = "what its noise leaves of made-up tables, or independence gets wrong, if that is less"
    NONE = "not forecast: a rehearsal would take too long"
    TOO_LARGE = "its model would be too large"
    REFUSED = "it cannot serve this"

    @property
    def is_refusal(self) -> bool:
        """Whether the mechanism could not run at all."""
        return self in (Method.TOO_LARGE, Method.REFUSED)


@dataclass(frozen=True)
class Forecast:
    """The error to expect of a mechanism: the share of records in wrong cells, over the workload.

    >>> Forecast("tiers", Method.REHEARSAL, independent=0.02, dependent=0.04).error
    0.03
    """

    mechanism: str
    method: Method
    independent: float | None = None
    """On a made-up table of independent columns."""
    dependent: float | None = None
    """On one whose columns depend."""

    @property
    def error(self) -> float | None:
        """The mean of both: nobody knows beforehand which is nearer to the private table."""
        if self.independent is None or self.dependent is None:
            return None
        return (self.independent + self.dependent) / 2.0


def forecast(
    names: Sequence[str],
    budget: Budget,
    workload: Workload,
    neighbours: Neighbours,
    n_records: int | None = None,
) -> list[Forecast]:
    """What to expect of each mechanism; the same whenever it is asked, and on any data.

    - `n_records`: a public guess of their number; by default ten thousand.
    """
    n_imagined = n_records or ASSUMED_RECORDS
    public = n_imagined if neighbours.n_records_is_public else None
    stage = _Stage(budget, workload, neighbours, n_imagined)
    return [stage.forecast(name, public) for name in names]


class _Stage:
    """Made-up tables for a workload, and what is tried on them."""

    def __init__(
        self, budget: Budget, workload: Workload, neighbours: Neighbours, n_records: int
    ) -> None:
        self.budget, self.workload = budget, workload
        self.neighbours, self.n_records = neighbours, n_records
        self._weights = workload.clique_weights

    def forecast(self, name: str, public_n_records: int | None) -> Forecast:
        """One mechanism."""
        mechanism = make_mechanism(name, self.budget)
        try:
            run = mechanism.prepare(self.workload, self.neighbours, public_n_records)
        except ModelTooLarge:
            return Forecast(name, Method.TOO_LARGE)
        except JunctureError:
            return Forecast(name, Method.REFUSED)
        method = self._find_method(run)
        means: dict[Method, Callable[[Run, Dependence], float]] = {
            Method.REHEARSAL: self._rehearse,
            Method.NOISE: self._expect,
            Method.CHOICE: self._expect_choice,
        }
        if method not in means:
            return Forecast(name, method)
        return Forecast(name, method, *(means[method](run, each) for each in Dependence))

    def _find_method(self, run: Run) -> Method:
        """A rehearsal where it is quick, else what can be computed."""
        if self._is_small:
            return Method.REHEARSAL
        if self._cells > _MAX_TABLE_CELLS or self.n_records > _MAX_RECORDS:
            return Method.NONE
        if run.marginals:
            return Method.NOISE
        is_known = run.cell_stddev is not None and run.max_chosen is not None
        return Method.CHOICE if is_known else Method.NONE

    @cached_property
    def _cells(self) -> int:
        return sum(map(self.workload.domain.size_of, self._weights))

    @property
    def _is_small(self) -> bool:
        if self.neighbours.person is not None:  # made-up records belong to nobody
            return False
        few = len(self.workload.tasks) <= _MAX_TASKS and self.n_records <= _MAX_RECORDS
        return few and self._cells <= _MAX_CELLS and self.workload.domain.size <= _MAX_JOINT

    def _rehearse(self, run: Run, dependence: Dependence) -> float:
        """The mean error of simulated runs on a made-up table; nothing is paid for real."""
        table = imagine(self.workload.domain, self.n_records, dependence)
        cliques = self.workload.cliques
        exact = dict(zip(cliques, table.exact_counts(cliques), strict=True))
        truth = self.workload.answers(exact.__getitem__)
        errors = []
        for seed in range(_REHEARSALS):
            with tempfile.TemporaryDirectory() as folder:
                ledger = Ledger.create(Path(folder) / "rehearsal", self.budget, self.neighbours)
                curator = SimulatedCurator(table, ledger, rng=np.random.default_rng(seed))
                answers = run(curator).answers()
            errors.append(workload_error(truth, answers, self.workload.weights))
        return float(np.mean(errors))

    def _expect(self, run: Run, dependence: Dependence) -> float:
        """Each count is off by its noise, or by itself where that is less."""
        counted = _imagine_counts(self.workload.domain, self.n_records, dependence)
        tables = counted.count([each.clique for each in run.marginals])
        weights = self._weights
        errors = [
            expect_error(table, each.error * _MEAN_ABSOLUTE) / (2.0 * self.n_records)
            for each, table in zip(run.marginals, tables, strict=True)
        ]
        shares = [weights[self.workload.domain.canonical(each.clique)] for each in run.marginals]
        return float(np.average(errors, weights=shares))

    def _expect_choice(self, run: Run, dependence: Dependence) -> float:
        """What is measured is off by its noise, anything else by what independence gets wrong.

        The best choice is assumed: those for which measuring helps most.
        """
        noise = (run.cell_stddev or 0.0) * _MEAN_ABSOLUTE
        counted = _imagine_counts(self.workload.domain, self.n_records, dependence)
        weights, alone, gains = self._weights, 0.0, []
        distances = counted.measure_apart(list(weights))
        for clique, table, apart in zip(
            weights, counted.count(list(weights)), distances, strict=True
        ):
            alone += weights[clique] * apart
            gains.append(weights[clique] * max(0.0, apart - expect_error(table, noise)))
        won = sum(sorted(gains, reverse=True)[: run.max_chosen])
        return (alone - won) / (2.0 * self.n_records * sum(weights.values()))


class _Counts:
    """What was counted of a made-up table; kept, since every mechanism is held against it."""

    def __init__(self, domain: Domain, n_records: int, dependence: Dependence) -> None:
        self._table, self._n_records = imagine(domain, n_records, dependence), n_records
        self._known: dict[Clique, Vector] = {}
        self._apart: dict[Clique, float] = {}

    def count(self, cliques: Sequence[Clique]) -> list[Vector]:
        """The counts of sets of columns, flat."""
        missing = [clique for clique in cliques if clique not in self._known]
        if missing:
            tables = zip(missing, self._table.exact_counts(missing), strict=True)
            self._known.update((clique, table.values.reshape(-1)) for clique, table in tables)
        return [self._known[clique] for clique in cliques]

    def measure_apart(self, cliques: Sequence[Clique]) -> list[float]:
        """How far the counts of sets of columns are from those of independent columns."""
        missing = [clique for clique in cliques if clique not in self._apart]
        if missing:
            domain, n = self._table.domain, self._n_records
            singles = dict(zip(domain, self.count([(name,) for name in domain]), strict=True))
            for clique, table in zip(missing, self.count(missing), strict=True):
                shares = reduce(np.outer, [singles[name] / n for name in clique])
                self._apart[clique] = float(np.abs(table - n * shares.reshape(-1)).sum())
        return [self._apart[clique] for clique in cliques]


@lru_cache(maxsize=2)
def _imagine_counts(domain: Domain, n_records: int, dependence: Dependence) -> _Counts:
    """The counts of a made-up table; no more than those of one domain are kept."""
    return _Counts(domain, n_records, dependence)
