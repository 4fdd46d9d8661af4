"""Settings chosen privately: the best of K trainings by a noisy score, where K is secret.

A fifth of the people, at most ``_MOST_JUDGES``, are judges and do not train. Each is asked alone, from its own row without an
edge, so one person changes the number of right answers by at most 1, and noise as strong as that of one training hides it. A
person pays for the trainings or for the scores, never for both. ``privacy.selection`` prices the best of all trainings.
``Desk.choose`` draws K, bounds every score, adds noise, and releases the best trial.

**Guarantee.** Unit and relation of the row, toward whoever is shown the chosen model, its settings and its score. K, the other
trials and the time that they took must stay secret. **Edge cases.** At edge level labels are public, and a score costs nothing.
"""

import functools
from dataclasses import dataclass, replace
from functools import cached_property

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
from fedgraph.tasks import base
from fedgraph.tasks.base import Cell, CellContext, cell_training
from fedgraph.tasks.base.cell_training import TrainedCell
from fedgraph.tasks.node_classification import training
from fedgraph.tasks.node_classification.settings import Params, RowKeys
from fedgraph.types import Graph, graph_without_edges, partition_of_one

_JUDGES, _MOST_JUDGES = 0.2, 1000  # share of the people who judge; most judges
_CHEAPEST = 30.0  # the row's ε over the least ε of one trial
_PATH = "choice"
_SHAPE = 0.0  # η of the law of the number of trials: logarithmic


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
        plan, state, setting = fitted.plan, fitted.outcome.state, fitted.federation
        predict = method_kinds.load_classifier(plan.method).predict
        if not self.alone:  # scores have no noise here, so they read what is released and public, and no private edge
            said = predict(plan, state, graph_without_edges(setting.held))[self.rows].argmax(axis=1)
        else:
            ranks, graph = setting.ranks, self.graph
            scaled = graph if ranks is None else ranks.scaled(replace(graph, columns=ranks.columns))
            asked = (replace(scaled.induced(np.array([row])), labels=np.array([-1])) for row in self.rows)
            said = np.array([int(np.asarray(predict(plan, state, one)).argmax()) for one in asked])
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
    rows = np.sort(order[may[order]][: min(_MOST_JUDGES, max(1, round(_JUDGES * int(may.sum()))))])
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

    select: base.TaskRowSelect  # the settings to choose from, and the mean number of trials
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
            method_kinds.load(spec["method"]).Params(**base.without_row_keys(spec, RowKeys))
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
            best = cell_training.dearest_within(epsilon, epsilon / _CHEAPEST, planned, lambda one: one.plan)
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
        schedule = methods.PlanSchedule(1, (privacy.PlannedRelease(_PATH, bound, mechanism, event, range(1)),), 1)
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

        (which, best), score = door.choose(_PATH, trial)
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
    return Choice(base.TaskRowSelect.model_validate(given), told, cell, context, *parts)


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
