"""Release files of format 2, read as format 3.

Format 2 wrote what the codes of an attribute stand for as a bare list, in which whole numbers in
intervals looked like any others and periods of days were texts. Where the file has a schema, the
schema says it better.
"""

from __future__ import annotations

from juncture.publish.archive import Document


def upgrade(document: Document) -> Document:
    """The document of a format-2 file as a document of format 3."""
    codebook = document["codebook"] if document["schema"] is None else None
    if codebook is not None:
        rest = {"whole": False, "period": None, "means": None}
        codebook = {name: {"meanings": list(each), **rest} for name, each in codebook.items()}
    return {**document, "version": 3, "codebook": codebook}
