"""Words by which columns, files and cells are known: which say who somebody is, what is a tie, what people want to know.

Where names leave it open, what columns hold decides (``roles``, ``reading``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

_FEWEST = 10  # rows from which on a column of which each cell is another one is told to be ids
NOTHING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "-", "–", "—"})
_WHOLE = re.compile(r"[+-]?\d+\.0+")
_MONTH, _DAY = r"(0?[1-9]|1[0-2])", r"(0?[1-9]|[12]\d|3[01])"
_MONTHS = (
    "jan",
    "f[eé][bv]",
    "m[aäe]r",
    "a[pv]r",
    "ma[iyj]",
    "jui?n",
    "jui?l",
    "aug|ao[uû]",
    "sep",
    "o[ck]t",
    "nov",
    "d[eé][cz]",
)
_MONTH_NAME = rf"({'|'.join(_MONTHS)})[^\W\d_]*\.?"
_CLOCK = r"([01]?\d|2[0-4]):[0-5]\d(:[0-5]\d([.,]\d+)?)?( ?[ap]\.?m\.?)?( ?(Z|UTC|GMT|[+-]\d\d(:?\d\d)?))?"
_TIME = re.compile(
    rf"(\d{{4}}([-/.]){_MONTH}\2{_DAY}|({_DAY}([/.]){_MONTH}|{_MONTH}([/.]){_DAY})[/.](\d\d)?\d\d|"
    rf"{_DAY}[ .-]+{_MONTH_NAME}[ -]+(\d\d)?\d\d|{_MONTH_NAME} {_DAY},? \d{{4}})([T ,]+{_CLOCK})?|{_CLOCK}",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(num|nr|nummer|number|n[uú]m[eé]ro|(^|[\W_])(no|lfd|seq|row|line|zeile|record))\W*$")  # of a column
_SEEN = 1_000  # cells of a column in which others than times are looked for

_WANTED = (
    r"fraud|scam|illicit|suspicious|launder|spam|bot$|churn|surviv|outcome|diagnos|disease|infect|dep(artmen)?t$|communit|faction|"
    r"party|subject|topic|field|risk|group|categor|label|class|target"
)
_SOMEONE = (
    r"\w*(customer|client|person|people|member|user|patient|household|family|account|holder|employee|student|pupil|subscriber|"
    r"citizen|kunden?|haushalts?|personal|personen|patienten)"
)
_SURE = r"label|labels|y|class|classes|target|mltarget"
Kind = Literal[
    "ties", "people", "parts", "facts", "things", "others", "superior", "reply", "writer", "wanted", "listed", "owner",
    "label", "head", "weight", "mask", "status", "ended", "sign", "someone", "apart", "groups", "measure",
    "perhaps a measure",
]  # fmt: skip
# Of files, as they are called
_FILES: dict[Kind, str] = {
    "ties": r"edge|tie|link|cite|friend|transaction|transfer|payment|relation|follow|graph|network|adj|contact|call|mail",
    "people": r"node|people|person|user|account|label|target|feature|attribute|vertex|vertices|content|class|member|customer",
    "parts": r"mask|split",  # who trains and who is tested
    # of people who stand in another table
    "facts": r"label|class|target|feature|attribute|profile|detail|fact|mask|split|propert",
}
# Of columns, and of files that list people, without case, spaces and signs
_PLAIN: dict[Kind, str] = {
    # what people share, or what is said of a tie, where numbers alone would be ids
    "things": r"bed|ward|room|event|meeting|product|item|movie|film|book|song|artist|shop|store|merchant|device|household|"
    r"hospital|school|course|company|firm|project|page|address|place|location|rating|score|amount|date|year|age$|count|weight",
    "others": r"friend|follow|contact|partner|manager|boss|superior|peer|colleague|neighbou?r|other|recipient|receiver|"
    r"buddy|spouse|freund|nachbar|wichtel",
    # of people, whom else each of them names
    "superior": r"manager|boss|chef|superior|supervisor|vorgesetzt|reportsto|mentor|sponsor|(referred|invited|recruited)by",
    # of what people wrote: which row a row answers, and whose it is
    "reply": r"^(parent|thread)(id|post|postid|comment|commentid|message|messageid)?$|replyto|answerto|^quot",
    "writer": r"^from(id)?$|author|user|writer|poster|sender|member|participant|student|createdby",
    # such a column comes first, and is the default where it is the only one
    "wanted": _WANTED,
    # and of files that list those who are it
    "listed": rf"{_WANTED}|case|alert|flag|(black|deny|watch)list|sanction|default|arrear|block|banned|closed|left$|leaver|"
    r"dropout|cancel|sick|patient|positive|suspect|abuse|victim|offender|winner|elite|premium",
    "owner": r"^(bank|site|hospital|clinic|branch|owner|institution|organi[sz]ation|centre|center)(id|name|code)?$",
    "label": rf"^({_SURE})$",
    "head": rf"^({_SURE}|group|category|part|weight|feature)$",  # of a first line, beside names of ids
    "weight": r"^(weights?|edgeweight|strength|0)$",  # of a tie: 0 is none
    "mask": r"^(train|val|valid|validation|test)(ing)?mask$",
    "status": r"status|state$|sign$|active|accepted|approved|valid$|deleted|removed|blocked|relation|kind|type|layer|network|"
    r"^net$|wave$",
    "ended": r"deleted|removed|ended|closed|blocked|revoked|cancel|until$|unfollow|unfriend|terminat|expire|"
    r"^(valid|active)to$|^end(date|time|at|on)?$",
    "sign": r"rating|score|sign|trust|opinion|sentiment|valence|weight",  # of a tie: below 0 it may be none
    # who stands behind several rows: a person, or a household
    "someone": rf"^({_SOMEONE})(id|no|nr|num|number|key|ref)$|^household$",
    "apart": r"time|date|url|link|href",  # of two columns that are no ends
}
# What Gephi, Cytoscape and others make of ties; of the short names one alone may be a fact of people, such as a degree of 3
_OF_PROGRAMS: dict[Kind, str] = {
    "groups": r"(^|\.)(modularity[_ ]?class|component ?number|strong ?comp ?num|louvain[_ ]?class)\b",  # also of a text
    "measure": r"(^|\.)("
    r"\w*clos(e)?ness[_ ]?centrality|between+ess[_ ]?centrality|betweenness|page[_ ]?ranks?|eigen(vector)?[_ ]?centrality|"
    r"eccentricity|(weighted )?(in|out)[_ ]?degree|weighted degree|stat_inf_class|clustering[_ ]?coefficient|"
    r"average[_ ]?shortest[_ ]?path[_ ]?length|neighborhood[_ ]?connectivity|topological[_ ]?coefficient"
    r")$",
    "perhaps a measure": r"(^|\.)(degree|authority|hub|clustering|triangles|closeness|radiality|stress|kcore|coreness)$",
}
_RULES = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in (_FILES | _PLAIN | _OF_PROGRAMS).items()}
SIDES = (
    ("source", "target"), ("src", "dst"), ("src", "dest"), ("from", "to"), ("orig", "dest"), ("origin", "destination"),
    ("sender", "receiver"), ("sender", "recipient"), ("payer", "payee"), ("start", "end"), ("startid", "endid"),
    ("head", "tail"), ("citing", "cited"), ("follower", "followee"), ("follower", "following"), ("caller", "callee"),
    ("buyer", "seller"), ("outv", "inv"), ("debtor", "creditor"), ("giver", "receiver"), ("von", "nach"),
    ("ego", "alter"), ("nominator", "nominee"), ("u", "v"),
)  # fmt: skip
WEAK_SIDES = (("1", "2"), ("a", "b"), ("0", "1"), ("i", "j"), ("left", "right"), ("x", "y"))
ID_NAMES = frozenset(
    {"id", "ids", "index", "node", "nodes", "nodeid", "person", "persons", "user", "vertex", "account", "customer", "client",
     "uid", "key", "name", "member", "paper", "author", "entity", "nodename", "vertexname"}
)  # fmt: skip
_CONTACTS = frozenset(  # say who or where somebody is
    {"name", "firstname", "lastname", "surname", "givenname", "familyname", "fullname", "vorname", "nachname", "familienname",
     "phone", "telephone", "phonenumber", "telephonenumber", "mobile", "mobilephone", "telefon", "telefonnummer", "handy",
     "email", "emailaddress", "mailaddress", "street", "streetaddress", "strasse", "iban", "passport"}
)  # fmt: skip


def says(kind: Kind, name: str) -> bool:
    """Whether a column, or a file, is called as what is of this kind."""
    return _RULES[kind].search(plain_name(name) if kind in _PLAIN else name) is not None


def plain_name(name: str) -> str:
    """A column's name without case, spaces and signs: ``User_ID`` is ``userid``."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def is_id_name(name: str) -> bool:
    """Whether a column is called as ids usually are, such as ``id``, ``user_id``, ``txId`` or ``account``."""
    plain = plain_name(name)
    return plain in ID_NAMES or (plain.endswith("id") and not plain.endswith(("paid", "grid", "valid"))) or plain == "idx"


