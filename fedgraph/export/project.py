"""A row of a finished run becomes the folder of a project, which is priced before anybody sees it.

The plan is made again from the run's scenario and data. Where it is not worth the ε that the ledger of the run shows, nothing
is written, and neither is it where ``fedgraph price`` finds another ε in the files.
"""

import dataclasses
import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedgraph import data as datasets
from fedgraph import pricing, privacy, runtime, seeds
from fedgraph.cells import CellContext
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.export import deployable, site
from fedgraph.export.deployable import DEPLOYABLE_PATH
from fedgraph.export.site import Site
from fedgraph.methods import Plan, method_kinds
from fedgraph.pricing import EXPORTED_MANIFEST, ExportedManifest, ExportedRow, exported_plan, exported_wheel
from fedgraph.privacy import PlannedRelease, Viewer
from fedgraph.report import Line, SavedRun, load_saved_run, outside
from fedgraph.runs import Console, experiment
from fedgraph.scenario import ReadyScenario, read
from fedgraph.tasks import Params, training
from fedgraph.tasks import base as tasks
from fedgraph.types import Graph, GraphNames, Partition, graph_without_labels

_AGREES = 1e-4  # the price of the files may differ from the ledger's ε by at most this
_MOST_BYTES = 9_000_000  # of the plan: Flower sends at most 10 MB


@dataclass(frozen=True, eq=False)
class ProjectSource:
    """A row that can be deployed, and the clients of the run it was proven on."""

    run: SavedRun  # that it stands in
    row: Line  # of that run
    epsilon: float  # of all that is deployed
    plan: Plan  # of all that is deployed, made again
    partition: Partition  # the clients
    cohorts: list[list[int]]  # the clients of each round, by the run's public coins; empty where all answer in every round
    names: GraphNames  # of columns and classes, which are taken as public
    reading: Mapping[str, object]  # how an owner's tables are read in the same way
    book: str | None  # the budget of the run; None where it has none


def open_row(folder: Path, name: str, data_root: Path | None = None) -> ProjectSource:
    """The row of a finished run with its plan, made again, and its clients. data_root: None: where data sets usually lie.

    Raises:
        DataError: the folder holds no finished run, no such row, or its data are not there.
        ScenarioError: the row cannot be deployed; the sentence says why.
        PrivacyError: the run's budget would not carry it.
    """
    saved = load_saved_run(folder)
    row = saved.find(name)
    head = row.head
    if row.held is None or not math.isfinite(row.epsilon_provable):
        raise ScenarioError(f"{folder}: {row.row} guarantees nothing (ε = ∞), so there is no noise to deploy")
    ready = read.from_file(folder / "scenario.yaml")
    datasets.set_data_search_root(data_root)
    with runtime.start("serial") as engine:
        root = seeds.public_seed(ready.scenario.seed)
        graphs = [experiment.load_data(d, data_root, root) for d in ready.scenario.datasets]
        for stage in experiment.stages_of(ready, graphs, engine, Console(quiet=True)):
            cell = next((c for c in stage.cells if c.seed == head.seed and c.row == head.row), None)
            if cell is None:
                continue
            clients, params = tasks.load(stage.task.kind).TASK.clients, stage.task.params
            whole = experiment.plan_cell(ready, stage, cell)
            if whole is None or clients is None:
                raise ScenarioError(
                    f"{folder}: rows of {stage.task.kind} are not deployed; write 'task: node_classification' and run it again"
                )
            plan, partition = deployable.training_of(whole), clients(params, cell, stage.context)
            deployable.require(plan)
            who = training.who_answers(plan, cell, stage.context) if isinstance(params, Params) else None
            cohorts = [] if who is None else [np.flatnonzero(here).tolist() for here in who]
            again = privacy.settle.of_releases(plan.guarantee, _attended(plan, cohorts)).epsilon
            said = head.epsilon_provable if plan is whole else head.paths[DEPLOYABLE_PATH]
            if not math.isclose(again, said, abs_tol=_AGREES / 10):
                why = "its data or this version of fedgraph are others; run it again"
                both = f"made again, the plan costs ε = {again:.6g}; the ledger of the run says {said:.6g}"
                raise ScenarioError(f"{folder}: {both}: {why}")
            if ready.book is not None:
                _require_budget(ready.book, row.row, plan, cohorts)
            names, reading = _reading(ready, stage.context)
            return ProjectSource(saved, row, said, plan, partition, cohorts, names, reading, ready.book)
    raise ScenarioError(f"{folder}: its scenario.yaml has no row {row.row} any more; run it again")


