"""The shared libraries that a wheel holds: the routines, compiled when the wheel was built.

They lie in a folder of the package: a library for each kind of processor, named after it, and a
list with the routines' signatures and a digest of the sources they were made from. Where the
sources have changed since, or the processor is older than all kinds, there are none.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
from pathlib import Path

from juncture.engine.compiled.targets import find_runnable

FOLDER = Path(__file__).parent
LIBRARIES = FOLDER / "libraries"
LIST = "routines.json"


class _Library:
    """A shared library of a wheel."""

    def __init__(self, path: Path, signatures: dict[str, str]) -> None:
        self.signatures = signatures
        self._library = ctypes.CDLL(str(path))

    def find_address(self, name: str) -> int:
        """Where a routine begins."""
        return int(ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0)


def digest_sources() -> str:
    """A digest of all sources of compiled routines."""
    sources = [path.read_bytes() for path in sorted(FOLDER.glob("*.py"))]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


def describe(signatures: dict[str, str]) -> str:
    """The list that goes with libraries made from the sources as they are."""
    return json.dumps({"sources": digest_sources(), "signatures": signatures}, indent=1) + "\n"


def open_packaged(folder: Path = LIBRARIES) -> _Library | None:
    """The library for this processor, or None where there is none for it or for these sources."""
    try:
        facts = json.loads((folder / LIST).read_text(encoding="utf-8"))
    except OSError:
        return None
    if facts["sources"] != digest_sources():
        return None
    for kind in find_runnable():
        path = folder / f"{kind}.so"
        if path.exists():
            return _Library(path, facts["signatures"])
    return None
