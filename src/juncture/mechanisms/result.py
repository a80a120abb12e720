"""The result of a run: answers to its workload, and everything that led to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from juncture._util.notebook import list_html
from juncture.errors import InvalidInput
from juncture.fit.selection_proof import SelectionProof
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
    """The result of a mechanism's run.

    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow as pa
    >>> from juncture import Boolean, Budget, Curator, Ledger, mechanisms, read_table
    >>> table = pa.table({"smokes": [True, False, True]})
    >>> source = read_table(table, Schema({"smokes": Boolean()}))
    >>> mechanism = mechanisms.HDMM(Budget(epsilon=1))
    >>> with TemporaryDirectory() as folder:
    ...     curator = Curator(source, Ledger.create(f"{folder}/people.ledger", Budget(epsilon=1)))
    ...     result = mechanism.run(curator, Workload.all_marginals(source.domain, 1))
    >>> result.project(("smokes",)).domain, len(result.release().measurements)
    (Domain({'smokes': 2}), 1)
    """

    project: Callable[[Clique], Factor]
    """The estimated counts of a clique of the workload."""
    model: Model | None
    """The graphical model; None for the forms that make none."""
    measurements: Sequence[Measurement]
    fit: FitSummary | None
    """How the fit of the model ended."""
    details: Mapping[str, Any]
    """Facts of this mechanism alone, such as its rounds."""
    mechanism: str
    workload: Workload
    schema: Schema | None
    guarantee: Guarantee
    """What this run cost; other events of its ledger do not count."""
    check: tuple[Measurement, ...] = ()
    """What was measured to check the model, which it is not fitted to."""
    proofs: tuple[SelectionProof, ...] = ()
    """What private choices prove of marginals that were not measured."""

    def answers(self, workload: Workload | None = None) -> list[Vector]:
        """The answers to every task of a workload, by default that of the run."""
        return (workload or self.workload).answers(self.project)

    def release(self) -> Release:
        """The complete release, which can be saved as one file; needs a model."""
        if self.model is None:
            raise InvalidInput(
                "`result` must have a model to be released; got one without. Use Estimation.MODEL "
                "or Update.MODEL, or publish the measurements."
            )
        return Release(
            model=self.model.excluding(self._special_codes(self.model)),
            measurements=self.measurements,
            guarantee=self.guarantee,
            fit=self.fit,
            mechanism=self.mechanism,
            workload=self.workload.cliques,
            details=self.details,
            check=self.check,
            proofs=self.proofs,
            schema=self._likely_schema(self.model),
        )

    def _likely_schema(self, model: Model) -> Schema | None:
        """The schema, with numbers spread in their bins as counts suggest: post-processing."""
        if self.schema is None:
            return None
        noise = [float(np.median(each.stddev)) for each in self.measurements]
        floor = 2.0 * float(np.median(noise)) if noise else 1.0
        columns = {
            name: column
            if name in model.unmeasured
            else column.with_likely_spread(model.one_way(name), floor)
            for name, column in self.schema.columns.items()
        }
        return replace(self.schema, columns=columns)

    def _special_codes(self, model: Model) -> dict[str, range]:
        """The codes for missing and outside values of columns that were not measured."""
        columns = {} if self.schema is None else self.schema.columns
        return {
            name: range(columns[name].n_regular, columns[name].coding.size)
            for name in model.unmeasured
            if name in columns and columns[name].n_regular < columns[name].coding.size
        }

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
