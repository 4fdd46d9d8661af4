"""A project that ``fedgraph export`` wrote: ``fedgraph_export.json`` with the files that stand beside it.

What is priced is the code, not the manifest. A file that takes no numbers must be its template, letter by letter, and of one
that takes names every other line must be there: nobody has proven what another file does. All numbers stand in ``planned.py``,
which is read as literals; the manifest gives the sensitivity of each release, which must be that of its bound, and the ε that
is claimed.

Behind masks the noise of LEAST − COLLUDERS clients hides one unit; else each message carries the noise of one client. Rounding
to steps moves neighbours apart by step·√dimension more. The noise is priced as a Gaussian. A rounded Gaussian may be: a shift
by whole numbers and rounding change places, and a sum of rounded Gaussians is a rounded sum, but for terms of e^(−2π²·steps²).
The discrete law differs from it by a factor of at most 1 + 100/(24·steps²) a number, up to ten standard deviations: with
``_LEAST_STEPS`` by less than 10⁻⁹ in ε for a million numbers.
"""

import ast
import hashlib
import json
import math
from importlib import resources
from pathlib import Path

from fedgraph.errors import PricingError, PrivacyError
from fedgraph.pricing import documents
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.options import Options
from fedgraph.pricing.parsers import ParsedTree, parsed_mapping
from fedgraph.pricing.readings import PRICE_TO_SERVER, PRICE_TO_SUMS, PublishedReading, Reading, ReadingRow
from fedgraph.privacy import neighbour_sums, private_counts
from fedgraph.privacy.accounting.accountant import AccountantEpsilon, price
from fedgraph.privacy.events import Composed, Event, Gaussian, PureDP, Repeated
from fedgraph.privacy.units import Protection, Relation, Viewer

_LEAST_STEPS = 2**26
_NUMBERS = {"CLIENTS": "clients", "LEAST": "least_survivors", "COLLUDERS": "colluders", "ROUNDS": "rounds"}  # here, manifest
_FREE = ("planned.py", "README.md")  # what these say is read as numbers, or by people only


def read(document: PricedDocument) -> Reading:
    """One row: the unit, relation and viewer of the manifest, priced from the numbers of the code."""
    options, data = Options(document), document.data
    planned = _planned(document.path.parent, exported_layouts()[options.choice("framework", exported_layouts())])
    try:
        protection = Protection.from_dict({**parsed_mapping(data.get("protection"))})
    except (PrivacyError, ValueError, KeyError) as error:
        raise options.error("protection", f"protection: {error}") from None
    delta, claimed, masked = options.delta("delta"), options.number("epsilon"), planned["MASKED"] is True
    if not delta or (protection.viewer is Viewer.SERVER_SECURE_AGGREGATION) is not masked:
        raise options.error("protection", f"viewer {protection.viewer.value}, δ {delta}; in planned.py MASKED is {masked}")
    for name, key in _NUMBERS.items():
        if options.whole(key) != planned[name]:
            raise options.error(key, f"{key}: {data.get(key)} here, {name} = {planned[name]} in planned.py")
    honest = _whole(planned, "LEAST") - _whole(planned, "COLLUDERS") if masked else 1
    releases, said = parsed_mapping(planned["RELEASES"]), parsed_mapping(data.get("releases"))
    if honest < 1 or releases.keys() != said.keys() or not releases:
        raise options.error("releases", "planned.py and this file differ in who is honest or what is released")
    cohorts, rounds = _cohorts(planned, data.get("cohorts"), options), _whole(planned, "ROUNDS")
    spent = []
    for path, held in releases.items():
        code, given = parsed_mapping(held), Options(document, parsed_mapping(said[path]), ("releases", path))
        event = _event(path, code, given, protection.relation, honest, document.louder)
        spent.append((event, _whole(code, "first"), _whole(code, "rounds")))

    def cost(rounds: int, at: float) -> AccountantEpsilon:
        """Of the client that answers most: nothing is amplified."""
        often = {tuple(sum(a <= r < min(a + n, rounds) for r in own) for _, a, n in spent) for own in cohorts}
        every = (price(Composed(tuple(Repeated(e, n) for (e, _, _), n in zip(spent, one, strict=True))), at) for one in often)
        return max(every, key=lambda found: found.epsilon)

    unit, relation = protection.unit.value, protection.relation.value.removeprefix(f"{protection.unit.value}-")
    why = f"{honest} honest shares of noise hide one {unit}; constants of planned.py"
    return Reading(
        (ReadingRow(unit, relation, PRICE_TO_SUMS if masked else PRICE_TO_SERVER, cost, rounds, delta, why),),
        (PublishedReading(claimed, delta, "total", f"ε of the ledger {str(data.get('ledger_sha256'))[:12]}"),),
        ("who takes part, and which client is which",),
        order=(
            "Each client bounds, rounds, adds its share of the noise and its masks; the server adds; rounds compose.",
            *(f"assuming {a.value}: {protection.sentence(a)}" for a in protection.assumptions),
        ),
        no_fix="export a row of another ε",
    )


