"""Draw the pictures of docs/how-it-works.md, as SVG files in docs/pictures.

Each follows the colour scheme of the page that shows it. What is drawn to scale is computed here.
Run it after changing a picture; a test compares the files with what they would be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root

from juncture._util.html import Markup, join, tag
from juncture.publish.report.palette import DARK, LIGHT, css_variables

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
_STYLE = f"""
svg{{{css_variables(LIGHT)}font:15px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}}
@media(prefers-color-scheme:dark){{svg{{{css_variables(DARK)}}}}}
text{{fill:var(--ink)}}.quiet{{fill:var(--quiet)}}.small{{font-size:13px}}
.accent{{fill:var(--accent)}}.flag{{fill:var(--flag)}}.bold{{font-weight:600}}
.middle{{text-anchor:middle}}.end{{text-anchor:end}}
.box{{fill:var(--card);stroke:var(--line);stroke-width:1.5}}
.wash{{fill:var(--wash);stroke:var(--accent);stroke-width:1.5}}
.line{{fill:none;stroke:var(--quiet);stroke-width:1.5}}
.thin{{fill:none;stroke:var(--line);stroke-width:1.5}}
.way{{fill:none;stroke:var(--accent);stroke-width:2}}
.back{{fill:none;stroke:var(--flag);stroke-width:2;stroke-dasharray:5 4}}
.bar{{fill:var(--accent)}}.odd{{fill:var(--flag)}}
""".replace("\n", "")
WIDTH = 480
Point = tuple[float, float]

# The example of the page: a column of five values, and a mean and a mean square with their noise.
VALUES = (-2, -1, 0, 1, 2)
NOISY = (1.0, 0.1)
SCALES = (0.3, 0.4)


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, content in pictures().items():
        (FOLDER / name).write_text(content, encoding="utf-8")
        print(f"wrote {FOLDER / name}")


def pictures() -> dict[str, str]:
    """Every file by its name."""
    drawn: dict[str, Callable[[], Markup]] = {
        "door.svg": door,
        "polytope.svg": polytope,
        "entropy.svg": entropy,
        "tree.svg": tree,
    }
    return {name: f"{draw()}\n" for name, draw in drawn.items()}


def door() -> Markup:
    """The private side, the door, the public side."""
    return picture(
        268,
        box(2, 4, 140, 260, "box"), words(72, 30, "private", "quiet middle"),
        *(box(36, 52 + 14 * row, 72, 14, "thin") for row in range(4)),
        tag("path", d="M60 52V108M84 52V108", class_="thin"),
        words(72, 132, "the table", "middle"),
        arrow((72, 144), (72, 172)),
        words(72, 196, "exact counts", "middle"),
        arrow((143, 190), (170, 190)),
        box(170, 4, 140, 260, "wash"), words(240, 30, "the door", "accent middle bold"),
        words(240, 76, "the curator", "middle"),
        words(240, 122, "1. pays in", "middle"), words(240, 142, "the ledger", "middle"),
        words(240, 184, "2. draws and", "middle"), words(240, 204, "adds noise", "middle"),
        words(240, 244, "one way only", "quiet small middle"),
        arrow((311, 190), (338, 190)),
        box(338, 4, 140, 260, "box"), words(408, 30, "public", "quiet middle"),
        words(408, 196, "measurements", "middle"),
        arrow((408, 176), (408, 148)),
        words(408, 138, "the model", "middle bold"),
        arrow((408, 118), (408, 92)),
        words(408, 62, "answers,", "middle"), words(408, 82, "records, report", "middle"),
        words(408, 244, "costs no more", "quiet small middle"),
    )  # fmt: skip


def polytope() -> Markup:
    """Means and mean squares that some table could have, and the way of a noisy answer into them.

    The axes are scaled by the standard deviations of the noise, so the nearest point looks like it.
    """
    corners = [at(k, k**2) for k in VALUES]
    best = nearest_on_edge(NOISY)
    return picture(
        384,
        tag("path", d="M40 20V354H470", class_="line"),
        words(255, 376, "mean of X", "quiet middle"),
        tag("text", "mean square of X", class_="quiet middle",
            transform="translate(28 180) rotate(-90)"),
        tag("path", d=closed(corners), class_="wash"),
        words(*shifted(at(0, 3), 0, 0), "all answers that", "middle"),
        words(*shifted(at(0, 3), 0, 20), "some table has", "middle"),
        arrow(at(*NOISY), at(*best), "back"),
        [dot(corner, "accent") for corner in corners],
        [words(*named(k), f"X = {signed(k)}", "small middle") for k in VALUES],
        dot(at(*NOISY), "flag"), dot(at(*best), "bar"),
        words(*shifted(at(*NOISY), 12, 5), "the noisy", "flag"),
        words(*shifted(at(*NOISY), 12, 23), "answer", "flag"),
        words(*shifted(at(*best), -12, -8), "the estimate", "accent end bold"),
    )  # fmt: skip


def at(mean: float, square: float) -> Point:
    """A point of the plane of means and mean squares, in pixels."""
    return 255 + 100 * mean * SCALES[1] / 0.4, 330 - 100 * square * SCALES[0] / 0.4


def named(value: int) -> Point:
    """Where the name of a corner goes."""
    right, down = {-2: (10, -10), -1: (-34, 14), 0: (0, -12), 1: (34, 14), 2: (0, -10)}[value]
    return shifted(at(value, value**2), right, down)


def signed(value: int) -> str:
    """A number with a true minus."""
    return str(value).replace("-", "−")


def nearest_on_edge(point: Point) -> Point:
    """The nearest answer on the edge from 0 to 1, in units of the noise."""
    way = 1.0 / np.array(SCALES)
    share = float((np.array(point) / SCALES) @ way / (way @ way))
    return share, share


def entropy() -> Markup:
    """Two distributions with the same two moments, one of maximum entropy."""
    even = maximum_entropy(0.4, 1.5)
    jagged = even + 0.06 * np.array([1, -3, 3, -1, 0])  # has no zeroth, first or second moment
    return picture(
        236,
        bars(jagged, 20, "odd"), bars(even, 262, "bar"),
        words(120, 226, "one that fits", "flag middle"),
        words(362, 226, "the most even that fits", "accent middle bold"),
    )  # fmt: skip


def maximum_entropy(mean: float, square: float) -> NDArray[np.float64]:
    """The probabilities with that mean and mean square: exp(a k + b k^2), normalised."""
    numbers = np.array(VALUES, dtype=np.float64)

    def of(potentials: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.exp(potentials[0] * numbers + potentials[1] * numbers**2)
        return np.asarray(weights / weights.sum())

    def off(potentials: NDArray[np.float64]) -> list[float]:
        chances = of(potentials)
        return [float(chances @ numbers) - mean, float(chances @ numbers**2) - square]

    return of(root(off, [0.0, 0.0], tol=1e-12).x)


def bars(chances: NDArray[np.float64], left: float, kind: str) -> list[Markup]:
    """A bar for each value, with the values below."""
    drawn = [tag("path", d=f"M{left} 180.5H{left + 200}", class_="line")]
    for place, chance in enumerate(chances):
        x, height = left + 10 + 37 * place, 360.0 * float(chance)
        drawn.append(box(x, 180 - height, 30, height, kind))
        drawn.append(words(x + 15, 199, signed(VALUES[place]), "quiet small middle"))
    return drawn


def tree() -> Markup:
    """Three cliques, two separators, and the messages of both sweeps."""
    return picture(
        226,
        box(154, 6, 172, 58, "wash"),
        words(240, 30, "sex, education", "middle bold"),
        words(240, 52, "the root", "quiet small middle"),
        box(4, 160, 130, 58, "box"), words(69, 184, "age, sex", "middle bold"),
        words(69, 206, "sums out age", "quiet small middle"),
        box(304, 160, 174, 58, "box"),
        words(391, 184, "education, income", "middle bold"),
        words(391, 206, "sums out income", "quiet small middle"),
        arrow((64, 156), (166, 68)), arrow((192, 68), (90, 156), "back"),
        arrow((416, 156), (314, 68)), arrow((288, 68), (390, 156), "back"),
        words(96, 108, "sex", "accent end"), words(384, 108, "education", "accent"),
        words(240, 118, "1. up", "accent middle bold"),
        words(240, 140, "2. down", "flag middle bold"),
    )  # fmt: skip


def picture(height: int, *children: Markup | list[Markup]) -> Markup:
    """A whole file."""
    heads = [head("way", "accent"), head("back", "flag")]
    return tag(
        "svg", tag("style", Markup(_STYLE)), tag("defs", heads), join(children, "\n"),
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {height}",
        width=float(WIDTH), height=float(height),
    )  # fmt: skip


def head(name: str, colour: str) -> Markup:
    """The head of an arrow."""
    return tag(
        "marker", tag("path", d="M0 0L8 4L0 8Z", class_=colour), id=name, viewBox="0 0 8 8",
        refX="7", refY="4", markerWidth="9", markerHeight="9", orient="auto",
        markerUnits="userSpaceOnUse",
    )  # fmt: skip


def words(x: float, y: float, said: str, kind: str = "") -> Markup:
    """A line of text."""
    return tag("text", said, x=x, y=y, class_=kind or None)


def box(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """A rectangle; only boxes with something inside have round corners."""
    round_ = 10.0 if kind in ("box", "wash") else None
    return tag("rect", x=x, y=y, width=width, height=height, rx=round_, class_=kind)


def arrow(start: Point, end: Point, kind: str = "way") -> Markup:
    """A straight arrow that ends a little before its end."""
    length = math.dist(start, end)
    short = max(0.0, 1.0 - 3.0 / length)
    x, y = (a + (b - a) * short for a, b in zip(start, end, strict=True))
    path = f"M{start[0]:.1f} {start[1]:.1f}L{x:.1f} {y:.1f}"
    return tag("path", d=path, class_=kind, marker_end=f"url(#{kind})")


def dot(place: Point, kind: str) -> Markup:
    """A point."""
    return tag("circle", cx=place[0], cy=place[1], r=5.0, class_=kind)


def closed(points: Sequence[Point]) -> str:
    """The path around some points."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + "Z"


def shifted(place: Point, right: float, down: float) -> Point:
    """A place a little beside another."""
    return place[0] + right, place[1] + down


if __name__ == "__main__":
    main()
