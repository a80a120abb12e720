"""The check: questions that the model is not fitted to, and what their answers say of its width.

Where columns were never measured together, the model takes them as independent given what was
measured. How far that is wrong depends on the data, so somebody has to look: a check measures a
coarse table of several random columns, drawn without the data, with a small share of the budget.
Every pair and triple of these columns that no measured clique holds is compared with what the model
says of it. The error of an assumed count a is taken to have a variance of

    a  +  c^2 a^1.25  +  s^2

(that of records that come and go; that of dependence, which grows with the count, but not in
proportion; and that of the noise of single columns, which the answer carries). c comes from the
differences between the check and the model, less the check's own noise; the half-width is as many
times the root as covers the differences seen, at that level. A noisy check gives a large c, never a
small one: its standard error is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from juncture.errors import InvalidInput
from juncture.fit.basis import Bases, Basis
from juncture.fit.carried_noise import CarriedNoise
from juncture.fit.widths import normal_quantile
from juncture.model.model import Model
from juncture.tables.domain import Clique, Domain
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Buckets, Total
from juncture.tables.queries.products import Kron

N_TABLES = 1
"""How many coarse tables a check measures: one, so that its noise is small."""
# Columns and groups of each in a coarse table; and the cells that counting it may take.
_MAX_COLUMNS, _MAX_GROUPS, _MAX_CELLS = 5, 2, 4_000_000
_POWER = 1.25
# The model may put next to nothing where there are some records: counts are taken as at least this.
_LEAST = 4.0
# Cells of one table depend on each other: its differences count for so many times fewer.
_DEPENDENCE = 4.0
# Halves of columns show less dependence than their values have, and few pairs are looked at: the
# variance is so many times that of the differences. Chosen on the data sets Titanic and Stroke.
_HIDDEN = 2.5
# Strong dependence may lie outside the few sets of columns that were looked at: so much is added,
# over their number, as if for the power 1.5 at a quarter of the records. Chosen on the same sets.
_UNSEEN = 10.0
_ATTEMPTS = 200


def check_share(share: float) -> float:
    """A share of the budget for the check, or a clear error."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
        raise InvalidInput(
            f"`check` must lie between 0 and 1; got {share!r}. It is the share of the budget that "
            "is spent on checking the model: 0.05 is usual."
        )
    return float(share)


def draw_check(
    domain: Domain, measured: Iterable[Clique], rng: np.random.Generator
) -> list[tuple[Clique, Kron]]:
    """Coarse tables of random columns, some of which no measured clique holds together.

    It depends on the domain, on which cliques were measured and on random numbers alone. Empty
    where every set of three columns lies in a measured clique.
    """
    sets = [frozenset(clique) for clique in measured]
    names = [name for name in domain if domain[name] > 1]
    tables = list[tuple[Clique, Kron]]()
    for _ in range(_ATTEMPTS):
        if len(tables) == N_TABLES:
            break
        columns = _draw_columns(domain, names, rng)
        if any(_list_apart(columns, sets)):
            blocks = {name: _draw_groups(domain[name], rng) for name in columns}
            tables.append((columns, Kron(blocks)))
    return tables


def _draw_columns(domain: Domain, names: Sequence[str], rng: np.random.Generator) -> Clique:
    chosen, cells = list[str](), 1
    for index in rng.permutation(len(names)):
        name = names[index]
        if len(chosen) < _MAX_COLUMNS and cells * domain[name] <= _MAX_CELLS:
            chosen.append(name)
            cells *= domain[name]
    return domain.canonical(chosen)


def _draw_groups(size: int, rng: np.random.Generator) -> Buckets:
    """A random group for each value; every group has one."""
    n_groups = min(_MAX_GROUPS, size)
    groups = np.concatenate([np.arange(n_groups), rng.integers(n_groups, size=size - n_groups)])
    return Buckets(rng.permutation(groups).tolist())


def _list_apart(columns: Clique, sets: Sequence[frozenset[str]]) -> Iterator[Clique]:
    """Pairs and triples that no measured clique holds."""
    for size in (2, 3):
        for names in combinations(columns, size):
            if not any(clique.issuperset(names) for clique in sets):
                yield names


@dataclass(frozen=True, eq=False)
class Differences:
    """What a check measured beside what the model says, for counts that are assumed."""

    predicted: Vector
    checked: Vector
    stddev: Vector
    """Of the noise in what was checked."""
    carried: Vector
    """Of the noise of single columns in what the model says."""
    labels: tuple[Clique, ...] = ()
    """The columns of each count."""


