"""Parts of pages that tools write, between two marks; the rest of a page is written by people."""

from __future__ import annotations

from pathlib import Path


class PagePart:
    """What stands between two marks on a page."""

    def __init__(self, page: Path, name: str, tool: str) -> None:
        self.page = page
        self._begin = f"<!-- {name}: written by tools/{tool} -->\n"
        self._end = f"<!-- end of {name} -->"

    def replace(self, page: str, text: str) -> str:
        """The page with another text between the marks."""
        before, rest = page.split(self._begin)
        _, after = rest.split(self._end)
        return f"{before}{self._begin}\n{text}\n{self._end}{after}"

    def write(self, text: str) -> None:
        """Put the text into the page's file."""
        self.page.write_text(self.replace(self.page.read_text("utf-8"), text), encoding="utf-8")
        print(f"wrote {self.page}")
