"""A run with a check: some of the budget goes to questions that the model is not fitted to.

Privacy. The check is a measurement like any other: it goes through the curator, is paid for from
the same ledger, and is an event of its own there. A share s of the whole price p pays for it, and
the mechanism gets a budget whose price is (1 - s) p: both notions of price add up under composition
(epsilon of pure events, rho of zCDP), so the run costs at most p. What is checked is drawn from the
domain and from what was measured, which are public, by a hash of the noisy answers: a release that
is resumed asks for the same check again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from juncture._util.watch import Watch
from juncture.errors import InvalidInput
from juncture.fit.check import N_TABLES, check_share, draw_check
from juncture.mechanisms.mechanism import Findings, Mechanism, Run
from juncture.mechanisms.registry import prepare
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.price import Price
from juncture.privacy.request import Request
from juncture.tables.workload import Workload

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator


def split_budget(budget: Budget, share: float) -> tuple[Budget, Price]:
    """What is left of a budget, and the price of a check for a share of it.

    >>> split_budget(Budget(epsilon=1.0), 0.25)
    (Budget(epsilon=0.75, delta=None, rho=None), Pure(0.25))
    """
    share = check_share(share)
    whole = budget.price
    left = whole.share(1.0 - share)
    rest = Budget(epsilon=left.amount) if whole.unit == "epsilon" else Budget(rho=left.amount)
    return rest, whole.share(share)


def prepare_checked(
    mechanism: str | Mechanism,
    budget: Budget,
    share: float,
    workload: Workload,
    neighbours: Neighbours,
    n_records: int | None = None,
) -> Run:
    """The run of a mechanism with a check, for a budget that pays for both."""
    rest, price = split_budget(budget, share)
    run = prepare(_with_budget(mechanism, budget, rest), rest, workload, neighbours, n_records)
    each = price.share(1.0 / N_TABLES)
    check = ("check", f"a coarse table that the model is not fitted to, for {each}")
    return replace(
        run,
        budget=budget,
        costs=(*run.costs, *[each.cost] * N_TABLES),
        execute=_CheckedExecution(run.execute, each),
        facts=(*run.facts, check),
    )


def _with_budget(mechanism: str | Mechanism, budget: Budget, rest: Budget) -> str | Mechanism:
    if isinstance(mechanism, str):
        return mechanism
    if mechanism.budget != budget:
        raise InvalidInput(
            f"`mechanism` must have the budget of the release ({budget}); got {mechanism.budget}."
        )
    made: Any = mechanism
    return replace(made, budget=rest)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class _CheckedExecution:
    """The work of a mechanism, then the check."""

    execute: Callable[[Curator, Watch], Findings]
    price: Price

    def __call__(self, curator: Curator, watch: Watch) -> Findings:
        found = self.execute(curator, watch)
        cliques = [each.clique for each in found.measurements]
        drawn = draw_check(curator.domain, cliques, _make_generator(found))
        requests = [Request(clique, self.price, query, purpose="check") for clique, query in drawn]
        return replace(found, check=tuple(curator.measure_all(requests)))


def _make_generator(found: Findings) -> np.random.Generator:
    """Random numbers that depend on what was measured, and on nothing else."""
    digest = hashlib.sha256(b"check")
    for each in found.measurements:
        digest.update(np.ascontiguousarray(each.values).tobytes())
    return np.random.default_rng(int.from_bytes(digest.digest()[:16], "big"))
