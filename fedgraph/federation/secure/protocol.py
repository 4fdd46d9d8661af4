"""What every party of a masked round knows: who was asked, who sends, who answers to the end, and who is whose neighbour."""

from dataclasses import dataclass

import numpy as np

from fedgraph import seeds
from fedgraph.errors import RuntimeFailure
from fedgraph.federation.messages import Job, Masks
from fedgraph.federation.secure import neighbours
from fedgraph.privacy.mechanisms.integer_shares import IntegerShare


@dataclass(frozen=True, eq=False)
class Round:
    """asked, sent, answering: client ids; each a part of the one before. near: the neighbours of each asked client."""

    asked: tuple[int, ...]
    sent: frozenset[int]
    answering: frozenset[int]
    near: dict[int, tuple[int, ...]]
    threshold: int


_latest: dict[tuple[str, int], Round] = {}


def round_of(job: Job, round_: int) -> Round | None:
    """The round; None where nobody is asked (or too few are, so that nothing is sent)."""
    masks = job.masks
    if masks is None or (job.attendance is not None and not job.attendance.answered[round_].any()):
        return None
    if (job.key, round_) not in _latest:
        _latest.clear()
        _latest[job.key, round_] = _made(job, masks, round_)
    return _latest[job.key, round_]


def _made(job: Job, masks: Masks, round_: int) -> Round:
    everybody = np.ones(job.plan.facts.sizes.num_clients, dtype=bool)
    asked = np.flatnonzero(everybody if job.attendance is None else job.attendance.chosen[round_])
    sent = np.flatnonzero(everybody if job.attendance is None else job.attendance.answered[round_])
    shape = neighbours.shape(asked.size, masks.least, masks.colluders, job.plan.schedule.rounds)
    order = seeds.generator(job.root, "neighbours", *job.stream).permutation(everybody.size)  # one ring for the run
    near = neighbours.ring(order[np.isin(order, asked)], shape.neighbours)
    rng = seeds.generator(job.root, "silent", *job.stream, round_)
    answering = frozenset(sent[rng.random(sent.size) >= masks.drop_out].tolist())
    if any(len(answering.intersection(of_one)) < shape.threshold for of_one in near.values()):
        answering = frozenset(sent.tolist())  # the silent ones are asked again until they answer
    return Round(tuple(asked.tolist()), frozenset(sent.tolist()), answering, near, shape.threshold)


def mechanism(job: Job) -> IntegerShare:
    """All parts of a masked message have one step and one modulus (``plan``)."""
    (found,) = {r.mechanism for r in job.plan.schedule.releases}
    if not isinstance(found, IntegerShare):
        raise RuntimeFailure(f"masks hide whole numbers, found {found.words}")
    return found
