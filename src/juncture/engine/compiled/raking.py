"""Compiled: the counts of one clique that balance its measurements and what all others imply."""

from __future__ import annotations

import math

from juncture.engine.compiled.elementwise import U, inner

_MAX_STEPS = 100
_PRECISION = 1e-10


@inner()
def _omega(a):
    """The z with z + log z = a, Wright's omega function."""
    if a < -30.0:
        return math.exp(a)
    if a > 1.0:
        z = a - math.log(a)
    elif a > 0.0:
        z = 0.567 + 0.36 * a
    else:
        z = math.exp(a)
        z = z / (1.0 + z)
    for _ in range(20):
        rest = z + math.log(z) - a
        step = rest / (1.0 + z)
        z = z * math.exp(-step)
        if abs(rest) < 1e-13 * max(1.0, abs(a)):
            break
    return z


@inner()
def _imply(base, centre, pull, shift, out, sums):
    """The counts at a shift of all logarithms; `sums` gets their sum and its derivative."""
    whole, slope = 0.0, 0.0
    for k in range(U(len(base))):
        count = 0.0
        if base[k] > 0.0:
            if pull[k] > 0.0:
                z = _omega(math.log(base[k] * pull[k]) + pull[k] * centre[k] - shift)
                count = z / pull[k]
                slope += count / (1.0 + z)
            else:
                count = base[k] * math.exp(min(700.0, -shift))
                slope += count
        out[k] = count
        whole += count
    sums[0] = whole
    sums[1] = slope


@inner()
def balance_clique(base, centre, pull, total, out, sums):
    """The counts n of a total with the least pull * (n - centre)**2 / 2 + n * log(n / base).

    They satisfy pull * (n - centre) + log(n / base) = -shift; the shift is returned. The sum of the
    counts falls with the shift and is convex in it, so Newton's steps are safe from its left.
    """
    shift, low, high = 0.0, -1e300, 1e300
    for _ in range(_MAX_STEPS):
        _imply(base, centre, pull, shift, out, sums)
        rest = sums[0] - total
        if abs(rest) <= _PRECISION * total:
            break
        if rest > 0.0:
            low = shift
        else:
            high = shift
        step = max(-50.0, min(50.0, rest / max(sums[1], 1e-300)))
        if low < shift + step < high:
            shift += step
        else:
            shift = 0.5 * (low + high)
    return shift
