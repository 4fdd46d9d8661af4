"""FedBuff: the server takes a step whenever K updates are there, and nobody waits for the slowest client.

Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek & Huba 2022, "Federated learning with buffered asynchronous
aggregation", Algorithms 1 and 2. ``concurrency`` clients compute at the same time, each from the newest model when it began.
Its update waits in the buffer; when K are there the server adds them, each with weight 1/√(1 + τ), where τ counts the steps
that the server has taken since the client began, and empties the buffer. A *round* here is one such step.

Who computes when is drawn from public coins before the run (log-normal times: half the variance of the logarithm is the
client's own, half is new in each update), so a run repeats. A client is at most once in one buffer: it would compute the same
again. It begins again behind those that wait, after the step.

**Privacy.** An update is one release, counted for the client that made it; the ε of a row is that of the client with the most.
The weight scales the bounded value before noise (``Desk.scale``), so the sensitivity can only shrink. Order and times depend on
no data; nothing is amplified.
"""

import heapq
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedgraph import seeds
from fedgraph.federation.participation import Attendance, Participation


def schedule(
    settings: Participation, num_clients: int, rounds: int, root: int, path: tuple[str | int, ...], concurrency: int
) -> Attendance:
    """Who is in which buffer, with which model. ``concurrency`` is at least ``settings.buffer``."""
    rng = seeds.generator(root, "participation", *path, "asynchronous")
    own = rng.standard_normal(num_clients)
    waiting = deque(rng.permutation(num_clients).tolist())
    versions = np.full((rounds, num_clients), -1)
    computed, asked, now, began = np.zeros(rounds), 0, 0.0, 0.0
    busy: list[tuple[float, int, int]] = []
    for step in range(rounds):
        buffer: list[int] = []
        while len(buffer) < settings.buffer:
            while waiting and len(busy) + len(buffer) < concurrency:
                client = waiting.popleft()
                slow = math.sqrt(0.5) * (own[client] + rng.standard_normal())
                heapq.heappush(busy, (now + settings.compute_s * math.exp(settings.spread * slow), client, step))
                asked += 1
            now, client, version = heapq.heappop(busy)
            if rng.random() < settings.drop_out:
                waiting.append(client)
                continue
            buffer.append(client)
            versions[step, client] = version
        waiting.extend(buffer)
        computed[step], began = now - began, now
    return Attendance(versions >= 0, computed, asked, 0, versions >= 0, versions)


@dataclass(frozen=True, eq=False)
class Stale:
    """The models that the clients of one buffer began with. since: per client, whose model.
    step: of the server.
    """

    models: Mapping[int, dict[str, np.ndarray]]
    since: np.ndarray
    step: int

    def of(self, client: int) -> tuple[dict[str, np.ndarray], float]:
        """(the model, the weight of the update)."""
        version = int(self.since[client])
        return self.models[version], 1.0 / math.sqrt(1.0 + self.step - version)
