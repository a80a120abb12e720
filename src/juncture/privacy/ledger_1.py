"""Ledgers of version 1, whose lines have no hashes: how they are read, and how they go on.

A line of version 1 is a JSON object. Whoever alters one is found out only if the numbers of the
events or the last total give it away. Such a ledger is never rewritten: the first line that is
added to it says `"upgrade": 2`, and its hash covers every byte before it, so from then on the old
lines are guarded like the new ones. Older versions of this package refuse the file from there on.
"""

from __future__ import annotations

from juncture.privacy.chain import BrokenChain, Chain, Line, hash_bytes, parse_object, read_chain

VERSION, UPGRADE = 1, "upgrade"


def is_old(raw: bytes) -> bool:
    """Whether a file begins with the header of a ledger of version 1."""
    header = parse_object(raw.split(b"\n", 1)[0])
    return header is not None and header.get("version") == VERSION


def read_old(raw: bytes) -> Chain:
    """The lines of version 1, and those behind the upgrade if there is one."""
    lines, position = list[Line](), 0
    while (end := raw.find(b"\n", position)) >= 0:
        content = parse_object(raw[position:end])
        if content is not None and UPGRADE in content:
            rest = read_chain(raw[position:], hash_bytes(raw[:position]), len(lines) + 1)
            return Chain((*lines, *rest.lines), position + rest.size, rest.tail, rest.ends)
        if content is None:
            raise BrokenChain(len(lines) + 1)
        lines.append(Line(content, ""))
        position = end + 1
    tail = raw[position:]
    content = parse_object(tail)
    if content is None or UPGRADE in content:
        return Chain(tuple(lines), position, tail, ends=True)
    # An editor may have cut off the end of the last line; that event counts.
    return Chain((*lines, Line(content, "")), len(raw), b"", ends=False)
