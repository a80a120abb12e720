"""`juncture explore`: a release in the browser."""

from __future__ import annotations

import signal
import threading
from typing import Annotated

import typer

from juncture.cli.console import require_file
from juncture.cli.options import ReleaseFile
from juncture.errors import JunctureError


def explore(
    release: ReleaseFile,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Where to listen. Any other address than the default may let other machines in.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="NUMBER", help="The port; else 8417, or a free one."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="TEXT", help="The key in the address; else a new one."),
    ] = None,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = False,
) -> None:
    """Look at a release in the browser: choose columns and conditions, ask in SQL, download.

    The page knows the release alone, so it can never show more. Only this machine can reach it,
    unless another address is asked for. Ctrl-C ends it.

    \b
    Example:
      juncture explore people.jct --open
    """
    require_file(release, "RELEASE")
    try:
        from juncture.publish.explorer.server import serve
    except ModuleNotFoundError as missing:
        raise JunctureError(
            f"The explorer needs a package that is not installed ({missing.name}). Install "
            "juncture[explore]."
        ) from missing
    if threading.current_thread() is threading.main_thread():
        # Ctrl-C is how this command ends well: once the page is served, it is no interruption.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    serve(release, host=host, port=port, token=token, open_browser=open_browser)
