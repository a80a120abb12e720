"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Derandomised: a failure is the same on every machine. No deadline: the first call compiles.
settings.register_profile(
    "juncture",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("juncture")