def called_so(wanted: str, names: Iterable[str]) -> list[str]:
    """The columns that a person calls so: spelled so; or with other capitals; or with other spaces, signs, forms of accents."""
    every = list(dict.fromkeys(names))
    for spelled in (str, lambda name: name.casefold().strip(), _letters):
        if (asked := spelled(wanted)) and (found := [name for name in every if spelled(name) == asked]):
            return found
    return []


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFC", name).casefold())


def says_who(name: str, cells: Sequence[str], headed: bool) -> str:
    """Why a column says which row, or who, it is, and nothing else of a person; "" where it does not."""
    there = [cell for cell in cells if cell]
    different = len(set(there))
    counting = plain_name(name) in ("", "index", "level0") or name.casefold().startswith("unnamed")
    numbers = bool(there) and different == len(there) and all(map(str.isdigit, there))
    if numbers and counting:  # with gaps, of a part of a table
        return "it counts the rows"
    if headed and plain_name(name) in _CONTACTS:
        return "its header says who or where somebody is (rename it to use it)"
    called = (is_id_name(name) and plain_name(name) != "name") or (
        numbers and _NUMBER.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold())
    )
    if len(there) >= _FEWEST and headed and called and different >= 0.9 * len(there):
        return "it names or numbers people"
    return ""


