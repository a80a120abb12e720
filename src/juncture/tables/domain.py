"""Named attributes with finite sizes, and cliques of them in canonical order."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from juncture._util.text import count_noun, list_names
from juncture.errors import InvalidInput, UnknownAttribute

Clique = tuple[str, ...]
# A domain whose code is longer is written in words.
_MAX_REPR = 250


class Domain(Mapping[str, int]):
    """An ordered, immutable, hashable mapping from attribute names to their number of values.

    >>> domain = Domain({"age": 85, "sex": 2, "income": 2})
    >>> domain.size_of(("age", "sex"))
    170
    >>> domain.canonical(("income", "age"))
    ('age', 'income')

    Two domains are equal when they have the same attributes with the same sizes in the same
    order. Sizes are Python integers, so they never overflow: a table of 100 attributes has
    more cells than a 64-bit integer can count.
    """

    __slots__ = ("__dict__", "_sizes")

    def __init__(self, sizes: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        pairs = list(sizes.items()) if isinstance(sizes, Mapping) else list(sizes)
        self._sizes = {_check_name(name): _check_size(name, size) for name, size in pairs}
        if len(self._sizes) != len(pairs):
            raise InvalidInput(
                f"`sizes` must name each attribute once; got {[n for n, _ in pairs]}. "
                "Remove or rename the repeated ones."
            )

    def __getitem__(self, attribute: str) -> int:
        try:
            return self._sizes[attribute]
        except KeyError:
            raise self._unknown(attribute) from None

    def __contains__(self, attribute: object) -> bool:
        return attribute in self._sizes

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        return tuple(self._sizes.items()) == tuple(other._sizes.items())

    def __hash__(self) -> int:
        return hash(tuple(self._sizes.items()))

    def __repr__(self) -> str:
        whole = f"Domain({self._sizes!r})"
        if len(whole) <= _MAX_REPR:
            return whole
        names = list_names(f"{name}: {size:,}" for name, size in self.items())
        return f"Domain({count_noun(len(self), 'attribute')}: {names})"

    @cached_property
    def attributes(self) -> Clique:
        """The attribute names, in order."""
        return tuple(self._sizes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The sizes, in order: the shape of a table over the whole domain."""
        return tuple(self._sizes.values())

    @cached_property
    def size(self) -> int:
        """The number of cells of the full table, exactly."""
        return math.prod(self.shape)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The index of each attribute in the order."""
        return {name: position for position, name in enumerate(self._sizes)}

    def size_of(self, clique: Iterable[str]) -> int:
        """The number of cells of a table over the clique, exactly."""
        names = _check_distinct(names_of(clique))
        try:
            return math.prod(map(self._sizes.__getitem__, names))
        except KeyError as error:
            raise self._unknown(error.args[0]) from None

    def canonical(self, clique: Iterable[str]) -> Clique:
        """The clique's attributes in the domain's order; refuses unknown and repeated names."""
        names = names_of(clique)
        try:
            ordered = sorted(names, key=self.positions.__getitem__)
        except KeyError as error:
            raise self._unknown(error.args[0]) from None
        _check_distinct(names)
        return tuple(ordered)

    def project(self, attributes: Iterable[str]) -> Domain:
        """The domain of these attributes alone, in the order given."""
        names = names_of(attributes)
        known = self._parts.get(names)
        if known is not None:
            return known
        _check_distinct(names)
        # Names and sizes are this domain's, which were checked.
        part = Domain.__new__(Domain)
        try:
            part._sizes = {name: self._sizes[name] for name in names}
        except KeyError as error:
            raise self._unknown(error.args[0]) from None
        if len(self._parts) < _MAX_PARTS:
            self._parts[names] = part
        return part

    @cached_property
    def _parts(self) -> dict[Clique, Domain]:
        """Projections that were asked for: those of wide tables are thousands, round by round."""
        return {}

    def __reduce__(self) -> tuple[type[Domain], tuple[dict[str, int]]]:
        return Domain, (self._sizes,)

    def without(self, attributes: Iterable[str]) -> Domain:
        """The domain of all other attributes, in this domain's order."""
        dropped = set(self.canonical(attributes))
        return Domain([(name, size) for name, size in self.items() if name not in dropped])

    def merge(self, other: Domain) -> Domain:
        """This domain followed by the attributes that only `other` has; sizes must agree."""
        for name, size in other.items():
            if self._sizes.get(name, size) != size:
                raise InvalidInput(
                    f"`other` must agree on shared attributes; got {name!r} with {size} values "
                    f"where this domain has {self[name]}. Rename one of the two attributes."
                )
        return Domain({**self._sizes, **other._sizes})

    def _unknown(self, attribute: object) -> UnknownAttribute:
        shown = ", ".join(map(repr, self.attributes[:8])) + (", …" if len(self) > 8 else "")
        return UnknownAttribute(
            f"`attribute` must be one of the domain's {len(self)} attributes ({shown}); "
            f"got {attribute!r}. Check the spelling.",
            name=attribute,
        )


# Projections of one domain that are kept.
_MAX_PARTS = 10_000
# An array of NumPy has no more axes.
_MAX_AXES = 64


def refuse_many_axes(clique: Sequence[str]) -> None:
    """Refuse a table with more axes than an array can have.

    Only attributes of one value make so many axes possible: others make a table too large first.
    """
    if len(clique) > _MAX_AXES:
        raise InvalidInput(
            f"`clique` must have at most {_MAX_AXES} attributes: a table has an axis for each; got "
            f"{len(clique)}. Leave out attributes of one value, which say nothing."
        )


def names_of(attributes: Iterable[str]) -> Clique:
    """The names as a tuple; refuses a bare string, which would be split into letters."""
    if isinstance(attributes, str):
        raise InvalidInput(
            f"`clique` must be a sequence of attribute names; got the text {attributes!r}. "
            f"Write ({attributes!r},) for a clique of one attribute."
        )
    return tuple(attributes)


def _check_distinct(names: Clique) -> Clique:
    if len(set(names)) != len(names):
        raise InvalidInput(f"`clique` must name each attribute once; got {names}.")
    return names


def _check_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"`sizes` must have non-empty text as attribute names; got {name!r}.")
    return name


def _check_size(name: object, size: object) -> int:
    try:
        count = operator.index(size)  # type: ignore[arg-type]
    except TypeError:
        count = 0
    if count < 1 or isinstance(size, bool):
        raise InvalidInput(
            f"`sizes` must be positive integers; got {size!r} for {name!r}. "
            "Give the number of values that the attribute can take."
        )
    return count
