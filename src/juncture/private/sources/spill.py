"""Folders for what an engine spills to the disk: private data, which no dead process leaves behind.

A folder is named after its process. A process that ends by itself removes its own; one that was
killed cannot, so whoever makes the next folder removes those of processes that are gone.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "juncture-spill"
_NAME = re.compile(rf"{_PREFIX}-(?P<machine>.+)-(?P<process>\d+)-(?P<started>\d+)-[^-]+")


def make_spill_folder() -> str:
    """A new folder that only this user can read; those of processes that are gone are removed."""
    remove_abandoned(Path(tempfile.gettempdir()))
    own = f"{_PREFIX}-{platform.node()}-{os.getpid()}-{_start_time(os.getpid())}-"
    return tempfile.mkdtemp(prefix=own)


@contextmanager
def spill_folder() -> Iterator[str]:
    """A folder for what is spilled, as long as it is needed."""
    folder = make_spill_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(folder: Path) -> None:
    """Remove the spill of processes of this machine and this user that are gone."""
    for path in folder.glob(f"{_PREFIX}-*"):
        found = _NAME.fullmatch(path.name)
        if found is None or found["machine"] != platform.node() or _owner(path) != os.getuid():
            continue
        if _start_time(int(found["process"])) != int(found["started"]):
            shutil.rmtree(path, ignore_errors=True)


def _start_time(process: int) -> int:
    """When a process was started, in ticks; -1 if it is gone, 0 where the system does not tell.

    A number is given again to another process some day; the two together are not.
    """
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0 if not Path("/proc/self/stat").exists() and _is_running(process) else -1
    return int(status.rpartition(")")[2].split()[19])


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _owner(path: Path) -> int:
    try:
        return path.lstat().st_uid
    except OSError:
        return -1