@dataclass(frozen=True, eq=False)
class Check:
    """The answers of a check, and the widths of assumed answers that follow."""

    model: Model
    bases: Bases
    measurements: tuple[Measurement, ...]
    noise: CarriedNoise
    """What the model's answers carry of the noise of single columns."""

    @cached_property
    def differences(self) -> Differences:
        """Every assumed pair and triple of every coarse table, cell by cell."""
        predicted, checked, labels = list[Vector](), list[Vector](), list[Clique]()
        stddev, carried = list[Vector](), list[Vector]()
        for each in self.measurements:
            blocks = each.query.blocks if isinstance(each.query, Kron) else {}
            sizes = [blocks[n].n_rows(self.model.domain[n]) for n in each.clique]
            table = each.values.reshape(sizes)
            for size in (2, 3):
                for names in combinations(each.clique, size):
                    part = Kron({n: blocks[n] if n in names else Total() for n in each.clique})
                    if self.bases.find(part).max() < Basis.ASSUMED:
                        continue
                    axes = tuple(i for i, n in enumerate(each.clique) if n not in names)
                    found = table.sum(axis=axes).reshape(-1)
                    predicted.append(self.model.answer(part).reshape(-1))
                    checked.append(found)
                    noise = float(np.max(each.stddev)) * math.sqrt(table.size / found.size)
                    stddev.append(np.full(len(found), noise))
                    carried.append(self.noise.find(part).reshape(-1))
                    labels += [names] * len(found)
        if not predicted:
            return Differences(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0))
        return Differences(
            np.concatenate(predicted), np.concatenate(checked), np.concatenate(stddev),
            np.concatenate(carried), tuple(labels),
        )  # fmt: skip

    @cached_property
    def dependence(self) -> float:
        """The squared constant c of the widths: an estimate plus its standard error."""
        seen = self.differences
        counts = np.maximum(seen.predicted, 1.0)
        variance = seen.stddev**2 + counts + seen.carried**2
        unit = counts**_POWER
        excess = (seen.checked - seen.predicted) ** 2 - variance
        found = 0.0
        for _ in range(20):
            precision = unit / (variance + found * unit) ** 2
            found = max(0.0, float(precision @ excess) / float(precision @ unit))
        information = float(np.sum((unit / (variance + found * unit)) ** 2))
        unsure = math.sqrt(2.0 * _DEPENDENCE / max(information, 1e-300))
        unseen = _UNSEEN * math.pow(self.model.total / 4.0, 1.5 - _POWER)
        return _HIDDEN * found + unsure + unseen / max(1, len(set(seen.labels)))

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to check."""
        return not len(self.differences.predicted)

    @property
    def words(self) -> str:
        """How the check went, in a sentence."""
        seen = self.differences
        off = float(np.median(np.abs(seen.checked - seen.predicted)))
        noise = normal_quantile(0.95) * float(np.median(seen.carried))
        half = float(self.find_widths(np.array([1000.0]), 1.0, noise, 0.95)[0])
        return (
            f"{len(seen.predicted)} counts of columns that were never measured together: the model "
            f"is off by {off:,.3g} in the middle, noise of the check included; an assumed count of "
            f"1,000 has a 95 % interval of plus or minus {half:,.3g}."
        )

    def find_widths(
        self, counts: Vector, size: Vector | float, carried: Vector | float, level: float
    ) -> Vector:
        """The half-widths of assumed counts, sums and averages.

        - `counts`: how many records each is of.
        - `size`: what a record changes in it; 1 for counts.
        - `carried`: how far the noise of single columns moves it, at that level.
        """
        return np.hypot(self._find_factor(level) * size * self._find_deviation(counts), carried)

    def _find_deviation(self, counts: Vector) -> Vector:
        least = np.maximum(counts, _LEAST)
        return np.asarray(np.sqrt(least + self.dependence * least**_POWER))

    def _find_factor(self, level: float) -> float:
        """How many deviations cover the differences, the check's noise taken in."""
        seen = self.differences
        noise = np.hypot(seen.carried, seen.stddev)
        scale = np.hypot(self._find_deviation(seen.predicted), noise)
        ratios = np.abs(seen.checked - seen.predicted) / scale
        return max(float(np.quantile(ratios, level)), normal_quantile(level))
