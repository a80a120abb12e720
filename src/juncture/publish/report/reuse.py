"""The section on using and citing a release."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path

from juncture._util.html import Markup, join, tag
from juncture._util.sql import quote_name
from juncture.engine.plan_text import format_bytes
from juncture.model.model import Model

_ANY_NAME = "release.jct"
_CITATION = """@inproceedings{mckenna2019graphical,
  title     = {Graphical-model based estimation and inference for differential privacy},
  author    = {McKenna, Ryan and Sheldon, Daniel and Miklau, Gerome},
  booktitle = {Proceedings of the 36th International Conference on Machine Learning},
  series    = {Proceedings of Machine Learning Research},
  volume    = {97},
  pages     = {4435--4444},
  year      = {2019}
}"""


def render_reuse(model: Model, source: Path | None) -> Markup:
    """How to load a release and ask it questions, what the file is, and what to cite."""
    name = _ANY_NAME if source is None else source.name
    return join(
        [
            tag(
                "p",
                "The release itself answers everything on this page and much more, as often as "
                "you like: asking costs no privacy.",
            ),
            _describe_file(source),
            tag("h3", "In Python"),
            _render_code(python_example(model, name)),
            tag("h3", "On the command line"),
            _render_code(command_example(model, name)),
            tag("h3", "How to cite the method"),
            _render_code(_CITATION),
        ]
    )


def _render_code(lines: str) -> Markup:
    return tag("pre", tag("code", lines), tabindex="0")


def python_example(model: Model, name: str) -> str:
    """Lines of Python that load a release and ask it; they run as they are."""
    names = tuple(model.domain)[:2]
    return "\n".join(
        [
            "from juncture import load",
            "",
            f"release = load({name!r})",
            f"print(release.project({names!r}))  # estimated counts",
            f"print(release.sql({_query(model)!r}))",
            "records = release.synthesize(1000, rng=0).to_arrow()  # synthetic records",
        ]
    )


def command_example(model: Model, name: str) -> str:
    """The same on the command line."""
    file = shlex.quote(name)
    return "\n".join(
        [
            f"juncture query {file} {shlex.quote(_query(model))}",
            f"juncture sample {file} --records 1000 --out records.csv",
            f"juncture explore {file}",
        ]
    )


def _query(model: Model) -> str:
    first = quote_name(next(iter(model.domain)))
    return f"SELECT {first}, COUNT(*) AS n FROM release GROUP BY {first}"


def _describe_file(source: Path | None) -> Markup | None:
    """The file that this page describes, so that it can be recognised."""
    if source is None:
        return None
    content = source.read_bytes()
    return tag(
        "p",
        "This page describes the file ",
        tag("strong", source.name),
        f" of {format_bytes(len(content))} ({len(content):,} bytes), whose SHA-256 is ",
        tag("code", hashlib.sha256(content).hexdigest()),
        ".",
    )
