"""What a client does in a masked round (the order is that of the room's docstring), for all clients that a worker holds.

A worker keeps nothing that it cannot compute again: secrets follow from the run's streams.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fedgraph import seeds
from fedgraph.errors import PrivacyError
from fedgraph.federation.messages import ClientJob, cut_message_blocks
from fedgraph.federation.secure import keys, masked_round
from fedgraph.privacy.desk import Released, mask_desk_value

MaskingBoard = Mapping[int, tuple[bytes, bytes]]  # client → its public keys: for masks, for letters
MaskingLetters = Mapping[int, Sequence[tuple[int, bytes]]]  # recipient → (sender, sealed shares)
MaskingAnswers = Mapping[
    int, Sequence[tuple[int, int]]
]  # client → (place, share) of its seed where it sent, else of its mask key


@dataclass(frozen=True, eq=False)
class _Secrets:
    """Of one client in one round. mask, key: its private key for masks. seed: of its own stream. coefficients: Shamir's."""

    mask: bytes
    key: X25519PrivateKey
    seed: bytes
    coefficients: tuple[list[int], ...]


# Of the latest round, made again where they are missing: both ends of a pair agree on the same, so where both are simulated
# here it is computed once.
_of_round: dict[tuple[str, int, int], _Secrets] = {}
_pairs: dict[tuple[str, int, int, int], bytes] = {}
_MOST = 400_000  # letter keys, and agreements on letters: of a whole run, and never rebuilt by anybody


def advertise_masking_keys(blocks: Sequence[int], job: ClientJob, round_: int) -> dict[int, tuple[bytes, bytes]]:
    """The public keys of the clients of ``blocks`` that the round asks.

    Returns:
        Client → (key for masks, key for letters); nothing where the round asks nobody.
    """
    now = masked_round.find_masked_round(job, round_)
    if now is None:
        return {}
    mine = ((c, _secrets(job, c, round_, now).key, _letter_key(job, c)) for c in _asked(blocks, job, now))
    return {client: (keys.public_key(mask), keys.public_key(letters)) for client, mask, letters in mine}


def share_masking_secrets(
    blocks: Sequence[int], job: ClientJob, round_: int, *boards: MaskingBoard
) -> dict[int, list[tuple[int, bytes]]]:
    """The sealed shares of these clients' secrets.

    Args:
        blocks: numbers of the blocks.
        job: the training run.
        round_: from 0.
        boards: the public keys of all clients.

    Returns:
        Recipient → (sender, sealed share of its mask key and of its seed).
    """
    now, found = masked_round.find_masked_round(job, round_), merge_masking_boards(boards)
    letters: dict[int, list[tuple[int, bytes]]] = {}
    if now is None:
        return letters
    for client in _asked(blocks, job, now):
        own = _secrets(job, client, round_, now)
        near = now.near[client]
        two = (keys.split_key_secret(s, c, len(near)) for s, c in zip((own.mask, own.seed), own.coefficients, strict=True))
        for other, of_mask, of_seed in zip(near, *two, strict=True):
            text = b"".join(s.to_bytes(keys.KEY_SHARE_BYTES, "big") for s in (of_mask, of_seed))
            letter = keys.seal_with_key(_channel(_letter_key(job, client), found[other][1]), round_, client, other, text)
            letters.setdefault(other, []).append((client, letter))
    return letters


def apply_masking(
    job: ClientJob, client: int, round_: int, released: Mapping[str, Released], board: MaskingBoard
) -> dict[str, Released]:
    """What ``client`` sends: its whole numbers plus the stream of its own seed and those it has with its neighbours."""
    now = masked_round.find_masked_round(job, round_)
    if now is None:
        raise PrivacyError(f"client {client} would send in round {round_}, which asks nobody")
    secrets = _secrets(job, client, round_, now)
    pairs = []
    for other in now.near[client]:
        name = (job.key, round_, min(client, other), max(client, other))
        if name not in _pairs:
            _pairs[name] = keys.agree_on_key(secrets.key, board[other][0])
        pairs.append((1 if client < other else -1, _pairs[name]))
    bits = masked_round.masked_round_mechanism(job).bits
    return {n: mask_desk_value(v, _mask(v.value, secrets.seed, pairs, round_, n, bits), bits) for n, v in released.items()}


