"""Which clients answer in which round, and how long a round takes: who is asked, who drops out, who is too late, which links.

All draws are public coins: they come from a stream that everybody may know, never from data. So nothing here amplifies a
guarantee. Amplification by sampling clients needs a sample that the viewer does not know, and whoever runs a round, also behind
secure aggregation, knows whom it asked. What sampling does buy is counted exactly: a client that does not answer releases
nothing in that round, and the ledger holds only what was released.

**Secure sums.** Noise is shared among the clients of a sum, so a sum over too few of them would carry too little. Noise is
therefore chosen for ``least`` answers, and a round with fewer is aborted before anybody sends: the model stays as it is.

**Time.** A stated model, no measurement: a client receives the model, computes for a log-normal time, and sends its message:
latency + bytes down / rate down + compute + latency + bytes up / rate up. A round lasts as long as the slowest answer, or until
``deadline_s`` where somebody missed it.

**FedBuff** (``mode: asynchronous``): the server takes a step whenever K updates are there, and nobody waits for the slowest
client. Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek & Huba 2022, "Federated learning with buffered asynchronous aggregation",
Algorithms 1 and 2. ``concurrency`` clients compute at the same time, each from the newest model when it began. Its update waits
in the buffer; when K are there the server adds them, each with weight 1/√(1 + τ), where τ counts the steps that the server has
taken since the client began, and empties the buffer. A *round* here is one such step. Who computes when is drawn before the run
(log-normal times: half the variance of the logarithm is the client's own, half is new in each update), so a run repeats. A
client is at most once in one buffer: it would compute the same again. It begins again behind those that wait, after the step.
An update is one release, counted for the client that made it; the ε of a row is that of the client with the most. The weight
scales the bounded value before noise (``Desk.scale``), so the sensitivity can only shrink.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from fedgraph import seeds
from fedgraph.documents.settings import Settings


@dataclass(frozen=True)
class _Link:
    """A line between a client and the server.

    Attributes:
        down: bit per second to the client.
        up: bit per second from the client.
        latency: seconds, one way.
    """

    down: float
    up: float
    latency: float

    @property
    def words(self) -> str:
        return f"{self.down / 1e6:g} Mbit/s down, {self.up / 1e6:g} up, {self.latency * 1e3:g} ms one way"


ROUND_ATTENDANCE_LINKS = {"home": _Link(50e6, 10e6, 0.02), "data centre": _Link(10e9, 10e9, 0.0005)}

_MOST_LOST = 0.99  # chance that an update is lost where the server waits until a buffer is full


class Participation(Settings):
    """Who takes part in the rounds of a federation; by default every client in every round."""

    mode: Literal["synchronous", "asynchronous"] = Field(
        "synchronous", description="a round waits for its answers, or the server steps whenever `buffer` updates are there"
    )
    buffer: int = Field(10, ge=1, description="updates in one step of the server (asynchronous)")
    concurrency: int | None = Field(
        None, ge=1, description="clients that compute at the same time (asynchronous); default: all"
    )
    sample: Literal["all", "fixed", "poisson"] = Field(
        "all", description="whom a round asks: all, a fixed number without replacement, or each client by its own coin"
    )
    share: float = Field(1.0, gt=0, le=1, description="of the clients that a round asks (sample: fixed or poisson)")
    drop_out: float = Field(0.0, ge=0, lt=1, description="chance that an asked client does not answer")
    compute_s: float = Field(0.0, ge=0, description="median seconds that a client computes in a round (of the stated model)")
    spread: float = Field(0.0, ge=0, le=5, description="standard deviation of the logarithm of that time")
    deadline_s: float | None = Field(None, gt=0, description="an answer computed later than this is not waited for")
    least: int | None = Field(
        None, ge=1, description="answers that a round needs; default: all, or three standard deviations below the mean"
    )

    secure_aggregation: Literal["ideal", "masks"] = Field(
        "ideal", description="of trust sums: simulated in floating point, or carried out: masks, shares, discrete noise"
    )
    resolution: int | None = Field(
        None, ge=4, le=2**20, description="steps per sensitivity (masks); default: rounding costs half a percent of noise"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Participation:
        own = dict(self)
        waits = self.mode == "synchronous"
        masked = self.secure_aggregation == "masks"
        # a run's own copy of its scenario writes every default
        given = [key for key, field in type(self).model_fields.items() if own[key] != field.default]
        alone = ", ".join(key for key in ("buffer", "concurrency") if key in given)
        barred = next((key for key in ("sample", "deadline_s", "least", "secure_aggregation") if key in given), "")
        most = f"at most {_MOST_LOST} in mode: asynchronous, where the server waits until a buffer is full"
        faults = {
            "resolution is for secure_aggregation: masks only, found ideal": not masked and self.resolution is not None,
            f"share is {self.share}, and sample: all asks everybody; write sample: fixed or poisson": (
                self.sample == "all" and self.share != 1
            ),
            f"sample is {self.sample}, and share: 1 asks everybody; write a share below 1, or sample: all": (
                self.sample != "all" and self.share == 1
            ),
            "deadline_s needs compute_s, the median time that a client computes": bool(self.deadline_s) and not self.compute_s,
            f"{alone}: for mode: asynchronous only, found synchronous": waits and alone,
            f"{barred} is for mode: synchronous; asynchronous clients begin anew whenever they are done": not waits and barred,
            f"drop_out is {self.drop_out}; allowed: {most}": not waits and self.drop_out > _MOST_LOST,
            "mode: asynchronous needs compute_s, the median time that a client computes": not (waits or self.compute_s),
            f"concurrency is {self.concurrency}; allowed: at least buffer, {self.buffer}: else it never fills": (
                not waits and self.concurrency is not None and self.concurrency < self.buffer
            ),
        }
        for why, found in faults.items():
            if found:
                raise ValueError(why)
        return self

    @property
    def everybody(self) -> bool:
        """Whether each round has an answer from each client."""
        if self.mode == "asynchronous":
            return False
        return self.sample == "all" and not self.drop_out and self.deadline_s is None

    @property
    def chance(self) -> float:
        """That a client answers in a round."""
        in_time = 1.0
        if self.deadline_s is not None:
            ahead = math.log(self.deadline_s / self.compute_s)
            in_time = 0.5 * math.erfc(-ahead / self.spread / math.sqrt(2)) if self.spread else float(ahead >= 0)
        return self.share * (1 - self.drop_out) * in_time

    def answers_needed(self, num_clients: int) -> int:
        """The least answers of a round that counts; noise behind secure aggregation is chosen for this many.

        By default, where clients may be absent, three standard deviations below the mean number of answers; at least one.
        """
        if self.mode == "asynchronous":
            return self.buffer
        if self.least is not None:
            return self.least
        if self.everybody:
            return num_clients
        asked = num_clients if self.sample == "all" else max(1, round(self.share * num_clients))
        chance = self.chance / self.share
        variance = asked * chance * (1 - chance) if self.sample != "poisson" else num_clients * self.chance * (1 - self.chance)
        return max(1, min(asked, math.floor(asked * chance - 3 * math.sqrt(variance))))


@dataclass(frozen=True, eq=False)
class Attendance:
    """Who answers when.

    Attributes:
        answered: bool [rounds, clients]; a round with too few answers is empty.
        computed: float [rounds], seconds of computing that each round waits for.
        asked: how often some client was asked, over all rounds.
        aborted: rounds with too few answers.
        chosen: bool [rounds, clients], who was asked; where nobody waits for others, who is in the buffer.
        versions: int [rounds, clients], where nobody waits for others: the round whose model each began with; −1: absent.
    """

    answered: np.ndarray
    computed: np.ndarray
    asked: int
    aborted: int
    chosen: np.ndarray
    versions: np.ndarray | None = None

    def needed(self, round_: int) -> list[int]:
        """The rounds whose models the clients of this one began with."""
        return [] if self.versions is None else sorted(set(self.versions[round_, self.answered[round_]].tolist()))

    def clients(self, round_: int, among: Sequence[int]) -> list[int]:
        """Those of ``among`` (numbers of clients) that answer in the round."""
        return [client for client in among if self.answered[round_, client]]


def draw_round_attendance(
    settings: Participation, num_clients: int, rounds: int, least: int, root: int, path: tuple[str | int, ...]
) -> Attendance:
    """Who answers when. Every round has a stream of its own, so a longer run begins as a shorter one does.

    Args:
        settings: who takes part.
        num_clients: how many there are.
        rounds: how many there are.
        least: answers that a round needs; one with fewer is aborted.
        root: of the public coins.
        path: names their stream.
    """
    answered, chosen = np.zeros((2, rounds, num_clients), dtype=bool)
    computed, aborted = np.zeros(rounds), 0
    for round_ in range(rounds):
        chosen[round_], in_time, times = _drawn(settings, num_clients, root, path, round_)
        missed = bool((chosen[round_] & ~in_time).any())
        waited = float(times[in_time].max(initial=0.0))
        computed[round_] = settings.deadline_s if missed and settings.deadline_s is not None else waited
        aborted += int(in_time.sum() < least)
        if in_time.sum() >= least:
            answered[round_] = in_time
    return Attendance(answered, computed, int(chosen.sum()), aborted, chosen)


def any_round_attended(
    settings: Participation, num_clients: int, rounds: int, least: int, root: int, path: tuple[str | int, ...]
) -> bool:
    """Whether at least one round of ``draw_round_attendance`` has its answers; draws no round after the first of them.

    Args:
        settings: who takes part.
        num_clients: how many there are.
        rounds: how many there are.
        least: answers that a round needs.
        root: of the public coins.
        path: names their stream.
    """
    drawn = (_drawn(settings, num_clients, root, path, round_)[1] for round_ in range(rounds))
    return any(in_time.sum() >= least for in_time in drawn)


def _drawn(
    settings: Participation, num_clients: int, root: int, path: tuple[str | int, ...], round_: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(who is asked, who of them answers in time: bool [clients]; seconds of computing: float64 [clients]), one round."""
    rng = seeds.seeded_generator(root, "participation", *path, round_)
    order = rng.permutation(num_clients)
    coins = rng.random(num_clients)
    drops = rng.random(num_clients)
    times = settings.compute_s * np.exp(settings.spread * rng.standard_normal(num_clients))
    chosen = coins < settings.share
    if settings.sample != "poisson":
        chosen = np.zeros(num_clients, dtype=bool)
        chosen[order[: max(1, round(settings.share * num_clients))]] = True
    latest = math.inf if settings.deadline_s is None else settings.deadline_s
    return chosen, chosen & (drops >= settings.drop_out) & (times <= latest), times


