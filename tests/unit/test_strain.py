"""What measurements say of replicas: how much larger the real bias is, and how well a fit fits."""

from __future__ import annotations

import numpy as np
import pytest

from juncture.fit.strain import compare


def test_the_bias_of_replicas_is_scaled_to_what_was_measured() -> None:
    """By as much as plain estimates say, by what is usual where they are silent, never by less."""
    rng = np.random.default_rng(0)
    biases = rng.exponential(0.3, 400)
    offs = 2.0 * biases + rng.normal(0.0, 1.0, 400)
    found = compare(offs, biases)
    assert found.bias_factor == pytest.approx(2.0, abs=4.0 / float(np.sqrt(biases @ biases)))
    assert found.spread == pytest.approx(1.0, abs=0.1)
    assert compare(offs, 1e-3 * biases).bias_factor == pytest.approx(1.25, abs=0.1)
    assert compare(np.zeros(0), np.zeros(0)) == (1.25, 1.0)
    assert compare(-offs, biases).bias_factor == 1.0
    assert compare(3.0 * rng.normal(0.0, 1.0, 400), biases).spread > 2.5
