"""What the training of the shared model releases: who takes part in which round, and how updates are clipped, noised, seen by
the server, and priced.

Who takes part is drawn by public coins, fixed before the run, so that every release can be planned. A client leaves for good
before a round with the drop-out probability (never before round 0). Of those still there a share trains; all of them are asked
for embeddings in retrieval rounds. Who has left keeps, at the server, what it sent last.

    fedavg      the paper's own: updates in clear, ε = ∞
    dp_fedavg   client-level DP-FedAvg (McSherry, Ramage, Talwar & Zhang 2018): every client's whole update is clipped to norm C
    dp_sgd      one step a round: every graph's gradient is clipped to norm C, and a client sends the sum over its graphs
    public      no update leaves a client: the encoder is trained on public labelled nodes
    none        no update leaves a client: the encoder is its random start

**Unit.** ``graph``: all that a client holds where it holds one graph, else one of its graphs; one graph changes one client's
clipped value, by at most 2C (``graph-replace``). ``node``: a node that k clients hold changes all their values, each by at most
2C.

**Noise.** M is the largest number of values that a unit enters, over rounds and holders. Each is priced as one Gaussian
release of multiplier z, so a unit pays √M/z in μ, and z follows from the budget of the path.

    updates: each   the server sees every noisy value: std = 2C·z at each client; k values of a round compose, k·(1/z)²
    updates: sum    it sees one sum a round: there k changes add up *before* the noise, (k·2C)², which is the k·(1/z)² that is
                    charged where the whole sum has std 2C·z·√k; each of the n − 1 clients that are no colluder adds its share

**Edge cases.** ε = ∞: clipped, no noise. Fewer than two clients in a round behind sums → ``PrivacyError``. Nobody trains →
no release.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fedgraph import seeds
from fedgraph.errors import PrivacyError
from fedgraph.methods.base import Budget, PublicFacts
from fedgraph.privacy import (
    ClippedSum,
    Disclose,
    Event,
    Gaussian,
    GaussianNoise,
    L2Ball,
    NoiseMechanism,
    PlannedRelease,
    SensitivityBound,
    Unbounded,
    Unprotected,
    calibrate,
)

_UPDATE = Disclose("plain FedAvg: the change of the parameters")
_VOCABULARY = Disclose("plain FedAvg: which features the client's nodes have (the sparsity of its update)")


@dataclass(frozen=True)
class Attendance:
    """Who takes part in which round."""

    training: tuple[tuple[int, ...], ...]  # per update round, the clients (sorted) that send updates
    present: tuple[tuple[int, ...], ...]  # per round 0 … R, those still there
    retrievals: tuple[int, ...]  # rounds in which embeddings are sent
    trains: tuple[tuple[int, ...], ...]  # per client, the rounds of its updates
    sends: tuple[tuple[int, ...], ...]  # per client, the rounds of its embeddings
    everyone: bool  # nobody is ever missing


def draw_attendance(
    num_clients: int, rounds: int, period: int | None, fraction: float, dropout: float, seed: int
) -> Attendance:
    """R = ``rounds`` updates, then a last retrieval (round R); one every ``period`` rounds before that, too."""
    retrievals = (*(r for r in range(rounds) if period and (r + 1) % period == 0), rounds)
    if fraction == 1.0 and dropout == 0.0:
        every, updates = tuple(range(num_clients)), tuple(range(rounds))
        return Attendance(
            (every,) * rounds, (every,) * (rounds + 1), retrievals, (updates,) * num_clients, (retrievals,) * num_clients, True
        )
    rng = seeds.seeded_generator(seed, "attendance")
    here = np.arange(num_clients)
    training, present = [], []
    for round_ in range(rounds + 1):
        if round_:
            here = here[rng.random(here.size) >= dropout]
        present.append(tuple(int(c) for c in here))
        if round_ < rounds:
            count = min(here.size, max(1, round(fraction * here.size)))
            training.append(tuple(int(c) for c in np.sort(rng.choice(here, count, replace=False))) if count else ())
    trains = tuple(tuple(r for r, who in enumerate(training) if c in who) for c in range(num_clients))
    sends = tuple(tuple(r for r in retrievals if c in present[r]) for c in range(num_clients))
    return Attendance(tuple(training), tuple(present), retrievals, trains, sends, False)


def idle_attendance(num_clients: int, dropout: float, seed: int) -> Attendance:
    """Nobody trains: an idle round, in which the encoder becomes known to all, and one retrieval."""
    table = draw_attendance(num_clients, 1, None, 1.0, dropout, seed)
    return replace(table, training=((),), trains=((),) * num_clients)


def in_clear(table: Attendance) -> list[PlannedRelease]:
    """What the model path releases: nothing of it is protected."""
    event = Unprotected("FedAvg updates are sent in clear")
    whose: list[tuple[int | None, range | tuple[int, ...]]] = [(c, own) for c, own in enumerate(table.trains) if own]
    if table.everyone:
        whose = [(None, range(len(table.training)))]
    found = []
    for client, own in whose:
        found.append(PlannedRelease("vocabulary", Unbounded(), _VOCABULARY, event, own[:1], client=client))
        found.append(PlannedRelease("model", Unbounded(), _UPDATE, event, own, client=client))
    return found


UpdateTraining = Literal["fedavg", "dp_fedavg", "dp_sgd", "public", "none"]
UpdatesSeen = Literal["sum", "each"]
UpdateUnit = Literal["node", "graph"]

_CLIPPED_ONLY = Disclose("clipped, but no noise was asked for")
_NO_NOISE = Unprotected("updates are sent without noise")

# It clips each graph's gradient. It is named by text, since its file imports this file's settings.
_KERNEL = "fedgraph.methods.local_dp.local_training.clip_gradients"


@dataclass(frozen=True)
class Shares:
    """ε and μ of the updates and of the embeddings. squares: both paths are Gaussian, and parts of μ²; else they are parts of
    ε, δ being the model's alone.
    """

    training: float
    embedding: float
    training_mu: float = 0.0
    embedding_mu: float = 0.0
    squares: bool = False


def split_budget(training: UpdateTraining, share: float, budget: Budget, gaussian_embedding: bool) -> Shares:
    """The model's part and the rest; all of it for the embedding where no update leaves a client, or all go in clear."""
    part = share if training in ("dp_fedavg", "dp_sgd") else 0.0
    if not budget.private:
        return Shares(math.inf, math.inf, math.inf, math.inf)
    mu = 1.0 / calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
    squares = (math.sqrt(part) * mu, math.sqrt(1.0 - part) * mu)
    return Shares(part * budget.epsilon, (1.0 - part) * budget.epsilon, *squares, squares=gaussian_embedding)


