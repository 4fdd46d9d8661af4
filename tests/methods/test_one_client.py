"""One curator and a federation of one client do the same: only the names of their coins differ."""

from pathlib import Path

import numpy as np
import pytest

import fedgraph
from fedgraph import seeds
from fedgraph.methods import base, dpar
from fedgraph.types import Graph


def test_one_client_is_the_curator_bit_for_bit_where_their_coins_are_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Runs name coins after who is trusted, and after the plan, in which trust stands; nothing else differs."""
    made = seeds.seeded_generator
    parameters: list[bytes] = []
    answer = dpar.predict

    def kept(plan: dpar.Planned, state: base.State[dpar.Memory], graph: Graph) -> np.ndarray:
        parameters.append(state.model["parameters"].tobytes())
        return answer(plan, state, graph)

    def anonymous(root: int, *path: str | int | float) -> np.random.Generator:
        return made(root, "start") if path[-1:] == ("start",) else made(root, *path)

    def run(name: str) -> None:
        methods = [{"method": "dpar", "variant": "em0", "sampled": 1.0, "epochs": 3, "batch_size": 64}]
        partition = {"partition": "uniform", "clients": 1}
        task = {"task": "node_classification", "epsilons": [8], "trust": ["curator", "own-client"], "partition": partition}
        asked = {"name": "one", "seed": 1, "runtime": {"engine": "serial"}, "datasets": [{"name": "embedded/library"}]}
        fedgraph.run({**asked, "tasks": [{**task, "methods": methods}]}, out=str(tmp_path / name), quiet=True)

    monkeypatch.setattr(dpar, "predict", kept)
    run("as they are")
    assert len(set(parameters)) == 2, "two draws"
    parameters.clear()
    monkeypatch.setattr(base.PlanStreams, "generator", lambda streams, name: made(streams.root, *streams.path[-4:], name))
    monkeypatch.setattr(seeds, "seeded_generator", anonymous)
    run("same coins")
    assert len(parameters) >= 2
    assert len(set(parameters)) == 1
