"""A page of HTML taken apart, and models to make pages of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser

import numpy as np

from juncture import Domain, Factor, Model

VOID = {"br", "hr", "img", "link", "meta"}


class Page(HTMLParser):
    """A page taken apart: every element with its attributes and text, and what was left open."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element without content."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """The element that was opened last ends, and no other."""
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Text that people read."""
        if not {"style", "title"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        """All text, without styles and tooltips."""
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]


def of(pairs: Sequence[tuple[str, ...]], sizes: Mapping[str, int], total: float = 1000.0) -> Model:
    """A model with random potentials."""
    domain, rng = Domain(sizes), np.random.default_rng(0)
    return Model.of_potentials(
        domain, [Factor.random(domain.project(pair), rng) for pair in pairs], total
    )
