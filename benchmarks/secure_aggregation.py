"""Secure aggregation carried out with masks, beside the same round with plain sums: processor seconds and bytes.

    python -m benchmarks.secure_aggregation [--clients 1000] [--rounds 3] [--drop-out 0.05] [--colluders 1] [--json]

``features`` with one hidden layer of 16 on CiteSeer or a random graph of its shape: 59,366 numbers per message, as W1. One
process, one client after another. *plain*: each client clips its gradients, adds Gaussian noise and sends floating-point
numbers, which are added up; *fused*: the same for all clients of a block at once, as the simulator does where it may. *masks*:
rounding, discrete Gaussian noise, keys, shares, masks and what the server does to take them away. CPU seconds per round, the
median after a first one, in which letter keys are agreed; the three take turns, round by round. The last line is JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.federation_work import graph_of
from fedgraph import seeds
from fedgraph.federation import client, messages, server
from fedgraph.federation.messages import ClientJob, SecureMasks
from fedgraph.federation.round_attendance import Attendance, Participation, draw_round_attendance
from fedgraph.federation.secure import masked_plan as secure_plan
from fedgraph.federation.secure import masked_round
from fedgraph.federation.secure import masking as masks_at_client
from fedgraph.federation.secure import unmasking as masks_at_server
from fedgraph.methods import features
from fedgraph.methods.base import (
    NO_PUBLIC_DERIVED_FACTS,
    Budget,
    Plan,
    PublicAttendanceFacts,
    PublicFacts,
    PublicFactsPart,
    PublicMembershipFacts,
    PublicSizeFacts,
)
from fedgraph.partition import uniform
from fedgraph.privacy.units import Viewer
from fedgraph.types import Partition


def world(num_clients: int, least: int | None, colluders: int) -> tuple[Partition, PublicFacts]:
    graph = graph_of("w1", num_clients)
    partition = uniform.split(graph, uniform.Params(clients=num_clients), seeds.seeded_generator(0, "deal"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = PublicFacts(
        PublicSizeFacts(graph.num_nodes, graph.num_features, graph.num_classes, sizes), Viewer.SERVER_SECURE_AGGREGATION,
        PublicMembershipFacts(from_edges=False, from_labels=False, holdings=None, cut_edges="dropped"),
        PublicFactsPart("nothing"),
        NO_PUBLIC_DERIVED_FACTS, colluders=colluders,
    )  # fmt: skip
    return partition, facts if least is None else dataclasses.replace(facts, attendance=PublicAttendanceFacts("some", least))


class Clock:
    """CPU seconds by what they were spent on."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def of(self, name: str, call: Callable[[], Any]) -> Any:
        before = time.process_time()
        found = call()
        self.spent[name] = self.spent.get(name, 0.0) + time.process_time() - before
        return found


def one_round(job: ClientJob, partition: Partition, state: Any, round_: int, clock: Clock) -> Any:
    every = range(len(messages.cut_message_blocks(job.plan.facts.sizes.num_clients)))
    if job.masks is None:
        sent = clock.of("clients", lambda: client.run_client_blocks(every, partition.subgraphs, job, state.model, round_))
        return clock.of("server", lambda: server.merge_at_server(job, state, round_, [sent]))
    board = clock.of("keys", lambda: masks_at_client.advertise_masking_keys(every, job, round_))
    letters = clock.of("shares", lambda: masks_at_client.share_masking_secrets(every, job, round_, board))
    sent = clock.of("clients", lambda: client.run_client_blocks(every, partition.subgraphs, job, state.model, round_, board))
    answers = clock.of("answers", lambda: masks_at_client.answer_masking_shares(every, job, round_, 1, board, letters))
    return clock.of("server", lambda: masks_at_server.merge_unmasking(job, state, round_, [sent], [board], [answers]))


class Way:
    """One way to do a round: its job, its server's state, and the clock of each steady round. together: fused clients."""

    def __init__(self, job: ClientJob, together: bool) -> None:
        self.job, self.together, self.clocks = job, together, list[Clock]()
        self.state = server.begin_at_server(job)
        self.receipt: Any = None

    def round(self, partition: Partition, round_: int) -> None:
        able, clock = client.clients_compute_together, Clock()
        if not self.together:
            client.clients_compute_together = lambda plan: False
        try:
            self.state, _, self.receipt = one_round(self.job, partition, self.state, round_, clock)
        finally:
            client.clients_compute_together = able
        if round_:
            self.clocks.append(clock)

    @property
    def cost(self) -> float:
        """CPU seconds of a round, the median."""
        return statistics.median(sum(clock.spent.values()) for clock in self.clocks)

    @property
    def parts(self) -> dict[str, float]:
        names = self.clocks[0].spent
        return {name: round(statistics.median(clock.spent[name] for clock in self.clocks), 3) for name in names}


def compare(args: argparse.Namespace) -> dict[str, Any]:
    settings = Participation(drop_out=args.drop_out, secure_aggregation="masks")
    least = None if settings.everybody else settings.answers_needed(args.clients)
    partition, facts = world(args.clients, least, args.colluders)
    params, budget = features.Params(model="mlp", hidden=16, steps=1 + args.rounds), Budget(8.0, 1e-4)
    plan: Plan[Any, Any] = features.plan(params, facts, budget)
    hidden = secure_plan.make_masked_plan(plan, budget, features.num_sent(plan))
    who: Attendance | None = None
    if least is not None:
        who = draw_round_attendance(settings, args.clients, plan.schedule.rounds, least, 0, ("benchmark",))
    masks = SecureMasks(args.colluders, facts.cohort, args.drop_out)
    client._KEEP = 3  # prepared clients of each way
    ways = {
        "fused": Way(ClientJob("fused", 0, ("fused",), plan, "f"), together=True),
        "plain": Way(ClientJob("plain", 0, ("plain",), plan, "p", who), together=False),
        "masks": Way(ClientJob("masks", 0, ("masks",), hidden, "m", who, masks), together=False),
    }
    for round_ in range(1 + args.rounds):  # the three in turn, so that other work on the cores meets each of them
        for way in ways.values():
            way.round(partition, round_)
    now, receipt = masked_round.find_masked_round(ways["masks"].job, 1), ways["masks"].receipt
    cost = {name: way.cost for name, way in ways.items()}
    ratios = [
        sum(one.spent.values()) / sum(other.spent.values())
        for one, other in zip(ways["masks"].clocks, ways["plain"].clocks, strict=True)
    ]
    return {
        "clients": args.clients,
        "numbers": features.num_sent(plan),
        "neighbours": len(next(iter(now.near.values()))) if now else 0,
        "threshold": now.threshold if now else 0,
        "asked": len(now.asked) if now else 0,
        "answered": len(now.sent) if now else 0,
        "bits": hidden.schedule.releases[0].mechanism.bits,  # type: ignore[attr-defined]
        "cpu_s_per_round": {name: round(value, 3) for name, value in cost.items()},
        "masks_by_part": ways["masks"].parts,
        "plain_by_part": ways["plain"].parts,
        "times_the_plain_round": round(statistics.median(ratios), 2),
        "of_each_round": [round(ratio, 2) for ratio in ratios],
        "bytes_down": receipt.down,
        "bytes_up": receipt.up,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3, help="steady rounds, after one to warm up")
    parser.add_argument("--drop-out", type=float, default=0.05)
    parser.add_argument("--colluders", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print nothing but the last line")
    args = parser.parse_args()
    report = compare(args)
    if not args.json:
        for name, value in report["cpu_s_per_round"].items():
            print(f"{name:8} {value:8.3f} CPU s per round")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
