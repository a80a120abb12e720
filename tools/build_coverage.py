"""Write the table of docs/intervals.md that says how often intervals held the truth.

Its figures come from the kept rows of the experiment `coverage`. They stand between two marks on
the page; the rest of it is written by people. A test compares the page with what it would be.
"""

from __future__ import annotations

from build_benchmarks import ROOT, Row, read_rows
from page_parts import PagePart

PART = PagePart(ROOT / "docs" / "intervals.md", "coverage", "build_coverage.py")
FORMS = ("cell", "ranges", "sets", "average")
SIZES = ("below 10", "10 to 100", "above 100")


def main() -> None:
    """Write the page with a fresh table."""
    PART.write(render_table(read_rows("coverage")))


def render_table(rows: list[Row]) -> str:
    """A line for each basis and table: how many of a hundred answers were inside."""
    head = ("basis", "table", "cells", "all", *FORMS, *SIZES, "least and most", "width")
    lines = [head, ("---",) * len(head)]
    for basis in ("measured", "implied", "assumed"):
        for data in dict.fromkeys(row["data"] for row in rows):
            own = [row for row in rows if (row["basis"], row["data"]) == (basis, data)]
            if own:
                lines.append(_render_line(basis, data, own))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _render_line(basis: str, data: str, rows: list[Row]) -> tuple[str, ...]:
    single = sorted(100 * int(row["inside"]) / int(row["answers"]) for row in rows)
    ratios = sorted(float(row["half_width"]) / max(float(row["error"]), 1e-9) for row in rows)
    groups = [_share(rows, f"{group}: inside", f"{group}: answers") for group in (*FORMS, *SIZES)]
    return (
        basis, data, str(len(rows)), _share(rows, "inside", "answers"), *groups,
        f"{single[0]:.0f} to {single[-1]:.0f}", f"{ratios[len(ratios) // 2]:.1f}",
    )  # fmt: skip


def _share(rows: list[Row], inside: str, answers: str) -> str:
    """Of a hundred answers; empty where there are too few to say."""
    n = sum(int(row[answers]) for row in rows)
    return f"{100 * sum(int(row[inside]) for row in rows) / n:.1f}" if n >= 10 else ""


if __name__ == "__main__":
    main()
