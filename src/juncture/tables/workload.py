"""Workloads: the queries that a mechanism should answer well, and the error of its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from juncture._util.randomness import Random
from juncture._util.text import count_noun, list_names
from juncture.errors import InvalidInput
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Block, Identity, Prefix
from juncture.tables.queries.products import Kron, Operator, bind

# Attributes of these sizes hold binned numbers in the paper's data sets, and get prefix queries.
_PAPER_SIZES = (100, 101)


@dataclass(frozen=True)
class Task:
    """One task of a workload: a clique, and a block for each of its attributes."""

    clique: Clique
    blocks: tuple[Block, ...]

    @property
    def query(self) -> Kron:
        """The blocks as a query."""
        return Kron(dict(zip(self.clique, self.blocks, strict=True)))

    def operator(self, domain: Domain) -> Operator:
        """The query, bound to the clique's table."""
        return bind(self.query, domain.project(self.clique))


@dataclass(frozen=True, eq=False)
class Workload:
    """What a mechanism should answer well: tasks over a domain, all of the same weight.

    >>> domain = Domain({"age": 3, "sex": 2, "income": 2})
    >>> Workload.all_marginals(domain, 2)
    Workload(3 tasks over 3 attributes: (age, sex), (age, income), (sex, income))
    """

    domain: Domain
    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        for task in self.tasks:
            task.operator(self.domain)

    def __repr__(self) -> str:
        tasks, over = count_noun(len(self.tasks), "task"), count_noun(len(self.domain), "attribute")
        first = list_names(f"({list_names(task.clique, 40)})" for task in self.tasks)
        return f"Workload({tasks} over {over}: {first})"

    @classmethod
    def of_marginals(cls, domain: Domain, cliques: Iterable[Iterable[str]]) -> Workload:
        """Every count of each clique."""
        named = [tuple(domain.project(clique)) for clique in cliques]
        return cls(domain, tuple(Task(c, (Identity(),) * len(c)) for c in named))

    @classmethod
    def all_marginals(cls, domain: Domain, k: int) -> Workload:
        """Every count of every set of `k` attributes."""
        return cls.of_marginals(domain, combinations(domain, k))

    @classmethod
    def with_target(cls, domain: Domain, target: str) -> Workload:
        """Every count of a column with each other column: for whoever wants to predict it.

        Single columns follow from the pairs.

        >>> Workload.with_target(Domain({"age": 3, "sex": 2, "income": 2}), "income").cliques
        (('age', 'income'), ('sex', 'income'))
        """
        (name,) = domain.project([target])
        others = [other for other in domain if other != name]
        return cls.of_marginals(domain, [domain.canonical((o, name)) for o in others] or [(name,)])

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
    def distinct_cliques(self) -> list[Clique]:
        """The sets of columns of all tasks, each once and in the domain's order."""
        return list(dict.fromkeys(self.domain.canonical(clique) for clique in self.cliques))

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


def workload_error(truth: Sequence[Vector], answers: Sequence[Vector]) -> float:
    """The paper's measure of error: over all tasks, the mean of half the relative L1 distance.

    >>> workload_error([np.array([6.0, 4.0])], [np.array([5.0, 5.0])])
    0.1
    """
    if len(truth) != len(answers) or not truth:
        raise InvalidInput(
            f"`answers` must be one vector for each of the {len(truth)} tasks, at least one; got "
            f"{len(answers)}."
        )
    pairs = zip(truth, answers, strict=True)
    return float(np.mean([np.abs(t - a).sum() / (2.0 * np.abs(t).sum()) for t, a in pairs]))


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
