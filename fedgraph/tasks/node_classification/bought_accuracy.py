"""An accuracy that may be published: the counts of right and of wrong answers, with noise (``publish_accuracy``).

Each tested person is asked alone, from its own row without an edge, as the judges of a choice are (``chosen_settings``). One
person adds one row to [right, wrong]: (1, 0) or (0, 1), or (0, 0) without a label. So the sum changes by at most 1 if a person
is masked, and by at most 2 if it is replaced, whatever the model is. The number of tested people with a label stays private.

**Guarantee.** Unit and relation of the row. The release is planned and composed with the training, and both together cost the
row's ε. **Refused** if the accuracy is public anyway, if an answer reads edges (one person would change the answers of all its
neighbours), and if no single party holds all answers.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np

from fedgraph import privacy, seeds
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.federation import Federation
from fedgraph.methods import MethodReads, Plan, method_kinds
from fedgraph.privacy import calibrate, ledger, sensitivity
from fedgraph.tasks.base import Cell, CellContext, cell_training
from fedgraph.tasks.base.cell_training import TrainedCell
from fedgraph.tasks.node_classification import training
from fedgraph.tasks.node_classification.settings import Params
from fedgraph.types import graph_without_edges

BOUGHT_ACCURACY = "noisy_accuracy"  # the metric
_PATH = "accuracy"
_MOST = 1000  # people who are asked, evenly over all who may be
_LEAST = 0.02  # of the row's ε, which the training must keep


@dataclass(frozen=True, eq=False)
class Bought:
    """What a row that publishes its accuracy declares."""

    training: Plan  # the plan of the training alone
    whole: Plan  # the plan with the release of the accuracy, which a budget is charged for
    std: float  # standard deviation of the noise on each count, in people

    @property
    def release(self) -> privacy.PlannedRelease:
        """The release of the accuracy."""
        return self.whole.schedule.releases[-1]

    def buy(self, done: TrainedCell, cell: Cell, root: int) -> tuple[TrainedCell, float]:
        """Releases the accuracy of a training.

        Args:
            done: The training, of the plan ``training``.
            cell: The cell that was trained.
            root: Root of the random streams.

        Returns:
            The training with the price of both releases and a sentence on the error of the accuracy; the noisy share of right
            answers, 0 … 1.
        """
        (round_,) = self.release.rounds
        noise = seeds.secret_seeded_generator(root, "accuracy", *cell.path, self.training.fingerprint)
        door = privacy.Desk(cell.key, 0, round_, (self.release,), noise)
        right, wrong = door.release(_PATH, functools.partial(_answers, done)).value.tolist()
        lines = ledger.merged((*done.outcome.releases, *door.entries))
        outcome = replace(done.outcome, releases=lines)
        asked = _asked_alone(done.federation).size
        said = (
            f"{BOUGHT_ACCURACY} was released with noise: of at most {asked:,} people, each asked alone from its own row, the "
            f"counts of right and of wrong answers, each with a standard deviation of {self.std:.3g} people "
            f"({100 * self.std / asked:.2g} % of them)."
        )
        settled = privacy.settle.of_releases(done.guarantee, lines)
        share = min(max(right / max(right + wrong, 1.0), 0.0), 1.0)
        return replace(done, outcome=outcome, settled=settled, said=(said,)), share


def declare(params: Params, cell: Cell, context: CellContext) -> Bought | None:
    """The plan of a row with a published accuracy: the training of the largest ε with which both cost at most the row's.

    Returns:
        None if the row publishes no accuracy.

    Raises:
        ScenarioError: The accuracy is public anyway, or no bound holds for it.
        PrivacyError: The price of the accuracy leaves nothing for the training.
    """
    price, epsilon = cell.among(params.methods).get("publish_accuracy"), cell.epsilon
    if price is None:
        return None

    def bought(left: float) -> Bought:
        asked = training.whole(params, cell.seed, training.trusts_nobody(cell), context)
        return _with_release(training.plan(params, replace(cell, epsilon=left), context), float(price), asked)

    def make() -> Bought:
        best = cell_training.dearest_within(epsilon, _LEAST * epsilon, bought, lambda one: one.whole)
        if best is None:
            raise PrivacyError(
                f"publish_accuracy: {price:g} leaves nothing of ε = {epsilon:g} to train with; allowed: less of it"
            )
        return best

    return context.cached(("bought", cell.path), make)


def _with_release(made: Plan, price: float, setting: Federation) -> Bought:
    _require_bounded(made, setting)
    guarantee = made.guarantee
    multiplier = calibrate.gaussian_multiplier(1, price, guarantee.delta)
    bound = privacy.Rows(1.0, _asked_alone(setting).size)
    mechanism = privacy.GaussianNoise(multiplier * sensitivity.l2(bound, guarantee.protection.relation))
    after = range(made.schedule.rounds, made.schedule.rounds + 1)
    release = privacy.PlannedRelease(_PATH, bound, mechanism, privacy.Gaussian(multiplier), after)
    schedule = replace(made.schedule, releases=(*made.schedule.releases, release))
    return Bought(made, replace(made, schedule=schedule), mechanism.std)


def _require_bounded(made: Plan, setting: Federation) -> None:
    """``ScenarioError`` if one person may change more than its own answer, or if the accuracy is public anyway."""
    protection, offered = made.guarantee.protection, method_kinds.load(made.method).OFFERS.reads
    if setting.test_graph_public or protection.relation.links_alone:
        why = "who is tested is public in this row, or its labels are, so there is nothing to buy; leave it away"
        if privacy.Assumption.OWN_EDGES_KNOWN in protection.assumptions:
            why = "an answer reads the own edges of who asks, and nobody bounds how many answers one edge moves; leave it away"
        raise ScenarioError(f"publish_accuracy: {why}")
    reads = None if offered is None else offered(made)
    beside = {privacy.Assumption.ANSWERS_PRIVATE, privacy.Assumption.EDGES_PUBLIC} & set(protection.assumptions)
    if reads is not MethodReads.OWN_ROW or beside:
        raise ScenarioError(
            f"publish_accuracy: an answer of {made.method} reads more than the own row of who asks, so one person may move the "
            "answers of all its neighbours, and no bound holds; allowed: methods that answer from the own row (features)"
        )
    if made.guarantee.sampled_once is not None or made.guarantee.holdings is not None or made.guarantee.per_end:
        raise ScenarioError("publish_accuracy: priced where everything of a person is at one party, without a secret sample")


def _asked_alone(setting: Federation) -> np.ndarray:
    """int64, evenly spaced rows of the tested nodes in ``setting.asked``. Who is tested is public; who has a label is not."""
    rows = setting.asking if setting.asking.size else np.arange(setting.asked.num_nodes)
    return rows[np.unique(np.linspace(0, rows.size - 1, min(_MOST, rows.size)).astype(np.int64))]


def _answers(done: TrainedCell) -> np.ndarray:
    """float64 [people, 2], a row for each who is asked: (1, 0) is a right answer, (0, 1) a wrong one, (0, 0) unlabelled."""
    plan, state, setting = done.plan, done.outcome.state, done.federation
    predict = method_kinds.load_classifier(plan.method).predict
    rows, apart = _asked_alone(setting), graph_without_edges(setting.asked)
    alone = (replace(apart.induced(np.array([row])), labels=np.array([-1])) for row in rows)
    said = np.array([int(np.asarray(predict(plan, state, one)).argmax()) for one in alone])
    truth = setting.truth[rows]
    return np.stack([(truth >= 0) & (said == truth), (truth >= 0) & (said != truth)], axis=1).astype(np.float64)
