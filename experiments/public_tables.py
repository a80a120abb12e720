"""Public tables by which mechanisms are judged: all were named before anything was run on them.

They are tables of packages for R, as the collection Rdatasets has them in CSV files: what it calls
`csv/PACKAGE/NAME.csv` lies in the folder that the user names as `others/NAME.csv`, as it is.
"""

from __future__ import annotations

UNTOUCHED = {
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
}
"""The packages of tables on which no rule of `Tiers` was made."""
LOOKED_AT = {
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
"""Those on which one was found: that columns are counted once."""
PACKAGES = UNTOUCHED | LOOKED_AT
