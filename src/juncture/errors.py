"""Every exception that Juncture raises on purpose, in one tree.

    JunctureError
    ├── InvalidInput      (also a ValueError)        an argument breaks its rule
    │   └── UnknownAttribute  (also a KeyError)      a name that the domain does not have
    ├── ModelTooLarge     (also a MemoryError)       refused before anything was allocated
    ├── ImpossibleModel   (also an ArithmeticError)  the structural zeros exclude every record
    ├── UnreadableFile    (also a ValueError)        not a file of ours, or damaged
    ├── BudgetExceeded                               refused before anything was released
    └── NotPublic                                    domains not confirmed as public knowledge

A message reads: "`argument` must be <rule>; got <value>. <what to do>."
"""

from typing import Self


class JunctureError(Exception):
    """Base of every error that Juncture raises on purpose: catch it to catch them all.

    >>> import juncture as jn
    >>> try:
    ...     jn.Budget(epsilon=-1)
    ... except jn.JunctureError as error:
    ...     print(type(error).__name__)
    InvalidInput
    """


class InvalidInput(JunctureError, ValueError):
    """An argument breaks the rule that its documentation states.

    >>> import juncture as jn
    >>> jn.Domain({"age": 0})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    juncture.errors.InvalidInput: `sizes` must be positive integers; got 0 for 'age'. ...
    """


class UnknownAttribute(InvalidInput, KeyError):
    """A clique or a projection names an attribute that the domain does not have.

    >>> import juncture as jn
    >>> jn.Domain({"age": 5})["Age"]  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    juncture.errors.UnknownAttribute: `attribute` must be one of the domain's ...; got 'Age'. ...
    """

    def __init__(self, message: str, *, name: object = None) -> None:
        super().__init__(message)
        self.name = name
        """The name that is not known."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show its message in quotes


class ModelTooLarge(JunctureError, MemoryError):
    """A model, a query or its records need more memory than the limit; nothing was allocated.

    >>> import juncture as jn
    >>> pair = jn.Domain({"a": 1000, "b": 1000})
    >>> jn.Plan.build(pair, [("a", "b")], memory_limit=1000)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    juncture.errors.ModelTooLarge: ...
    """

    def __init__(self, message: str, *, needed: str = "", limit: str = "") -> None:
        super().__init__(message)
        self.needed, self.limit = needed, limit
        """What it needs and what there is, in words, where both are known."""


class ImpossibleModel(JunctureError, ArithmeticError):
    """The potentials of minus infinity leave no record with positive probability.

    >>> import juncture as jn
    >>> coin = jn.Domain({"side": 2})
    >>> never = jn.Factor(coin, [float("-inf")] * 2)
    >>> jn.Model.of_potentials(coin, [never])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    juncture.errors.ImpossibleModel: ...
    """


class UnreadableFile(JunctureError, ValueError):
    """A file is missing, damaged, altered or not one that Juncture wrote.

    >>> import juncture as jn
    >>> jn.load("no-such-file.jct")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    juncture.errors.UnreadableFile: ...
    """


class BudgetExceeded(JunctureError):
    """A release would cost more than is left of the budget; nothing was spent.

    >>> import juncture as jn
    >>> from juncture.privacy.ledger import refuse_overspending
    >>> refuse_overspending(jn.Budget(epsilon=1), [jn.Pure(2).cost])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    juncture.errors.BudgetExceeded: ...
    """


class NotPublic(JunctureError):
    """Something would be released under domains that were read off private data.

    >>> import juncture as jn
    >>> draft = jn.Schema({"smokes": jn.Boolean()}, drafted=True)
    >>> draft.refuse_draft("schema")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    juncture.errors.NotPublic: `schema` must be public knowledge; got a draft ...
    """

    @classmethod
    def of_draft(cls, argument: str, path: object = None) -> Self:
        """The error for an argument whose schema is a draft; `path` is its file, if it has one."""
        file = "" if path is None else f"{path}, "
        return cls(
            f"`{argument}` must be public knowledge; got {file}a draft made from the data. Go "
            "through it, then set confirmed_public = true in its file."
        )
