"""Which oracle a fit takes: exact message passing where the tree fits and is fast, or records."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from juncture.engine.gpu.card import Card, find_card
from juncture.engine.gpu.propagation import GpuPropagation
from juncture.engine.gpu.runner import Device
from juncture.engine.oracle import OracleFactory, build_plan
from juncture.engine.oracle_names import OracleName
from juncture.engine.particles import Particles
from juncture.engine.plan import Plan
from juncture.engine.plan_text import format_bytes
from juncture.engine.predicted_time import PredictedTime, format_seconds, predict_time
from juncture.engine.propagation import Propagation
from juncture.errors import InvalidInput, ModelTooLarge
from juncture.tables.domain import Clique, Domain

# A card is looked for where an exact fit would take so many seconds of one processor.
_WORTH_A_CARD = 5.0
# The vectors of a solver, its loss and its best point: potentials, marginals, slopes, averages.
_SOLVER_VECTORS = 16


class Reason(StrEnum):
    """Why an oracle was chosen."""

    ASKED = "asked for"
    FITS = "the tree fits into memory"
    TOO_LARGE = "the tree is too large for memory"
    TOO_SLOW = "exact fits would be slow"
    CARD_PAYS = "the tree is large enough for the card"
    CARD_TOO_SMALL = "the card's memory is too small"


@dataclass(frozen=True)
class OracleChoice:
    """The oracle of a fit, why it is the one, and how long a fit will take."""

    factory: OracleFactory
    plan: Plan
    reason: Reason
    time: PredictedTime
    needed: str = ""
    """The memory that the tree would need beside what there is, where it is too large."""

    @property
    def name(self) -> str:
        """The oracle's name: "exact" or "records", or that of its class or function."""
        if self.factory is Propagation:
            return OracleName.EXACT.value
        if self.factory is GpuPropagation:
            return OracleName.GPU.value
        if isinstance(self.factory, Particles):
            return OracleName.RECORDS.value
        return str(getattr(self.factory, "__name__", type(self.factory).__name__))

    @property
    def seconds(self) -> float | None:
        """How long a fit will take on one processor, where it is known."""
        if self.name == OracleName.RECORDS:
            return self.time.records
        return self.time.exact if self.name == OracleName.EXACT else None

    def with_records(self, n_records: int) -> OracleChoice:
        """The choice with so many records, where it takes records and has no number of its own."""
        factory = self.factory
        if not isinstance(factory, Particles) or factory.n_records is not None:
            return self
        return replace(self, factory=replace(factory, n_records=n_records))

    def __str__(self) -> str:
        """Which oracle, why, and what a fit costs, in a sentence or two."""
        by_records = format_seconds(self.time.records)
        exact = "" if self.time.exact is None else format_seconds(self.time.exact)
        match self.reason, self.seconds:
            case Reason.CARD_PAYS, _:
                return "Oracle: exact, on the card, because the junction tree is large."
            case _, None:
                return f"Oracle: {self.name}, as asked for."
            case Reason.CARD_TOO_SMALL, _:
                why = f"Oracle: exact, on the processor, because a fit would need {self.needed}."
            case Reason.TOO_LARGE, _:
                why = f"Oracle: records, because a junction tree would need {self.needed}."
            case Reason.TOO_SLOW, _:
                return (
                    "Oracle: records, because an exact fit would take "
                    f"{exact} of one processor, and one with records {by_records}."
                )
            case Reason.FITS, _:
                why = "Oracle: exact, because the junction tree fits into memory."
            case _:
                why = f"Oracle: {self.name}."
        seconds = by_records if self.name == OracleName.RECORDS else exact
        return f"{why} A fit takes {seconds} of one processor."


