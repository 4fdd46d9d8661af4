"""A torch network of one's own, trained privately on one's own graph.

import fedgraph, torch_geometric.nn as g
private = fedgraph.private(g.GCN(-1, 32, 2, out_channels=6), graph, unit="node", epsilon=8, public=volunteers)
private.fit()
private.model, private.predict(newcomers), private.statement, private.ledger, private.attack()
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from fedgraph import library, plugins
from fedgraph.cells import Cell
from fedgraph.data import Reading, read
from fedgraph.errors import DataError, ScenarioError
from fedgraph.federation import world_of_trust
from fedgraph.learning import NetworkSpec, isolation, own_network
from fedgraph.models import Model
from fedgraph.models import fit as fits
from fedgraph.privacy import Trust
from fedgraph.scenario import wanted
from fedgraph.types import Graph

if TYPE_CHECKING:
    import torch

_NAME, _TASK, _ROW = "graph", "private", "own model"
_HOPS = 2  # of the method, where no other number is asked for
_DIRECTIONS = 64  # of the public people's features, where a network takes whatever width its rows have


@dataclass(frozen=True)
class PrivateModelAttack:
    """What an attack shows of a training.

    Attributes:
        by: ``canaries`` in one run, or an attack by name.
        epsilon: The lower bound on ε that it proves, with 95 % confidence. 0 proves nothing.
        proven: ε of the training, which no attack can pass.
        area: Area under the ROC curve of the guesses; ½ is guessing blindly.
        accuracy: Test accuracy of the ordinary run of the same settings on four fifths of the people.
    """

    by: str
    epsilon: float
    proven: float
    area: float
    accuracy: float

    def __str__(self) -> str:
        return (
            f"by {self.by}: ε ≥ {self.epsilon:.3g} (95 %), and the proof says ε ≤ {self.proven:.3g}; area under "
            f"the ROC curve {self.area:.3f}"
        )


@dataclass(eq=False)
class PrivateModel:
    """A network, the graph that it is to be trained on, and what was asked for. ``fit`` trains it, once.

    Attributes:
        epsilon: ε of the training.
        delta: δ; None: a tenth of one over the people of the graph (for edges over 50 of each, since their number is private),
            and at most 10⁻⁴.
        settings: Of the method ``own_model``, the network among them.
        reading: The people who train.
        public: People whose rows and edges are public; None: nobody.
        fitted: What ``fit`` left; None before.
    """

    epsilon: float
    delta: float | None
    settings: Mapping[str, object]
    reading: Reading
    public: object
    fitted: Model | None = field(default=None, repr=False)

    def fit(self, *, quiet: bool = False, budget: str | Path | None = None, nothing_protected: bool = False) -> PrivateModel:
        """Train once, on everybody, with noise from the operating system.

        Args:
            quiet: Whether no bar is shown.
            budget: The file of ``fedgraph budget`` that is charged before anything is released.
            nothing_protected: Needed where ε is ∞.

        Returns:
            Itself.

        Raises:
            PrivacyError: The budget does not allow it, it was trained already, or nothing would be protected.
            ScenarioError: The network or a setting is refused; one line says what to use.
        """
        if self.fitted is not None:
            raise ScenarioError("this model was trained already, and a second training is a second release: make another one")
        epsilon = self.epsilon if math.isfinite(self.epsilon) else "inf"
        task: dict[str, object] = {
            "task": "node_classification", "label": _TASK, "protocol": self._protocol, "trust": ["curator"],
            "epsilons": [epsilon], "delta": self._delta, "methods": [dict(self.settings)],
        }  # fmt: skip
        if self.public is None and not self._edges:
            task["public"] = "nothing"
        asked = {"name": _NAME, "datasets": [{"name": "own/object", "label": _NAME}], "tasks": [task]}
        whole = world_of_trust(Trust.CURATOR)
        calibrated = "provable" if math.isfinite(self.epsilon) else "none"
        row = Cell(_TASK, _NAME, "own_model", _ROW, whole, self.epsilon, calibrated, 0)  # the one cell of that scenario
        options = fits.FitOptions(
            budget=None if budget is None else str(budget),
            public=self.public,
            nothing_protected=nothing_protected,
            columns=dict(self.reading.parameters),
            progress=None if quiet else _bar(),
        )
        with tempfile.TemporaryDirectory(prefix="fedgraph-") as folder:
            (Path(folder) / "scenario.yaml").write_text(yaml.safe_dump(asked), encoding="utf-8")
            self.fitted = fits.fit_row(Path(folder), row, self.reading.graph, options)
        return self

    @property
    def _edges(self) -> bool:
        return self.settings["unit"] == "edge"

    @property
    def _protocol(self) -> str:
        if not self._edges:
            return "inductive"
        return "transductive" if self.public is None else "inductive-edges"

    @property
    def _delta(self) -> float:
        return self.delta or wanted.delta_of(self.graph.num_nodes * (wanted.TIES_OF_A_PERSON if self._edges else 1))

    @property
    def graph(self) -> Graph:
        """The people who train."""
        if not isinstance(self.reading.graph, Graph):
            raise DataError("a collection of graphs; allowed: one graph of people")
        return self.reading.graph

    @property
    def trained(self) -> Model:
        """The model as ``fedgraph fit`` makes them: ``predict_proba``, ``save`` and what else they have."""
        if self.fitted is None:
            raise ScenarioError("this model is not trained yet: call fit() first")
        return self.fitted

    @property
    def model(self) -> torch.nn.Module:
        """The trained torch module, in evaluation mode; it may be handed out as the statement says."""
        found: torch.nn.Module = plugins.load("methods", "own_model").module_of(self.trained.plan, self.trained.state)
        return found

    def predict(self, graph: object, people: str | None = "public") -> np.ndarray:
        """The class of each node of ``graph``; the arguments are those of ``predict_proba``."""
        return self.trained.predict(graph, people, math.isinf(self.trained.epsilon))

    def predict_proba(self, graph: object, people: str | None = "public") -> np.ndarray:
        """float64 [n, c], each row adding up to 1.

        Args:
            graph: A folder, a file or a graph in memory, of people who did not train.
            people: ``public``: the rows of these people and the edges among them are public.

        Raises:
            PrivacyError: An answer would release what nobody has priced.
        """
        return self.trained.predict_proba(graph, people, math.isinf(self.trained.epsilon))

    @property
    def statement(self) -> tuple[str, ...]:
        """What the training protects, one sentence each, and what was found in its network."""
        return (*self.trained.statement, *self.trained.plan.notes)

    @property
    def ledger(self) -> tuple[str, ...]:
        """What it cost, and toward whom: JSON lines, the account first."""
        return self.trained.ledger

    def attack(
        self, by: str = "canaries", *, canaries: int = 500, guesses: float = 0.2, shadows: int = 8, quiet: bool = False
    ) -> PrivateModelAttack:
        """Train again, on four fifths of the people, and guess who was there.

        ``canaries`` train twice more, once with people among the others who were put there by a coin.

        Every value that the price counts is read, more than the model alone shows. These trainings are for the holder of the
        data: they stay in this process and are not handed out.

        Args:
            by: ``canaries``, or an attack by name that reads the trained model, such as ``lira``.
            canaries: How many people are replaced by one with a single word, or by nobody; at most half of those with a label.
            guesses: Share of them that is guessed.
            shadows: Models that an attack by name trains, an even number.
            quiet: Whether no bar is shown.
        """
        attacked: dict[str, object] = {"canaries": canaries, "guesses": [guesses], "reads": "releases"}
        if by != "canaries":
            attacked = {"canaries": 0, "named": [{"attack": by}], "shadows": shadows}
        run = library.compare(
            self.reading, [dict(self.settings)], [self.epsilon], ["curator"],
            protocol=self._protocol, delta=self._delta, attack=attacked, quiet=quiet or "bar",
        )  # fmt: skip
        found = run.table().iloc[0]
        if found["status"] != "ok":
            raise ScenarioError(f"the attack did not run: {found['status']}")
        proven, accuracy = float(found["epsilon_provable"]), float(found["accuracy"])
        if by != "canaries":
            named = json.loads(found["facts"])["named"]
            if not named["found"]:
                raise ScenarioError(
                    f"the attack did not run: {next(iter(named['refused'].values()), 'there is nobody to guess')}"
                )
            (one,) = named["found"]
            return PrivateModelAttack(by, one["epsilon"] if one["comparable"] else 0.0, proven, one["auc"], accuracy)
        if "attack_auc" not in found:
            raise ScenarioError(f"nobody could be a canary among {self.graph.num_nodes:,} people; allowed: four with a label")
        return PrivateModelAttack(by, float(found["epsilon_measured"]), proven, float(found["attack_auc"]), accuracy)


def private(
    model: torch.nn.Module | str,
    graph: object,
    *,
    unit: str = "node",
    epsilon: float = 8.0,
    delta: float | None = None,
    public: object = None,
    arguments: Mapping[str, object] | None = None,
    weights: str = "fresh",
    label: str | None = None,
    id: str | None = None,
    ends: Sequence[str] | None = None,
    columns: Mapping[str, object] | None = None,
    **settings: Any,
) -> PrivateModel:
    """A torch network of one's own, to be trained privately. Nothing is trained yet; the network is looked at.

    Args:
        model: A module whose ``forward(x, edge_index)`` or ``forward(x)`` gives each node its class scores; or the dotted name
            of a class of such modules.
        graph: What ``fedgraph.read`` reads: the people who train.
        unit: What one person's data are: ``node``, or ``edge``: rows and labels of ``graph`` are public, and only its edges are
            protected. The network is then called with rows that hold released noisy sums over neighbours, and with no edge.
        epsilon: ε, above 0.
        delta: δ, between 0 and 1; by default a tenth of one over the people who train, and at most 10⁻⁴; for edges of one over
            50 of each person, since how many there are is private.
        public: People whose rows and edges are public, as ``graph``: what is learned from them costs nothing, and the network
            may read edges when it answers. Without such people each answer follows from one's own row.
        arguments: Keyword arguments of a class.
        weights: ``fresh``: the network's layers draw new weights. ``public``: it begins with those that it has, which come from
            public data that hold nobody of ``graph``.
        label: The column that is predicted; found where it is plain.
        id: The column that names people; found where it is plain.
        ends: The two columns of the ends of ties; found where they are plain.
        columns: How columns are read, as for ``fedgraph.read``.
        settings: Of the method ``own_model``: ``steps``, ``sampling_rate``, ``learning_rate``, ``clip``, ``mentions`` …

    Raises:
        ScenarioError: The network ties examples together, a setting is wrong, or the unit has no proof here.
        DataError: The graph cannot be read.

    Example:
        >>> private = fedgraph.private(torch_geometric.nn.GCN(-1, 32, 2, out_channels=6), "people", public="volunteers").fit()
    """
    if unit not in ("node", "edge"):
        raise ScenarioError(f"unit is {unit!r}; allowed: node, edge")
    if not (isinstance(epsilon, (int, float)) and epsilon > 0):
        raise ScenarioError(f"epsilon is {epsilon!r}; allowed: a number above 0")
    if isinstance(model, type):
        raise ScenarioError(
            f"model is the class {model.__name__}; allowed: a module, {model.__name__}(…), or a class by its dotted name"
        )
    found = graph if isinstance(graph, Reading) else read(graph, label, id, ends, columns=dict(columns or {}), name=_NAME)
    if not isinstance(found.graph, Graph):
        raise DataError("a collection of graphs; allowed: one graph of people")
    named = model if isinstance(model, str) else own_network.hold(model)
    wide = isinstance(model, str) or own_network.takes_any_width(model)
    edges = unit == "edge"
    projection = settings.pop("projection", _DIRECTIONS if wide and (edges or public is not None) else 0)
    row = {"method": "own_model", "label": _ROW, "model": named, "arguments": dict(arguments or {}), "weights": weights}
    row |= {"unit": unit, "projection": projection, **settings}
    columns_seen = projection or found.graph.num_features
    if edges:  # class rows and hops stand beside the features
        columns_seen += (1 + int(settings.get("hops", _HOPS))) * found.graph.num_classes
    isolation.require(
        NetworkSpec(named, json.dumps(row["arguments"], sort_keys=True), columns_seen, found.graph.num_classes, weights)
    )
    return PrivateModel(float(epsilon), delta, row, found, public)


def _bar() -> Callable[[str, int, int], None]:
    """On a terminal a bar that stands still; elsewhere a line after ten seconds, and then ever more seldom."""
    begun, moving = time.monotonic(), sys.stderr.isatty()
    last = begun

    def show(stage: str, done: int, total: int) -> None:
        nonlocal last
        now, full = time.monotonic(), round(30 * done / max(total, 1))
        if moving or done == total or now - last >= max(10, (now - begun) / 4):
            last, first, end = now, "\r" if moving else "", "" if moving and done < total else "\n"
            print(f"{first}{stage} {'█' * full}{'·' * (30 - full)} {done}/{total}", end=end, file=sys.stderr, flush=True)

    return show
