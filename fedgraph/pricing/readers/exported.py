"""A project that ``fedgraph export`` wrote: ``fedgraph_export.json`` with the files that stand beside it.

What is priced is the code, not the manifest. A file that takes no numbers must be its template, letter by letter; of one that
takes names every line must be one of the template, and every other line of that must be there; and there must be no other file,
because a folder ``fedgraph`` beside the app would be imported in place of the package: nobody has proven what another file
does. The wheel of fedgraph that a project carries must hold the files that are installed here. All numbers stand in
``planned.py``, which is read as literals. The sensitivity of each release is that of the bound in ``plan.json``, which the
clients enforce; nothing there is built or run, only read. The manifest is bound to that plan by its hash, must say the same
clip, sensitivity, relation and viewer, and gives the ε that is claimed.

Behind masks the noise of LEAST − COLLUDERS clients hides one unit; else each message carries the noise of one client. Rounding
to steps moves neighbours apart by step·√dimension more. The noise is priced as a Gaussian. A rounded Gaussian may be: a shift
by whole numbers and rounding change places, and a sum of rounded Gaussians is a rounded sum, but for terms of e^(−2π²·steps²).
The discrete law differs from it by a factor of at most 1 + 100/(24·steps²) a number, up to ten standard deviations: with
``_LEAST_STEPS`` by less than 10⁻⁹ in ε for a million numbers.
"""

import ast
import base64
import hashlib
import json
import math
import re
import zlib
from importlib import resources
from pathlib import Path
from typing import Literal

from fedgraph.errors import PricingError, PrivacyError
from fedgraph.pricing import documents, readings
from fedgraph.pricing.documents import Document
from fedgraph.pricing.facts import AmountOrNone, Delta, Positive, PositiveOrNone, SomeKeys, Table, Times, table
from fedgraph.pricing.readings import TO_SERVER, TO_SUMS, Claim, Reading, Row
from fedgraph.pricing.wheel import own_wheel, same_wheel
from fedgraph.privacy import (
    Composed,
    Event,
    Gaussian,
    Protection,
    PureDP,
    Relation,
    Repeated,
    Viewer,
    neighbour_sums,
    private_counts,
)

_LEAST_STEPS = 2**26
_NUMBERS = {"CLIENTS": "clients", "LEAST": "least_survivors", "COLLUDERS": "colluders", "ROUNDS": "rounds"}  # here, manifest
_MANIFEST = "fedgraph_export.json"
_PLAN = "plan.json"
WHEELS = "wheels"  # the folder of a project with the wheel of fedgraph
_FREE = ("planned.py", "README.md")  # what these say is read as numbers, or by people only


class _Release(SomeKeys):
    """One release, as the manifest says it, and as the plan does."""

    sensitivity: Positive
    bound: Literal["ClippedSum", "Rows", "L2Ball", "MeetingCounts", "NeighbourSums"] | None = None
    clip: PositiveOrNone = None

    def least(self, relation: Relation, dimension: int) -> float:
        """Δ₂ of its bound."""
        if self.bound == "NeighbourSums":
            return neighbour_sums.sensitivity(relation)
        if self.bound == "MeetingCounts":
            return private_counts.least_change(dimension, relation)
        if self.bound is None or self.clip is None:
            raise PricingError(f"{_PLAN}: bound {self.bound}, clip {self.clip}: a bound that is known here is needed")
        return self.clip * (2 if relation.replaces else 1)


class _Manifest(SomeKeys):
    """What the export says of itself; what its code says must be the same."""

    framework: str
    protection: dict[str, object]
    epsilon: AmountOrNone = None
    delta: Delta
    clients: Times
    least_survivors: Times
    colluders: Times
    rounds: Times
    cohorts: list[list[int]]
    releases: dict[str, _Release]
    plan_sha256: str
    ledger_sha256: str = ""


