"""The compiled routines: machine code that is made once, kept, and loaded without the compiler.

Wheels hold shared libraries for the common processors (`packaged`). Elsewhere, and where the
sources were changed, the routines are compiled for this processor, kept beside the package (or in
the user's cache folder), and loaded from there in a few milliseconds. The file's name has a digest
of everything that the machine code depends on; a file that is truncated or altered does not match
its own checksum and is compiled again.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from juncture.engine.compiled.packaged import FOLDER, digest_sources, open_packaged
from juncture.engine.compiled.targets import find_this_machine
from juncture.errors import JunctureError

if TYPE_CHECKING:
    from juncture.engine.compiled.build import MachineCode

_CHECKSUM_BYTES = 32
_LOCK = threading.Lock()
_LOG = logging.getLogger(__name__)
_MAX_KEPT = 8
# How long compiling takes alone on one core, and the longest unit of several at once.
_ALONE_SECONDS, _PARALLEL_SECONDS = 18, 10

# A letter for each type of a routine's result and arguments, as in `entry_points`: v none,
# d double, q 64-bit integer, u the same without a sign; capitals are addresses of arrays of these,
# I one of 32-bit integers, C one of bytes, B one of true-or-false bytes.
_C_TYPES: dict[str, Any] = {
    "v": None,
    "d": ctypes.c_double,
    "q": ctypes.c_int64,
    "u": ctypes.c_uint64,
    "D": ctypes.POINTER(ctypes.c_double),
    "Q": ctypes.POINTER(ctypes.c_int64),
    "I": ctypes.POINTER(ctypes.c_int32),
    "C": ctypes.POINTER(ctypes.c_uint8),
    "B": ctypes.POINTER(ctypes.c_bool),
}
Cell = ctypes.c_double | ctypes.c_int64 | ctypes.c_int32 | ctypes.c_uint8 | ctypes.c_bool
_CELLS: dict[np.dtype[Any], Any] = {
    np.dtype(np.float64): ctypes.c_double,
    np.dtype(np.int64): ctypes.c_int64,
    np.dtype(np.int32): ctypes.c_int32,
    np.dtype(np.uint8): ctypes.c_uint8,
    np.dtype(np.bool_): ctypes.c_bool,
}


def pointer(array: NDArray[Any]) -> Cell | None:
    """The address of an array for a routine; the array must be contiguous and writable.

    Make one for each call and do not keep it: a copy of it would not point into the array.
    """
    return _CELLS[array.dtype].from_buffer(array) if array.size else None


class Code(Protocol):
    """Machine code in memory."""

    signatures: dict[str, str]

    def find_address(self, name: str) -> int:
        """Where a routine begins."""


@cache
def routine(name: str) -> Callable[..., Any]:
    """The compiled routine of this name, which lets other Python threads run while it works."""
    with _LOCK:
        code = _load_code()
    result, *arguments = (_C_TYPES[letter] for letter in code.signatures[name])
    return ctypes.CFUNCTYPE(result, *arguments)(code.find_address(f"juncture_{name}"))


def load_routines() -> None:
    """Have all routines ready, compiled if need be: before anything that cannot be undone."""
    with _LOCK:
        _load_code()


@cache
def _load_code() -> Code:
    """The machine code, one per process and never released."""
    packaged = None if _checks_bounds() else open_packaged()
    return packaged or _KeptCode(load_compiled())


class _KeptCode:
    """Object files, linked in memory."""

    def __init__(self, kept: bytes) -> None:
        import llvmlite.binding as llvm  # noqa: PLC0415  (large; installed wheels do without it)

        header, _, body = kept.partition(b"\n")
        facts = json.loads(header)
        self.signatures: dict[str, str] = facts["signatures"]
        with suppress(RuntimeError):  # recent versions initialise themselves and refuse this call
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        for size in facts["sizes"]:
            self._engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(body[:size]))
            body = body[size:]
        self._engine.finalize_object()

    def find_address(self, name: str) -> int:
        """See `Code.find_address`."""
        return int(self._engine.get_function_address(name))


def load_compiled() -> bytes:
    """All routines, kept or compiled now: a line of JSON with signatures, then object files."""
    _refuse_without_compiler()
    name = f"juncture-{cache_key()}.o"
    for folder in cache_folders():
        kept = _read(folder / name)
        if kept:
            return kept
    compiled = _pack(_compile_and_say_so())
    for folder in cache_folders():
        if _write(folder / name, compiled):
            _prune(folder)
            break
    return compiled


def _refuse_without_compiler() -> None:
    if not all(importlib.util.find_spec(package) for package in ("llvmlite", "numba")):
        raise JunctureError(
            "This installation holds no compiled routines for this processor, and no compiler to "
            "make them. Install one: pip install 'juncture[compile]'."
        )


def _compile_and_say_so() -> MachineCode:
    """Compile for this processor. A warning is seen wherever nobody has set up logging.

    In a notebook or a script, seconds without a word look like a fault.
    """
    from juncture.engine.compiled.build import compile_routines, count_units  # noqa: PLC0415

    n_units, started = count_units(), time.perf_counter()
    _LOG.warning(
        "Juncture compiles its routines, once for this version and processor: about %d s on %d "
        "free core%s ...",
        *(max(_PARALLEL_SECONDS, _ALONE_SECONDS / n_units), n_units, "s" * (n_units > 1)),
    )
    (made,) = compile_routines([find_this_machine()], n_units)
    _LOG.warning("... compiled in %.0f s, and kept.", time.perf_counter() - started)
    return made


def _pack(code: MachineCode) -> bytes:
    """What `_KeptCode` reads."""
    header = {"signatures": code.signatures, "sizes": [len(part) for part in code.objects]}
    return json.dumps(header).encode() + b"\n" + b"".join(code.objects)


def _prune(folder: Path) -> None:
    """Delete the oldest files: each version of the sources leaves one."""
    with suppress(OSError):
        kept = sorted(folder.glob("juncture-*.o"), key=lambda p: p.stat().st_mtime, reverse=True)
        for old in kept[_MAX_KEPT:]:
            old.unlink()


def cache_key() -> str:
    """A digest of everything the machine code depends on: sources, compiler, processor."""
    compiler = f"{version('llvmlite')} {version('numba')} {_checks_bounds()}"
    setting = f"{digest_sources()} {compiler} {find_this_machine()}"
    return hashlib.sha256(setting.encode()).hexdigest()[:24]


def _checks_bounds() -> bool:
    """Whether every index is to be checked: one outside its array then ends the process.

    That is slow, and for tests of memory safety. The compiler reads the same variable.
    """
    return os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")


def cache_folders() -> Iterable[Path]:
    """Where machine code may be kept, in order of preference."""
    chosen = os.environ.get("JUNCTURE_CACHE")
    if chosen:
        return (Path(chosen),)
    paths = [FOLDER / "__pycache__"]
    with suppress(RuntimeError):  # a user without a home
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        paths.append(home / "juncture")
    return paths


def _read(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    code, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    return code if code and hashlib.sha256(code).digest() == checksum else None


def _write(path: Path, code: bytes) -> bool:
    """Write the code to a file, whole or not at all; returns whether that worked."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(code + hashlib.sha256(code).digest())
        Path(file.name).replace(path)
    except OSError:
        return False
    return True