def _require_budget(place: str, name: str, plan: Plan, cohorts: list[list[int]]) -> None:
    """``PrivacyError`` where a budget does not carry a deployment. Nothing is charged here: its clients charge it."""
    book = privacy.budget_book.read(place)
    asked = privacy.Candidate.planned(name, plan.guarantee, _attended(plan, cohorts))
    if (paid := book.epsilon_with(asked.dearest, book.people_of(None))) > book.epsilon:
        left = book.left(book.people_of(None))
        raise PrivacyError(
            f"{place}: with a deployment of {name} one person would have paid ε = {paid:.4g} of {book.epsilon:g}; what "
            f"is left is one release of ε = {left:.3g}. Nothing was exported"
        )


def _reading(ready: ReadyScenario, context: CellContext) -> tuple[GraphNames, Mapping[str, object]]:
    """Names of columns and classes, and how other people are read in the same way."""
    held = context.data
    names = dataclasses.replace(held.names, ids=()) if isinstance(held, Graph) else GraphNames()
    told = next(d for d in ready.scenario.datasets if (d.label or d.name) == context.dataset)
    if told.path is None or told.name not in ("own/read", "own/csv", "own/federation"):
        return names, told.parameters
    rules = {key: value for key, value in told.parameters.items() if key in datasets.ReadRules.model_fields}
    return names, datasets.read(told.path, columns=rules).parameters


def _accuracy(found: ProjectSource) -> tuple[str, ...]:
    """What may leave of the row's accuracy, one sentence."""
    seen = outside.see_from_outside(found.run).find(found.row.row)
    told = [f"{name} {vars(seen)[name]:.3f}" for name in sorted(seen.head.metrics) if "accuracy" in name]
    if not told:
        return (f"Accuracy {outside.explain_withheld(seen.head) or 'is not stated'}",)
    return (f"In the run that it was chosen by ({found.run.title}): {', '.join(told)}.",)


def _attended(plan: Plan, cohorts: list[list[int]]) -> Sequence[PlannedRelease]:
    """Every release, in the rounds in which its client is asked."""
    if not cohorts:
        return plan.schedule.releases
    return [release for client in range(plan.facts.num_clients) for release in site.releases_of(plan, cohorts, client)]


def write(found: ProjectSource, framework: str, out: Path, force: bool = False) -> float:
    """Write the project into a new folder, and give its price ε, which agrees with the ledger.

    Raises:
        ScenarioError: ``out`` is there, and no earlier export to be replaced, or the files are not worth the ledger's ε.
    """
    if out.exists() and not (force and (out / EXPORTED_MANIFEST).is_file()):
        raise ScenarioError(f"{out}: exists already; allowed: a new folder, or --force in the place of an earlier export")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as place:
        made = Path(place) / "project"
        _write_files(found, framework, made)
        epsilon = _price_project(made, found.epsilon)
        if out.exists():
            shutil.rmtree(out)
        os.replace(made, out)
    return epsilon


def _price_project(folder: Path, expected: float) -> float:
    """What ``fedgraph price`` finds in the files. ``ScenarioError`` where it is not ``expected``, to within ``_AGREES``."""
    total = pricing.price(folder).headline.total
    if total is None or not abs(total.epsilon - expected) <= _AGREES:
        said = "no ε" if total is None else f"ε = {total.epsilon:.6g}"
        says = f"the ledger says {expected:.6g}"
        raise ScenarioError(f"{folder.name}: the files are worth {said}, and {says}; nothing is exported")
    return total.epsilon


