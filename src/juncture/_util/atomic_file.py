"""Files that are written in one piece or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write to, which replaces `path` once it is complete and on the disk.

    If anything stops the writing, even the user, `path` stays as it was and nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _replacing(path) as file:
            yield file
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk does not say which file
        raise


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).chmod(0o644)
            Path(file.name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(file.name).unlink()
            raise
