"""The arithmetic of privacy: what events cost, and what a release promises.

>>> from juncture import privacy
>>> privacy.Budget(epsilon=1).allows([privacy.Cost.pure(0.5)] * 2)
True
"""

import typing as _typing

from juncture._util.lazy import export as _export

if _typing.TYPE_CHECKING:
    from juncture.privacy.accounting import Cost as Cost
    from juncture.privacy.accounting import Neighbours as Neighbours
    from juncture.privacy.budget import Budget as Budget
    from juncture.privacy.dependence import Dependence as Dependence
    from juncture.privacy.events import Entry as Entry
    from juncture.privacy.events import Event as Event
    from juncture.privacy.guarantee import Guarantee as Guarantee
    from juncture.privacy.guarantee import Statement as Statement
    from juncture.privacy.ledger import Ledger as Ledger
    from juncture.privacy.price import ZCDP as ZCDP
    from juncture.privacy.price import Price as Price
    from juncture.privacy.price import Pure as Pure
    from juncture.privacy.request import Request as Request
    from juncture.privacy.score import DependenceScore as DependenceScore
    from juncture.privacy.score import GroupError as GroupError
    from juncture.privacy.score import MarginalError as MarginalError
    from juncture.privacy.score import QueryError as QueryError
    from juncture.privacy.score import RowError as RowError
    from juncture.privacy.score import Score as Score
else:
    __getattr__, __dir__, __all__ = _export(
        __name__,
        {
            "juncture.privacy.accounting": ["Cost", "Neighbours"],
            "juncture.privacy.budget": ["Budget"],
            "juncture.privacy.dependence": ["Dependence"],
            "juncture.privacy.events": ["Entry", "Event"],
            "juncture.privacy.guarantee": ["Guarantee", "Statement"],
            "juncture.privacy.ledger": ["Ledger"],
            "juncture.privacy.price": ["Price", "Pure", "ZCDP"],
            "juncture.privacy.request": ["Request"],
            "juncture.privacy.score": [
                "DependenceScore",
                "GroupError",
                "MarginalError",
                "QueryError",
                "RowError",
                "Score",
            ],
        },
    )
