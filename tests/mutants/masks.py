"""Secure aggregation with masks: what a server that keeps everything can make of one client's message.

Twelve clients are asked, four answer in round 0, client 0 among them; in round 1 it drops out. The server holds all boards of
public keys, sealed letters, answers and masked messages of both rounds, and knows every name of a stream. It tries the secrets
of client 0 that it can come by; where they open the message, that is its score, with client 0's share of the noise only. Else
it reads the sum, as it should.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from fedgraph import seeds
from fedgraph.audit import lower_bound
from fedgraph.federation import client as one_client
from fedgraph.federation.messages import ClientJob, SecureMasks, cut_message_blocks
from fedgraph.federation.round_attendance import Attendance
from fedgraph.federation.secure import keys, masked_round, unmasking
from fedgraph.federation.secure import masking as masked
from fedgraph.methods.base import plan_gradient_std
from fedgraph.privacy.accounting.calibrate import calibrate_noise
from fedgraph.privacy.accounting.discrete_gaussian import discrete_gaussian_event
from fedgraph.privacy.events import Composed, Event
from fedgraph.privacy.mechanisms.integer_shares import DiscreteGaussianShare
from fedgraph.privacy.units import Relation, Viewer
from tests.mutants import streams
from tests.mutants.bench import BenchCase, BenchClaim, bench_sampler

EPSILON, DELTA, _FAILURE = 2.0, 1e-3, 1e-8
_ASKED, LEAST = 12, 4
STEPS, _BITS = 64.0, 32  # of one unit of the value; of the modulus
_RUNS = 6_000


@dataclass(frozen=True, eq=False)
class _Round:
    """What the server holds of a round: who is asked, all public keys, sealed letters, and the shares that clients gave away.

    hidden: uint32 [runs] for each client that answered, its masked message. total: float64 [runs], the opened sum, in steps.
    """

    now: masked_round.MaskedRound
    board: masked.MaskingBoard
    letters: masked.MaskingLetters
    answers: masked.MaskingAnswers
    hidden: Mapping[int, np.ndarray]
    total: np.ndarray


def cases() -> Iterator[BenchCase]:
    """A masked sum with drop-outs."""
    here = streams.StreamSituation(_ASKED, Viewer.SERVER_SECURE_AGGREGATION, _RUNS, LEAST)

    def event(multiplier: float, dimension: int, norm: float) -> Event:
        share, _ = plan_gradient_std(multiplier, STEPS, here.facts)
        return discrete_gaussian_event(STEPS * norm, share, LEAST - 1, dimension, _FAILURE)

    multiplier = calibrate_noise(lambda m: Composed((event(m, 1, 1.0),)), EPSILON, DELTA)
    relation = f"{Relation.NODE_ZERO_OUT.value}, masked sum"
    answered = np.zeros((streams.ROUNDS, _ASKED), dtype=bool)
    answered[0, :LEAST] = answered[1, 1 : LEAST + 1] = True
    attendance = Attendance(answered, np.zeros(streams.ROUNDS), _ASKED, 0, np.ones_like(answered))

    @bench_sampler
    def release(
        runs: int, rng: np.random.Generator, present: bool, *breaks: streams.StreamBreak, cut_for: int = LEAST
    ) -> np.ndarray:
        now = replace(here, entries=runs)
        share, _ = plan_gradient_std(multiplier, STEPS, now.facts)
        noise = DiscreteGaussianShare(1 / STEPS, _BITS, share * math.sqrt((LEAST - 1) / (cut_for - 1)), runs)
        price = event(multiplier * math.sqrt((LEAST - 1) / (cut_for - 1)), runs, math.sqrt(runs))
        job = replace(
            now.job(streams.attacked_stream_root(rng), noise, price), attendance=attendance, masks=SecureMasks(1, LEAST)
        )
        with streams.break_streams(*breaks):
            first, second = (_held_by_the_server(job, now, present, round_) for round_ in range(streams.ROUNDS))
            return _read(job, first, second) / STEPS

    claim = BenchClaim.of(event(multiplier, 1, 1.0), DELTA)
    there, back = release(True), release(False)
    sound = BenchCase("masked-sum", relation, claim, there, back, lower_bound.gaussian_lower_bound(), runs=_RUNS)
    yield sound
    for mutant, broken in _breaks().items():
        yield sound.broken(mutant, release(True, broken), release(False, broken))
    yield sound.broken("noise cut for clients that drop out", release(True, cut_for=_ASKED), release(False, cut_for=_ASKED))


def _breaks() -> dict[str, streams.StreamBreak]:
    honest = seeds.secret_seeded_generator

    def public_for(kind: str) -> Callable[..., np.random.Generator]:
        return lambda root, *path: (seeds.seeded_generator if kind in path else honest)(root, *path)

    def one_for_all_rounds(root: int, *path: str | int) -> np.random.Generator:
        return honest(root, *(path[: path.index("masks") + 2] if "masks" in path else path))

    return {
        "letter keys from public seed 0": (seeds, "secret_seeded_generator", public_for("letters")),
        "mask keys from public seed 0": (seeds, "secret_seeded_generator", public_for("masks")),
        "one mask key for all rounds": (seeds, "secret_seeded_generator", one_for_all_rounds),
        "masks forgotten": (one_client, "apply_masking", lambda job, client, round_, released, board: released),
    }


def _held_by_the_server(job: ClientJob, here: streams.StreamSituation, present: bool, round_: int) -> _Round:
    every, now = range(len(cut_message_blocks(_ASKED))), masked_round.find_masked_round(job, round_)
    assert now is not None
    board = masked.advertise_masking_keys(every, job, round_)
    letters = masked.share_masking_secrets(every, job, round_, board)
    messages = one_client.run_client_blocks(every, here.partition(present).subgraphs, job, streams.STREAM_MODEL, round_, board)
    hidden = {message.first: message.released[streams.SUM].value for message in messages}
    answers = masked.answer_masking_shares(every, job, round_, 1, board, letters)
    total = np.asarray(np.sum(list(hidden.values()), axis=0, dtype=np.uint32))
    opened = unmasking.unmasking_sums(now, round_, {streams.SUM: total}, board, [answers], _BITS)[streams.SUM]
    return _Round(now, board, letters, answers, hidden, _signed(opened))


def _read(job: ClientJob, first: _Round, second: _Round) -> np.ndarray:
    """float64 [runs], in steps: client 0's own message where some of its secrets open it, else the sum."""
    message, least = first.hidden[0], first.now.threshold
    candidates = [(b"", b"")]  # as if nothing hid it
    of_seed = keys.recover_key_secret(dict(first.answers[0][:least]))
    candidates.append((keys.recover_key_secret(dict(second.answers[0][:least])), of_seed))
    public = seeds.seeded_generator(0, *job.stream, "masks", 0, 0, job.fingerprint)
    candidates.append((public.bytes(32), public.bytes(32)))
    letters = _opened_letters(job, first)
    if letters:
        mask_key = keys.recover_key_secret({place: share for place, share, _ in letters[:least]})
        candidates.append((mask_key, keys.recover_key_secret({place: share for place, _, share in letters[:least]})))
    for mask, seed in candidates:
        opened = np.array(message)
        if mask:
            keys.add_key_stream(opened, seed, 0, streams.SUM, _BITS, -1)
            for other in first.now.near[0]:
                agreed = keys.agree_on_key(keys.private_key(mask), first.board[other][0])
                keys.add_key_stream(opened, agreed, 0, streams.SUM, _BITS, -1 if other > 0 else 1)
        if np.abs(_signed(opened)).max() < 2.0 ** (_BITS - 8):
            return _signed(opened)
    if np.abs(first.total).max() < 2.0 ** (_BITS - 8):
        return first.total
    return _signed(np.sum(list(first.hidden.values()), axis=0))


def _opened_letters(job: ClientJob, first: _Round) -> list[tuple[int, int, int]]:
    """(place, share of the mask key, share of the seed) of client 0, from its letters, with a letter key of public seed 0."""
    own = keys.private_key(seeds.seeded_generator(0, *job.stream, "letters", 0, job.fingerprint).bytes(32))
    if keys.public_key(own) != first.board[0][1]:
        return []
    found = []
    for other in first.now.near[0]:
        channel = keys.letter_key_channel(keys.agree_on_key(own, first.board[other][1]))
        letter = dict(first.letters[other])[0]
        text, cut = keys.open_with_key(channel, 0, 0, other, letter), keys.KEY_SHARE_BYTES
        found.append((first.now.near[0].index(other) + 1, int.from_bytes(text[:cut], "big"), int.from_bytes(text[cut:], "big")))
    return found


def _signed(whole: np.ndarray) -> np.ndarray:
    return np.asarray(whole.astype(np.uint32).view(np.int32), dtype=np.float64)
