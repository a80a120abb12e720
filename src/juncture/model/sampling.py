"""Synthetic records, drawn down the tree.

`sample` draws every record independently, node by node given the separator. `synthesize` divides
the records of every separator cell among the node's cells in proportion, rounded at random so that
each cell gets its share on average. Each record on its own is a draw from the model here too, but
the records depend on each other: their counts over the cliques are closer to the model's. So that
tables across nodes are closer too, a pool of more records is made this way, and halved until there
are as many as wanted: see `thinning`. Halving favours no record, so averages are kept.

Both go down the tree in stages. A stage sees a node's table as a matrix: a row for each value of
what is known already, a cell for each value of what is added. `sample` has a stage for each node,
since one draw gives all of its attributes at once. `synthesize` has one for each attribute:

    500 records, node abc of 10 x 10 x 10 values, nothing known
    at once        1,000 cells of 0.5 records each: rounding decides everything
    one by one     a: 10 targets of about 50, each within one record;
                   b given a: 100 of about 5; c given a and b: 1,000 of 0.5

The counts of a, and then those of ab, are fixed nearly exactly before the cells become small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from juncture._util.memory import free_memory_bytes
from juncture._util.randomness import Random
from juncture._util.threads import run_parallel, split_range
from juncture.engine.compiled.loader import pointer, routine
from juncture.engine.plan_text import format_bytes
from juncture.errors import ImpossibleModel, InvalidInput, ModelTooLarge
from juncture.model.apportionment import KeptSums, apportion_records, choose_sums
from juncture.model.calibration import Calibration
from juncture.model.card_sampling import CardDrawer, find_drawer
from juncture.model.clique_tree import Visit
from juncture.model.stages import DrawStage, make_stage
from juncture.model.thinning import Thinner, sort_similar
from juncture.tables.layout import Vector
from juncture.tables.records import Codes

# Below this many draws, waking a second thread costs more than it saves.
_WORTH_THREADS = 50_000
# Records of a pool, and their codes: beyond, records are apportioned and not halved.
_MAX_POOL, _MAX_POOL_CODES = 1 << 20, 1 << 26
# Up to this many bytes, the system need not be asked for its free memory.
_SURELY_FREE = 1 << 24


class Sampler:
    """The stages of a tree, from which records can be drawn many times.

    Attributes that are `given` are not drawn: the tree must have a node that has all of them,
    and the draw begins there.
    """

    def __init__(self, tree: Calibration, given: Sequence[str] = ()) -> None:
        self.tree, self.domain = tree, tree.plan.domain
        self._given = tuple(given)
        self._cliques = tree.plan.cliques
        root = _find_root(tree, set(given))
        self._root = None if root is None else (tree.nodes[root].clique, tree.marginal(root))
        self._visits = [*_tree_visits(tree, set(given), root), *_free_visits(tree, set(given))]
        self._aliases: list[tuple[Vector, Codes]] = []
        self._drawer: CardDrawer | None = None
        self._thinner = Thinner(self.domain, self._cliques)

    def sample(
        self, n: int, key: int, columns: Mapping[str, Codes] | None = None, first: int = 0
    ) -> Codes:
        """Independent draws, a row for each attribute; `first` is the first record's number."""
        codes = self._allocate(n, columns or {})
        self._check_given(codes)
        stages = self._node_stages
        self._aliases = self._aliases or [_make_aliases(stage.weights) for stage in stages]
        self._drawer = self._drawer or find_drawer(n, stages, self._aliases)
        if self._drawer is not None:
            return self._drawer.draw(codes, key, first, has_given=bool(self._given))
        for index, (stage, tables) in enumerate(zip(stages, self._aliases, strict=True)):
            _draw(codes, stage, tables, key, first, (index, len(stages)))
        return codes

    def synthesize(self, n: int, key: int, columns: Mapping[str, Codes] | None = None) -> Codes:
        """Records of which each is a draw from the model, and whose counts are closer to it."""
        random = np.random.default_rng(key)
        if self._given:
            return self.apportion(n, random, columns)
        max_pool = min(_MAX_POOL, _MAX_POOL_CODES / max(1, len(self.domain)))
        n_halvings = self._thinner.choose_halvings(n, max_pool)
        pool = self.apportion(n << n_halvings, random)
        if not n_halvings:
            return pool
        similar = np.ascontiguousarray(pool[:, sort_similar(pool)])
        return self._thinner.thin(similar, n_halvings, random)

    def apportion(
        self, n: int, random: np.random.Generator, columns: Mapping[str, Codes] | None = None
    ) -> Codes:
        """Records that are divided among the cells of each node, rounded at random."""
        codes = self._allocate(n, columns or {})
        self._check_given(codes)
        for stage, sums in self._attribute_stages:
            apportion_records(codes, stage, sums, draw_key(random))
        return codes

    @cached_property
    def _node_stages(self) -> list[DrawStage]:
        """A stage for each node: one draw gives all that it adds."""
        return [make_stage(self.domain, table, visit) for table, visit in self._visits]

    @cached_property
    def _attribute_stages(self) -> list[tuple[DrawStage, KeptSums]]:
        """A stage for each attribute, given all others of its node that come before."""
        stages = []
        for table, visit in self._visits:
            axes = self.domain.canonical((*visit.known, *visit.added))
            for index, name in enumerate(visit.added):
                known = (*visit.known, *visit.added[:index])
                later = tuple(axes.index(other) for other in visit.added[index + 1 :])
                single = Visit(visit.node, known, (name,))
                stage = make_stage(self.domain, table.sum(axis=later), single)
                stages.append((stage, choose_sums(self.domain, self._cliques, known, name)))
        return stages

    def _check_given(self, codes: Codes) -> None:
        """Refuse given columns that are impossible together; one node has all that are not free."""
        if self._root is None:
            return
        clique, table = self._root
        inside = [name for name in clique if name in self._given]
        summed = tuple(axis for axis, name in enumerate(clique) if name not in inside)
        cells = tuple(codes[self.domain.positions[name]] for name in inside)
        n_impossible = int((table.sum(axis=summed)[cells] <= 0).sum())
        if n_impossible:
            raise ImpossibleModel(
                f"`given` must be records that are possible in the model; got {n_impossible} whose "
                "combination of values has no mass. Leave those out, or give fewer columns."
            )

    def _allocate(self, n: int, columns: Mapping[str, Codes]) -> Codes:
        """A new array for the records, with the given columns filled in."""
        _check_memory(n, len(self.domain))
        codes = np.zeros((len(self.domain), n), dtype=np.int32)
        for name in self._given:
            codes[self.domain.positions[name]] = columns[name]
        return codes


