"""Connections that cannot be hoarded: a stranger needs no token to open one.

- A request's header must come within a time; the guard says the same of its body, and the server of
  the silence between two requests.
- So many connections may be open. One more closes the one that has waited longest without asking
  anything; where all are being answered, the new one is closed.
- What is no HTTP ends the connection, without a word in the log.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from juncture.publish.explorer import limits


class LimitedConnection(H11Protocol):
    """A connection that is closed when it takes too long to ask, or too many are open."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self.waits_since = 0.0

    @property
    def is_answering(self) -> bool:
        """Whether a request has come that has no complete answer yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection, if there is room or can be made."""
        super().connection_made(transport)
        self._expect_request()
        if len(self.connections) > limits.MAX_CONNECTIONS:
            others: list[Any] = [each for each in self.connections if each is not self]
            silent = [each for each in others if not each.is_answering]
            oldest = min(silent, key=lambda each: each.waits_since, default=self)
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request; what cannot be read ends the connection."""
        try:
            super().data_received(data)
        except Exception:
            self.transport.abort()
        if self.is_answering:
            self._stop_clock()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._expect_request()

    def _expect_request(self) -> None:
        self._stop_clock()
        self.waits_since = self.loop.time()
        # Between requests the server's own clock runs; this one is for those that are half sent.
        self._deadline = self.loop.call_later(
            limits.REQUEST_SECONDS + limits.IDLE_SECONDS, self.transport.abort
        )

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
