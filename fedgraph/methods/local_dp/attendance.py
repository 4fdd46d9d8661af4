"""Who takes part in which round: public coins, fixed before the run, so that every release can be planned.

A client leaves for good before a round with the drop-out probability (never before round 0). Of those still there a share
trains; all of them are asked for embeddings in retrieval rounds. Who has left keeps, at the server, what it sent last.
"""

from dataclasses import dataclass, replace

import numpy as np

from fedgraph import seeds
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Unprotected
from fedgraph.privacy.mechanisms.noise import Disclose
from fedgraph.privacy.sensitivity import Unbounded

UPDATE = Disclose("plain FedAvg: the change of the parameters")
VOCABULARY = Disclose("plain FedAvg: which features the client's nodes have (the sparsity of its update)")


@dataclass(frozen=True)
class Attendance:
    """training: per update round, the clients (sorted) that send updates. present: per round 0 … R, those still there.

    retrievals: rounds in which embeddings are sent. trains, sends: per client, the rounds of its updates and of its
    embeddings. everyone: nobody is ever missing.
    """

    training: tuple[tuple[int, ...], ...]
    present: tuple[tuple[int, ...], ...]
    retrievals: tuple[int, ...]
    trains: tuple[tuple[int, ...], ...]
    sends: tuple[tuple[int, ...], ...]
    everyone: bool


def draw(num_clients: int, rounds: int, period: int | None, fraction: float, dropout: float, seed: int) -> Attendance:
    """R = ``rounds`` updates, then a last retrieval (round R); one every ``period`` rounds before that, too."""
    retrievals = (*(r for r in range(rounds) if period and (r + 1) % period == 0), rounds)
    if fraction == 1.0 and dropout == 0.0:
        every, updates = tuple(range(num_clients)), tuple(range(rounds))
        return Attendance(
            (every,) * rounds, (every,) * (rounds + 1), retrievals, (updates,) * num_clients, (retrievals,) * num_clients, True
        )
    rng = seeds.generator(seed, "attendance")
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


def untrained(num_clients: int, dropout: float, seed: int) -> Attendance:
    """Nobody trains: an idle round, in which the encoder becomes known to all, and one retrieval."""
    table = draw(num_clients, 1, None, 1.0, dropout, seed)
    return replace(table, training=((),), trains=((),) * num_clients)


def updates(table: Attendance) -> list[PlannedRelease]:
    """What the model path releases: nothing of it is protected."""
    event = Unprotected("FedAvg updates are sent in clear")
    if table.everyone:
        return [
            PlannedRelease("vocabulary", Unbounded(), VOCABULARY, event, range(1)),
            PlannedRelease("model", Unbounded(), UPDATE, event, range(len(table.training))),
        ]
    found = []
    for client, own in enumerate(table.trains):
        if own:
            found.append(PlannedRelease("vocabulary", Unbounded(), VOCABULARY, event, own[:1], client=client))
            found.append(PlannedRelease("model", Unbounded(), UPDATE, event, own, client=client))
    return found
