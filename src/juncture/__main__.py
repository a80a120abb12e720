"""The `juncture` command, also as `python -m juncture`."""

import signal

# While the commands are imported there is nothing to clean up: Ctrl-C ends the process in silence.
signal.signal(signal.SIGINT, signal.SIG_DFL)

from juncture.cli.main import main  # noqa: E402

if __name__ == "__main__":
    main()
