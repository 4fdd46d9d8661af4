"""A project that ``fedgraph export`` wrote: ``fedgraph_export.json`` with the files that stand beside it.

What is priced is the code. Every file of it must be what ``ExportedManifest.files`` makes of the manifest's numbers, letter by
letter, and there must be no other file, because a folder ``fedgraph`` beside the app would be imported in place of the package:
nobody has proven what another file does. The wheel of fedgraph that a project carries must hold the files that are installed
here. So the numbers of the manifest are those that run. The sensitivity of each release is that of the bound in ``plan.json``,
which the clients enforce; nothing there is built or run, only read. The manifest is bound to that plan by its hash, must say
the same clip, sensitivity, relation, viewer and δ, and gives the ε that is claimed.

Behind masks the noise of ``least_survivors`` − ``colluders`` clients hides one unit; else each message carries the noise of one
client. Rounding to steps moves neighbours apart by step·√dimension more. The noise is priced as a Gaussian. A rounded Gaussian
may be: a shift by whole numbers and rounding change places, and a sum of rounded Gaussians is a rounded sum, but for terms of
e^(−2π²·steps²). The discrete law differs from it by a factor of at most 1 + 100/(24·steps²) a number, up to ten standard
deviations: with ``_LEAST_STEPS`` by less than 10⁻⁹ in ε for a million numbers.
"""

import base64
import hashlib
import importlib.metadata
import io
import json
import math
import zipfile
import zlib
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedgraph.errors import PricingError, PrivacyError
from fedgraph.pricing import documents, readings
from fedgraph.pricing.documents import Document, Table, table
from fedgraph.pricing.readings import TO_SERVER, TO_SUMS, Claim, Reading, Row
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
_PLAN = "plan.json"
_WHEELS = "wheels"  # the folder of a project with the wheel of fedgraph, which no index has
_DISTRIBUTION = "fedgraph-privacy"
_LEFT_OUT = ("__pycache__", ".pyc", ".nbi", ".nbc")
_TAGS = "Wheel-Version: 1.0\nGenerator: fedgraph\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_COMMANDS = "[console_scripts]\nfedgraph = fedgraph.commands.base:main\n"
EXPORTED_MANIFEST = "fedgraph_export.json"
_Whole = Annotated[int, Field(ge=0, le=10**7)]


class _Keys(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ExportedSum(_Keys):
    """The numbers of one path."""

    kind: Literal["gaussian", "answers"]  # ``answers``: randomised by each record
    bound: str  # what bounds one client's value, by the name of its class
    clip: float | None  # the norm of one unit's contribution, where the bound has one
    sensitivity: Annotated[float, Field(gt=0)]  # Δ₂ under the relation; of answers their ε
    share: Annotated[float, Field(ge=0)]  # standard deviation of one client's noise, in data units
    steps: Annotated[int, Field(ge=1)]  # the share is so many steps
    largest: float  # the norm that no client's value exceeds
    dimension: Annotated[int, Field(ge=0)]  # entries of one value
    first: _Whole  # the first round
    rounds: _Whole  # how many follow one another


class ExportedRow(_Keys):
    """What the row is called."""

    run: str
    row: str
    method: Annotated[str, Field(pattern=r"^[\w-]+$")]
    variant: str
    dataset: str
    trust: str
    part: str  # what is deployed of it


class ExportedManifest(_Keys):
    """What is deployed: protection and ε of the row, who takes part, and per path the numbers of its release."""

    framework: str  # ``flower`` or ``nvflare``
    row: ExportedRow
    protection: dict[str, object]  # unit, relation, viewer and assumptions
    delta: Annotated[float, Field(gt=0, lt=1)]  # δ
    epsilon: Annotated[float, Field(ge=0)]  # of all that is deployed
    clients: _Whole  # how many there are
    least_survivors: _Whole  # answers that a round needs
    colluders: _Whole  # clients that may tell the server their noise
    masked: bool  # sums are hidden behind masks
    rounds: _Whole  # how many there are
    releases: dict[str, ExportedSum]  # path → its numbers
    ledger_sha256: str  # of the ledger of the row
    plan_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]  # of the file of the plan
    cohorts: list[list[int]]  # the clients of each round; empty where all of them answer in every round
    sampling: str  # who is asked, in words
    weights: Literal[1] = 1  # of each client's message in a sum
    number_format: str = (  # how numbers travel
        "whole numbers of steps (share / steps), exact discrete Gaussian noise from the operating system, sums modulo 2^64"
    )
    fedgraph_export: Literal[1] = 1  # version of this format

    def files(self) -> dict[str, str]:
        """Place in the project → text, of every file that is made of a template."""
        from jinja2 import Environment, StrictUndefined  # only an export needs it

        writer = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
        values = {"m": self.model_dump(), "wheel": _own_wheel()[0], "name": f"{self.row.method.replace('_', '-')}-fedgraph"}
        texts = resources.files("fedgraph.export") / "templates"
        made = {}
        for template, place in exported_layouts()[self.framework].items():
            text = (texts / template).read_text(encoding="utf-8")
            made[place] = writer.from_string(text).render(values) if template.endswith(".j2") else text
        return made


