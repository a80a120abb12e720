"""The checks before every request: who may ask, from where, and how much.

- The Host header must be a name of this machine: a page elsewhere whose name was pointed at this
  address (DNS rebinding) is refused.
- Answers need the token, as `Authorization: Bearer <token>` or in the cookie that opening
  `/?token=<token>` sets. The page itself shows nothing of the release and needs none.
- A request that another page made, even one on another port of this machine, is refused: the
  browser says where a request comes from.
- Bodies have a limit and must come in time; every reply has headers that confine scripts, frames
  and referrers.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response

from juncture.publish.explorer import limits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def cookie_name(token: str) -> str:
    """The cookie's name, one per token: browsers share cookies between the ports of a machine."""
    return f"juncture-{hashlib.sha256(token.encode()).hexdigest()[:12]}"


class Guard:
    """The app with these checks before it."""

    def __init__(self, app: App, *, token: str, hosts: Collection[str], any_address: bool) -> None:
        self._app, self._token = app, token.encode()
        self._cookie = cookie_name(token)
        self._hosts, self._any_address = {host.lower() for host in hosts}, any_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, pass it on to the app, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        protected = _add_headers(send, private=scope["path"].startswith("/api/"))
        refusal = self._check(scope) or self._log_in(scope)
        body = None
        if refusal is None:
            try:
                async with asyncio.timeout(limits.REQUEST_SECONDS):
                    body = await _read_body(receive)
            except TimeoutError:
                refusal = _error_response(408, "A request must be sent without a long pause.")
            else:
                if body is None:
                    refusal = _error_response(
                        413, f"A request must be at most {limits.MAX_BYTES:,} bytes."
                    )
        await (refusal or self._app)(scope, _replay(body or b"", receive), protected)

    def _check(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self._is_known_host(headers.get("host", "")):
            return _error_response(
                421, "The page must be opened under the address that the terminal shows."
            )
        if not scope["path"].startswith("/api/"):
            return None
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return _error_response(403, "Requests from other pages are refused.")
        if not self._is_token(_bearer_token(headers)) and not self._is_token(
            self._cookie_token(headers)
        ):
            return _error_response(
                401, "The token is missing or wrong. Open the address that the terminal shows."
            )
        return None

    def _log_in(self, scope: Scope) -> Response | None:
        """Turn `/?token=...` into a cookie, so that it leaves the address bar and the history."""
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if scope["path"] != "/" or not tokens:
            return None
        reply = RedirectResponse("/", status_code=303)
        if self._is_token(tokens[0]):
            reply.set_cookie(self._cookie, tokens[0], httponly=True, samesite="strict", path="/")
        return reply

    def _is_known_host(self, host: str) -> bool:
        name = _strip_port(host).lower()
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name == "localhost" or name in self._hosts
        return address.is_loopback or self._any_address or name in self._hosts

    def _is_token(self, candidate: str | None) -> bool:
        return candidate is not None and secrets.compare_digest(candidate.encode(), self._token)

    def _cookie_token(self, headers: Headers) -> str | None:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return None
        return None if morsel is None else morsel.value


def _bearer_token(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token if kind.lower() == "bearer" else None


def _strip_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _error_response(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status_code=status)


def _add_headers(send: Send, *, private: bool) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers["Cache-Control"] = "no-store" if private else "no-cache"
        await send(message)

    return sending


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or None where it is too long."""
    parts, length, more = list[bytes](), 0, True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > limits.MAX_BYTES:
            return None
        more = message.get("more_body", False)
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """What the app receives: the body once, then what the client sends, such as a disconnect."""
    waiting = [body]

    async def receiving() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return receiving
