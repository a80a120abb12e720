"""The explorer's server: a page and four kinds of questions, answered from a release alone.

It holds no model and computes nothing: workers do (`pool.py`), so it always has time for the page,
for connections that must be closed, and for the signal to stop.
"""

from __future__ import annotations

import asyncio
import ipaddress
import mimetypes
import re
import secrets
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from pathlib import Path
from threading import Timer
from typing import Annotated, Any
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from juncture._util.text import reveal
from juncture.errors import InvalidInput
from juncture.publish.explorer import limits
from juncture.publish.explorer.connections import LimitedConnection
from juncture.publish.explorer.guard import Guard
from juncture.publish.explorer.pool import Pool, Refused
from juncture.publish.records import FileFormat
from juncture.publish.release import Release

_STATIC = Path(__file__).parent / "static"
_PORT = 8417


class _RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ConditionBody(_RequestBody):
    """A condition as the page sends it: codes, or the ends of a range."""

    attribute: str
    codes: Annotated[list[int], Field(max_length=limits.MAX_VALUES)] | None = None
    low: Annotated[float, Field(allow_inf_nan=False)] | None = None
    high: Annotated[float, Field(allow_inf_nan=False)] | None = None


class MarginalBody(_RequestBody):
    """The question behind a chart."""

    attributes: list[str] = Field(default_factory=list)
    max_values: Annotated[
        list[Annotated[int, Field(ge=2, le=limits.MAX_VALUES)] | None], Field(max_length=3)
    ] = Field(default_factory=list)
    """For each attribute, how many values to show it by: the largest, or ranges. None for all."""
    conditions: Annotated[list[ConditionBody], Field(max_length=limits.MAX_CONDITIONS)] = Field(
        default_factory=list
    )


class SqlBody(_RequestBody):
    """A question in SQL."""

    sql: str


def create_app(
    release: Release | Path,
    *,
    token: str,
    name: str = "release",
    hosts: Collection[str] = (),
    any_address: bool = False,
) -> FastAPI:
    """The page and its questions as an ASGI app for any server.

    - `release`: what is explored, or its file.
    - `token`: the secret that answers need.
    - `name`: what the page calls the release.
    - `hosts`: host names that are allowed besides those of this machine.
    - `any_address`: whether any IP address is allowed as the host.
    """
    if not token:
        raise InvalidInput(
            "`token` must not be empty; got nothing. Make one with `secrets.token_urlsafe()`."
        )
    pool = Pool(release, name)

    @asynccontextmanager
    async def run_pool(_app: FastAPI) -> AsyncIterator[None]:
        await pool.open()
        try:
            yield
        finally:
            await pool.close()

    app = FastAPI(
        title="Juncture explorer", openapi_url=None, docs_url=None, redoc_url=None,
        lifespan=run_pool,
    )  # fmt: skip
    app.state.pool = pool
    app.add_middleware(Guard, token=token, hosts=hosts, any_address=any_address)
    _add_page(app)
    _add_questions(app, pool)
    _add_download(app, pool, name)
    _add_error_handlers(app)
    return app


def _add_page(app: FastAPI) -> None:
    """The page and what it loads, from memory."""

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return _static_files()["index.html"]

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        try:
            return _static_files()[name]
        except KeyError:
            raise HTTPException(404) from None


@cache
def _static_files() -> Mapping[str, Response]:
    """A reply for each file: there are few, and they are small."""
    kinds = {path: mimetypes.guess_type(path.name)[0] for path in sorted(_STATIC.iterdir())}
    return {p.name: Response(p.read_bytes(), media_type=kind) for p, kind in kinds.items()}


def _add_questions(app: FastAPI, pool: Pool) -> None:
    @app.get("/api/release")
    async def release() -> Response:
        return Response(pool.facts, media_type="application/json")

    @app.post("/api/marginal")
    async def marginal(body: MarginalBody, request: Request) -> Response:
        return await _answer(pool, {"ask": "marginal", **body.model_dump()}, request)

    @app.post("/api/sql")
    async def sql(body: SqlBody, request: Request) -> Response:
        return await _answer(pool, {"ask": "sql", **body.model_dump()}, request)


