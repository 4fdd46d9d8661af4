"""What every party of a masked round knows: who was asked, who sends, who answers to the end, and who is whose neighbour.

**Neighbours and shares.** Who shares masks with whom, and how many shares give a secret back, follows Bell et al. 2020,
Section 3, with exact tail sums. Clients stand in a ring in random (public) order; everybody's neighbours are the k/2 nearest on
either side, a uniformly random set of k others. Of n clients, c collude with the server and at most d drop out; then k and t
are the smallest for which

* **secret**: with probability 1 − 2^−40 no client has, in any round of the run, t colluders among its neighbours;
* **whole**: with probability 1 − 2^−40 the honest clients that stay are connected in every round. The ring falls apart only
  where k/2 in a row are gone in two places: at most n(n−1)/2 · Pr[k given clients all gone];
* **complete**: with probability 1 − 2^−20 each client has t neighbours that answer to the end, where as many drop out late as
  before; else the silent ones are asked again.

The first two are union bounds over all rounds: each round may fail with 2^−40 / rounds, so a long run has more neighbours.

Where no k below n − 1 does that, all are neighbours of all, and t = c + 1, which is certain.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fedgraph import seeds
from fedgraph.errors import PrivacyError, RuntimeFailure
from fedgraph.federation.messages import ClientJob, SecureMasks
from fedgraph.privacy.mechanisms.integer_shares import IntegerShare

_SECRET, _COMPLETE = 2.0**-40, 2.0**-20


@dataclass(frozen=True)
class _Shape:
    """Who is whose neighbour.

    Attributes:
        neighbours: k of each client.
        threshold: t, the shares that give a secret back.
    """

    neighbours: int
    threshold: int


@lru_cache(maxsize=1024)
def _ring_shape(asked: int, least: int, colluders: int, rounds: int) -> _Shape:
    """For ``asked`` clients of which at least ``least`` answer, in each of ``rounds`` rounds.

    Guarantee:
        All rounds together fail with a probability of at most 2^−40 for each of *secret* and *whole*.

    Raises:
        PrivacyError: too few honest clients are left, or ``rounds`` is less than 1.
    """
    if rounds < 1:
        raise PrivacyError(f"a run has at least one round, found {rounds}")
    if least < colluders + 2 or asked < least:
        raise PrivacyError(
            f"a sum of {least} clients with {colluders} colluders does not hide anybody among two; at least {colluders + 2} "
            "have to answer"
        )
    from scipy.stats import hypergeom  # its import takes half a second

    drops, failing = asked - least, _SECRET / rounds
    for k in range(4, asked - 1, 2):
        t = next(t for t in range(1, k + 2) if asked * hypergeom.sf(t - 1, asked - 1, colluders, k) <= failing)
        late = min(asked - 1, 2 * drops)
        complete = t <= k and asked * hypergeom.cdf(t - 1, asked - 1, asked - 1 - late, k) <= _COMPLETE
        gone = drops + colluders
        log_all = math.lgamma(gone + 1) - math.lgamma(gone - k + 1) if gone >= k else -math.inf
        log_all -= math.lgamma(asked + 1) - math.lgamma(asked - k + 1)
        if complete and math.comb(asked, 2) * math.exp(log_all) <= failing:
            return _Shape(k, t)
    return _Shape(asked - 1, colluders + 1)


def _mask_neighbours(order: np.ndarray, k: int) -> dict[int, tuple[int, ...]]:
    """The neighbours of each client, in the order in which their shares are numbered from 1. order: who stands beside whom."""
    if k >= len(order) - 1:
        return {int(c): tuple(int(o) for o in order if o != c) for c in order}
    away = [*range(-(k // 2), 0), *range(1, k // 2 + 1)]
    places = (np.arange(len(order))[:, None] + np.array(away)) % len(order)
    return {int(c): tuple(row) for c, row in zip(order, order[places].tolist(), strict=True)}


@dataclass(frozen=True, eq=False)
class MaskedRound:
    """Who does what in a round.

    Attributes:
        asked: client ids.
        sent: those of them that send.
        answering: those of these that answer to the end.
        near: the neighbours of each asked client.
        threshold: shares that give a secret back.
    """

    asked: tuple[int, ...]
    sent: frozenset[int]
    answering: frozenset[int]
    near: dict[int, tuple[int, ...]]
    threshold: int


_latest: dict[tuple[str, int], MaskedRound] = {}


def find_masked_round(job: ClientJob, round_: int) -> MaskedRound | None:
    """The round; None where nobody is asked (or too few are, so that nothing is sent)."""
    masks = job.masks
    if masks is None or (job.attendance is not None and not job.attendance.answered[round_].any()):
        return None
    if (job.key, round_) not in _latest:
        _latest.clear()
        _latest[job.key, round_] = _made(job, masks, round_)
    return _latest[job.key, round_]


def _made(job: ClientJob, masks: SecureMasks, round_: int) -> MaskedRound:
    everybody = np.ones(job.plan.facts.sizes.num_clients, dtype=bool)
    asked = np.flatnonzero(everybody if job.attendance is None else job.attendance.chosen[round_])
    sent = np.flatnonzero(everybody if job.attendance is None else job.attendance.answered[round_])
    shape = _ring_shape(asked.size, masks.least, masks.colluders, job.plan.schedule.rounds)
    order = seeds.seeded_generator(job.root, "neighbours", *job.stream).permutation(everybody.size)  # one ring for the run
    near = _mask_neighbours(order[np.isin(order, asked)], shape.neighbours)
    rng = seeds.seeded_generator(job.root, "silent", *job.stream, round_)
    answering = frozenset(sent[rng.random(sent.size) >= masks.drop_out].tolist())
    if any(len(answering.intersection(of_one)) < shape.threshold for of_one in near.values()):
        answering = frozenset(sent.tolist())  # the silent ones are asked again until they answer
    return MaskedRound(tuple(asked.tolist()), frozenset(sent.tolist()), answering, near, shape.threshold)


def masked_round_mechanism(job: ClientJob) -> IntegerShare:
    """All parts of a masked message have one step and one modulus (``masked_plan``)."""
    (found,) = {r.mechanism for r in job.plan.schedule.releases}
    if not isinstance(found, IntegerShare):
        raise RuntimeFailure(f"masks hide whole numbers, found {found.words}")
    return found
