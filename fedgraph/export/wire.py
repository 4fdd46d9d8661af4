"""The wire is the ledger: what a deployment's server received, message by message, against the plan.

Each message either introduces a client (its number and a public key, which follow from nothing private), or holds the values of
one round, each of them one line of the ledger. Anything else is a fault, and is named. What left is priced as it left: a round
that a client released twice with other numbers is paid twice, and one that nobody asked for is not paid.

The server's folder ``wire`` holds the content of every message (``messages.jsonl``, ``<n>.npz``). The owners' own records
(``….released/wire.jsonl``) say by hash what each of them sent, and by the hash before masks whether two messages of a round
hold the same numbers.
"""

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedgraph.errors import DataError
from fedgraph.export.deployment import read_app
from fedgraph.export.site import SitePlan, asked_clients, releases_of
from fedgraph.pricing import price
from fedgraph.privacy import LedgerLine, Viewer, settle

_FRAMES = ("told/", "sums/", "data/", "meta/")  # where Flower and FLARE put what an app sends
_KEY_BYTES = 32
_AGREES = 1e-4
_OPEN = 2.0**60  # steps: no sum of clipped values and noise is so large, and masks are


@dataclass(frozen=True)
class WireAudit:
    """What was found."""

    messages: int  # how many came
    values: int  # how many released vectors they held
    faults: tuple[str, ...]  # what is no line of the ledger, or differs between the records; one sentence each
    epsilon: float  # the price of what left
    stated: float  # the price of the project
    difference: str  # why they differ, in words; empty where they are equal
    frame: tuple[str, ...]  # what the framework itself put around the messages, by name


@dataclass(frozen=True)
class _Message:
    """One message: where it stands, whose it is, its round, its values, and the hashes of all its parts."""

    place: str
    client: int
    round_: int
    sums: Mapping[str, np.ndarray]
    parts: frozenset[tuple[str, str]]


def audit_wire(capture: Path, app: Path, owners: Sequence[Path] = ()) -> WireAudit:
    """Compare what came with the plan of the project ``app``, and price it.

    capture: the folder ``wire`` of the server. owners: site files of the owners, beside which their records lie, or these
    records. ``DataError`` where there is no capture, no project, or a record cannot be read.
    """
    agreed, _ = read_app(app)
    lines, faults = _read(capture / "messages.jsonl"), list[str]()
    told = [_message(capture, f"message {number}", line, faults) for number, line in enumerate(lines, start=1)]
    sent = [line for one in owners for line in _read(_record_of(one))]
    before = {_parts(line): line.get("before_masks") for line in sent}
    rounds: dict[tuple[int, int], list[_Message]] = defaultdict(list)
    for message in told:
        if message.sums:
            rounds[(message.client, message.round_)].append(message)
    spent: dict[tuple[str, int, int], int] = {}
    for (client, round_), messages in rounds.items():
        faults += _against_plan(client, round_, messages, agreed)
        for path, times in _times(messages, before).items():
            spent[(path, client, round_)] = times
    faults += _sums(rounds, agreed)
    if owners:
        known = {_parts(line) for line in sent}  # what was sent and never came is paid by its owner, and seen by nobody here
        faults += [
            f"{message.place}: came from client {message.client}, and no owner has written down that it left"
            for message in told
            if message.parts not in known
        ]
    epsilon = settle.of_releases(agreed.plan.guarantee, _ledger(spent, agreed)).epsilon
    total = price(app).headline.total
    stated = math.inf if total is None else total.epsilon
    frame = tuple(sorted({str(name) for line in lines for name in _list(line.get("frame"))}))
    values = sum(len(message.sums) for message in told)
    difference = "" if abs(epsilon - stated) <= _AGREES else _difference(spent, agreed)
    return WireAudit(len(lines), values, tuple(faults), epsilon, stated, difference, frame)


def _read(file: Path) -> list[dict[str, object]]:
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: no record of messages that a deployment wrote ({error})") from error
    if not all(isinstance(line, dict) and isinstance(line.get("parts"), dict) for line in lines):
        raise DataError(f"{file}: a line holds no parts of a message; allowed: records that a deployment wrote")
    return lines


def _record_of(owner: Path) -> Path:
    return owner if owner.suffix == ".jsonl" else owner.with_name(f"{owner.name}.released") / "wire.jsonl"


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _parts(line: Mapping[str, object]) -> frozenset[tuple[str, str]]:
    """(name, SHA-256) of each part of a message."""
    parts = line["parts"]
    return frozenset((str(name), str(dict(one)["sha256"])) for name, one in dict(parts).items())  # type: ignore[call-overload]


def _digest(value: np.ndarray) -> str:
    array = np.ascontiguousarray(value)
    return hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode() + array.tobytes()).hexdigest()


