"""Fit a private data frame, draw synthetic ones: the shape that scikit-learn made common."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from juncture._util.randomness import Random
from juncture._util.watch import Watch
from juncture.errors import InvalidInput
from juncture.mechanisms.mechanism import Mechanism
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.publish.release import Release
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import read_schema
from juncture.tables.workload import Workload
from juncture.workflow.public_columns import Known, make_schema
from juncture.workflow.release import release

if TYPE_CHECKING:
    from juncture.private.sources.read import Table


class Synthesizer:
    """Synthetic data frames with differential privacy: `fit` spends a budget, `sample` is free.

    Bins and categories are found privately, for part of the budget. Only the bounds of numbers and
    dates must be public knowledge: nothing protects them, and looking them up in the table would
    give them away. So they are given, by `columns`, and a table with numbers or dates without
    bounds is refused, with advice. Texts need a delta; columns of type bool need no words.

    - `epsilon`, `delta`: what one `fit` may spend. With a delta, Gaussian noise and stronger
      mechanisms are used, and the values of texts can be found.
    - `columns`: for each column its bounds, `(18, 97)` for whole numbers, `(0.0, 1e6)` for numbers,
      two dates for dates; or its values, `["f", "m"]`, if they are public; or `str` for values that
      are found, the default for texts; or `bool`; or a column kind such as `jn.Number(edges=...)`,
      which says more. Values beyond bounds count as the nearest one; values that are not in a list
      are refused; values of too few records become "(outside)".
    - `missing`: which columns may have missing values: names, or True for all of `columns`. Texts
      whose values are found may always be missing.
    - `schema`: what the columns may hold, as a `Schema` or a TOML file, instead of `columns`.
    - `target`: a column to be predicted from the others: every two columns are asked for with it.
    - `workload`, `mechanism`, `neighbours`: as for `juncture.release`.
    - `ledger`: a file that records what all fits spend together, and refuses more. Without one,
      each fit is accounted for alone: two fits of one table cost the sum of their budgets.

    >>> import pyarrow as pa
    >>> table = pa.table({"pay": [31.5, 420.0, 57.0] * 99, "city": ["Bonn", "Genf", "Bonn"] * 99})
    >>> synthesizer = Synthesizer(epsilon=5, delta=1e-6, columns={"pay": (0.0, 1000.0)})
    >>> made = synthesizer.fit(table).sample(10)
    >>> made.num_rows, made.column_names, synthesizer.schema_.columns["city"].values
    (10, ['pay', 'city'], ('Bonn', 'Genf'))
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        columns: Mapping[str, Known] | None = None,
        missing: bool | Iterable[str] = False,
        schema: Schema | str | Path | None = None,
        target: str | None = None,
        workload: Workload | Iterable[Iterable[str]] | None = None,
        mechanism: str | Mechanism | None = None,
        neighbours: Neighbours | None = None,
        ledger: str | Path | None = None,
    ) -> None:
        self.epsilon, self.delta = epsilon, delta
        self.columns, self.missing, self.schema = columns, missing, schema
        self.target, self.workload, self.mechanism = target, workload, mechanism
        self.neighbours, self.ledger = neighbours, ledger

    def fit(self, table: Table, y: object = None, *, watch: Watch | None = None) -> Self:
        """Measure a private table and fit a model, which `release_` then holds.

        `y` is there for pipelines of scikit-learn and must be None: put the target into the table.
        """
        if y is not None:
            raise InvalidInput(
                "`y` must be None; got values. Put them into the table as a column, and name that "
                "as `target`."
            )
        schema = self._find_schema(table)
        if hasattr(self, "release_") and self.ledger is None:
            warnings.warn(
                "this synthesizer is fitted again: each fit spends its budget, and two fits of "
                "one table spend the sum. Give a `ledger` to bound it.",
                stacklevel=2,
            )
        with tempfile.TemporaryDirectory(prefix="juncture-") as scratch:
            ledger = Path(scratch) / "fit.ledger" if self.ledger is None else self.ledger
            self.release_: Release = release(
                table, schema, Budget(epsilon=self.epsilon, delta=self.delta), ledger=ledger,
                workload=self._make_workload(schema), mechanism=self.mechanism,
                neighbours=self.neighbours, watch=watch,
            )  # fmt: skip
        self.schema_ = self.release_.schema or schema  # with the bins and values that were found
        self._kind = type(table).__module__.partition(".")[0]
        return self

    def sample(self, n: int | None = None, *, rng: Random = None) -> Any:  # noqa: ANN401
        """Synthetic records, as a data frame of the kind that was fitted; others are Arrow tables.

        - `n`: how many; by default about as many as the table has, by its noisy count.
        - `rng`: a seed or a generator. Another draw costs nothing.
        """
        if not hasattr(self, "release_"):
            raise InvalidInput("`fit` must come before `sample`; got no table yet.")
        records = self.release_.synthesize(n, rng=rng)
        if self._kind == "pandas":
            return records.to_pandas()
        return records.to_polars() if self._kind == "polars" else records.to_arrow()

    def fit_sample(self, table: Table, n: int | None = None, *, rng: Random = None) -> Any:  # noqa: ANN401
        """`fit`, then `sample`."""
        return self.fit(table).sample(n, rng=rng)

    def get_params(self, deep: bool = True) -> dict[str, object]:  # noqa: ARG002
        """The arguments of the constructor by name, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **parameters: object) -> Self:
        """Change arguments of the constructor, before `fit`."""
        unknown = [name for name in parameters if name not in _PARAMETERS]
        if unknown:
            raise InvalidInput(
                f"`parameters` must be among {', '.join(_PARAMETERS)}; got {', '.join(unknown)}."
            )
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        state = f"fitted: {self.release_.guarantee}" if hasattr(self, "release_") else "not fitted"
        return f"Synthesizer({budget}; {state})"

    def _find_schema(self, table: Table) -> Schema:
        """What the columns may hold, by what was given."""
        if self.schema is not None:
            if self.columns is not None:
                raise InvalidInput("`columns` must be None where `schema` is given; got both.")
            return self.schema if isinstance(self.schema, Schema) else read_schema(self.schema)
        return make_schema(table, self.columns or {}, self.missing)

    def _make_workload(self, schema: Schema) -> Workload | Iterable[Iterable[str]] | None:
        if self.target is None:
            return self.workload
        if self.workload is not None:
            raise InvalidInput("`workload` must be None where `target` is given; got both.")
        return Workload.default(schema.widest.domain, self.target)


_PARAMETERS = (
    "epsilon", "delta", "columns", "missing", "schema", "target", "workload",
    "mechanism", "neighbours", "ledger",
)  # fmt: skip
