"""The two-worlds test: every method, task, trust and unit on small graphs; and broken programs, which it must find."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import yaml

import fedgraph
from fedgraph import plugins, seeds
from fedgraph.audit import worlds
from fedgraph.audit.worlds import Change
from fedgraph.commands.base import main
from fedgraph.export import project
from fedgraph.methods.base import Plan, method_kinds
from fedgraph.privacy.desk import Released, witness_desks
from fedgraph.privacy.sensitivity import ClippedSum
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Unit, Viewer
from fedgraph.runs import two_worlds
from fedgraph.runs.console import Console
from fedgraph.runs.two_worlds import WorldsFinding
from fedgraph.scenario import read
from fedgraph.tasks.node_classification import training
from fedgraph.types import Graph, GraphCollection, GraphProvenance, Partition, plain_graph
from tests.trainings import Key, Trainings, cases, planned
from tests.two_worlds import differing_files, run_in_two_worlds

UNTRUSTING = [
    name
    for name in plugins.names("methods")
    if (offers := method_kinds.load(name).OFFERS).any_broadcast and not offers.never_private
]
PRIVATE_EMBEDDERS = {  # under its defaults nothing of local_dp is private
    "clipped gradients": {"training": "dp_sgd", "unit": "graph", "projection": 8},
    "clipped updates": {"training": "dp_fedavg", "unit": "graph", "projection": 8},
    "no training": {"training": "none", "unit": "graph"},
    "rows of nodes": {"training": "none", "unit": "node"},
    "own labels": {"training": "none", "unit": "graph", "release": "labels", "pooled_by": "response"},
}


@pytest.fixture(scope="module")
def small(library: Graph) -> Graph:
    """The first sixty nodes of the graph that ships with fedgraph."""
    return library.induced(np.arange(60))


@pytest.fixture(scope="module")
def on_small(small: Graph) -> Trainings:
    return Trainings(small)


def neighbours(plan: Plan, partition: Partition) -> list[Change]:
    """Those of the largest client, the worst first, in the numbers of the whole graph."""
    protection = plan.guarantee.protection
    if protection.relation is Relation.GRAPH_REPLACE:
        return worlds.client_changes(partition, plan.facts.graphs)
    share = max(partition.subgraphs, key=lambda s: s.graph.num_nodes)
    return [two_worlds.change_of_whole(change, share.nodes) for change in worlds.changes(share.graph, protection)]


def drawn(plan: Plan, partition: Partition, seed: int) -> Change:
    """Any unit of any client, not the notable ones alone."""
    protection, found, rng = plan.guarantee.protection, neighbours(plan, partition), np.random.default_rng(seed)
    if protection.unit is not Unit.NODE or protection.promised_degree is not None:
        return found[rng.integers(len(found))]
    kinds = sorted({change.kind for change in found} - {"replaced"}) or ["relabelled"]
    node = rng.choice(np.concatenate([share.nodes for share in partition.subgraphs]))
    return Change(kinds[rng.integers(len(kinds))], int(node), why="drawn")


def alike(finding: WorldsFinding) -> None:
    assert finding.neighbours
    assert not finding.note, finding.words
    assert not finding.differences, "\n".join(map(str, finding.differences[:5]))


# ------------------------------------------------------------------------------------------- every method, trust and unit


@pytest.mark.parametrize(("name", "index", "trusted"), cases(turn=2, clear=False))
def test_two_worlds_of_every_method_differ_in_what_is_priced_alone(
    name: str, index: int, trusted: Trust, on_small: Trainings
) -> None:
    plan, partition, _ = on_small.planned(Key(name, index, trusted))
    changes = [neighbours(plan, partition)[0], *([] if index else [drawn(plan, partition, len(name))])]
    alike(two_worlds.compare_rounds(plan, partition, changes))


@pytest.mark.parametrize("what", PRIVATE_EMBEDDERS)
def test_two_worlds_of_embedders_that_are_private(what: str, small: Graph) -> None:
    plan, partition, _ = planned("local_dp", 0, Trust.OWN_CLIENT, small, 2.0, **PRIVATE_EMBEDDERS[what])
    assert math.isfinite(plan.provable().epsilon)
    alike(two_worlds.compare_rounds(plan, partition, neighbours(plan, partition)[:2]))


@pytest.mark.parametrize("hostile", two_worlds.HOSTILE)
@pytest.mark.parametrize("name", UNTRUSTING)
def test_whatever_an_active_server_sends_two_worlds_answer_alike(name: str, hostile: str, on_small: Trainings) -> None:
    plan, partition, _ = on_small.planned(Key(name, 0, Trust.OWN_CLIENT))
    alike(two_worlds.compare_rounds(plan, partition, neighbours(plan, partition)[:1], hostile))


# -------------------------------------------------------------------------------------------------------------- every task

NODES = {"partition": {"partition": "uniform", "clients": 3}, "epsilons": [1.0], "delta": 1e-3}


def nodes(*methods: dict[str, Any], trust: tuple[str, ...] = ("curator",), **more: Any) -> dict[str, Any]:
    return {"task": "node_classification", **NODES, "trust": list(trust), "methods": list(methods), **more}


def links(*methods: dict[str, Any], trust: tuple[str, ...] = ("own-client",), **more: Any) -> dict[str, Any]:
    return {"task": "link_prediction", **NODES, "trust": list(trust), "methods": list(methods), **more}


FEW, HOPS, OWNERS = {"method": "features", "steps": 2}, {"method": "link_hops", "label": "hops"}, {"method": "link_owners"}
CHOSEN = {**FEW, "label": "chosen", "trust": ["curator"], "select": {"over": {"steps": [1, 2]}, "among": 2}}
BOUGHT, NOTHING = {**FEW, "publish_accuracy": 0.4}, {"protocol": "asking", "public": "nothing"}
EDGES, EDGE_ROW = {"protocol": "transductive", "cut_edges": "protected"}, {"method": "gap_edge", "epochs": 2, "hops": 1}
EGO = {"epsilons": [8.0], "partition": {"partition": "ego", "clients": 8, "hops": 1}, "num_init": 1, "clusters": 2}
UNTRAINED = {"method": "local_dp", "label": "none", "training": "none", "unit": "graph", "compare": ["mean"]}
TASKS: dict[str, dict[str, Any]] = {
    "nodes, test graph public": nodes(FEW, CHOSEN, trust=("curator", "sums", "own-client")),
    "nodes, nothing public": nodes(FEW, CHOSEN, trust=("curator", "active-server"), **NOTHING),
    "nodes, a bought accuracy": nodes(BOUGHT, public="nothing"),
    "people who ask, a bought accuracy": nodes(BOUGHT, protocol="asking"),
    "nodes, some public": nodes(FEW, public={"share": 0.2}),
    "nodes, edges alone private": nodes(EDGE_ROW, trust=("curator", "own-client"), **EDGES),
    "nodes, edges public": nodes({"method": "lpgnn", "epochs": 2}, protocol="transductive", trust=("nobody",)),
    "links": links(HOPS, OWNERS, trust=("curator", "own-client")),
    "links of clients dealt by edges": links(OWNERS, partition={"partition": "louvain", "clients": 3}),
    "owners": nodes(
        {"method": "label_hop", "steps": 2},
        trust=("sums",),
        owners=True,
        participations=["alone", "federated", "curator"],
        **NOTHING,
    ),
    "clustering": {"task": "graph_clustering", **EGO, "methods": [UNTRAINED]},
}
SHORT = {"trust": ["curator"], "methods": [{"method": "features", "steps": 1}]}


def ready_of(task: dict[str, Any], folder: Path) -> read.ReadyScenario:
    asked = {"name": "two", "runtime": {"engine": "serial"}, "datasets": [{"name": "embedded/library"}], "tasks": [task]}
    (folder / "two.yaml").write_text(yaml.safe_dump(asked), encoding="utf-8")
    return read.from_file(folder / "two.yaml")


def audited(task: dict[str, Any], data: Graph | GraphCollection, folder: Path, most: int = 2) -> list[WorldsFinding]:
    return list(two_worlds.audit_scenario(ready_of(task, folder), [data], most, Console(quiet=True)))


@pytest.mark.parametrize("what", TASKS)
def test_two_worlds_of_every_task_differ_in_what_is_priced_alone(what: str, library: Graph, tmp_path: Path) -> None:
    found = audited(TASKS[what], library, tmp_path, 6 if "bought" in what else 2)  # who is tested is among six
    tried = [finding for finding in found if finding.verdict != "untried"]
    assert tried
    for finding in tried:
        alike(finding)
        if "bought" in what and not finding.row.endswith("as a model"):  # a model buys none
            assert finding.largest["accuracy"] == pytest.approx(1), "nobody who is tested was among the neighbours"


def test_a_row_whose_promise_the_data_break_promises_nothing_to_try(library: Graph, tmp_path: Path) -> None:
    """Without its hub the same graph keeps the promise, so that world is another statement and no neighbour."""
    second, most = np.sort(library.degrees)[-2:].tolist()
    assert most > second
    rows = [{"method": "gap_node", "label": cap, "steps": 2, "cap": "promised", "degree": degree}
            for cap, degree in (("broken", int(second)), ("kept", int(most) + 1))]  # fmt: skip
    found = audited(nodes(*rows, train_fraction=0.99), library, tmp_path)
    verdicts = {f.row.split(",")[0].split(" · ")[1]: f.verdict for f in found if not f.row.endswith("as a model")}
    assert verdicts == {"broken": "untried", "kept": "same"}


def graphs_of_people(count: int = 12) -> GraphCollection:
    rng, made, labels = np.random.default_rng(0), [], np.arange(count) % 2
    for label in labels:
        n = int(rng.integers(6, 9))
        upper = np.triu(rng.random((n, n)) < 0.3 + 0.3 * label, 1)
        features = sp.csr_array((rng.random((n, 3)) + label).astype(np.float32))
        provenance, nothing = GraphProvenance("synthetic", "test"), np.full(n, -1, dtype=np.int64)
        made.append(plain_graph("g", sp.csr_array((upper | upper.T).astype(np.float32)), features, nothing, 2, provenance))
    return GraphCollection("c", tuple(made), labels, 2, made[0].provenance)


def test_two_worlds_of_whole_graphs(tmp_path: Path) -> None:
    method = {"method": "local_dp", "training": "dp_sgd", "unit": "graph", "rounds": 2, "pooling": "mean"}
    task = {"task": "graph_classification", **NODES, "folds": 3, "methods": [method]}
    found = [f for f in audited(task, graphs_of_people(), tmp_path) if not f.note]
    assert found
    for finding in found:
        alike(finding)


def test_two_worlds_of_owners_of_edges(library: Graph, tmp_path: Path) -> None:
    """Entity level: all records of one owner are gone."""
    upper = sp.triu(library.adjacency, 1).tocoo()
    who = (np.arange(upper.nnz) % 7 + 1).astype(np.float32)
    owned = sp.coo_array((who, (upper.row, upper.col)), shape=library.adjacency.shape).tocsr()
    graph = dataclasses.replace(library, edge_owners=(sp.csr_array(owned + owned.T),))
    task = links({**OWNERS, "unit": "entity"}, trust=("curator", "sums"))
    for finding in audited(task, graph, tmp_path, most=3):
        assert finding.neighbours > 1
        alike(finding)


# -------------------------------------------------------------------------------------------- whole runs, models, projects


def write(folder: Path, **tables: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def people(folder: Path, label: str = "a", fewer: int = 0) -> Path:
    """Sixty people in three tables of their own; the last one's label is ``label``, and so many edges are gone."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 2, 60)
    rows = [f"p{k},{30 + 20 * kind + rng.normal(0, 5):.1f},{k % 2}" for k, kind in enumerate(kinds)]
    pairs = sorted({tuple(sorted((k, int(rng.integers(60))))) for k in range(60)})
    edges = [f"p{a},p{b}" for a, b in pairs if a != b][fewer:]
    labels = [*(f"p{k},{'ab'[kind]}" for k, kind in enumerate(kinds[:-1])), f"p59,{label}"]
    return write(folder, features=["id,age,flag", *rows], edges=["source,target", *edges], labels=["id,label", *labels])


