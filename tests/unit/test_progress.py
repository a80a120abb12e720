"""The progress bar shows what the fit has reached."""

from __future__ import annotations

import numpy as np
import pytest

from juncture import Domain, Measurement, estimate
from juncture.progress import progress_bar


def test_the_bar_shows_steps_and_loss(capsys: pytest.CaptureFixture[str]) -> None:
    """After a fit the bar has shown its number of steps and its loss."""
    domain = Domain({"a": 3, "b": 4})
    values = np.random.default_rng(0).normal(10, 3, 12)
    given = [Measurement(("a", "b"), values, stddev=1.0)]
    with progress_bar() as show:
        result = estimate(domain, given, total=90.0, callback=show)
    printed = capsys.readouterr().out
    assert f"{result.statistics.oracle_calls} steps" in printed
    assert f"loss {result.statistics.loss:,.1f}" in printed
