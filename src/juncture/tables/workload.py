"""Workloads: the queries that a mechanism should answer well, and the error of its answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from juncture._util.randomness import Random
from juncture._util.text import count_noun, list_names
from juncture.errors import InvalidInput
from juncture.tables.domain import Clique, Domain, names_of
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Block, Identity, Prefix
from juncture.tables.queries.products import Kron, Operator, bind

# Attributes of these sizes hold binned numbers in the paper's data sets, and get prefix queries.
_PAPER_SIZES = (100, 101)
# Of a workload that nobody chose: larger tables take long to make, and say little but noise.
DEFAULT_COLUMNS, DEFAULT_MAX_CELLS = 2, 1_000_000
_MAX_WEIGHT = 1e6


@dataclass(frozen=True)
class Task:
    """One task of a workload: a clique, a block for each of its attributes, and its weight."""

    clique: Clique
    blocks: tuple[Block, ...]
    weight: float = 1.0
    """How much its error counts, beside those of others."""

    @property
    def query(self) -> Kron:
        """The blocks as a query."""
        return Kron(dict(zip(self.clique, self.blocks, strict=True)))

    def operator(self, domain: Domain) -> Operator:
        """The query, bound to the clique's table."""
        return bind(self.query, domain.project(self.clique))


@dataclass(frozen=True, eq=False)
class Workload:
    """What a mechanism should answer well: tasks over a domain, and how much each counts.

    >>> domain = Domain({"age": 3, "sex": 2, "income": 2})
    >>> Workload.all_marginals(domain, 2)
    Workload(3 tasks over 3 attributes: (age, sex), (age, income), (sex, income))
    """

    domain: Domain
    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        for task in self.tasks:
            task.operator(self.domain)
            _check_weight(task.weight)

    def __repr__(self) -> str:
        tasks, over = count_noun(len(self.tasks), "task"), count_noun(len(self.domain), "attribute")
        first = list_names(f"({list_names(task.clique, 40)})" for task in self.tasks)
        return f"Workload({tasks} over {over}: {first})"

    @classmethod
    def of_marginals(
        cls, domain: Domain, cliques: Iterable[Iterable[str]] | Mapping[Clique, float]
    ) -> Workload:
        """Every count of each clique; a mapping gives each clique its weight.

        >>> domain = Domain({"age": 3, "sex": 2})
        >>> Workload.of_marginals(domain, {("age", "sex"): 1.0, ("sex",): 3.0}).weights
        (1.0, 3.0)
        """
        weights = cliques if isinstance(cliques, Mapping) else None
        tasks = []
        for clique in cliques:
            names = tuple(domain.project(clique))
            weight = 1.0 if weights is None else weights[names_of(clique)]
            tasks.append(Task(names, (Identity(),) * len(names), weight))
        return cls(domain, tuple(tasks))

    @classmethod
    def all_marginals(cls, domain: Domain, k: int, *, max_cells: int | None = None) -> Workload:
        """Every count of every set of `k` attributes, or of those with at most `max_cells` cells.

        What a set that is too large would have told comes from the largest sets below it that are
        small enough, and from single columns whatever their size: no column is left out.

        >>> domain = Domain({"street": 900, "town": 40, "sex": 2})
        >>> Workload.all_marginals(domain, 2, max_cells=10_000).cliques
        (('street', 'sex'), ('town', 'sex'))
        """
        _check_columns(k)
        sets = combinations(domain, k)
        if max_cells is None:
            return cls.of_marginals(domain, sets)
        return cls.of_marginals(domain, _choose_small(domain, sets, max_cells))

    @classmethod
    def default(cls, domain: Domain, target: str | None = None) -> Workload:
        """What is asked for where nobody says: every pair of at most a million cells.

        With a column that somebody would predict, every triple of at most so many with it.

        >>> Workload.default(Domain({"id": 5000, "street": 900, "sex": 2})).cliques
        (('id', 'sex'), ('street', 'sex'))
        """
        if target is not None:
            return cls.with_target(domain, target, max_cells=DEFAULT_MAX_CELLS)
        columns = min(DEFAULT_COLUMNS, len(domain))
        return cls.all_marginals(domain, columns, max_cells=DEFAULT_MAX_CELLS)

    @classmethod
    def with_target(
        cls, domain: Domain, target: str, k: int = 3, *, max_cells: int | None = None
    ) -> Workload:
        """Every count of every set of `k` columns with a column in it that somebody would predict.

        Three columns tell how two together speak of the target, and how the two depend on each
        other: classifiers learn more from that than from pairs with the target alone. Sets that
        are too large are left out as in `all_marginals`.

        >>> domain = Domain({"age": 3, "sex": 2, "town": 9, "pay": 2})
        >>> Workload.with_target(domain, "pay").cliques
        (('age', 'sex', 'pay'), ('age', 'town', 'pay'), ('sex', 'town', 'pay'))
        >>> Workload.with_target(domain, "pay", 2).cliques
        (('age', 'pay'), ('sex', 'pay'), ('town', 'pay'))
        """
        _check_columns(k)
        (name,) = domain.project([target])
        others = [other for other in domain if other != name]
        rest = combinations(others, min(k - 1, len(others)))
        sets = [domain.canonical((*some, name)) for some in rest]
        if max_cells is None:
            return cls.of_marginals(domain, sets)
        return cls.of_marginals(domain, _choose_small(domain, sets, max_cells))

    @classmethod
    def random_marginals(
        cls, domain: Domain, n: int, k: int, *, rng: Random, max_cells: int | None = None
    ) -> Workload:
        """Every count of `n` random sets of `k` attributes, each with at most `max_cells` cells.

        A seed as `rng` gives the same sets on every machine.
        """
        return cls.of_marginals(domain, _choose_cliques(domain, n, k, rng, max_cells))

    @classmethod
    def paper_triples(cls, domain: Domain, n_records: int) -> Workload:
        """The paper's workload: 15 triples with at most `n_records` cells each.

        Attributes of binned numbers get prefix queries, all others get every count.
        """
        tasks = []
        for clique in _choose_cliques(domain, 15, 3, 0, n_records):
            binned = (domain[name] in _PAPER_SIZES for name in clique)
            tasks.append(Task(clique, tuple(Prefix() if b else Identity() for b in binned)))
        return cls(domain, tuple(tasks))

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The cliques of all tasks."""
        return tuple(task.clique for task in self.tasks)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of all tasks."""
        return tuple(task.weight for task in self.tasks)

    @property
    def is_weighted(self) -> bool:
        """Whether some tasks count more than others."""
        return len(set(self.weights)) > 1

    def weigh(self, weights: Mapping[Clique, float]) -> Workload:
        """The same tasks, where those with certain columns among theirs count more, or less.

        The weight of every task that has all columns of a key is multiplied by its number.

        >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2, "income": 2}), 2)
        >>> workload.weigh({("income",): 4.0, ("age", "sex"): 0.5}).weights
        (0.5, 4.0, 4.0)
        """
        factors = {frozenset(self.domain.project(names_of(key))): w for key, w in weights.items()}
        for names in factors:
            if not any(names.issubset(task.clique) for task in self.tasks):
                raise InvalidInput(
                    f"`weights` must name columns that a task has; got {list_names(sorted(names))},"
                    " which none has together."
                )
        tasks = []
        for task in self.tasks:
            own = [w for names, w in factors.items() if names.issubset(task.clique)]
            tasks.append(replace(task, weight=math.prod([task.weight, *own])))
        return replace(self, tasks=tuple(tasks))

    @property
    def clique_weights(self) -> dict[Clique, float]:
        """The sets of columns of all tasks, in the domain's order, with the sums of weights."""
        sums = dict[Clique, float]()
        for task in self.tasks:
            names = self.domain.canonical(task.clique)
            sums[names] = sums.get(names, 0.0) + task.weight
        return sums

    @property
    def distinct_cliques(self) -> list[Clique]:
        """The sets of columns of all tasks, each once and in the domain's order."""
        return list(self.clique_weights)

    @property
    def asks_for_counts(self) -> bool:
        """Whether every task asks for every count of a set of columns, and nothing else."""
        return all(
            task.clique and all(isinstance(block, Identity) for block in task.blocks)
            for task in self.tasks
        )

    @property
    def n_queries(self) -> int:
        """The number of answers to all tasks."""
        return sum(task.operator(self.domain).n_rows for task in self.tasks)

    def answers(self, project: Callable[[Clique], Factor]) -> list[Vector]:
        """The answers to every task; `project` gives the table of a clique."""
        return [
            task.operator(self.domain).apply(project(task.clique).values) for task in self.tasks
        ]