def read(document: Document) -> Reading:
    """One row: the unit, relation and viewer of the manifest, priced from the numbers of the code."""
    said, layouts = document.checked(_Manifest), exported_layouts()
    if said.framework not in layouts:
        raise document.error(f"framework: found {said.framework!r}; allowed: {', '.join(layouts)}", "framework")
    planned = _planned(document.path.parent, layouts[said.framework])
    try:
        protection = Protection.from_dict(said.protection)
    except (PrivacyError, ValueError, KeyError) as error:
        raise document.error(f"protection: {error}", "protection") from None
    delta, masked = said.delta, planned["MASKED"] is True
    if not delta or (protection.viewer is Viewer.SERVER_SECURE_AGGREGATION) is not masked:
        words = f"viewer {protection.viewer.value}, δ {delta}; in planned.py MASKED is {masked}"
        raise document.error(words, "protection")
    for name, key in _NUMBERS.items():
        if (here := said.model_dump()[key]) != planned[name]:
            raise document.error(f"{key}: {here} here, {name} = {planned[name]} in planned.py", key)
    if said.plan_sha256 != planned["PLAN_SHA256"]:
        words = f"plan_sha256: {said.plan_sha256[:12]} here, {planned['PLAN_SHA256'][:12]} in planned.py"  # type: ignore[index]
        raise document.error(words, "plan_sha256")
    honest, releases = said.least_survivors - said.colluders if masked else 1, table(planned["RELEASES"])
    if honest < 1 or releases.keys() != said.releases.keys() or not releases:
        raise document.error("planned.py and this file differ in who is honest or what is released", "releases")
    agreed = _agreed(document.path.parent / layouts[said.framework]["shared/planned.py.j2"], max(honest, 1), protection)
    if other := next((p for p in {**agreed, **said.releases} if _differ(agreed.get(p), said.releases.get(p))), None):
        words = f"{other}: ({agreed.get(other)}) in {_PLAN}, and ({said.releases.get(other)}) here"
        raise document.error(f"releases: {words}; export it again", "releases")
    cohorts, spent = _cohorts(document, planned, said), []
    for path, held in releases.items():
        code = table(held)
        event = _event(path, code, agreed[path], protection.relation, honest, document.louder)
        spent.append((event, _whole(code, "first"), _whole(code, "rounds")))
    often = {tuple(sum(a <= r < min(a + n, said.rounds) for r in own) for _, a, n in spent) for own in cohorts}
    every = [Composed(tuple(Repeated(e, n) for (e, _, _), n in zip(spent, one, strict=True))) for one in sorted(often)]
    unit, relation = protection.unit.value, protection.relation.value.removeprefix(f"{protection.unit.value}-")
    why = f"{honest} honest shares of noise hide one {unit}; {said.rounds:,} rounds of the client that answers most; constants "
    why += "of planned.py"
    return Reading(
        (Row(unit, relation, TO_SUMS if masked else TO_SERVER, readings.dearest(every, delta), 1, delta, why),),
        (Claim(said.epsilon, delta, "total", f"ε of the ledger {said.ledger_sha256[:12]}"),),
        ("who takes part, and which client is which",),
        order=(
            "Each client bounds, rounds, adds its share of the noise and its masks; the server adds; rounds compose.",
            *(f"assuming {a.value}: {protection.sentence(a)}" for a in protection.assumptions),
        ),
        no_fix="export a row of another ε",
    )


def _differ(one: _Release | None, other: _Release | None) -> bool:
    """Whether two say another release; a number may differ by what its text rounds."""
    if one is None or other is None or one.bound != other.bound or (one.clip is None) is not (other.clip is None):
        return True
    pairs = ((one.sensitivity, other.sensitivity), (one.clip or 1.0, other.clip or 1.0))
    return not all(math.isclose(a, b, rel_tol=1e-9) for a, b in pairs)


def _agreed(planned: Path, honest: int, protection: Protection) -> dict[str, _Release]:
    """What the plan beside ``planned.py`` says of each path. ``PricingError`` where it is no plan, or of another protection.

    honest: clients whose noise hides one unit.
    """
    path = planned.with_name(_PLAN)
    try:
        content = zlib.decompress(base64.b64decode(json.loads(path.read_text(encoding="utf-8"))["bytes"]))
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        plan = _within(json.loads(header["__metadata__"]["fedgraph"]), "plan")
        relation, viewer = (str(_within(plan, "guarantee", "protection", name)["name"]) for name in ("relation", "viewer"))
        found, releases = (Relation[relation], Viewer[viewer]), _within(plan, "schedule", "releases")["tuple"]
        made = {str(table(r, "fields")["path"]): _of_plan(r, honest) for r in (releases if isinstance(releases, list) else ())}
    except (OSError, ValueError, KeyError, TypeError, zlib.error) as error:
        raise PricingError(f"{path}: no plan that fedgraph exported ({type(error).__name__}: {error})") from None
    if found != (protection.relation, protection.viewer):
        words = f"protects {found[0].value} toward {found[1].value}; {_MANIFEST} says {protection.relation.value} toward"
        raise PricingError(f"{path}: {words} {protection.viewer.value}; export it again")
    return made


def _within(record: object, *names: str) -> Table:
    """A field of a record in a file of ours, or of one inside: ``{"record": its class, "fields": …}``."""
    for name in names:
        record = table(record, "fields", name)
    return table(record)


def _of_plan(release: object, honest: int) -> _Release:
    """One release: what its bound lets one unit move, and the sensitivity that its noise was made for."""
    bound, mechanism, event = (table(release, "fields", part, "fields") for part in ("bound", "mechanism", "event"))
    multiplier, std = event.get("noise_multiplier"), mechanism.get("std")
    if not isinstance(multiplier, float) or not isinstance(std, float):
        return _Release.model_validate({"sensitivity": event.get("epsilon") or math.inf})
    kind, clip = str(_within(release, "bound")["record"]).rpartition(":")[2], bound.get("clip", bound.get("radius"))
    return _Release.model_validate({"sensitivity": std * math.sqrt(honest) / multiplier, "bound": kind, "clip": clip})