def many_graphs(folder: Path, label: str, rare: int = 15) -> Path:
    """Thirty small graphs, the last of which has this label; so many of the others are of class b."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(4, 8, 30)
    return write(
        folder,
        nodes=["graph,id,x", *(f"g{g},{k},{rng.normal():.2f}" for g, size in enumerate(sizes) for k in range(size))],
        edges=["graph,source,target", *(f"g{g},{k},{k + 1}" for g, size in enumerate(sizes) for k in range(size - 1))],
        labels=["graph,label", *(f"g{g},{'ab'[g < 2 * rare and g % 2]}" for g in range(29)), f"g29,{label}"],
    )


BOUNDS = {"bounds": {"age": [0, 100], "flag": [0, 5]}}


def asked_of(folder: Path, *tasks: dict[str, Any]) -> dict[str, Any]:
    task = nodes(FEW, trust=("sums", "curator"), **NOTHING)
    data = [{"name": "own/csv", "label": "people", "path": str(folder), "parameters": BOUNDS}]
    return {"name": "two", "runtime": {"engine": "serial"}, "datasets": data, "tasks": list(tasks) or [task]}


def handed_out(asked: dict[str, Any], home: Path) -> Path:
    fedgraph.run(asked, out=home / "run", quiet=True)
    return home / "run" / "outside"


def same_in_both(first: Callable[[], Any], second: Callable[[], Any]) -> None:
    """What both hand out is the same where the second gets the releases of the first."""
    one, other, released = run_in_two_worlds(first, second)
    assert not released
    assert one == other if isinstance(one, bytes) else not differing_files(one, other)


def test_what_a_run_and_its_project_hand_out_is_the_same_in_both_worlds(tmp_path: Path) -> None:
    """Two folders of people that differ in one label."""
    homes = {"a": tmp_path / "one", "b": tmp_path / "other"}
    same_in_both(*(lambda h=home, k=k: handed_out(asked_of(people(h / "people", k)), h) for k, home in homes.items()))
    names = {path.name for path in (homes["a"] / "run" / "outside").iterdir()}
    assert names > {"results.csv", "statement.txt", "ledger.jsonl", "plans.jsonl"}
    whole = differing_files(*(home / "run" for home in homes.values()))
    assert whole, "what is for the holder of the data tells the worlds apart"
    for home in homes.values():
        project.write(project.open_row(home / "run", "features, sums"), "flower", home / "app")
    assert not differing_files(*(home / "app" for home in homes.values()))


def test_what_a_run_of_private_edges_hands_out_is_the_same_in_both_worlds(tmp_path: Path) -> None:
    """Two folders that differ in one edge: links are foreseen, and nodes are classified with noisy sums over neighbours."""
    tasks = links(HOPS), nodes(EDGE_ROW, trust=("sums",), **EDGES)
    homes = [(tmp_path / str(fewer), fewer) for fewer in (0, 1)]
    same_in_both(*(lambda h=h, f=f: handed_out(asked_of(people(h / "people", fewer=f), *tasks), h) for h, f in homes))


def test_a_graph_that_is_a_row_is_there_with_or_without_a_label(tmp_path: Path) -> None:
    """One without a label was left out, so that plans and sheets counted one less."""

    def ran(home: Path, label: str) -> Path:
        asked = asked_of(many_graphs(home / "people", label))
        asked["datasets"][0] |= {"name": "own/graphs", "parameters": {"rows": True}}
        return handed_out(asked, home)

    same_in_both(lambda: ran(tmp_path / "one", "b"), lambda: ran(tmp_path / "other", ""))


def test_a_model_does_not_tell_who_has_a_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plan named everybody without one among those who ask, and counted the others."""
    secret = seeds.SecretSeed(bytes(32))
    monkeypatch.setattr(seeds, "root_seed", lambda seed: secret)
    monkeypatch.setattr("secrets.token_hex", lambda count: "00" * count)

    def fitted(home: Path, label: str) -> bytes:
        asked = asked_of(people(home / "people", label))
        asked["tasks"][0] |= {"trust": ["sums"], "delta": "1/n_train", "methods": [{"method": "label_hop", "steps": 2}]}
        handed_out(asked, home)
        return fedgraph.open_run(home / "run").best(epsilon=1).fit(home / "people").to_bytes()

    same_in_both(lambda: fitted(tmp_path / "one", "a"), lambda: fitted(tmp_path / "other", ""))


