"""Signatures of ledgers and releases: what they cover, and everything that they refuse."""

from __future__ import annotations

import base64
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import juncture as jn
from juncture.cli.main import run
from juncture.errors import InvalidInput, UnreadableFile
from juncture.privacy.accounting import Cost
from juncture.privacy.events import Event
from juncture.privacy.keys import create_key, name_key, read_private_key, read_public_key
from juncture.privacy.ledger import Ledger
from juncture.privacy.signature import (
    check_ledger,
    check_release,
    sign_ledger,
    sign_release,
    signature_path,
)

FILES = Path(__file__).parents[1] / "files"


@dataclass(frozen=True)
class Signed:
    """A ledger with two events, signed; a release, signed; the key, and a stranger's."""

    folder: Path
    key: Path
    public: Path
    stranger: Path
    ledger: Path
    release: Path


def pay(ledger: Ledger) -> None:
    """Spend a quarter of epsilon."""
    ledger.spend(Event("counts", "laplace", Cost.pure(0.25), {}))


@pytest.fixture
def signed(tmp_path: Path) -> Signed:
    """Everything signed once."""
    key, other = tmp_path / "steward.key", tmp_path / "stranger.key"
    public, stranger = create_key(key), create_key(other)
    ledger = Ledger.create(tmp_path / "x.ledger", jn.Budget(epsilon=1))
    pay(ledger)
    pay(ledger)
    release = tmp_path / "x.jct"
    shutil.copy(FILES / "format-2-schema.jct", release)
    sign_ledger(ledger.read(), key)
    sign_release(release, key)
    return Signed(tmp_path, key, public, stranger, ledger.path, release)


def test_keys_are_secret_and_never_replaced(signed: Signed) -> None:
    """The private file is its user's alone; neither file is written over, nor left alone."""
    assert stat.S_IMODE(signed.key.stat().st_mode) == 0o600
    before = signed.key.read_bytes(), signed.public.read_bytes()
    with pytest.raises(InvalidInput, match="must be a new file"):
        create_key(signed.key)
    assert (signed.key.read_bytes(), signed.public.read_bytes()) == before
    new = signed.folder / "new.key"
    Path(f"{new}.pub").symlink_to("nowhere")
    with pytest.raises(InvalidInput, match="must be a new file"):
        create_key(new)
    assert not new.exists()


