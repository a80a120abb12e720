"""Replicas of a fit: tables whose truth is known, measured and fitted as the real one was.

A replica is a table of whole records, drawn from the fitted model. Its cliques are counted, fresh
noise of each measurement's own kind is added, and a model is fitted to that. The error of the
replica is known: its model's answers less the counts of its own records. Records are drawn rather
than expectations taken, because the real table is sparse and of whole numbers too: what a fit does
with the noise of empty cells must show.

Replicas are fitted to the end, also where the model stopped early, and from the uniform start. The
model that a replica was drawn from is its truth: a fit that began there would hide its own error.
So what stopping early did to the model is no part of their errors. It is known by itself: one more
fit to the end, of the real measurements, beside the model.

Everything is post-processing: it reads the model and the measurements, and spends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from juncture._util.threads import cpu_count
from juncture._util.watch import Watch, ignore_progress
from juncture.engine.particles import Particles
from juncture.errors import InvalidInput
from juncture.fit.estimation import estimate
from juncture.fit.public_facts import LITTLE_NOISE
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.problem import Solver
from juncture.fit.solvers.raking import Raking
from juncture.fit.total import estimate_total
from juncture.model.model import Model
from juncture.tables.domain import Clique
from juncture.tables.layout import Layout, Vector
from juncture.tables.measurement import Measurement

Single = NDArray[np.float32]

_MAX_RECORDS = 10_000_000
# Fits of trees with fewer cells keep the interpreter busy, not the processor: threads would wait
# for each other.
_MIN_THREADED_CELLS = 50_000
# A total that agrees with its own estimate to this share of it was estimated.
_SAME_TOTAL = 1e-6


@dataclass(frozen=True)
class ReplicaRecipe:
    """All that is needed to make the replicas of a release again: they are the same each time.

    >>> ReplicaRecipe(seed=7).n_replicas
    20
    """

    seed: int = 0
    n_replicas: int = 20
    """How many tables are drawn from the model; each takes a fit."""

    def __post_init__(self) -> None:
        n = self.n_replicas
        if isinstance(n, bool) or not isinstance(n, int) or not 4 <= n <= 1000:
            raise InvalidInput(f"`n_replicas` must be a whole number from 4 to 1000; got {n!r}.")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InvalidInput(f"`seed` must be a whole number, at least 0; got {self.seed!r}.")

    @property
    def n_rows(self) -> int:
        """The replicas, and the model itself."""
        return self.n_replicas + 1

    def generator(self, *index: int) -> np.random.Generator:
        """The random numbers of one replica: they depend on no other one."""
        return np.random.default_rng([self.seed, *index])


@dataclass(frozen=True, eq=False)
class Replicas:
    """Replicas as tables on the measured cliques: a row for each, and one for the model itself.

    Rows lie in the order of `layout`; all are numbers of records.
    """

    recipe: ReplicaRecipe
    layout: Layout
    total: float
    """The number of records of the model that they were drawn from."""
    fitted: Single
    """What the model of each replica says; last, the real measurements fitted to the end."""
    counted: Single
    """What the records of each replica say, the truth; last, what the model says."""

    def __post_init__(self) -> None:
        shape = (self.recipe.n_rows, self.layout.size)
        for name in ("fitted", "counted"):
            array = getattr(self, name)
            if array.shape != shape or not np.isfinite(array).all():
                raise InvalidInput(f"`{name}` must be finite, of shape {shape}; got {array.shape}.")

    @cached_property
    def stacked(self) -> Single:
        """The fitted rows, then the counted ones."""
        return np.concatenate([self.fitted, self.counted])

    def tables(self, rows: Single, clique: Clique) -> Vector:
        """The tables of one clique, an axis for the rows before those of its attributes."""
        position = self.layout.positions[clique]
        start, stop = self.layout.offsets[position : position + 2]
        sizes = [self.layout.domain[name] for name in clique]
        return rows[..., start:stop].astype(np.float64).reshape([*rows.shape[:-1], *sizes])


def make_replicas(
    model: Model,
    measurements: Sequence[Measurement],
    recipe: ReplicaRecipe | None = None,
    *,
    known: Sequence[Clique] = (),
    n_records_is_public: bool | None = None,
    watch: Watch = ignore_progress,
) -> Replicas:
    """Draw replicas of a fit, and fit them: as many fits as the recipe says, and one more.

    - `model`: the model that was fitted.
    - `measurements`: what it was fitted to.
    - `recipe`: how many, and from which seed.
    - `known`: the columns of tables that are public: each replica knows its own, nearly exactly.
    - `n_records_is_public`: whether every replica is told its number of records; if not, it has
      to find it in its own noisy answers. By default, the model's own total tells.
    - `watch`: called with the progress.
    """
    if not measurements:
        raise InvalidInput(
            "`measurements` must not be empty for intervals; got none. Without them nobody knows "
            "how noisy the model is: ask the publisher for a release that holds them."
        )
    chosen = recipe or ReplicaRecipe()
    return _Workshop(model, measurements, chosen, known, n_records_is_public, watch).make()


class _Workshop:
    """Where the replicas of one model are made."""

    def __init__(
        self, model: Model, measurements: Sequence[Measurement], recipe: ReplicaRecipe,
        known: Sequence[Clique], n_records_is_public: bool | None, watch: Watch,
    ) -> None:  # fmt: skip
        self.model, self.measurements, self.recipe = model, measurements, recipe
        self.domain = model.domain
        self.known = [clique for clique in known if clique in model.plan.cliques]
        self.least = min(float(np.min(each.stddev)) for each in measurements)
        self.layout = Layout(self.domain, [each.clique for each in measurements])
        self.total = self.find_total(n_records_is_public)
        self.constraints = find_impossible(model)
        self.n_records = max(1, round(model.total))
        if self.n_records > _MAX_RECORDS:
            raise InvalidInput(
                f"`model` must stand for at most {_MAX_RECORDS:,} records for replicas; got "
                f"{self.n_records:,}."
            )
        self.watch, self.n_done = watch, 0

    def find_total(self, is_public: bool | None) -> float | None:
        """The number of records, where it was known; None where the measurements gave it.

        A mechanism may have rounded what they gave, or may have taken that of the first few: where
        it is certain that the total is not public, no agreement is asked for.
        """
        if is_public:
            return self.model.total
        try:
            own = max(1.0, estimate_total(self.domain, self.measurements).total)
        except InvalidInput:
            return self.model.total
        if is_public is False:
            return None
        close = abs(own - self.model.total) <= _SAME_TOTAL * self.model.total
        return None if close else self.model.total

    def make(self) -> Replicas:
        """All replicas."""
        drawn = [self.draw(index) for index in range(self.recipe.n_replicas)]
        drawn.append(self.take_model())
        with ThreadPoolExecutor(max_workers=self.find_n_threads()) as pool:
            rows = list(pool.map(self.fit, [noisy for _, noisy in drawn]))
        counted = np.array([counts for counts, _ in drawn], dtype=np.float32)
        return Replicas(self.recipe, self.layout, self.model.total, np.array(rows), counted)

    def find_n_threads(self) -> int:
        """How many fits are worth making at once."""
        is_long = isinstance(self.model.oracle, Particles)
        is_long = is_long or self.model.plan.cells >= _MIN_THREADED_CELLS
        return min(cpu_count(), self.recipe.n_rows) if is_long else 1

    @property
    def to_the_end(self) -> Solver:
        """The solver of replicas."""
        return Raking() if isinstance(self.model.oracle, Particles) else Accelerated()

    def draw(self, index: int) -> tuple[Vector, list[Measurement]]:
        """The counts of records drawn from the model, and what a curator might measure of them."""
        rng = self.recipe.generator(index)
        records = self.model.sample(self.n_records, rng=rng)
        counts = self.count_all(records)
        noisy = [self.measure(each, counts, rng) for each in self.measurements]
        exact = [
            Measurement(clique, self.count(records, clique), stddev=LITTLE_NOISE * self.least)
            for clique in self.known
        ]
        return counts, [*noisy, *exact]

    def take_model(self) -> tuple[Vector, list[Measurement]]:
        """What the model says, and what it was fitted to."""
        tables = self.model.project_many(self.layout.cliques)
        counts = np.concatenate([table.values.reshape(-1) for table in tables])
        exact = [
            Measurement(c, self.model.project(c).values, stddev=LITTLE_NOISE * self.least)
            for c in self.known
        ]
        return counts, [*self.measurements, *exact]

    def count_all(self, records: Mapping[str, NDArray[np.integer]]) -> Vector:
        """How many records are in each cell of every clique.

        A clique that lies in a larger one is a sum over its table, if that has fewer cells than
        there are records.
        """
        tables = dict[Clique, Vector]()
        for clique in sorted(self.layout.cliques, key=len, reverse=True):
            holder = next((each for each in tables if set(clique).issubset(each)), None)
            if holder is None or self.domain.size_of(holder) > self.n_records:
                tables[clique] = self.count(records, clique)
            else:
                sizes = [self.domain[name] for name in holder]
                others = tuple(i for i, name in enumerate(holder) if name not in clique)
                tables[clique] = tables[holder].reshape(sizes).sum(axis=others).reshape(-1)
        return np.concatenate([tables[clique] for clique in self.layout.cliques])

    def count(self, records: Mapping[str, NDArray[np.integer]], clique: Clique) -> Vector:
        """How many records are in each cell."""
        cells = np.zeros(self.n_records, dtype=np.int64)
        for name in clique:
            cells = cells * self.domain[name] + records[name]
        return np.bincount(cells, minlength=self.domain.size_of(clique)).astype(np.float64)

    def measure(self, own: Measurement, counts: Vector, rng: np.random.Generator) -> Measurement:
        """Fresh answers to the query of a measurement, with fresh noise of its kind."""
        table = self.layout.factor(counts, own.clique).values
        exact = own.operator(self.domain).apply(np.ascontiguousarray(table))
        noise = own.noise.draw(rng, own.stddev, own.n_rows)
        return Measurement(
            own.clique, exact + noise, stddev=own.stddev, query=own.query, noise=own.noise
        )

    def fit(self, measured: Sequence[Measurement]) -> Single:
        """What the model of one replica says on the measured cliques."""
        made = estimate(
            self.domain, measured, total=self.total, solver=self.to_the_end, plan=self.model.plan,
            oracle=self.model.oracle, constraints=self.constraints,
        )  # fmt: skip
        self.n_done += 1
        self.watch("making replicas", self.n_done, self.recipe.n_rows)
        tables = made.model.project_many(self.layout.cliques)
        return np.concatenate([table.values.reshape(-1) for table in tables], dtype=np.float32)


def find_impossible(model: Model) -> dict[Clique, NDArray[np.bool_]]:
    """The structural zeros of a model: for each clique that has some, where they are."""
    masks = {
        clique: np.isneginf(model.layout.view(model.potentials, clique)) for clique in model.cliques
    }
    return {clique: mask for clique, mask in masks.items() if mask.any()}
