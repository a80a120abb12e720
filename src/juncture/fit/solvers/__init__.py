"""Solvers: the optimisation methods that find the model that fits best.

`estimate` chooses a good one. Give another as `estimate(..., solver=Proximal())`.
"""

import typing as _typing

from juncture._util.lazy import export as _export

if _typing.TYPE_CHECKING:
    from juncture.fit.solvers.accelerated import Accelerated as Accelerated
    from juncture.fit.solvers.dual_averaging import DualAveraging as DualAveraging
    from juncture.fit.solvers.early_stopping import EarlyStopping as EarlyStopping
    from juncture.fit.solvers.interior_gradient import InteriorGradient as InteriorGradient
    from juncture.fit.solvers.lbfgs import LBFGS as LBFGS
    from juncture.fit.solvers.mirror_descent import MirrorDescent as MirrorDescent
    from juncture.fit.solvers.newton import Newton as Newton
    from juncture.fit.solvers.problem import Problem as Problem
    from juncture.fit.solvers.problem import Solver as Solver
    from juncture.fit.solvers.proximal import Proximal as Proximal
    from juncture.fit.solvers.raking import Raking as Raking
    from juncture.fit.solvers.sequential import Sequential as Sequential
    from juncture.fit.solvers.smoothed import Smoothed as Smoothed
else:
    __getattr__, __dir__, __all__ = _export(
        __name__,
        {
            "juncture.fit.solvers.accelerated": ["Accelerated"],
            "juncture.fit.solvers.dual_averaging": ["DualAveraging"],
            "juncture.fit.solvers.early_stopping": ["EarlyStopping"],
            "juncture.fit.solvers.interior_gradient": ["InteriorGradient"],
            "juncture.fit.solvers.lbfgs": ["LBFGS"],
            "juncture.fit.solvers.mirror_descent": ["MirrorDescent"],
            "juncture.fit.solvers.newton": ["Newton"],
            "juncture.fit.solvers.problem": ["Problem", "Solver"],
            "juncture.fit.solvers.proximal": ["Proximal"],
            "juncture.fit.solvers.raking": ["Raking"],
            "juncture.fit.solvers.sequential": ["Sequential"],
            "juncture.fit.solvers.smoothed": ["Smoothed"],
        },
    )