def test_what_is_signed_is_what_the_file_says(signed: Signed) -> None:
    """The second line is ed25519 of the first: checked by OpenSSL's program, not by us."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl")
    line, value = signature_path(signed.release).read_bytes().splitlines()
    (signed.folder / "line").write_bytes(line)
    (signed.folder / "value").write_bytes(bytes.fromhex(value.decode()))
    command = [openssl, "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", str(signed.public)]
    done = subprocess.run(
        [*command, "-in", "line", "-sigfile", "value"],
        cwd=signed.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Signature Verified Successfully" in done.stdout, done.stderr


def test_a_release_is_signed_to_the_last_byte(signed: Signed) -> None:
    """No byte can change, go or come; the release itself is not touched by signing."""
    assert signed.release.read_bytes() == (FILES / "format-2-schema.jct").read_bytes()
    check_release(signed.release, signed.public)
    content = signed.release.read_bytes()
    for altered in (content[:-1], content + b"\0", content[:99] + b"!" + content[100:]):
        signed.release.write_bytes(altered)
        with pytest.raises(UnreadableFile, match="must be the file that was signed"):
            check_release(signed.release, signed.public)
    with pytest.raises(InvalidInput, match="must be a new file"):
        sign_release(signed.release, signed.key)


def test_no_byte_of_a_signature_can_change(signed: Signed) -> None:
    """Whatever is altered in its file, it is refused, by an error of ours."""
    path = signature_path(signed.release)
    content = path.read_bytes()
    for i in range(len(content) - 1):
        path.write_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
        with pytest.raises(UnreadableFile):
            check_release(signed.release, signed.public)
    for i in range(0, len(content) - 1, 7):
        path.write_bytes(content[:i])
        with pytest.raises(UnreadableFile):
            check_release(signed.release, signed.public)
    path.write_bytes(content.replace(b'"version": 1', b'"version": 2'))
    with pytest.raises(UnreadableFile, match="Upgrade"):
        check_release(signed.release, signed.public)
    path.unlink()
    with pytest.raises(UnreadableFile, match="must be the file of a signature"):
        check_release(signed.release, signed.public)


def test_others_cannot_sign_in_ones_name(signed: Signed) -> None:
    """A stranger's key is called one; with the owner's name written in, nothing fits any more."""
    with pytest.raises(UnreadableFile, match="must be the key that signed"):
        check_release(signed.release, signed.stranger)
    with pytest.raises(UnreadableFile, match="must be the key that signed"):
        check_ledger(Ledger(signed.ledger).read(), signed.stranger)
    theirs = signed.folder / "theirs.sig"
    sign_release(signed.release, signed.folder / "stranger.key", theirs)
    name, own = (name_key(read_public_key(key)) for key in (signed.stranger, signed.public))
    theirs.write_text(theirs.read_text().replace(name, own))
    with pytest.raises(UnreadableFile, match="which this key did not make"):
        check_release(signed.release, signed.public, theirs)


def test_a_signature_of_a_ledger_is_none_of_a_release(signed: Signed) -> None:
    """Nor the other way round, also where the key is right."""
    with pytest.raises(UnreadableFile, match="must be of a release; got .* signs a ledger"):
        check_release(signed.release, signed.public, signature_path(signed.ledger))
    state = Ledger(signed.ledger).read()
    with pytest.raises(UnreadableFile, match="must be of a ledger; got .* signs a release"):
        check_ledger(state, signed.public, signature_path(signed.release))


def test_a_ledger_is_signed_up_to_its_last_line(signed: Signed) -> None:
    """It may grow, and the rest is not signed; if any signed line goes, it is refused."""
    ledger = Ledger(signed.ledger)
    assert check_ledger(ledger.read(), signed.public).n_events == 2
    pay(ledger)
    assert check_ledger(ledger.read(), signed.public).n_events == 2
    sign_ledger(ledger.read(), signed.key)
    assert check_ledger(ledger.read(), signed.public).n_events == 3
    lines = signed.ledger.read_bytes().splitlines(keepends=True)
    signed.ledger.write_bytes(b"".join(lines[:-1]))  # without fault in itself
    for refused in (
        lambda: check_ledger(Ledger(signed.ledger).read(), signed.public),
        lambda: sign_ledger(Ledger(signed.ledger).read(), signed.key),  # would hide it
    ):
        with pytest.raises(UnreadableFile, match="must have every line that was signed"):
            refused()


def test_a_ledger_made_anew_is_found(signed: Signed) -> None:
    """Somebody who may write the file makes one with a larger budget and right hashes."""
    signed.ledger.unlink()
    pay(Ledger.create(signed.ledger, jn.Budget(epsilon=100)))
    assert run(["ledger", "verify", str(signed.ledger)]) == 0
    assert run(["ledger", "verify", str(signed.ledger), "--public-key", str(signed.public)]) == 1


def test_ledgers_of_version_1(signed: Signed) -> None:
    """Without hashes there is nothing to sign; with the next event all of it is signed."""
    old = signed.folder / "old.ledger"
    shutil.copy(FILES / "version-1-epsilon.ledger", old)
    old.chmod(0o644)
    with pytest.raises(InvalidInput, match="must be a ledger with hashes"):
        sign_ledger(Ledger(old).read(), signed.key)
    ledger = Ledger(old)
    ledger.spend(Event("counts", "laplace", Cost.pure(min(0.001, ledger.remaining)), {}))
    sign_ledger(ledger.read(), signed.key)
    state = ledger.read()
    assert check_ledger(state, signed.public).n_events == len(state.entries) > 1


@pytest.mark.parametrize(
    "content", [b"", b"no key", b"\xff" * 20_000, b"-----BEGIN PRIVATE KEY-----\nAAAA\n"]
)
def test_files_that_are_no_keys(signed: Signed, content: bytes) -> None:
    """Everything but a key of the right kind is refused by one error."""
    path = signed.folder / "bad"
    path.write_bytes(content)
    for read in (read_private_key, read_public_key):
        with pytest.raises(UnreadableFile, match="must be an ed25519"):
            read(path)


def test_keys_of_other_kinds_are_refused(signed: Signed) -> None:
    """The two files exchanged, and an X25519 key, which cannot sign."""
    with pytest.raises(UnreadableFile, match="must be an ed25519 private key"):
        read_private_key(signed.public)
    with pytest.raises(UnreadableFile, match="must be an ed25519 public key"):
        read_public_key(signed.key)
    der = bytes.fromhex("302a300506032b656e032100") + bytes(range(32))
    path = signed.folder / "x25519.pub"
    text = base64.b64encode(der).decode()
    path.write_text(f"-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
    with pytest.raises(UnreadableFile, match="must be an ed25519 public key"):
        read_public_key(path)


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install, and no file appears."""
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(jn.JunctureError, match=r"Install juncture\[sign\]"):
        create_key(tmp_path / "a.key")
    assert not list(tmp_path.iterdir())


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A steward signs, an analyst verifies; what paid for a release must be signed."""
    data = pa.table({"a": [0, 1, 1, 0], "b": [1, 1, 0, 0]})
    schema = jn.Schema({name: jn.Integer(low=0, high=1) for name in ("a", "b")})
    ledger, key = tmp_path / "x.ledger", tmp_path / "steward.key"
    Ledger.create(ledger, jn.Budget(epsilon=2))
    words = ["ledger", "verify", str(ledger), "--public-key", f"{key}.pub"]
    assert run(["key", "create", str(key)]) == 0
    for name in ("one.jct", "two.jct"):
        path = tmp_path / name
        jn.release(data, schema, jn.Budget(epsilon=1), ledger=ledger, path=path, mechanism="hdmm")
        if name == "one.jct":
            assert run(["ledger", "sign", str(ledger), "--key", str(key)]) == 0
    assert run([*words, "--release", str(tmp_path / "one.jct")]) == 0
    assert "signed: 1 of 2 events" in capsys.readouterr().out
    assert run([*words, "--release", str(tmp_path / "two.jct")]) == 1
    assert "must be paid for by what is signed" in capsys.readouterr().err
    assert run(["ledger", "sign", str(ledger), "--key", str(key)]) == 0
    assert run([*words, "--release", str(tmp_path / "two.jct"), "--json"]) == 0
    assert '"events": 2' in capsys.readouterr().out
    one = str(tmp_path / "one.jct")
    assert run(["key", "sign", one, "--key", str(key)]) == 0
    assert run(["key", "verify", one, "--public-key", f"{key}.pub"]) == 0
    assert "is what the key" in capsys.readouterr().out
    shutil.copy(tmp_path / "two.jct", one)
    assert run(["key", "verify", one, "--public-key", f"{key}.pub"]) == 1
    assert "`RELEASE` must be the file that was signed" in capsys.readouterr().err
    assert run(["key", "sign", str(ledger), "--key", str(key)]) == 1  # not a release
    assert run(["ledger", "verify", str(ledger), "--signature", f"{ledger}.sig"]) == 2
