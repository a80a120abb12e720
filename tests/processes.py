"""Processes that tests start, and things that they wait for: neither outlives its test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is killed when the block ends, if it has not ended before.

    `Popen` as a context waits for its process instead: a test that fails would wait for ever.
    """
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait for something that must come soon; fail where it does not."""
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, f"it did not happen within {seconds:g} seconds"
        sleep(0.01)
