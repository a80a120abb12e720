"""The processors that machine code is made for, and which of them this machine has."""

from __future__ import annotations

import platform
import sys
from collections.abc import Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# What a level of x86-64 adds to the one below it, in the names of Linux. The rest of a level's
# definition comes with these on every processor that was ever sold.
_LEVELS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
    "x86-64-v2": {"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"},
}


@dataclass(frozen=True)
class Target:
    """A kind of processor, in LLVM's words."""

    triple: str
    cpu: str
    features: str = ""


# What wheels hold: for each system, machine code by the name of the kind, the best one first.
PACKAGED: dict[str, dict[str, Target]] = {
    "linux-x86_64": {level: Target("x86_64-unknown-linux-gnu", level) for level in _LEVELS},
    "linux-aarch64": {"arm64": Target("aarch64-unknown-linux-gnu", "generic", "+neon")},
}


def find_this_machine() -> Target:
    """This machine's own processor, with everything that it can do."""
    import llvmlite.binding as llvm  # noqa: PLC0415  (large; installed wheels do without it)

    features = llvm.get_host_cpu_features().flatten()
    return Target(llvm.get_default_triple(), llvm.get_host_cpu_name(), features)


@cache
def find_runnable() -> tuple[str, ...]:
    """The kinds in a wheel that this machine can run, the best one first; none if unknown."""
    kinds = PACKAGED.get(f"{sys.platform}-{platform.machine()}", {})
    return choose_levels(_read_features()) if "x86-64-v2" in kinds else tuple(kinds)


def choose_levels(features: Set[str]) -> tuple[str, ...]:
    """The levels of x86-64 that a processor with these features has, the highest first.

    >>> choose_levels({"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3", "avx2"})
    ('x86-64-v2',)
    """
    found, names = list[str](), list(_LEVELS)
    for level in reversed(names):
        if not features >= _LEVELS[level]:
            break
        found.insert(0, level)
    return tuple(found)


def _read_features() -> frozenset[str]:
    """What this processor can do, in the names of Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())
