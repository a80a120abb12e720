"""Keys that sign ledgers and releases: ed25519, in files that other tools read too (PEM).

This is optional: it needs cryptography (the extra `sign`). The private key's file is not encrypted
and readable by its user alone: whoever has it signs in its owner's name.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from juncture.errors import InvalidInput, JunctureError, UnreadableFile

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

# Files of keys have about a hundred bytes; no more than this is read.
_MAX_BYTES = 10_000


def require_cryptography() -> None:
    """Refuse to go on where the library that signs is not installed."""
    try:
        import cryptography  # noqa: F401, PLC0415 - an extra
    except ModuleNotFoundError as missing:
        raise JunctureError(
            f"Signatures need a package that is not installed ({missing.name}). Install "
            "juncture[sign]."
        ) from missing


def public_path(path: Path) -> Path:
    """Where the public key of a private one is written: beside it."""
    return Path(f"{path}.pub")


def create_key(path: Path) -> Path:
    """Write a new private key, and its public key beside it; returns the path of the public one.

    Nothing is ever replaced: a lost private key cannot be made again.
    """
    require_cryptography()
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    public = public_path(path)
    for file in (path, public):
        if os.path.lexists(file):
            raise InvalidInput(f"`file` must be a new file; got {file}, which exists.")
    key = ed25519.Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
    )  # fmt: skip
    shown = key.public_key().public_bytes(
        form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo
    )  # fmt: skip
    _write_new(path, secret, 0o600)
    try:
        _write_new(public, shown, 0o644)
    except BaseException:
        path.unlink()
        raise
    return public


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that does not exist, with its rights from the first moment on."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        raise InvalidInput(
            f"`file` must be a new file in a folder where files can be written; got {path} "
            f"({error.strerror})."
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """The private key of a file."""
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    try:
        key = load_pem_private_key(_read("key", path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise UnreadableFile(
            f"`key` must be an ed25519 private key without a password (PEM); got {path}, which is "
            "not. Make one with juncture key create."
        )
    return key


def read_public_key(path: Path) -> Ed25519PublicKey:
    """The public key of a file."""
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415

    try:
        key = load_pem_public_key(_read("public_key", path))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise UnreadableFile(
            f"`public_key` must be an ed25519 public key (PEM); got {path}, which is not. Give the "
            "file that ends in .pub."
        )
    return key


def name_key(key: Ed25519PublicKey) -> str:
    """A public key as text: its 32 bytes in hexadecimal."""
    return key.public_bytes_raw().hex()


def _read(argument: str, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES)
    except OSError as error:
        raise UnreadableFile(
            f"`{argument}` must be the file of a key; got {path}: {error.strerror}."
        ) from None
