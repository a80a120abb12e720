"""The section of the page on intervals: how often they hold the truth."""

from __future__ import annotations

from interval_coverage import CHECK, GROUPS, N_CELLS, TESTED_ON, TUNED_ON
from store import Row
from summary import table

# What the share inside should lie between, in percent.
GOALS = {"measured": (93.0, 98.0), "implied": (93.0, 98.0), "assumed": (90.0, 99.0)}
# Groups with fewer answers than this say too little.
_MIN_ANSWERS = 100


def describe_coverage(rows: list[Row]) -> str:
    """A line for each cell and basis: all answers, then by form and by size."""
    keys = ("data", "mechanism", "noise", "epsilon", "basis")
    lines = [
        (
            *(row[name] for name in keys),
            row["runs"],
            row["answers"],
            _share(row["inside"], row["answers"]),
            *(_share(row[f"{g}: inside"], row[f"{g}: answers"]) for g in GROUPS),
            f"{float(row['half_width']) / max(float(row['error']), 1e-9):.1f}",
        )
        for row in rows
    ]
    head = (*keys, "runs", "answers", "all", *GROUPS, "half-width / error")
    n_run = len({row["cell"] for row in rows})
    return f"""## Beyond the paper: how often intervals hold the truth (`coverage`)

Releases with a check of {100 * CHECK:.0f} %, new noise each, and random questions to each: how
many of a hundred answers lay inside their interval of 95 %, by form and, for counts, by the size of
the true answer; empty where there are fewer than ten. The last column is the median half-width of
counts over their median error. Tables are cut to the columns of their five smallest triples of the
paper, or of ten random pairs. Constants were chosen on {", ".join(TUNED_ON)},
none on {" and ".join(TESTED_ON)}, but that counts may reach zero was added after a look at loans.
Answers of one run depend on each other. {n_run} of {N_CELLS} cells were run: each has one of five
tables, of three mechanisms, of two noises and of three epsilons.

{_summarise(rows)}

{table(head, lines)}
"""


def _summarise(rows: list[Row]) -> str:
    """How many of the cells are where they should be, and the shares over all of them."""
    lines = []
    for basis, (low, high) in GOALS.items():
        for names, words in ((TUNED_ON, "tuned on"), (TESTED_ON, "not tuned on")):
            own = [row for row in rows if row["basis"] == basis and row["data"] in names]
            if not own:
                continue
            shares = [100 * int(row["inside"]) / int(row["answers"]) for row in own]
            missed = [
                f"{row['data']} {row['mechanism']} {row['noise']} {row['epsilon']} ({share:.0f})"
                for row, share in zip(own, shares, strict=True)
                if not low <= share <= high and int(row["answers"]) >= _MIN_ANSWERS
            ]
            whole = [_sum(own, "inside", "answers")]
            whole += [_sum(own, f"{g}: inside", f"{g}: answers") for g in GROUPS]
            ratios = sorted(float(r["half_width"]) / max(float(r["error"]), 1e-9) for r in own)
            lines.append(
                (basis, words, len(own), *whole, f"{ratios[len(ratios) // 2]:.1f}",
                 f"{low:.0f} to {high:.0f}", "; ".join(missed) or "none")
            )  # fmt: skip
    head = (
        "basis", "tables", "cells", "all", *GROUPS, "half-width / error", "goal", "cells missed"
    )  # fmt: skip
    return table(head, lines)


def _sum(rows: list[Row], inside: str, answers: str) -> str:
    return _share(str(sum(int(r[inside]) for r in rows)), str(sum(int(r[answers]) for r in rows)))


def _share(inside: str, answers: str) -> str:
    n = int(answers)
    return f"{100 * int(inside) / n:.1f}" if n >= 10 else ""
