"""An accuracy that may leave, bought at a price: the counts of right and of wrong answers, with noise (``publish_accuracy``).

Each tested person is asked alone, from its own row without an edge, as those who judge a choice are (``chosen_settings``). So
one person is one row of [right, wrong], (1, 0) or (0, 1), and (0, 0) without a label: the sum moves by at most 1 where a person
is masked, by at most 2 where it is replaced, whatever the model is. How many of the tested have a label is not told either.

**Guarantee.** Unit and relation of the row; the release is planned, composed with the training, and both keep the row's ε
together: the training gets what the accuracy leaves of it. **Refused**: where the accuracy may leave anyway, where an answer
reads edges (one person would move its neighbours' answers, as many as it has), and where no one party holds all answers.
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

    training: Plan  # The plan of the training alone
    whole: Plan  # The same with the release of the accuracy, which is what a budget is charged
    std: float  # Of the noise on each count, people

    @property
    def release(self) -> privacy.PlannedRelease:
        """The one of the accuracy."""
        return self.whole.schedule.releases[-1]

    def buy(self, done: TrainedCell, cell: Cell, root: int) -> tuple[TrainedCell, float]:
        """Release the accuracy of a training.

        Args:
            done: The training, of the plan ``training``.
            cell: Whose it is.
            root: The root seed, or a secret one.

        Returns:
            The training at the price of both, which says how exact the accuracy is; the share of right answers, 0 … 1.
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
    """What the row of ``cell`` declares: the training of the largest ε that together with the accuracy costs at most the row's.

    Returns:
        None where the row publishes no accuracy.

    Raises:
        ScenarioError: The accuracy may leave without a price, or no bound holds for it.
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
    """``ScenarioError`` where one person may move more than its own answer, or nothing has to be bought."""
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
    """int64, rows of ``setting.asked``: evenly over those that are tested. Who is tested is public; who has a label is not."""
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
