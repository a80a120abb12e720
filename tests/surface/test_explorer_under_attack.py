"""The explorer's server beside slow questions, clients that leave, and floods of connections."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from explorer_server import TOKEN, running
from juncture import Domain, Model, Release, UnreadableFile
from juncture.publish.explorer import limits
from juncture.publish.explorer.pool import Worker
from juncture.publish.explorer.server import create_app, serve
from processes import started, wait_until

HEADERS = {"Authorization": f"Bearer {TOKEN}"}
# A thousand sums over a million cells: minutes of work within all other limits. Five: a moment.
SLOW = {"sql": f"SELECT {', '.join(f'SUM(LN(a * b + {i + 1}))' for i in range(1000))} FROM t"}
SHORT = {"sql": f"SELECT {', '.join(f'SUM(LN(a * b + {i + 1}))' for i in range(5))} FROM t"}
QUICK = {"sql": "SELECT COUNT(*) FROM t WHERE a < 500"}


def wide_release() -> Release:
    """Two attributes of a thousand values."""
    return Release(model=Model.of_potentials(Domain({"a": 1000, "b": 1000}), [], 1000.0))


@pytest.fixture(scope="module")
def app() -> FastAPI:
    """A server's app, with workers of its own."""
    return create_app(wide_release(), token=TOKEN)


@pytest.fixture(scope="module")
def address(app: FastAPI) -> Iterator[str]:
    """Where it runs."""
    with running(app) as url:
        yield url


def ask(address: str, question: dict[str, str], timeout: float = 100) -> httpx.Response:
    """The reply to a question in SQL."""
    return httpx.post(f"{address}/api/sql", json=question, headers=HEADERS, timeout=timeout)


def list_busy(app: FastAPI) -> list[Any]:
    """The workers that have a question."""
    return [worker for worker in app.state.pool._workers if worker not in app.state.pool._idle]


def port_of(address: str) -> int:
    """The port of an address."""
    return int(address.rsplit(":", 1)[1])


@pytest.mark.slow
def test_a_slow_question_is_stopped_and_holds_up_nobody(
    app: FastAPI, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile the page, the facts and quick questions are answered; then it is refused."""
    with ThreadPoolExecutor(8) as pool:  # so that there is more than one worker

        def grow() -> bool:
            replies = list(pool.map(lambda _: ask(address, SHORT), range(8)))
            assert {reply.status_code for reply in replies} == {200}
            return len(app.state.pool._workers) > 1

        wait_until(grow)
    monkeypatch.setattr(limits, "QUESTION_SECONDS", 15.0)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(ask, address, SLOW)
        for _ in range(3):
            assert httpx.get(address).status_code == 200
            assert httpx.get(f"{address}/static/app.js").status_code == 200
            assert httpx.get(f"{address}/api/release", headers=HEADERS).status_code == 200
        assert ask(address, QUICK).json()["rows"] == [[500.0]]
        assert not slow.done()
        reply = slow.result()
    # Whichever comes first: the time of a question is over, or the memory of its process.
    assert reply.status_code in (400, 503)
    assert re.search("took more than 15 seconds|memory", reply.json()["error"], re.IGNORECASE)
    assert ask(address, QUICK).json()["rows"] == [[500.0]]


@pytest.mark.slow
def test_questions_of_clients_that_are_gone_are_dropped(
    app: FastAPI, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has left is not waited for: neither those in the queue nor those worked on."""
    monkeypatch.setattr(limits, "FAREWELL_SECONDS", 0.2)
    before = {worker._process.pid for worker in app.state.pool._workers}
    with ThreadPoolExecutor(20) as pool:

        def leave(_: int) -> None:
            with contextlib.suppress(httpx.TimeoutException):
                ask(address, SLOW, timeout=1.0)

        list(pool.map(leave, range(20)))
    assert ask(address, QUICK).json()["rows"] == [[500.0]]
    assert not app.state.pool._waiting
    assert before.isdisjoint(worker._process.pid for worker in app.state.pool._workers)


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(app: FastAPI, address: str) -> None:
    """Killed from outside, between questions or during one, it costs at most that question."""
    for slow in (False, True):
        (worker, *_) = app.state.pool._workers
        with ThreadPoolExecutor(1) as pool:
            reply = pool.submit(ask, address, SLOW if slow else QUICK)
            if slow:
                wait_until(lambda: list_busy(app))
                (worker,) = list_busy(app)
            os.kill(worker._process.pid, signal.SIGKILL)
            assert reply.result().status_code in ((500,) if slow else (200, 500))
        assert ask(address, QUICK).json()["rows"] == [[500.0]]


@pytest.mark.slow
def test_more_questions_than_can_wait_are_told_to_come_back(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue has an end, and it says so at once."""
    monkeypatch.setattr(limits, "MAX_WAITING", 3)
    monkeypatch.setattr(limits, "QUESTION_SECONDS", 2.0)
    with ThreadPoolExecutor(10) as pool:
        replies = list(pool.map(lambda _: ask(address, SLOW), range(10)))
    assert {reply.status_code for reply in replies} == {503}
    reasons = [reply.json()["error"] for reply in replies]
    assert any("Too many questions" in reason for reason in reasons)
    assert any("was stopped" in reason for reason in reasons)


def test_large_answers_and_downloads_have_limits(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups times sums, and downloads at once."""
    sums = ", ".join(f"SUM(b + {i})" for i in range(600))
    reply = ask(address, {"sql": f"SELECT a, {sums} FROM t GROUP BY a"})
    assert reply.status_code == 400
    assert "500,000 values; got 1,000 groups of 601" in reply.json()["error"]
    monkeypatch.setattr(limits, "MAX_DOWNLOADS", 0)
    reply = httpx.get(f"{address}/api/sample?n=5", headers=HEADERS)
    assert (reply.status_code, "downloads" in reply.text) == (503, True)


def test_downloads_leave_no_file_behind(app: FastAPI, address: str) -> None:
    """Whether they were read to the end or not."""
    folder = app.state.pool.folder
    assert httpx.get(f"{address}/api/sample?n=50", headers=HEADERS).text.count("\n") == 51
    with httpx.stream("GET", f"{address}/api/sample?n=900000", headers=HEADERS, timeout=60):
        pass
    wait_until(lambda: [path.name for path in folder.iterdir()] == ["release.jct"])


def test_silent_connections_shut_nobody_out(
    address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """More than may be open: those that wait longest are closed, and everybody else is served."""
    silent = []
    for index in range(limits.MAX_CONNECTIONS + 100):
        silent.append(socket.create_connection(("127.0.0.1", port_of(address))))
        if index % 2:
            silent[-1].sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
    assert httpx.get(address, timeout=30).status_code == 200
    assert ask(address, QUICK).status_code == 200
    silent[0].settimeout(30)
    with contextlib.suppress(ConnectionError):
        assert silent[0].recv(1) == b""
    for each in silent:
        each.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"POST /api/sql HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        b"POST /api/sql HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer open-sesame\r\n"
        b"Content-Length: 50\r\n\r\n{",
    ],
    ids=["nothing", "header", "body"],
)
def test_requests_that_stop_half_way_are_closed(
    address: str, monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    """A connection on which nothing more comes does not stay open."""
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.3)
    monkeypatch.setattr(limits, "IDLE_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", port_of(address)), timeout=60) as connection:
        connection.sendall(beginning)
        received = b""
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(4096):
                received += part
    assert received == b"" or received.startswith(b"HTTP/1.1 408 ")


