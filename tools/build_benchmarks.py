"""Write docs/benchmarks.md: accuracy and speed beside other packages, from rows that are kept.

The figures come from `experiments/results` and from `bench/kept`, and nothing is computed here but
medians. Each table says by which command its rows are made anew. A test compares the page with what
it would be.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, median

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS, KEPT = ROOT / "experiments" / "results", ROOT / "bench" / "kept"
Row = dict[str, str]

_HEAD = """# Benchmarks

Accuracy and speed beside mbi, dpsynth and pyAgrum. Every figure is from rows that are kept in the
repository; the command below a table makes them anew, in environments that `make bench` and
`make reproduce` set up. Tables, seeds and settings are in `experiments/RESULTS.md`, with all that
was measured and not only what is shown here. This page is written by `tools/build_benchmarks.py`.

Other packages ran with their own defaults, on the same machine, one after another.
Where a cell is empty, no run is kept.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(render_page(), encoding="utf-8")
    print(f"wrote {PAGE}")


def render_page() -> str:
    """The whole page."""
    parts = [
        _HEAD, _render_steps(), _render_wide_fits(), _render_mechanisms(), _render_networks(),
        _render_wide_tables(),
    ]  # fmt: skip
    return "\n".join(parts)


def read_rows(name: str) -> list[Row]:
    """The kept rows of an experiment."""
    with (RESULTS / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _render_steps() -> str:
    rows = read_rows("scaling")
    sizes = sorted({int(row["attributes"]) for row in rows})
    found = {(row["method"], int(row["attributes"])): row for row in rows}

    def line(label: str, method: str, column: str) -> list[str]:
        cells = (found.get((method, size)) for size in sizes)
        return [label, *(_format_seconds(cell, column) for cell in cells)]

    table = [
        line("Juncture, a step", "juncture", "seconds"),
        line("mbi 2.0.0, a step", "mbi 2.0.0", "seconds"),
        line("Juncture, before the first", "juncture", "before"),
        line("mbi 2.0.0, before the first", "mbi 2.0.0", "before"),
    ]
    return _section(
        "A step of a fit, by the number of attributes (mbi)",
        "Overlapping triples of attributes with few values: one more triple for each attribute. "
        "A step of ours is one of the paper's Algorithm 2, a step of mbi's one of mirror descent; "
        "before the first step, Juncture plans and mbi compiles.",
        ["attributes", *map(str, sizes)],
        table,
        "experiments/reproduce.py scaling --peer-python .bench-venv/bin/python --out again",
    )


def _format_seconds(row: Row | None, column: str) -> str:
    if row is None:
        return ""
    if not row[column]:
        return "not done"
    seconds = float(row[column])
    # The space does not break: a column of numbers is not followed by one of units.
    return f"{seconds:.3g}\u00a0s" if seconds >= 1 else f"{1000 * seconds:.3g}\u00a0ms"


_METHODS = {
    "records, stopped at the noise": "Juncture, records",
    "20,000 records, stopped at the noise": "Juncture, 20,000 records",
    "mbi 2.0.0, approximate, step 1": "mbi 2.0.0, approximate, step 1, its best",
    "mbi 2.0.0, approximate, step 2": "mbi 2.0.0, approximate, step 2, its best",
}


def _render_wide_fits() -> str:
    rows = [row for row in read_rows("any_width") if row["part"] == "pairs"]
    table = []
    for data in ("adult-aim", "titanic-aim"):
        for method, label in _METHODS.items():
            mine = [row for row in rows if (row["data"], row["method"]) == (data, method)]
            if "mbi" in method:  # a row for each step that was looked at: the best, told by truth
                mine = [min(mine, key=lambda row: float(row["triple_error"]))]
            table.append(
                [data, label, _median(mine, "triple_error", ".4f"), _median(mine, "busy", ".3g s"),
                 _median(mine, "peak_mb", ".0f MB")]
            )  # fmt: skip
    return _section(
        "All pairs of a wide table, where no junction tree fits (mbi)",
        "Every pair of attributes is measured. The error is the mean total variation distance over "
        "triples, which nobody measured. Medians over seeds; of mbi's path, the best point, which "
        "only somebody who knows the truth can find. Seconds are of all processors.",
        ["table", "method", "error of triples", "seconds", "memory"],
        table,
        "experiments/reproduce.py any_width --peer-python .bench-venv/bin/python --out again",
    )


_MECHANISMS = ("tiers", "aim", "mst", "mwem", "dpsynth aim", "dpsynth mst", "dpsynth swift")


def _render_mechanisms() -> str:
    rows = read_rows("adaptive")
    settings = sorted({(r["data"], int(r["k"]), float(r["epsilon"])) for r in rows})
    table = []
    for data, k, epsilon in settings:
        mine = [
            row
            for row in rows
            if (row["data"], int(row["k"]), float(row["epsilon"])) == (data, k, epsilon)
        ]
        words = f"{data}, {'pairs' if k == 2 else 'triples'}, ε = {epsilon:g}"
        table.append([words, *(_describe_mechanism(mine, name) for name in _MECHANISMS)])
    return _section(
        "Mechanisms, from a table to synthetic records (dpsynth)",
        "Delta is 1e-6. The error is the mean total variation distance over all pairs or triples, "
        "of as many synthetic records as the table has: the mean over seeds, then the median "
        "seconds of all processors.",
        ["table, marginals, budget", *_MECHANISMS],
        table,
        "experiments/reproduce.py adaptive --data FOLDER --dpsynth-python .peer-venv/bin/python "
        "--out again",
    )


def _describe_mechanism(rows: Iterable[Row], name: str) -> str:
    mine = [row for row in rows if row["mechanism"] == name]
    if not mine:
        return ""
    error = mean(float(row["records_error"]) for row in mine)
    return f"{error:.4f}, {median(float(row['busy']) for row in mine):.3g} s"


def _render_networks() -> str:
    return _quote_kept(
        "Questions to Bayesian networks (pyAgrum)",
        "Well-known networks, asked of both packages, on a busy machine of two cores: medians of\n"
        "three rounds, the sides alternating. What the command below printed:",
        "networks.txt",
        ".venv/bin/python bench/networks.py --peer-python .bench-venv/bin/python "
        "--networks asia,sachs,child,insurance",
    )


def _render_wide_tables() -> str:
    return _quote_kept(
        "Whole releases of wide tables",
        "From a CSV file to a release, epsilon 1 and delta 1e-6, every pair of columns asked for:\n"
        "seconds by the clock and of all processors, on two free cores, and the largest memory.\n"
        "Tables are made from a seed; rows are of single runs. Direct and residual fit all 4,950\n"
        "pairs and take minutes, which they announce; hdmm and dualquery need a tree and refuse.\n"
        "Beyond 50 columns AIM has fewer rounds than on smaller tables. Printed by the command\n"
        "below, with `--shape` and `--mechanism` for some rows alone:",
        "wide_tables.txt",
        ".venv/bin/python bench/wide_tables.py --mechanism all",
    )


def _quote_kept(title: str, words: str, file: str, command: str) -> str:
    """A part of the page with what a command printed, as it was kept."""
    kept = (KEPT / file).read_text(encoding="utf-8").rstrip()
    return f"## {title}\n\n{words}\n\n```text\n{kept}\n```\n\n    {command}\n"


def _median(rows: Sequence[Row], column: str, form: str) -> str:
    number, _, unit = form.partition(" ")
    values = [float(row[column]) for row in rows if row[column]]
    return f"{median(values):{number}} {unit}".rstrip() if values else ""


def _section(
    title: str, words: str, heads: Sequence[str], rows: Sequence[Sequence[str]], command: str
) -> str:
    """A heading, what is measured, a table, and the command that makes its rows anew."""
    lines = [heads, ["---", *(["---:"] * (len(heads) - 1))], *rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"## {title}\n\n{words}\n\n{table}\n\n    .venv/bin/python {command}\n"


if __name__ == "__main__":
    main()
