"""Errors of the library in the words of the command that was run.

The library names its own arguments: "`n_records` must be ...". Someone who ran a command gave
options, so the error should say "`--records` must be ...".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# The arguments that a message begins with: "`host` and `port` must be ...".
_SUBJECT = re.compile(r"`\w+`(?:(?:, | and | or )`\w+`)*(?= must)")
# For arguments of the library that no parameter of a command is called after: the parameters that
# they may come from. The first one that was given is meant; if none was, the last.
_SOURCES = {
    "cliques": ("cliques", "triples", "marginals"),
    "n": ("triples", "records"),
    "n_records": ("records",),
    "table": ("data", "other"),
}
# Arguments that are made from several parameters at once: those that were given are meant.
_COMPOSED = {
    "budget": ("epsilon", "delta", "rho"),
    "price": ("epsilon", "delta", "rho"),
    "sql": ("sql", "marginal", "where", "mean"),
}


class Parameter(NamedTuple):
    """An option or argument of a command, and what was given for it."""

    label: str
    """The name that a person types: `--records`, or RELEASE for an argument."""
    value: object

    @property
    def is_given(self) -> bool:
        """Whether the command line has a value for it."""
        return self.value not in (None, [], ())


def name_options(message: str, command: Any, arguments: Sequence[str]) -> str:  # noqa: ANN401
    """The message with options of the command in place of the library's argument names.

    - `command`: the whole command line as a group of commands.
    - `arguments`: the words that it was run with.
    """
    subject = _SUBJECT.match(message)
    if subject is None:
        return message
    parameters = _parse(command, arguments)
    named = re.sub(
        r"`(\w+)`",
        lambda each: _find_label(each[1], message, parameters) or each[0],
        subject[0],
    )
    return named + message[subject.end() :]


def _parse(command: Any, arguments: Sequence[str]) -> dict[str, Parameter]:  # noqa: ANN401
    """The parameters of the command that the words run, by their names in Python."""
    words = list(arguments)
    while words and hasattr(command, "commands"):
        command = command.commands.get(words.pop(0), command)
    if hasattr(command, "commands"):
        return {}
    values = command.make_context(command.name, words, resilient_parsing=True).params
    return {each.name: Parameter(_label(each), values.get(each.name)) for each in command.params}


def _label(parameter: Any) -> str:  # noqa: ANN401
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    return str(max(parameter.opts, key=len))


def _find_label(name: str, message: str, parameters: dict[str, Parameter]) -> str | None:
    """The option that an argument of the library comes from, in backticks, if there is one."""
    if name == "path":
        return _quote(_find_file(message, parameters))
    if name == "attribute":
        return _quote(_find_mention(message, parameters))
    names = _COMPOSED.get(name) or _SOURCES.get(name, (name,))
    sources = [parameters[n] for n in names if n in parameters]
    given = [source for source in sources if source.is_given]
    if name in _COMPOSED:
        return _quote(*given)
    return _quote(*(given[:1] or sources[-1:]))


def _find_file(message: str, parameters: dict[str, Parameter]) -> Parameter | None:
    """The parameter with the file that the message is about; the longest path that it has."""
    files = [
        (len(str(path)), parameter)
        for parameter in parameters.values()
        for path in _paths_in(parameter.value)
        if str(path) in message
    ]
    return max(files, key=lambda pair: pair[0], default=(0, None))[1]


def _paths_in(value: object) -> Iterator[Path]:
    for each in value if isinstance(value, list | tuple) else [value]:
        if isinstance(each, Path):
            yield each


def _find_mention(message: str, parameters: dict[str, Parameter]) -> Parameter | None:
    """The parameter whose text has the name that the message quotes."""
    got = re.search(r"got '([^']+)'", message)
    if got is None:
        return None
    texts = (each for each in parameters.values() if isinstance(each.value, str | list | tuple))
    return next((each for each in texts if got[1] in str(each.value)), None)


def _quote(*parameters: Parameter | None) -> str | None:
    return " with ".join(f"`{each.label}`" for each in parameters if each is not None) or None
