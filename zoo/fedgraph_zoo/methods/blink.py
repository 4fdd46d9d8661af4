"""Blink: every node randomises its own list of neighbours, and the server guesses the graph before it learns from it.

    list     node i says of every other node whether it is a neighbour, each answer flipped with probability 1/(e^{ε_a} + 1)
    degree   deg(i) + Laplace(1/ε_d)
    graph    a prior from the degrees, a posterior from both answers about a pair (``fedgraph_zoo.degree_prior``)

``links: hard`` keeps pairs that are more likely linked than not, ``hybrid`` so many of the likeliest as are expected, weighted,
``soft`` all pairs, weighted (Zhu, Tan & Xiao 2023, §4.3: its three variants).
A graph convolutional network is trained on that. Below ε of about 3 the hard guess has hardly an edge: the network is then one
on features alone, and ``links: none`` (no node says anything, ε = 0) must stand beside it.

**Guarantee.** Link-local: nobody is trusted (viewer: world), and features and labels are public. An undirected edge is in the
lists and the degrees of *both* its ends, and everybody sees both: 2(ε_a + ε_d). The paper protects one list, ε_a + ε_d, so
``published`` noise costs an edge twice the printed ε. With ``reports: one`` only the node of smaller number answers for a
pair: ε_a + 2ε_d. Everything after the releases is post-processing.

Edges between clients, where the graph is dealt to several, are dropped: nobody reports them.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.learning import PublicTrainingSteps, aggregation, whole_graph
from fedgraph.methods import base
from fedgraph.privacy import (
    Desk,
    EdgeRand,
    EdgeTriangle,
    Guarantee,
    Laplace,
    LaplaceNoise,
    NeighbourCounts,
    PlannedRelease,
    Protection,
    RandomizedResponse,
    Relation,
    Trust,
    Unit,
    Viewer,
    edge_mechanisms,
)
from fedgraph.types import Graph, Subgraph
from fedgraph_zoo import degree_prior

REFERENCE = """\
@inproceedings{zhu2023blink,
  title = {Blink: Link Local Differential Privacy in Graph Neural Networks via Bayesian Estimation},
  author = {Zhu, Xiaochen and Tan, Vincent Y. F. and Xiao, Xiaokui},
  booktitle = {ACM SIGSAC Conference on Computer and Communications Security}, year = {2023},
  doi = {10.48550/arXiv.2309.03190}}
@article{chatterjee2011random,
  title = {Random Graphs with a Given Degree Sequence},
  author = {Chatterjee, Sourav and Diaconis, Persi and Sly, Allan},
  journal = {The Annals of Applied Probability}, year = {2011},
  doi = {10.1214/10-AAP728}}
