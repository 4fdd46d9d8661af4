"""The method without privacy: the accuracy of the same data when nothing is protected, for comparison.

Any network (``learning.baselines.networks``) trained by FedAvg (McMahan et al. 2017). Clients take full-batch steps; the
average is weighted by labelled nodes. Adam's moments persist: they travel with the parameters and are averaged as they are, so
a client that joins, or one whose machine starts again, goes on where the federation is, and Adam never begins anew. One client
is central training, bit for bit, however it is cut into rounds.

**Early stopping.** A share of the training nodes (or the split's own validation mask) trains nothing; every round the clients
report how the broadcast model does there, on a graph with as few edges per node as a separate test graph has (``clients``). A
candidate ends after ``patience`` rounds without a better validation accuracy or loss, and its best round counts. ``model:
ceiling`` trains each candidate of a small grid, on small graphs with several folds in turn, and lets those within a standard
error of the best answer together (``phases``); one that is two standard errors below the best after 100 steps is not
trained to its end. With ``refit`` the chosen ones are trained again on all training nodes, for as many rounds as were best;
with a validation mask of the split they are not, as published work does not.

**The training graph at inference.** Inductive: the model reads the test graph alone. Transductive: the whole graph, since it is
the graph that is asked. Where nodes ask, one candidate of ``model: ceiling`` reads the labels of their neighbours, too, as a
private row may (``label_hop``). Test labels are seen by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fedgraph.errors import PrivacyError
from fedgraph.learning import fitting, torch
from fedgraph.methods import base
from fedgraph.methods.nonprivate import clients, phases
from fedgraph.methods.nonprivate.params import CEILING_PARAM, NONPRIVATE_CEILING_FEW, AskedParams, Params, Planned
from fedgraph.privacy import Assumption, Desk, Disclose, PlannedRelease, Relation, Unbounded, Unit, Unprotected
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("mcmahan2017communication", "kipf2017semi")


_TOO_FEW = (
    f"Fewer than {NONPRIVATE_CEILING_FEW} validation nodes cannot tell networks apart: this row may lie below a plain "
    "network. Compare with one, or label more nodes."
)
_IN_CLEAR = Disclose("plain FedAvg: the updated parameters")


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One unprotected release per client and round; the budget is ignored, and the price says so: ε = ∞."""
    assumed = (Assumption.COUNTS_PUBLIC, *base.assume_public_facts(facts))
    if params.model == CEILING_PARAM and "features" not in params.model_fields_set:
        if not isinstance(facts, base.ClearFacts):
            raise PrivacyError("model: ceiling counts entries of private rows: give base.ClearFacts, or write features")
        if facts.filled > 0.5:
            params = params.model_copy(update={"features": "columns"})
    made = _asked(params, facts)
    tried = len(made.candidates)
    refits = min(params.members, tried) if params.refit and params.validation else 0
    rounds = (tried * made.folds + refits) * params.rounds
    event = Unprotected("parameters are sent without noise")
    note = f"Chosen on validation nodes from {tried} candidates; test labels are read once, at the end."
    notes = (note,) if params.model == CEILING_PARAM else ()
    guarantee = base.guarantee_from_public_facts(facts, Relation.NODE_ZERO_OUT, assumed, budget.delta, per_end=False)
    schedule = base.PlanSchedule(rounds, (PlannedRelease("model", Unbounded(), _IN_CLEAR, event, range(rounds)),), 1)
    return base.Plan("nonprivate", params, facts, guarantee, schedule, made, sums=base.PlanSums(suffice=True), notes=notes)


def _asked(params: Params, facts: base.PublicFacts) -> AskedParams:
    attributes = facts.public_attributes
    candidates = params.candidates(facts.asks)
    labelled = facts.num_train if attributes is None else int((attributes.labels >= 0).sum())
    folds = params.divided(labelled, len(candidates))
    known = facts.public_graph if facts.public == "test-graph" else None
    share = 1.0 if known is None else min(1.0, known.num_nodes / facts.num_train)
    return AskedParams(share, candidates, *folds)


def start(plan: Planned, rng: np.random.Generator) -> base.State[phases.PhaseTraining]:
    return phases.begin(plan, int(rng.integers(2**31)))


def prepare(plan: Planned, subgraph: Subgraph) -> clients.Work:
    return clients.Work(subgraph.graph, plan.params.features)


def client(
    plan: Planned, work: clients.Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk
) -> base.PlanSent:
    """Locally trained parameters and moments times the labelled nodes, and how the broadcast model does on validation nodes."""
    return {"update": desk.release("model", clients.message_of(plan, work, model, desk.client))}


def server(plan: Planned, state: base.State[phases.PhaseTraining], inbox: base.PlanInbox) -> base.State[phases.PhaseTraining]:
    """The weighted average, then the server's own step; the next candidate when one is done."""
    return phases.merge(plan, state, inbox)


def predict(plan: Planned, state: base.State[phases.PhaseTraining], graph: Graph) -> np.ndarray:
    """float [n, c] scores on the asked graph, of all networks that answer."""
    found = []
    for index, parameters in phases.answering(state):
        network = fitting.build_network_for_fitting(phases.shape_of(plan, index), 0)
        heard = graph.labels if plan.made.candidates[index].hears else None
        given = fitting.prepare_fitting_inputs(graph, plan.params.features, heard)
        found.append(clients.scores(plan, index, network, parameters, graph, given))
    return phases.candidates_together(found)


