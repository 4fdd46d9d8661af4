"""No privacy: what the same data gives when nothing is protected. The upper line of every comparison.

Any network (``learning.baselines.networks``) trained by FedAvg (McMahan et al. 2017), FedProx (Li et al. 2020), FedAdam or
FedYogi (Reddi et al. 2021). Clients take full-batch steps; the average is weighted by labelled nodes. Adam's moments persist:
they travel with the parameters and are averaged as they are, so a client that joins, or one whose machine starts again, goes on
where the federation is, and Adam never begins anew. One client is central training, bit for bit, however it is cut into rounds.

**Early stopping.** A share of the training nodes (or the split's own validation mask) trains nothing; every round the clients
report how the broadcast model does there. A candidate ends after ``patience`` rounds without a better validation accuracy or
loss, and its best round counts. ``model: ceiling`` trains each candidate of a small grid and takes the best by validation
accuracy (then loss). With ``refit`` the chosen one is trained again on all training nodes, for as many rounds as were best;
with a validation mask of the split it is not, as published work does not.

**The training graph at inference.** Inductive: the model reads the test graph alone. Transductive: the whole graph, since it is
the graph that is asked. Test labels are seen by nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fedgraph.learning.baselines import fitting
from fedgraph.learning.baselines.networks import Network
from fedgraph.learning.propagation.propagate import personalised_pagerank
from fedgraph.methods.base import (
    Budget,
    Inbox,
    Kind,
    Plan,
    PublicFacts,
    Situation,
    State,
    Streams,
    public_assumptions,
    setting_assumptions,
)
from fedgraph.methods.nonprivate import phases
from fedgraph.methods.nonprivate.params import CEILING, Candidate, Params
from fedgraph.privacy.desk import Desk, PlannedRelease, Released
from fedgraph.privacy.events import Unprotected
from fedgraph.privacy.mechanisms.noise import Disclose
from fedgraph.privacy.sensitivity import Unbounded
from fedgraph.privacy.units import Assumption, Protection, Relation
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

KIND: Kind = "classifier"
SITUATIONS = (
    Situation("inductive", settings={"rounds": 3}),
    Situation("transductive", settings={"rounds": 3}),
    Situation("inductive-edges", settings={"rounds": 3}),
    Situation("asking", settings={"rounds": 3}),
)

IN_CLEAR = Disclose("plain FedAvg: the updated parameters")
PRIVATE_TEST_NODES = True  # nothing is protected, so a test node may be asked in any setting


@dataclass(frozen=True, eq=False)
class Work:
    """A client's graph, ready. networks: candidate → network, built when first needed (its parameters are always broadcast)."""

    graph: Graph
    inputs: fitting.Inputs
    networks: dict[int, Network] = field(default_factory=dict)


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan[Params, None]:
    """One unprotected release per client and round; the budget is ignored, and the price says so: ε = ∞."""
    protection = Protection(
        Relation.NODE_ZERO_OUT,
        facts.viewer,
        (Assumption.COUNTS_PUBLIC, *public_assumptions(facts), *setting_assumptions(facts)),
    )
    count = len(params.candidates) + (1 if params.refit and params.validation else 0)
    rounds = count * params.rounds
    event = Unprotected("parameters are sent without noise")
    note = f"Chosen on validation nodes from {len(params.candidates)} candidates; test labels are read once, at the end."
    return Plan(
        method="nonprivate",
        params=params,
        rounds=rounds,
        releases=(PlannedRelease("model", Unbounded(), IN_CLEAR, event, range(rounds)),),
        protection=protection,
        delta=budget.delta,
        facts=facts,
        made=None,
        notes=(note,) if params.model == CEILING else (),
        sums_suffice=True,
    )


def start(plan: Plan[Params, None], rng: np.random.Generator) -> State[phases.Training]:
    return phases.begin(plan, int(rng.integers(2**31)))


def prepare(plan: Plan[Params, None], subgraph: Subgraph) -> Work:
    return Work(subgraph.graph, fitting.inputs(subgraph.graph))


def client(
    plan: Plan[Params, None], work: Work, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """Locally trained parameters and moments times the labelled nodes, and how the broadcast model does on validation nodes."""
    going = phases.Place.of(model).going
    return {"update": desk.release("model", _trained(plan, work, model, desk.client) if going else np.zeros(1))}


def _trained(plan: Plan[Params, None], work: Work, model: Mapping[str, np.ndarray], number: int) -> np.ndarray:
    params, place = plan.params, phases.Place.of(model)
    candidate: Candidate = params.candidates[place.candidate]
    network = _network(plan, work, place.candidate)
    training, validation = work.graph.labels, np.full_like(work.graph.labels, -1)
    if not place.refits:
        training, validation = phases.divided(work.graph, params.validation, np.random.default_rng([place.seed, number]))
    judged = np.zeros(3)
    if (validation >= 0).any():
        judged = phases.judged(_scores(plan, candidate, network, model["parameters"], work.graph, work.inputs), validation)
    adam = params.client_optimiser == "adam"
    how = fitting.Steps(params.local_epochs, place.steps, candidate.rate, candidate.decay, params.proximal, adam)
    before = fitting.Progress(model["parameters"], model["moments"])

    def seed_of(step: int) -> int:
        return phases.step_seed(place.seed, number, place.candidate, step)

    after = fitting.trained(network, work.inputs, training, before, how, seed_of)
    weight = float((training >= 0).sum())
    sums = (after.vector.astype(np.float64) * weight, after.moments.astype(np.float64).ravel() * weight)
    return np.concatenate((*sums, [weight], judged, [float(work.graph.validation is not None)]))


def server(plan: Plan[Params, None], state: State[phases.Training], inbox: Inbox) -> State[phases.Training]:
    """The weighted average, then the server's own step; the next candidate when one is done."""
    return phases.merged(plan, state, inbox)


def predict(plan: Plan[Params, None], state: State[phases.Training], graph: Graph) -> np.ndarray:
    """[n, c] scores on the asked graph."""
    index, parameters = phases.chosen(state)
    candidate = plan.params.candidates[index]
    network = fitting.made(phases.shape_of(plan, index), 0)
    return _scores(plan, candidate, network, parameters, graph, fitting.inputs(graph))


def _network(plan: Plan[Params, None], work: Work, index: int) -> Network:
    if index not in work.networks:
        work.networks[index] = fitting.made(phases.shape_of(plan, index), 0)
    return work.networks[index]


def _scores(
    plan: Plan[Params, None],
    candidate: Candidate,
    network: Network,
    parameters: np.ndarray,
    graph: Graph,
    given: fitting.Inputs,
) -> np.ndarray:
    found = fitting.scores(network, parameters, given)
    if candidate.alpha < 1:
        return personalised_pagerank(graph.adjacency, found, candidate.alpha, plan.params.propagation_steps)
    return found


def says(plan: Plan[Params, None], state: State[phases.Training]) -> tuple[str, ...]:
    """Which candidate answers, and how it did on the validation nodes."""
    best = state.memory.best
    if plan.params.model != CEILING or best is None:
        return ()
    found = plan.params.candidates[best.candidate]
    return (f"Chosen: {found}; {best.accuracy:.3f} on validation nodes after {best.updates * plan.params.local_epochs} steps.",)