def check_same_domain(domain: Domain, workload: Workload) -> None:
    """Refuse a workload over another domain than the curator's."""
    if workload.domain != domain:
        raise InvalidInput(
            "`workload` must be over the curator's domain; got one over another. Build it from "
            "curator.domain."
        )


def workload_error(
    truth: Sequence[Vector], answers: Sequence[Vector], weights: Sequence[float] | None = None
) -> float:
    """The paper's measure of error: over all tasks, the mean of half the relative L1 distance.

    Each task counts by its weight, if weights are given.

    >>> workload_error([np.array([6.0, 4.0])], [np.array([5.0, 5.0])])
    0.1
    """
    if len(truth) != len(answers) or not truth:
        raise InvalidInput(
            f"`answers` must be one vector for each of the {len(truth)} tasks, at least one; got "
            f"{len(answers)}."
        )
    pairs = zip(truth, answers, strict=True)
    errors = [np.abs(t - a).sum() / (2.0 * np.abs(t).sum()) for t, a in pairs]
    return float(np.average(errors, weights=weights))


def _check_weight(weight: float) -> None:
    if not 0.0 < weight <= _MAX_WEIGHT:
        raise InvalidInput(
            f"`weights` must be positive numbers of at most {_MAX_WEIGHT:g}; got {weight}. Leave a "
            "task out to give it no weight."
        )


