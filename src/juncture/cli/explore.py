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
            help="The address to listen on. With another than the default, other machines may be "
            "able to connect.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="NUMBER",
            help="The port to listen on. By default 8417, or any free one if that is taken.",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TEXT",
            help="The secret in the page's address. By default a random one.",
        ),
    ] = None,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = False,
) -> None:
    """Explore a release in the browser: choose columns and conditions, ask in SQL, download.

    The page is made from the release alone, so it cannot show anything else. Only this machine can
    open it, unless --host says otherwise. Press Ctrl-C to stop.

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
        # Ctrl-C is the normal way to stop this command, not an interruption.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    serve(release, host=host, port=port, token=token, open_browser=open_browser)
