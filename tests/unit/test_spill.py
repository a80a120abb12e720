"""What a killed process has spilled to the disk is removed when the next one starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from juncture.private.sources.spill import make_spill_folder, remove_abandoned, spill_folder
from processes import started

SPILLING = """
import time
from pathlib import Path
from juncture.private.sources.spill import make_spill_folder
folder = make_spill_folder()
Path(folder, "private").write_text("somebody's record")
print(folder, flush=True)
time.sleep(60)
"""


def test_the_spill_of_a_killed_process_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it lives its folder stays; afterwards the next folder that is made takes it away."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", SPILLING]
    with started(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        own = Path(make_spill_folder())
        assert (left / "private").exists()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with spill_folder() as other:
        assert not left.exists()
        assert own.exists()
        assert own.stat().st_mode & 0o077 == 0
    assert not Path(other).exists()


def test_other_folders_stay(tmp_path: Path) -> None:
    """Those of other machines, and whatever only looks alike."""
    names = ["juncture-spill-elsewhere-1-1-abc", "juncture-spill-odd", "juncture-1", "other"]
    for name in names:
        (tmp_path / name).mkdir()
    remove_abandoned(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