def buffered_round_attendance(
    settings: Participation, num_clients: int, rounds: int, root: int, path: tuple[str | int, ...], concurrency: int
) -> Attendance:
    """Who is in which buffer, with which model (FedBuff).

    Args:
        settings: who takes part.
        num_clients: how many there are.
        rounds: steps of the server.
        root: of the public coins.
        path: names their stream.
        concurrency: clients that compute at the same time; at least ``settings.buffer``.
    """
    rng = seeds.seeded_generator(root, "participation", *path, "asynchronous")
    own = rng.standard_normal(num_clients)
    waiting = deque(rng.permutation(num_clients).tolist())
    versions = np.full((rounds, num_clients), -1)
    computed = np.zeros(rounds)
    asked = 0
    now = 0.0
    began = 0.0
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
class StaleAttendance:
    """The models that the clients of one buffer began with.

    Attributes:
        models: round → the model that was broadcast in it.
        since: int [clients], the round whose model each began with.
        step: of the server.
    """

    models: Mapping[int, dict[str, np.ndarray]]
    since: np.ndarray
    step: int

    def of(self, client: int) -> tuple[dict[str, np.ndarray], float]:
        """(the model of ``client``, the weight 1/√(1 + τ) of its update)."""
        version = int(self.since[client])
        return self.models[version], 1.0 / math.sqrt(1.0 + self.step - version)


@dataclass(frozen=True)
class _Traffic:
    """What travelled.

    Attributes:
        down: bytes to one client in one round, the largest.
        up: bytes from one client in one round, the largest.
        seconds: of all rounds, on each of ``ROUND_ATTENDANCE_LINKS``.
    """

    down: int
    up: int
    seconds: dict[str, float]


def round_attendance_traffic(sizes: Sequence[tuple[int, int]], computed: np.ndarray | None) -> _Traffic:
    """What travelled, and how long it took. Clients work side by side; the server's own line is no limit.

    Args:
        sizes: per round, bytes down to and up from one client.
        computed: float [rounds], seconds of computing that each round waits for; None: none.
    """
    waits = np.zeros(len(sizes)) if computed is None else computed
    seconds = dict.fromkeys(ROUND_ATTENDANCE_LINKS, float(waits.sum()))
    for name, link in ROUND_ATTENDANCE_LINKS.items():
        for down, up in sizes:
            seconds[name] += 2 * link.latency + 8 * down / link.down + 8 * up / link.up
    return _Traffic(max((d for d, _ in sizes), default=0), max((u for _, u in sizes), default=0), seconds)
