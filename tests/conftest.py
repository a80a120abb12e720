"""Settings that all tests share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

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


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local session, where there is a Java for it."""
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17 or later, and this machine has none")
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()