CELLS = {"age": ("0", "1", "0.5", "1e30", "-7"), "flag": ("0", "1", "3", "-2.5"), "label": ("a", "b", "")}


@pytest.mark.parametrize("column", CELLS)
def test_one_persons_cell_moves_nothing_that_is_read_of_others(column: str, tmp_path: Path) -> None:
    """Neither columns, classes and their numbers, nor rows, labels and edges of others, where every column has bounds."""
    folder = people(tmp_path / "people")
    file = folder / ("labels.csv" if column == "label" else "features.csv")
    honest = file.read_text().splitlines()
    place = honest[0].split(",").index(column)
    one = fedgraph.data.load("own/csv", path=folder, parameters=BOUNDS)
    for person in (0, 59):
        for cell in CELLS[column]:
            lines = [line.split(",") for line in honest]
            lines[person + 1][place] = cell
            file.write_text("\n".join(map(",".join, lines)) + "\n", encoding="utf-8")
            other = fedgraph.data.load("own/csv", path=folder, parameters=BOUNDS)
            rest = np.setdiff1d(np.arange(60), [person])
            read = [(g.columns, g.names, g.adjacency, g.labels[rest], g.features[rest]) for g in (one, other)]
            assert worlds.first_difference(*read) == "", (person, cell)


@pytest.mark.parametrize("what", ["who asks", "which edges are hidden"])
def test_runs_of_one_written_seed_that_hold_other_people_or_edges_share_no_noise(what: str, tmp_path: Path) -> None:
    """Their noise was the same, so that the difference of two releases showed the others' sum without noise."""
    folder, added = people(tmp_path / "people"), []
    for share in (0.2, 0.25):
        asked = asked_of(folder, links(HOPS, trust=("curator",), test_share=share))
        if what == "who asks":
            asked = asked_of(folder)
            asked["tasks"][0] |= {"trust": ["curator"], "train_fraction": 1 - share}
        tape = worlds.FirstWorld()
        with witness_desks(tape):
            handed_out(asked | {"seed": 987654321}, tmp_path / str(share))
        added.append(tape.tape[0].noised - tape.tape[0].bounded)
    assert np.abs(added[0] - added[1]).max() > 0.1


