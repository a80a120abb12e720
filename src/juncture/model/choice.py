"""Which way a question across cliques is answered, by memory, then work, before any is used.

The tree has a table for each maximal clique. It is made once, and then every question is a walk
over a few tables; but it may need many times the memory of the model. An oracle call with the
question as one more clique needs little more memory than the model, but every question needs a
plan and a call. So the tree is made if it needs at most `MAX_TREE_RATIO` times the memory of the
model's plan, and walked if both together need at most so many times that of the question's own
plan, or the walk alone less than that plan. A tree so large that filling it takes longer than some
calls is made when so many questions have been asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from juncture._util.memory import free_memory_bytes
from juncture.engine.plan import MAX_TREE_RATIO, SHARE_OF_FREE_MEMORY, UNNOTICED_BYTES
from juncture.engine.plan_text import abbreviate, format_bytes
from juncture.errors import ModelTooLarge
from juncture.model.extension import Extension
from juncture.tables.domain import Clique

# Questions asked together may need this much memory for what they share.
_SHARED_BYTES = 1 << 24
# The work to fill a cell of the tree, and to find the plan of a question, in units of the
# operations of an oracle call.
_FILLING_WORK, _SEARCH_WORK = 20, 10**8
_ADVICE = "Ask about fewer attributes at a time, or compress them with Buckets, Range or Subset."

# So many questions asked together may have a tree of this size, whatever the model's plan needs.
_MANY_QUESTIONS, _MANY_BYTES = 64, 48 << 20


class Choice:
    """The predicted memory and work of both ways, for one model.

    - `extension`: what makes the plan of a question.
    - `tree_bytes`: the memory to make the tree.
    """

    def __init__(self, extension: Extension, tree_bytes: int) -> None:
        self._extension, self._tree_bytes = extension, tree_bytes
        plan = extension.plan
        # No question's own plan is much smaller than the model's.
        self._least_bytes = extension.size_bytes(plan)
        self._unweighed_bytes = max(UNNOTICED_BYTES, int(MAX_TREE_RATIO * self._least_bytes))
        self._min_questions = _FILLING_WORK * plan.cells / (plan.operations + _SEARCH_WORK)
        self.n_calls = 0
        """How many questions have been answered by oracle calls."""

    def expect_many(self, n_questions: int) -> None:
        """Allow the tree more memory where many questions share it: calls would take far longer."""
        if n_questions >= _MANY_QUESTIONS:
            self._unweighed_bytes = max(self._unweighed_bytes, _MANY_BYTES)

    @property
    def shared_bytes(self) -> int:
        """The memory for what questions have in common that are asked together of the tree."""
        left = self._unweighed_bytes - self._extension.plan.kept_tree_bytes
        return max(_SHARED_BYTES, left // 4)

    def affords_walk(self, walk_bytes: int, *, calibrated: bool, n_questions: int = 1) -> bool:
        """Whether the tree is the better way whatever the plan of the question is.

        - `walk_bytes`: the memory for the walk over the tree.
        - `calibrated`: whether the tree exists.
        - `n_questions`: how many questions are there.
        """
        if not calibrated and self.n_calls + n_questions < self._min_questions:
            return False
        if calibrated and walk_bytes <= self._least_bytes:
            return _fits(walk_bytes)
        needed = self._walking_bytes(walk_bytes)
        return needed <= self._unweighed_bytes and _fits(walk_bytes if calibrated else needed)

    def affords_call(self, size_bytes: int) -> bool:
        """Whether one oracle call for several questions may need so much."""
        return size_bytes <= self._unweighed_bytes and _fits(size_bytes)

    def prefers_walk(
        self, walk_bytes: int, names: Clique, clique: Clique, *, calibrated: bool
    ) -> bool:
        """Whether the tree is the better way for one question; refuses what fits in neither.

        - `walk_bytes`: the memory for the walk over the tree.
        - `names`: the attributes asked about.
        - `clique`: those among them that would become one more clique of the plan.
        - `calibrated`: whether the tree exists.
        """
        if self.affords_walk(walk_bytes, calibrated=calibrated):
            return True
        walking, calling = self._walking_bytes(walk_bytes), self._calling_bytes(clique)
        walk_fits = _fits(walk_bytes if calibrated else walking)
        if not _fits(calling) and not walk_fits:
            raise ModelTooLarge(
                f"`query` must need at most {format_bytes(_limit())}; got one over "
                f"({abbreviate(names)}) that needs {_format_ways(walking, calling)}. {_ADVICE}"
            )
        if not _fits(calling) or not walk_fits:
            return walk_fits
        if not calibrated and self._tree_bytes > self._unweighed_bytes:
            return False  # it would stay, and be too large for questions with small plans
        is_worth_it = calibrated or self.n_calls + 1 >= self._min_questions
        tolerated = MAX_TREE_RATIO * calling if is_worth_it else calling
        return walking <= tolerated or (calibrated and walk_bytes <= calling)

    def check_answer(self, names: Clique, rows: Iterable[int]) -> None:
        """Refuse an answer that does not fit in memory itself."""
        needed = 8 * 2 * math.prod(rows)
        if not _fits(needed):
            raise ModelTooLarge(
                f"`query` must need at most {format_bytes(_limit())}; got an answer over "
                f"({abbreviate(names)}) of {format_bytes(needed // 2)}. {_ADVICE}"
            )

    def _walking_bytes(self, walk_bytes: int) -> int:
        """The memory of the tree and of a walk over it."""
        # What filling the tree needs is free again when the walk begins.
        return max(self._tree_bytes, self._extension.plan.kept_tree_bytes + walk_bytes)

    def _calling_bytes(self, clique: Clique) -> float:
        """The memory of the question's own plan; without a search where its table alone is huge."""
        table = 8 * 2 * self._extension.plan.domain.size_of(clique)
        if not _fits(table):
            return math.inf
        return self._extension.size_bytes(self._extension.plan_with([clique]))


def _limit() -> int:
    return int(free_memory_bytes() * SHARE_OF_FREE_MEMORY)


def _fits(size_bytes: float) -> bool:
    return size_bytes <= UNNOTICED_BYTES or size_bytes <= _limit()


def _format_ways(walking: int, calling: float) -> str:
    tree = f"{format_bytes(walking)} with the tables of all cliques"
    if math.isinf(calling):
        return tree
    return f"{format_bytes(int(calling))} as one more clique, and {tree}"
