"""The experiments run from end to end on a small table, and take up where they stopped."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "experiments" / "reproduce.py"
PARTS = {
    "data_sets", "grid", "sweep", "scaling", "losses", "stopping", "any_width", "any_width_times",
    "adaptive", "ablation", "coverage", "learning", "unseen",
}  # fmt: skip
WITHOUT_PLOT = {
    "data_sets",
    "any_width_times",
    "adaptive",
    "ablation",
    "coverage",
    "learning",
    "unseen",
}


def reproduce(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command as a user would."""
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole quick run."""
    out = tmp_path_factory.mktemp("reproduced")
    done = reproduce("--quick", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    return out


def rows(out: Path, name: str) -> list[dict[str, str]]:
    """The kept rows of an experiment."""
    with (out / "results" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_experiment_leaves_results_plots_and_its_part_of_the_page(quick: Path) -> None:
    """Nothing is missing, and every picture that the page shows exists."""
    names = {path.stem for path in (quick / "results").iterdir()}
    assert names == PARTS
    page = (quick / "RESULTS.md").read_text()
    for part in PARTS:
        assert f"(`{part}`)" in page
    plots = {path.name for path in (quick / "plots").iterdir()}
    shown = {f"{n}.svg" for n in PARTS - WITHOUT_PLOT}
    assert shown <= plots
    assert {name.replace(".svg", ".png") for name in shown} <= plots
    assert all(f"(plots/{name})" in page for name in shown)
    assert "nan" not in page
    assert "PICTURE" not in page


def test_models_beat_the_originals_and_no_data(quick: Path) -> None:
    """On the small table too, at equal budgets."""
    found = {
        (row["mechanism"], row["form"]): float(row["error"])
        for row in rows(quick, "grid")
        if row["setting"] in ("ours", "no data")
    }
    nothing = found["none", "uniform"]
    for mechanism in ("PrivBayes", "DualQuery", "HDMM"):
        assert found[mechanism, "model"] < found[mechanism, "original"] < nothing


def test_records_beat_tables_of_no_distribution(quick: Path) -> None:
    """On the small table too, and where the exact oracle runs they end where it does."""
    kept = rows(quick, "any_width")
    pairs = [row for row in kept if row["part"] == "pairs"]
    records = {row["method"]: float(row["triple_error"]) for row in pairs if not row["step"]}
    relaxed = [float(row["triple_error"]) for row in pairs if row["step"]]
    assert records["records, stopped at the noise"] < min(relaxed)
    exact = {row["method"]: row for row in kept if row["part"] == "exact"}
    for end in ("to convergence", "stopped at the noise"):
        mine, other = (float(exact[f"{o}, {end}"]["triple_error"]) for o in ("records", "exact"))
        assert mine < 1.1 * other


def test_choosing_what_to_measure_beats_a_tree_of_pairs(quick: Path) -> None:
    """On the small table too: of pairs and of triples, from the model and from its records."""
    kept = rows(quick, "adaptive")
    found = {(row["k"], row["mechanism"]): row for row in kept}
    assert {row["k"] for row in kept} == {"2", "3"}
    for k in ("2", "3"):
        for column in ("error", "records_error"):
            assert float(found[k, "aim"][column]) < float(found[k, "mst"][column])


def test_some_cells_can_be_run_alone(tmp_path: Path) -> None:
    """Those with all the values asked for, and no other."""
    done = reproduce(
        "adaptive", "--only", "k=2", "--only", "mechanism=mst", "--quick", "--out", tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert [(row["k"], row["mechanism"]) for row in rows(tmp_path, "adaptive")] == [("2", "mst")]


def test_what_was_run_is_not_run_again(quick: Path) -> None:
    """Only a cell whose rows were lost is run anew, and comes out the same."""
    kept = quick / "results" / "stopping.csv"
    before = rows(quick, "stopping")
    lines = kept.read_text().splitlines(keepends=True)
    kept.write_text("".join(lines[:-1]))
    grid = (quick / "results" / "grid.csv").stat().st_mtime_ns
    done = reproduce("stopping", "--quick", "--out", quick)
    assert done.returncode == 0, done.stderr
    assert (quick / "results" / "grid.csv").stat().st_mtime_ns == grid
    after = rows(quick, "stopping")
    assert [row["cell"] for row in after] == [row["cell"] for row in before]
    assert [row["error"] for row in after] == [row["error"] for row in before]


def test_wrong_names_and_places_are_refused(tmp_path: Path) -> None:
    """Before anything is run."""
    unknown = reproduce("gird", "--quick", "--out", tmp_path)
    assert unknown.returncode == 2
    assert "unknown experiment gird" in unknown.stderr
    mixed = reproduce("--quick")
    assert mixed.returncode == 2
    assert "--out FOLDER" in mixed.stderr


def test_the_page_is_what_the_kept_results_say(tmp_path: Path) -> None:
    """The page in the repository comes from the results in the repository, to the letter."""
    (tmp_path / "results").mkdir()
    kept = ROOT / "experiments" / "results"
    for path in kept.iterdir():
        (tmp_path / "results" / path.name).write_bytes(path.read_bytes())
    done = reproduce("--page-only", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    ours = (ROOT / "experiments" / "RESULTS.md").read_text()
    assert (tmp_path / "RESULTS.md").read_text() == ours


def test_a_table_of_the_users_own_is_compared_too(tmp_path: Path) -> None:
    """Any CSV file: names are left out, a missing value is one, and long numbers are cut."""
    (tmp_path / "data" / "others").mkdir(parents=True)
    lines = ["name;sex;age;smokes;country"]
    for i in range(400):
        smokes = "" if i % 7 == 0 else "yes" if i % 3 else "no"
        lines.append(f"person {i};{'f' if i % 2 else 'm'};{20 + i % 60}.5;{smokes};here")
    (tmp_path / "data" / "others" / "mine.csv").write_text("\n".join(lines))
    only = [f"--only={each}" for each in ("data=mine", "epsilon=1.0", "seed=0", "k=2")]
    done = reproduce("adaptive", "--data", tmp_path / "data", "--out", tmp_path / "out", *only)
    assert done.returncode == 0, done.stderr
    made = rows(tmp_path / "out", "adaptive")
    assert [row["mechanism"] for row in made] == ["tiers", "aim"]
    assert {row["marginals"] for row in made} == {"3"}  # of sex, age and smokes
    assert all(0.0 < float(row["error"]) < 0.5 for row in made)