def test_a_draft_counts_neither_ties_nor_labels_nor_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """δ followed from the number of edges, the share that trains from who has a label, folds from the rarest class."""

    def drafted(folder: Path, *options: str) -> str:
        out = folder.parent / "draft.yaml"
        assert main(["new", "--graph", str(folder), "--yes", "--no-probe", "--out", str(out), *options]) == 0
        return out.read_text(encoding="utf-8")

    def at(name: str) -> Path:
        return tmp_path / name / "people"

    ties = ["source,target", *(f"p{a},p{b}" for a in range(60) for b in range(a))]
    both = [write(people(at(name), label), edges=ties[:n]) for name, label, n in (("few", "a", 1001), ("many", "", 1002))]
    told = [drafted(folder, "--task", "links", "--unit", "edge") for folder in both]
    assert told[0] == told[1]
    assert "delta: 3e-05" in told[0], "one tenth over fifty ties of each of sixty people"
    rows = ["id,age", *(f"p{k},{k % 7}" for k in range(275))]
    labels = ["id,label", *(f"p{k},{'ab'[k % 2]}" for k in range(274))]
    both = [write(at(f"label {last}"), features=rows, edges=ties[:2], labels=[*labels, f"p274,{last}"]) for last in ("b", "")]
    assert drafted(both[0]) == drafted(both[1])
    both = [many_graphs(at(f"graphs {last}"), last, rare=4) for last in ("b", "")]  # five of the rarest class, or four
    assert drafted(both[0]) == drafted(both[1])
    capsys.readouterr()


