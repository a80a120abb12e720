r"""Lines of JSON of which each vouches for all before it: the form of a ledger's file.

The last entry of every line is its hash: SHA-256 of the hash of the line before (nothing for the
first line), a newline, and the line as it would be without its hash. So no byte of a line can
change, and no line can go, come or move, without a hash that no longer fits; what is behind the
last line is all that a chain cannot vouch for. Hashes say nothing about who wrote a line: whoever
can write the file can make a new chain.

    {"budget": {"epsilon": 1.0}, "hash": "4f1c..."}        SHA-256 of '\n{"budget": ...}}'
    {"event": 1, "epsilon": 0.5, "hash": "9a07..."}        SHA-256 of '4f1c...\n{"event": ...}'

Every line also has a salt, so that a hash that is published tells nothing about its line.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_HASH = re.compile(rb', "hash": "([0-9a-f]{64})"}')


class BrokenChain(Exception):
    """A line is not what was written; the first argument is its number, from 1."""


@dataclass(frozen=True)
class Line:
    """What a line says, and the hash of everything up to it; empty in files that have none."""

    content: dict[str, Any]
    hash: str


@dataclass(frozen=True)
class Chain:
    """The lines of a file, and what is behind them."""

    lines: tuple[Line, ...]
    size: int
    """How many bytes the lines take, with the end of the last one if it has one."""
    tail: bytes
    """What a process that died while it wrote left of a line; it does not count."""
    ends: bool
    """Whether the last line has its end; an editor may have cut it off."""


def seal(previous: str, content: Mapping[str, Any]) -> tuple[bytes, Line]:
    """A line with its end, ready to be written behind the line with the hash `previous`."""
    salted = {**content, "salt": secrets.token_hex(16)}
    plain = json.dumps(salted, ensure_ascii=False, allow_nan=False).encode()
    digest = _hash_line(previous, plain)
    return plain[:-1] + f', "hash": "{digest}"}}\n'.encode(), Line(salted, digest)


def read_chain(raw: bytes, previous: str = "", first: int = 1) -> Chain:
    """All lines of a file, or of its part behind a line with the hash `previous`.

    A line without an end counts if its hash fits. If not, and it has no hash at all, a process died
    while it wrote it. Everything else is damage, and raises an error with the number of the line.
    """
    *ended, rest = raw.split(b"\n")
    lines = list[Line]()
    for number, text in enumerate(ended, first):
        line = _read_line(previous, text)
        if line is None:
            raise BrokenChain(number)
        lines.append(line)
        previous = line.hash
    last = _read_line(previous, rest) if rest else None
    if last is not None:
        return Chain((*lines, last), len(raw), b"", ends=False)
    if _HASH.search(rest):  # a whole line was here
        raise BrokenChain(first + len(lines))
    return Chain(tuple(lines), len(raw) - len(rest), rest, ends=True)


def parse_object(text: bytes) -> dict[str, Any] | None:
    """The JSON object of a line; None if it is anything else."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def hash_bytes(raw: bytes) -> str:
    """The hash of lines that have none themselves."""
    return hashlib.sha256(raw).hexdigest()


def _read_line(previous: str, text: bytes) -> Line | None:
    """A line whose hash fits; None for any other."""
    found = _HASH.fullmatch(text[-len(', "hash": "') - 66 :])
    if found is None:
        return None
    plain = text[: -len(found.group())] + b"}"
    digest = found.group(1).decode()
    content = parse_object(plain) if digest == _hash_line(previous, plain) else None
    return None if content is None else Line(content, digest)


def _hash_line(previous: str, plain: bytes) -> str:
    return hashlib.sha256(previous.encode() + b"\n" + plain).hexdigest()
