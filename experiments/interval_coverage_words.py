"""The section of the page on intervals: how often they hold the truth."""

from __future__ import annotations

from interval_coverage import CHECK, TESTED_ON, TUNED_ON
from store import Row
from summary import of, table


def describe_coverage(rows: list[Row]) -> str:
    """A line for each cell and basis: all answers, then by form and by size."""
    groups = ("all", "cell", "ranges", "sets", "average", "below 10", "10 to 100", "above 100")
    keys = ("data", "mechanism", "noise", "epsilon", "basis")
    lines = []
    for key in dict.fromkeys(tuple(row[name] for name in keys) for row in rows):
        own = of(rows, **dict(zip(keys, key, strict=True)))
        found = {row["group"]: row for row in own}
        shares = [f"{100 * float(found[g]['covered']):.0f}" if g in found else "" for g in groups]
        whole = found["all"]
        ratio = float(whole["half_width"]) / max(float(whole["error"]), 1e-9)
        lines.append((*key, whole["runs"], whole["answers"], *shares, f"{ratio:.1f}"))
    head = (*keys, "runs", "answers", *groups, "half-width / error")
    return f"""## Beyond the paper: how often intervals hold the truth (`coverage`)

Releases with a check of {100 * CHECK:.0f} %, new noise each, and random questions to each: how
many of a hundred answers lay inside their interval of 95 %, by form and, for counts, by the size of
the true answer. The last column is the median half-width over the median error. Some constants were
chosen on {" and ".join(TUNED_ON)}, none on {" and ".join(TESTED_ON)}. Answers of one run depend on
each other, so few runs say little.

{table(head, lines)}
"""
