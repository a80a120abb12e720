"""The demo, run as a person would run it: real curator, real noise, a folder of its own."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from juncture.privacy.ledger import Ledger
from juncture.private.samples import adult_codes, adult_domain
from juncture.publish.release import load
from juncture.workflow.demo import QUESTIONS, Demo

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "juncture", "demo"]
NAMES = {"adult.ledger", "adult.jct", "adult.html", "adult-synthetic.csv", "adult.toml"}


@dataclass(frozen=True)
class Run:
    """A finished demo."""

    folder: Path
    printed: subprocess.CompletedProcess[str]


def called(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The demo in a process of its own, started in a folder."""
    command = [*COMMAND, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=place, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One demo for all tests here."""
    place = tmp_path_factory.mktemp("demo")
    return Run(place / "juncture-demo", called(place))


def test_it_ends_well_and_writes_its_files(run: Run) -> None:
    """The demo ends with exit code 0, says nothing on standard error, and leaves five files."""
    assert (run.printed.returncode, run.printed.stderr) == (0, "")
    assert {path.name for path in run.folder.iterdir()} == NAMES


def test_plain_where_nobody_watches(run: Run) -> None:
    """Not on a terminal there are no colours, no bars, and no line wider than a page."""
    assert "\x1b" not in run.printed.stdout
    assert "█" not in run.printed.stdout
    assert max(map(len, run.printed.stdout.splitlines())) <= 90


def test_the_budget_is_spent_and_no_more(run: Run) -> None:
    """The ledger verifies, has one event for each measured table, and the budget is used up."""
    ledger = Ledger(run.folder / "adult.ledger")
    release = load(run.folder / "adult.jct")
    assert len(ledger.events) == len(release.measurements) == 14
    assert ledger.spent == pytest.approx(1.0)
    assert release.guarantee is not None
    assert list(release.guarantee.events) == [event.publish() for event in ledger.events]
    assert "is refused" in run.printed.stdout


def test_the_truth_is_marked(run: Run) -> None:
    """The warning stands before the first column that is read from the table."""
    shown = run.printed.stdout
    assert 0 < shown.index("NOT PRIVATE") < shown.index("true people")


def test_the_shown_truth_is_true(tmp_path: Path) -> None:
    """What is shown as the true answer is what counting the shipped codes gives."""
    rows = dict(Demo(tmp_path).exact_rows(QUESTIONS[0]))
    columns = dict(zip(adult_domain(), adult_codes().T, strict=True))
    managers = (columns["occupation"] == 4) & (columns["income>50K"] == 1)
    assert rows["Exec-managerial"] == managers.sum()


def test_words_for_codes(run: Run) -> None:
    """Synthetic records and answers are in the data set's words, and records are many."""
    lines = (run.folder / "adult-synthetic.csv").read_text().splitlines()
    assert 47_000 < len(lines) < 51_000
    assert sum('"Private"' in line for line in lines) / len(lines) == pytest.approx(0.69, abs=0.05)
    answer = load(run.folder / "adult.jct").model.sql("SELECT sex, COUNT(*) FROM t GROUP BY sex")
    assert [row[0] for row in answer.rows] == ["Female", "Male"]


def test_what_to_do_next_can_be_done(run: Run) -> None:
    """Every command that the demo proposes about its own files ends well."""
    lines = [line.strip() for line in run.printed.stdout.splitlines()]
    proposed = [shlex.split(line) for line in lines if line.startswith("juncture ")]
    assert {words[1] for words in proposed} == {"explore", "query", "report", "ledger", "plan"}
    for words in proposed:
        if words[1] != "explore":  # which goes on until it is ended
            command = [*COMMAND[:-1], *words[1:]]
            place = run.folder.parent
            done = subprocess.run(command, capture_output=True, text=True, cwd=place, check=False)
            assert (done.returncode, done.stderr) == (0, "")


def test_an_existing_folder_is_refused(run: Run) -> None:
    """A second demo at the same place changes nothing and ends with exit code 1."""
    before = (run.folder / "adult.ledger").read_bytes()
    done = called(run.folder.parent)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: `--folder` must be a new folder")
    assert (run.folder / "adult.ledger").read_bytes() == before


def test_force_replaces_a_demo_and_nothing_else(run: Run, tmp_path: Path) -> None:
    """With --force, a folder that holds anything else is refused and stays as it was."""
    kept = tmp_path / "mine" / "notes.txt"
    kept.parent.mkdir()
    kept.write_text("keep me")
    ledger = kept.parent / "adult.ledger"
    ledger.write_text("mine")
    done = called(tmp_path, "--folder", "mine", "--force")
    assert done.returncode == 1
    assert (kept.read_text(), ledger.read_text()) == ("keep me", "mine")
    Demo(run.folder).begin(force=True)
    assert not Ledger(run.folder / "adult.ledger").events