"""

# ε of one list from which answers say more than degrees; 0.9 for degrees below it and 0.1 from it on are what the released code
# found best for a GCN on Cora (scripts/output/best_hp.json)
_LITTLE, _DEGREES_BELOW, _DEGREES_ABOVE = 4.0, 0.9, 0.1
_ENDS = 2  # lists and degrees that hold an undirected edge


class Params(Settings):
    links: Literal["hard", "hybrid", "soft", "none"] = Field(
        "hard", description="pairs above ½; the likeliest, or all, with their probabilities as weights; or no edge (ε = 0)"
    )
    reports: Literal["both", "one"] = Field(
        "both", description="who answers for a pair: both its nodes, as published, or the one of smaller number"
    )
    degree_share: ClassVar[str] = "auto"  # share of a list's ε for its degree: 0.9 below ε = 4 of a list, else 0.1
    hidden: int = Field(16, ge=1, description="hidden units of the two-layer GCN")
    epochs: int = Field(100, ge=1, description="Adam steps")
    training_rate: ClassVar[float] = 0.01  # Adam step size
    weight_decay: float = Field(5e-4, ge=0, description="L2 weight")
    memory_gb: float = Field(2.0, gt=0, description="memory that all pairs of nodes may take, in GB")


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts, and how the budget is divided."""

    attributes: Graph  # every node's public features and labels
    answers: int  # r, how many answers are given about each pair: 1 or 2
    answer: float  # ε of one answer; ∞: in clear
    degree: float  # ε of one degree; ∞: none is sent
    of_list: float  # ε of one node's whole list, its degree included


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers. All but the seed are None until they are there."""

    seed: int  # of the training
    scores: np.ndarray | None = None  # float [n, c]
    yeses: sp.csr_array | None = None  # CSR [n, n], how often a pair was answered with yes
    degrees: np.ndarray | None = None  # float64 [n], as received; zeros where none were sent


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Answers and degrees of every client; refuses what does not fit into memory, from public numbers alone."""
    attributes = base.require_public_attributes("blink", facts)
    if facts.cut_edges_shared:
        raise ScenarioError("blink asks about pairs within a client: write cut_edges: dropped")
    whole_graphs = 3 if params.links == "soft" else 1  # the guessed graph is then as large as all pairs are
    needed = whole_graphs * degree_prior.DEGREE_PRIOR_BYTES * max(facts.clients) ** 2 / 1e9
    if params.links != "none" and needed > params.memory_gb:
        raise ScenarioError(
            f"blink looks at all pairs of {max(facts.clients)} nodes and needs about {needed:.3g} GB (memory_gb: "
            f"{params.memory_gb:g}); use method: gap_edge, which does not, or raise memory_gb"
        )
    split = _split(params, budget, attributes)
    relation, several = Relation.EDGE_UNDIRECTED, facts.num_clients > 1
    seen_by = replace(facts, viewer=Viewer.WORLD if several else Viewer.CURATOR_TRUSTED)
    assumed = (*base.FACTS_ATTRIBUTES_PUBLIC, *base.assume_public_setting(seen_by, relation))
    published = (split.of_list if params.links != "none" else 0.0) if budget.private else None
    guarantee = Guarantee(Protection(relation, Viewer.WORLD, assumed), budget.delta, facts.holdings, per_end=False)
    releases = tuple(r for client in range(facts.num_clients) for r in _releases(params, facts, split, client))
    schedule = base.PlanSchedule(1, releases, 1)
    return base.Plan("blink", params, facts, guarantee, schedule, split, published)


def _split(params: Params, budget: base.Budget, attributes: Graph) -> Made:
    """An edge costs r·ε_a + 2ε_d, provably; published: one list, ε_a + ε_d."""
    answers = _ENDS if params.reports == "both" else 1
    if not budget.private:
        return Made(attributes, answers, np.inf, np.inf, np.inf)
    published = budget.calibrated_by == "published"
    of_list = budget.epsilon if published else budget.epsilon / _ENDS
    degree = of_list * (_DEGREES_BELOW if of_list < _LITTLE else _DEGREES_ABOVE)
    return Made(
        attributes, answers, of_list - degree if published else (budget.epsilon - _ENDS * degree) / answers, degree, of_list
    )


def _releases(params: Params, facts: base.PublicFacts, split: Made, client: int) -> tuple[PlannedRelease, ...]:
    if params.links == "none":
        return ()
    n, now = facts.clients[client], range(1)
    cells, degrees = EdgeTriangle(n), NeighbourCounts(n)
    if np.isinf(split.answer):
        return (PlannedRelease("answers", cells, *base.PLAN_WITHOUT_NOISE, now, per_round=split.answers, client=client),)
    flips = EdgeRand(split.answer, n, int(params.memory_gb * 1e9 / edge_mechanisms.BYTES_PER_EDGE_CELL))
    said = RandomizedResponse(split.answer, 2)
    noise, price = LaplaceNoise(1 / split.degree), Laplace(1 / (_ENDS * split.degree))
    return (
        PlannedRelease("answers", cells, flips, said, now, per_round=split.answers, client=client),
        PlannedRelease("degrees", degrees, noise, price, now, client=client),
    )


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    memory = Memory(int(rng.integers(2**63)))
    if plan.params.links != "none":
        return base.State({}, memory)
    n = plan.facts.num_nodes
    return base.State({}, Memory(memory.seed, _learnt(plan, sp.csr_array((n, n), dtype=np.int8), memory.seed)))


def prepare(plan: Planned, subgraph: Subgraph) -> sp.csr_array:
    aggregation.require_simple(subgraph.graph.adjacency)
    return subgraph.graph.adjacency


