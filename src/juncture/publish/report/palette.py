"""The colours of a page, light and dark; a test checks that their contrast is high enough."""

from __future__ import annotations

LIGHT = {
    "paper": "#fcfbf8",
    "card": "#ffffff",
    "ink": "#1c2127",
    "quiet": "#575e69",
    "line": "#e3dfd6",
    "accent": "#0f5c6e",
    "wash": "#e7f0f1",
    "flag": "#9a3412",
    "flag-wash": "#fbeee6",
}
DARK = {
    "paper": "#13161b",
    "card": "#1a1e25",
    "ink": "#e9e6df",
    "quiet": "#a6adb9",
    "line": "#323843",
    "accent": "#72c3d3",
    "wash": "#1b2e35",
    "flag": "#f2a477",
    "flag-wash": "#33241b",
}
TEXTS = ("ink", "quiet", "accent", "flag")
GROUNDS = ("paper", "card", "wash", "flag-wash")


def css_variables(colours: dict[str, str]) -> str:
    """The colours as CSS variables."""
    return "".join(f"--{name}:{value};" for name, value in colours.items())


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it: from 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255.0 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
