"""Marginal inference: from cliques to a plan, from a plan to marginals."""

import typing as _typing

from juncture._util.lazy import export as _export

if _typing.TYPE_CHECKING:
    from juncture.engine.oracle import Oracle as Oracle
    from juncture.engine.oracle import OracleFactory as OracleFactory
    from juncture.engine.particles import Particles as Particles
    from juncture.engine.plan import Plan as Plan
    from juncture.engine.propagation import Propagation as Propagation
else:
    __getattr__, __dir__, __all__ = _export(
        __name__,
        {
            "juncture.engine.oracle": ["Oracle", "OracleFactory"],
            "juncture.engine.particles": ["Particles"],
            "juncture.engine.plan": ["Plan"],
            "juncture.engine.propagation": ["Propagation"],
        },
    )
