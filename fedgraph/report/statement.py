"""The privacy of one row in plain words: what is protected, from whom, at which ε, and under which assumptions."""

import math
from dataclasses import dataclass

from fedgraph.cells.facts import GraphClusteringFacts
from fedgraph.privacy.units import Protection
from fedgraph.report import attacks
from fedgraph.report.report_rows import Row, rounded, rounded_up

CAVEATS = (
    "Noise is drawn in floating point; attacks on floating-point noise (Mironov 2012) are outside every statement here.",
    "Noise follows from the seed of the run, so that a run can be repeated: whoever knows the seed can subtract it. fedgraph "
    "simulates; to publish anything about real people, write seed: secret.",
    "Each ε is about one row. This page shows many rows, scores against true labels and counts of the same data: the page "
    "itself is for the experimenter and is not a private output. What an attack trains and encodes once more, to measure ε, is "
    "for the experimenter, too: it passes the same door, but no ledger counts it.",
)

SECRET = (
    "Noise and every secret sample come from a cryptographic generator (ChaCha20), whose 256-bit key was drawn from the "
    "operating system and kept in memory only: the run cannot be repeated, and nobody can subtract its noise. Cells of a "
    "resumed run that had not been finished drew other keys; what they had sent before counts beside it."
)


def caveats(secret: bool) -> tuple[str, ...]:
    """What is outside every statement. secret: whether the run's seed was ``secret``."""
    return (CAVEATS[0], SECRET, CAVEATS[2]) if secret else CAVEATS


@dataclass(frozen=True)
class Statement:
    """who: method and variant. at: the world, and the ε asked for. sentences: the statement. conditions: what it assumes, one
    sentence each. notes: what its plan adds.
    """

    who: str
    at: str
    sentences: tuple[str, ...]
    conditions: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Which row."""
        return f"{self.who} · {self.at}"


def describe_row(row: Row) -> Statement:
    """The statement of one row."""
    protection = row.protection
    target = "no budget" if math.isinf(row.head.epsilon) else f"ε = {rounded(row.head.epsilon)}"
    reading = " (as published)" if row.head.calibrated_by == "published" else ""
    who = f"{row.head.method} · {row.head.variant}"
    notes = tuple(dict.fromkeys(note for e in row.entries for note in e.notes))
    conditions = tuple(protection.sentence(a) for a in protection.assumptions)
    return Statement(who, f"{row.head.world.words} · {target}{reading}", tuple(_sentences(row, protection)), conditions, notes)


def _sentences(row: Row, protection: Protection) -> list[str]:
    who = f"from {protection.viewer.words}"
    unit, relation = protection.unit.value, protection.relation.words
    found = []
    if not row.paths:
        raw = math.isinf(row.provable)
        found.append(
            f"Computed on the raw data, for comparison: it protects nothing {who}, ε = ∞."
            if raw
            else "Nothing private is sent; only public sizes are used, so nothing is to be protected."
        )
        return found
    broken = next((e.facts.broken_promise for e in row.entries if e.facts.broken_promise), None)
    if broken is not None:
        found.append(f"It protects nothing that can be proven {who}, ε = ∞: {broken}")
    elif math.isinf(row.provable):
        open_paths = [p for p in row.paths if math.isinf(row.path(p))]
        found.append(f"As a whole this row protects nothing {who}: {_listed(open_paths)} sent in clear, ε = ∞.")
    else:
        found.append(f"Protects each {unit}: two worlds are compared, where {relation}.")
        found.append(
            f"Protected {who}: between the two worlds, what they see differs by at most "
            f"ε = {rounded_up(row.provable, 4)} with δ = {row.head.delta:.3g} ({row.head.theorem})."
        )
    if len(row.paths) > 1 and broken is None:
        for path in row.paths:
            price = row.path(path)
            if math.isfinite(price):
                found.append(
                    f"The path “{path}” alone, taking the rest as given: ε = {rounded_up(price, 4)} for the worst {unit} "
                    f"({relation}){_worst(row)}."
                )
            else:
                found.append(f"The path “{path}” alone: ε = ∞.")
    published = "makes no claim for this noise" if row.published is None else f"gives ε = {rounded(row.published, 4)}"
    found.append(f"The published formula {published}; {attacks.describe_bound(row)}.")
    if row.measured is not None:
        found.append(f"The attacker read: {row.attack.what}.")
    if len(row.entries) > 1:
        found.append(
            f"This is the guarantee of one run. The numbers are means over {len(row.entries)} runs on the same people: to "
            "publish all of them would cost up to that many times as much."
        )
    return found


def _worst(row: Row) -> str:
    count = max((e.facts.worst_node_clients for e in row.entries if isinstance(e.facts, GraphClusteringFacts)), default=0)
    return f", which {count} clients hold" if count > 1 else ""


def _listed(paths: list[str]) -> str:
    names = " and ".join(f"“{p}”" for p in paths)
    return f"the path {names} is" if len(paths) == 1 else f"the paths {names} are"
