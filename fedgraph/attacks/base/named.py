"""Attacks by name on one cell: their games, shadow runs and verdicts.

``attack: {named: [{attack: lira}], shadows: 8}``: all attacks on one game see the same target run and the same shadows. The
ordinary run, of which accuracy and ε are reported, is not touched. Everything here has its own random streams.

**Verdicts** (``_judge``): area under the ROC curve, TPR at small FPR, advantage, and a bound on ε if a theorem gives one: if a
fair coin for each unit decides the truth, and scores depend on it only through the target's release. The bound holds under the
relation of the two versions, and is compared with the provable ε if the row prices this relation. The number of guesses is
fixed beforehand (``_GUESSED``). Each bound is wrong with probability at most 5 %; counts are kept, so that a report can divide
this error among all its bounds.

**Risk** (``_measure_risk``): how often LiRA is right about each single node. Every run of the game of nodes (target and
shadows) is attacked in turn, with all other runs as shadows. The *risk* of a node is the share of the runs in which its coin is
guessed right, among those in which LiRA can say anything; 0.5 is chance. It describes the runs, and is no bound on ε.

Guesses from a few runs are noisy, and not independent (each run is a shadow of the others): in five runs a node is "always"
guessed right by luck more often than in five coin tosses. ``always_by_luck`` is the same share for coins drawn anew, which the
runs do not depend on.
"""

from dataclasses import dataclass
from typing import Any, cast, get_args

import numpy as np

from fedgraph import plugins, seeds
from fedgraph.attacks.base import attack_scene, coin_game, whole_run
from fedgraph.attacks.base.attack_scene import Scene, SceneAttack, SceneFinding
from fedgraph.attacks.base.whole_run import WholeRunAttack
from fedgraph.attacks.lira import likelihood_ratios
from fedgraph.audit import one_run, operating_points
from fedgraph.cells import Cell, CellContext, NamedAttackCellFacts, NamedAttacksCellFacts, NodeRiskCellFacts
from fedgraph.errors import RuntimeFailure, ScenarioError
from fedgraph.methods import Plan, State
from fedgraph.privacy import Relation, Viewer, accountant
from fedgraph.types import Graph, Partition

_GUESSED = 0.2  # share of the coins that is guessed, fixed before any score is seen


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
        relation=None if relation is None or found.units is None else relation.value,
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


_NUM_GROUPS = 4
_REDRAWN = 20  # sets of coins drawn anew, over which luck is averaged


def _measure_risk(scene: Scene) -> NodeRiskCellFacts:
    """The risk of the nodes in question, and how it depends on degree, rarity of the class, and labels of neighbours."""
    nodes = scene.game.found.units[:, 0]
    confidence = attack_scene.log_odds(scene.own_labels())
    coins = np.stack([scene.target.coins, *(run.coins for run in scene.shadows)])
    right, counted = _named_right(confidence, coins)
    lucky = [_named_right(confidence, _redrawn(coins, scene.rng)) for _ in range(_REDRAWN)]
    risk = right / np.maximum(counted, 1)
    known = scene.labels[scene.labels >= 0]
    shares = np.bincount(known) / known.size
    degrees, rarity = scene.known.degrees[nodes], -np.log(shares[scene.labels[nodes]])
    own_way = _unlike(scene, nodes)
    return NodeRiskCellFacts(
        runs=len(coins),
        nodes=int(nodes.size),
        mean=float(risk.mean()),
        always_found=float((right == counted).mean()),
        always_by_luck=float(np.mean([(r == c).mean() for r, c in lucky])),
        by_degree=_groups(degrees.astype(float), risk),
        by_rarity=_groups(rarity, risk),
        by_unlike=_groups(own_way, risk),
        rank_degree=_rank(degrees, risk),
        rank_rarity=_rank(rarity, risk),
        rank_unlike=_rank(own_way, risk),
    )


def _named_right(confidence: np.ndarray, coins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(runs in which LiRA guesses the coin right, runs in which it can guess), [m] each; each run against all others."""
    right, counted = np.zeros(coins.shape[1]), np.zeros(coins.shape[1])
    for run in range(len(coins)):
        others = np.arange(len(coins)) != run
        known = coins[others]
        both = known.any(axis=0) & ~known.all(axis=0)
        score = np.where(both, likelihood_ratios(confidence[run], confidence[others], known, each=False), np.nan)
        right += np.where(both, (score > 0) == coins[run], 0.0)
        counted += both
    return right, counted


def _redrawn(coins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Coins drawn anew, with the same structure: the target's, and pairs of opposites."""
    shadows = coin_game.toss_shadows(len(coins) - 1, coins.shape[1], rng)
    return np.stack([rng.random(coins.shape[1]) < 0.5, *shadows])


def _unlike(scene: Scene, nodes: np.ndarray) -> np.ndarray:
    """[m]: share of a node's labelled neighbours with another label; one half if it has none."""
    labels, adjacency = scene.labels, scene.known.adjacency
    rows, columns = adjacency.nonzero()
    judged = (labels[rows] >= 0) & (labels[columns] >= 0)
    rows, columns = rows[judged], columns[judged]
    count = np.bincount(rows, minlength=labels.size)
    other = np.bincount(rows, weights=(labels[rows] != labels[columns]).astype(float), minlength=labels.size)
    return np.asarray(np.where(count > 0, other / np.maximum(count, 1), 0.5)[nodes])


def _groups(values: np.ndarray, risk: np.ndarray) -> tuple[tuple[float, float, float, float], ...]:
    """(from, to, nodes, mean risk) of at most ``_NUM_GROUPS`` groups of about equal size; equal values are in one group."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _NUM_GROUPS + 1)))
    which = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, max(edges.size - 2, 0))
    found = []
    for group in np.unique(which):
        own = which == group
        found.append((float(values[own].min()), float(values[own].max()), float(own.sum()), float(risk[own].mean())))
    return tuple(found)


def _rank(values: np.ndarray, risk: np.ndarray) -> float:
    """Spearman's correlation; 0 if one of the two is constant."""
    if np.ptp(values) == 0 or np.ptp(risk) == 0:
        return 0.0
    from scipy.stats import spearmanr

    return float(spearmanr(values, risk).statistic)


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
        module = cast("SceneAttack", plugins.load("attacks", spec["attack"]))
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
    risk = None if of_nodes is None or not of_nodes.shadows else _measure_risk(of_nodes)
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