def exported_layouts() -> dict[str, dict[str, str]]:
    """The frameworks that a row can be exported to.

    Returns:
        Framework → template → where its text stands in a project.
    """
    texts = resources.files("fedgraph.export") / "templates"
    found: dict[str, dict[str, str]] = json.loads((texts / "layouts.json").read_text(encoding="utf-8"))
    return found


def exported_plan(framework: str) -> str:
    """Where the plan stands in a project: beside the numbers."""
    return Path(exported_layouts()[framework]["shared/planned.py.j2"]).with_name(_PLAN).as_posix()


def exported_wheel() -> tuple[str, bytes]:
    """The wheel of fedgraph that a project carries, and where it stands in it."""
    name, content = _own_wheel()
    return f"{_WHEELS}/{name}", content


def read(document: Document) -> Reading:
    """One row: the unit, relation and viewer of the manifest, priced from the numbers of the code."""
    try:
        said = ExportedManifest.model_validate(document.data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise document.error(f"{'.'.join(map(str, first['loc']))}: found {first['input']!r}; {first['msg']}") from None
    if said.framework not in exported_layouts():
        raise document.error(f"framework: found {said.framework!r}; allowed: {', '.join(exported_layouts())}", "framework")
    home, masked = document.path.parent, said.masked
    try:
        protection = Protection.from_dict(said.protection)
    except (PrivacyError, ValueError, KeyError) as error:
        raise document.error(f"protection: {error}", "protection") from None
    _require_files(home, said)
    if (protection.viewer is Viewer.SERVER_SECURE_AGGREGATION) is not masked:
        raise document.error(f"protection: viewer {protection.viewer.value}; masked is {masked}", "protection")
    honest = said.least_survivors - said.colluders if masked else 1
    if honest < 1 or not said.releases:
        raise document.error("nobody is honest, or nothing is released", "releases")
    if late := [
        f"{path}: {r.first} to {r.first + r.rounds}" for path, r in said.releases.items() if r.first + r.rounds > said.rounds
    ]:
        raise document.error(f"releases: rounds of {late[0]}, which a client answers; rounds: {said.rounds}", "releases")
    agreed = _agreed(home / exported_plan(said.framework), honest, protection, said.delta)
    for path in {**agreed, **said.releases}:
        one, held = agreed.get(path), said.releases.get(path)
        other = None if held is None else (held.kind, held.bound, held.sensitivity, held.clip)
        if one is None or other is None or one[:2] != other[:2] or not _close(one[2:], other[2:]):
            raise document.error(f"releases: {path}: {one} in {_PLAN}, and {other} here; export it again", "releases")
    spent = [
        (_event(path, r, protection.relation, honest, document.louder), r.first, r.rounds) for path, r in said.releases.items()
    ]
    often = {tuple(sum(a <= r < a + n for r in own) for _, a, n in spent) for own in _asked(document, said)}
    every = [Composed(tuple(Repeated(e, n) for (e, _, _), n in zip(spent, one, strict=True))) for one in sorted(often)]
    unit, relation = protection.unit.value, protection.relation.value.removeprefix(f"{protection.unit.value}-")
    why = f"{honest} honest shares of noise hide one {unit}; {said.rounds:,} rounds of the client that answers most; constants "
    why += "of planned.py"
    return Reading(
        (Row(unit, relation, TO_SUMS if masked else TO_SERVER, readings.dearest(every, said.delta), 1, said.delta, why),),
        (Claim(said.epsilon, said.delta, "total", f"ε of the ledger {said.ledger_sha256[:12]}"),),
        ("who takes part, and which client is which",),
        order=(
            "Each client bounds, rounds, adds its share of the noise and its masks; the server adds; rounds compose.",
            *(f"assuming {a.value}: {protection.sentence(a)}" for a in protection.assumptions),
        ),
    )


def _require_files(home: Path, said: ExportedManifest) -> None:
    """``PricingError`` unless a project has the files of its manifest, and no other; what README.md says is for people."""
    texts, (wheel, content), plan = said.files(), exported_wheel(), exported_plan(said.framework)
    expected = {*texts, plan, EXPORTED_MANIFEST, wheel}
    found = {p.relative_to(home).as_posix() for p in home.rglob("*") if p.is_symlink() or not p.is_dir()}
    found = {name for name in found if not name.startswith(".git/")}
    if extra := sorted(found - expected):
        more = f" and {len(extra) - 1} more" if len(extra) > 1 else ""
        raise PricingError(
            f"{home / extra[0]}: is no file of this export{more}; what it does to the noise is not proven; remove it"
        )
    if missing := sorted(expected - found):
        raise PricingError(f"{home / missing[0]}: is missing in this export; export it again")
    if (home / wheel).read_bytes() != content:
        raise PricingError(f"{home / wheel}: is not the wheel of this fedgraph, so nothing is proven of it; export it again")
    for place, text in texts.items():
        if place != "README.md" and documents.text(home / place) != text:
            raise PricingError(f"{home / place}:1: is not as fedgraph exports it, so nothing is proven of it; export it again")
    if (digest := hashlib.sha256((home / plan).read_bytes()).hexdigest()) != said.plan_sha256:
        words = f"its SHA-256 is {digest[:12]}, and {EXPORTED_MANIFEST} says plan_sha256 {said.plan_sha256[:12]}"
        raise PricingError(f"{home / plan}: is not the plan of this export: {words}; export it again")


def _agreed(path: Path, honest: int, protection: Protection, delta: float) -> dict[str, tuple[str, str, float, float | None]]:
    """Path → (kind, bound, sensitivity that its noise was made for, clip), as a plan says.

    honest: clients whose noise hides one unit. ``PricingError`` where it is no plan, or one of another protection or δ.
    """
    made: dict[str, tuple[str, str, float, float | None]] = {}
    try:
        content = zlib.decompress(base64.b64decode(json.loads(path.read_text(encoding="utf-8"))["bytes"]))
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        plan = _within(json.loads(header["__metadata__"]["fedgraph"]), "plan")
        relation, viewer = (str(_within(plan, "guarantee", "protection", name)["name"]) for name in ("relation", "viewer"))
        found = Relation[relation], Viewer[viewer], table(plan, "fields", "guarantee", "fields")["delta"]
        releases = _within(plan, "schedule", "releases")["tuple"]
        for release in releases if isinstance(releases, list) else ():
            bound, mechanism, event = (table(release, "fields", part, "fields") for part in ("bound", "mechanism", "event"))
            name, clip = str(_within(release, "bound")["record"]).rpartition(":")[2], bound.get("clip", bound.get("radius"))
            multiplier, std, epsilon = event.get("noise_multiplier"), mechanism.get("std"), event.get("epsilon")
            one: tuple[str, str, float, float | None] = (
                "answers",
                name,
                epsilon if isinstance(epsilon, float) else math.inf,
                None,
            )
            if isinstance(multiplier, float) and isinstance(std, float):
                held = float(clip) if isinstance(clip, (int, float)) else None
                one = "gaussian", name, std * math.sqrt(honest) / multiplier, held
            made[str(table(release, "fields")["path"])] = one
    except (OSError, ValueError, KeyError, TypeError, zlib.error, ZeroDivisionError) as error:
        raise PricingError(f"{path}: no plan that fedgraph exported ({type(error).__name__}: {error})") from None
    if found != (protection.relation, protection.viewer, delta):
        words = f"protects {found[0].value} toward {found[1].value} at δ = {found[2]}; {EXPORTED_MANIFEST} says"
        asked = f"{protection.relation.value} toward {protection.viewer.value} at δ = {delta}"
        raise PricingError(f"{path}: {words} {asked}; export it again")
    return made


def _within(record: object, *names: str) -> Table:
    """A field of a record in a file of ours, or of one inside: ``{"record": its class, "fields": …}``."""
    for name in names:
        record = table(record, "fields", name)
    return table(record)


def _close(one: tuple[float | None, ...], other: tuple[float | None, ...]) -> bool:
    """Whether numbers are the same, but for what their text rounds."""
    return all(a == b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9) for a, b in zip(one, other, strict=True))


