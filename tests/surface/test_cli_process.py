"""The command line as a process of its own: quick, quiet, safe to interrupt, completing."""

from __future__ import annotations

import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE

import pytest

from juncture.cli.main import run
from juncture.privacy.ledger import Ledger
from processes import started, wait_until
from tables import Table, write_table

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "juncture"]
# Python may end by the signal itself, which a shell reports as 130 too.
INTERRUPTED = (130, -signal.SIGINT)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """The private table."""
    return write_table(tmp_path)


def release(table: Table, *more: str) -> list[str]:
    """The words of a release command."""
    files = ["--out", str(table.folder / "x.jct"), "--ledger", str(table.folder / "x.ledger")]
    return ["release", str(table.data), "--schema", str(table.schema), *files, *more]


def called(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, with more variables in its environment."""
    environment = {**os.environ, **more}
    command = [*COMMAND, *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_help_imports_nothing_slow() -> None:
    """Neither NumPy nor DuckDB nor rich is imported to say how a command is called."""
    script = (
        "import sys; from juncture.cli.main import run; code = run(['release', '--help']); "
        "print(code, sorted({'numpy', 'duckdb', 'pyarrow', 'rich', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0 []"


def test_quiet_when_not_on_a_terminal(table: Table) -> None:
    """A release prints its summary and nothing else: no bars, no colours."""
    done = called(*release(table, "--epsilon", "1"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "fitting" not in done.stdout


def test_bars_on_a_terminal(table: Table) -> None:
    """On a terminal the fit is shown while it runs, and the summary stays."""
    printed, code = on_a_terminal(release(table, "--epsilon", "1", "--mechanism", "mwem"))
    assert code == 0
    assert "choosing and measuring" in printed
    assert any("wrote" in line for line in printed.splitlines()[-9:])


def test_errors_have_exit_codes_and_one_line() -> None:
    """A process ends with the code that the page promises."""
    done = called("query", "missing.jct", "SELECT")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert called("query").returncode == 2
    assert called().returncode == 2
    assert "Usage: juncture" in called().stderr


def test_ctrl_c_during_a_release(table: Table) -> None:
    """In the middle of its rounds: 130, a ledger that is true, one clear line, and it goes on."""
    words = release(table, "--epsilon", "1", "--mechanism", "mwem", "--marginals", "2")
    ledger = table.folder / "x.ledger"
    with started([*COMMAND, *words], stdout=PIPE, stderr=PIPE) as process:
        wait_for(lambda: ledger.exists() and ledger.read_bytes().count(b"\n") >= 3, process)
        process.send_signal(signal.SIGINT)
        out, beside = process.communicate(timeout=60)
    left = sorted(path.name for path in table.folder.iterdir())
    assert (process.returncode in INTERRUPTED, out) == (True, "")
    assert left == ["people.csv", "people.toml", "x.jct.partial", "x.ledger"]
    assert "Traceback" not in beside
    assert "had been paid for" in beside
    assert "run it again with --resume" in beside
    command = f"juncture {shlex.join([*words, '--resume'])}"
    assert f"to go on with what was paid for: {command}" in beside
    assert beside.splitlines()[-1] == "error: interrupted. No file was left half written."
    assert called("ledger", "verify", str(ledger)).returncode == 0
    assert Ledger(ledger).spent > 0
    assert run([*words, "--resume"]) == 0
    assert Ledger(ledger).spent <= 1.0 + 1e-9
    assert not (table.folder / "x.jct.partial").exists()


@pytest.mark.parametrize("seconds", [0.1, 0.3, 0.6, 0.9])
def test_ctrl_c_at_any_moment(seconds: float, table: Table) -> None:
    """Whenever it comes, the files are whole or absent and the ledger verifies."""
    command = [*COMMAND, *release(table, "--epsilon", "1")]
    with started(command, stdout=subprocess.DEVNULL, stderr=PIPE) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, beside = process.communicate(timeout=60)
    assert process.returncode in (0, *INTERRUPTED), beside
    assert "Traceback" not in beside
    left = {path.name for path in table.folder.iterdir()}
    assert left <= {"people.csv", "people.toml", "x.ledger", "x.jct"}
    assert process.returncode != 0 or "x.jct" in left
    if "x.jct" in left:  # it had come too late
        assert run(["query", str(table.folder / "x.jct"), "--marginal", "sex"]) == 0
    if "x.ledger" in left:
        assert run(["ledger", "verify", str(table.folder / "x.ledger")]) == 0


def test_a_request_to_end_leaves_nothing_behind(table: Table) -> None:
    """A process that is asked to end cleans up what it was writing, as after Ctrl-C."""
    assert run(release(table, "--epsilon", "1")) == 0
    out = table.folder / "records.csv"
    words = ["sample", str(table.folder / "x.jct"), "--out", str(out), "--records", str(10**12)]
    words.append("--independent")  # in constant memory
    written = lambda: any(p.stat().st_size > 0 for p in table.folder.glob(".records.csv.*"))  # noqa: E731
    with started([*COMMAND, *words], stderr=PIPE) as process:
        wait_for(written, process)
        process.send_signal(signal.SIGTERM)
        _, beside = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "Traceback" not in beside
    assert {p.name for p in table.folder.iterdir()} == {
        "people.csv", "people.toml", "x.jct", "x.ledger"
    }  # fmt: skip


def test_the_first_command_says_that_it_compiles(table: Table, tmp_path: Path) -> None:
    """Whoever waits for the compiler is told so, on a terminal; later nothing is said."""
    words = release(table, "--epsilon", "1", "--marginals", "1")
    environment = {"JUNCTURE_CACHE": str(tmp_path / "cache")}
    printed, code = on_a_terminal(words, environment)
    assert code == 0
    assert "Juncture compiles its routines" in printed
    again, _ = on_a_terminal(
        ["query", str(table.folder / "x.jct"), "--marginal", "sex"], environment
    )
    assert "compiles" not in again


def test_ctrl_c_is_how_exploring_ends_well(table: Table) -> None:
    """The explorer ends with exit code 0 and without an error when its page is served."""
    assert run(release(table, "--epsilon", "1", "--marginals", "1")) == 0
    words = ["explore", str(table.folder / "x.jct"), "--port", "0"]
    with started([*COMMAND, *words], stdout=PIPE, stderr=PIPE) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if "Ctrl-C" in line)
        time.sleep(0.5)  # the address is printed just before the server begins
        process.send_signal(signal.SIGINT)
        out, beside = process.communicate(timeout=60)
    assert (process.returncode, out, beside) == (0, "Stopped.\n", "")


def test_a_reader_that_has_had_enough(table: Table) -> None:
    """Output into a closed pipe ends the command without a word."""
    assert run([*release(table, "--epsilon", "1")]) == 0
    words = " ".join([*COMMAND, "query", str(table.folder / "x.jct"), "--marginal", "age,sex"])
    shell = f"{words} -f csv | head -n 1"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("age,sex,count\n", "")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("juncture sch", {"schema"}),
        ("juncture re", {"release", "report"}),
        ("juncture ledger s", {"show", "sign"}),
        ("juncture release --mech", {"--mechanism"}),
        ("juncture release --mechanism mw", {"mwem"}),
    ],
)
def test_shells_complete(typed: str, expected: set[str]) -> None:
    """The shell's own protocol gets the commands, options and choices that begin so."""
    words = typed.split(" ")
    done = called(
        _JUNCTURE_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(len(words) - 1)
    )
    assert set(done.stdout.split()) == expected


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for something that a process does, as long as it runs."""

    def happened() -> bool:
        found = condition()
        assert found or process.poll() is None, "the process ended too early"
        return found

    wait_until(happened)


def on_a_terminal(words: list[str], more: dict[str, str] | None = None) -> tuple[str, int]:
    """What a command prints on a terminal of its own, and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, [*COMMAND, *words], {**os.environ, **(more or {})})
    printed = b""
    while True:
        ready, _, _ = select.select([terminal], [], [], 900)
        if not ready:
            os.kill(child, signal.SIGKILL)
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the terminal is gone
            break
        if not part:
            break
        printed += part
    _, status = os.waitpid(child, 0)
    return printed.decode(), os.waitstatus_to_exitcode(status)