def _message(capture: Path, place: str, line: Mapping[str, object], faults: list[str]) -> _Message:
    """One message, its content read and hashed again; what no app of ours sends is a fault."""
    try:
        with np.load(capture / str(line["file"]), allow_pickle=False) as file:
            held = {name: np.asarray(file[name]) for name in file}
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{capture}: the content of {place} is not there ({type(error).__name__}: {error})") from error
    if frozenset((name, _digest(value)) for name, value in held.items()) != _parts(line):
        faults.append(f"{place}: is not what was written down when it came")
    plain = {name.partition("/")[2]: value for name, value in held.items() if name.startswith(_FRAMES)}
    sums = {name: value for name, value in plain.items() if "@" in name}
    planned = {"client", "key"} if "key" in plain else {"client", "weight", "round", *sums}
    for name, value in held.items():
        if not name.startswith(_FRAMES) or name.partition("/")[2] not in planned:
            faults.append(f"{place}: {name} left, {value.nbytes:,} bytes that nobody planned")
    client, round_, weight = (_number(plain.get(name)) for name in ("client", "round", "weight"))
    if client is None or plain.get("key", np.zeros(_KEY_BYTES, np.uint8)).nbytes != _KEY_BYTES:
        faults.append(f"{place}: says no client, or a key that is none")
    if "key" not in plain and (weight != 1 or round_ is None or not sums):
        faults.append(f"{place}: neither introduces a client nor holds the values of one round with the weight 1")
    return _Message(place, -1 if client is None else client, -1 if round_ is None else round_, sums, _parts(line))


def _number(value: np.ndarray | None) -> int | None:
    return int(value.item()) if value is not None and value.size == 1 and value.dtype.kind in "iuf" else None


def _asked(agreed: SitePlan, round_: int) -> Sequence[int]:
    return asked_clients(agreed.plan, agreed.cohorts, round_)


def _against_plan(client: int, round_: int, messages: Sequence[_Message], agreed: SitePlan) -> Iterator[str]:
    """Faults of one client's messages of one round: who was asked, which lines of the ledger they are, how numbers travel."""
    plan = agreed.plan
    if not 0 <= round_ < plan.schedule.rounds or client not in _asked(agreed, round_):
        yield f"{messages[0].place}: client {client} sent values in round {round_}, which does not ask it"
        return
    due = sorted(r.path for r in plan.schedule.releases if round_ in r.rounds and r.client in (None, client))
    for message in messages:
        if (paths := sorted(name.rpartition("@")[2] for name in message.sums)) != due:
            yield f"{message.place}: client {client} sent {paths} in round {round_}; lines of the ledger: {due}"
        yield from (
            f"{message.place}: {name} is {value.dtype}; planned: whole numbers of 64 bits"
            for name, value in message.sums.items()
            if value.dtype != np.int64
        )


def _times(messages: Sequence[_Message], before: Mapping[frozenset[tuple[str, str]], object]) -> dict[str, int]:
    """How often each path was released: as often as there are other numbers, before masks where an owner's record says so."""
    found: dict[str, set[str]] = defaultdict(set)
    for message in messages:
        own = before.get(message.parts)
        for name, value in message.sums.items():
            digest = str(own[name]) if isinstance(own, dict) and name in own else _digest(value)
            found[name.rpartition("@")[2]].add(digest)
    return {path: len(digests) for path, digests in found.items()}


def _sums(rounds: Mapping[tuple[int, int], Sequence[_Message]], agreed: SitePlan) -> Iterator[str]:
    """Of masked sums: whether the masks of a whole round cancel, so that it holds these clients and nobody else."""
    plan = agreed.plan
    if plan.facts.viewer is not Viewer.SERVER_SECURE_AGGREGATION:
        return
    for round_ in sorted({r for _, r in rounds if 0 <= r < plan.schedule.rounds}):
        last = [rounds[(client, round_)][-1].sums for client in _asked(agreed, round_) if (client, round_) in rounds]
        if len(last) < len(_asked(agreed, round_)) or any(one.keys() != last[0].keys() for one in last):
            continue  # masks are whole: nobody can read it
        for name in last[0]:
            with np.errstate(over="ignore"):
                total = np.sum([one[name] for one in last], axis=0, dtype=np.int64)
            if total.size >= 8 and np.abs(total.astype(float)).max() > _OPEN:
                yield f"round {round_}: the masks of {name} do not cancel, so it is no sum of these clients"


def _ledger(spent: Mapping[tuple[str, int, int], int], agreed: SitePlan) -> list[LedgerLine]:
    known = {r.path: (r.mechanism.words, r.event) for r in agreed.plan.schedule.releases}
    return [
        LedgerLine("wire", path, ((client, client),), ((round_, round_),), times, *known[path])
        for (path, client, round_), times in spent.items()
        if path in known
    ]


def _difference(spent: Mapping[tuple[str, int, int], int], agreed: SitePlan) -> str:
    """Why what left does not cost what the project states."""
    plan, said = agreed.plan, list[str]()
    clients = range(plan.facts.num_clients)
    whole = {(r.path, k, n) for k in clients for r in releases_of(plan, agreed.cohorts, k) for n in r.rounds}
    if missing := sorted({round_ for _, _, round_ in whole - spent.keys()}):
        said.append(f"rounds {', '.join(map(str, missing))} did not leave, or not of every client")
    twice = sorted(
        f"{path} of client {client} in round {round_}" for (path, client, round_), times in spent.items() if times > 1
    )
    if twice:
        said.append(f"with other numbers once more: {', '.join(twice[:5])}{' …' if len(twice) > 5 else ''}")
    return "; ".join(said) or "the plan's noise is not that of the files"
