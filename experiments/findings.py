"""Sentences of the page that compare figures: each is computed from the results."""

from __future__ import annotations

from figures import RECORDED
from recorded import THEOREM_ROUNDS
from store import Row
from summary import medians, of, table, values

from juncture.mechanisms.dual_query import DualQuery
from juncture.privacy.budget import Budget

# Why a figure of ours is worse than the recorded one, where it is: what was found.
WHY = {
    ("PrivBayes", "model"): "the recorded run had twice the budget for its tables; with that, the "
    "recorded figure comes out (see above)",
}


def compared(rows: list[Row]) -> str:
    """Where ours, at equal budgets, is worse than recorded, and why."""
    worse = []
    for (mechanism, form), told in RECORDED.items():
        for data, recorded in told.items():
            found = medians(
                of(rows, mechanism=mechanism, form=form, setting="ours", data=data), "error"
            )
            if found and recorded and found > 1.05 * recorded:
                why = WHY.get((mechanism, form), "not explained")
                worse.append((f"{mechanism}, {form}", data, recorded, f"{found:.4g}", why))
    if not worse:
        return "No figure of ours is more than 5 % above the recorded one."
    head = ("form", "data", "recorded", "ours", "why")
    return f"### Where ours is more than 5 % above the recorded figure\n\n{table(head, worse)}"


def sweep_words(rows: list[Row]) -> str:
    """Whether the paper's crossing at the largest budget is there."""
    largest = max(dict.fromkeys(row["epsilon"] for row in rows), key=float)
    found = {
        (form, column): medians(of(rows, form=form, epsilon=largest), column)
        for form in dict.fromkeys(row["form"] for row in rows)
        for column in ("workload_error", "measurement_error")
    }
    local = {c: found["local least squares", c] for c in ("workload_error", "measurement_error")}
    sentences = []
    for form in dict.fromkeys(row["form"] for row in rows):
        if form == "local least squares":
            continue
        own = {c: found[form, c] for c in local}
        if None in (*own.values(), *local.values()):
            continue
        asked = (own["workload_error"] or 0.0) / (local["workload_error"] or 1.0)
        seen = (local["measurement_error"] or 0.0) / (own["measurement_error"] or 1.0)
        side = "above" if asked > 1 else "below"
        sentences.append(
            f"- {form}: its error on the workload is {asked:.2f} times that of local least "
            f"squares ({side} it), and on the measurements {seen:.1f} times lower."
        )
    head = f"At epsilon {largest}, beside local least squares:\n\n"
    told = (
        "(The paper: local least squares slightly ahead on the workload, the model ahead more than "
        "threefold on the measurements.)"
    )
    return head + "\n".join(sentences) + "\n\n" + told


def shares_words(rows: list[Row]) -> str:
    """What unequal shares change, in numbers."""
    sentences = []
    for form in ("original", "model"):
        for setting in ("relative shares", "total shares"):
            ratios = []
            for data in dict.fromkeys(row["data"] for row in rows):
                pair = [
                    medians(of(rows, mechanism="HDMM", form=form, setting=s, data=data), "error")
                    for s in (setting, "ours")
                ]
                if pair[0] and pair[1]:
                    ratios.append(f"{data} {pair[0] / pair[1]:.2f}")
            if ratios:
                sentences.append(f"{form}, {setting} over equal ones: {', '.join(ratios)}")
    return "Errors as multiples: " + "; ".join(sentences) + "." if sentences else ""


def rounds_words(rows: list[Row]) -> str:
    """How many rounds each composition allows."""
    lines = []
    sizes = {"titanic": 1304, "adult": 48842, "loans": 42535, "stroke": 19434}
    for data in dict.fromkeys(row["data"] for row in rows):
        if data in sizes:
            allowed = DualQuery(Budget(epsilon=1.0, delta=0.001)).count_rounds(sizes[data])
            lines.append(f"{data} {THEOREM_ROUNDS[data]} and {allowed}")
    if not lines:
        return ""
    return (
        "Rounds of DualQuery that the theorem of its paper allows at epsilon 1 and delta 0.001, "
        f"and that zero-concentrated privacy allows: {', '.join(lines)}."
    )


def gaussian_words(rows: list[Row]) -> str:
    """What a delta of a thousandth saves."""
    ratios = []
    for key in dict.fromkeys((r["mechanism"], r["form"]) for r in of(rows, setting="gaussian")):
        found = []
        for data in dict.fromkeys(row["data"] for row in rows):
            pair = [
                medians(of(rows, mechanism=key[0], form=key[1], setting=s, data=data), "error")
                for s in ("ours", "gaussian")
            ]
            if pair[0] and pair[1]:
                found.append(pair[0] / pair[1])
        if found:
            ratios.append(f"{', '.join(key)} {min(found):.2f} to {max(found):.2f}")
    if not values(of(rows, setting="gaussian"), "error"):
        return ""
    return f"Laplace errors as multiples of Gaussian ones: {'; '.join(ratios)}."
