"""What a column's name says about what it holds; nothing here looks at values.

Names are split into words, at capitals, digits and signs: `patientID2` is patient, id.

>>> role_of("patientID"), role_of("date_of_birth"), role_of("hours-per-week")
(<Role.PERSON: 'tells people apart'>, <Role.DATE: 'date'>, <Role.NUMBER: 'number'>)
"""

from __future__ import annotations

import re
from enum import StrEnum

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _list(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Alone, these call a person; the others may be what a person is, or how many there are.
_WHO = _list("patient person customer client user subject participant respondent")
_PERSONS = _WHO | _list("people member employee student household citizen resident donor voter")
_COUNTS = _list("number num no nr code")
_KEYS = _COUNTS | _list("id ids key uuid guid identifier hash")
_SECRETS = _list(
    "ssn mrn nhs passport iban account license licence plate token password ip mac card"
)
_CONTACTS = _list("email mail phone telephone mobile fax address street url website")
_NAMES = _list("surname firstname lastname fullname forename username nickname")
_PARTS = _PERSONS | _list("first last full middle maiden family given")
_TEXTS = _list(
    "comment comments note notes remark remarks description text message abstract review feedback "
    "narrative transcript memo"
)
_DATES = _list(
    "date dob birthday birthdate timestamp datetime since until admitted discharged joined"
)
# Not month or day: both are often names, and few enough to be categories as numbers, too.
_NUMBERS = _list(
    "age year years months amount price cost costs fee fare rent tax income salary wage pay "
    "earnings revenue sales profit budget debt balance value weight height length width depth "
    "size area volume speed count total sum mean average rate ratio score points percent share "
    "gain loss duration delay hours minutes seconds days weeks distance miles mileage temperature "
    "pressure dose glucose cholesterol insulin number num quantity qty visits attempts children "
    "siblings rooms bedrooms bathrooms population capacity bmi latitude longitude lat lon"
)


class Role(StrEnum):
    """What a column seems to be."""

    PERSON = "tells people apart"
    IDENTIFIER = "an identifier"
    NAME = "names of people"
    CONTACT = "how to reach people"
    FREE_TEXT = "free text"
    DATE = "date"
    NUMBER = "number"
    OTHER = "anything else"
    UNKNOWN = "values of a type that no kind of column describes"

    @property
    def is_revealing(self) -> bool:
        """Whether such a column should not be released at all."""
        return self in (
            Role.PERSON, Role.IDENTIFIER, Role.NAME, Role.CONTACT, Role.FREE_TEXT
        )  # fmt: skip


def role_of(name: str) -> Role:
    """What a column seems to be, by its name alone."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return Role.OTHER
    kinds, last = set(words), words[-1]
    tests = {
        Role.PERSON: (kinds & _PERSONS and last in _KEYS) or (len(words) == 1 and last in _WHO),
        Role.IDENTIFIER: last in _KEYS - _COUNTS | _SECRETS or (kinds & _SECRETS and last in _KEYS),
        Role.CONTACT: last in _CONTACTS,
        Role.NAME: kinds & _NAMES or words == ["name"] or ("name" in kinds and kinds & _PARTS),
        Role.FREE_TEXT: last in _TEXTS,
        Role.DATE: kinds & _DATES or (last == "at" and len(words) > 1),
        Role.NUMBER: kinds & _NUMBERS,
    }
    return next((role for role, holds in tests.items() if holds), Role.OTHER)
