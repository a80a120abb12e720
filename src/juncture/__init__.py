"""Juncture joins noisy answers about a table into one distribution, a graphical model.

    import juncture as jn

    made = jn.release("people.csv", "people.toml", jn.Budget(epsilon=1), ledger="people.ledger")
    made.sql("SELECT sex, COUNT(*) FROM people GROUP BY sex")

Queries are under `jn.queries`, solvers under `jn.solvers`, mechanisms under `jn.mechanisms`. Names
are imported when they are first used.
"""

import typing as _typing

from juncture._util.lazy import export as _export

if _typing.TYPE_CHECKING:
    from juncture import mechanisms as mechanisms
    from juncture.engine.plan import Plan as Plan
    from juncture.errors import BudgetExceeded as BudgetExceeded
    from juncture.errors import ImpossibleModel as ImpossibleModel
    from juncture.errors import InvalidInput as InvalidInput
    from juncture.errors import JunctureError as JunctureError
    from juncture.errors import ModelTooLarge as ModelTooLarge
    from juncture.errors import NotPublic as NotPublic
    from juncture.errors import UnknownAttribute as UnknownAttribute
    from juncture.errors import UnreadableFile as UnreadableFile
    from juncture.fit import solvers as solvers
    from juncture.fit.basis import Basis as Basis
    from juncture.fit.error_bounds import MarginalBound as MarginalBound
    from juncture.fit.error_bounds import Support as Support
    from juncture.fit.estimation import Estimate as Estimate
    from juncture.fit.estimation import estimate as estimate
    from juncture.fit.replicas import ReplicaRecipe as ReplicaRecipe
    from juncture.fit.summary import FitSummary as FitSummary
    from juncture.fit.summary import Status as Status
    from juncture.model.model import Model as Model
    from juncture.privacy.accounting import Neighbours as Neighbours
    from juncture.privacy.budget import Budget as Budget
    from juncture.privacy.guarantee import Guarantee as Guarantee
    from juncture.privacy.ledger import Ledger as Ledger
    from juncture.privacy.price import ZCDP as ZCDP
    from juncture.privacy.price import Pure as Pure
    from juncture.private.curator import Curator as Curator
    from juncture.private.sources.files import TableFile as TableFile
    from juncture.private.sources.read import read_table as read_table
    from juncture.publish.intervals import IntervalAnswer as IntervalAnswer
    from juncture.publish.release import Release as Release
    from juncture.publish.release import load as load
    from juncture.publish.report.document import write_report as write_report
    from juncture.tables import queries as queries
    from juncture.tables.codebook import Codebook as Codebook
    from juncture.tables.codebook import Coding as Coding
    from juncture.tables.columns import Boolean as Boolean
    from juncture.tables.columns import Categorical as Categorical
    from juncture.tables.columns import Date as Date
    from juncture.tables.columns import Integer as Integer
    from juncture.tables.columns import Number as Number
    from juncture.tables.domain import Domain as Domain
    from juncture.tables.factor import Factor as Factor
    from juncture.tables.known import Known as Known
    from juncture.tables.measurement import Measurement as Measurement
    from juncture.tables.person import Person as Person
    from juncture.tables.rules import Rule as Rule
    from juncture.tables.schema import Schema as Schema
    from juncture.tables.schema_toml import read_schema as read_schema
    from juncture.tables.workload import Workload as Workload
    from juncture.workflow.release import release as release
    from juncture.workflow.synthesizer import Synthesizer as Synthesizer
else:
    __getattr__, __dir__, __all__ = _export(
        __name__,
        {
            "juncture.engine.plan": ["Plan"],
            "juncture.errors": [
                "BudgetExceeded",
                "ImpossibleModel",
                "InvalidInput",
                "JunctureError",
                "ModelTooLarge",
                "NotPublic",
                "UnknownAttribute",
                "UnreadableFile",
            ],
            "juncture.fit.basis": ["Basis"],
            "juncture.fit.estimation": ["Estimate", "estimate"],
            "juncture.fit.error_bounds": ["MarginalBound", "Support"],
            "juncture.fit.replicas": ["ReplicaRecipe"],
            "juncture.fit.solvers": [],
            "juncture.fit.summary": ["FitSummary", "Status"],
            "juncture.mechanisms": [],
            "juncture.model.model": ["Model"],
            "juncture.privacy.accounting": ["Neighbours"],
            "juncture.privacy.budget": ["Budget"],
            "juncture.privacy.guarantee": ["Guarantee"],
            "juncture.privacy.ledger": ["Ledger"],
            "juncture.privacy.price": ["Pure", "ZCDP"],
            "juncture.private.curator": ["Curator"],
            "juncture.private.sources.files": ["TableFile"],
            "juncture.private.sources.read": ["read_table"],
            "juncture.publish.intervals": ["IntervalAnswer"],
            "juncture.publish.release": ["Release", "load"],
            "juncture.publish.report.document": ["write_report"],
            "juncture.tables.codebook": ["Codebook", "Coding"],
            "juncture.tables.columns": ["Boolean", "Categorical", "Date", "Integer", "Number"],
            "juncture.tables.domain": ["Domain"],
            "juncture.tables.factor": ["Factor"],
            "juncture.tables.measurement": ["Measurement"],
            "juncture.tables.known": ["Known"],
            "juncture.tables.person": ["Person"],
            "juncture.tables.queries": [],
            "juncture.tables.rules": ["Rule"],
            "juncture.tables.schema": ["Schema"],
            "juncture.tables.schema_toml": ["read_schema"],
            "juncture.tables.workload": ["Workload"],
            "juncture.workflow.release": ["release"],
            "juncture.workflow.synthesizer": ["Synthesizer"],
        },
    )
