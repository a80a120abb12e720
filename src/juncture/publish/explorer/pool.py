"""The processes that answer questions, seen from the server.

A question has a worker to itself. It is ended where its time is over or, a little later, where
nobody waits for its answer any more: its worker is killed, whatever it is doing, and another is
started. So nothing that a question does can hold up the server, and signals always reach it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from juncture.errors import JunctureError, UnreadableFile
from juncture.publish.explorer import limits
from juncture.publish.explorer.frames import HEADER, Frame, Kind
from juncture.publish.explorer.own_kinds import list_own_kinds
from juncture.publish.release import Release


class Refused(Exception):
    """A question that gets no answer: a status of HTTP, and a message for people."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Worker:
    """One process, and the pipes to it."""

    def __init__(self, process: Process, facts: bytes) -> None:
        self._process, self.facts = process, facts

    @classmethod
    async def start(cls, path: Path, name: str) -> Worker:
        """A worker that has opened the release; its refusal is raised."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "juncture.publish.explorer.worker", str(path), name,
            *list_own_kinds(), env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=PIPE, stdout=PIPE, stderr=DEVNULL,
            start_new_session=True,  # Ctrl-C is for the server
        )  # fmt: skip
        worker = cls(process, b"")
        try:
            hello = await worker._receive()
        except BaseException:
            await worker.close()
            raise
        if hello.kind is not Kind.ANSWER:
            await worker.close()
            raise UnreadableFile(hello.payload.decode())
        worker.facts = hello.payload
        return worker

    async def ask(self, question: Mapping[str, Any]) -> Frame:
        """The reply to a question; that of a worker which has died is a failure."""
        assert self._process.stdin is not None
        with suppress(ConnectionError):  # there is no reply then either
            frame = Frame(Kind.QUESTION, json.dumps(question).encode())
            self._process.stdin.write(frame.to_bytes())
            await self._process.stdin.drain()
        return await self._receive()

    async def _receive(self) -> Frame:
        stream = self._process.stdout
        assert stream is not None
        try:
            kind, length = HEADER.unpack(await stream.readexactly(HEADER.size))
            return Frame(Kind(kind), await stream.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return Frame(Kind.FAILURE, b"the process has died")

    @property
    def is_alive(self) -> bool:
        """Whether the process is still there."""
        return self._process.returncode is None

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def close(self) -> None:
        """End the process, and wait until it is gone.

        Waiting for a process is waiting for its pipes as well, and a large reply that nobody reads
        would keep one open for ever: so what is left of it is read.
        """
        self.kill()
        assert self._process.stdout is not None
        with suppress(RuntimeError, ConnectionError):  # where somebody reads it already
            await self._process.stdout.read()
        await self._process.wait()


class Pool:
    """Workers for one release, started when they are needed, and a folder for their files."""

    def __init__(self, release: Release | Path, name: str) -> None:
        self._release, self._name = release, name
        self._workers: set[Worker] = set()
        self._idle: list[Worker] = []
        self._waiting: deque[asyncio.Future[Worker]] = deque()
        self._n_starting = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._folder: TemporaryDirectory[str] | None = None
        self.facts = b""
        """What the page shows before any question, kept here: it needs no worker."""

    async def open(self) -> None:
        """Start the first worker; a release that cannot be read is refused."""
        if self._folder is not None:
            return
        self._folder = TemporaryDirectory(prefix="juncture-", ignore_cleanup_errors=True)
        if isinstance(self._release, Release):
            self._release.save(self._path)
        try:
            worker = await Worker.start(self._path, self._name)
        except BaseException:
            await self.close()
            raise
        self.facts = worker.facts
        self._workers.add(worker)
        self._give(worker)

    @property
    def folder(self) -> Path:
        """Where workers write files; it goes when the pool closes."""
        assert self._folder is not None
        return Path(self._folder.name)

    @property
    def _path(self) -> Path:
        return self._release if isinstance(self._release, Path) else self.folder / "release.jct"

    async def close(self) -> None:
        """End all workers, and remove their files."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in self._workers))
        self._workers.clear()
        if self._folder is not None:
            self._folder.cleanup()

    async def ask(self, question: Mapping[str, Any], seconds: float) -> bytes:
        """The answer to a question, as JSON; cancelled, its worker has a moment to come free."""
        worker = await self._take()
        asking = asyncio.ensure_future(worker.ask(question))
        began = asyncio.get_running_loop().time()
        try:
            done, _ = await asyncio.wait({asking}, timeout=seconds)
        except asyncio.CancelledError:
            worked = asyncio.get_running_loop().time() - began
            self._run(self._see_off(worker, asking, limits.FAREWELL_SECONDS - worked))
            raise
        if not done:
            asking.cancel()
            self._discard(worker)
            raise Refused(
                503,
                f"The question took more than {seconds:g} seconds and was stopped. Ask about "
                "fewer columns, or use juncture in Python.",
            )
        return _read_reply(self._take_back(worker, asking.result()))

    async def _take(self) -> Worker:
        """A worker that has nothing to do, started if need be; questions wait in order."""
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            self._discard(worker)
        if len(self._waiting) >= limits.MAX_WAITING:
            raise Refused(503, "Too many questions are waiting. Try again in a moment.")
        future: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._grow()
        try:
            return await future
        except asyncio.CancelledError:
            if future in self._waiting:
                self._waiting.remove(future)
            elif future.done() and not future.cancelled() and future.exception() is None:
                self._give(future.result())
            raise

    def _give(self, worker: Worker) -> None:
        """Hand a worker to whoever has waited longest."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(worker)
                return
        self._idle.append(worker)

    def _take_back(self, worker: Worker, reply: Frame) -> Frame:
        if worker.is_alive and reply.kind is not Kind.FAILURE:
            self._give(worker)
        else:  # it may be short of memory, or worse
            self._discard(worker)
        return reply

    def _discard(self, worker: Worker) -> None:
        worker.kill()
        self._workers.discard(worker)
        self._run(worker.close())
        self._grow()

    async def _see_off(self, worker: Worker, asking: asyncio.Future[Frame], seconds: float) -> None:
        """Let a short question that nobody waits for end: its worker would be dear to replace."""
        done, _ = await asyncio.wait({asking}, timeout=max(0.0, seconds))
        if done:
            self._take_back(worker, asking.result())
        else:
            asking.cancel()
            self._discard(worker)

    def _grow(self) -> None:
        """Start a worker where there is none, or somebody waits for one."""
        n_workers = len(self._workers) + self._n_starting
        if n_workers == 0 or (self._waiting and n_workers < limits.MAX_WORKERS):
            self._n_starting += 1
            self._run(self._start())

    async def _start(self) -> None:
        try:
            worker = await Worker.start(self._path, self._name)
        except (JunctureError, OSError):
            if not self._workers:
                self._turn_away()
            return
        finally:
            self._n_starting -= 1
        self._workers.add(worker)
        self._give(worker)

    def _turn_away(self) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(Refused(503, "The release can no longer be opened."))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something aside."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _read_reply(reply: Frame) -> bytes:
    if reply.kind is Kind.REFUSAL:
        raise Refused(400, reply.payload.decode())
    if reply.kind is Kind.FAILURE:
        raise Refused(500, "The question could not be answered. Try a simpler one.")
    return reply.payload
