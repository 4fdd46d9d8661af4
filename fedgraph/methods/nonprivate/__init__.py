"""The method without privacy: the accuracy of the same data when nothing is protected, for comparison.

Any network (``learning.baselines.networks``) trained by FedAvg (McMahan et al. 2017), FedProx (Li et al. 2020), FedAdam or
FedYogi (Reddi et al. 2021). Clients take full-batch steps; the average is weighted by labelled nodes. Adam's moments persist:
they travel with the parameters and are averaged as they are, so a client that joins, or one whose machine starts again, goes on
where the federation is, and Adam never begins anew. One client is central training, bit for bit, however it is cut into rounds.

**Early stopping.** A share of the training nodes (or the split's own validation mask) trains nothing; every round the clients
report how the broadcast model does there, on a graph with as few edges per node as a separate test graph has (``local``). A
candidate ends after ``patience`` rounds without a better validation accuracy or loss, and its best round counts. ``model:
ceiling`` trains each candidate of a small grid, on small graphs with several folds in turn, and lets those within a standard
error of the best answer together (``choice``); one that is two standard errors below the best after 100 steps is not trained to
its end. With ``refit`` the chosen ones are trained again on all training nodes, for as many rounds as were best; with a
validation mask of the split they are not, as published work does not.

**The training graph at inference.** Inductive: the model reads the test graph alone. Transductive: the whole graph, since it is
the graph that is asked. Where nodes ask, one candidate of ``model: ceiling`` reads the labels of their neighbours, too, as a
private row may (``label_hop``). Test labels are seen by nobody.
"""

from collections.abc import Mapping

import numpy as np

from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.learning.baselines import fitting
from fedgraph.methods.base import (
    Budget,
    ClearFacts,
    Draft,
    Inbox,
    Offers,
    Plan,
    PublicFacts,
    Reads,
    Schedule,
    Situation,
    State,
    Streams,
    Sums,
    guarantee_of,
    public_assumptions,
)
from fedgraph.methods.nonprivate import choice, local, observed, phases
from fedgraph.methods.nonprivate.params import CEILING, FEW, Asked, Params
from fedgraph.privacy.desk import Desk, PlannedRelease, Released
from fedgraph.privacy.events import Unprotected
from fedgraph.privacy.mechanisms.noise import Disclose
from fedgraph.privacy.sensitivity import Unbounded
from fedgraph.privacy.units import Assumption, Relation, Unit
from fedgraph.types import Graph, Subgraph

REFERENCE = """@inproceedings{mcmahan2017communication,
  title = {Communication-Efficient Learning of Deep Networks from Decentralized Data},
  author = {McMahan, Brendan and Moore, Eider and Ramage, Daniel and Hampson, Seth and Ag{\\"u}era y Arcas, Blaise},
  booktitle = {Artificial Intelligence and Statistics}, year = {2017}}
@inproceedings{reddi2021adaptive,
  title = {Adaptive Federated Optimization},
  author = {Reddi, Sashank and Charles, Zachary and Zaheer, Manzil and Garrett, Zachary and Rush, Keith and
    Kone{\\v{c}}n{\\'y}, Jakub and Kumar, Sanjiv and McMahan, H. Brendan},
  booktitle = {International Conference on Learning Representations}, year = {2021}}
@inproceedings{li2020federated,
  title = {Federated Optimization in Heterogeneous Networks},
  author = {Li, Tian and Sahu, Anit Kumar and Zaheer, Manzil and Sanjabi, Maziar and Talwalkar, Ameet and Smith, Virginia},
  booktitle = {Machine Learning and Systems}, year = {2020}}
@inproceedings{kipf2017semi,
  title = {Semi-Supervised Classification with Graph Convolutional Networks},
  author = {Kipf, Thomas N. and Welling, Max},
  booktitle = {International Conference on Learning Representations}, year = {2017}}"""


TOO_FEW = (
    f"Fewer than {FEW} validation nodes cannot tell networks apart: this row may lie below a plain network. Compare with "
    "one, or label more nodes."
)
IN_CLEAR = Disclose("plain FedAvg: the updated parameters")


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan[Params, Asked]:
    """One unprotected release per client and round; the budget is ignored, and the price says so: ε = ∞."""
    if facts.attendance.asynchronous and params.validation:
        raise ScenarioError("nonprivate in mode: asynchronous trains one model without early stopping; write validation: 0")
    assumed = (Assumption.COUNTS_PUBLIC, *public_assumptions(facts))
    if params.model == CEILING and "features" not in params.model_fields_set:
        if not isinstance(facts, ClearFacts):
            raise PrivacyError("model: ceiling counts entries of private rows: give ClearFacts, or write features")
        if facts.filled > 0.5:
            params = params.model_copy(update={"features": "columns"})
    made = _asked(params, facts)
    tried = len(made.candidates)
    refits = min(params.members, tried) if params.refit and params.validation else 0
    rounds = (tried * made.folds + refits) * params.rounds
    event = Unprotected("parameters are sent without noise")
    note = f"Chosen on validation nodes from {tried} candidates; test labels are read once, at the end."
    return Plan(
        method="nonprivate",
        params=params,
        facts=facts,
        guarantee=guarantee_of(facts, Relation.NODE_ZERO_OUT, assumed, budget.delta, per_end=False),
        schedule=Schedule(
            rounds=rounds, releases=(PlannedRelease("model", Unbounded(), IN_CLEAR, event, range(rounds)),), min_clients=1
        ),
        made=made,
        sums=Sums(suffice=True),
        notes=(note,) if params.model == CEILING else (),
    )