def most_entered(counts: np.ndarray, facts: PublicFacts, unit: UpdateUnit) -> int:
    """M: the largest number of releases that one unit enters, ``counts`` int64 [clients] being each client's."""
    if unit == "graph" or facts.holdings is None:
        return int(counts.max(initial=0))
    return int(np.asarray(facts.holdings.T @ counts).max(initial=0))


def plan_protected(
    training: UpdateTraining,
    clip: float,
    seen: UpdatesSeen,
    unit: UpdateUnit,
    facts: PublicFacts,
    table: Attendance,
    given: Shares,
    delta: float,
) -> tuple[list[PlannedRelease], int]:
    """(what the model path of ``dp_fedavg`` or ``dp_sgd`` releases, how many clients every sum must hold; 0: no sum)."""
    counts = np.array([len(own) for own in table.trains], dtype=np.int64)
    entered = most_entered(counts, facts, unit)
    if not entered:
        return [], 0
    least = min(len(who) for who in table.training)
    if seen == "sum" and least < 2:
        raise PrivacyError(f"updates: sum hides a client among the others of a round; some round has {least} client(s)")
    noised: tuple[NoiseMechanism, Event] = _CLIPPED_ONLY, _NO_NOISE
    if math.isfinite(given.training):
        if given.squares:
            multiplier = math.sqrt(entered) / given.training_mu
        else:
            multiplier = calibrate.gaussian_multiplier(entered, given.training, delta)
        std = 2.0 * clip * multiplier
        if seen == "sum":
            together = most_entered((counts > 0).astype(np.int64), facts, unit)
            std *= math.sqrt(together / (least - 1))
        noised = GaussianNoise(std), Gaussian(multiplier)
    found = []
    for client, own in enumerate(table.trains):
        if own:
            graphs = len(facts.graphs[client]) if facts.graphs else 1
            bound: SensitivityBound = ClippedSum(clip, graphs, _KERNEL) if training == "dp_sgd" else L2Ball(clip)
            found.append(PlannedRelease("model", bound, *noised, own, client=client))
    return found, least if seen == "sum" else 0
