"""Scores of people who did not train, paid for within the row's ε: settings chosen by such a score (``select``), or an accuracy
that is published (``publish_accuracy``).

Each person is asked alone, from its own row without an edge. So one person changes the number of right answers by at most 1,
and noise hides it, whatever the model is.

**Settings chosen privately**: the best of K trainings by a noisy score, where K is secret. A fifth of the people, at most
``_MOST_ASKED``, are judges and do not train; the noise on a score is as strong as that of one training. A person pays for the
trainings or for the scores, never for both. ``privacy.selection`` prices the best of all trainings. ``Desk.choose`` draws K,
bounds every score, adds noise, and releases the best trial. **Guarantee.** Unit and relation of the row, toward whoever is
shown the chosen model, its settings and its score. K, the other trials and the time that they took must stay secret. **Edge
cases.** At edge level labels are public, and a score costs nothing.

**An accuracy that may be published**: the counts of right and of wrong answers. One person adds one row to [right, wrong]:
(1, 0) or (0, 1), or (0, 0) without a label. So the sum changes by at most 1 if a person is masked, and by at most 2 if it is
replaced. The number of tested people with a label stays private. **Guarantee.** Unit and relation of the row. The release is
planned and composed with the training, and both together cost the row's ε. **Refused** if the accuracy is public anyway, if an
answer reads edges (one person would change the answers of all its neighbours), and if no single party holds all answers.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from pydantic import ValidationError

from fedgraph import methods, privacy, seeds
from fedgraph.cells import SettingChoiceCellFacts
from fedgraph.documents import SettingsSpec
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.federation import Federation
from fedgraph.methods import Plan, method_kinds
from fedgraph.privacy import calibrate, ledger, selection, sensitivity
from fedgraph.runtime import SerialRuntime
from fedgraph.tasks.base import Cell, CellContext, grid
from fedgraph.tasks.base.cell_training import TrainedCell
from fedgraph.tasks.node_classification import training
from fedgraph.tasks.node_classification.settings import Params, RowKeys
from fedgraph.types import Graph, graph_without_edges, partition_of_one

BOUGHT_ACCURACY = "noisy_accuracy"  # the metric
_MOST_ASKED = 1000  # people who are asked for one score
_JUDGES = 0.2  # share of the people who judge
_CHEAPEST = 30.0  # the row's ε over the least ε of one trial
_LEAST = 0.02  # of the row's ε, which the training must keep beside a published accuracy
_HALVINGS = 9  # bisections of an interval of ε, at its geometric mean
_Made = TypeVar("_Made")
_SHAPE = 0.0  # η of the law of the number of trials: logarithmic


def _ask_alone(done: TrainedCell, graph: Graph, rows: np.ndarray) -> np.ndarray:
    """int64 [rows]: the class that each node of ``graph`` in ``rows`` is told, asked alone from its own row."""
    predict = method_kinds.load_classifier(done.plan.method).predict
    alone = (replace(graph.induced(np.array([row])), labels=np.array([-1])) for row in rows)
    return np.array([int(np.asarray(predict(done.plan, done.outcome.state, one)).argmax()) for one in alone])


def _dearest_within(
    epsilon: float, least: float, made: Callable[[float], _Made], priced: Callable[[_Made], Plan]
) -> _Made | None:
    """``made`` of the largest ε in [least, epsilon] whose plan costs at most ``epsilon``; None if there is none."""
    low, high, best = least, epsilon, made(least)
    if priced(best).provable().epsilon > epsilon:
        return None
    for _ in range(_HALVINGS):
        tried = made(middle := math.sqrt(low * high))
        if priced(tried).provable().epsilon <= epsilon:
            low, best = middle, tried
        else:
            high = middle
    return best


@dataclass(frozen=True, eq=False)
class _Judges:
    """Who judges."""

    graph: Graph  # the training graph before judges left it, with their labels
    rows: np.ndarray  # int64 [judges], their rows in it
    # whether each is asked alone, from its own row without an edge; else (protocol transductive, where labels and features are
    # public) judges stay in the training graph, without their labels
    alone: bool

    def right(self, fitted: TrainedCell) -> np.ndarray:
        """float64 [judges, 1]: 1 for each right answer, else 0."""
        ranks, graph = fitted.federation.ranks, self.graph
        if self.alone:
            said = _ask_alone(
                fitted, graph if ranks is None else ranks.scaled(replace(graph, columns=ranks.columns)), self.rows
            )
        else:  # scores have no noise here, so they read what is released and public, and no private edge
            predict = method_kinds.load_classifier(fitted.plan.method).predict
            told = predict(fitted.plan, fitted.outcome.state, graph_without_edges(fitted.federation.held))
            said = told[self.rows].argmax(axis=1)
        return np.asarray((said == self.graph.labels[self.rows])[:, None], dtype=np.float64)


def split_judges(setting: Federation, protocol: str, rng: np.random.Generator) -> tuple[Federation, _Judges]:
    """(the federation that trains, the judges). rng: public coins, so who judges is public, as who trains is.

    If rows are private, so is who has a label. Judges are then drawn from all people who would train, and every answer to one
    without a label counts as wrong. So neither who judges nor how many judges there are follows from labels.
    """
    held, alone = setting.held, protocol != "transductive"
    may = np.ones(held.num_nodes, dtype=bool) if alone else held.labels >= 0
    may[setting.asking] = False
    order = rng.permutation(held.num_nodes)
    rows = np.sort(order[may[order]][: min(_MOST_ASKED, max(1, round(_JUDGES * int(may.sum()))))])
    judges = _Judges(held, rows, alone)
    if not judges.alone:
        labels = held.labels.copy()
        labels[rows] = -1
        rest, left = np.arange(held.num_nodes), replace(held, labels=labels)
    else:
        rest = np.setdiff1d(np.arange(held.num_nodes), rows)
        left = held.induced(rest)
    same = setting.asked is held
    return replace(
        setting,
        held=left,
        asked=left if same else setting.asked,
        truth=setting.truth[rest] if same else setting.truth,
        num_train=setting.num_train - rows.size,
        public_attributes=None if setting.public_attributes is None else graph_without_edges(left),
        asking=np.searchsorted(rest, setting.asking),
        partition=partition_of_one(left, "one curator"),
    ), judges  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Priced:
    """A choice with its price."""

    epsilon: float  # ε of one trial
    plan: Plan  # its one event prices all trials and their scores


@dataclass(frozen=True, eq=False)
class Choice:
    """One choice of settings of a cell."""

    select: grid.TaskRowSelect  # the settings to choose from, and the mean number of trials
    params: Params  # the task's settings; their δ is a number
    cell: Cell
    context: CellContext  # the cell's context; trainings have contexts of their own
    setting: Federation  # the federation that trains
    judges: _Judges

    @cached_property
    def rows(self) -> tuple[Params, ...]:
        """The task's settings with each combination. ``ScenarioError`` for a setting that the method does not have."""
        return tuple(map(self._with, self.select.choices))

    def _with(self, choice: SettingsSpec) -> Params:
        spec = {**{k: v for k, v in self.cell.among(self.params.methods).items() if k != "select"}, **choice}
        try:
            method_kinds.load(spec["method"]).Params(**grid.without_keys(spec, RowKeys))
        except ValidationError as error:
            problem = error.errors()[0]
            raise ScenarioError(f"select.over: {choice}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
        methods = [spec if number == self.cell.entry else other for number, other in enumerate(self.params.methods)]
        return self.params.model_copy(update={"methods": methods})

    def trial_context(self, engine: SerialRuntime) -> CellContext:
        """A context for one trial. Its rounds are not counted, because the number of trials is secret."""
        mine = CellContext(self.context.label, self.context.dataset, self.context.data, self.context.root, 1, engine)
        training.give_setting(self.params, self.cell, mine, self.setting)
        return mine

    @property
    def priced(self) -> _Priced:
        """The choice with the largest ε of one trial whose price is at most the cell's ε. ``PrivacyError`` if there is none."""
        return self.context.cached(("choice", self.cell.path), self._affordable)

    def _affordable(self) -> _Priced:
        with SerialRuntime() as engine:
            planned = functools.partial(self._planned, self.trial_context(engine))
            epsilon = self.cell.epsilon
            best = _dearest_within(epsilon, epsilon / _CHEAPEST, planned, lambda one: one.plan)
        if best is None:
            raise PrivacyError(f"ε = {epsilon:g} does not pay for a choice; allowed: fewer trials (among), or a larger ε")
        return best

    def _planned(self, context: CellContext, epsilon: float) -> _Priced:
        plans = [training.plan(params, replace(self.cell, epsilon=epsilon), context) for params in self.rows]
        first, protection = plans[0], _protection(plans)
        bound, mechanism = privacy.Rows(1.0, self.judges.rows.size), _require_priced(plans)
        score: tuple[privacy.Event, ...] = ()
        if protection.unit is not privacy.Unit.EDGE:
            multiplier = calibrate.gaussian_multiplier(1, epsilon, first.guarantee.delta)
            mechanism = privacy.GaussianNoise(multiplier * sensitivity.l2(bound, protection.relation))
            score = (privacy.Gaussian(multiplier),)
        trainings = (event for p in plans for event in p.declared().values())
        stop = selection.stop_for(_SHAPE, self.select.among)
        event = privacy.Selected((*dict.fromkeys(trainings), *score), _SHAPE, stop)
        schedule = methods.PlanSchedule(1, (privacy.PlannedRelease("choice", bound, mechanism, event, range(1)),), 1)
        guarantee = replace(first.guarantee, protection=protection, sampled_once=None)  # inside the trials
        made = replace(first, guarantee=guarantee, schedule=schedule, sums=methods.PlanSums(), epsilon_published=None)
        return _Priced(epsilon, made)

    def train(self) -> TrainedCell:
        """Runs K trials, each with noise of its own. Returns the one with the highest noisy score, at the price of all."""
        priced, cell, root = self.priced, self.cell, self.context.root
        picks = seeds.secret_seeded_generator(root, "candidates", *cell.path)
        door = privacy.Desk(
            cell.key, 0, 0, priced.plan.schedule.releases, seeds.secret_seeded_generator(root, "choice", *cell.path)
        )

        def trial(number: int) -> tuple[tuple[int, TrainedCell], np.ndarray]:
            which = int(picks.integers(len(self.rows)))
            one = replace(cell, task=f"{cell.task}/trial {number}", epsilon=priced.epsilon)  # no label holds a slash
            with SerialRuntime() as engine:
                fitted = training.train(self.rows[which], one, self.trial_context(engine))
            return (which, fitted), self.judges.right(fitted)

        (which, best), score = door.choose("choice", trial)
        lines = ledger.merged(door.entries)
        guarantee = replace(priced.plan.guarantee, promises=best.guarantee.promises)
        outcome = replace(best.outcome, releases=lines)
        choices, judges = self.select.choices, self.judges.rows.size
        share = score.value.item() / judges
        choice = SettingChoiceCellFacts(choices[which], priced.epsilon)
        plan = replace(best.plan, epsilon_published=None)
        settled = privacy.settle.of_releases(guarantee, lines)
        said = (
            f"Settings chosen privately: {choice.words}, the best of a secret number of trainings ({self.select.among:g} on "
            f"average, {len(choices)} combinations) by a noisy score, {100 * share:.1f} % right of {judges:,} people who did "
            f"not train. A training or a score alone has ε = {priced.epsilon:.3g}; choosing brings it to {settled.epsilon:.3g}."
        )
        return replace(best, plan=plan, outcome=outcome, guarantee=guarantee, settled=settled, choice=choice, said=(said,))


def choice_of(params: Params, cell: Cell, context: CellContext) -> Choice | None:
    """The choice of the row of ``cell``; None if the row chooses nothing."""
    given = cell.among(params.methods).get("select")
    if given is None:
        return None
    whole = training.unscaled(params, cell.seed, training.trusts_nobody(cell), context)
    told = params.model_copy(update={"delta": params.budget(cell, whole.num_train).delta})
    parts = split_judges(whole, params.protocol, seeds.seeded_generator(context.root, "judges", context.dataset, cell.seed))
    return Choice(grid.TaskRowSelect.model_validate(given), told, cell, context, *parts)


def _protection(plans: list[Plan]) -> privacy.Protection:
    """The protection of all trials: every assumption of one of them except ``UNTUNED``, since the search is priced."""
    every = [plan.guarantee.protection for plan in plans]
    assumed = dict.fromkeys(a for protection in every for a in protection.assumptions if a is not privacy.Assumption.UNTUNED)
    found = {replace(one, assumptions=(*assumed, privacy.Assumption.TRIALS_SECRET)) for one in every}
    if len(found) > 1 or len({plan.guarantee.delta for plan in plans}) > 1:
        raise PrivacyError(f"{plans[0].method}: settings with other units, relations, promises or δ are not chosen among")
    return found.pop()


def _require_priced(plans: list[Plan]) -> privacy.NoiseMechanism:
    """The mechanism of scores at edge level. ``PrivacyError`` if the price of a trial is not that of its releases."""
    for made in plans:
        guarantee, reads = made.guarantee, method_kinds.load(made.method).OFFERS.reads
        if guarantee.holdings is not None or guarantee.per_end:
            raise PrivacyError(f"{made.method}: a choice is priced where everything of a person is at one client")
        if reads is not None and all(isinstance(r.mechanism, privacy.MaskedResponse) for r in made.schedule.releases):
            raise PrivacyError(
                f"{made.method}: its answers follow from neighbours' labels alone, and who judges is asked without an edge, "
                "which would tell of its other end: no score tells settings apart; choose among settings with rows: true"
            )
        if guarantee.protection.unit is privacy.Unit.EDGE and (reads is None or reads(made) is not methods.MethodReads.NOTHING):
            raise PrivacyError(f"{made.method}: its score would read private edges, which nobody priced")
    return privacy.Disclose("a score that reads what is released and public")


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
        """Releases the accuracy of ``done``, a training of the plan ``training``.

        Returns:
            The training with the price of both releases and a sentence on the error of the accuracy; the noisy share of right
            answers, 0 … 1.
        """
        (round_,) = self.release.rounds
        noise = seeds.secret_seeded_generator(root, "accuracy", *cell.path, self.training.fingerprint)
        door = privacy.Desk(cell.key, 0, round_, (self.release,), noise)
        right, wrong = door.release("accuracy", functools.partial(_answers, done)).value.tolist()
        lines = ledger.merged((*done.outcome.releases, *door.entries))
        outcome = replace(done.outcome, releases=lines)
        asked = _asked_rows(done.federation).size
        said = (
            f"{BOUGHT_ACCURACY} was released with noise: of at most {asked:,} people, each asked alone from its own row, the "
            f"counts of right and of wrong answers, each with a standard deviation of {self.std:.3g} people "
            f"({100 * self.std / asked:.2g} % of them)."
        )
        settled = privacy.settle.of_releases(done.guarantee, lines)
        share = min(max(right / max(right + wrong, 1.0), 0.0), 1.0)
        return replace(done, outcome=outcome, settled=settled, said=(said,)), share


def accuracy_of(params: Params, cell: Cell, context: CellContext) -> Bought | None:
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
        best = _dearest_within(epsilon, _LEAST * epsilon, bought, lambda one: one.whole)
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
    bound = privacy.Rows(1.0, _asked_rows(setting).size)
    mechanism = privacy.GaussianNoise(multiplier * sensitivity.l2(bound, guarantee.protection.relation))
    after = range(made.schedule.rounds, made.schedule.rounds + 1)
    release = privacy.PlannedRelease("accuracy", bound, mechanism, privacy.Gaussian(multiplier), after)
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
    if reads is not methods.MethodReads.OWN_ROW or beside:
        raise ScenarioError(
            f"publish_accuracy: an answer of {made.method} reads more than the own row of who asks, so one person may move the "
            "answers of all its neighbours, and no bound holds; allowed: methods that answer from the own row (features)"
        )
    if made.guarantee.sampled_once is not None or made.guarantee.holdings is not None or made.guarantee.per_end:
        raise ScenarioError("publish_accuracy: priced where everything of a person is at one party, without a secret sample")


def _asked_rows(setting: Federation) -> np.ndarray:
    """int64, evenly spaced rows of the tested nodes in ``setting.asked``. Who is tested is public; who has a label is not."""
    rows = setting.asking if setting.asking.size else np.arange(setting.asked.num_nodes)
    return rows[np.unique(np.linspace(0, rows.size - 1, min(_MOST_ASKED, rows.size)).astype(np.int64))]


def _answers(done: TrainedCell) -> np.ndarray:
    """float64 [people, 2], a row for each who is asked: (1, 0) is a right answer, (0, 1) a wrong one, (0, 0) unlabelled."""
    rows = _asked_rows(done.federation)
    said, truth = _ask_alone(done, done.federation.asked, rows), done.federation.truth[rows]
    return np.stack([(truth >= 0) & (said == truth), (truth >= 0) & (said != truth)], axis=1).astype(np.float64)