def _write_files(found: ProjectSource, framework: str, folder: Path) -> None:
    """Every file of the project, all from one manifest."""
    place = folder / exported_plan(framework)
    place.parent.mkdir(parents=True)
    facts = found.plan.facts
    if facts.public_graph is not None:  # without the answers of public test nodes, which nobody needs who deploys it
        facts = dataclasses.replace(facts, public_graph=graph_without_labels(facts.public_graph))
    plan = dataclasses.replace(found.plan, facts=facts)
    head, cohorts = found.row.head, tuple(map(tuple, found.cohorts))
    row = f"{head.method} · {head.variant}, {head.world.words}, of the run {found.run.title}"
    agreed = site.SitePlan(plan, found.names, found.reading, row, _accuracy(found), cohorts)
    site.write_site_file(place, agreed)
    if (size := place.stat().st_size) > _MOST_BYTES:
        raise ScenarioError(f"the public part of the plan has {size:,} bytes; a project holds at most {_MOST_BYTES:,}")
    manifest = _make_manifest(found, framework, site.digest_of(place))
    wheel, content = exported_wheel()
    text = json.dumps(manifest.model_dump(), indent=1, allow_nan=False)
    files = {**manifest.files(), EXPORTED_MANIFEST: f"{text}\n"}
    for name, held in {wheel: content, **{name: text.encode() for name, text in files.items()}}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(held)


def _make_manifest(found: ProjectSource, framework: str, plan_sha256: str) -> ExportedManifest:
    """The numbers of the row."""
    plan, head = found.plan, found.row.head
    secure, clients = plan.facts.viewer is Viewer.SERVER_SECURE_AGGREGATION, plan.facts.num_clients
    asked = f"{len(found.cohorts[0])} of {clients} clients, by public coins," if found.cohorts else "every client"
    whole, protection = math.isclose(found.epsilon, head.epsilon_provable), plan.guarantee.protection
    part = "all of it" if whole else "training, on its path"
    return ExportedManifest(
        framework=framework,
        row=ExportedRow(
            run=found.run.title, row=found.row.row, method=head.method, variant=head.variant, dataset=head.dataset,
            trust=head.world.words, part=part,
        ),
        protection=dataclasses.replace(protection, assumptions=deployable.assumed(protection)).to_dict(),
        delta=plan.guarantee.delta,
        epsilon=found.epsilon,
        clients=clients,
        least_survivors=plan.schedule.min_clients if secure else min(map(len, found.cohorts), default=clients),
        colluders=plan.facts.colluders if secure else 0,
        masked=secure,
        rounds=plan.schedule.rounds,
        releases=deployable.list_sums(plan, _dimensions(found)),
        ledger_sha256=hashlib.sha256("\n".join(head.ledger).encode()).hexdigest(),
        plan_sha256=plan_sha256,
        cohorts=found.cohorts,
        sampling=f"{asked} in every round; nothing is amplified",
    )  # fmt: skip


def _dimensions(found: ProjectSource) -> dict[str, int]:
    """How many numbers one value of each path has: read off the first client's, of which only the size is looked at."""
    plan, subgraph = found.plan, found.partition.subgraphs[0]
    site = Site(plan, subgraph, method_kinds.load(plan.method).prepare(plan, subgraph))
    model = method_kinds.load(plan.method).start(plan, np.random.default_rng(0)).model
    rounds = {r.rounds[0] for r in plan.schedule.releases}
    return {path: int(np.size(v)) for k in sorted(rounds) for path, v in site.bounded(model, k).values()}


def write_clients(found: ProjectSource, folder: Path) -> list[Path]:
    """The private graph of each client of the run, for a rehearsal on one machine only.

    Gives the files ``client-0.json`` … of a new folder, sorted by name; ``FileExistsError`` where it is there.
    """
    folder.mkdir(parents=True, exist_ok=False)
    more = {} if found.book is None else {"budget": privacy.budget_book.absolute(found.book)}
    for subgraph in found.partition.subgraphs:
        site.write_site_file(folder / f"client-{subgraph.client}.json", subgraph, **more)
    return sorted(folder.iterdir())
