"""Compiled: how likely the draws of one round of DualQuery were."""

from __future__ import annotations

from juncture.engine.compiled.elementwise import FAST, U, flushed_exp, inner


@inner(fastmath=FAST)
def weigh_round(answers, before, slope, work, result, eta, n_before, weight):
    """Add a round's probabilities of queries, less those of complements, to `slope`.

    The exponents of queries are eta times (n_before times answers, less before), those of
    complements the same with the other sign. `result` receives the largest exponent, and the sum of
    all exponentials relative to it.
    """
    n = len(answers)
    for i in range(U(n)):
        work[i] = eta * (n_before * answers[i] - before[i])
    peak = 0.0
    for i in range(U(n)):
        peak = max(peak, abs(work[i]))
    whole = 0.0
    for i in range(U(n)):
        up, down = flushed_exp(work[i] - peak), flushed_exp(-work[i] - peak)
        whole += up + down
        work[i] = up - down
    share = weight / whole
    for i in range(U(n)):
        slope[i] += share * work[i]
    result[0] = peak
    result[1] = whole
