"""Attacks by name on one cell: games are dealt, shadows trained, and each attack says what it found.

``attack: {named: [{attack: lira}], shadows: 8}``: every attack of one game sees the same target run and the same shadows. The
run that counts (accuracy, ε) is not touched. Everything here has random streams of its own, named by the cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from fedgraph import plugins, seeds
from fedgraph.attacks.base import game, risk, verdicts
from fedgraph.attacks.base.scene import Answers, AttackModule, Scene
from fedgraph.attacks.base.whole_run import trained
from fedgraph.cells.cell import Cell, Context
from fedgraph.cells.facts import NamedAttack, NamedAttacks, NodesAtRisk
from fedgraph.documents.settings import Spec
from fedgraph.methods.base import Plan, State
from fedgraph.types import Graph, Partition


@dataclass(frozen=True, eq=False)
class Asked:
    """What a scenario asks for. named: settings of each attack, with its name under ``attack``. shadows: runs of the attacker.
    units: most coins of a game. answers: who sees them.
    """

    named: Sequence[Spec]
    shadows: int
    units: int
    answers: Answers


@dataclass(frozen=True)
class Found:
    """verdicts: one per attack that says something. refused: attack → why it does not. risk: of real nodes, where a game of
    nodes was played (``base.risk``).
    """

    verdicts: tuple[NamedAttack, ...]
    refused: dict[str, str]
    risk: NodesAtRisk | None = None

    @property
    def metrics(self) -> dict[str, float]:
        """Columns of ``results.csv``."""
        found: dict[str, float] = {}
        for v in self.verdicts:
            found |= {f"{v.attack}_auc": v.auc, f"{v.attack}_tpr_at_0.1%": v.tpr[0], f"{v.attack}_tpr_at_1%": v.tpr[1]}
            found |= {f"{v.attack}_advantage": v.advantage} | {f"{v.attack}_{name}": value for name, value in v.more.items()}
        return found

    @property
    def facts(self) -> NamedAttacks | None:
        """What the report reads; None where no attack was asked for."""
        if not self.verdicts and not self.refused:
            return None
        return NamedAttacks(self.verdicts, self.refused, self.risk)


def measure(
    asked: Asked, made: Plan, cell: Cell, context: Context, partition: Partition, held: Graph, public: Graph,
    provable: float,
) -> Found:  # fmt: skip
    """All named attacks on one cell. held: all clients' nodes. public: that predictions are asked for. provable: its ε."""
    found, refused, scenes = [], {}, {}
    for spec in asked.named:
        settings = {key: value for key, value in spec.items() if key not in ("attack", "label")}
        name = str(spec.get("label") or spec["attack"])
        module = cast("AttackModule", plugins.load("attacks", spec["attack"]))
        why = module.refuses(made)
        if why is None and module.GAME not in scenes:
            scenes[module.GAME] = _scene(module.GAME, asked, made, cell, context, partition, held, public)
        if why is None and scenes[module.GAME] is None:
            why = "too few units to toss coins for"
        if why is not None:
            refused[name] = why
            continue
        scene = scenes[module.GAME]
        assert scene is not None
        scene.rng = seeds.generator(context.root, "named", name, *cell.path)
        told = module.attack(module.Params(**settings), scene)
        found.append(verdicts.judge(name, module, scene, told, provable))
    of_nodes = scenes.get("nodes")
    return Found(tuple(found), refused, None if of_nodes is None or not of_nodes.shadows else risk.measure_risk(of_nodes))


def _scene(
    kind: game.Kind, asked: Asked, made: Plan, cell: Cell, context: Context, partition: Partition, held: Graph,
    public: Graph,
) -> Scene | None:  # fmt: skip
    """The game, its target run and its shadows; None where there is nothing to toss coins for."""
    rng = seeds.generator(context.root, "game", kind, *cell.path)

    def train(dealt: Partition, name: str) -> State:
        return trained(made, dealt, cell, context, f"{kind}-{name}")

    if kind == "clients":
        played, target = game.nothing(partition, held), game.Run(np.zeros(0, dtype=bool), State({}, None))
        return Scene(made, played, target, (), public, asked.answers, cell.epsilon, rng, train)
    played = _dealt(kind, asked, made, partition, held, public, rng)
    coins = played.found.coins
    if coins.size < 4 or coins.all() or not coins.any():
        return None
    target = game.Run(coins, train(played.dealt(coins), "target"))
    tossed = game.coins_of_shadows(asked.shadows if kind != "edges" else 0, coins.size, rng)
    shadows = tuple(game.Run(c, train(played.dealt(c), f"shadow-{k}")) for k, c in enumerate(tossed))
    return Scene(made, played, target, shadows, public, asked.answers, cell.epsilon, rng, train)


def _dealt(
    kind: game.Kind, asked: Asked, made: Plan, partition: Partition, held: Graph, public: Graph,
    rng: np.random.Generator,
) -> game.Game:  # fmt: skip
    if kind == "nodes":
        return game.nodes(partition, held, asked.units, rng)
    if kind == "words":
        return game.words(partition, held, public, asked.units, rng)
    relation = game.relation_of(kind, made)
    assert relation is not None
    return game.edges(partition, held, relation, asked.units, rng)
