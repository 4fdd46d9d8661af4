"""What a client does in a masked round (the order is that of the room's docstring), for all clients that a worker holds.

A worker keeps nothing that it cannot compute again: secrets follow from the run's streams.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fedgraph import seeds
from fedgraph.errors import PrivacyError
from fedgraph.federation.blocks import borders
from fedgraph.federation.messages import Job
from fedgraph.federation.secure import keys, protocol, shamir
from fedgraph.privacy.desk import Released, masked

Board = Mapping[int, tuple[bytes, bytes]]  # client → its public keys: for masks, for letters
Letters = Mapping[int, Sequence[tuple[int, bytes]]]  # recipient → (sender, sealed shares)
Answers = Mapping[int, Sequence[tuple[int, int]]]  # client → (place, share) of its seed where it sent, else of its mask key


@dataclass(frozen=True, eq=False)
class _Secrets:
    """Of one client in one round. mask, key: its private key for masks. seed: of its own stream. coefficients: Shamir's."""

    mask: bytes
    key: X25519PrivateKey
    seed: bytes
    coefficients: tuple[list[int], ...]


# Kept while the worker lives, and made again where they are missing: this round's secrets and agreements (both ends of a pair
# compute the same, so where both are simulated here it is computed once), and of the run the letter keys and what two clients
# agreed on for letters (these keys are never rebuilt by anybody).
_of_round: dict[tuple[str, int, int], _Secrets] = {}
_pairs: dict[tuple[str, int, int, int], bytes] = {}
_letter_keys: dict[tuple[str, int], tuple[X25519PrivateKey, bytes]] = {}
_channels: dict[tuple[str, int, int], AESGCM] = {}
_MOST = 400_000


def advertise(blocks: Sequence[int], job: Job, round_: int) -> dict[int, tuple[bytes, bytes]]:
    """The public keys of the clients of ``blocks`` that the round asks."""
    now = protocol.round_of(job, round_)
    if now is None:
        return {}
    return {c: (keys.public(_secrets(job, c, round_, now).key), _letter_keys_of(job, c)[1]) for c in _asked(blocks, job, now)}


def share(blocks: Sequence[int], job: Job, round_: int, *boards: Board) -> dict[int, list[tuple[int, bytes]]]:
    """The sealed shares of these clients' secrets, by recipient."""
    now, found = protocol.round_of(job, round_), merge_boards(boards)
    letters: dict[int, list[tuple[int, bytes]]] = {}
    if now is None:
        return letters
    for client in _asked(blocks, job, now):
        own = _secrets(job, client, round_, now)
        near = now.near[client]
        two = (shamir.split(s, c, len(near)) for s, c in zip((own.mask, own.seed), own.coefficients, strict=True))
        for other, of_mask, of_seed in zip(near, *two, strict=True):
            text = b"".join(s.to_bytes(shamir.SHARE_BYTES, "big") for s in (of_mask, of_seed))
            letter = keys.sealed(_channel(job, client, other, found), round_, client, other, text)
            letters.setdefault(other, []).append((client, letter))
    return letters


def hide(job: Job, client: int, round_: int, released: Mapping[str, Released], board: Board) -> dict[str, Released]:
    """What ``client`` sends: its whole numbers plus the stream of its own seed and those it has with its neighbours."""
    now = protocol.round_of(job, round_)
    if now is None:
        raise PrivacyError(f"client {client} would send in round {round_}, which asks nobody")
    secrets = _secrets(job, client, round_, now)
    pairs = []
    for other in now.near[client]:
        name = (job.key, round_, min(client, other), max(client, other))
        if name not in _pairs:
            _pairs[name] = keys.agreed(secrets.key, board[other][0])
        pairs.append((1 if client < other else -1, _pairs[name]))
    bits = protocol.mechanism(job).bits
    return {n: masked(v, _mask(v.value, secrets.seed, pairs, round_, n, bits), bits) for n, v in released.items()}


def answer(blocks: Sequence[int], job: Job, round_: int, num_boards: int, *given: Any) -> dict[int, list[tuple[int, int]]]:
    """Shares of the secrets that these clients hold: of the seed of who sent, else of the mask key. given: boards, letters."""
    now = protocol.round_of(job, round_)
    if now is None or job.masks is None:
        return {}
    if len(now.sent) < job.masks.least:
        raise PrivacyError(f"round {round_}: {len(now.sent)} clients sent, {job.masks.least} are needed: no share is given")
    board, letters = merge_boards(given[:num_boards]), given[num_boards:]
    answers: dict[int, list[tuple[int, int]]] = {}
    for client in _asked(blocks, job, now):
        if client not in now.answering:
            continue
        for sender, letter in (pair for of_worker in letters for pair in of_worker.get(client, ())):
            text = keys.opened(_channel(job, client, sender, board), round_, sender, client, letter)
            half = text[shamir.SHARE_BYTES :] if sender in now.sent else text[: shamir.SHARE_BYTES]
            place = now.near[sender].index(client) + 1
            answers.setdefault(sender, []).append((place, int.from_bytes(half, "big")))
    return answers


def merge_boards(boards: Sequence[Board]) -> dict[int, tuple[bytes, bytes]]:
    return {client: found for board in boards for client, found in board.items()}


def _asked(blocks: Sequence[int], job: Job, now: protocol.Round) -> Iterator[int]:
    cut = borders(job.plan.facts.sizes.num_clients)
    return (client for block in blocks for client in cut[block] if client in now.near)


def _mask(value: np.ndarray, seed: bytes, pairs: Sequence[tuple[int, bytes]], round_: int, part: str, bits: int) -> np.ndarray:
    total = np.zeros_like(value)
    for sign, secret in ((1, seed), *pairs):
        keys.add_stream(total, secret, round_, part, bits, sign)
    return total


def _secrets(job: Job, client: int, round_: int, now: protocol.Round) -> _Secrets:
    """From the client's own stream."""
    name = (job.key, round_, client)
    if name not in _of_round:
        if _of_round and next(iter(_of_round))[:2] != name[:2]:
            _of_round.clear()
            _pairs.clear()
        rng = seeds.secret_generator(job.root, *job.stream, "masks", client, round_, job.fingerprint)
        mask, seed = rng.bytes(32), rng.bytes(32)
        both = tuple([shamir.uniform(rng.bytes(48)) for _ in range(now.threshold - 1)] for _ in range(2))
        _of_round[name] = _Secrets(mask, keys.private(mask), seed, both)
    return _of_round[name]


def _letter_keys_of(job: Job, client: int) -> tuple[X25519PrivateKey, bytes]:
    """(private, public), of the whole run."""
    name = (job.key, client)
    if name not in _letter_keys:
        if len(_letter_keys) >= _MOST:
            _letter_keys.clear()
        secret = seeds.secret_generator(job.root, *job.stream, "letters", client, job.fingerprint).bytes(32)
        own = keys.private(secret)
        _letter_keys[name] = own, keys.public(own)
    return _letter_keys[name]


def _channel(job: Job, client: int, other: int, board: Board) -> AESGCM:
    """Agreed once for the whole run."""
    name = (job.key, client, other)
    if name not in _channels:
        if len(_channels) >= _MOST:
            _channels.clear()
        _channels[name] = keys.channel(keys.agreed(_letter_keys_of(job, client)[0], board[other][1]))
    return _channels[name]
