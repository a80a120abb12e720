"""What a marginal oracle is: potentials on the measured cliques in, their marginals out.

A fit and a model know their oracle by this protocol alone, and make it with a factory that they
are given: `Propagation` is one, and so is any other callable that takes a plan. An oracle need not
be exact. One that estimates its marginals, say from weighted records, sets `is_exact` to False and
states with every answer how far off it may be; no certificate is then claimed from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from juncture.engine.plan import Plan
from juncture.errors import ImpossibleModel, InvalidInput, JunctureError
from juncture.tables.domain import Domain
from juncture.tables.layout import Layout, Vector

IMPOSSIBLE_MESSAGE = (
    "`potentials` must leave at least one record possible; got minus infinity for every one. "
    "Remove a structural zero: together they contradict each other."
)
# The members of `Oracle`, so that an error can say what is missing.
_MEMBERS = ("plan", "layout", "is_exact", "marginals", "maximum")


class Beliefs(NamedTuple):
    """The marginals of all measured cliques, scaled to the total, and log Z."""

    marginals: Vector
    log_partition: float
    error: float = 0.0
    """How far a marginal may be off, by the oracle's own estimate, as a share of the total."""


class Peak(NamedTuple):
    """The most probable record, as a code per attribute, and its sum of potentials."""

    record: dict[str, int]
    score: float


class Call(NamedTuple):
    """The arguments of `Oracle.marginals` after they have been checked."""

    potentials: Vector
    total: float
    out: Vector


class Oracle(Protocol):
    """What computes marginals: potentials on the measured cliques in, their marginals out.

    Potentials are logarithms, one flat vector in the order of `layout`; the model gives a
    record the probability exp(sum of its potentials - log_partition). Minus infinity excludes
    a cell. `Propagation` is the usual oracle. To compute marginals in another way, write a class
    with these members, and give it, or a function that makes it, to `estimate` or `load`:

    >>> from juncture import Domain, Measurement, estimate
    >>> from juncture.engine import Propagation
    >>> def make_slow_oracle(plan):
    ...     return Propagation(plan, threads=1)
    >>> counts = Measurement(("a",), [3.0, 1.0], stddev=1.0)
    >>> fit = estimate(Domain({"a": 2}), [counts], oracle=make_slow_oracle)
    >>> fit.model.project(("a",)).values.round(2)
    array([3., 1.])
    """

    @property
    def plan(self) -> Plan:
        """The plan that the oracle was made for."""

    @property
    def layout(self) -> Layout:
        """Where each clique's table lies in a vector."""

    @property
    def is_exact(self) -> bool:
        """Whether answers are right up to rounding; certificates need an exact oracle."""

    def marginals(
        self, potentials: Vector, total: float = 1.0, *, out: Vector | None = None
    ) -> Beliefs:
        """Marginals that sum to the total, and the log-partition function.

        `out` receives the marginals when given; it must not overlap `potentials`.
        """

    def maximum(self, potentials: Vector) -> Peak:
        """The record with the largest sum of potentials."""


OracleFactory = Callable[[Plan], Oracle]
"""What makes the oracle of a plan: a class such as `Propagation`, or a function returning one."""


@runtime_checkable
class PlanBuilder(Protocol):
    """A factory with its own way of planning, because its oracles do not walk the whole tree."""

    def build_plan(self, domain: Domain, cliques: Iterable[Iterable[str]]) -> Plan:
        """The plan that an oracle of this factory needs for the cliques."""


def build_plan(factory: OracleFactory, domain: Domain, cliques: Iterable[Iterable[str]]) -> Plan:
    """The plan for an oracle of the factory.

    By default this is `Plan.build`, which refuses a junction tree that does not fit into memory,
    as exact message passing requires. A factory whose oracles get by without the tree has a method
    `build_plan(domain, cliques)`, which is asked instead.
    """
    # Not isinstance with the protocol, which takes a tenth of the time of a small plan.
    own: Callable[..., Plan] = getattr(factory, "build_plan", Plan.build)
    return own(domain, cliques)


