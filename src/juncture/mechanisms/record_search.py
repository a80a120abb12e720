"""DualQuery's inner problem: the record that satisfies most of the drawn queries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from juncture.engine.oracle import Oracle, OracleFactory, build_plan, make_oracle
from juncture.engine.propagation import Propagation
from juncture.errors import ModelTooLarge
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.workload import Workload

# The largest random number, added to break ties, relative to the weight of a drawn query.
_TIE_BREAK = 1e-6
# Coordinate searches from random records, for when the exact search does not fit into memory.
_STARTS, _SWEEPS = 8, 4


class RecordSearch:
    """Searches for the record that satisfies most of the drawn queries."""

    def __init__(
        self, domain: Domain, workload: Workload, rng: np.random.Generator, *,
        random_ties: bool = True, oracle: OracleFactory = Propagation,
    ) -> None:  # fmt: skip
        self.domain, self.workload, self.rng = domain, workload, rng
        self._random_ties = random_ties
        self._operators = [task.operator(domain) for task in workload.tasks]
        self._ends = np.cumsum([operator.n_rows for operator in self._operators])[:-1]
        try:
            plan = build_plan(oracle, domain, workload.cliques)
            self._oracle: Oracle | None = make_oracle(oracle, plan)
        except ModelTooLarge:
            self._oracle = None

    def find_best(self, drawn: Vector) -> dict[str, int]:
        """The best record, found by max-product on the workload's junction tree.

        Ties and attributes without queries are decided at random; without random ties, such
        attributes get their first value. If the tree does not fit into memory, the result is the
        best of a few searches from random records, one attribute at a time.
        """
        tables = self._tables(drawn)
        noise = [
            Factor(t.domain, t.values + _TIE_BREAK * self._tie_break(t.values.shape))
            for t in tables
        ]
        if self._oracle is None:
            return self._search_locally(noise)
        peak = self._oracle.maximum(self._oracle.layout.pack(noise)).record
        for name in self._oracle.plan.free_attributes:
            peak[name] = int(self.rng.integers(self.domain[name])) if self._random_ties else 0
        return peak

    def _tie_break(self, shape: tuple[int, ...]) -> Vector:
        """Random numbers; or numbers that fall along each axis, so that first values win."""
        if self._random_ties:
            return self.rng.random(shape)
        falling = np.zeros(shape)
        for axis, size in enumerate(shape):
            along = -np.arange(size) / size
            falling += along.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        return falling

    def _tables(self, drawn: Vector) -> list[Factor]:
        """For each task, the score that each cell adds to a record."""
        terms = zip(self.workload.tasks, self._operators, np.split(drawn, self._ends), strict=True)
        return [
            Factor(
                self.domain.project(task.clique), operator.adjoint(piece).reshape(operator.shape)
            )
            for task, operator, piece in terms
        ]

    def _search_locally(self, tables: Sequence[Factor]) -> dict[str, int]:
        best, highest = dict[str, int](), -math.inf
        for _ in range(_STARTS):
            record = {name: int(self.rng.integers(size)) for name, size in self.domain.items()}
            for _ in range(_SWEEPS):
                for name in self.domain:
                    gains = np.zeros(self.domain[name])
                    for table in (t for t in tables if name in t.domain):
                        cell = tuple(slice(None) if n == name else record[n] for n in table.domain)
                        gains += table.values[cell]
                    record[name] = int(gains.argmax())
            score = math.fsum(float(t.values[tuple(record[n] for n in t.domain)]) for t in tables)
            if score > highest:
                best, highest = record, score
        return best

    def answers(self, record: Mapping[str, int]) -> Vector:
        """For each query, 1 if the record satisfies it, else 0."""
        results = []
        for task, operator in zip(self.workload.tasks, self._operators, strict=True):
            one = np.zeros(operator.shape)
            one[tuple(record[name] for name in task.clique)] = 1.0
            results.append(operator.apply(one))
        return np.concatenate(results)
