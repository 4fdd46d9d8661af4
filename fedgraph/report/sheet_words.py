"""What a privacy sheet and a registry record say of one row: everything is read from the run, or is a marked blank."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Protection, Viewer
from fedgraph.report import attacks, deployment_record, sheet_price
from fedgraph.report.deployment_record import BLANK
from fedgraph.report.report_rows import Row, mean_spread, rounded, rounded_up
from fedgraph.report.saved_run import SavedRun
from fedgraph.report.scores import METRICS, trust_of
from fedgraph.report.statement import CAVEATS

MODELS: dict[Viewer, Literal["Local", "Central", "Federated"]] = {
    Viewer.CURATOR_TRUSTED: "Central",
    Viewer.SERVER_SECURE_AGGREGATION: "Federated",
    Viewer.SERVER: "Federated",
    Viewer.ACTIVE_SERVER: "Federated",
    Viewer.WORLD: "Local",
}


@dataclass(frozen=True)
class Block:
    """One layer of the pyramid. items: (question, answer)."""

    title: str
    layer: str
    items: tuple[tuple[str, str], ...]


def verdict(row: Row, protection: Protection) -> str:
    """The one line on top."""
    unit = protection.unit.value
    if math.isinf(row.provable):
        return f"This row protects nothing: ε = ∞ for each {unit}. It must not be published as private."
    return f"ε = {rounded_up(row.provable, 4)}, δ = {row.head.delta:.3g}, for each {unit}, in one run"


def blocks(run: SavedRun, row: Row) -> tuple[Block, ...]:
    """All layers, from ε down to the data."""
    protection = row.protection
    return (
        Block("1 · ε and the unit of privacy", "top", tuple(_guarantee(row, protection))),
        Block("2 · Mechanisms and accounting", "middle", tuple(_mechanisms(row, protection))),
        Block("3 · Utility and bias", "middle", tuple(_utility(run, row))),
        Block("4 · Implementation", "middle", tuple(_implementation(run, row))),
        Block("5 · Side channels", "middle", tuple(_side_channels(run))),
        Block("6 · Trust", "ground", tuple(_trust(row, protection))),
        Block("7 · Data: collection, exposure, access", "ground", tuple(_data(run, row, protection))),
    )


def _guarantee(row: Row, protection: Protection) -> Iterator[tuple[str, str]]:
    yield "Unit", f"one {protection.unit.value}"
    yield "Neighbouring inputs", protection.relation.words
    yield "Hidden from", protection.viewer.words
    yield "ε, proven", f"{rounded_up(row.provable, 4)} at δ = {row.head.delta:.3g}, for one run"
    if len(row.head.paths) > 1:
        yield "ε of each path", "; ".join(f"{path}: {rounded_up(row.path(path), 4)}" for path in row.head.paths)
    yield "ε by the paper's formula", "no claim for this noise" if row.published is None else rounded(row.published, 4)
    if allowed := sheet_price.delta_words(row, row.head.facts.train_nodes):
        yield "What δ allows", allowed
    yield "ε by attack", sheet_price.measured(row)
    yield "How often it will be published", BLANK


def _mechanisms(row: Row, protection: Protection) -> Iterator[tuple[str, str]]:
    yield "Method", f"{row.head.method} · {row.head.variant}, {row.head.world.words}"
    yield "Releases", "; ".join(releases(row)) or "none"
    yield from sheet_price.shares(row, protection)
    yield "Accounting", str(row.head.theorem) or "nothing is released"
    asked = "no budget" if math.isinf(row.head.epsilon) else f"ε = {rounded(row.head.epsilon)}"
    yield "Noise chosen for", f"{asked} ({row.head.noise_for})"
    for assumption in protection.assumptions:
        yield "It holds only if", protection.sentence(assumption)
    for note in notes(row):
        yield "Note", note


def _utility(run: SavedRun, row: Row) -> Iterator[tuple[str, str]]:
    seeds = len(row.entries)
    over = f" (± one standard deviation over {seeds} seeds)" if seeds > 1 else " (one seed)"
    for name in dict.fromkeys(m for e in row.entries for m in e.metrics if not m.startswith("attack_")):
        yield METRICS.get(name, name.replace("_", " ")), mean_spread(row, name) + over
        over = ""
    own = [
        s for s in run.scores if (s.task, s.dataset) == (row.head.task, row.head.dataset) and s.raw and math.isfinite(s.mean)
    ]
    if own:
        top = max(own, key=lambda s: s.mean)
        yield "Without privacy", f"{METRICS[top.metric]} {mean_spread(top.row, top.metric)} ({top.name})"
    yield "Who bears the errors (groups, rare classes)", BLANK


def _implementation(run: SavedRun, row: Row) -> Iterator[tuple[str, str]]:
    versions, made = run.environment.versions, run.environment.made
    known = " ".join(v for v in (versions.get("fedgraph-privacy"), made.commit) if v)
    yield "Software", f"fedgraph {known}, PyTorch {versions.get('torch', 'unknown')}, a simulation"
    if made.command:
        yield "Command", made.command
    if made.finished:
        yield "Finished", made.finished
    yield "Record of releases", "ledger.jsonl in the run's folder; this sheet priced it again"
    if row.measured is not None:
        yield "Checked by", f"an attack with canaries; it read: {row.attack.what}"
    yield "Reviewed by", BLANK


def _side_channels(run: SavedRun) -> Iterator[tuple[str, str]]:
    yield "Floating point", CAVEATS[0]
    seed = run.environment.seed
    if str(seed) == "secret":
        yield "Randomness", "the seed came from the operating system and was not written"
    else:
        yield (
            "Randomness",
            f"the run's seed is written ({seed}): whoever knows it can subtract the noise. {CAVEATS[1].split(': ')[0]}.",
        )
    yield "Time, memory, size of messages", "not protected here. In deployment: " + BLANK


def _trust(row: Row, protection: Protection) -> Iterator[tuple[str, str]]:
    yield "Who is trusted", trust_of(row).words
    yield "Who sees what", protection.viewer.words
    facts = row.head.facts
    if facts.clients:
        yield "Clients", f"{facts.clients:,}" + (f" ({facts.partition})" if facts.partition else "")
    yield "Why they may be trusted (contracts, law)", BLANK


def _data(run: SavedRun, row: Row, protection: Protection) -> Iterator[tuple[str, str]]:
    source = next((f" ({d.source})" for d in run.environment.data if d.name == row.head.dataset), "")
    yield "Data", f"{row.head.dataset}{source}"
    yield "Public, unprotected", "; ".join(unprotected(protection)) or "nothing is stated"
    yield "Whose data, how and why collected, consent", BLANK
    yield "Where kept, who has access, for how long", BLANK


def unprotected(protection: Protection) -> list[str]:
    """What the assumptions take as public."""
    return [protection.sentence(a) for a in protection.assumptions if "public" in protection.sentence(a)]


def notes(row: Row) -> list[str]:
    """What the plans of all seeds add, once each."""
    return list(dict.fromkeys(note for e in row.entries for note in e.notes))


def releases(row: Row) -> list[str]:
    """Path, mechanism and number of releases of the first seed's run, from its ledger lines."""
    counts: dict[tuple[str, str], int] = {}
    for line in row.head.ledger:
        data = json.loads(line)
        if data.get("kind") == "release":
            key = (str(data["path"]), str(data["mechanism"]))
            counts[key] = counts.get(key, 0) + int(data.get("count", 1))
    found = [f"{path}: {mechanism}, {count:,} ×" for (path, mechanism), count in counts.items()]
    return found if len(found) <= 8 else [*found[:7], f"… and {len(found) - 7} more kinds (ledger.jsonl has all)"]


