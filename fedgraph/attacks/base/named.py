"""Attacks by name on one cell: their games, shadow runs and verdicts.

``attack: {named: [{attack: lira}], shadows: 8}``: all attacks on one game see the same target run and the same shadows. The
ordinary run, of which accuracy and ε are reported, is not touched. Everything here has its own random streams.

**Verdicts** (``_judge``): area under the ROC curve, TPR at small FPR, advantage, and a bound on ε if a theorem gives one: if a
fair coin for each unit decides the truth, and scores depend on it only through the target's release. The bound holds under the
relation of the two versions, and is compared with the provable ε if the row prices this relation. The number of guesses is
fixed beforehand (``_GUESSED``). Each bound is wrong with probability at most 5 %; counts are kept, so that a report can divide
this error among all its bounds.
"""

from dataclasses import dataclass
from typing import Any, Protocol, cast, get_args

import numpy as np

from fedgraph import plugins, seeds
from fedgraph.attacks import lira
from fedgraph.attacks.base import coin_game, whole_run
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.attacks.base.whole_run import WholeRunAttack
from fedgraph.audit import one_run, operating_points
from fedgraph.cells import Cell, CellContext, NamedAttackCellFacts, NamedAttacksCellFacts, NodeRiskCellFacts
from fedgraph.documents import Settings
from fedgraph.errors import RuntimeFailure, ScenarioError
from fedgraph.methods import Plan, State
from fedgraph.privacy import Relation, Viewer, accountant
from fedgraph.types import Graph, Partition

_MEASURED = {"auc", "tpr_at_0.1%", "tpr_at_1%", "advantage", "epsilon"}  # columns of every attack
_GUESSED = 0.2  # share of the coins that is guessed, fixed before any score is seen


class _SceneAttack(Protocol):
    """The module of an attack by name (``attacks.base`` states its contract)."""

    REFERENCE: str
    NEEDS: str
    VIEWER: Viewer
    GAME: coin_game.CoinGameKind | coin_game.OwnCoinGame
    Params: type[Settings]

    def refuses(self, made: Plan) -> str | None: ...
    def attack(self, params: Any, scene: Scene) -> SceneFinding: ...


def _judge(name: str, module: Any, scene: Scene, found: SceneFinding, provable: float) -> NamedAttackCellFacts:
    """The numbers of one finding. provable: the ε of the ordinary run."""
    if not isinstance(found, SceneFinding):
        raise RuntimeFailure(f"attack {name} returned a {type(found).__name__}; allowed: a SceneFinding")
    if found.scores.shape != found.truth.shape or np.isnan(found.scores).any():
        gave = f"{found.scores.shape} scores, {np.isnan(found.scores).sum()} of them NaN, for {found.truth.shape} truths"
        raise RuntimeFailure(f"attack {name} gave {gave}; allowed: one score for each truth, a number or ±∞")
    if found.units is not None and not np.array_equal(found.truth, scene.target.coins[found.units]):
        raise RuntimeFailure(
            f"attack {name}: its truth is not the coins of its units, so no theorem gives an ε: return "
            "scene.target.coins[units], or units=None"
        )
    if own := sorted(_MEASURED & found.metrics.keys()):
        raise RuntimeFailure(f"attack {name} gives metrics {', '.join(own)}, which are measured from its scores; give others")
    points = operating_points.of_scores(found.scores, found.truth)
    relation = coin_game.relation_of(module.GAME, scene.made)
    why = _not_comparable(scene, found, relation)
    gaussian = not why and all(accountant.is_gaussian(event) for event in scene.made.declared().values())
    estimator = "curve" if gaussian else "counting-tight"
    counts = [] if found.units is None else _guessed(found.scores, found.truth)
    delta = scene.made.guarantee.delta
    return NamedAttackCellFacts(
        attack=name,
        reference=module.REFERENCE,
        needs=module.NEEDS,
        viewer=module.VIEWER.value,
        what=found.what,
        auc=points.auc,
        advantage=points.advantage,
        tpr=points.tpr,
        epsilon=one_run.best_bound(counts, delta, estimator) if counts else None,
        comparable=not why,
        why=why,
        estimator=estimator,
        counts=tuple((c.coins, c.guesses, c.right) for c in counts),
        limit=None if why else operating_points.most_audited_advantage(provable, delta),
        answers=scene.answers,
        more=found.metrics,
    )


def _guessed(scores: np.ndarray, coins: np.ndarray) -> list[one_run.OneRunCount]:
    """Two ways to guess ``_GUESSED`` of the coins: the highest scores as 1 and the lowest as 0, half each; and the highest
    alone, as 1. They share the error probability.
    """
    both = one_run.count_guesses(scores, coins, _GUESSED)
    top = np.argsort(-scores, kind="stable")[: both.guesses]
    return [both, one_run.OneRunCount(scores.size, both.guesses, int(np.count_nonzero(coins[top])))]


def _not_comparable(scene: Scene, found: SceneFinding, relation: Relation | None) -> str:
    """Why a bound is not compared with the provable ε of the row; empty: it is."""
    own = scene.made.guarantee.protection.relation
    if found.units is None:
        return "what is told is no matter of independent coins"
    if relation is not own:
        return f"the versions are neighbours under {relation.value if relation else 'nothing'}, the row prices {own.value}"
    if scene.answers == "everybody" and not np.isinf(scene.epsilon):
        return "answers made with private edges are shown to others, which the guarantee does not cover"
    return ""


