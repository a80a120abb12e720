"""`juncture key`: keys, and signatures of releases; those of ledgers are in `juncture ledger`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from juncture.cli.console import refuse_same, require_file, say
from juncture.cli.options import ReleaseFile

app = typer.Typer(
    help="Create keys, and sign and verify releases with them.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

PrivateKey = Annotated[
    Path, typer.Option("--key", metavar="FILE", help="Your private key (juncture key create).")
]
SignatureOut = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="The signature; by default the same name with .sig."
    ),
]
SignatureFile = Annotated[
    Path | None,
    typer.Option(
        "--signature", metavar="FILE", help="The signature; by default the same name with .sig."
    ),
]


@app.command(short_help="Create a private key and its public key.")
def create(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The private key to write.")],
) -> None:
    """Create a private key, which signs, and its public key beside it, which verifies.

    Needs juncture[sign]. The private key is not encrypted, and readable by you alone: keep it away
    from the ledger, since whoever has both can forge and sign. Give FILE.pub to everybody who
    verifies, by a way that nobody can tamper with. An existing file is never replaced.

    \b
    Example:
      juncture key create steward.key
    """
    from juncture.privacy.keys import create_key, name_key, read_public_key

    public = create_key(file)
    say(f"wrote {file}, which signs: keep it secret")
    say(f"wrote {public}, which verifies: give it away")
    say(f"key {name_key(read_public_key(public))}")


@app.command(short_help="Sign a release.")
def sign(release: ReleaseFile, key: PrivateKey, out: SignatureOut = None) -> None:
    """Sign every byte of a release, in a file of its own; the release stays as it is.

    \b
    Example:
      juncture key sign people.jct --key steward.key
    """
    from juncture.privacy.signature import sign_release
    from juncture.publish.release import load

    require_file(release, "RELEASE")
    require_file(key, "--key")
    if out is not None:
        refuse_same("--out", out, [release, key])
    load(release)  # a signature of anything else would say nothing
    made = sign_release(release, key, out)
    say(f"wrote {made.path}: {release} as it is now, signed by the key {made.key}")


@app.command(short_help="Verify the signature of a release.")
def verify(
    release: ReleaseFile,
    public_key: Annotated[
        Path, typer.Option("--public-key", metavar="FILE", help="The key that must have signed it.")
    ],
    signature: SignatureFile = None,
) -> None:
    """Verify that a release is, byte for byte, the one that the owner of a key has signed.

    The release is not opened: verify a file from elsewhere before anything else reads it. The
    exit code is 1 if the file or the signature was altered, or another key has signed.

    \b
    Example:
      juncture key verify people.jct --public-key steward.key.pub
    """
    from juncture.privacy.signature import check_release

    require_file(release, "RELEASE")
    require_file(public_key, "--public-key")
    found = check_release(release, public_key, signature)
    say(f"valid: {release} is what the key {found.key} has signed")