def client(
    plan: Planned, work: sp.csr_array, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk
) -> base.PlanSent:
    """What the client's nodes answer, once or twice for each pair, and their degrees."""
    if plan.params.links == "none":
        return {}
    edges = np.column_stack(sp.triu(work, k=1, format="coo").coords).astype(np.int32)
    sent = {f"answers {number}": desk.release("answers", edges) for number in range(plan.made.answers)}
    if np.isfinite(plan.made.degree):
        sent["degrees"] = desk.release("degrees", np.diff(work.indptr).astype(np.float64))
    return sent


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """Guess the graph of every client, put them together, and train on them."""
    split, links = plan.made, plan.params.links
    if links == "none":
        return state
    members, n = plan.facts.members, plan.facts.num_nodes
    parts, guessed, degrees = [], [], np.zeros(n)
    for place, nodes in enumerate(members):
        said = np.concatenate([inbox.each[f"answers {number}"][place] for number in range(split.answers)])
        ends = np.concatenate([said, said[:, ::-1]])
        yeses = sp.csr_array((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(nodes.size,) * 2)
        parts.append(yeses)
        if np.isinf(split.answer):
            guessed.append(sp.csr_array((yeses > 0).astype(np.int8)))
            continue
        degrees[nodes] = inbox.each["degrees"][place]
        guessed.append(degree_prior.links_by_degree_prior(degrees[nodes], yeses, split.answers, split.answer, links))
    adjacency = _placed(guessed, members, n)
    scores = _learnt(plan, adjacency, state.memory.seed)
    return base.State({}, Memory(state.memory.seed, scores, _placed(parts, members, n), degrees))


def _placed(parts: list[sp.csr_array], members: tuple[np.ndarray, ...], num_nodes: int) -> sp.csr_array:
    joint = sp.csr_array(sp.block_diag(parts, format="csr"))
    order = np.empty(num_nodes, dtype=np.int64)
    order[np.concatenate(members)] = np.arange(num_nodes)
    return sp.csr_array(joint[order][:, order])


def _learnt(plan: Planned, adjacency: sp.csr_array, seed: int) -> np.ndarray:
    how = PublicTrainingSteps(plan.params.epochs, plan.params.training_rate, plan.params.weight_decay)
    return whole_graph.train_gcn(plan.made.attributes, adjacency, plan.params.hidden, how, np.random.default_rng(seed))


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores on the guessed graph; ``graph`` is not read."""
    return base.require_received(plan, state.memory.scores)


def evidence(plan: Planned, state: base.State[Memory], graph: Graph, pairs: np.ndarray) -> np.ndarray | None:
    """For each pair [m, 2] the log-likelihood ratio of all answers and of both degrees, the edge there against not.

    graph: what is known, without the pairs. Other pairs of a node are as likely there as not, so a degree is held against the
    known one and half of its other pairs. Without noise only the sign means something. None where nothing was released.
    """
    memory, split = state.memory, plan.made
    if memory.yeses is None or memory.degrees is None:
        return None
    yes = np.asarray(memory.yeses[pairs[:, 0], pairs[:, 1]]).ravel().astype(np.float64)
    found = (2 * yes - split.answers) * (split.answer if np.isfinite(split.answer) else 1.0)
    if np.isfinite(split.degree):
        in_question = np.bincount(pairs.ravel(), minlength=graph.num_nodes)
        middle = graph.degrees + (in_question - 1) / 2
        for end in pairs.T:
            beyond = memory.degrees[end] - middle[end]
            found += split.degree * (np.abs(beyond) - np.abs(beyond - 1))
    return found


OFFERS: base.Offers[Params, Made, sp.csr_array, Memory] = base.Offers(
    units=(Unit.EDGE,),
    reads=lambda plan: base.MethodReads.NOTHING,
    situations=(
        base.MethodSituation("transductive", (Trust.CURATOR, Trust.OWN_CLIENT), {"epochs": 40}),
        base.MethodSituation("transductive", (Trust.CURATOR,), {"epochs": 40, "links": "hybrid", "reports": "one"}),
    ),
    trusts_nobody=True,
    evidence=evidence,
)
