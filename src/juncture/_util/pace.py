"""How long work will still take, in words: what progress bars say."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Pace:
    """One piece of work, timed since it was first heard of.

    >>> pace = Pace(started=0.0)
    >>> pace.describe(done=10, total=40, now=5.0)
    '10 of 40 done, 30 left, about 15 s to go'
    """

    started: float = field(default_factory=time.monotonic)
    first_done: int = 0
    """What was done already when it was first heard of: it says nothing about the pace."""
    _last_done: int = field(default=0, init=False)

    def describe(self, done: int, total: int, now: float | None = None) -> str:
        """What is done, what is left, and how long that will take at the pace so far."""
        moment = time.monotonic() if now is None else now
        if done < self._last_done:  # the same kind of work, begun again
            self.started, self.first_done = moment, done
        self._last_done = done
        words = f"{done:,} of {total:,} done"
        if done >= total:
            return words
        words += f", {total - done:,} left"
        passed = moment - self.started
        since = done - self.first_done
        if since <= 0 or passed <= 0:
            return words
        return f"{words}, about {describe_seconds(passed * (total - done) / since)} to go"


def describe_seconds(seconds: float) -> str:
    """A length of time in one or two units.

    >>> describe_seconds(0.2), describe_seconds(75), describe_seconds(4000)
    ('1 s', '1 min 15 s', '1 h 6 min')
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
