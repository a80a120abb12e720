"""Records drawn on a card: the same numbers as on the processor, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from juncture.engine.gpu.card import find_card
from juncture.engine.gpu.kernel_runner import Backend
from juncture.engine.gpu.opcodes import LANES
from juncture.model.stages import DrawStage
from juncture.tables.layout import Vector
from juncture.tables.records import Codes

# Draws of nodes from which on a card pays for copying records back from it.
WORTH_A_CARD = 20_000_000
_MAX_BLOCKS = 8192


class CardDrawer:
    """The stages of a tree on a card."""

    def __init__(
        self, backend: Backend, stages: Sequence[DrawStage], aliases: Sequence[tuple[Vector, Codes]]
    ) -> None:
        self._backend = backend
        self._stages = []
        for stage, (share, alias) in zip(stages, aliases, strict=True):
            known = (*map(self._put, (stage.known, stage.strides)), np.int32(len(stage.known)))
            added = (self._put(stage.added), np.int32(len(stage.added)), self._put(stage.decoded))
            tables = (self._put(share), self._put(alias), np.int64(share.shape[1]))
            self._stages.append((*known, *added, *tables))

    def draw(self, codes: Codes, key: int, first: int, *, has_given: bool) -> Codes:
        """Fill all columns of the records but the given ones; `first` is the first one's number."""
        backend, n = self._backend, codes.shape[1]
        placed = backend.put(codes) if has_given else backend.make(codes.size, codes.dtype)
        blocks = max(1, min(_MAX_BLOCKS, -(-n // LANES)))
        count, phases = np.int64(n), np.uint64(len(self._stages))
        for phase, stage in enumerate(self._stages):
            numbers = np.uint64(key), np.uint64(phase), phases
            backend.start("draw", blocks, placed, count, np.uint64(first), *stage, *numbers)
        drawn: Codes = backend.fetch(placed).reshape(codes.shape)
        return drawn

    def _put(self, array: NDArray[Any]) -> object:
        # A kernel is handed an address in any case, also where nothing is known.
        return self._backend.put(np.ascontiguousarray(array) if array.size else np.zeros(1))


def find_drawer(
    n: int, stages: Sequence[DrawStage], aliases: Sequence[tuple[Vector, Codes]]
) -> CardDrawer | None:
    """What draws so many records on a card, where there is one, it pays and they fit there."""
    if n * len(stages) < WORTH_A_CARD:
        return None
    card = find_card()
    n_columns = sum(len(stage.known) + len(stage.added) for stage in stages)
    tables = sum(share.nbytes + alias.nbytes for share, alias in aliases)
    if card is None or 4 * n * n_columns + tables > card.free_bytes:
        return None
    return CardDrawer(card.backend, stages, aliases)
