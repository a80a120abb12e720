"""Ways to decide what to measure under a budget.

>>> from juncture import Budget, mechanisms
>>> mechanisms.MWEM(Budget(epsilon=1), rounds=10).name
'mwem'
"""

import typing as _typing

from juncture._util.lazy import export as _export

if _typing.TYPE_CHECKING:
    from juncture.mechanisms.aim import AIM as AIM
    from juncture.mechanisms.baselines import Direct as Direct
    from juncture.mechanisms.baselines import Independent as Independent
    from juncture.mechanisms.dual_query import DualQuery as DualQuery
    from juncture.mechanisms.hdmm import HDMM as HDMM
    from juncture.mechanisms.mechanism import Assignment as Assignment
    from juncture.mechanisms.mechanism import Findings as Findings
    from juncture.mechanisms.mechanism import MarginalForecast as MarginalForecast
    from juncture.mechanisms.mechanism import Mechanism as Mechanism
    from juncture.mechanisms.mechanism import Outline as Outline
    from juncture.mechanisms.mechanism import Run as Run
    from juncture.mechanisms.mst import MST as MST
    from juncture.mechanisms.mwem import MWEM as MWEM
    from juncture.mechanisms.privbayes import PrivBayes as PrivBayes
    from juncture.mechanisms.registry import register as register
    from juncture.mechanisms.residual_planner import ResidualPlanner as ResidualPlanner
    from juncture.mechanisms.result import RunResult as RunResult
    from juncture.mechanisms.tiers import Tiers as Tiers
else:
    __getattr__, __dir__, __all__ = _export(
        __name__,
        {
            "juncture.mechanisms.aim": ["AIM"],
            "juncture.mechanisms.baselines": ["Direct", "Independent"],
            "juncture.mechanisms.dual_query": ["DualQuery"],
            "juncture.mechanisms.hdmm": ["HDMM"],
            "juncture.mechanisms.mechanism": [
                "Assignment",
                "Findings",
                "MarginalForecast",
                "Mechanism",
                "Outline",
                "Run",
            ],
            "juncture.mechanisms.mst": ["MST"],
            "juncture.mechanisms.mwem": ["MWEM"],
            "juncture.mechanisms.privbayes": ["PrivBayes"],
            "juncture.mechanisms.registry": ["register"],
            "juncture.mechanisms.residual_planner": ["ResidualPlanner"],
            "juncture.mechanisms.result": ["RunResult"],
            "juncture.mechanisms.tiers": ["Tiers"],
        },
    )
