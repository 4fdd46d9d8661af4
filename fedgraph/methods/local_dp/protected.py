"""Private training of the shared model: how its updates are clipped, noised, seen by the server, and priced.

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
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedgraph.errors import PrivacyError
from fedgraph.methods.base import Budget, PublicFacts
from fedgraph.methods.local_dp.attendance import Attendance
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Event, Gaussian, Unprotected
from fedgraph.privacy.mechanisms.noise import Disclose, GaussianNoise, Mechanism
from fedgraph.privacy.sensitivity import Bound, ClippedSum, L2Ball

Training = Literal["fedavg", "dp_fedavg", "dp_sgd", "public", "none"]
Seen = Literal["sum", "each"]
Unit = Literal["node", "graph"]

CLIPPED_ONLY = Disclose("clipped, but no noise was asked for")
NO_NOISE = Unprotected("updates are sent without noise")

KERNEL = "fedgraph.methods.local_dp.training.clipped_gradients"  # clips each graph's gradient (it imports this file's settings)


@dataclass(frozen=True)
class Shares:
    """How the budget is divided. training, embedding: ε of the two paths, δ being the model's alone; where both are Gaussian
    (``squares``) they are parts of μ², and ``training_mu`` and ``embedding_mu`` are what the two paths may spend.
    """

    training: float
    embedding: float
    training_mu: float = 0.0
    embedding_mu: float = 0.0
    squares: bool = False


def shares(training: Training, share: float, budget: Budget, gaussian_embedding: bool) -> Shares:
    """The model's part and the rest; all of it for the embedding where no update leaves a client, or all go in clear."""
    part = share if training in ("dp_fedavg", "dp_sgd") else 0.0
    if not budget.private:
        return Shares(math.inf, math.inf, math.inf, math.inf)
    mu = 1.0 / calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
    squares = (math.sqrt(part) * mu, math.sqrt(1.0 - part) * mu)
    return Shares(part * budget.epsilon, (1.0 - part) * budget.epsilon, *squares, squares=gaussian_embedding)


def most_entered(counts: np.ndarray, facts: PublicFacts, unit: Unit) -> int:
    """M: the largest number of releases that one unit enters, ``counts`` int64 [clients] being each client's."""
    if unit == "graph" or facts.membership.holdings is None:
        return int(counts.max(initial=0))
    return int(np.asarray(facts.membership.holdings.T @ counts).max(initial=0))


def updates(
    training: Training, clip: float, seen: Seen, unit: Unit, facts: PublicFacts, table: Attendance, given: Shares, delta: float
) -> tuple[list[PlannedRelease], int]:
    """(what the model path of ``dp_fedavg`` or ``dp_sgd`` releases, how many clients every sum must hold; 0: no sum)."""
    counts = np.array([len(own) for own in table.trains], dtype=np.int64)
    entered = most_entered(counts, facts, unit)
    if not entered:
        return [], 0
    least = min(len(who) for who in table.training)
    if seen == "sum" and least < 2:
        raise PrivacyError(f"updates: sum hides a client among the others of a round; some round has {least} client(s)")
    mechanism: Mechanism = CLIPPED_ONLY
    event: Event = NO_NOISE
    if math.isfinite(given.training):
        multiplier = (
            math.sqrt(entered) / given.training_mu
            if given.squares
            else calibrate.gaussian_multiplier(entered, given.training, delta)
        )
        std = 2.0 * clip * multiplier
        if seen == "sum":
            together = most_entered((counts > 0).astype(np.int64), facts, unit)
            std *= math.sqrt(together / (least - 1))
        mechanism, event = GaussianNoise(std), Gaussian(multiplier)
    found = []
    for client, own in enumerate(table.trains):
        if own:
            graphs = len(facts.sizes.graphs[client]) if facts.sizes.graphs else 1
            bound: Bound = ClippedSum(clip, graphs, KERNEL) if training == "dp_sgd" else L2Ball(clip)
            found.append(PlannedRelease("model", bound, mechanism, event, own, client=client))
    return found, least if seen == "sum" else 0