# --------------------------------------------------------------------------------------------- what is broken must be found

FEATURES = plugins.load("methods", "features")
prepare, client, server = FEATURES.prepare, FEATURES.client, FEATURES.server
Patches = list[tuple[object, str, Any]]


def labelled(share: Any) -> int:
    return int((share.graph.labels >= 0).sum())


def exact_count() -> Patches:
    def counting(plan: Plan, work: Any, *given: Any) -> Any:
        sent = client(plan, work[0], *given)
        return sent | {"edges": Released(np.array([float(work[1])]), next(iter(sent.values())).entry)}

    return [(FEATURES, "prepare", lambda plan, share: (prepare(plan, share), labelled(share))), (FEATURES, "client", counting)]


def digest_in_model() -> Patches:
    """As a model's file would carry it: eight bytes of SHA-256 of private labels, computed at the clients."""
    digests: list[bytes] = []

    def remembering(plan: Plan, share: Any) -> Any:
        digests.append(hashlib.sha256(share.graph.labels.tobytes()).digest()[:8])
        return prepare(plan, share)

    def keeping(*given: Any) -> Any:
        after = server(*given)
        return dataclasses.replace(after, model={**after.model, "made of": np.frombuffer(b"".join(digests[-3:]), np.uint8)})

    return [(FEATURES, "prepare", remembering), (FEATURES, "server", keeping)]