def _cohorts(document: Document, planned: Table, said: _Manifest) -> list[list[int]]:
    """Per client, the rounds that ask it. ``PricingError`` where a round asks too few, or the manifest says others."""
    held = said.cohorts
    if planned["COHORTS"] != held or len(held) not in (0, said.rounds):
        words = f"cohorts: {str(held)[:60]} here, COHORTS = {str(planned['COHORTS'])[:60]} in planned.py"
        raise document.error(words, "cohorts")
    for one in held:
        if len(set(one)) != len(one) or len(one) < said.least_survivors or not set(one) <= set(range(said.clients)):
            raise document.error(
                f"cohorts: each round asks LEAST or more of clients 0 … {said.clients - 1}, each once", "cohorts"
            )
    return [[r for r in range(said.rounds) if not held or k in held[r]] for k in range(said.clients)]


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


def _planned(home: Path, layout: dict[str, str]) -> Table:
    """The numbers of planned.py, once every other file of code is what it was and the plan has its digest."""
    plan = (home / layout["shared/planned.py.j2"]).with_name(_PLAN)
    wheel, content = own_wheel()
    _require_complete(home, {*layout.values(), plan.relative_to(home).as_posix(), _MANIFEST, f"{WHEELS}/{wheel}"})
    if not same_wheel(home / WHEELS / wheel, content):
        raise PricingError(
            f"{home / WHEELS / wheel}: is not the wheel of this fedgraph, so nothing is proven of it; export it again"
        )
    for template, place in layout.items():
        text, said = exported_template(template), documents.text(home / place)
        if Path(place).name not in _FREE and (said != text if template.endswith(".txt") else not _of_template(said, text)):
            raise PricingError(f"{home / place}:1: is not as fedgraph exports it, so nothing is proven of it; export it again")
    path = home / layout["shared/planned.py.j2"]
    found: Table = {}
    try:
        for number, statement in enumerate(ast.parse(documents.text(path)).body):
            if number == 0 and isinstance(statement, ast.Expr) and isinstance(ast.literal_eval(statement.value), str):
                continue
            if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)) or statement.targets[1:]:
                raise ValueError(f"line {statement.lineno} is no number")
            found[statement.targets[0].id] = ast.literal_eval(statement.value)
    except (SyntaxError, ValueError) as error:
        raise PricingError(f"{path}:1: holds more than names and numbers: {error}") from None
    digest = hashlib.sha256(plan.read_bytes()).hexdigest() if plan.is_file() else None
    if found.keys() != {*_NUMBERS, "COHORTS", "MASKED", "PLAN_SHA256", "RELEASES"} or digest != found["PLAN_SHA256"]:
        raise PricingError(f"{plan}: is not the plan of PLAN_SHA256 in planned.py, or numbers are missing; export it again")
    return found


def _require_complete(home: Path, expected: set[str]) -> None:
    """``PricingError`` where a project has another file, or lacks one. ``.git`` is no part of it."""
    found = {p.relative_to(home).as_posix() for p in home.rglob("*") if p.is_symlink() or not p.is_dir()}
    found = {name for name in found if not name.startswith(".git/")}
    if extra := sorted(found - expected):
        more = f" and {len(extra) - 1} more" if len(extra) > 1 else ""
        raise PricingError(
            f"{home / extra[0]}: is no file of this export{more}; what it does to the noise is not proven; remove it"
        )
    if missing := sorted(expected - found):
        raise PricingError(f"{home / missing[0]}: is missing in this export; export it again")


def _of_template(said: str, template: str) -> bool:
    """Whether a file is its template, line by line, with words that hold no quotation mark in the places of names."""
    shapes = ('[^"\\\\\n]*'.join(map(re.escape, re.split(r"{{.*?}}", line))) for line in template.splitlines())
    return re.fullmatch("\n".join(shapes), said.rstrip("\n")) is not None


def _whole(held: Table, name: str) -> int:
    value = held.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise PricingError(f"planned.py: {name} = {value!r}; allowed: a whole number ≥ 0")
    return value


def _event(path: str, code: Table, said: _Release, relation: Relation, honest: int, louder: float) -> Event:
    """What one round of one release costs, with all its noise times ``louder``."""
    if code.get("kind") == "answers":
        return PureDP(said.sensitivity)
    share, steps, dimension = code.get("share"), _whole(code, "steps"), _whole(code, "dimension")
    if not isinstance(share, float) or not 0 < share < math.inf or steps < _LEAST_STEPS or code.get("kind") != "gaussian":
        raise PricingError(f"planned.py: {path}: share = {share!r}, steps = {steps}; allowed: > 0, at least {_LEAST_STEPS}")
    if said.sensitivity < (least := said.least(relation, dimension)) * (1 - 1e-9):
        raise PricingError(f"{_PLAN}: sensitivity of {path}: {said.sensitivity:g}; its bound has {least:g}")
    return Gaussian(share * louder * math.sqrt(honest) / (said.sensitivity + share / steps * math.sqrt(dimension)))