def _asked(params: Params, facts: PublicFacts) -> Asked:
    attributes = facts.public.attributes
    candidates = params.candidates(facts.public.asking.size > 0)
    labelled = facts.num_train if attributes is None else int((attributes.labels >= 0).sum())
    folds = params.divided(labelled, len(candidates))
    if facts.public.graph is None or facts.public.name != "test-graph":
        return Asked(1.0, candidates, *folds)
    return Asked(min(1.0, facts.public.graph.num_nodes / facts.num_train), candidates, *folds)


def num_sent(plan: Plan[Params, Asked]) -> int:
    """Numbers of a message that noise is priced for: there is no noise."""
    return 0


def start(plan: Plan[Params, Asked], rng: np.random.Generator) -> State[phases.Training]:
    return phases.begin(plan, int(rng.integers(2**31)))


def prepare(plan: Plan[Params, Asked], subgraph: Subgraph) -> local.Work:
    return local.Work(subgraph.graph, np.array([0, subgraph.graph.num_nodes], dtype=np.int64), plan.params.features)


def client(
    plan: Plan[Params, Asked], work: local.Work, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """Locally trained parameters and moments times the labelled nodes, and how the broadcast model does on validation nodes."""
    return {"update": desk.release("model", local.message(plan, work, model, (desk.client,)))}


def prepare_together(plan: Plan[Params, Asked], joint: Subgraph, starts: np.ndarray) -> local.Work | None:
    """The clients of a block as one, where one compiled call trains them all; else None."""
    return local.Work(joint.graph, starts, plan.params.features) if local.computes_together(plan) else None


def together(
    plan: Plan[Params, Asked], work: local.Work, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """The sum of what ``client`` of each gives, up to rounding."""
    return {"update": desk.release("model", local.message(plan, work, model, desk.together))}


def server(plan: Plan[Params, Asked], state: State[phases.Training], inbox: Inbox) -> State[phases.Training]:
    """The weighted average, then the server's own step; the next candidate when one is done."""
    return phases.merged(plan, state, inbox)


def predict(plan: Plan[Params, Asked], state: State[phases.Training], graph: Graph) -> np.ndarray:
    """[n, c] scores on the asked graph."""
    return choice.together([_scores(plan, index, parameters, graph) for index, parameters in phases.answering(state)])


def _scores(plan: Plan[Params, Asked], index: int, parameters: np.ndarray, graph: Graph) -> np.ndarray:
    network, candidate = fitting.build_network(phases.shape_of(plan, index), 0), plan.made.candidates[index]
    given = fitting.inputs(graph, plan.params.features, graph.labels if candidate.hears else None)
    return local.scores(plan, candidate, network, parameters, graph, given)


def tuned(
    plan: Plan[Params, Asked], state: State[phases.Training], graph: Graph, rng: np.random.Generator
) -> State[phases.Training]:
    """With the weights after a client's own steps on ``graph`` (``learning.fine_tuning``)."""
    own = [local.tuned(plan, index, parameters, graph, rng) for index, parameters in phases.answering(state)]
    return phases.with_parameters(state, own)


def says(plan: Plan[Params, Asked], state: State[phases.Training]) -> tuple[str, ...]:
    """Which candidates answer, and how each did on the validation nodes."""
    members, tried = state.memory.members, state.memory.tried
    if plan.params.model != CEILING or not tried:
        return ()
    steps = plan.params.local_epochs
    found = "; ".join(
        f"{plan.made.candidates[m.candidate]} ({m.accuracy:.3f} after {m.updates * steps} steps)" for m in members
    )
    first = tried[members[0].candidate]
    count = f"{first.count:.0f} validation nodes" + (f" in {first.folds} folds" if first.folds > 1 else "")
    said = f"Chosen by {count}: {found}."
    if len(members) > 1:
        said = f"Within a standard error of the best by {count}, answering together: {found}."
    return (said, TOO_FEW) if first.count < FEW else (said,)


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
    Draft(
        "graph", "node", {"model": "ceiling", "label": "no privacy"}, _CEILING, compared=True, edgeless=True, cheaper=_CHEAPER
    ),
    Draft("graph", "edge", {"model": "ceiling", "label": "no privacy"}, _CEILING, compared=True, cheaper=_CHEAPER),
    Draft("federation", "node", _MLP, _PLAIN, compared=True, quick=_FEWER),
    Draft("federation", "node", _GCN, _PLAIN, compared=True, quick=_FEWER),
    # a plain GCN has no way to an edge's other client
    Draft("federation", "edge", _GCN, _PLAIN, compared=True, quick=_FEWER, crossing=False),
)
OFFERS: Offers[Params, Asked, local.Work, phases.Training] = Offers(
    kind="classifier",
    units=(Unit.NODE,),
    reads=lambda plan: Reads.PUBLIC_GRAPH,
    situations=(
        Situation("inductive", settings={"rounds": 3}),
        Situation("transductive", settings={"rounds": 3}),
        Situation("inductive-edges", settings={"rounds": 3}),
        Situation("asking", settings={"rounds": 3}),
    ),
    ignores_budget={},
    any_broadcast=True,  # nothing is guaranteed anyway
    private_test_nodes=True,  # nothing is protected, so a test node may be asked in any setting
    partial_rounds=True,  # averages are weighted by what came
    answers_every_round=True,
    drafts=_DRAFTS,
    num_sent=num_sent,
    tuned=tuned,
    says=says,
    prepare_together=prepare_together,
    together=together,
    observe=observed.Updates,
    convolutions=observed.convolutions,
)
