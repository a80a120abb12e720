"""The compiled routines: machine code that is made once, kept, and loaded without the compiler.

Importing the compiler and reading its own cache takes longer than most fits. So the routines are
compiled to one object file for this processor, kept beside the package (or in the user's cache
folder), and loaded from there in a few milliseconds. The file's name has a digest of everything
that the machine code depends on; a file that is truncated or altered does not match its own
checksum and is compiled again.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

_FOLDER = Path(__file__).parent
_CHECKSUM_BYTES = 32
_LOCK = threading.Lock()
_LOG = logging.getLogger(__name__)
_MAX_KEPT = 8

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


@cache
def routine(name: str) -> Callable[..., Any]:
    """The compiled routine of this name, which lets other Python threads run while it works."""
    with _LOCK:
        engine, signatures = _load_engine()
    result, *arguments = (_C_TYPES[letter] for letter in signatures[name])
    return ctypes.CFUNCTYPE(result, *arguments)(engine.get_function_address(f"juncture_{name}"))


def load_routines() -> None:
    """Have all routines ready, compiled if need be: before anything that cannot be undone."""
    with _LOCK:
        _load_engine()


@cache
def _load_engine() -> tuple[llvm.ExecutionEngine, dict[str, str]]:
    """The loaded machine code, one per process and never released; the routines' signatures."""
    signatures, _, code = load_compiled().partition(b"\n")
    with suppress(RuntimeError):  # recent versions initialise themselves and refuse this call
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, json.loads(signatures)


def load_compiled() -> bytes:
    """All routines, cached or compiled now: a line of JSON with signatures, then an object file."""
    name = f"juncture-{cache_key()}.o"
    for folder in cache_folders():
        kept = _read(folder / name)
        if kept:
            return kept
    from juncture.engine.compiled.entry_points import compile_all  # noqa: PLC0415  (imports the compiler)

    # A warning, so that it is seen wherever nobody has set up logging: in a notebook or a script,
    # half a minute without a word looks like a fault.
    _LOG.warning(
        "Juncture compiles its routines, once for this version and processor: up to half a minute."
    )
    compiled = compile_all()
    for folder in cache_folders():
        if _write(folder / name, compiled):
            _prune(folder)
            break
    return compiled


def _prune(folder: Path) -> None:
    """Delete the oldest files: each version of the sources leaves one."""
    with suppress(OSError):
        kept = sorted(folder.glob("juncture-*.o"), key=lambda p: p.stat().st_mtime, reverse=True)
        for old in kept[_MAX_KEPT:]:
            old.unlink()


def cache_key() -> str:
    """A digest of everything the machine code depends on: sources, compiler, processor."""
    sources = [path.read_bytes() for path in sorted(_FOLDER.glob("*.py"))]
    processor = llvm.get_host_cpu_name() + llvm.get_host_cpu_features().flatten()
    # With NUMBA_BOUNDSCHECK=1 every index is checked, and one outside its array ends the process:
    # slow, for tests of memory safety.
    checked = os.environ.get("NUMBA_BOUNDSCHECK", "")
    versions = f"{llvmlite.__version__} {llvm.get_default_triple()} {sys.version}"
    setting = f"{versions} {processor} {checked}"
    return hashlib.sha256(b"\0".join([*sources, setting.encode()])).hexdigest()[:24]


def cache_folders() -> Iterable[Path]:
    """Where machine code may be kept, in order of preference."""
    chosen = os.environ.get("JUNCTURE_CACHE")
    if chosen:
        return (Path(chosen),)
    paths = [_FOLDER / "__pycache__"]
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
