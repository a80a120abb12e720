"""What a mechanism hands back: answers to its workload, and everything that led to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from juncture._util.notebook import list_html
from juncture.errors import InvalidInput
from juncture.fit.summary import FitSummary
from juncture.model.model import Model
from juncture.privacy.guarantee import Guarantee
from juncture.publish.release import Release
from juncture.tables.domain import Clique
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.schema import Schema
from juncture.tables.workload import Workload


@dataclass(frozen=True, eq=False, kw_only=True)
class RunResult:
    """The end of a mechanism's run."""

    project: Callable[[Clique], Factor]
    """The estimated counts of a clique of the workload."""
    model: Model | None
    """The graphical model; None for the forms that make none."""
    measurements: Sequence[Measurement]
    fit: FitSummary | None
    """How the fit of the model ended."""
    details: Mapping[str, Any]
    """What this mechanism alone knows, such as its rounds."""
    mechanism: str
    workload: Workload
    schema: Schema | None
    guarantee: Guarantee
    """What this run cost, and nothing else that its ledger holds."""

    def answers(self, workload: Workload | None = None) -> list[Vector]:
        """The answers to every task of the workload, by default of the one that was run for."""
        return (workload or self.workload).answers(self.project)

    def release(self) -> Release:
        """What may be given away as one file, complete; only a form with a model makes one."""
        if self.model is None:
            raise InvalidInput(
                "`result` must have a model to be released as one; got a form without. Use the "
                "graphical-model form, or give away the measurements."
            )
        return Release(
            model=self.model,
            measurements=self.measurements,
            guarantee=self.guarantee,
            fit=self.fit,
            mechanism=self.mechanism,
            workload=self.workload.cliques,
            details=self.details,
            schema=self.schema,
        )

    def _repr_html_(self) -> str:
        facts = [
            ("mechanism", self.mechanism),
            ("guarantee", str(self.guarantee)),
            ("measurements", f"{len(self.measurements):,}"),
            ("fit", "none" if self.fit is None else self.fit.status.headline),
        ]
        shown = "" if self.model is None else self.model._repr_html_()
        return list_html("RunResult", facts) + shown

    def __repr__(self) -> str:
        made = "a model" if self.model is not None else "tables"
        n = len(self.measurements)
        return f"RunResult({self.mechanism}: {made} from {n} measurements, {self.guarantee})"
