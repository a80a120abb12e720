"""Weighted draws are as private as they say, rounding included, up to the limits of the door."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from juncture.privacy.accounting import MAX_DRAW_ROUNDS, MAX_ETA, draw_slack
from juncture.privacy.score_units import weigh
from juncture.private.selection import draw_exponents


def largest_error(eta: float, n_earlier: int, rng: np.random.Generator) -> float:
    """How far the logarithms of the computed probabilities are from the exact ones, at most."""
    n_records, n_queries = int(rng.integers(1, 10**6)), 20
    answers = rng.integers(0, n_records + 1, n_queries)
    # Records that answer nearly right, so that many queries have a chance.
    near = np.round(n_earlier * (answers / n_records)) + rng.integers(-1, 2, n_queries)
    satisfied = np.clip(near, 0, n_earlier)
    with localcontext() as context:
        context.prec = 60
        shares = [Fraction(int(a), n_records) for a in answers]
        pairs = zip(shares, satisfied, strict=True)
        gains = [Fraction(eta) * (n_earlier * share - int(k)) for share, k in pairs]
        exact = [(Decimal(g.numerator) / Decimal(g.denominator)).exp() for g in gains]
        exact += [1 / e for e in exact]
        exponents = draw_exponents(answers / n_records, satisfied, n_earlier, eta)
        computed = [Decimal(w) for w in weigh(exponents)]
        ratio = sum(exact, Decimal(0)) / sum(computed, Decimal(0))
        return max(float(abs((c / e * ratio).ln())) for c, e in zip(computed, exact, strict=True))


@pytest.mark.parametrize("eta", [0.01, 2.0, MAX_ETA])
@pytest.mark.parametrize("n_earlier", [1, 1000, MAX_DRAW_ROUNDS])
def test_rounding_is_paid_for(eta: float, n_earlier: int) -> None:
    """On each of two neighbouring tables a probability is off by less than half the slack."""
    rng = np.random.default_rng(0)
    errors = [largest_error(eta, n_earlier, rng) for _ in range(20)]
    assert max(errors) <= draw_slack(eta, n_earlier) / 2.0


def test_a_fixed_slack_would_not_do() -> None:
    """At the limits of the door, rounding moves probabilities by more than a billionth."""
    rng = np.random.default_rng(0)
    assert max(largest_error(MAX_ETA, MAX_DRAW_ROUNDS, rng) for _ in range(20)) > 1e-9