def _asked(document: Document, said: ExportedManifest) -> list[list[int]]:
    """Per client, the rounds that ask it. ``PricingError`` where a round asks too few, somebody twice, or nobody there."""
    held, clients = said.cohorts, range(said.clients)
    fewest = all(len(set(one)) == len(one) >= said.least_survivors and set(one) <= set(clients) for one in held)
    if len(held) not in (0, said.rounds) or not fewest:
        words = f"cohorts: each round asks least_survivors or more of clients 0 … {said.clients - 1}, each once"
        raise document.error(words, "cohorts")
    return [[r for r in range(said.rounds) if not held or k in held[r]] for k in clients]


def _event(path: str, said: ExportedSum, relation: Relation, honest: int, louder: float) -> Event:
    """What one round of one release costs, with all its noise times ``louder``."""
    if said.kind == "answers":
        return PureDP(said.sensitivity)
    if not 0 < said.share < math.inf or said.steps < _LEAST_STEPS:
        raise PricingError(
            f"planned.py: {path}: share = {said.share!r}, steps = {said.steps}; allowed: > 0, at least {_LEAST_STEPS}"
        )
    if said.bound == "NeighbourSums":
        least = neighbour_sums.sensitivity(relation)
    elif said.bound == "MeetingCounts":
        least = private_counts.least_change(said.dimension, relation)
    elif said.bound in ("ClippedSum", "Rows", "L2Ball") and said.clip is not None:
        least = said.clip * (2 if relation.replaces else 1)
    else:
        raise PricingError(f"{_PLAN}: bound {said.bound}, clip {said.clip}: a bound that is known here is needed")
    if said.sensitivity < least * (1 - 1e-9):
        raise PricingError(f"{_PLAN}: sensitivity of {path}: {said.sensitivity:g}; its bound has {least:g}")
    return Gaussian(
        said.share * louder * math.sqrt(honest) / (said.sensitivity + said.share / said.steps * math.sqrt(said.dimension))
    )


