"""From the scores of an attack to the numbers of a report: area, TPR at small FPR, advantage, and where a theorem allows a
bound.

A bound on ε is given where truth is a fair coin for each unit and scores were made of the target's release alone. It holds
under the relation of the two versions, and is held against the provable ε where that is the relation which the row prices. The
number of guesses is fixed beforehand (``GUESSED``). Each bound
alone is wrong with probability at most 5 %; the counts are kept, so that a report can divide that error among all bounds that
it shows before it speaks of a contradiction.
"""

from typing import Any

import numpy as np

from fedgraph.attacks.base import game
from fedgraph.attacks.base.scene import Finding, Scene
from fedgraph.audit import estimators, one_run, operating_points
from fedgraph.cells.facts import NamedAttack
from fedgraph.privacy.accounting.accountant import is_gaussian
from fedgraph.privacy.units import Relation

GUESSED = 0.2  # share of the coins that is guessed, fixed before any score is seen


def judge(name: str, module: Any, scene: Scene, found: Finding, provable: float) -> NamedAttack:
    """The numbers of one finding. provable: the ε that the run was worth."""
    points = operating_points.from_scores(found.scores, found.truth)
    relation = game.relation_of(module.GAME, scene.made)
    why = _not_comparable(scene, found, relation)
    gaussian = not why and all(is_gaussian(event) for event in scene.made.declared().values())
    estimator = "curve" if gaussian else "counting-tight"
    counts = [] if found.units is None else guessed(found.scores, found.truth)
    delta = scene.made.guarantee.delta
    return NamedAttack(
        attack=name,
        reference=module.REFERENCE,
        needs=module.NEEDS,
        viewer=module.VIEWER.value,
        what=found.what,
        auc=points.auc,
        advantage=points.advantage,
        tpr=points.tpr,
        positives=points.positives,
        negatives=points.negatives,
        relation=None if relation is None or found.units is None else relation.value,
        epsilon=estimators.epsilon_lower(counts, delta, estimator) if counts else None,
        comparable=not why,
        why=why,
        estimator=estimator,
        counts=tuple((c.coins, c.guesses, c.right) for c in counts),
        limit=None if why else operating_points.most_advantage(provable, delta),
        answers=scene.answers,
        more=found.metrics,
    )


def guessed(scores: np.ndarray, coins: np.ndarray) -> list[one_run.Count]:
    """Two ways to guess ``GUESSED`` of the coins, fixed beforehand: the highest scores as 1 and the lowest as 0, half each; and
    the highest alone, as 1. They share the error probability."""
    both = one_run.count(scores, coins, GUESSED)
    top = np.argsort(-scores, kind="stable")[: both.guesses]
    return [both, one_run.Count(scores.size, both.guesses, int(np.count_nonzero(coins[top])))]


def _not_comparable(scene: Scene, found: Finding, relation: Relation | None) -> str:
    """Why a bound cannot be held against the provable ε of the row; empty where it can."""
    own = scene.made.guarantee.protection.relation
    if found.units is None:
        return "what is told is no matter of independent coins"
    if relation is not own:
        return f"the versions are neighbours under {relation.value if relation else 'nothing'}, the row prices {own.value}"
    if scene.answers == "everybody" and not np.isinf(scene.epsilon):
        return "answers made with private edges are shown to others, which the guarantee does not cover"
    return ""
