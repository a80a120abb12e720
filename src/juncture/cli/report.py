"""`juncture report`: a web page about a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from juncture.cli.console import refuse_existing, require_file, say
from juncture.cli.options import Force, ReleaseFile


def report(
    release: ReleaseFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The HTML file to write. By default, the name of RELEASE with .html.",
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(
            "--title",
            "-t",
            metavar="TEXT",
            help="The heading of the page. By default, made from the name of RELEASE.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a web page that says what was released, with which guarantee, and how well it fits.

    It is one HTML file that opens in any browser, without a network connection.

    \b
    Example:
      juncture report people.jct --out people.html --title "People of the north, 2024"
    """
    from juncture.publish.release import load
    from juncture.publish.report.document import write_report

    target = out or release.with_suffix(".html")
    require_file(release, "RELEASE")
    refuse_existing(target, force=force, read=[release])
    say(f"wrote {write_report(load(release), target, title=title, source=release)}")
