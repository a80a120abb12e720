"""Linear queries: blocks on one attribute, products of them on several.

>>> from juncture import queries
>>> queries.Kron({"age": queries.Prefix(), "sex": queries.Identity()})
Kron(blocks={'age': Prefix(), 'sex': Identity()})
"""

import typing as _typing

from juncture._util.lazy import export as _export

if _typing.TYPE_CHECKING:
    from juncture.tables.queries.blocks import AllRanges as AllRanges
    from juncture.tables.queries.blocks import Block as Block
    from juncture.tables.queries.blocks import Buckets as Buckets
    from juncture.tables.queries.blocks import Identity as Identity
    from juncture.tables.queries.blocks import Matrix as Matrix
    from juncture.tables.queries.blocks import Moments as Moments
    from juncture.tables.queries.blocks import Point as Point
    from juncture.tables.queries.blocks import Prefix as Prefix
    from juncture.tables.queries.blocks import Range as Range
    from juncture.tables.queries.blocks import Subset as Subset
    from juncture.tables.queries.blocks import Total as Total
    from juncture.tables.queries.blocks import WeightedSum as WeightedSum
    from juncture.tables.queries.products import Kron as Kron
    from juncture.tables.queries.products import Query as Query
    from juncture.tables.queries.products import Scaled as Scaled
    from juncture.tables.queries.products import Stack as Stack
else:
    __getattr__, __dir__, __all__ = _export(
        __name__,
        {
            "juncture.tables.queries.blocks": [
                "AllRanges",
                "Block",
                "Buckets",
                "Identity",
                "Matrix",
                "Moments",
                "Point",
                "Prefix",
                "Range",
                "Subset",
                "Total",
                "WeightedSum",
            ],
            "juncture.tables.queries.products": ["Kron", "Query", "Scaled", "Stack"],
        },
    )
