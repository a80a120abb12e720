"""What the server and its workers send each other: a kind, a length, and that many bytes."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import BinaryIO, NamedTuple

HEADER = struct.Struct("<BQ")


class Kind(IntEnum):
    """What a frame is."""

    QUESTION = 1
    ANSWER = 2
    REFUSAL = 3
    """The message of one of our errors."""
    FAILURE = 4
    """Any other error, by its name: nobody outside sees it."""


class Frame(NamedTuple):
    """A message."""

    kind: Kind
    payload: bytes

    def to_bytes(self) -> bytes:
        """The message as it is sent."""
        return HEADER.pack(self.kind, len(self.payload)) + self.payload


def read_frame(stream: BinaryIO) -> Frame | None:
    """The next message of a stream; None at its end."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    kind, length = HEADER.unpack(header)
    payload = stream.read(length)
    return Frame(Kind(kind), payload) if len(payload) == length else None
