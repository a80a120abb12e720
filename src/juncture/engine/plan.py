"""The junction tree of a set of cliques, as data: what an oracle will do, before it does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from juncture._util.memory import free_memory_bytes
from juncture._util.notebook import plan_html
from juncture._util.text import count_noun
from juncture.engine.contraction import Contraction, Step
from juncture.engine.elimination import build_graph, eliminate
from juncture.engine.growth import IncrementalElimination
from juncture.engine.junction import EMPTY_CLIQUE_ALONE, JunctionTree, build_junction_tree
from juncture.engine.lower_bound import refuse_hopeless
from juncture.engine.order_search import Bucket
from juncture.engine.plan_text import abbreviate, describe, format_bytes, format_count
from juncture.errors import InvalidInput, ModelTooLarge
from juncture.tables.domain import Clique, Domain, refuse_many_axes
from juncture.tables.layout import Layout

if TYPE_CHECKING:
    from juncture.engine.program import Program

# A plan may use this share of the memory that is free when it is made: a solver keeps a few
# vectors of its own beside what an oracle call needs.
SHARE_OF_FREE_MEMORY = 0.5
# Questions are answered from the tables of all maximal cliques if these need at most this many
# times the memory of an oracle call, or less than anybody notices.
MAX_TREE_RATIO, UNNOTICED_BYTES = 3.5, 1 << 22
# Plans up to this size fit without asking the system for its free memory.
_SURELY_FREE = 1 << 24
# A cell of a stored table takes at least this (see `_estimate_cost`).
_BYTES_PER_CELL = 8 * 2
# So few cliques are planned in less than a second, whatever they are.
_SOON_PLANNED = 200


@dataclass(frozen=True, slots=True)
class Node:
    """A maximal clique of the junction tree, with its steps of the schedule."""

    clique: Clique
    separator: Clique
    """The attributes that it shares with its parent; empty at a root."""
    parent: int | None
    """The parent's index in `plan.nodes`; children come before their parents."""
    measured: tuple[Clique, ...]
    """The measured cliques whose potentials this node hosts."""
    steps: tuple[Step, ...]
    """The products that contract its tables into the message to its parent."""


@dataclass(frozen=True, slots=True)
class OracleCost:
    """The memory and the work of one oracle call."""

    size_bytes: int
    operations: int


