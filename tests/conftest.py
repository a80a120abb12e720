"""Settings that all tests share."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from juncture._util.threads import cpu_count

_MAX_WORKERS = 8

# Derandomised: a failure is the same on every machine. No deadline: the first call compiles.
settings.register_profile(
    "juncture",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("juncture"), max_examples=20)
settings.load_profile("juncture")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker for each processor that this process may use; beyond eight they gain little."""
    return min(cpu_count(), _MAX_WORKERS)
