"""Which method a fit takes when none is asked for.

A first-order method is fast where it works, and says so itself: it ends certified. Where it does
not, Newton's method goes on, if the model is small enough for it. How long the first may try
follows from what the second would take: about as much, so that the sum is never much more than
twice the better of the two.
"""

from __future__ import annotations

from juncture.engine.gpu.propagation import GpuPropagation
from juncture.engine.particles import RecordOracle
from juncture.fit.loss import FitLoss
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.mirror_descent import MirrorDescent
from juncture.fit.solvers.newton import Newton, predict_work
from juncture.fit.solvers.problem import Problem, Solver
from juncture.fit.solvers.proximal import Proximal
from juncture.fit.solvers.raking import Raking
from juncture.fit.solvers.sequential import Sequential
from juncture.fit.solvers.smoothed import Smoothed

# The operations of one Newton step, of about as many as a fit takes, up to which it is tried.
_MAX_WORK, _NEWTON_STEPS = 1e9, 50
# What a Newton step and an oracle call cost beside their arithmetic, in operations.
_STEP_OVERHEAD, _CALL_OVERHEAD = 1e6, 1e5
# The first method's calls: at least so many, and at most this share of those allowed. Where that
# leaves too few for both, there is only the first.
_MIN_CALLS, _MAX_SHARE = 300, 0.3


def default_solver(problem: Problem, tolerance: float) -> Solver:
    """The solver for a problem: fast where that is enough, exact where the model is small."""
    if isinstance(problem.oracle, RecordOracle):
        plain = isinstance(problem.loss, FitLoss)
        return Raking(tolerance=tolerance) if plain else MirrorDescent()
    first = Accelerated() if problem.loss.is_smooth else Smoothed()
    if isinstance(problem.oracle, GpuPropagation):
        return first  # the others keep their vectors on the processor
    work = predict_work(problem)
    if work <= _MAX_WORK and _MAX_SHARE * problem.calls_left >= _MIN_CALLS:
        calls = _fair_calls(problem, work)
        return Sequential(first, Newton(), progress=tolerance, max_first_calls=calls)
    return first if problem.loss.is_smooth else Sequential(first, Proximal(), progress=tolerance)


def _fair_calls(problem: Problem, work: float) -> int:
    """How many oracle calls cost as much as Newton's method will."""
    newton = _NEWTON_STEPS * (work + _STEP_OVERHEAD)
    calls = newton / (problem.oracle.plan.operations + _CALL_OVERHEAD)
    return int(min(max(calls, _MIN_CALLS), _MAX_SHARE * problem.calls_left))
