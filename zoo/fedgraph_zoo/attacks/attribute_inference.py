"""Attribute inference: one word of a person's row is unknown; which of the two rows does the model know better?

    score = ln p(y | row with the word) − ln p(y | row without), less what models that never saw the word say on average

Each of some training nodes has, by a fair coin, one more word than its row holds. The attacker knows the rest of the row and
the label (black-box inversion of Fredrikson et al., CCS 2015, on node classifiers as in the reference). The reference models
keep what follows from the word alone (imputation) apart from what the target remembers of this person.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.attacks.base.coin_game import CoinGame, CoinGameRun, OwnCoinGame
from fedgraph.documents import Settings
from fedgraph.methods import Plan
from fedgraph.privacy import Relation, Unit, Viewer
from fedgraph.types import Graph, Partition

REFERENCE = "Olatunji, Hizber, Sihlovec & Khosla 2023, arXiv 2306.00644; Fredrikson, Jha & Ristenpart, CCS 2015"
NEEDS = "the model, the rest of the node's row, its label, and (for the comparison) shadow models"
VIEWER = Viewer.CURATOR_TRUSTED


@dataclass(frozen=True, eq=False)
class CoinWords:
    """Words that some nodes' rows have or lack."""

    nodes: np.ndarray  # int64 [m], global ids
    columns: np.ndarray  # int64 [m], the column of each node's word. The row lacks it as it was given.
    values: np.ndarray  # float32 [m], the value that the word has where it is there
    coins: np.ndarray  # bool [m], whether it is there

    @property
    def units(self) -> np.ndarray:
        """int64 [m, 2]: node, word."""
        return np.column_stack([self.nodes, self.columns])

    def planted(self, graph: Graph, nodes: np.ndarray, versions: np.ndarray) -> Graph:
        """``graph``, whose rows are the global ``nodes``, with the words that ``versions`` (bool [m]) says."""
        place = coin_game.places_of(nodes, self.nodes)
        here = np.flatnonzero((place[self.nodes] >= 0) & versions)
        at = (place[self.nodes[here]], self.columns[here])
        added = sp.csr_array((self.values[here], at), shape=graph.features.shape)
        features = sp.csr_array(graph.features + added).astype(np.float32)
        features.sort_indices()
        return replace(graph, features=features)


def play_word_coins(partition: Partition, held: Graph, public: Graph, most: int, rng: np.random.Generator) -> CoinGame:
    """At most ``most`` labelled nodes (half of them all), each with a coin for one word that its row lacks.

    The word is one that some row uses: of the public nodes where they have features, of the held ones otherwise.
    """
    known = coin_game.join_canary_clients(partition, held)
    labelled = np.flatnonzero(known.labels >= 0)
    chosen = np.sort(rng.permutation(labelled)[: min(most, labelled.size // 2)])
    seen = public.features if public.features.nnz and public.num_features == known.num_features else known.features
    largest = np.asarray(abs(seen).max(axis=0).todense()).ravel()
    used = np.flatnonzero(largest)
    columns = used[rng.integers(used.size, size=chosen.size)]
    rows = known.features
    lacks = np.array([c not in rows.indices[rows.indptr[n] : rows.indptr[n + 1]] for n, c in zip(chosen, columns, strict=True)])
    chosen, columns = chosen[lacks], columns[lacks]
    found = CoinWords(chosen, columns, largest[columns].astype(np.float32), rng.random(chosen.size) < 0.5)
    return CoinGame(found, partition, known, np.zeros((0, 2), np.int64))


GAME = OwnCoinGame("words", Relation.NODE_REPLACE, play_word_coins)


class Params(Settings):
    """No settings."""


def refuses(made: Plan) -> str | None:
    """Features that are public are no secret."""
    return "features and labels are public here" if made.guarantee.protection.unit is not Unit.NODE else None


def attack(params: Params, scene: Scene) -> SceneFinding:
    found = scene.game.found
    nodes = found.units[:, 0]
    with_it = scene.game.whole(np.ones(found.coins.size, dtype=bool))

    def gain(run: CoinGameRun) -> np.ndarray:
        """[m]: by how much the log-probabilities of the nodes' own labels are larger with the word."""
        asked = [scene.alone(run, replace(graph, labels=scene.labels)) for graph in (with_it, scene.known)]
        one, two = (attack_scene.label_probability(answers, nodes, scene.labels[nodes]) for answers in asked)
        return np.asarray(one - two)

    score = gain(scene.target)
    if scene.shadows:
        score = score - np.mean([gain(run) for run in scene.shadows], axis=0)
    return SceneFinding(score, scene.target.coins, "rows with one more word from rows without", np.arange(found.coins.size))
