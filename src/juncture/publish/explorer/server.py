"""The explorer's server: a page and four kinds of questions, answered from a release alone."""

from __future__ import annotations

import ipaddress
import logging
import re
import secrets
import socket
import sys
import webbrowser
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Annotated, Any
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from juncture.errors import InvalidInput, JunctureError
from juncture.publish.explorer import limits
from juncture.publish.explorer.answers import Answers, validate_attributes
from juncture.publish.explorer.guard import Guard
from juncture.publish.explorer.question import Between, Condition, OneOf
from juncture.publish.records import FileFormat
from juncture.publish.release import Release, load

_STATIC = Path(__file__).parent / "static"
_PORT = 8417
_LOG = logging.getLogger(__name__)


class _RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ConditionBody(_RequestBody):
    """A condition as the page sends it: codes, or the ends of a range."""

    attribute: str
    codes: Annotated[list[int], Field(max_length=limits.MAX_VALUES)] | None = None
    low: Annotated[float, Field(allow_inf_nan=False)] | None = None
    high: Annotated[float, Field(allow_inf_nan=False)] | None = None

    def to_condition(self) -> Condition:
        """The condition as the question needs it."""
        if self.codes is not None:
            return OneOf(self.attribute, tuple(self.codes))
        return Between(self.attribute, self.low, self.high)


class MarginalBody(_RequestBody):
    """The question behind a chart."""

    attributes: list[str] = Field(default_factory=list)
    conditions: Annotated[list[ConditionBody], Field(max_length=limits.MAX_CONDITIONS)] = Field(
        default_factory=list
    )


class SqlBody(_RequestBody):
    """A question in SQL."""

    sql: str


def create_app(
    release: Release,
    *,
    token: str,
    name: str = "release",
    hosts: Collection[str] = (),
    any_address: bool = False,
) -> FastAPI:
    """The page and its questions as an ASGI app for any server.

    - `release`: what is explored.
    - `token`: the secret that answers need.
    - `name`: what the page calls the release.
    - `hosts`: host names that are allowed besides those of this machine.
    - `any_address`: whether any IP address is allowed as the host.
    """
    if not token:
        raise InvalidInput(
            "`token` must not be empty; got nothing. Make one with `secrets.token_urlsafe()`."
        )
    answers = Answers(release, name)
    app = FastAPI(title="Juncture explorer", openapi_url=None, docs_url=None, redoc_url=None)
    app.add_middleware(Guard, token=token, hosts=hosts, any_address=any_address)
    _add_routes(app, answers)
    _add_error_handlers(app)
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(_STATIC / "index.html")

    return app


def _add_routes(app: FastAPI, answers: Answers) -> None:
    @app.get("/api/release")
    def release_() -> Response:
        return _respond(answers.facts)

    @app.post("/api/marginal")
    def marginal(body: MarginalBody) -> Response:
        conditions = [each.to_condition() for each in body.conditions]
        return _respond(lambda: answers.marginal(validate_attributes(body.attributes), conditions))

    @app.post("/api/sql")
    def sql(body: SqlBody) -> Response:
        return _respond(partial(answers.sql, body.sql))

    @app.get("/api/sample")
    def sample(
        n: Annotated[int, Query(ge=1, le=limits.MAX_RECORDS)],
        file_format: Annotated[FileFormat, Query(alias="format")] = FileFormat.CSV,
        seed: Annotated[int, Query(ge=0, lt=2**63)] | None = None,
    ) -> Response:
        kind = (
            "text/csv; charset=utf-8" if file_format == "csv" else "application/vnd.apache.parquet"
        )
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", str(answers.facts()["name"])).strip("-")
        disposition = f'attachment; filename="{stem or "release"}-synthetic-{n}.{file_format}"'
        return _respond(
            lambda: StreamingResponse(
                answers.records(n, file_format, seed),
                media_type=kind,
                headers={"Content-Disposition": disposition},
            )
        )


def _respond(work: Callable[[], dict[str, Any] | Response]) -> Response:
    """The answer, or the message of one of our errors; any other error shows no detail."""
    try:
        answer = work()
        return answer if isinstance(answer, Response) else JSONResponse(answer)
    except JunctureError as error:
        return JSONResponse({"error": str(error)}, status_code=400)
    except Exception:
        _LOG.exception("a question failed")
        message = "The question could not be answered. Try a simpler one."
        return JSONResponse({"error": message}, status_code=500)


def _add_error_handlers(app: FastAPI) -> None:
    """Give all errors one form that reveals nothing internal."""

    @app.exception_handler(RequestValidationError)
    def invalid(_request: Request, error: RequestValidationError) -> Response:
        fields = {".".join(str(part) for part in each["loc"][1:]) for each in error.errors()}
        rules = "; ".join(sorted({str(each["msg"]) for each in error.errors()}))
        message = f"`{', '.join(sorted(fields)) or 'body'}` must be as the page sends it: {rules}."
        return JSONResponse({"error": message[:500]}, status_code=400)

    @app.exception_handler(HTTPException)
    def failed(_request: Request, error: HTTPException) -> Response:
        return JSONResponse({"error": str(error.detail)}, status_code=error.status_code)


def serve(
    release_path: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    token: str | None = None,
    open_browser: bool = False,
) -> None:
    """Serve the page of a release file until interrupted, and print its address.

    - `host`: the address to listen on; with the default, only this machine can connect.
    - `port`: by default 8417 if that is free; 0 for any free one.
    - `token`: the secret in the address; by default, a random one.
    - `open_browser`: whether to open the page in a browser.
    """
    path = Path(release_path)
    secret = token or secrets.token_urlsafe(24)
    anywhere = host in ("0.0.0.0", "::", "")
    names = [socket.gethostname()] if anywhere else [host]
    app = create_app(load(path), token=secret, name=path.stem, hosts=names, any_address=anywhere)
    with open_socket(host, port) as sock:
        url = (
            f"http://{_display_host(host)}:{sock.getsockname()[1]}/?token={quote(secret, safe='')}"
        )
        if not _is_loopback(host):
            print(
                f"Warning: {host} can be reached from other machines, and anyone who has the "
                "address below can ask questions. The connection is not encrypted.",
                file=sys.stderr,
            )
        print(f"Exploring {path.name} at\n\n    {url}\n\nPress Ctrl-C to stop.", flush=True)
        if open_browser:
            Timer(0.5, webbrowser.open, [url]).start()
        _run(app, sock)


def _run(app: FastAPI, sock: socket.socket) -> None:
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    try:
        uvicorn.Server(config).run(sockets=[sock])
    except KeyboardInterrupt:
        print("Stopped.")


def open_socket(host: str, port: int | None) -> socket.socket:
    """A listening socket; if no port is given, on the usual one if that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (_PORT, 0) if port is None else (port,):
        try:
            sock = socket.create_server((host, candidate), family=family)
        except (OSError, OverflowError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).rstrip(".")
        else:
            # Otherwise the end of every reply waits 40 ms for the browser to confirm its beginning.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
    raise InvalidInput(
        f"`host` and `port` must be free to listen on; got {host} and {port}: {reason}. "
        "Use another port, or 0 for any free one."
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _display_host(host: str) -> str:
    """The host in a URL; a server that listens everywhere is reached by this machine's name."""
    if host in ("0.0.0.0", "::", ""):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