def _cohorts(planned: dict[str, ParsedTree], said: object, options: Options) -> list[list[int]]:
    """Per client, the rounds that ask it. ``PricingError`` where a round asks too few, or the manifest says others."""
    held, clients, rounds = planned["COHORTS"], _whole(planned, "CLIENTS"), _whole(planned, "ROUNDS")
    if held != said or not isinstance(held, list) or len(held) not in (0, rounds):
        raise options.error("cohorts", f"cohorts: {str(said)[:60]} here, COHORTS = {str(held)[:60]} in planned.py")
    given: list[list[ParsedTree]] = [one if isinstance(one, list) else [None] for one in held]
    asked = [{k for k in range(clients) if one.count(k) == 1} for one in given]
    if any(len(own) != len(one) or len(own) < _whole(planned, "LEAST") for own, one in zip(asked, given, strict=True)):
        raise options.error("cohorts", f"cohorts: each round asks LEAST or more of clients 0 … {clients - 1}, each once")
    return [[r for r in range(rounds) if not held or k in asked[r]] for k in range(clients)]


def exported_layouts() -> dict[str, dict[str, str]]:
    """The frameworks that a row can be exported to.

    Returns:
        Framework → template → where its text stands in a project.
    """
    found: dict[str, dict[str, str]] = json.loads(exported_template("layouts.json"))
    return found


def exported_template(name: str) -> str:
    """The text of a template as it is shipped."""
    return (resources.files("fedgraph.export") / "templates" / name).read_text(encoding="utf-8")


def _planned(home: Path, layout: dict[str, str]) -> dict[str, ParsedTree]:
    """The numbers of planned.py, once every other file of code is what it was and the plan has its digest."""
    for template, place in layout.items():
        text, said = exported_template(template), documents.priced_document_text(home / place)
        missing = {line for line in text.splitlines() if "{{" not in line} - {*said.splitlines()}
        if Path(place).name not in _FREE and (said != text if template.endswith(".txt") else missing):
            raise PricingError(f"{home / place}:1: is not as fedgraph exports it, so nothing is proven of it; export it again")
    path = home / layout["shared/planned.py.j2"]
    found: dict[str, ParsedTree] = {}
    try:
        for statement in ast.parse(documents.priced_document_text(path)).body[1:]:
            if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
                raise ValueError(f"line {statement.lineno} is no number")
            found[statement.targets[0].id] = ast.literal_eval(statement.value)
    except (SyntaxError, ValueError) as error:
        raise PricingError(f"{path}:1: holds more than names and numbers: {error}") from None
    plan = path.with_name("plan.json")
    digest = hashlib.sha256(plan.read_bytes()).hexdigest() if plan.is_file() else None
    if found.keys() != {*_NUMBERS, "COHORTS", "MASKED", "PLAN_SHA256", "RELEASES"} or digest != found["PLAN_SHA256"]:
        raise PricingError(f"{plan}: is not the plan of PLAN_SHA256 in planned.py, or numbers are missing; export it again")
    return found


def _whole(held: dict[str, ParsedTree], name: str) -> int:
    value = held.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise PricingError(f"planned.py: {name} = {value!r}; allowed: a whole number ≥ 0")
    return value


def _event(path: str, code: dict[str, ParsedTree], given: Options, relation: Relation, honest: int, louder: float) -> Event:
    """What one round of one release costs, with all its noise times ``louder``."""
    sensitivity = given.need("sensitivity", above=True)
    if code.get("kind") == "answers":
        return PureDP(sensitivity)
    share, steps, dimension = code.get("share"), _whole(code, "steps"), _whole(code, "dimension")
    if not isinstance(share, float) or not 0 < share < math.inf or steps < _LEAST_STEPS or code.get("kind") != "gaussian":
        raise PricingError(f"planned.py: {path}: share = {share!r}, steps = {steps}; allowed: > 0, at least {_LEAST_STEPS}")
    if sensitivity < (least := _least(given, relation, dimension)) * (1 - 1e-9):
        raise given.error("sensitivity", f"sensitivity of {path}: {sensitivity:g}; its bound has {least:g}")
    return Gaussian(share * louder * math.sqrt(honest) / (sensitivity + share / steps * math.sqrt(dimension)))


def _least(given: Options, relation: Relation, dimension: int) -> float:
    """Δ₂ of the bound that the manifest names. ``PricingError`` for a bound that is not known here."""
    bound = given.choice("bound", ("ClippedSum", "Rows", "L2Ball", "MeetingCounts", "NeighbourSums"))
    if bound == "NeighbourSums":
        return neighbour_sums.neighbour_sum_sensitivity(relation)
    if bound == "MeetingCounts":
        return private_counts.least_private_count_change(dimension, relation)
    return given.need("clip", above=True) * (2 if relation.replaces else 1)