@lru_cache(maxsize=1)
def _own_wheel() -> tuple[str, bytes]:
    """(name of the file, its bytes) of the wheel of this very fedgraph, made of the files that are installed.

    It is the same, byte for byte, wherever the same files are. ``PricingError`` where fedgraph is not installed by name.
    """
    try:
        told = importlib.metadata.distribution(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError as error:
        raise PricingError(f"{_DISTRIBUTION} is not installed by name, so no wheel of it can be made: pip install .") from error
    home = Path(__file__).parents[2]
    files = {f"fedgraph/{p.relative_to(home).as_posix()}": p.read_bytes() for p in home.rglob("*") if _belongs(p)}
    beside = home.parent / "scenarios"  # of a checkout; installed, they are inside
    if not (home / "scenarios").is_dir() and beside.is_dir():
        files |= {f"fedgraph/scenarios/{p.name}": p.read_bytes() for p in beside.iterdir() if _belongs(p)}
    stem = f"{_DISTRIBUTION.replace('-', '_')}-{told.version}"
    info = f"{stem}.dist-info"
    files[f"{info}/METADATA"] = (told.read_text("METADATA") or "").encode()
    files[f"{info}/WHEEL"], files[f"{info}/entry_points.txt"] = _TAGS.encode(), _COMMANDS.encode()
    hashes = {name: base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=") for name, content in files.items()}
    record = "".join(f"{name},sha256={hashes[name].decode()},{len(files[name])}\n" for name in sorted(files))
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            one = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            one.external_attr = 0o644 << 16
            archive.writestr(one, files[name])
    return f"{stem}-py3-none-any.whl", made.getvalue()


def _belongs(path: Path) -> bool:
    return path.is_file() and not any(part.endswith(_LEFT_OUT) for part in path.parts)
