"""The tables of a tree on a card: many questions together read them there, in its own memory.

Walks over a tree multiply and sum arrays by NumPy's protocols, which those of CuPy obey. So the
same steps run on a card where the tables lie there; only answers come back.
"""

from __future__ import annotations

from juncture.engine.gpu.card import find_card
from juncture.engine.gpu.runner import Device
from juncture.model.calibration import Calibration
from juncture.tables.layout import Vector

# A tree of fewer cells, or fewer questions, are answered before a card has the tables.
WORTH_A_CARD, MANY_QUESTIONS = 2_000_000, 16
# Tables of the tree, sums of them, and products that are being made.
_COPIES = 3


class CardTree(Calibration):
    """A tree whose tables are copied to a card when they are first read."""

    def __init__(self, tree: Calibration, card: Device) -> None:
        super().__init__(tree.plan, tree.tables, tree.potentials, tree.oracle)
        self._card, self._modules = card, card.modules
        self._placed: dict[int, Vector] = {}

    def has_room(self, size_bytes: int) -> bool:
        """Whether a walk that needs so much fits beside what is there."""
        return _COPIES * size_bytes <= self._card.free_bytes

    def marginal(self, index: int) -> Vector:
        """See `Calibration.marginal`; the table lies on the card."""
        if index not in self._placed:
            self._placed[index] = self.put(self.tables[index])
        return self._placed[index]

    def put(self, values: Vector) -> Vector:
        """See `Calibration.put`."""
        placed: Vector = self._modules.put(values)
        return placed

    def fetch(self, values: Vector) -> Vector:
        """See `Calibration.fetch`."""
        return self._modules.fetch(values)


def find_card_tree(tree: Calibration) -> CardTree | None:
    """The tree on a card, where there is one, it pays and the tables fit there."""
    if tree.plan.cells < WORTH_A_CARD:
        return None
    card = find_card()
    if card is None or _COPIES * tree.plan.kept_tree_bytes > card.free_bytes:
        return None
    return CardTree(tree, card)
