"""How much memory is free on this machine, or in the container that we run in."""

from __future__ import annotations

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
# Limit and use of a container's memory, under the two versions of control groups.
_CONTAINER = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def free_memory_bytes() -> int:
    """The bytes that could be allocated now without pushing anything else out."""
    return min([_free_on_machine(), *_free_in_container()])


def _free_on_machine() -> int:
    if _MEMINFO.exists():
        lines = (line.split() for line in _MEMINFO.read_text().splitlines())
        return next(int(words[1]) * 1024 for words in lines if words[0] == "MemAvailable:")
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _free_in_container() -> list[int]:
    """The bytes that a control group leaves us, where one sets a limit."""
    free = []
    for limit, used in _CONTAINER:
        if Path(limit).exists() and Path(used).exists():
            maximum = Path(limit).read_text().strip()
            if maximum != "max":
                free.append(max(0, int(maximum) - int(Path(used).read_text())))
    return free
