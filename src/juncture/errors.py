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
    """Base of every error that Juncture raises on purpose."""


class InvalidInput(JunctureError, ValueError):
    """An argument breaks the rule that its documentation states."""


class UnknownAttribute(InvalidInput, KeyError):
    """A clique or a projection names an attribute that the domain does not have."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show its message in quotes


class ModelTooLarge(JunctureError, MemoryError):
    """The plan needs more memory than its limit; nothing has been allocated."""


class ImpossibleModel(JunctureError, ArithmeticError):
    """The potentials of minus infinity leave no record with positive probability."""


class UnreadableFile(JunctureError, ValueError):
    """A file is missing, damaged, altered or not one that Juncture wrote."""


class BudgetExceeded(JunctureError):
    """A release would cost more than what is left of the budget; nothing was spent."""


class NotPublic(JunctureError):
    """Something would be released under domains that were read off private data."""

    @classmethod
    def of_draft(cls, argument: str, path: object = None) -> Self:
        """The error for an argument whose schema is a draft, perhaps in a file."""
        file = "" if path is None else f"{path}, "
        return cls(
            f"`{argument}` must be public knowledge; got {file}a draft made from the data. Go "
            "through it, then set confirmed_public = true in its file."
        )
