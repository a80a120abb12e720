"""Draw the pictures of docs/choosing.md, as SVG files in docs/pictures.

All three are drawn to scale: two from formulas, one from kept rows of experiments. Run it after
changing a picture or those rows; a test compares the files with what they would be.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from build_pictures import FOLDER, Point, picture, words

from juncture._util.html import Markup, tag
from juncture.privacy.accounting import rho_of_epsilon

ROWS = Path(__file__).parents[1] / "experiments" / "results" / "adaptive.csv"
LEFT, RIGHT, TOP, FLOOR = 58.0, 350.0, 24.0, 214.0
HEIGHT = 256
EPSILON, DELTA = 1.0, 1e-6
MECHANISMS = ("aim", "mst", "mwem", "tiers")


def main() -> None:
    """Write all pictures."""
    for name, content in pictures().items():
        (FOLDER / name).write_text(content, encoding="utf-8")
        print(f"wrote {FOLDER / name}")


def pictures() -> dict[str, str]:
    """Every file by its name."""
    drawn = {
        "choosing-epsilon.svg": draw_belief(),
        "choosing-delta.svg": draw_noise(),
        "choosing-mechanism.svg": draw_errors(),
    }
    return {name: f"{content}\n" for name, content in drawn.items()}


def bound_belief(epsilon: float) -> float:
    """What somebody who held it for as likely as not can believe at most, after a release."""
    return 1.0 / (1.0 + math.exp(-epsilon))


def laplace_stddev(n_tables: int) -> float:
    """The noise of a count where an epsilon of 1 is divided between so many tables."""
    return math.sqrt(2.0) * n_tables / EPSILON


def gaussian_stddev(n_tables: int) -> float:
    """The same with a delta of 1e-6."""
    return math.sqrt(n_tables / (2.0 * rho_of_epsilon(EPSILON, DELTA)))


def mean_errors(data: str = "titanic-aim", k: int = 3) -> dict[str, dict[float, float]]:
    """For each mechanism the mean error of the kept rows, by epsilon."""
    with ROWS.open(newline="", encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file) if (r["data"], int(r["k"])) == (data, k)]
    budgets = sorted({float(row["epsilon"]) for row in rows})
    return {
        name: {
            epsilon: mean(
                float(row["error"])
                for row in rows
                if (row["mechanism"], float(row["epsilon"])) == (name, epsilon)
            )
            for epsilon in budgets
        }
        for name in MECHANISMS
    }


def draw_belief() -> Markup:
    """The most that a release can make of a belief of one in two, by epsilon."""

    def place(epsilon: float) -> Point:
        return across(epsilon / 5.0), up((bound_belief(epsilon) - 0.5) / 0.5)

    marks = []
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        x, y = place(epsilon)
        marks += [
            tag("circle", cx=x, cy=y, r=4.0, class_="bar"),
            words(
                x + 8,
                y + (2 if epsilon < 0.3 else 14),
                f"ε = {epsilon:g}: {100 * bound_belief(epsilon):.0f}%",
                "small",
            ),
        ]
    return chart(
        "what can be believed of one person at most, from 50%",
        [(0.0, "0"), (0.2, "1"), (0.4, "2"), (0.6, "3"), (0.8, "4"), (1.0, "5")], "epsilon",
        [(0.0, "50%"), (0.5, "75%"), (1.0, "100%")],
        curve([place(step / 20) for step in range(101)], "way"), *marks,
    )  # fmt: skip


def draw_noise() -> Markup:
    """The noise of a count, by the number of tables that share the budget."""
    top, n_most = 90.0, 60

    def place(n: int, stddev: float) -> Point:
        return across(n / n_most), up(stddev / top)

    laplace = [place(n, laplace_stddev(n)) for n in range(1, n_most + 1)]
    gaussian = [place(n, gaussian_stddev(n)) for n in range(1, n_most + 1)]
    return chart(
        "standard deviation of a count, at ε = 1, in records",
        [(0.0, "0"), (1 / 3, "20"), (2 / 3, "40"), (1.0, "60")], "tables that share the budget",
        [(0.0, "0"), (1 / 3, "30"), (2 / 3, "60"), (1.0, "90")],
        curve(laplace, "back"), curve(gaussian, "way"),
        words(laplace[-1][0] + 6, laplace[-1][1] + 4, "Laplace, ε alone", "flag small"),
        words(gaussian[-1][0] + 6, gaussian[-1][1] + 4, "Gauss, δ = 1e-6", "accent small"),
    )  # fmt: skip


def draw_errors() -> Markup:
    """The errors of mechanisms, by epsilon."""
    errors, top = mean_errors(), 0.6
    lines: list[Markup] = []
    for name, by_budget in errors.items():
        points = [
            (across(index / (len(by_budget) - 1)), up(error / top))
            for index, error in enumerate(by_budget.values())
        ]
        lines.append(curve(points, "way" if name == "tiers" else "line"))
    ends = sorted((list(by_budget.values())[-1], name) for name, by_budget in errors.items())
    free = FLOOR  # where the next name may stand, from below
    for error, name in ends:
        free = min(up(error / top) + 4, free - 15.0)
        kind = "accent small bold" if name == "tiers" else "small"
        lines.append(words(RIGHT + 8, free, name, kind))
    budgets = list(errors["tiers"])
    ticks = [(i / (len(budgets) - 1), f"{b:g}") for i, b in enumerate(budgets)]
    return chart(
        "mean error of the triples of Titanic, at δ = 1e-6", ticks, "epsilon",
        [(0.0, "0"), (1 / 3, "0.2"), (2 / 3, "0.4"), (1.0, "0.6")], *lines,
    )  # fmt: skip


def chart(
    title: str,
    below: Sequence[tuple[float, str]],
    axis: str,
    beside: Sequence[tuple[float, str]],
    *drawn: Markup,
) -> Markup:
    """A chart with its axes: marks are shares of the way along an axis, with their texts."""
    lines = [
        part
        for share, text in beside
        for part in (
            tag("path", d=f"M{LEFT:.1f} {up(share):.1f}H{RIGHT:.1f}", class_="thin"),
            words(LEFT - 8, up(share) + 5, text, "quiet small end"),
        )
    ]
    ticks = [words(across(share), FLOOR + 18, text, "quiet small middle") for share, text in below]
    labels = [words(LEFT, 14, title, "small"), words(RIGHT, FLOOR + 36, axis, "quiet small end")]
    return picture(HEIGHT, lines, ticks, labels, list(drawn))


def across(share: float) -> float:
    """Where a share of the horizontal axis lies."""
    return LEFT + (RIGHT - LEFT) * share


def up(share: float) -> float:
    """Where a share of the vertical axis lies."""
    return FLOOR - (FLOOR - TOP) * share


def curve(points: Sequence[Point], kind: str) -> Markup:
    """A line through points."""
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return tag("path", d=path, class_=kind)


if __name__ == "__main__":
    main()