def unbounded() -> Patches:
    honest = ClippedSum.enforce
    return [(ClippedSum, "enforce", lambda bound, value: honest(bound, value) * value.dtype.type(1.5))]


def noise_of_data() -> Patches:
    """Its stream is named by a private count, so whoever knows the seed reads the count from the noise."""
    honest, counts = seeds.secret_seeded_generator, [0]

    def counting(plan: Plan, share: Any) -> Any:
        counts.append(labelled(share))
        return prepare(plan, share)

    stream = lambda root, *path: honest(root, *path, sum(counts[-3:]))  # noqa: E731
    return [(FEATURES, "prepare", counting), (seeds, "secret_seeded_generator", stream)]


def left_out() -> Patches:
    def seldom(plan: Plan, work: Any, model: Any, round_: int, *given: Any) -> Any:
        return {} if work[1] and round_ else client(plan, work[0], model, round_, *given)

    watched = lambda plan, share: (prepare(plan, share), labelled(share) < len(share.nodes))  # noqa: E731
    return [(FEATURES, "prepare", watched), (FEATURES, "client", seldom)]


def stops() -> Patches:
    def refusing(plan: Plan, share: Any) -> Any:
        if share.graph.labels.min() < 0:
            raise ValueError("somebody has no label")
        return prepare(plan, share)

    return [(FEATURES, "prepare", refusing)]