@dataclass(frozen=True)
class Plan:
    """A junction tree for measured cliques over a domain: what a fit will take, before it runs.

    Make one with `Plan.build`, print it, and pass it to `estimate(..., plan=plan)`.

    >>> plan = Plan.build(Domain({"a": 2, "b": 3, "c": 4}), [("a", "b"), ("c", "b")])
    >>> [node.clique for node in plan.nodes]
    [('a', 'b'), ('b', 'c')]
    >>> plan.cells, plan.cells_with(("a", "c"))
    (18, 24)
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    """The measured cliques: canonical, distinct, in the order in which they were given."""
    nodes: tuple[Node, ...]
    """The junction tree in schedule order: every child before its parent."""
    contraction: Contraction = field(repr=False)
    """The axes of each measured table and of each step's result; finished, not to be changed."""
    cost: OracleCost
    buckets: tuple[Bucket, ...] = field(repr=False)
    n_records: int | None = None
    """The records of an oracle that needs no tree, at most; None where there is a tree."""
    lowered: dict[int, Program] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The programs for so many threads that oracles have asked for: see `program.find_program`."""

    @classmethod
    def build(
        cls,
        domain: Domain,
        cliques: Iterable[Iterable[str]],
        *,
        memory_limit: int | None = None,
        seed: int = 0,
    ) -> Plan:
        """A cheap junction tree for these cliques; nothing large is allocated here.

        - `cliques`: sets of attributes that are measured together.
        - `memory_limit`: raise `ModelTooLarge` when an oracle call would need more bytes than
          this; by default, half of the memory that is free now.
        - `seed`: of the randomised search for a good elimination order.
        """
        measured = tuple(dict.fromkeys(map(domain.canonical, cliques)))
        _refuse_hopeless(domain, measured, memory_limit)
        return _search(domain, measured, seed)._check_memory(memory_limit)

    @classmethod
    def without_tree(cls, domain: Domain, cliques: Iterable[Iterable[str]], n_records: int) -> Plan:
        """The plan of an oracle made of records: cliques of any tree-width, and no tree."""
        measured = tuple(dict.fromkeys(map(domain.canonical, cliques)))
        contraction = Contraction(domain.shape, map(tuple, _scopes(domain, measured)))
        cells = sum(map(domain.size_of, measured))
        # Codes, weights and scores; potentials, marginals, and a copy for each attribute to draw.
        copies = sum(domain.size_of(clique) * len(clique) for clique in measured)
        size_bytes = n_records * (8 * len(domain) + 32) + 8 * (4 * cells + copies)
        cost = OracleCost(size_bytes=size_bytes, operations=2 * n_records * len(measured))
        return cls(domain, measured, (), contraction, cost, (), n_records)

    def extend(
        self, clique: Iterable[str], *, memory_limit: int | None = None, seed: int = 0
    ) -> Plan:
        """The plan with one more clique, never larger than `cells_with` predicts."""
        added = self.domain.canonical(clique)
        if self.n_records is not None:
            return Plan.without_tree(self.domain, (*self.cliques, added), self.n_records)
        measured = tuple(dict.fromkeys((*self.cliques, added)))
        _refuse_hopeless(self.domain, measured, memory_limit)
        fresh = _search(self.domain, measured, seed)
        if self.cells_with(added) < fresh.cells:
            kept = self._incremental.buckets_with(self._positions(added))
            fresh = _assemble(self.domain, measured, kept)
        return fresh._check_memory(memory_limit)

    @property
    def has_tree(self) -> bool:
        """Whether there is a junction tree; an oracle made of records needs none."""
        return self.n_records is None

    @cached_property
    def layout(self) -> Layout:
        """Where the table of each measured clique lies in a vector."""
        return Layout(self.domain, self.cliques)

    @cached_property
    def cells(self) -> int:
        """The cells of all maximal cliques together, exactly; without a tree, of all cliques."""
        if not self.has_tree:
            return sum(map(self.domain.size_of, self.cliques))
        return sum(self.domain.size_of(node.clique) for node in self.nodes)

    @property
    def size_bytes(self) -> int:
        """The memory that one oracle call needs at most: potentials, marginals and workspace.

        Marginals and workspace count twice, because with widely spread potentials the oracle needs
        the exponents of their entries too.
        """
        return self.cost.size_bytes

    @property
    def operations(self) -> int:
        """The multiplications and exponentials of one oracle call."""
        return self.cost.operations

    @cached_property
    def tree_bytes(self) -> int:
        """The memory for the tables of all maximal cliques, which answer questions across cliques.

        One oracle call fills them; where every maximal clique is measured, none is needed.
        """
        largest = self.domain.size_of(self.largest_clique)
        filling = 0 if self.measures_all_nodes else self.size_bytes + 8 * (largest // 2)
        return max(8 * self.cells + filling, self.kept_tree_bytes)

    @cached_property
    def kept_tree_bytes(self) -> int:
        """The memory that stays in use: for those tables, and for the masses of all separators."""
        return 8 * (self.cells + sum(self.domain.size_of(node.separator) for node in self.nodes))

    @property
    def affords_tree(self) -> bool:
        """Whether the tables of all maximal cliques take little more memory than one oracle call.

        If not, a question is asked with an oracle call of its own.
        """
        return self.tree_bytes <= max(UNNOTICED_BYTES, int(MAX_TREE_RATIO * self.size_bytes))

    @cached_property
    def measures_all_nodes(self) -> bool:
        """Whether every maximal clique is measured."""
        return {node.clique for node in self.nodes}.issubset(self.cliques)

    @cached_property
    def with_maximal_cliques(self) -> Plan:
        """The same tree with every maximal clique measured, which adds no edge to the graph."""
        cliques = dict.fromkeys((*self.cliques, *(node.clique for node in self.nodes)))
        return _assemble(self.domain, tuple(cliques), self.buckets)

    @cached_property
    def largest_clique(self) -> Clique:
        """The maximal clique with the most cells (the empty clique when there is none)."""
        cliques = [node.clique for node in self.nodes] if self.has_tree else self.cliques
        return max(cliques, key=self.domain.size_of, default=())

    @cached_property
    def free_attributes(self) -> Clique:
        """The attributes that no measured clique mentions: uniform and independent."""
        used = {name for clique in self.cliques for name in clique}
        return tuple(name for name in self.domain if name not in used)

    @cached_property
    def hosts(self) -> dict[Clique, int]:
        """The index in `nodes` of the host of each measured clique."""
        return {clique: index for index, node in enumerate(self.nodes) for clique in node.measured}

    def cells_with(self, clique: Iterable[str]) -> int:
        """An upper bound of the cells that the junction tree would have with this clique added.

        This takes microseconds, because the elimination order is kept; `extend` gives a plan that
        is no larger.
        """
        if not self.has_tree:
            return Plan.without_tree(self.domain, (*self.cliques, clique), 0).cells
        return max(1, self._incremental.cells_with(self._positions(clique)))

    def fits_with(self, clique: Iterable[str], max_cells: int) -> bool:
        """Whether `cells_with` is at most `max_cells`; asking this is cheaper."""
        return self.which_fit([clique], max_cells)[0]

    def which_fit(self, cliques: Iterable[Iterable[str]], max_cells: int) -> list[bool]:
        """The same for each of many cliques, each added alone."""
        positions = [self._positions(clique) for clique in cliques]
        return [
            fits and max_cells >= 1 for fits in self._incremental.which_fit(positions, max_cells)
        ]

    def __str__(self) -> str:
        return describe(self)

    def __repr__(self) -> str:
        if self.n_records is not None:
            return (
                f"Plan({count_noun(len(self.domain), 'attribute')}, "
                f"{count_noun(len(self.cliques), 'clique')}; {self.n_records:,} records, no tree)"
            )
        cliques, nodes = (count_noun(len(x), "clique") for x in (self.cliques, self.nodes))
        return (
            f"Plan({count_noun(len(self.domain), 'attribute')}, {cliques}; a tree of {nodes} with "
            f"{format_count(self.cells)} cells, {format_bytes(self.size_bytes)})"
        )

    def _repr_html_(self) -> str:
        return plan_html(describe(self))

    @cached_property
    def _incremental(self) -> IncrementalElimination:
        return IncrementalElimination(
            self.buckets, _scopes(self.domain, self.cliques), self.domain.shape
        )

    def _positions(self, clique: Iterable[str]) -> list[int]:
        return [self.domain.positions[name] for name in self.domain.canonical(clique)]

    def _check_memory(self, memory_limit: int | None) -> Plan:
        """The plan itself, or an error if it exceeds the limit."""
        is_small = memory_limit is None and self.size_bytes <= _SURELY_FREE
        limit = self.size_bytes if is_small else _resolve_limit(memory_limit)
        if self.size_bytes > limit:
            raise ModelTooLarge(
                f"`cliques` must give a model within {format_bytes(limit)}; got one of "
                f"{format_bytes(self.size_bytes)}. Its largest clique is "
                f"({abbreviate(self.largest_clique)}) with "
                f"{format_count(self.domain.size_of(self.largest_clique))} cells. "
                "Leave out a clique that closes a cycle through these attributes, merge values "
                "of the largest attributes, or raise `memory_limit`.",
                needed=format_bytes(self.size_bytes),
                limit=format_bytes(limit),
            )
        for node in self.nodes:
            refuse_many_axes(node.clique)
        return self


def _resolve_limit(memory_limit: int | None) -> int:
    """The limit in bytes; by default, a share of what is free."""
    if memory_limit is None:
        return int(free_memory_bytes() * SHARE_OF_FREE_MEMORY)
    if memory_limit < 0:
        raise InvalidInput(
            f"`memory_limit` must be a number of bytes; got {memory_limit}. "
            "Leave it out to use a share of what is free."
        )
    return memory_limit


def _refuse_hopeless(domain: Domain, cliques: Sequence[Clique], memory_limit: int | None) -> None:
    """Refuse at once what no plan could fit into the limit: planning it could take minutes."""
    if len(cliques) > _SOON_PLANNED:
        limit = _resolve_limit(memory_limit)
        refuse_hopeless(domain, _scopes(domain, cliques), limit, _BYTES_PER_CELL)


def _scopes(domain: Domain, cliques: Iterable[Clique]) -> list[list[int]]:
    return [[domain.positions[name] for name in clique] for clique in cliques]


def _search(domain: Domain, cliques: tuple[Clique, ...], seed: int) -> Plan:
    """The plan of the best elimination order that the search gives."""
    graph = build_graph(range(len(domain)), _scopes(domain, cliques))
    buckets = eliminate(graph, domain.shape, seed=seed)
    return _assemble(domain, cliques, buckets)


def _assemble(domain: Domain, cliques: tuple[Clique, ...], buckets: Sequence[Bucket]) -> Plan:
    """The plan of a given elimination order."""
    scopes = _scopes(domain, cliques)
    used = {vertex for scope in scopes for vertex in scope}
    tree = build_junction_tree([b for b in buckets if b.vertex in used], domain.shape)
    if cliques and not used:
        tree = EMPTY_CLIQUE_ALONE
    contraction = Contraction(domain.shape, map(tuple, scopes))
    hosted = _assign_hosts(tree, buckets, scopes)
    nodes, messages = [], dict[int, list[int]]()
    for index, (clique, separator, parent) in enumerate(tree.nodes):
        tables = hosted.get(index, []) + messages.pop(index, [])
        steps = contraction.join(tables, separator)
        messages.setdefault(parent, []).append(steps[-1].result)
        nodes.append(
            Node(
                clique=_names(domain, clique),
                separator=_names(domain, separator),
                parent=None if parent < 0 else parent,
                measured=tuple(cliques[table] for table in hosted.get(index, [])),
                steps=tuple(steps),
            )
        )
    cost = _estimate_cost(contraction, [step for node in nodes for step in node.steps])
    return Plan(domain, cliques, tuple(nodes), contraction, cost, tuple(buckets))


def _assign_hosts(
    tree: JunctionTree, buckets: Sequence[Bucket], scopes: list[list[int]]
) -> dict[int, list[int]]:
    """The measured tables that each node hosts: where their first vertex is eliminated.

    The empty clique, a measurement of the total alone, goes to the last root.
    """
    position = {bucket.vertex: index for index, bucket in enumerate(buckets)}
    hosted: dict[int, list[int]] = {}
    for table, scope in enumerate(scopes):
        first = min(scope, key=position.__getitem__, default=None)
        home = len(tree.nodes) - 1 if first is None else tree.home[first]
        hosted.setdefault(home, []).append(table)
    return hosted


def _names(domain: Domain, vertices: Iterable[int]) -> Clique:
    return tuple(domain.attributes[vertex] for vertex in sorted(vertices))


def _estimate_cost(contraction: Contraction, steps: list[Step]) -> OracleCost:
    """The cost of a call: a step runs once forward and twice backward, a potential is read once."""
    potentials = sum(contraction.counts[: contraction.n_inputs])
    workspace = contraction.workspace_cells(steps)
    products = sum(map(contraction.union_cells, steps))
    return OracleCost(
        size_bytes=8 * (3 * potentials + 2 * workspace), operations=2 * potentials + 3 * products
    )
