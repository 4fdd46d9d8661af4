"""A finished run of three clients on a small graph, which is exported in every test of this folder."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml

import fedgraph
from fedgraph.export import project

SECRET = 982_451_653  # the run's root seed, which nobody may find in a project
SCENARIO = f"""
name: three
seed: {SECRET}
runtime: {{engine: serial}}
datasets: [{{name: embedded/library}}]
tasks:
  - &nodes
    task: node_classification
    label: nodes
    epsilons: [8]
    delta: 1.0e-4
    trust: [curator, sums, own-client]
    partition: {{partition: uniform, clients: 3}}
    methods:
      - {{method: features, label: Features, steps: 12}}
      - {{method: features, label: Net, model: mlp, hidden: 4, steps: 6, trust: [sums]}}
      - {{method: label_hop, label: hop, steps: 6, trust: [sums]}}
      - {{method: nonprivate, label: clear, model: logistic, rounds: 2, trust: [sums]}}
      - {{method: dpar, label: walks, epochs: 1, batch_size: 60, trust: [sums]}}
  - <<: *nodes
    label: sampled
    trust: [sums, own-client]
    federation: {{share: 0.67}}
    methods: [{{method: features, label: Some, steps: 12}}]
  - task: graph_clustering
    label: small
    epsilons: [8]
    partition: {{partition: ego, clients: 6, hops: 1}}
    clusters: 2
    num_init: 1
    methods:
      - &own {{method: local_dp, label: FedAvg, training: dp_fedavg, updates: sum, unit: graph, rounds: 3,
               projection: 16, release: mean}}
      - {{<<: *own, label: seen, updates: each}}
      - {{<<: *own, label: SGD, training: dp_sgd}}
      - {{<<: *own, label: clear, training: fedavg}}
  - <<: *nodes
    label: edges
    protocol: transductive
    trust: [sums]
    methods: [{{method: gap_edge, label: GAP, epochs: 2, hops: 1, folds: 2, hidden: 8}}]
"""


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run's folder."""
    place = tmp_path_factory.mktemp("export")
    (place / "three.yaml").write_text(yaml.safe_dump(yaml.safe_load(SCENARIO)), encoding="utf-8")
    return fedgraph.run(place / "three.yaml", out=place / "run").folder


@pytest.fixture(scope="session")
def opened(finished: Path) -> Callable[[str], project.ProjectSource]:
    """A row of the run by a part of its name."""
    known: dict[str, project.ProjectSource] = {}

    def row(name: str) -> project.ProjectSource:
        if name not in known:
            known[name] = project.open_row(finished, name)
        return known[name]

    return row


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], ModuleType]]:
    """A module of a project, by its file, as the framework imports it; forgotten after the test.

    Nothing compiled is left beside it: a project with such a file is not priced. Noise and keys are the same in every run of a
    test: what the operating system would give is drawn from a seed.
    """
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(os, "urandom", np.random.default_rng(0).bytes)

    def load(file: Path) -> ModuleType:
        monkeypatch.syspath_prepend(file.parents[1])
        return importlib.import_module(f"{file.parent.name}.{file.stem}")

    yield load
    for name in [n for n in sys.modules if n.partition(".")[0] == "fedgraph_app"]:
        del sys.modules[name]