def _check_memory(n: int, n_attributes: int) -> None:
    """Refuse more records than fit in memory, before any is made."""
    needed = 4 * n * (n_attributes + 1)  # the codes, and one more number per record
    if needed > _SURELY_FREE and needed > (free := free_memory_bytes()):
        raise ModelTooLarge(
            f"`n` must be a number of records that fit in {format_bytes(free)} of memory; got "
            f"{n:,}, which need {format_bytes(needed)}. Independent draws go to a file in constant "
            'memory: release.write_records(path, n, method="sample").'
        )


def check_count(n: int) -> int:
    """A number of records, or a clear error."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InvalidInput(f"`n` must be a whole number of records, at least 0; got {n!r}.")
    return int(n)


def draw_key(rng: Random) -> int:
    """The key of the random numbers, drawn from a generator or from one with this seed."""
    return int(np.random.default_rng(rng).integers(2**63))


def _find_root(tree: Calibration, given: set[str]) -> int | None:
    """The smallest node that has all of the given attributes that are in the tree."""
    inside = given.intersection(tree.home)
    holding = [p for p, node in enumerate(tree.nodes) if inside and inside.issubset(node.clique)]
    return min(holding, key=lambda p: tree.plan.domain.size_of(tree.nodes[p].clique), default=None)


def _tree_visits(
    tree: Calibration, given: set[str], root: int | None
) -> Iterable[tuple[Vector, Visit]]:
    """The nodes on the way down, beginning with the one that has what is given.

    What a node adds is ordered by how many other nodes have it too: they build on it, and the
    attribute that comes first is rounded least.
    """
    inside = given.intersection(tree.home)
    spread = Counter(name for node in tree.nodes for name in node.clique)
    for visit in tree.walk_down(root):
        known = (*visit.known, *(n for n in visit.added if visit.node == root and n in inside))
        added = (name for name in visit.added if name not in known)
        ordered = tuple(sorted(added, key=lambda name: -spread[name]))
        if ordered:
            yield tree.marginal(visit.node), Visit(visit.node, known, ordered)


def _free_visits(tree: Calibration, given: set[str]) -> Iterable[tuple[Vector, Visit]]:
    """The attributes that no clique mentions, each uniform."""
    for name in tree.plan.free_attributes:
        if name not in given:
            yield np.ones(tree.plan.domain[name]), Visit(0, (), (name,))


def _make_aliases(weights: Vector) -> tuple[Vector, Codes]:
    share, alias = np.empty_like(weights), np.empty(weights.shape, dtype=np.int32)
    waiting = np.empty(weights.shape[1], dtype=np.int64)
    routine("make_aliases")(
        pointer(weights), pointer(share), pointer(alias), *weights.shape, pointer(waiting)
    )
    return share, alias


def _draw(
    codes: Codes, stage: DrawStage, tables: tuple[Vector, Codes], key: int, first: int,
    phase: tuple[int, int],
) -> None:  # fmt: skip
    share, alias = tables
    numbers = np.array(phase, dtype=np.int64)
    compiled = routine("draw")

    def run(span: tuple[int, int]) -> None:
        compiled(
            pointer(codes), *codes.shape, *span, first, pointer(stage.known),
            pointer(stage.strides), len(stage.known), pointer(stage.added), len(stage.added),
            pointer(stage.decoded), pointer(share), pointer(alias), *share.shape, key,
            pointer(numbers),
        )  # fmt: skip

    run_parallel(run, split_range(codes.shape[1], _WORTH_THREADS))
