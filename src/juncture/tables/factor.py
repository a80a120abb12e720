"""Named-axis arrays: a table of numbers over a domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture._util.notebook import table_html
from juncture._util.text import count_noun, list_names
from juncture.errors import InvalidInput
from juncture.tables.domain import Domain
from juncture.tables.frames import to_pandas, to_polars

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from juncture.tables.codebook import Codebook

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True, init=False)
class Factor:
    """A table of real numbers with one named axis per attribute.

    Arithmetic matches axes by name: the result lies over the merged domain. Entries are
    finite or minus infinity (the logarithm of a structural zero); not-a-number and plus
    infinity are refused, also where arithmetic would produce them. The values are not copied: do
    not change an array after making a factor of it. A factor from a model knows the model's
    codebook, and so does every factor computed from it.

    >>> domain = Domain({"age": 3, "sex": 2})
    >>> counts = Factor(domain, [[1, 2], [3, 4], [5, 6]])
    >>> counts.project(("sex",)).values
    array([ 9., 12.])
    >>> (3 - counts.sum(("age",))).values
    array([-6., -9.])
    """

    domain: Domain
    values: Values
    codebook: Codebook | None
    """What the codes stand for, where that is known."""

    # Makes NumPy's scalars and arrays defer to the reflected operators below.
    __array_ufunc__: ClassVar[None] = None

    def __init__(self, domain: Domain, values: ArrayLike, codebook: Codebook | None = None) -> None:
        array = np.asarray(values, dtype=np.float64)
        if array.shape != domain.shape:
            raise InvalidInput(
                f"`values` must have the domain's shape {domain.shape}; got {array.shape}. "
                "Put the axes in the order of the domain's attributes."
            )
        if not (array < math.inf).all():
            raise InvalidInput(
                "`values` must be finite or minus infinity; got not-a-number or plus infinity. "
                "Look for a division by zero or a missing value in what produced them."
            )
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "values", array)
        object.__setattr__(self, "codebook", codebook)

    @classmethod
    def of_finite(cls, domain: Domain, values: Values, codebook: Codebook | None = None) -> Factor:
        """A factor from an array that is known to fit and to be finite: nothing is checked."""
        factor = object.__new__(cls)
        object.__setattr__(factor, "domain", domain)
        object.__setattr__(factor, "values", values)
        object.__setattr__(factor, "codebook", codebook)
        return factor

    @classmethod
    def full(cls, domain: Domain, value: float) -> Factor:
        """The factor with the same value in every cell."""
        return cls(domain, np.full(domain.shape, value, dtype=np.float64))

    @classmethod
    def random(cls, domain: Domain, rng: np.random.Generator) -> Factor:
        """A factor with independent standard normal entries."""
        return cls(domain, rng.standard_normal(domain.shape))

    def __add__(self, other: Factor | float) -> Factor:
        return self._combine(other, np.add)

    def __radd__(self, other: float) -> Factor:
        return self._combine(other, np.add)

    def __sub__(self, other: Factor | float) -> Factor:
        return self._combine(other, np.subtract)

    def __rsub__(self, other: float) -> Factor:
        return self._combine(other, _subtract_reflected)

    def __mul__(self, other: Factor | float) -> Factor:
        return self._combine(other, np.multiply)

    def __rmul__(self, other: float) -> Factor:
        return self._combine(other, np.multiply)

    def __truediv__(self, other: Factor | float) -> Factor:
        return self._combine(other, np.divide)

    def __rtruediv__(self, other: float) -> Factor:
        return self._combine(other, _divide_reflected)

    def __neg__(self) -> Factor:
        return self._derive(self.domain, -self.values)

    def exp(self) -> Factor:
        """The exponential of every entry."""
        with np.errstate(over="ignore"):
            return self._derive(self.domain, np.exp(self.values))

    def log(self) -> Factor:
        """The natural logarithm of every entry; zero becomes minus infinity."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._derive(self.domain, np.log(self.values))

    def sum(self, attributes: Iterable[str] | None = None) -> Factor:
        """Sum out these attributes (all when none are given)."""
        return self._reduce(attributes, np.sum)

    def max(self, attributes: Iterable[str] | None = None) -> Factor:
        """Maximise out these attributes (all when none are given)."""
        return self._reduce(attributes, np.max)

    def logsumexp(self, attributes: Iterable[str] | None = None) -> Factor:
        """The logarithm of the sum of exponentials over these attributes, without overflow."""
        return self._reduce(attributes, _logsumexp)

    def project(self, attributes: Iterable[str]) -> Factor:
        """Sum onto these attributes, in the order given."""
        kept = self.domain.project(attributes)
        return self.sum([name for name in self.domain if name not in kept]).transpose(kept)

    def transpose(self, attributes: Iterable[str]) -> Factor:
        """The same table with its axes in the order given."""
        target = self.domain.project(attributes)
        if len(target) != len(self.domain):
            raise InvalidInput(
                f"`attributes` must be all of {self.domain.attributes}; got {target.attributes}. "
                "Use project() to sum some of them out."
            )
        if target.attributes == self.domain.attributes:
            return self
        axes = [self.domain.positions[name] for name in target]
        return self._derive(target, self.values.transpose(axes))

    def expand(self, domain: Domain) -> Factor:
        """The table over a larger domain, constant along the new attributes (a view)."""
        if set(domain.merge(self.domain)) != set(domain):
            raise InvalidInput(
                f"`domain` must hold all of {self.domain.attributes}; got {domain.attributes}. "
                "Use project() to sum some of them out."
            )
        return self._derive(domain, np.broadcast_to(_align(self, domain), domain.shape))

    def __float__(self) -> float:
        if self.domain:
            raise InvalidInput(
                f"`factor` must have no attributes to become a number; got one over "
                f"{self.domain.attributes}. Sum or maximise them out first."
            )
        return float(self.values)

    def with_codebook(self, codebook: Codebook) -> Factor:
        """The same table with a codebook."""
        return Factor.of_finite(self.domain, self.values, codebook)

    def to_arrow(self, codebook: Codebook | None = None) -> pa.Table:
        """The table in long form: a row for each cell, a column for each attribute, and `count`.

        Values are labels from `codebook`, or from the factor's own; without one they are codes. The
        last column has another name where an attribute is called `count`.

        >>> Factor(Domain({"sex": 2}), [3, 4]).to_arrow().to_pylist()
        [{'sex': 0, 'count': 3.0}, {'sex': 1, 'count': 4.0}]
        """
        from juncture.tables.arrow import long_table  # noqa: PLC0415  (slow to import)

        book = self.codebook if codebook is None else codebook
        self._labels(book)
        return long_table(self.domain, self.values, book)

    def to_pandas(self, codebook: Codebook | None = None) -> pd.DataFrame:
        """The table of `to_arrow` as a pandas frame."""
        return to_pandas(self.to_arrow(codebook))

    def to_polars(self, codebook: Codebook | None = None) -> pl.DataFrame:
        """The table of `to_arrow` as a Polars frame."""
        return to_polars(self.to_arrow(codebook))

    def __repr__(self) -> str:
        axes = list_names(f"{name}: {size:,}" for name, size in self.domain.items())
        cells = count_noun(self.values.size, "cell")
        return f"Factor({axes or 'no attributes'}; {cells}, sum {self.values.sum():.6g})"

    def __str__(self) -> str:
        return f"{self!r}\n{np.array2string(self.values, threshold=20)}"

    def _repr_html_(self) -> str:
        return table_html(self.domain.attributes, self.values, self._labels(self.codebook))

    def _labels(self, codebook: Codebook | None) -> list[Sequence[Any]]:
        """The labels of each attribute's codes; refuses a codebook that does not fit."""
        labels: list[Sequence[Any]] = []
        for name, size in self.domain.items():
            known = codebook is not None and name in codebook.codings
            named = codebook[name].labels if codebook and known else range(size)
            if len(named) != size:
                raise InvalidInput(
                    f"`codebook` must have {size} meanings for {name!r}; got {len(named)}."
                )
            labels.append(named)
        return labels

    def _derive(self, domain: Domain, values: Values) -> Factor:
        return Factor(domain, values, self.codebook)

    def _combine(self, other: Factor | float, operation: Callable[..., Values]) -> Factor:
        if not isinstance(other, Factor | Real):
            kind = type(other).__name__
            raise InvalidInput(
                f"`other` must be a factor or a number; got a value of type {kind}. "
                "Wrap an array as Factor(domain, array)."
            )
        if not isinstance(other, Factor):  # there are no axes to match
            with np.errstate(all="ignore"):
                return self._derive(self.domain, operation(self.values, float(other)))
        domain = self.domain.merge(other.domain)
        with np.errstate(all="ignore"):
            values = operation(_align(self, domain), _align(other, domain))
        return Factor(domain, values, self.codebook or other.codebook)

    def _reduce(self, attributes: Iterable[str] | None, operation: Callable[..., Values]) -> Factor:
        dropped = self.domain.canonical(self.domain if attributes is None else attributes)
        axes = tuple(self.domain.positions[name] for name in dropped)
        return self._derive(self.domain.without(dropped), operation(self.values, axis=axes))


def _subtract_reflected(left: Values, right: Values) -> Values:
    return np.subtract(right, left)


def _divide_reflected(left: Values, right: Values) -> Values:
    return np.divide(right, left)


def _align(factor: Factor, domain: Domain) -> Values:
    """The factor's values with one axis per attribute of the domain, of length 1 where absent."""
    ordered = sorted(factor.domain, key=domain.positions.__getitem__)
    values = factor.values.transpose([factor.domain.positions[name] for name in ordered])
    return values.reshape([domain[name] if name in factor.domain else 1 for name in domain])


def _logsumexp(values: Values, axis: tuple[int, ...]) -> Values:
    peak = np.max(values, axis=axis, keepdims=True)
    shift = np.where(np.isneginf(peak), 0.0, peak)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(values - shift), axis=axis))
    return np.asarray(total + np.squeeze(shift, axis=axis))
