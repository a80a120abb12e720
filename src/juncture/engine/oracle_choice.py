"""Which oracle a fit takes: exact message passing where the tree fits, records elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from juncture.engine.oracle import OracleFactory, build_plan
from juncture.engine.oracle_names import OracleName
from juncture.engine.particles import Particles
from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.errors import InvalidInput, ModelTooLarge
from juncture.tables.domain import Clique, Domain


def choose_oracle(
    oracle: OracleFactory | str, domain: Domain, cliques: Iterable[Clique], plan: Plan | None = None
) -> tuple[OracleFactory, Plan]:
    """The factory that is meant, and the plan for its oracle; a plan given decides for itself."""
    if not isinstance(oracle, str):
        return oracle, plan or build_plan(oracle, domain, cliques)
    try:
        name = OracleName(oracle)
    except ValueError:
        raise InvalidInput(
            f"`oracle` must be {', '.join(OracleName)}, or a function of a plan; got {oracle!r}."
        ) from None
    if plan is not None:
        exact = plan.has_tree and name is not OracleName.RECORDS
        return (Propagation if exact else Particles()), plan
    if name is OracleName.RECORDS:
        return Particles(), Particles().build_plan(domain, cliques)
    asked = list(cliques)
    try:
        return Propagation, Plan.build(domain, asked)
    except ModelTooLarge:
        if name is OracleName.EXACT:
            raise
        return Particles(), Particles().build_plan(domain, asked)