def deployment(run: SavedRun, row: Row) -> deployment_record.Deployment:
    """The record for the registry. ``row`` must have a finite ε."""
    protection = row.protection
    unit = protection.unit.value
    name = f"{row.head.method} ({row.head.variant}) on {row.head.dataset}, {unit} level"
    classifier = "accuracy" in row.head.metrics and trust_of(row) is not Trust.NOBODY
    seeds = len(row.entries)
    attacked = attacks.describe_bound(row) if row.measured is not None else "No attack was run."
    return deployment_record.Deployment(
        basic=deployment_record.Basic(
            name=name,
            data_curators=[BLANK],
            intended_use=BLANK,
            data_product_type="Machine learning model" if classifier else "Dataset",
            data_product_region=BLANK,
            description=f"{run.title}: {name}. Simulated with fedgraph.",
            publication_date=deployment_record.NO_DATE,
        ),
        dp_variant=deployment_record.Variant(
            variant_name="Approximate DP" if row.head.delta else "Pure DP",
            data_domain=f"Attributed graphs. Neighbours: {protection.relation.words}.",
            unprotected_quantities="\n".join(f"- {s}" for s in unprotected(protection)) or "None is stated.",
        ),
        privacy_loss=deployment_record.Loss(
            privacy_unit=unit,
            privacy_unit_details=f"Between two inputs where {protection.relation.words}.",
            privacy_parameters=deployment_record.Parameters(epsilon=_up(row.provable), delta=row.head.delta or 0.0),
            privacy_parameters_details=f"Proven for one run: {row.head.theorem}. {attacked}",
        ),
        deployment_model=deployment_record.Model(
            model_name=MODELS[protection.viewer],
            model_name_details=trust_of(row).words,
            actors=f"Seen by: {protection.viewer.words}. Actors and why they are trusted: {BLANK}",
            release_type="One release",
            release_type_details=f"ε is of one run; the simulation made {seeds}. Later releases from the same data: {BLANK}",
            data_source_type="Static",
            data_source_type_details=f"The simulation read {row.head.dataset} once. In deployment: {BLANK}",
            access_type="Non-interactive",
            access_type_details="Nobody queries the data; the product is published as it is.",
        ),
        accounting=deployment_record.Accounting(
            post_processing="Everything computed from the releases and public facts alone costs nothing more.",
            composition="\n".join([f"Method: {row.head.theorem}.", *(f"- {r}" for r in releases(row))]),
        ),
        implementation=deployment_record.Implementation(
            preprocessing_and_hyperparameter_tuning="\n".join(
                [*(f"- {protection.sentence(a)}" for a in protection.assumptions), f"Anything done before: {BLANK}"]
            ),
            mechanisms="\n".join([*(f"- {answer}" for _, answer in _side_channels(run)), *(f"- {r}" for r in releases(row))]),
            justification="\n".join([*(f"- {n}" for n in notes(row)), BLANK]),
        ),
        administrative=deployment_record.Administrative(
            sources="Privacy sheet, ledger.jsonl and scenario.yaml of the run.",
            notes=f"Values that begin with [BLANK are not known to a simulation; publication_date {deployment_record.NO_DATE} "
            "and data_product_sector, which is left out, are blank, too.",
            registry_authors=[BLANK],
        ),
    )


def _up(value: float, digits: int = 6) -> float:
    """Rounded up: a registered ε is never below the proven one."""
    scale = 10.0 ** (digits - math.ceil(math.log10(value))) if value > 0 else 1.0
    rounded = math.ceil(value * scale) / scale
    return rounded if rounded >= value else math.nextafter(value, math.inf)
