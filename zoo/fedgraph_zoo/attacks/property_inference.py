"""Property inference: something about the whole graph, not about a person: is one class thinned out in it?

Worlds are made by a fair coin each: in one half of the nodes of one class lose their labels, in the other as many nodes of the
other classes do. The attacker trains shadow models in both kinds of world, learns to tell them by the models' answers on public
rows (their mean, class by class), and names the world of fresh runs.

Such a property is no unit: it takes many nodes to change it, so ε of a node says little (group privacy), and no bound on ε is
given here. With few runs the area is coarse.
"""

from dataclasses import replace

import numpy as np
from pydantic import Field
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fedgraph.attacks.base import coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.attacks.base.coin_game import CoinGameRun
from fedgraph.documents import Settings
from fedgraph.privacy import Viewer
from fedgraph.types import Partition

REFERENCE = "Zhang, Chen, Backes, Shen & Zhang, USENIX Security 2022, arXiv 2110.02631; Ateniese et al. 2015, arXiv 1306.4447"
NEEDS = "the plan, public rows to ask about, and shadow models of worlds with and without the property"
VIEWER = Viewer.CURATOR_TRUSTED
GAME: coin_game.CoinGameKind = "clients"


class Params(Settings):
    worlds: int = Field(8, ge=4, description="shadow runs, and as many runs that are attacked")
    thinned: float = Field(0.5, gt=0, lt=1, description="share of the class that loses its labels")


refuses = coin_game.refuse_nodes


def attack(params: Params, scene: Scene) -> SceneFinding:
    labels = scene.labels
    of_class = int(np.bincount(labels[labels >= 0]).argmax())
    answers, truth = [], np.arange(2 * params.worlds) % 2 == 0
    for number, has in enumerate(truth):
        dealt = _thinned(scene, of_class, bool(has), params.thinned)
        run = CoinGameRun(np.zeros(0, dtype=bool), scene.train(dealt, f"world-{number}"))
        told = np.exp(scene.alone(run, scene.public))
        answers.append(np.concatenate([told.mean(axis=0), np.log(np.maximum(told, 1e-9)).mean(axis=0)]))
    shadows = np.arange(truth.size) < params.worlds
    classifier = make_pipeline(StandardScaler(), LogisticRegression())
    classifier.fit(np.array(answers)[shadows], truth[shadows])
    score = classifier.decision_function(np.array(answers)[~shadows])
    what = f"training sets with {params.thinned:.0%} of class {of_class} unlabelled from others"
    return SceneFinding(score, truth[~shadows], what)


def _thinned(scene: Scene, of_class: int, has: bool, share: float) -> Partition:
    labels = scene.labels
    own = np.flatnonzero(labels == of_class)
    among = own if has else np.flatnonzero((labels >= 0) & (labels != of_class))
    lost = np.zeros(labels.size, dtype=bool)
    lost[scene.rng.permutation(among)[: round(share * own.size)]] = True

    return scene.game.partition.with_graphs(lambda s: replace(s.graph, labels=np.where(lost[s.nodes], -1, s.graph.labels)))