@pytest.mark.parametrize(
    ("breaks", "found"),
    [
        (list, []),
        (exact_count, ["messages of round 0", "edges"]),
        (digest_in_model, ["made of"]),
        (unbounded, ["release 'model', client", "round 0: bounded values are 1.5 times as far apart"]),
        (noise_of_data, ["its noise is other than in the first world"]),
        (left_out, ["sent [] and ['gradient']; round aborted; in the first world none"]),
        (stops, ["error: RuntimeFailure"]),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_a_broken_program_is_found_and_the_honest_one_is_not_accused(
    breaks: Callable[[], Patches], found: list[str], on_small: Trainings, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, partition, _ = on_small.planned(Key("features", 0, Trust.OWN_CLIENT))
    for patch in breaks():
        monkeypatch.setattr(*patch)
    share = max(partition.subgraphs, key=lambda s: s.graph.num_nodes)
    node = int(share.nodes[np.flatnonzero(share.graph.labels >= 0)[0]])
    told = "\n".join(map(str, two_worlds.compare_rounds(plan, partition, [Change("zeroed", node)]).differences))
    assert bool(told) == bool(found)
    assert all(part in told for part in found), told


def test_coins_that_are_a_permutation_of_private_edges_are_found(on_small: Trainings, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, partition, _ = on_small.planned(Key("link_hops", 2, Trust.CURATOR))
    module = plugins.load("methods", "link_hops")
    honest = module.prepare

    def permuted(plan: Plan, share: Any) -> Any:
        edges = np.column_stack(sp.triu(share.graph.adjacency, 1).nonzero())
        kept = edges[np.random.default_rng(0).permutation(len(edges))[: len(edges) // 2]]
        half = sp.coo_array((np.ones(len(kept), np.float32), kept.T), shape=share.graph.adjacency.shape).tocsr()
        graph = dataclasses.replace(share.graph, adjacency=sp.csr_array(half + half.T))
        return honest(plan, dataclasses.replace(share, graph=graph))

    monkeypatch.setattr(module, "prepare", permuted)
    found = two_worlds.compare_rounds(plan, partition, neighbours(plan, partition)[:2])
    assert any("times as far apart as is priced" in d.what for d in found.differences)


def test_a_server_that_looks_at_private_rows_is_found(library: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that holds rows of people: what LPGNN's did."""
    honest, world, seen = FEATURES.plan, training.federation_of, []

    def remembered(*args: Any) -> Any:
        found = world(*args)
        seen.append(f"{int((found.held.labels >= 0).sum())} people have a label")
        return found

    monkeypatch.setattr(training, "federation_of", remembered)
    monkeypatch.setattr(FEATURES, "plan", lambda *args: dataclasses.replace(honest(*args), notes=(seen[-1],)))
    found = audited({**TASKS["nodes, test graph public"], **SHORT}, library, tmp_path)
    assert all(finding.differences for finding in found)
    assert "people have a label" in str(found[0].differences[0])


def test_a_model_that_names_who_has_no_label_is_found(library: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = plugins.load("tasks", "node_classification")
    honest = task.TASK.models.everybody

    def telling(params: Any, graph: Graph, public: Graph | None) -> Any:
        return dataclasses.replace(honest(params, graph, public), asking=np.flatnonzero(graph.labels < 0))

    broken = dataclasses.replace(task.TASK, models=dataclasses.replace(task.TASK.models, everybody=telling))
    monkeypatch.setattr(task, "TASK", broken)
    row = {**TASKS["nodes, nothing public"], **SHORT}
    (found,) = [finding for finding in audited(row, library, tmp_path) if finding.verdict == "apart"]
    assert "plan of a model" in str(found.differences[0])


# ------------------------------------------------------------------------------------------------ neighbours, and the command


def test_notable_units_are_among_the_neighbours(library: Graph) -> None:
    def changes(relation: Relation, assumed: Assumption, *promised: int) -> list[Change]:
        return worlds.changes(library, Protection(relation, Viewer.CURATOR_TRUSTED, (assumed,), *promised))

    nodes = changes(Relation.NODE_ZERO_OUT, Assumption.COUNTS_PUBLIC)
    assert {change.one for change in nodes} >= {0, library.num_nodes - 1, int(library.degrees.argmax())}
    edges = changes(Relation.EDGE_UNDIRECTED, Assumption.FEATURES_LABELS_PUBLIC)
    assert {change.kind for change in edges} == {"edge gone", "edge new"}
    for change in edges:
        moved = change.of(library).adjacency - library.adjacency
        assert abs(moved).sum() == 2
        assert abs(moved - moved.T).nnz == 0
    most = int(library.degrees.max())
    for change in changes(Relation.NODE_REPLACE, Assumption.PROMISED_DEGREE, most):
        assert change.of(library).degrees.max() <= most, "a neighbour that breaks a promise is no neighbour"


def test_the_command_says_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready_of({**TASKS["nodes, test graph public"], **SHORT}, tmp_path)
    command = ["audit", "worlds", str(tmp_path / "two.yaml")]
    assert main([*command, "--quick"]) == 0
    assert "1 same, 0 apart, 0 untried, 0 failed" in capsys.readouterr().out
    monkeypatch.setattr(*unbounded()[0])
    assert main([*command, "--quick"]) == 1
    assert "apart" in capsys.readouterr().out
    assert main([*command, "--neighbours", "0"]) == 2
