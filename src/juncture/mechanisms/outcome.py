"""What a mechanism hands back: answers to its workload, and everything that led to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from juncture.errors import InvalidInput
from juncture.model.model import Model
from juncture.publish.release import Release
from juncture.tables.domain import Clique
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.schema import Schema
from juncture.tables.workload import Workload

if TYPE_CHECKING:  # only read from: events are written by the curator
    from juncture.privacy.ledger import Ledger


@dataclass(frozen=True, eq=False)
class Outcome:
    """The end of a mechanism's run."""

    project: Callable[[Clique], Factor]
    """The estimated counts of a clique of the workload."""
    model: Model | None = None
    measurements: Sequence[Measurement] = ()
    ledger: Sequence[Mapping[str, Any]] = ()
    """The events that this run has added to the ledger."""
    statistics: Mapping[str, Any] = field(default_factory=dict)

    def answers(self, workload: Workload) -> list[Vector]:
        """The answers to every task."""
        return workload.answers(self.project)

    def release(self) -> Release:
        """What may be given away as one file: only a form with a model makes one."""
        if self.model is None:
            raise InvalidInput(
                "`outcome` must have a model to be released as one; got a form without. Use the "
                "graphical-model form, or give away the measurements."
            )
        return Release(
            model=self.model, measurements=self.measurements, ledger=self.ledger,
            statistics=self.statistics,
        )  # fmt: skip

    def described_release(
        self, mechanism: str, workload: Workload, ledger: Ledger, schema: Schema
    ) -> Release:
        """The release with all that a reader may ask: by what it was made, for what, under what."""
        made = self.release()
        about = {
            "mechanism": mechanism,
            "workload": [", ".join(clique) for clique in workload.cliques],
            "budget": str(ledger.budget),
            "spent": ledger.spent,
            "neighbours": str(ledger.neighbours),
        }
        return Release(
            model=made.model, measurements=made.measurements, ledger=ledger.events,
            statistics={**made.statistics, **about}, schema=schema,
        )  # fmt: skip
