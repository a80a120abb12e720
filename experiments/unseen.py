"""Tiers beside AIM on public tables that no rule was made on: they were named before any was run.

They are tables of packages for R, as the collection Rdatasets has them in CSV files: what it calls
`csv/PACKAGE/NAME.csv` lies in the folder that the user names as `others/NAME.csv`, as it is.
"""

from __future__ import annotations

from adaptive import EPSILONS
from adaptive import EXPERIMENT as ADAPTIVE
from context import Cell, Context, Experiment
from other_tables import list_others
from paper_data import TOY
from rivals import OURS, REFERENCE

N_SEEDS = 5
PACKAGES = {
    "cat_adoption": "modeldata",
    "injury": "wooldridge",
    "lending_club": "modeldata",
    "hotel_rates": "modeldata",
    "nlswork": "sampleSelection",
    "labsup": "wooldridge",
    "alcohol": "wooldridge",
    "nassCDS": "DAAG",
    "SmokeBan": "AER",
    "student": "mediation",
    "VerbAgg": "lme4",
    "diamonds": "ggplot2",
    "star": "mlmRev",
    "VietNamI": "Ecdat",
    "Kakadu": "Ecdat",
    "SaratogaHouses": "mosaicData",
    "DoctorContacts": "Ecdat",
    "Schooling": "Ecdat",
    "jtrain3": "wooldridge",
    "CPS1988": "AER",
    "DoctorVisits": "AER",
    "Fertility2": "AER",
    "GSS7402": "AER",
    "HealthInsurance": "AER",
    "HMDA": "AER",
    "NMES1988": "AER",
    "Arrests": "carData",
    "BEPS": "carData",
    "CES11": "carData",
    "thornton_hiv": "causaldata",
    "cps_mixtape": "causaldata",
    "rwm5yr": "COUNT",
    "medpar": "COUNT",
    "credit_data": "modeldata",
    "wa_churn": "modeldata",
    "Chem97": "mlmRev",
    "bdf": "mlmRev",
    "bwght2": "wooldridge",
    "catholic": "wooldridge",
    "fertil2": "wooldridge",
    "crime1": "wooldridge",
    "UnempDur": "Ecdat",
    "Catsup": "Ecdat",
    "acs12": "openintro",
    "email": "openintro",
    "Aids2": "MASS",
    "smoking_tbl_df": "MedDataSets",
    "jobs": "mediation",
    "anes_prochoice": "stevedata",
    "wvs_usa_abortion": "stevedata",
}


def cells(context: Context) -> list[Cell]:
    """One for each table that is there, size of marginals, epsilon, mechanism and seed."""
    there = (TOY,) if context.quick else [n for n in PACKAGES if n in list_others(context.folder)]
    return [
        {"data": name, "k": k, "epsilon": epsilon, "mechanism": mechanism, "seed": seed}
        for name in there
        for k in (2, 3)
        for epsilon in ((1.0,) if context.quick else EPSILONS)
        for mechanism in (OURS[0], REFERENCE)
        for seed in range(1 if context.quick else N_SEEDS)
    ]


EXPERIMENT = Experiment("unseen", "Tiers on tables that no rule was made on", cells, ADAPTIVE.run)
