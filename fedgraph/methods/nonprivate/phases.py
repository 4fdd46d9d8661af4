"""The server's side: averages, server optimisers, early stopping, one candidate after another, and the refit.

A phase is the training of one candidate, at most ``rounds`` rounds; the last one, where there is a refit, trains the chosen
candidate on all training nodes. Phases that end early leave rounds over; they pass with empty messages at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedgraph.learning.baselines import fitting
from fedgraph.learning.baselines.networks import Shape
from fedgraph.methods.base import Inbox, Plan, State
from fedgraph.types import Graph

EPSILON = 1e-3  # τ of FedAdam and FedYogi


@dataclass(frozen=True, eq=False)
class Best:
    """The best round of a candidate so far. accuracy, loss: on validation nodes; updates: rounds trained before it."""

    candidate: int
    accuracy: float
    loss: float
    updates: int
    parameters: np.ndarray

    def beats(self, other: Best | None) -> bool:
        return other is None or (self.accuracy, -self.loss) > (other.accuracy, -other.loss)


def shape_of(plan: Plan, index: int) -> Shape:
    facts = plan.facts
    shape: Shape = plan.made["candidates"][index].shape(facts.num_features, facts.num_classes, plan.params.arguments)
    return shape


def step_seed(*path: int) -> int:
    """Of the dropout of one step: (run, client, candidate, step)."""
    return int(np.random.SeedSequence(path).generate_state(1)[0])


def divided(graph: Graph, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(labels that train, labels that validate), int64 [n], −1 elsewhere: the graph's own mask, or a share of its labels."""
    if graph.validation is not None:
        return graph.labels, graph.validation
    held_out = (rng.random(graph.num_nodes) < share) & (graph.labels >= 0)
    return np.where(held_out, -1, graph.labels), np.where(held_out, graph.labels, -1)


def judged(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """[right, summed loss, labelled] on the nodes with a label ≥ 0."""
    known = labels >= 0
    scores, labels = scores[known].astype(np.float64), labels[known]
    shifted = scores - scores.max(axis=1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(labels.size), labels]
    return np.array([(scores.argmax(axis=1) == labels).sum(), losses.sum(), labels.size], dtype=np.float64)


def begin(plan: Plan, seed: int) -> State:
    return _phase(plan, {"seed": seed, "best": None}, 0, refits=False)


def _phase(plan: Plan, memory: dict[str, object], candidate: int, refits: bool) -> State:
    """A candidate from its initial parameters."""
    seed = int(memory["seed"])  # type: ignore[call-overload]
    fresh = fitting.start(shape_of(plan, candidate), step_seed(seed, candidate))
    nothing = np.zeros_like(fresh.vector)
    kept = {"in_phase": None, "waited": 0, "lowest": np.inf, "first": nothing, "second": nothing}
    model = _broadcast(fresh.vector, fresh.moments, candidate, 0, seed, refits)
    return State(model, {**memory, **kept, "last": fresh.vector})


def _broadcast(
    parameters: np.ndarray, moments: np.ndarray, candidate: int, steps: int, seed: int, refits: bool, going: bool = True
) -> dict[str, np.ndarray]:
    numbers = {"candidate": candidate, "steps": steps, "seed": seed, "refits": int(refits), "going": int(going)}
    return {"parameters": parameters, "moments": moments} | {k: np.array(v, dtype=np.int64) for k, v in numbers.items()}


def merged(plan: Plan, state: State, inbox: Inbox) -> State:
    """One round at the server."""
    model, memory = state.model, state.memory
    if not model["going"]:
        return state
    old, p = model["parameters"], model["parameters"].size
    total = inbox.sums["update"]
    weight, (right, loss, count) = total[3 * p], total[3 * p + 1 :]
    mean = (total[:p] / weight).astype(np.float32) if weight else old
    moments = (total[p : 3 * p] / weight).astype(np.float32).reshape(2, p) if weight else model["moments"]
    parameters, memory = _stepped(plan, old, mean, memory)
    candidate, steps, refits = int(model["candidate"]), int(model["steps"]), bool(model["refits"])
    done = steps // plan.params.local_epochs  # rounds that led to the model which was just judged
    if count:
        memory = _noted(memory, Best(candidate, right / count, loss / count, done, old))
    memory = {**memory, "last": parameters}
    limit = memory["best"].updates if refits else plan.params.rounds
    if done + 1 < limit and memory["waited"] < plan.params.patience:
        after = _broadcast(parameters, moments, candidate, steps + plan.params.local_epochs, int(model["seed"]), refits)
        return State(after, memory)
    return _next(plan, memory, candidate, refits, given=plan.made.get("mask", False))


def _noted(memory: dict[str, object], found: Best) -> dict[str, object]:
    """Better accuracy makes a new best of the phase; better accuracy or a lower loss makes it wait again."""
    before, lowest = memory["in_phase"], float(memory["lowest"])  # type: ignore[arg-type]
    better = found.beats(before)  # type: ignore[arg-type]
    hopeful = better or found.loss < lowest
    waited = 0 if hopeful else int(memory["waited"]) + 1  # type: ignore[call-overload]
    return {**memory, "in_phase": found if better else before, "waited": waited, "lowest": min(lowest, found.loss)}


def _next(plan: Plan, memory: dict[str, object], candidate: int, refits: bool, given: bool) -> State:
    """The next candidate, the refit of the best, or the end."""
    ended, best = memory["in_phase"], memory["best"]
    if isinstance(ended, Best) and ended.beats(best):  # type: ignore[arg-type]
        best = ended
    memory = {**memory, "best": best, "in_phase": None}
    if refits or best is None:
        return _over(memory, candidate if best is None else best.candidate, memory["last"])  # type: ignore[attr-defined]
    if candidate + 1 < len(plan.made["candidates"]):
        return _phase(plan, memory, candidate + 1, refits=False)
    assert isinstance(best, Best)
    if plan.params.refit and not given and best.updates:
        return _phase(plan, memory, best.candidate, refits=True)
    return _over(memory, best.candidate, best.parameters)


def _over(memory: dict[str, object], candidate: int, parameters: object) -> State:
    assert isinstance(parameters, np.ndarray)
    seed = int(memory["seed"])  # type: ignore[call-overload]
    model = _broadcast(parameters, np.zeros((2, 0), np.float32), candidate, 0, seed, refits=False, going=False)
    return State(model, {**memory, "last": parameters})
