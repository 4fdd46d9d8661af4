"""The settings of node classification, and which of them exclude each other."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, field_validator, model_validator

from fedgraph import documents
from fedgraph.attacks import whole_run
from fedgraph.cells import Cell
from fedgraph.errors import DataError, ScenarioError
from fedgraph.federation import Federation, Split
from fedgraph.methods import Budget, PublicCalibrationFact
from fedgraph.privacy import Trust
from fedgraph.tasks.base import grid
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph, graph_without_edges, graph_without_labels


class RowKeys(grid.RowKeys):
    """The keys of a row: those of every grid, and private choices and accuracies."""

    select: grid.TaskRowSelect | None = Field(None, description="settings that are chosen privately, within the row's ε")
    publish_accuracy: float | None = Field(
        None, gt=0, description="ε, of the row's, with which a noisy accuracy on private people is released"
    )


class Participation(documents.Settings):
    """Which clients take part in a round; by default all."""

    share: float = Field(
        1.0, gt=0, le=1, description="share of the clients that a round asks: a fixed number, drawn anew for each round"
    )

    def answering(self, num_clients: int) -> int | None:
        """Number of clients that answer in each round, at least one; None if all do."""
        return None if self.share == 1 else max(1, round(self.share * num_clients))


_Participation = Literal["alone", "federated", "curator", "left-out", "personalised"]
_OF_OWNERS = ("participations", "left_out", "personalised", "alerts", "positive", "called")
_FEDERATED = (Trust.SUMS, Trust.OWN_CLIENT)


class Params(grid.Grid):
    """The grid of cells: methods × trust × budgets × seeds."""

    methods: Annotated[list[Annotated[documents.SettingsSpec, AfterValidator(grid.check_keys(RowKeys))]], grid.Rows] = Field(
        min_length=1, description="method: file name in fedgraph/methods, then its settings"
    )
    delta: Annotated[float | Literal["1/n_train"] | dict[str, float], documents.PerDatasetSetting] = Field(
        "1/n_train", description="δ of every guarantee; a number, or data set: number (others then get 1/n_train)"
    )
    calibrated_by: list[Literal["published", "provable"]] = Field(
        ["provable"], min_length=1, description="reading under which noise is chosen"
    )
    train_fraction: float = Field(0.8, gt=0, lt=1, description="share of nodes that train")
    map: bool = Field(False, description="draw the training nodes' embeddings (first seed; t-SNE; reads private data)")
    split: Split = Field(
        "random",
        description="random: train_fraction of the nodes train; parts: seven of nine parts of a balanced cut train, one tests; "
        "public: the split that came with the data (of several, seed s takes number s); per-class: so many of each class",
    )
    train_per_class: int = Field(20, ge=1, description="training nodes of each class (split: per-class)")
    validation_per_class: int = Field(30, ge=0, description="validation nodes of each class (split: per-class)")
    component: Literal["all", "largest"] = Field("all", description="the whole graph, or its largest connected component")
    protocol: protocols.Protocol = Field("inductive", description="what clients hold and what is public")
    public: protocols.PublicSetChoice = Field(
        "test-graph", description="what is public: test-graph, nothing, or a set: {share: 0.1}, {mask: file}, {dataset: name}"
    )
    colluders: int = Field(
        1,
        ge=1,
        description="sums: how many clients may pool with the server what they know of their own noise; "
        "each client's noise grows with it",
    )
    federation: Participation = Field(Participation(), description="which share of the clients a round asks")
    curve: int = Field(0, ge=0, le=1000, description="draw the accuracy after so many of the rounds (0: none)")
    attack: whole_run.WholeRunAttack | None = Field(
        None, description="train again with canaries, and measure a lower bound on ε"
    )
    participations: list[_Participation] = Field(
        ["alone", "federated", "curator", "personalised"], min_length=1, description="owners: which choices are compared"
    )
    left_out: Literal["all"] | int | list[str] = Field(
        3, description="owners left out in turn: all, so many (from the smallest to the largest), or names"
    )
    personalised: Literal["head", "weights", "both", "none"] = Field(
        "head", description="what an owner fits to its own data in clear: a head on the shared scores, all weights, both, none"
    )
    alerts: float | None = Field(None, gt=0, le=1, description="share of an owner's test nodes that can be looked at")
    positive: int = Field(1, ge=0, description="number of the class that alerts look for")

    @property
    def readings(self) -> list[Literal["published", "provable"]]:
        return self.calibrated_by

    @property
    def public_mask(self) -> Path | None:
        """The file that names the public nodes, or None."""
        return self.public.mask if isinstance(self.public, protocols.PublicSet) else None

    def budget(self, cell: Cell, num_train: int) -> Budget:
        """What a cell may spend. num_train: number of training nodes n; δ is 1/n if the scenario says ``1/n_train``."""
        given = self.delta.get(cell.dataset, "1/n_train") if isinstance(self.delta, dict) else self.delta
        delta = 1.0 / num_train if isinstance(given, str) else given
        reading: PublicCalibrationFact = "provable" if cell.calibrated_by == "none" else cell.calibrated_by  # type: ignore[assignment]
        return Budget(cell.epsilon, delta, reading)

    def divide(self, graph: Graph, seed: int, rng: np.random.Generator) -> Federation:
        """The federation of one seed, held by one curator, with columns of numbers as they are. rng: draws the split.

        The seed also chooses one of several published splits. ``DataError`` if no test node has a label, or there is no split.
        """
        whole = protocols.largest_component(graph) if self.component == "largest" else graph
        sizes = protocols.Sizes(self.train_per_class, self.validation_per_class, seed)
        found = protocols.divide(whole, self.protocol, self.train_fraction, rng, self.split, self.public, sizes)
        if not (found.truth >= 0).any():
            raise DataError(f"{graph.name}: no test node has a label, so accuracy cannot be measured")
        return found

    def everybody(self, graph: Graph, public: Graph | None) -> Federation:
        """The federation of a model for use: one curator, whose people all train, and nobody is tested.

        If labels are private, so is who has none: people without a label train, too, and add nothing to any sum.

        Args:
            graph: The people.
            public: Other people, whose rows and edges are public. They replace what the task makes public.

        Raises:
            DataError: Nobody has a label.
            ScenarioError: The row takes some people as public and there is no ``public``, or it takes nobody and there is one.
        """
        # ids are written out, so that a part of the graph keeps them
        held = replace(graph, masks=(), validation=None, names=replace(graph.names, ids=graph.ids))
        if self.component == "largest":
            held = protocols.largest_component(held)
        labelled = int((held.labels >= 0).sum())
        nobody = np.full(held.num_nodes, -1, dtype=np.int64)
        if not labelled:
            raise DataError(f"{graph.name}: nobody has a label; allowed: people with a label, to train on")
        given = graph_without_labels(public) if public is not None else None
        inductive = self.protocol in ("inductive", "inductive-edges")
        needs = isinstance(self.public, protocols.PublicSet) or (self.public == "test-graph" and inductive)
        called = protocols.name_of(self.public) if needs else "nothing"
        if needs and given is None:
            raise ScenarioError(
                f"the row takes some people as public (public: {called}), and in a model everybody trains: name other people "
                "whose rows and edges are public (--public GRAPH), or fit a row with public: nothing"
            )
        if given is not None and not needs:
            raise ScenarioError(f"the row takes nobody as public (protocol: {self.protocol}): leave --public away")
        attributes = None
        if self.protocol in ("transductive", "inductive-edges"):  # the model keeps them: digests say who trained
            attributes = replace(graph_without_edges(held), names=replace(held.names, ids=()))
        if self.protocol == "transductive":
            return Federation(held, held, nobody, labelled, None, attributes, "attributes", split="random")
        if self.protocol == "asking":
            return Federation(held, held, nobody, held.num_nodes, given, None, called, asks=True, split="random")
        asked = given if given is not None and called == "test-graph" else held
        return Federation(held, asked, nobody, held.num_nodes, given, attributes, called, split="random")

    @model_validator(mode="before")
    @classmethod
    def _dealt_as_the_data_say(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("owners") is True:
            return {"partition": {"partition": "natural"}} | given
        return given

    @property
    def run_trust(self) -> set[Trust]:
        """With ``owners`` a row may have any level of trust (``owners.worlds_of``)."""
        return set(Trust) if self.owners else super().run_trust

    @model_validator(mode="after")
    def _compares_choices_of_owners(self) -> Params:
        if not self.owners:
            usual, given = type(self).model_fields, self.model_dump(include=set(_OF_OWNERS))
            if wrong := [key for key, value in given.items() if value != usual[key].default]:
                raise ValueError(f"{wrong[0]} is of owners; write owners: true with it, or leave it away")
            return self
        trusted = {*self.trust, *(Trust(t) for m in self.methods for t in m.get("trust", ()))}
        if wrong := [t.value for t in Trust if t in trusted - set(_FEDERATED)]:
            raise ValueError(
                f"with owners, trust says how a federation is trusted: found {wrong[0]}; allowed: sums, own-client (one "
                "curator is participations: [curator])"
            )
        if self.map or self.curve or self.attack is not None or self.federation.share < 1:
            raise ValueError("map, curve, attack and federation do not go with owners: write a task without owners for them")
        if "left-out" in self.participations and self.protocol == "transductive":
            raise ValueError(
                "left-out asks for nodes that nobody trained with, and protocol transductive has none; allowed with it: "
                "protocol inductive, inductive-edges or asking"
            )
        if isinstance(self.left_out, int) and self.left_out < 1:
            raise ValueError(f"left_out leaves out 1 client or more in turn, found {self.left_out}")
        return self

    @field_validator("delta")
    @classmethod
    def _fraction(cls, value: float | str | dict[str, float]) -> float | str | dict[str, float]:
        for number in value.values() if isinstance(value, dict) else [value]:
            if isinstance(number, float) and not 0 < number < 1:
                raise ValueError(f"δ must satisfy 0 < δ < 1, found {number}")
        return value

    @model_validator(mode="after")
    def _parts_are_inductive(self) -> Params:
        if self.split == "parts" and self.protocol == "transductive":
            raise ValueError(
                "split: parts cuts the graph, so it needs protocol inductive, inductive-edges or asking, found transductive"
            )
        if self.public != "test-graph" and self.protocol not in ("inductive", "asking"):
            raise ValueError(f"public is chosen with protocol inductive or asking, found {self.protocol}")
        return self

    @model_validator(mode="after")
    def _chooses_where_it_is_priced(self) -> Params:
        for spec in (spec for spec in self.methods if "select" in spec):
            name, trusted = grid.label_of(spec), grid.trust_of(spec, self.trust)
            if trusted != [Trust.CURATOR]:
                said = ", ".join(one.value for one in trusted)
                seen = f"row {name}: a server sees every trial of a choice"
                raise ValueError(f"{seen}; select needs trust: [curator], found {said}")
            if grid.ignores_budget(spec) or math.inf in map(float, spec.get("epsilons", self.epsilons)):
                raise ValueError(f"row {name}: a choice without noise has no price; select needs a private method and finite ε")
            if self.attack is not None or self.map or self.curve or "published" in self.calibrated_by:
                raise ValueError(f"row {name}: select goes with calibrated_by: [provable], and with no attack, map or curve")
        return self

    @model_validator(mode="after")
    def _buys_what_is_priced(self) -> Params:
        for spec in (spec for spec in self.methods if "publish_accuracy" in spec):
            name, trusted = grid.label_of(spec), grid.trust_of(spec, self.trust)
            if trusted != [Trust.CURATOR]:
                said = ", ".join(one.value for one in trusted)
                why = f"row {name}: in a federation no one party holds all answers"
                raise ValueError(f"{why}; publish_accuracy needs trust: [curator], found {said}")
            budgets = list(map(float, spec.get("epsilons", self.epsilons)))
            if grid.ignores_budget(spec) or math.inf in budgets or float(spec["publish_accuracy"]) >= min(budgets):
                raise ValueError(f"row {name}: publish_accuracy is a part of the row's ε; it needs finite epsilons above it")
            if "select" in spec:
                raise ValueError(f"row {name}: select releases a noisy accuracy already; leave publish_accuracy away")
            if "published" in self.calibrated_by:
                raise ValueError(f"row {name}: publish_accuracy goes with calibrated_by: [provable]")
        return self

    @model_validator(mode="after")
    def _attacks_what_is_run(self) -> Params:
        """If the attack names trust or budgets, some row has to run there; ``--quick`` may leave out the others."""
        if self.attack is not None:
            if self.federation.share < 1:
                raise ValueError("attack needs every client in every round; leave federation away, or the attack")
            budgets: set[Any] = {float(e) for spec in self.methods for e in spec.get("epsilons", self.epsilons)}
            trusted = {Trust(t) for spec in self.methods for t in spec.get("trust", self.trust)} | {Trust.NOBODY}
            words: set[Any] = {t.value for t in trusted}
            named = None if self.attack.trust is None else [t.value for t in self.attack.trust]
            for what, asked, run in (("trust", named, words), ("epsilons", self.attack.epsilons, budgets)):
                if asked is not None and not run & set(asked):
                    raise ValueError(f"attack.{what} is {asked}, where no row runs; allowed: some of {sorted(run, key=str)}")
        return self