class TreeMaker(Protocol):
    """A factory that gives the tables of all maximal cliques without measuring each of them."""

    def node_marginals(self, plan: Plan, potentials: Vector) -> list[Vector]:
        """The probabilities of every maximal clique's cells, in the order of `plan.nodes`."""


def find_node_marginals(factory: OracleFactory, plan: Plan, potentials: Vector) -> list[Vector]:
    """The probabilities of every maximal clique's cells, in the order of `plan.nodes`.

    A factory with a method `node_marginals(plan, potentials)` is asked for them. By default, the
    maximal cliques are measured: potentials of zero on them, which change no probability, and one
    call of an oracle of the plan that has them.
    """
    own = getattr(factory, "node_marginals", None)
    if own is not None:
        tables: list[Vector] = own(plan, potentials)
        return tables
    oracle = make_oracle(factory, plan.with_maximal_cliques)
    start = np.concatenate([potentials, np.zeros(oracle.layout.size - len(potentials))])
    marginals = oracle.marginals(start).marginals
    return [oracle.layout.view(marginals, node.clique) for node in plan.nodes]


def predict_tree_bytes(factory: OracleFactory, plan: Plan) -> int:
    """The memory that `find_node_marginals` needs at most."""
    # As above, not isinstance with a protocol: it is asked before every answer.
    if hasattr(factory, "node_marginals") or plan.measures_all_nodes:
        return plan.tree_bytes
    return plan.with_maximal_cliques.size_bytes


def make_oracle(factory: OracleFactory, plan: Plan) -> Oracle:
    """The oracle that the factory makes for the plan, or a clear error if it is not one."""
    if not callable(factory) or not _takes_plan(factory):
        raise InvalidInput(
            f"`oracle` must be callable with a plan alone; got {factory!r}. "
            "Give a class such as Propagation, or wrap it in a function of the plan."
        )
    oracle = factory(plan)
    missing = [name for name in _MEMBERS if not hasattr(oracle, name)]
    if missing:
        raise InvalidInput(
            f"`oracle` must make objects with {', '.join(_MEMBERS)}; got a "
            f"{type(oracle).__name__} without {', '.join(missing)}."
        )
    if oracle.layout.cliques != plan.cliques:
        raise InvalidInput(
            "`oracle` must keep the cliques of its plan and their order; got a layout of others. "
            "Make it with Layout(plan.domain, plan.cliques)."
        )
    return oracle


def _takes_plan(factory: OracleFactory) -> bool:
    """Whether the factory can be called with a plan; checked first, so that no error is hidden."""
    return _class_takes_one(factory) if isinstance(factory, type) else _takes_one(factory)


def _takes_one(function: Callable[..., object]) -> bool:
    """Whether the function can be called with one argument."""
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # some compiled callables have no signature
        return True
    return True


# Reading a signature takes as long as a call on a small model; classes are few and have a hash.
_class_takes_one = lru_cache(maxsize=16)(_takes_one)


def refuse_potentials(potentials: Vector) -> JunctureError:
    """The error for potentials that have no log-partition function."""
    return find_invalid(potentials) or ImpossibleModel(IMPOSSIBLE_MESSAGE)


def find_invalid(potentials: Vector) -> InvalidInput | None:
    """The error for potentials of not-a-number or plus infinity, if there are any."""
    if not (np.isnan(potentials).any() or np.isposinf(potentials).any()):
        return None
    return InvalidInput(
        "`potentials` must be finite or minus infinity; got not-a-number or plus infinity. "
        "Look at the step size or the loss that produced them."
    )


def check_call(layout: Layout, potentials: Vector, total: float, out: Vector | None) -> Call:
    """The arguments of `Oracle.marginals`, or a clear error."""
    vector = layout.as_vector(potentials)
    if not 0.0 < total < np.inf:
        raise InvalidInput(
            f"`total` must be positive and finite; got {total}. "
            "Give the number of records that the marginals add up to."
        )
    if out is None:
        return Call(vector, float(total), np.empty(layout.size))
    if layout.as_vector(out) is not out or np.may_share_memory(out, vector):
        raise InvalidInput(
            "`out` must be a writable, contiguous float64 array that does not overlap "
            "`potentials`; got another kind. Make it with numpy.empty(layout.size)."
        )
    return Call(vector, float(total), out)
