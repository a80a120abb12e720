"""A file of one JSON document and raw arrays of numbers, which is safe to open from any source.

The container is a zip archive whose members are stored, not compressed, so that nothing in it can
be larger than the file itself; a reader allocates no more than that. Members have fixed names,
every one is listed in the document with its length and checksum, and no code is ever run and no
object unpickled. Checksums detect damage; they are not a signature.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from juncture._util.atomic_file import atomic_write
from juncture.errors import UnreadableFile
from juncture.tables.layout import Vector

Document = dict[str, Any]

_DOCUMENT, _CHECKSUM = "document.json", "document.sha256"
_NUMBER = np.dtype("<f8")
_MAX_ARRAYS = 1_000_000
# Entries of lists and names in the document. Each takes some sixty bytes of memory, whereas a file
# can have one in two bytes: they are counted before any is made.
_MAX_ENTRIES = 3_000_000
# A fixed time, so that the same content gives the same file.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write(path: Path, document: Mapping[str, Any], arrays: Sequence[Vector]) -> None:
    """Write a file, in one piece or not at all."""
    raw = [np.ascontiguousarray(array, dtype=_NUMBER).tobytes() for array in arrays]
    entries = [{"length": len(data) // 8, "sha256": _digest(data)} for data in raw]
    text = json.dumps({**document, "arrays": entries}, allow_nan=False, indent=1).encode()
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_entry(_DOCUMENT), text)
        archive.writestr(_entry(_CHECKSUM), _digest(text))
        for index, part in enumerate(raw):
            archive.writestr(_entry(_array_name(index)), part)


def read(path: Path) -> tuple[Document, list[Vector]]:
    """The document and the arrays of a file, or a clear error."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(path, archive)
    except FileNotFoundError:
        raise UnreadableFile(
            f"`path` must be an existing file; got {path}. Check the name and the folder."
        ) from None
    except UnreadableFile:
        raise
    except Exception as error:  # of the zip library, there are many
        reason = f"it is truncated, altered or of another kind ({type(error).__name__})"
        raise _unreadable(path, reason) from error


def _read(path: Path, archive: zipfile.ZipFile) -> tuple[Document, list[Vector]]:
    members = archive.infolist()
    _check_members(path, members)
    text = archive.read(_DOCUMENT)
    if archive.read(_CHECKSUM) != _digest(text).encode():
        raise _unreadable(path, "its document does not match its checksum")
    if sum(map(text.count, (b",", b"[", b"{"))) > _MAX_ENTRIES:
        raise _unreadable(path, f"its document has more than {_MAX_ENTRIES:,} entries")
    try:
        document = json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise _unreadable(path, "its document is not valid JSON") from None
    entries = document.pop("arrays", None) if isinstance(document, dict) else None
    sizes = {member.filename: member.file_size for member in members}
    if not isinstance(entries, list) or len(entries) != len(members) - 2:
        raise _unreadable(path, "its document does not list its arrays")
    arrays = []
    for index, entry in enumerate(entries):
        name = _array_name(index)
        if not isinstance(entry, dict) or sizes.get(name) != 8 * _length(entry):
            raise _unreadable(path, f"array {index} does not have its stated length")
        data = archive.read(name)
        if _digest(data) != entry.get("sha256"):
            raise _unreadable(path, f"array {index} does not match its checksum")
        arrays.append(np.frombuffer(data, dtype=_NUMBER).astype(np.float64))
    return document, arrays


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Refuse members with other names than we write, and any that would grow when read."""
    if len(members) > _MAX_ARRAYS + 2:
        raise _unreadable(path, f"it has {len(members)} members")
    expected = {_DOCUMENT, _CHECKSUM, *(_array_name(i) for i in range(len(members) - 2))}
    if {member.filename for member in members} != expected or len(members) != len(expected):
        raise _unreadable(path, "it has members of other names")
    room = path.stat().st_size
    for member in members:
        stored = member.compress_type == zipfile.ZIP_STORED
        if not stored or member.file_size != member.compress_size or member.file_size > room:
            raise _unreadable(path, f"{member.filename} is compressed or larger than the file")
        room -= member.file_size


def _length(entry: Document) -> int:
    length = entry.get("length")
    return length if isinstance(length, int) and not isinstance(length, bool) else -1


def _reject_constant(name: str) -> float:
    raise ValueError(name)


def _array_name(index: int) -> str:
    return f"arrays/{index}.f64"


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, _EPOCH)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _unreadable(path: Path, reason: str) -> UnreadableFile:
    return UnreadableFile(
        f"`path` must be a file that Juncture wrote; got {path}: {reason}. "
        "Get the file again from its source."
    )