def answer_masking_shares(
    blocks: Sequence[int], job: ClientJob, round_: int, num_boards: int, *given: Any
) -> dict[int, list[tuple[int, int]]]:
    """Shares of the secrets that these clients hold: of the seed of who sent, else of the mask key.

    Args:
        blocks: numbers of the blocks.
        job: the training run.
        round_: from 0.
        num_boards: how many of ``given`` are boards.
        given: boards of public keys, then letters.

    Returns:
        Sender of the letter → (place, share).

    Raises:
        PrivacyError: too few clients sent, so that their noise would be too little.
    """
    now = masked_round.find_masked_round(job, round_)
    if now is None or job.masks is None:
        return {}
    if len(now.sent) < job.masks.least:
        raise PrivacyError(f"round {round_}: {len(now.sent)} clients sent, {job.masks.least} are needed: no share is given")
    board, letters = merge_masking_boards(given[:num_boards]), given[num_boards:]
    answers: dict[int, list[tuple[int, int]]] = {}
    for client in _asked(blocks, job, now):
        if client not in now.answering:
            continue
        for sender, letter in (pair for of_worker in letters for pair in of_worker.get(client, ())):
            text = keys.open_with_key(_channel(_letter_key(job, client), board[sender][1]), round_, sender, client, letter)
            half = text[keys.KEY_SHARE_BYTES :] if sender in now.sent else text[: keys.KEY_SHARE_BYTES]
            place = now.near[sender].index(client) + 1
            answers.setdefault(sender, []).append((place, int.from_bytes(half, "big")))
    return answers


def merge_masking_boards(boards: Sequence[MaskingBoard]) -> dict[int, tuple[bytes, bytes]]:
    return {client: found for board in boards for client, found in board.items()}


def _asked(blocks: Sequence[int], job: ClientJob, now: masked_round.MaskedRound) -> Iterator[int]:
    cut = cut_message_blocks(job.plan.facts.sizes.num_clients)
    return (client for block in blocks for client in cut[block] if client in now.near)


def _mask(value: np.ndarray, seed: bytes, pairs: Sequence[tuple[int, bytes]], round_: int, part: str, bits: int) -> np.ndarray:
    total = np.zeros_like(value)
    for sign, secret in ((1, seed), *pairs):
        keys.add_key_stream(total, secret, round_, part, bits, sign)
    return total


def _secrets(job: ClientJob, client: int, round_: int, now: masked_round.MaskedRound) -> _Secrets:
    """The secrets of a client in a round, from the client's own stream."""
    name = (job.key, round_, client)
    if name not in _of_round:
        if _of_round and next(iter(_of_round))[:2] != name[:2]:
            _of_round.clear()
            _pairs.clear()
        rng = seeds.secret_seeded_generator(job.root, *job.stream, "masks", client, round_, job.fingerprint)
        mask, seed = rng.bytes(32), rng.bytes(32)
        both = tuple([keys.key_field_element(rng.bytes(48)) for _ in range(now.threshold - 1)] for _ in range(2))
        _of_round[name] = _Secrets(mask, keys.private_key(mask), seed, both)
    return _of_round[name]


def _letter_key(job: ClientJob, client: int) -> X25519PrivateKey:
    return _letter_key_of(job.root, *job.stream, "letters", client, job.fingerprint)


@lru_cache(_MOST)
def _letter_key_of(root: int, *path: str | int | float) -> X25519PrivateKey:
    return keys.private_key(seeds.secret_seeded_generator(root, *path).bytes(32))


@lru_cache(_MOST)
def _channel(own: X25519PrivateKey, other: bytes) -> AESGCM:
    return keys.letter_key_channel(keys.agree_on_key(own, other))
