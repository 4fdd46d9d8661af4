"""The noise of a run with a secret seed: fresh for every client, round, block and plan, and nobody can draw it again.

The viewer sees every message and knows every name of a stream, and all values but those of the units. It takes off each noise
that it knows, or that another message holds, and looks whether zeros and ones are left; else the message itself is its score.
"""

import math
from collections.abc import Iterator

import numpy as np

from fedgraph import seeds
from fedgraph.attacks.base import echo
from fedgraph.audit.bench import Case, Claim, sampler
from fedgraph.audit.closed_form import gaussian
from fedgraph.federation import client as one_client
from fedgraph.federation.blocks import borders
from fedgraph.federation.messages import Job
from fedgraph.methods.base import Streams, block_path, client_path, gradient_std
from fedgraph.methods.base.seen import FEW
from fedgraph.methods.base.state import PUBLIC_COINS
from fedgraph.privacy.accounting.calibrate import gaussian_multiplier
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.units import Relation, Viewer

EPSILON, DELTA = 2.0, 1e-3
RUNS = 4_000
SURE = 1e6  # a score, where the noise is gone


def cases() -> Iterator[Case]:
    """Single messages of two clients; sums of many clients, computed block by block."""
    yield from _messages()
    yield from _blocks()


def _messages() -> Iterator[Case]:
    multiplier = gaussian_multiplier(1, EPSILON, DELTA)
    relation = f"{Relation.NODE_ZERO_OUT.value}, every message"
    claim = Claim.of(Gaussian(multiplier), DELTA)

    @sampler
    def release(runs: int, rng: np.random.Generator, present: bool, *breaks: echo.Break) -> np.ndarray:
        root, here = echo.secret_root(rng), echo.Situation(2, Viewer.SERVER, runs)
        held, gone = here.partition(present), here.partition(False)
        price = Gaussian(multiplier / math.sqrt(runs))

        def sent(of: int, client: int, round_: int, plan: str = "plan", known: bool = False) -> np.ndarray:
            job = here.job(of, GaussianNoise(multiplier), price, fingerprint=plan)
            (found,) = one_client.run_blocks([client], gone if known else held, job, echo.MODEL, round_)
            return found.released[echo.SUM].value

        with echo.broken(*breaks):
            message = sent(root, 0, 0)
            others = [sent(root, 0, 1), sent(root, 1, 0), sent(root, 0, 0, "another plan", True), sent(0, 0, 0, known=True)]
            coins = Streams(root, client_path(("echo",), 0, 0), "plan").generator(PUBLIC_COINS)
        return _read(message, [*others, multiplier * coins.standard_normal(runs)])

    there, back = release(True), release(False)
    sound = Case("noise-of-messages", relation, claim, there, back, gaussian(), runs=RUNS)
    yield sound
    for mutant, broken in _breaks_of_messages().items():
        yield sound.broken(mutant, release(True, broken), release(False, broken))


def _breaks_of_messages() -> dict[str, echo.Break]:
    honest = client_path

    def without_plan(streams: Streams, name: str) -> np.random.Generator:
        return seeds.secret_generator(streams.root, *streams.path, name)

    def public_coins(streams: Streams, name: str) -> np.random.Generator:
        return seeds.generator(streams.root, *streams.path, PUBLIC_COINS)

    return {
        "private streams from public seed 0": (seeds, "secret_generator", seeds.generator),
        "the same noise in every round": (one_client, "client_path", lambda cell, client, _: honest(cell, client, 0)),
        "the same noise at every client": (one_client, "client_path", lambda cell, _, round_: honest(cell, 0, round_)),
        "the same noise under every plan": (Streams, "generator", without_plan),
        "noise from the public coins": (Streams, "generator", public_coins),
    }


def _blocks() -> Iterator[Case]:
    """Twice ``FEW`` clients, two in a block: their noise is one draw with the law of the sum of their shares."""
    multiplier, clients = gaussian_multiplier(1, EPSILON, DELTA), 2 * FEW
    relation = f"{Relation.NODE_ZERO_OUT.value}, secure sum"
    claim = Claim.of(Gaussian(multiplier), DELTA)

    @sampler
    def release(runs: int, rng: np.random.Generator, present: bool, *breaks: echo.Break) -> np.ndarray:
        here = echo.Situation(clients, Viewer.SERVER_SECURE_AGGREGATION, runs)
        held, every = here.partition(present), range(len(borders(clients)))
        share, _ = gradient_std(multiplier, 1.0, here.facts)
        root, price = echo.secret_root(rng), Gaussian(multiplier / math.sqrt(runs))

        def total(of: int, round_: int, known: bool = False) -> np.ndarray:
            job: Job = here.job(of, GaussianNoise(share), price, additive=True)
            found = one_client.run_blocks(every, here.partition(False) if known else held, job, echo.MODEL, round_)
            return np.sum([block.released[echo.SUM].value for block in found], axis=0)

        with echo.broken(*breaks):
            return _read(total(root, 0), [total(root, 1), total(0, 0, True)])

    honest = block_path
    there, back = release(True), release(False)
    sound = Case("noise-of-blocks", relation, claim, there, back, gaussian(), runs=RUNS)
    yield sound
    for mutant, broken in {
        "one share of noise for a block": (GaussianNoise, "of_many", lambda noise, shares: noise),
        "the same noise in every round": (one_client, "block_path", lambda cell, a, b, _: honest(cell, a, b, 0)),
        "private streams from public seed 0": (seeds, "secret_generator", seeds.generator),
    }.items():
        yield sound.broken(mutant, release(True, broken), release(False, broken))


def _read(message: np.ndarray, known: list[np.ndarray]) -> np.ndarray:
    """float64 [runs]: the message, or what is left of it where one of ``known`` holds its noise."""
    for noise in known:
        if echo.exact(message - noise):
            return np.asarray(SURE * np.rint(message - noise))
    return np.asarray(message, dtype=np.float64)
