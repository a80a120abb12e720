"""The file of a ledger: locked, read, and appended to so that it is on the disk."""

from __future__ import annotations

import fcntl
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from juncture.errors import UnreadableFile
from juncture.privacy.chain import Line, hash_bytes, seal
from juncture.privacy.ledger_1 import UPGRADE
from juncture.privacy.ledger_state import VERSION, State

# Seconds until a process that waits for a lock says so, and until it gives up.
_PATIENCE, _MAX_WAIT = 1.0, 60.0
# Of a line that a process left unfinished, so much is kept.
_MAX_KEPT = 2000


@contextmanager
def open_locked(path: Path, *, write: bool) -> Iterator[FileIO]:
    """Open a ledger's file: for reading with others, or for writing alone."""
    try:
        file = path.open("r+b" if write else "rb", buffering=0)
    except OSError as error:
        what = "read and written" if write else "read"
        raise UnreadableFile(
            f"`path` must be a ledger that can be {what}; got {path}: "
            f"{error.strerror}. Create one with Ledger.create."
        ) from None
    with file:
        _lock(file, path, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
        yield file


def _lock(file: FileIO, path: Path, kind: int) -> None:
    """Wait for a lock: with a word if it takes long, and not for ever."""
    began, has_said = time.monotonic(), False
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = time.monotonic() - began
        except OSError as error:
            raise UnreadableFile(
                f"`path` must be a ledger that can be locked; got {path}: {error.strerror}. Put "
                "it on a disk of this machine."
            ) from None
        else:
            return
        if waited > _MAX_WAIT:
            raise UnreadableFile(
                f"`path` must be a ledger that no other process holds; got {path}, which one has "
                f"held for {waited:.0f} seconds. End that process, or look at a copy."
            )
        if waited > _PATIENCE and not has_said:
            warnings.warn(f"waiting for another process that holds {path}", stacklevel=5)
            has_said = True
        time.sleep(0.002)


def write_new(path: Path, header: Mapping[str, Any]) -> None:
    """Write a new file with its first line; refuses to replace one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("xb", buffering=0)
    try:
        with file:
            _write_all(file, seal("", header)[0])
    except OSError as error:
        path.unlink()
        raise UnreadableFile(
            f"`path` must be where a ledger can be written; got {path}: {error.strerror}. Nothing "
            "was paid for."
        ) from None
    _sync_folder(path.parent)


def append(file: FileIO, state: State, contents: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Write lines behind what counts of a file, and wait until they are on the disk.

    What a process that died left of a line is removed first, and a line keeps its beginning. A
    ledger of version 1 gets the line that makes it one of version 2. If the disk is full, nothing
    of all this stays.
    """
    text, lines = _seal_all(file, state, contents)
    try:
        file.seek(state.chain.size)
        file.truncate()
        _write_all(file, text)
    except OSError as error:
        with suppress(OSError):
            file.truncate(state.chain.size)
        raise UnreadableFile(
            f"`path` must be a ledger that can be written; got {state.path}: {error.strerror}. "
            "Nothing was paid for."
        ) from None
    return lines


def _write_all(file: FileIO, text: bytes) -> None:
    """Write everything, and wait until it is on the disk."""
    written = 0
    while written < len(text):
        written += file.write(text[written:])
    os.fsync(file.fileno())


def _seal_all(
    file: FileIO, state: State, contents: Sequence[Mapping[str, Any]]
) -> tuple[bytes, list[Line]]:
    """The bytes to write, and the lines of `contents` in them."""
    text = b"" if state.chain.ends else b"\n"
    head, extra = state.head, list[dict[str, Any]]()
    if state.is_old:
        file.seek(0)
        head = hash_bytes(file.read(state.chain.size) + text)
        extra.append({UPGRADE: VERSION})
    if state.chain.tail:
        kept = state.chain.tail[:_MAX_KEPT].decode(errors="replace")
        extra.append({"repair": kept, "bytes": len(state.chain.tail)})
    lines = list[Line]()
    for content in [*extra, *contents]:
        sealed, line = seal(head, content)
        text, head = text + sealed, line.hash
        lines.append(line)
    return text, lines[len(extra) :]


def _sync_folder(folder: Path) -> None:
    """Write a folder to the disk: only then is a new file in it durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