def tuned(
    plan: Planned, state: base.State[phases.PhaseTraining], graph: Graph, rng: np.random.Generator
) -> base.State[phases.PhaseTraining]:
    """With the weights after a client's own steps on ``graph`` (``learning.own_models``)."""
    own = [clients.tuned(plan, index, parameters, graph, rng) for index, parameters in phases.answering(state)]
    return phases.with_parameters(state, own)


def _says(plan: Planned, state: base.State[phases.PhaseTraining]) -> tuple[str, ...]:
    members, tried, steps = state.memory.members, state.memory.tried, plan.params.local_epochs
    if plan.params.model != CEILING_PARAM or not tried:
        return ()
    named = [f"{plan.made.candidates[m.candidate]} ({m.accuracy:.3f} after {m.updates * steps} steps)" for m in members]
    found = "; ".join(named)
    first = tried[members[0].candidate]
    count = f"{first.count:.0f} validation nodes" + (f" in {first.folds} folds" if first.folds > 1 else "")
    said = f"Chosen by {count}: {found}."
    if len(members) > 1:
        said = f"Within a standard error of the best by {count}, answering together: {found}."
    return (said, _TOO_FEW) if first.count < NONPRIVATE_CEILING_FEW else (said,)


@dataclass(frozen=True, eq=False)
class _Updates:
    """A gradient as an update of FedAvg shows it: the mean over nodes, whose rows are read as they are."""

    plan: Planned
    names_words: bool = True

    def gradient(self, sent: Mapping[str, np.ndarray], model: base.Model) -> np.ndarray | None:
        """An update is parameters and Adam's moments after t local steps, times the number of labelled nodes.

        The first moment, from zero, over 1 − 0.9ᵗ is a weighted mean of the gradients on the way: what attacks on FedAvg
        updates read. None without a labelled node.
        """
        if "update" not in sent or "parameters" not in model:
            return None
        p = model["parameters"].size
        if sent["update"].size <= 3 * p or not sent["update"][3 * p]:
            return None
        update = sent["update"] / sent["update"][3 * p]
        return np.asarray(update[p : 2 * p] / (1 - 0.9**self.plan.params.local_epochs), dtype=np.float64)

    def first_layer(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first weights that read rows; zeros where there are none."""
        d = self.plan.facts.num_features
        for parameter, values in self._parts(gradient):
            if parameter.dim() == 2 and parameter.shape[1] == d:
                return values.reshape(tuple(parameter.shape)), np.eye(d)
        return np.zeros((1, d)), np.eye(d)

    def last_bias(self, gradient: np.ndarray, num_nodes: int) -> np.ndarray:
        """The last bias with a number for each class; zeros where there is none."""
        c = self.plan.facts.num_classes
        found = [values for parameter, values in self._parts(gradient) if parameter.dim() == 1 and parameter.numel() == c]
        return found[-1] if found else np.zeros(c)

    def _parts(self, gradient: np.ndarray) -> Iterator[tuple[torch.Tensor, np.ndarray]]:
        """Every parameter of the network with its part of the flat gradient."""
        at = 0
        for parameter in fitting.build_network_for_fitting(phases.shape_of(self.plan, 0), 0).parameters():
            yield parameter, gradient[at : at + parameter.numel()]
            at += parameter.numel()


_CEILING, _PLAIN = "what the same data gives when nothing is protected", "a plain network by FedAvg"
_MLP = {"model": "mlp", "label": "MLP without privacy", "rounds": 20}
_GCN = {"model": "gcn", "label": "GCN without privacy", "rounds": 20}
_FEWER = {"rounds": 3}
_BOTH = ["logistic", "gcn"]
_CHEAPER: tuple[tuple[float, dict[str, object]], ...] = (  # costs: seconds of 1,200 training nodes, 12,000 edges (2026-11)
    (68.0, {}),
    (23.0, {"folds": 1}),
    (9.6, {"folds": 1, "rounds": 10}),
    (2.4, {"folds": 1, "rounds": 10, "among": _BOTH}),
    (1.0, {"folds": 1, "rounds": 4, "among": _BOTH}),
)
_BEST = {"model": "ceiling", "label": "no privacy"}
_DRAFTS = (
    base.MethodDraft("graph", "node", _BEST, _CEILING, compared=True, edgeless=True, cheaper=_CHEAPER),
    base.MethodDraft("graph", "edge", _BEST, _CEILING, compared=True, cheaper=_CHEAPER),
    base.MethodDraft("federation", "node", _MLP, _PLAIN, compared=True, quick=_FEWER),
    base.MethodDraft("federation", "node", _GCN, _PLAIN, compared=True, quick=_FEWER),
    # a plain GCN has no way to an edge's other client
    base.MethodDraft("federation", "edge", _GCN, _PLAIN, compared=True, quick=_FEWER, crossing=False),
)
OFFERS: base.Offers[Params, AskedParams, clients.Work, phases.PhaseTraining] = base.Offers(
    units=(Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(
        base.MethodSituation("inductive", settings=_FEWER),
        base.MethodSituation("transductive", settings=_FEWER),
        base.MethodSituation("inductive-edges", settings=_FEWER),
        base.MethodSituation("asking", settings=_FEWER),
    ),
    ignores_budget={},
    any_broadcast=True,  # nothing is guaranteed anyway
    private_test_nodes=True,  # nothing is protected, so a test node may be asked in any setting
    partial_rounds=True,  # averages are weighted by what came
    answers_every_round=True,
    drafts=_DRAFTS,
    tuned=tuned,
    says=_says,
    observe=_Updates,
)