def _add_download(app: FastAPI, pool: Pool, name: str) -> None:
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "release"
    under_way: set[Path] = set()

    def remove(path: Path) -> None:
        path.unlink(missing_ok=True)
        under_way.discard(path)

    @app.get("/api/sample")
    async def sample(
        request: Request,
        n: Annotated[int, Query(ge=1, le=limits.MAX_RECORDS)],
        file_format: Annotated[FileFormat, Query(alias="format")] = FileFormat.CSV,
        seed: Annotated[int, Query(ge=0, lt=2**63)] | None = None,
        conditions: Annotated[str, Query(max_length=limits.MAX_BYTES)] = "[]",
    ) -> Response:
        asked = _read_conditions(conditions)
        if len(under_way) >= limits.MAX_DOWNLOADS:
            raise Refused(503, "Too many downloads are under way. Try again in a moment.")
        path = pool.folder / f"{secrets.token_hex(8)}.{file_format}"
        under_way.add(path)
        question: dict[str, Any] = {"ask": "records", "path": str(path), "n": n, "seed": seed}
        question["conditions"] = asked
        try:
            await _wait_for(pool.ask(question, limits.DOWNLOAD_SECONDS), request)
        except BaseException:
            remove(path)
            raise
        return _Download(path, f"{stem}-synthetic-{n}.{file_format}", partial(remove, path))


def _read_conditions(text: str) -> list[dict[str, Any]]:
    """Conditions in an address, as the page has them."""
    try:
        body = MarginalBody.model_validate_json(f'{{"conditions": {text}}}')
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_context=False)) from None
    return [each.model_dump() for each in body.conditions]


class _Download(FileResponse):
    """A file that is deleted once it was sent, or the client has left."""

    def __init__(self, path: Path, name: str, remove: Callable[[], None]) -> None:
        csv = path.suffix == ".csv"
        kind = "text/csv; charset=utf-8" if csv else "application/vnd.apache.parquet"
        super().__init__(path, media_type=kind, filename=name)
        self._remove = remove

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._remove()


async def _answer(pool: Pool, question: Mapping[str, Any], request: Request) -> Response:
    answer = await _wait_for(pool.ask(question, limits.QUESTION_SECONDS), request)
    return Response(answer, media_type="application/json")


async def _wait_for(work: Coroutine[Any, Any, bytes], request: Request) -> bytes:
    """What the work gives; it is cancelled when the client leaves."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_wait_for_leaving(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Refused(499, "The client has left.")
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _wait_for_leaving(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _add_error_handlers(app: FastAPI) -> None:
    """Give all errors one form that reveals nothing internal."""

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        fields = {".".join(str(part) for part in each["loc"][1:]) for each in error.errors()}
        rules = "; ".join(sorted({str(each["msg"]) for each in error.errors()}))
        message = f"`{', '.join(sorted(fields)) or 'body'}` must be as the page sends it: {rules}."
        return JSONResponse({"error": message[:500]}, status_code=400)

    @app.exception_handler(HTTPException)
    async def failed(_request: Request, error: HTTPException) -> Response:
        return JSONResponse({"error": str(error.detail)}, status_code=error.status_code)

    @app.exception_handler(Refused)
    async def refused(_request: Request, error: Refused) -> Response:
        return JSONResponse({"error": str(error)}, status_code=error.status)


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
    app = create_app(path, token=secret, name=path.stem, hosts=names, any_address=anywhere)
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
        greeting = f"Exploring {reveal(path.name)} at\n\n    {url}\n\nPress Ctrl-C to stop."
        try:
            asyncio.run(_run(app, sock, greeting, url if open_browser else None))
        except KeyboardInterrupt:
            print("Stopped.")


async def _run(app: FastAPI, sock: socket.socket, greeting: str, url: str | None) -> None:
    """Open the release, say so, and serve until a signal comes."""
    await app.state.pool.open()
    print(greeting, flush=True)
    if url is not None:
        Timer(0.5, webbrowser.open, [url]).start()
    await uvicorn.Server(make_config(app)).serve(sockets=[sock])


def make_config(app: FastAPI) -> uvicorn.Config:
    """The settings of a server: what keeps strangers from shutting everybody out."""
    return uvicorn.Config(
        app, http=LimitedConnection, ws="none", log_level="critical", access_log=False,
        server_header=False, backlog=limits.BACKLOG, timeout_keep_alive=limits.IDLE_SECONDS,
        timeout_graceful_shutdown=limits.CLOSING_SECONDS,
    )  # fmt: skip


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