def choose_oracle(
    oracle: OracleFactory | str, domain: Domain, cliques: Iterable[Clique],
    plan: Plan | None = None, *, max_tree_cells: int | None = None,
) -> OracleChoice:  # fmt: skip
    """The oracle that is meant, with the plan for it; a plan given decides for itself.

    - `max_tree_cells`: "auto" means records where the tree would have more cells.
    """
    if not isinstance(oracle, str):
        return _choose(oracle, plan or build_plan(oracle, domain, cliques))
    name = _parse_name(oracle)
    if plan is not None:
        return _choose_for_plan(name, plan)
    if name is OracleName.AUTO:
        return _choose_by_cost(domain, list(cliques), max_tree_cells)
    if name is OracleName.RECORDS:
        return _choose_records(domain, list(cliques))
    return _choose_for_plan(name, Plan.build(domain, cliques))


def _choose_for_plan(name: OracleName, plan: Plan) -> OracleChoice:
    if not plan.has_tree or name is OracleName.RECORDS:
        return _choose(Particles(), plan)
    return _choose_card(plan, Card()) if name is OracleName.GPU else _choose(Propagation, plan)


def needs_tree(oracle: OracleFactory | str) -> bool:
    """Whether the model of an oracle must have a small tree; refuses a name that is none.

    >>> needs_tree("exact"), needs_tree("auto"), needs_tree(Particles())
    (True, False, False)
    """
    if isinstance(oracle, str):
        return _parse_name(oracle) in (OracleName.EXACT, OracleName.CPU, OracleName.GPU)
    return not isinstance(oracle, Particles)


def _parse_name(name: str) -> OracleName:
    try:
        return OracleName(name)
    except ValueError:
        raise InvalidInput(
            f"`oracle` must be {', '.join(OracleName)}, or a function of a plan; got {name!r}."
        ) from None


def _choose_by_cost(domain: Domain, cliques: list[Clique], max_cells: int | None) -> OracleChoice:
    """Exact where the tree fits and is not far slower than records."""
    try:
        plan = Plan.build(domain, cliques)
    except ModelTooLarge as error:
        needed = f"{error.needed}, beside {error.limit} of memory" if error.needed else "too much"
        return _choose_records(domain, cliques, Reason.TOO_LARGE, needed=needed)
    if max_cells is not None and plan.cells > max_cells:
        needed = f"{plan.cells:,} cells, beside a limit of {max_cells:,}"
        return _choose_records(domain, cliques, Reason.TOO_LARGE, needed=needed)
    time = predict_time(plan)
    card = find_card() if (time.exact or 0.0) > _WORTH_A_CARD else None
    if card is not None and count_card_bytes(plan) <= card.free_bytes:
        return _choose(GpuPropagation, plan, Reason.CARD_PAYS)
    if time.is_exact_slow:
        return _choose_records(domain, cliques, Reason.TOO_SLOW, time)
    return _choose(Propagation, plan, Reason.FITS)


def count_card_bytes(plan: Plan) -> int:
    """The memory that a fit takes on a card: that of a call, and the vectors of a solver."""
    cells = plan.layout.size
    return plan.size_bytes + 8 * _SOLVER_VECTORS * cells


def _choose_card(plan: Plan, card: Device) -> OracleChoice:
    """The card, or the processor with a word where its memory is too small."""
    needed = count_card_bytes(plan)
    if needed <= card.free_bytes:
        return _choose(GpuPropagation, plan)
    words = f"{format_bytes(needed)}, beside {format_bytes(card.free_bytes)} on the card"
    warnings.warn(
        f"The fit runs on the processor: on the card it would need {words}.", stacklevel=4
    )
    return replace(_choose(Propagation, plan, Reason.CARD_TOO_SMALL), needed=words)


def _choose(factory: OracleFactory, plan: Plan, reason: Reason = Reason.ASKED) -> OracleChoice:
    n_records = factory.n_records if isinstance(factory, Particles) else None
    return OracleChoice(factory, plan, reason, predict_time(plan, n_records))


def _choose_records(
    domain: Domain, cliques: list[Clique], reason: Reason = Reason.ASKED,
    time: PredictedTime | None = None, needed: str = "",
) -> OracleChoice:  # fmt: skip
    plan = Particles().build_plan(domain, cliques)
    return OracleChoice(Particles(), plan, reason, time or predict_time(plan), needed)