def test_garbage_ends_the_connection_without_a_word(
    address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever comes instead of HTTP leaves no trace in the log."""
    garbage = [b"\x16\x03\x01\x00\xff" * 50, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
    garbage += [b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" * 3, b"\n" * 100_000]
    garbage += [b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n"]
    garbage += [b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"]
    for each in garbage:
        with (
            socket.create_connection(("127.0.0.1", port_of(address)), timeout=30) as connection,
            contextlib.suppress(ConnectionError),
        ):
            connection.sendall(each)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
    assert httpx.get(address).status_code == 200
    assert capfd.readouterr().err == ""


def test_a_file_that_is_no_release_is_refused_by_serve(tmp_path: Path) -> None:
    """What the worker finds wrong with it is what the caller is told."""
    path = tmp_path / "no.jct"
    path.write_text("nothing")
    with pytest.raises(UnreadableFile, match="must be a file that Juncture wrote"):
        serve(path, port=0)


def start_server(path: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    """A server in a process of its own."""
    code = "from juncture.publish.explorer.server import serve; "
    code += f"serve({str(path)!r}, port=0, token={TOKEN!r})"
    environment = {**os.environ, "TMPDIR": str(path.parent)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return started([sys.executable, "-c", code], env=environment, **pipes)


def list_children(pid: int) -> list[int]:
    """The processes that a process has started."""
    listed: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        listed += map(int, (task / "children").read_text().split())
    return listed


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_end_the_server_during_a_question(tmp_path: Path, ending: signal.Signals) -> None:
    """Also while all workers have minutes to do; and none of them is left behind."""
    with start_server(wide_release().save(tmp_path / "wide.jct")) as process:
        assert process.stdout is not None
        line: Any = next(each for each in process.stdout if "http://127.0.0.1" in each)
        url = line.strip().split("/?")[0]
        with ThreadPoolExecutor(3) as pool:
            for _ in range(3):
                pool.submit(_ask_in_vain, url)
            wait_until(lambda: len(list_children(process.pid)) == limits.MAX_WORKERS)
            workers = list_children(process.pid)
            time.sleep(0.5)
            process.send_signal(ending)
            assert process.wait(60) in (0, -signal.SIGTERM, -signal.SIGKILL)
    if ending is not signal.SIGKILL:
        assert [path.name for path in tmp_path.iterdir()] == ["wide.jct"]
    wait_until(lambda: not any(map(_is_running, workers)))


@pytest.mark.parametrize("n", [10, 1_000_000])
def test_a_worker_ends_whatever_it_has_said_that_nobody_read(n: int) -> None:
    """A reply that fills its pipe would keep the server waiting for ever."""

    async def end() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", f"print('x' * {n}, flush=True); input()",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        await asyncio.sleep(0.5)
        worker = Worker(process, b"")
        await asyncio.wait_for(worker.close(), 20)
        assert not worker.is_alive

    asyncio.run(end())


def _is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def _ask_in_vain(url: str) -> None:
    with contextlib.suppress(httpx.HTTPError):
        ask(url, SLOW)