def _check_columns(k: int) -> None:
    if k < 1:
        raise InvalidInput(f"`k` must be at least 1; got {k}. Two or three columns are usual.")


def _choose_small(domain: Domain, cliques: Iterable[Clique], max_cells: int) -> list[Clique]:
    """The sets of at most so many cells, and for larger ones the sets below them."""
    if max_cells < 1:
        raise InvalidInput(f"`max_cells` must be at least 1; got {max_cells}.")
    chosen, level = dict[Clique, None](), list(dict.fromkeys(cliques))
    while level:
        small = [c for c in level if len(c) <= 1 or domain.size_of(c) <= max_cells]
        covered = {below for one in chosen for below in combinations(one, len(level[0]))}
        chosen.update(dict.fromkeys(c for c in small if c not in covered))
        large = (c for c in level if c not in chosen and c not in covered)
        level = list(dict.fromkeys(s for c in large for s in combinations(c, len(c) - 1)))
    return list(chosen)


def _choose_cliques(
    domain: Domain, n: int, k: int, rng: Random, max_cells: int | None
) -> list[Clique]:
    """`n` of the sets of `k` attributes that are small enough, at random."""
    fitting = [
        clique
        for clique in combinations(domain, k)
        if max_cells is None or domain.size_of(clique) <= max_cells
    ]
    if len(fitting) < n:
        raise InvalidInput(
            f"`n` must be at most the {len(fitting)} sets of {k} attributes that are small enough; "
            f"got {n}. Ask for fewer, or allow more cells."
        )
    # For a seed, the old generator: its stream never changes, and the paper's triples come from it.
    if isinstance(rng, int | np.integer):
        indices = np.random.RandomState(rng).choice(len(fitting), n, replace=False)
    else:
        indices = np.random.default_rng(rng).choice(len(fitting), n, replace=False)
    return [fitting[index] for index in indices]
