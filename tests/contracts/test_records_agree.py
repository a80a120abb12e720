"""Fits with records against exact ones, where both run: the same errors beside the truth."""

from __future__ import annotations

import numpy as np
import pytest
from small_problems import compare_with_exact

N_PROBLEMS = 100


@pytest.mark.slow
def test_errors_are_those_of_the_exact_fit() -> None:
    """Over random problems: within 1 % but for a few, and marginals as near as is said."""
    results = [compare_with_exact(seed) for seed in range(N_PROBLEMS)]
    ratios = np.array([each.ratio for each in results])
    assert np.mean(ratios <= 1.01) >= 0.95
    assert ratios.max() <= 1.05
    assert np.median(ratios) <= 1.001
    assert np.mean([each.distance <= each.stated for each in results]) >= 0.97


@pytest.mark.parametrize("seed", [1, 7, 37])
def test_a_few_of_them(seed: int) -> None:
    """The same for three problems, in the fast tests."""
    result = compare_with_exact(seed)
    assert result.ratio <= 1.01
    assert result.distance <= result.stated