def are_times(cells: Sequence[str]) -> bool:
    """Whether the cells of a column are dates, or hours, and so name nobody."""
    there = [cell for cell in cells[:_SEEN] if cell.casefold() not in NOTHING]
    return bool(there) and all(map(_TIME.fullmatch, there))


def date_in(cell: str) -> tuple[list[int], bool]:
    """([year, month, day], or nothing where a cell is no date with a whole year; whether day and month may be exchanged)."""
    parts = re.findall(r"\d+|[^\W\d_]+", cell)[:3] if _TIME.fullmatch(cell) else []
    year = next((one for one in parts if one.isdigit() and len(one) == 4), None)
    if year is None:
        return [], False
    named = [k for k, name in enumerate(_MONTHS, 1) for one in parts if re.match(name, one, re.IGNORECASE)]
    others = [int(one) for one in parts if one.isdigit() and one is not year]
    others = [*named, *others] if named or parts[0] is year else others[::-1]
    return [int(year), *others], "/" in cell and parts[0] is not year


def id_text(cell: str) -> str:
    """An id as it is compared: letters with accents in one form, and without the ``.0`` that pandas writes behind numbers."""
    cell = cell if cell.isascii() else unicodedata.normalize("NFC", cell)
    return cell[: cell.index(".")] if "." in cell and _WHOLE.fullmatch(cell) else cell


def names_people(values: Collection[str], ids: Collection[str]) -> bool:
    """Whether the texts of a column can only be ids of people, by themselves: four in five are, and no age or year looks so.

    Numbers are, where hardly any other number between the least and the largest id is one, or where the ids begin beyond 200
    and the column goes through at least half of them.
    """
    every = set(values)
    different = every.intersection(ids)
    if len(different) < 3 or len(different) < 0.8 * len(every):
        return False
    known, own = ([int(one) for one in some if one.isdigit()] for some in (ids, different))
    if 2 * len(known) < len(ids) or not own:
        return True
    wide = max(known) - min(known) + 1
    years = min(own) >= 1850 and max(own) <= 2100
    return not years and (len(set(known)) < wide / 5 or (min(known) > 200 and max(own) - min(own) >= wide / 2))


def sides_of(names: Sequence[str], sides: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """Pairs of columns whose names differ in their side alone, such as ``txId1, txId2`` or ``nameOrig, nameDest``."""
    plain = {name: plain_name(name) for name in names}
    order = {name: place for place, name in enumerate(plain)}
    found: dict[tuple[str, str], None] = {}
    for one, two in sides:
        exact = len(one) > 1 or one.isdigit()
        rests: dict[tuple[bool, str], list[str]] = {}  # what is left of a name without its side, behind or in front
        for name, called in plain.items():
            if exact or called == two:
                for rest in _without(called, two):
                    rests.setdefault(rest, []).append(name)
        for first, called in plain.items():
            if rests and (exact or called == one):
                others = {name for rest in _without(called, one) for name in rests.get(rest, ()) if name != first}
                found |= {(first, second): None for second in sorted(others, key=order.__getitem__)}
    return list(found)


def _without(called: str, side: str) -> Iterable[tuple[bool, str]]:
    """What is left of a name without a side that it ends, or begins, with; and whether it ends so."""
    if called.endswith(side):
        yield True, called[: -len(side)]
    if called.startswith(side):
        yield False, called[len(side) :]
