r"""Signatures of ledgers and releases, each in a small file of its own beside what it signs.

A signature's file has two lines: what is signed, as JSON, and the ed25519 signature of exactly
those bytes, in hexadecimal.

    {"format": "juncture signature", "version": 1, "signs": "release", "hash": "5c0e...", ...}
    91b3...

`signs` keeps a signature of one kind from passing for the other. `hash` is

- of a release: SHA-256 of the file, so every byte of it is signed;
- of a ledger: the running hash of its last line (`privacy/chain.py`), so every line up to that one
  is signed. Lines that come later are not, and do not make the signature invalid: it says who
  vouches for what was there, and a ledger that has lost any of it has no line with this hash.

`key` says who claims to have signed, for a clear error. It is believed by nobody: whoever checks a
signature has got the public key some other way.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from juncture._util.atomic_file import atomic_write
from juncture.errors import InvalidInput, UnreadableFile
from juncture.privacy.chain import parse_object
from juncture.privacy.keys import name_key, read_private_key, read_public_key
from juncture.privacy.ledger_state import State

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORMAT, VERSION = "juncture signature", 1
# A signature's file has about 350 bytes; no more than this is read.
_MAX_BYTES = 10_000
_HASH, _VALUE = re.compile("[0-9a-f]{64}"), re.compile(rb"[0-9a-f]{128}")


class Subject(StrEnum):
    """What a signature is of."""

    LEDGER = "ledger"
    RELEASE = "release"


@dataclass(frozen=True)
class Signature:
    """What the file of a signature says; nothing of it is true before it is checked."""

    path: Path
    signed: bytes
    """The line that is signed."""
    value: bytes
    subject: Subject
    hash: str
    key: str

    def check(self, key: Ed25519PublicKey, subject: Subject) -> None:
        """Refuse a signature that is not by this key, or not of this kind of file."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra

        if self.key != name_key(key):
            raise UnreadableFile(
                f"`public_key` must be the key that signed; got {name_key(key)}, and {self.path} "
                f"is by {self.key}. Ask its owner for the right key; do not take it from the file."
            )
        try:
            key.verify(self.value, self.signed)
        except InvalidSignature:
            raise UnreadableFile(
                f"`signature` must be an unaltered signature; got {self.path}, which this key did "
                "not make. Trust neither it nor what it signs."
            ) from None
        if self.subject != subject:
            raise UnreadableFile(
                f"`signature` must be of a {subject}; got {self.path}, which signs a "
                f"{self.subject}."
            )


def signature_path(path: Path) -> Path:
    """Where the signature of a file is kept: beside it."""
    return Path(f"{path}.sig")


def sign_release(path: Path, key: Path, out: Path | None = None) -> Signature:
    """Sign every byte of a release; refuses to replace a file."""
    target = out or signature_path(path)
    if target.exists():
        raise InvalidInput(f"`out` must be a new file; got {target}, which exists. Move it away.")
    return _sign(Subject.RELEASE, _hash_file(path), key, target)


def check_release(path: Path, public_key: Path, signature: Path | None = None) -> Signature:
    """Refuse a release that is not, byte for byte, the one that the key has signed.

    Nothing of the release is interpreted, only its hash is computed.
    """
    found = read_signature(signature or signature_path(path))
    found.check(read_public_key(public_key), Subject.RELEASE)
    if found.hash != _hash_file(path):
        raise UnreadableFile(
            f"`release` must be the file that was signed; got {path}, whose bytes are others than "
            f"those that {found.path} signs. It was altered, or it is another release."
        )
    return found


def sign_ledger(state: State, key: Path, out: Path | None = None) -> Signature:
    """Sign every line that a ledger has now.

    An older signature is replaced only if the ledger still has what it signs: it may be all that
    shows that something is gone.
    """
    if state.is_old:
        raise InvalidInput(
            f"`file` must be a ledger with hashes; got {state.path}, which is of version 1. It "
            "gets them with its next event; sign it then."
        )
    target = out or signature_path(state.path)
    if target.exists():
        _find_line(state, read_signature(target))
    return _sign(Subject.LEDGER, state.head, key, target)


@dataclass(frozen=True)
class SignedPart:
    """How much of a ledger is signed."""

    key: str
    n_events: int
    """So many events, from the first on, are signed."""


def check_ledger(state: State, public_key: Path, signature: Path | None = None) -> SignedPart:
    """How much of a ledger a key has signed; refuses one that is not what was signed."""
    found = read_signature(signature or signature_path(state.path))
    found.check(read_public_key(public_key), Subject.LEDGER)
    index = _find_line(state, found)
    signed = {
        line.hash for line in state.chain.lines[: index + 1]
    }  # with "" for lines of version 1
    return SignedPart(found.key, sum(entry.hash in signed for entry in state.entries))


def _find_line(state: State, signature: Signature) -> int:
    """The index of the last line that is signed."""
    hashes = [line.hash for line in state.chain.lines]
    if signature.hash not in hashes:
        raise UnreadableFile(
            f"`file` must have every line that was signed; got {state.path}, which has no line "
            f"with the hash that {signature.path} signs. It was cut off, put back from an old copy "
            "or made anew, or it is another ledger: spend nothing from it."
        )
    return hashes.index(signature.hash)


def read_signature(path: Path) -> Signature:
    """Read the file of a signature, which is not checked yet."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES)
    except OSError as error:
        raise UnreadableFile(
            f"`signature` must be the file of a signature; got {path}: {error.strerror}."
        ) from None
    signed, _, rest = raw.partition(b"\n")
    content = parse_object(signed) or {}
    if content.get("format") == FORMAT and content.get("version") not in (None, VERSION):
        raise UnreadableFile(
            f"`signature` must be of version {VERSION}; got {path}, of version "
            f"{content['version']!r}. Upgrade Juncture."
        )
    value = rest.removesuffix(b"\n")
    if not _is_valid(content) or not _VALUE.fullmatch(value):
        raise UnreadableFile(
            f"`signature` must be the file of a signature; got {path}, which is none or altered."
        )
    return Signature(
        path, signed, bytes.fromhex(value.decode()), Subject(content["signs"]), content["hash"],
        content["key"],
    )  # fmt: skip


def _is_valid(content: dict[str, Any]) -> bool:
    hashes = (content.get("hash"), content.get("key"))
    return (
        content.get("format") == FORMAT
        and content.get("signs") in list(Subject)
        and all(isinstance(text, str) and _HASH.fullmatch(text) for text in hashes)
    )


def _sign(subject: Subject, digest: str, key: Path, target: Path) -> Signature:
    private = read_private_key(key)
    name = name_key(private.public_key())
    signed = json.dumps(
        {"format": FORMAT, "version": VERSION, "signs": subject, "hash": digest, "key": name}
    ).encode()
    value = private.sign(signed)
    with atomic_write(target) as file:
        file.write(signed + b"\n" + value.hex().encode() + b"\n")
    return Signature(target, signed, value, subject, digest, name)


def _hash_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UnreadableFile(
            f"`release` must be a file that can be read; got {path}: {error.strerror}."
        ) from None
