"""The server in a masked round: it rebuilds the masks that are left in the sum, takes them away, and reads the sum."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedgraph.errors import RuntimeFailure
from fedgraph.federation import server
from fedgraph.federation.messages import ClientJob, MessageReceipt
from fedgraph.federation.secure import keys, masked_round
from fedgraph.federation.secure.masking import MaskingAnswers, MaskingBoard, merge_masking_boards
from fedgraph.methods.base import State
from fedgraph.privacy.mechanisms.integer_shares import integer_share_type


def merge_unmasking(
    job: ClientJob,
    state: State,
    round_: int,
    sent: Sequence[Any],
    boards: Sequence[MaskingBoard],
    answers: Sequence[MaskingAnswers],
) -> tuple[State, MessageReceipt]:
    """As ``federation.server.merge_at_server``. boards: the public keys. answers: shares that were given back."""
    now = masked_round.find_masked_round(job, round_)

    def opened(sums: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if now is None:
            return sums
        mechanism = masked_round.masked_round_mechanism(job)
        return {
            name: mechanism.opened(total)
            for name, total in unmasking_sums(now, round_, sums, merge_masking_boards(boards), answers, mechanism.bits).items()
        }

    after, receipt = server.merge_at_server(job, state, round_, sent, opened)
    if now is None:
        return after, receipt
    down, up = _wire_bytes(job, now, receipt)
    return after, MessageReceipt(receipt.round, receipt.releases, down, up, receipt.messages)


def unmasking_sums(
    now: masked_round.MaskedRound,
    round_: int,
    sums: dict[str, np.ndarray],
    board: MaskingBoard,
    answers: Sequence[MaskingAnswers],
    bits: int,
) -> dict[str, np.ndarray]:
    """``sums`` without the masks: the seeds of who sent, and the streams between who sent and who did not.

    Args:
        now: the round.
        round_: its number.
        sums: name → masked sum.
        board: the public keys.
        answers: shares that were given back.
        bits: of the modulus.

    Raises:
        RuntimeFailure: shares are missing, or do not give a client's key.
    """
    totals = {name: np.array(total) for name, total in sums.items()}
    for client in now.asked:
        secret = _rebuilt(client, now.threshold, round_, answers)
        if client in now.sent:
            _add(totals, secret, round_, bits, -1)
            continue
        own = keys.private_key(secret)
        if keys.public_key(own) != board[client][0]:
            raise RuntimeFailure(f"round {round_}: the shares of client {client} do not give its key; round aborted")
        for other in now.near[client]:
            if other in now.sent:
                _add(totals, keys.agree_on_key(own, board[other][0]), round_, bits, -1 if other < client else 1)
    return totals


def _wire_bytes(job: ClientJob, now: masked_round.MaskedRound, receipt: MessageReceipt) -> tuple[int, int]:
    """(down, up) of one client: keys, sealed shares, masked numbers of ``bits`` bits each, who sent, and shares."""
    k = len(next(iter(now.near.values())))
    size = np.dtype(integer_share_type(masked_round.masked_round_mechanism(job).bits)).itemsize
    letter = 2 * keys.KEY_SHARE_BYTES + keys.KEY_TAG_BYTES
    numbers = -(-(receipt.up // size) * masked_round.masked_round_mechanism(job).bits // 8)
    up = 2 * keys.PUBLIC_KEY_BYTES + k * letter + numbers + k * keys.KEY_SHARE_BYTES
    down = receipt.down + k * (2 * keys.PUBLIC_KEY_BYTES + letter) + -(-k // 8)
    return down, up


def _rebuilt(client: int, threshold: int, round_: int, answers: Sequence[MaskingAnswers]) -> bytes:
    shares = [pair for found in answers for pair in found.get(client, ())]
    if len(shares) < threshold:
        raise RuntimeFailure(
            f"round {round_}: {len(shares)} shares of client {client}'s secret came, {threshold} are needed; round aborted"
        )
    return keys.recover_key_secret(dict(shares[:threshold]))


def _add(totals: dict[str, np.ndarray], secret: bytes, round_: int, bits: int, sign: int) -> None:
    for name, total in totals.items():
        keys.add_key_stream(total, secret, round_, name, bits, sign)