@dataclass(frozen=True)
class Findings:
    """What all attacks by name found on one cell.

    Attributes:
        verdicts: One for each attack that applies.
        refused: From the name of each other attack to why it does not.
        risk: How often the coins of single nodes were guessed right; None without a game of nodes.
    """

    verdicts: tuple[NamedAttackCellFacts, ...]
    refused: dict[str, str]
    risk: NodeRiskCellFacts | None = None

    @property
    def metrics(self) -> dict[str, float]:
        """The verdicts as columns of ``results.csv``, with the name of the attack first."""
        found: dict[str, float] = {}
        for v in self.verdicts:
            numbers = {"auc": v.auc, "tpr_at_0.1%": v.tpr[0], "tpr_at_1%": v.tpr[1], "advantage": v.advantage, **v.more}
            found |= {f"{v.attack}_{name}": value for name, value in numbers.items()}
        return found

    @property
    def facts(self) -> NamedAttacksCellFacts | None:
        """The same for the report; None if no attack was asked for."""
        if not self.verdicts and not self.refused:
            return None
        return NamedAttacksCellFacts(self.verdicts, self.refused, self.risk)


def measure_all(
    asked: WholeRunAttack | None, made: Plan, cell: Cell, context: CellContext, partition: Partition, held: Graph,
    public: Graph,
    provable: float,
) -> Findings:  # fmt: skip
    """All attacks by name on one cell: a verdict or a refusal for each; none if the cell is not attacked or releases nothing.

    asked: ``named`` has the settings of each attack, with its name under ``attack``. cell: names the random streams. held: all
    clients' nodes. public: the graph that predictions are asked for. provable: ε of the ordinary run.
    """
    if asked is None or not asked.named or not asked.meant_for(cell) or not made.schedule.releases:
        return Findings((), {})
    found, refused, scenes = [], {}, {}
    for spec in asked.named:
        settings = {key: value for key, value in spec.items() if key not in ("attack", "label")}
        name = str(spec.get("label") or spec["attack"])
        module = cast("_SceneAttack", plugins.load("attacks", spec["attack"]))
        if not isinstance(module.VIEWER, Viewer):
            raise ScenarioError(f"attack {name}: VIEWER is {module.VIEWER!r}; allowed: a Viewer of fedgraph.privacy")
        if (why := module.refuses(made)) is not None:
            refused[name] = why
            continue
        if module.GAME not in scenes:
            scenes[module.GAME] = _scene(module.GAME, asked, made, cell, context, partition, held, public)
        if (scene := scenes[module.GAME]) is None:
            refused[name] = "too few units to toss coins for"
            continue
        scene.rng = seeds.seeded_generator(context.root, "named", name, *cell.path)
        told = module.attack(module.Params(**settings), scene)
        found.append(_judge(name, module, scene, told, provable))
    of_nodes = scenes.get("nodes")
    risk = None if of_nodes is None or not of_nodes.shadows else lira.measure_risk(of_nodes)
    return Findings(tuple(found), refused, risk)


def _scene(
    kind: coin_game.CoinGameKind | coin_game.OwnCoinGame, asked: WholeRunAttack, made: Plan, cell: Cell, context: CellContext,
    partition: Partition, held: Graph,
    public: Graph,
) -> Scene | None:  # fmt: skip
    """The game, its target run and its shadows; None if there are fewer than four units."""
    if not isinstance(kind, coin_game.OwnCoinGame) and kind not in (games := get_args(coin_game.CoinGameKind)):
        raise ScenarioError(f"no game of attacks is called {kind!r} (GAME); allowed: {', '.join(games)}, or an OwnCoinGame")
    called = kind.name if isinstance(kind, coin_game.OwnCoinGame) else kind
    rng = seeds.seeded_generator(context.root, "game", called, *cell.path)

    def train(dealt: Partition, name: str) -> State:
        return whole_run.train_again(made, dealt, cell, context, f"{called}-{name}")

    if kind == "clients":
        target = coin_game.CoinGameRun(np.zeros(0, dtype=bool), State({}, None))
        everybody = coin_game.without_coins(partition, held)
        return Scene(made, everybody, target, (), public, asked.answers, cell.epsilon, rng, train)
    if kind == "nodes":
        played = coin_game.toss_nodes(partition, held, asked.units, rng)
    elif isinstance(kind, coin_game.OwnCoinGame):
        played = kind.play(partition, held, public, asked.units, rng)
    else:
        played = coin_game.toss_edges(partition, held, coin_game.relation_of_edges(made), asked.units, rng)
    coins = played.found.coins
    if coins.size < 4 or coins.all() or not coins.any():
        return None
    target = coin_game.CoinGameRun(coins, train(played.dealt(coins), "target"))
    tossed = coin_game.toss_shadows(asked.shadows if kind != "edges" else 0, coins.size, rng)
    shadows = tuple(coin_game.CoinGameRun(c, train(played.dealt(c), f"shadow-{k}")) for k, c in enumerate(tossed))
    return Scene(made, played, target, shadows, public, asked.answers, cell.epsilon, rng, train)
