"""The questions to one model: marginals and factored queries over any attributes.

A question about attributes of one measured clique is answered from its marginal. Any other one goes
over the tree of all maximal cliques, or becomes one more clique of the plan (`Choice` says which).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from juncture.engine.oracle import OracleFactory, predict_tree_bytes
from juncture.engine.plan import UNNOTICED_BYTES, Plan
from juncture.model.calibration import Calibration
from juncture.model.card_tree import MANY_QUESTIONS, CardTree, find_card_tree
from juncture.model.choice import Choice
from juncture.model.clique_tree import CliqueTree
from juncture.model.extension import Extension
from juncture.model.measured import Measured
from juncture.model.node_sums import NodeSums
from juncture.model.pair_query import PairQuery
from juncture.model.pair_routes import Routes
from juncture.model.table import BoundedStore, Table, multiply
from juncture.model.tree_query import Messages, TreeQuery, shape_answer
from juncture.model.tree_walk import TreeWalk
from juncture.tables.domain import Clique
from juncture.tables.layout import Layout, Vector
from juncture.tables.queries.blocks import Block, Identity
from juncture.tables.queries.products import Kron, bind

# At most this many questions share an oracle call.
_MAX_SHARED = 64
# After so many calls that fit, twice as many questions are tried together.
_PATIENCE = 4
# Questions are answered together if they are among this many of the next ones.
_MAX_WAITING = 4096


@dataclass
class _Shared:
    """What questions asked together have in common."""

    kept_bytes: int
    """The memory for tables that later questions may need again."""
    asked: Sequence[Clique]
    """All questions, by the attributes that cliques mention, in canonical order."""
    holders: Sequence[Clique | None]
    """For each of them a measured clique that has all the attributes, if there is one."""
    answers: dict[Clique, Table] = field(default_factory=dict)
    """What has been answered before its turn."""

    def __post_init__(self) -> None:
        self.messages: Messages = BoundedStore(self.kept_bytes)
        self.sums = NodeSums(self.kept_bytes // 4)
        self.n_open = sum(holder is None for holder in self.holders)

    @property
    def is_full(self) -> bool:
        """Whether the answers that wait for their turn need all the memory for them."""
        return sum(table.values.nbytes for table in self.answers.values()) >= self.kept_bytes

    def list_open(self, index: int, n: int) -> list[Clique]:
        """The distinct questions among the next ones that are still to be answered."""
        some = zip(self.asked[index : index + n], self.holders[index : index + n], strict=True)
        open_ones = (names for names, holder in some if holder is None)
        return [names for names in dict.fromkeys(open_ones) if names not in self.answers]


class Questions:
    """What answers the questions to one distribution, in shares of its records."""

    def __init__(
        self,
        plan: Plan,
        potentials: Vector,
        probabilities: Vector,
        log_partition: float,
        oracle: OracleFactory,
    ) -> None:
        self.plan, self._domain = plan, plan.domain
        self._potentials, self._oracle = potentials, oracle
        self._probabilities = probabilities
        self._measured = Measured(Layout(plan.domain, plan.cliques), probabilities)
        self._map = CliqueTree(plan)
        self._extension = Extension(plan, potentials, log_partition, oracle)
        self._answers = BoundedStore[Clique, Table](UNNOTICED_BYTES)
        self._max_group, self._n_fitted = _MAX_SHARED, 0

    @cached_property
    def tree(self) -> Calibration:
        """The tables of all maximal cliques, which are made when first needed."""
        return Calibration.of_model(self.plan, self._potentials, self._probabilities, self._oracle)

    @cached_property
    def _card_tree(self) -> CardTree | None:
        return find_card_tree(self.tree)

    @property
    def is_calibrated(self) -> bool:
        """Whether the tree exists."""
        return "tree" in vars(self)

    def project(self, names: Clique) -> Vector:
        """The marginal on some attributes, an axis for each in this order."""
        (result,) = self.project_many([names])
        return result

    def project_many(self, asked: Sequence[Clique]) -> Iterator[Vector]:
        """The marginals on many sets of attributes, one after another, sharing their work."""
        self._choice.expect_many(len(asked))
        kept_bytes = 0 if len(asked) == 1 else self._choice.shared_bytes
        mentioned = [self._mentioned(self._domain.canonical(names)) for names in asked]
        holders = [self._measured.find_holder(names) for names in mentioned]
        shared = _Shared(kept_bytes, mentioned, holders)
        for index, names in enumerate(asked):
            self._choice.check_answer(names, [self._domain[name] for name in names])
            holder = holders[index]
            if holder is None:
                table = self._ask(index, shared)
            else:
                table = self._measured.project(holder, mentioned[index])
            yield self._spread(table, names).transpose(names)

    def answer(self, blocks: Mapping[str, Block]) -> Vector:
        """The answers of blocks on some attributes, an axis for each in this order."""
        names = tuple(blocks)
        rows = {name: block.n_rows(self._domain[name]) for name, block in blocks.items()}
        self._choice.check_answer(names, rows.values())
        mentioned = self._mentioned(names)
        holder = self._measured.find_holder(mentioned)
        if holder is not None:
            table = self._measured.project(holder, mentioned)
            return self._apply(table, blocks, rows)
        if all(isinstance(block, Identity) for block in blocks.values()):
            return self.project(names)
        weights = self._find_weights(blocks, rows)
        kept = {name: block for name, block in blocks.items() if name not in weights}
        clique, walk = self._mentioned(tuple(kept)), TreeWalk(self._map, blocks)
        if self._choice.prefers_walk(walk.size_bytes, names, clique, calibrated=self.is_calibrated):
            return TreeQuery(self.tree, walk).answer()
        table = self._ask_weighted(clique, weights)
        return self._apply(table, kept, rows)

    @cached_property
    def _choice(self) -> Choice:
        return Choice(self._extension, predict_tree_bytes(self._oracle, self.plan))

    def _mentioned(self, names: Clique) -> Clique:
        """Those of the attributes that cliques mention; the others are uniform."""
        return tuple(name for name in names if name in self._map.home)

    def _spread(self, table: Table, names: Clique) -> Table:
        """The table with uniform attributes that no clique mentions, where they are asked about."""
        if len(table.axes) == len(names):
            return table
        for name in names:
            if name not in table.axes:
                table = multiply(table, Table(self._find_uniform(name), (name,)))
        return table

    def _find_uniform(self, name: str) -> Vector:
        return np.full(self._domain[name], 1.0 / self._domain[name])

    def _apply(self, table: Table, blocks: Mapping[str, Block], rows: Mapping[str, int]) -> Vector:
        """The answers of blocks on all axes of a table, and on attributes that no clique mentions.

        The answers of the latter are multiplied, so no table has their values as an axis.
        """
        inside = {name: block for name, block in blocks.items() if name in table.axes}
        values = table.transpose(tuple(inside))
        if inside:
            query = bind(Kron(inside), self._domain.project(inside))
            answers = query.apply(np.ascontiguousarray(values))
            values = answers.reshape([rows[name] for name in inside])
        result = Table(values, tuple(inside))
        for name, block in blocks.items():
            if name not in inside:
                answers = block.apply(self._find_uniform(name))
                # A single answer needs no axis: arrays may have few of them.
                free = Table(answers, (name,)) if rows[name] > 1 else Table(answers[0], ())
                result = multiply(result, free)
        return shape_answer(result, rows)

    def _ask(self, index: int, shared: _Shared) -> Table:
        """The shares of the records on attributes that no measured clique has together."""
        names, calibrated = shared.asked[index], self.is_calibrated
        known = shared.answers.pop(names, None) or self._answers.get(names)
        if known is not None:
            return known
        walk = self._plan_walk(names, shared)
        if not self._choice.affords_walk(
            walk.size_bytes, calibrated=calibrated, n_questions=len(shared.asked) - index
        ):
            alone = calibrated or shared.is_full
            waiting = [] if alone else shared.list_open(index, _MAX_WAITING)
            group = self._form_group(waiting) or [names]
            if len(group) > 1 or not self._choice.prefers_walk(
                walk.size_bytes, names, names, calibrated=calibrated
            ):
                return self._call(group, shared)
        return self._walk(walk, index, shared)

    def _walk(self, walk: Routes | TreeWalk, index: int, shared: _Shared) -> Table:
        """Answer a question over the tree, on a card where many are asked and the walk fits."""
        names = shared.asked[index]
        card = self._card_tree if shared.n_open >= MANY_QUESTIONS else None
        if isinstance(walk, TreeWalk):
            if card is not None and not card.has_room(walk.size_bytes):
                # The messages that are shared lie on the card.
                alone = TreeWalk(self._map, dict.fromkeys(names, Identity()))
                return Table(TreeQuery(self.tree, alone).answer(), names)
            query = TreeQuery(card or self.tree, walk, shared.messages, shared.sums)
            return Table(query.answer(), names)
        if shared.kept_bytes:
            pairs = [pair for pair in shared.list_open(index, _MAX_WAITING) if len(pair) == 2]
            walk = Routes(self._map, pairs, shared.kept_bytes)
        tree = card if card is not None and card.has_room(walk.size_bytes) else self.tree
        shared.answers |= PairQuery(tree).answer(walk)
        return shared.answers.pop(names)

    def _plan_walk(self, names: Clique, shared: _Shared) -> Routes | TreeWalk:
        """The way of one question over the tree."""
        if len(names) == 2:
            return Routes(self._map, [names], 0)
        return TreeWalk(self._map, dict.fromkeys(names, Identity()), shared.messages)

    def _call(self, group: Sequence[Clique], shared: _Shared) -> Table:
        """The shares on the first of these cliques; those on the others are kept for later."""
        self._choice.n_calls += len(group)
        tables = self._extension.ask(group)
        for names, table in zip(group, tables, strict=True):
            self._answers.put(names, table, table.values.nbytes)
            shared.answers[names] = table
        return shared.answers.pop(group[0])

    def _form_group(self, waiting: Sequence[Clique]) -> list[Clique]:
        """The first question and as many of the next ones as one oracle call may answer.

        Those that share an attribute with the first one come before others: every maximal clique
        may get this attribute, and then all these questions fit.
        A call for several must need no more memory than questions may without being weighed, and
        no more work than calls for each of them.
        """
        group = [names for names in waiting if names not in self._answers]
        group.sort(key=lambda names: waiting[0][0] not in names)
        group = group[: self._max_group]
        while len(group) > 1:
            plan = self._extension.plan_with(group)
            needed, work = self._extension.size_bytes(plan), len(group) * self.plan.operations
            if self._choice.affords_call(needed) and plan.operations <= 2 * work:
                break
            group = group[: len(group) // 2]
            self._max_group, self._n_fitted = len(group), 0
        # A plan that does not fit is a search in vain, so larger groups are tried now and then.
        self._n_fitted += 1
        if self._n_fitted % _PATIENCE == 0:
            self._max_group = min(_MAX_SHARED, 2 * self._max_group)
        return group

    def _find_weights(
        self, blocks: Mapping[str, Block], rows: Mapping[str, int]
    ) -> dict[str, Vector]:
        """The weights of the blocks that have a single answer and no negative weight."""
        single = {name: block for name, block in blocks.items() if rows[name] == 1}
        weights = {
            name: block.adjoint(np.ones(1), self._domain[name]) for name, block in single.items()
        }
        return {name: values for name, values in weights.items() if (values >= 0).all()}

    def _ask_weighted(self, clique: Clique, weights: Mapping[str, Vector]) -> Table:
        """The weighted share of the records on a clique of attributes that cliques mention."""
        inside = {name: values for name, values in weights.items() if name in self._map.home}
        free = [values.mean() for name, values in weights.items() if name not in inside]
        known = None if inside else self._answers.get(clique)
        if known is None:
            # Without an attribute of its own the question is about the mass of any clique.
            asked = (
                (clique and self._measured.find_holder(clique)) or clique or self.plan.cliques[0]
            )
            self._choice.n_calls += 1
            (table,) = self._extension.ask([asked], inside)
            known = table.sum_onto(clique)
            if not inside:
                self._answers.put(clique, known, known.values.nbytes)
        return Table(float(np.prod(free)) * known.values, known.axes)
