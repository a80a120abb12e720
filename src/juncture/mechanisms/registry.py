"""The mechanisms by name: what the command line offers, explains and runs.

A mechanism of another package is offered too, once it is registered:

    register("mine", MyMechanism, "measures what I like")

A mechanism is imported only when it is used, so that help is instant.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from juncture.errors import InvalidInput, ModelTooLarge

if TYPE_CHECKING:
    from juncture.mechanisms.mechanism import Mechanism, Run
    from juncture.privacy.accounting import Neighbours
    from juncture.privacy.budget import Budget
    from juncture.tables.workload import Workload


# What may be taken where nothing is chosen, the usual one first: for counts where Gaussian noise
# may be used, for counts where it may not, and for other queries.
_GAUSSIAN_DEFAULTS = ("tiers", "aim", "hdmm", "residual")
_PURE_DEFAULTS = ("hdmm", "mwem", "tiers", "aim")
_QUERY_DEFAULTS = ("hdmm", "mwem")
# Above so many tasks, the plan of this one takes seconds.
_SLOW_TO_PLAN, _MAX_PLANNED = "residual", 300


class Offer(NamedTuple):
    """A mechanism that is offered by name."""

    make: Callable[[Budget], Mechanism]
    """The mechanism with its usual options, for a budget."""
    summary: str
    """What it does, in one line of help."""


def _import(module: str, name: str) -> Callable[[Budget], Mechanism]:
    """A function that imports a class of this package when it is called."""

    def make(budget: Budget) -> Mechanism:
        made: Mechanism = getattr(import_module(f"juncture.mechanisms.{module}"), name)(budget)
        return made

    return make


_OFFERS = {
    "hdmm": Offer(
        _import("hdmm", "HDMM"), "measures everything asked for; errors are known beforehand"
    ),
    "tiers": Offer(
        _import("tiers", "Tiers"),
        "measures each column, the pairs that depend, and triples that pairs do not explain",
    ),
    "mwem": Offer(
        _import("mwem", "MWEM"),
        "measures each column, then, round by round, what the model gets most wrong",
    ),
    "aim": Offer(
        _import("aim", "AIM"),
        "measures each column, then what the model gets most wrong, with ever less noise",
    ),
    "mst": Offer(
        _import("mst", "MST"), "measures each column, and a tree of pairs that it chooses"
    ),
    "residual": Offer(
        _import("residual_planner", "ResidualPlanner"),
        "measures everything asked for with the best noise; errors are known beforehand",
    ),
    "privbayes": Offer(
        _import("privbayes", "PrivBayes"),
        "measures one table for each column with the columns that it depends on",
    ),
    "dualquery": Offer(
        _import("dual_query", "DualQuery"),
        "measures nothing; draws queries and fits the model to the draws",
    ),
    "direct": Offer(_import("baselines", "Direct"), "measures every marginal asked for, once"),
    "independent": Offer(_import("baselines", "Independent"), "measures single columns only"),
}


def register(name: str, make: Callable[[Budget], Mechanism], summary: str) -> None:
    """Offer a mechanism under a name to `jn.release`, `juncture release` and `juncture plan`.

    - `make`: gives the mechanism for a budget, with its usual options.
    - `summary`: one line of help.

    >>> from juncture import Budget
    >>> from juncture.mechanisms import MWEM
    >>> register("short", lambda budget: MWEM(budget, rounds=3), "mwem with three rounds")
    >>> make_mechanism("short", Budget(epsilon=1)).rounds
    3
    >>> _ = _OFFERS.pop("short")  # an example must not change the commands' help
    """
    if name in _OFFERS:
        raise InvalidInput(f"`name` must be one that no mechanism has yet; got {name!r}.")
    _OFFERS[name] = Offer(make, summary)


def offers() -> dict[str, Offer]:
    """All mechanisms by name, in the order that help lists them."""
    return dict(_OFFERS)


def make_mechanism(name: str, budget: Budget) -> Mechanism:
    """The mechanism with that name and its usual options."""
    if name not in _OFFERS:
        raise InvalidInput(f"`mechanism` must be one of {', '.join(_OFFERS)}; got {name!r}.")
    return _OFFERS[name].make(budget)


def _explain(error: ModelTooLarge, mechanism: str, workload: Workload) -> ModelTooLarge:
    """The error in terms of what was asked for, and of what can be asked for instead."""
    if not error.needed:
        return error
    n_sets = len(set(workload.cliques))
    others = " and ".join(name for name in ("mwem", "privbayes") if name != mechanism)
    return ModelTooLarge(
        f"`mechanism` must be one that can serve {n_sets:,} sets of columns; got {mechanism}, "
        f"whose model of all of them needs {error.needed}, beside {error.limit} of memory. Take "
        f"another ({others} measure only what matters most), or ask for fewer sets of columns.",
        needed=error.needed,
        limit=error.limit,
    )


def default_mechanisms(budget: Budget, workload: Workload) -> tuple[str, ...]:
    """What may be taken where nothing is chosen, the usual one first.

    A budget with a delta, or a rho, allows Gaussian noise: then the usual one is tiers for a
    workload of counts. For a pure epsilon, and for other queries than counts, it is hdmm, or mwem
    where a model of the whole workload would be too large. `workflow.default_choice` takes another
    where it is expected to be clearly better.

    >>> from juncture import Budget, Domain, Workload
    >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2}), 2)
    >>> default_mechanisms(Budget(epsilon=1, delta=1e-6), workload)
    ('tiers', 'aim', 'hdmm', 'residual')
    >>> default_mechanisms(Budget(epsilon=1), workload)
    ('hdmm', 'mwem', 'tiers', 'aim')
    """
    if not workload.asks_for_counts:
        return _QUERY_DEFAULTS
    names = _GAUSSIAN_DEFAULTS if budget.price.norm == 2 else _PURE_DEFAULTS
    many = len(workload.tasks) > _MAX_PLANNED
    return tuple(name for name in names if not (many and name == _SLOW_TO_PLAN))


def prepare(
    mechanism: str | Mechanism,
    budget: Budget,
    workload: Workload,
    neighbours: Neighbours,
    n_records: int | None = None,
) -> Run:
    """Prepare a mechanism, or the one with that name."""
    if isinstance(mechanism, str):
        named = make_mechanism(mechanism, budget)
        try:
            return named.prepare(workload, neighbours, n_records)
        except ModelTooLarge as error:
            raise _explain(error, mechanism, workload) from None
    if mechanism.budget != budget:
        raise InvalidInput(
            f"`mechanism` must have the budget of the release ({budget}); got {mechanism.budget}."
        )
    return mechanism.prepare(workload, neighbours, n_records)
