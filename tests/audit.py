"""An empirical lower bound of epsilon, from outcomes on two neighbouring tables.

The audit looks for an event that is much likelier on one of the two. With counts of how often it
happened in many runs, a lower bound of epsilon follows at a stated confidence (Clopper and
Pearson), which must stay below what is claimed.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import beta

# The chance that an honest mechanism fails one audit.
FALSE_ALARM = 1e-6


def lower_bound(left: np.ndarray, right: np.ndarray) -> float:
    """A lower bound of epsilon from outcomes of two neighbouring tables.

    The first half of the runs chooses the event, the second half judges it.
    """
    half = len(left) // 2
    best, bound = -math.inf, 0.0
    values = np.unique(np.concatenate([left[:half], right[:half]]))
    for cut in values[:: max(1, len(values) // 200)]:
        for above in (True, False):
            for one, other in ((left, right), (right, left)):
                hits = [(x >= cut) if above else (x < cut) for x in (one, other)]
                score = _ratio(int(hits[0][:half].sum()), int(hits[1][:half].sum()), half)
                if score > best:
                    best = score
                    bound = _ratio(int(hits[0][half:].sum()), int(hits[1][half:].sum()), half)
    return bound


def _ratio(p_hits: int, q_hits: int, n: int) -> float:
    low = beta.ppf(FALSE_ALARM / 2, p_hits, n - p_hits + 1) if p_hits else 0.0
    high = beta.ppf(1 - FALSE_ALARM / 2, q_hits + 1, n - q_hits) if q_hits < n else 1.0
    return math.log(low / high) if low > 0 else 0.0
