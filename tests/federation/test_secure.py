"""Secure aggregation with masks: the plain sum in the field is the oracle, bit for bit, whoever drops out."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.exceptions import InvalidTag
from scipy.stats import hypergeom

from fedgraph import run, seeds
from fedgraph.errors import PrivacyError, RuntimeFailure, UnboundedValueError
from fedgraph.federation import client as one_client
from fedgraph.federation import messages, rounds, server
from fedgraph.federation.messages import BlockMessage, ClientJob, ClientMessage, SecureMasks
from fedgraph.federation.round_attendance import Participation, draw_round_attendance
from fedgraph.federation.secure import keys, masked_round, masking, unmasking
from fedgraph.federation.secure import masked_plan as secure_plan
from fedgraph.methods import features, nonprivate, sage_node
from fedgraph.methods.base import Budget, PublicAttendanceFacts
from fedgraph.partition import uniform
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.accounting.discrete_gaussian import discrete_gaussian_event
from fedgraph.privacy.mechanisms.integer_shares import DiscreteGaussianShare, PlainShare
from fedgraph.privacy.settle import settle
from fedgraph.privacy.units import Assumption, Viewer
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.types import Graph, Partition
from tests.public_facts import public_facts

BUDGET = Budget(8.0, 1e-3)
_NUMBERS = itertools.count()
SCENARIO = """\
name: masked
runtime: {{engine: serial}}
datasets: [{{name: embedded/library}}]
tasks:
  - task: node_classification
    epsilons: [8]
    trust: [sums]
    partition: {{partition: uniform, clients: {clients}}}
    federation: {federation}
    methods: [{methods}]
"""


def job_of(
    library: Graph, clients: int, settings: Participation, method: Any = features, colluders: int = 1, **given: Any
) -> tuple[ClientJob, Partition]:
    partition = uniform.split(library, uniform.Params(clients=clients), seeds.seeded_generator(0, "deal"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = public_facts(library.num_nodes, library.num_features, library.num_classes, sizes, Viewer.SERVER_SECURE_AGGREGATION)
    facts = dataclasses.replace(facts, colluders=colluders)
    if not settings.everybody:
        facts = dataclasses.replace(facts, attendance=PublicAttendanceFacts("some", settings.answers_needed(clients)))
    plan = method.plan(method.Params(**given), facts, BUDGET)
    hidden = secure_plan.make_masked_plan(plan, BUDGET, method.num_sent(plan))
    who = (
        None if settings.everybody else draw_round_attendance(settings, clients, plan.schedule.rounds, facts.cohort, 0, ("t",))
    )
    masks = SecureMasks(colluders, facts.cohort, settings.drop_out)
    return ClientJob(f"t{next(_NUMBERS)}", 7, ("t",), hidden, "f", who, masks), partition  # workers remember jobs by their key


def sums_of(messages: list[ClientMessage] | list[BlockMessage]) -> dict[str, np.ndarray]:
    total: dict[str, np.ndarray] = {}
    for message in messages:
        for name, value in message.released.items():
            total[name] = value.value + total[name] if name in total else np.array(value.value)
    return total


WAYS = {
    "all, few": (12, Participation(secure_aggregation="masks")),
    "all, a ring": (40, Participation(secure_aggregation="masks")),
    "drop-outs, few": (10, Participation(secure_aggregation="masks", drop_out=0.3, least=4)),
    "drop-outs, a ring": (40, Participation(secure_aggregation="masks", drop_out=0.1)),
    "samples": (50, Participation(secure_aggregation="masks", sample="poisson", share=0.5, drop_out=0.1)),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_sum_in_the_field_is_the_plain_one_bit_for_bit(way: str, library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    clients, settings = WAYS[way]
    job, partition = job_of(library, clients, settings, steps=2)
    model = server.begin_at_server(job).model
    every = range(len(messages.cut_message_blocks(clients)))
    dropped, bits = 0, masked_round.masked_round_mechanism(job).bits
    for round_ in range(job.plan.schedule.rounds):
        now = masked_round.find_masked_round(job, round_)
        assert now is not None
        dropped += len(now.asked) - len(now.sent)
        board = masking.advertise_masking_keys(every, job, round_)
        letters = masking.share_masking_secrets(every, job, round_, board)
        hidden = sums_of(one_client.run_client_blocks(every, partition.subgraphs, job, model, round_, board))
        answers = masking.answer_masking_shares(every, job, round_, 1, board, letters)
        opened = unmasking.unmasking_sums(now, round_, hidden, board, [answers], bits)
        with monkeypatch.context() as plainly:
            plainly.setattr(one_client, "apply_masking", lambda job, client, round_, released, board: released)
            plain = sums_of(one_client.run_client_blocks(every, partition.subgraphs, job, model, round_, board))
        assert plain["gradient"].dtype == opened["gradient"].dtype
        field = plain["gradient"].dtype.type(2**bits - 1)
        assert np.array_equal(opened["gradient"] & field, plain["gradient"] & field)
        assert (hidden["gradient"] & field == plain["gradient"] & field).mean() < 0.01
    assert (dropped > 0) == (settings.drop_out > 0)


def test_a_few_clients_with_many_nodes_fit_into_the_sum_without_noise(library: Graph) -> None:
    """Parameters times 20,000 labelled nodes have a place among three clients, and so has all that is allowed."""
    job, _ = job_of(library, 3, Participation(secure_aggregation="masks"), nonprivate, rounds=1)
    share = masked_round.masked_round_mechanism(job)
    assert isinstance(share, PlainShare)
    rng = np.random.default_rng(0)
    for most in (20_000.0, share.largest * share.step):
        value = np.array([most, -most, 1 / 3])
        total = share.apply(value, rng) + share.apply(value, rng) + share.apply(value, rng)
        assert np.allclose(share.opened(total), 3 * value, rtol=1e-12, atol=4 * share.step)
    with pytest.raises(UnboundedValueError, match="is larger than"):
        share.apply(np.array([1.01 * share.largest * share.step]), rng)


def test_what_a_client_sends_looks_like_coins(library: Graph) -> None:
    """Eight bits of one message, from wherever, are uniform, though its numbers are small; another round's differ."""
    job, partition = job_of(library, 20, Participation(secure_aggregation="masks"), model="mlp", projection="none", steps=3)
    model = server.begin_at_server(job).model
    every = range(len(messages.cut_message_blocks(20)))
    sent = []
    for round_ in range(2):
        board = masking.advertise_masking_keys(every, job, round_)
        message = one_client._run_client(3, partition.subgraphs, job, model, round_, board)
        sent.append(message.released["gradient"].value)
        bits, expected = masked_round.masked_round_mechanism(job).bits, sent[-1].size / 256
        assert sent[-1].max() < 2**bits
        for byte in (0, 8, bits - 8):
            counts = np.bincount((sent[-1] >> np.uint32(byte)) & np.uint32(255), minlength=256)
            assert ((counts - expected) ** 2 / expected).sum() < 255 + 6 * np.sqrt(2 * 255)
    assert (sent[0] == sent[1]).mean() < 0.01


def test_nobody_gives_shares_of_both_secrets_of_one_client(library: Graph) -> None:
    job, _ = job_of(library, 60, Participation(secure_aggregation="masks", drop_out=0.1), steps=2)
    now = masked_round.find_masked_round(job, 0)
    assert now is not None
    every = range(len(messages.cut_message_blocks(60)))
    board = masking.advertise_masking_keys(every, job, 0)
    answers = masking.answer_masking_shares(every, job, 0, 1, board, masking.share_masking_secrets(every, job, 0, board))
    for asked in now.asked:
        secrets = masking._secrets(job, asked, 0, now)
        places = [place for place, _ in answers[asked]]
        assert len(places) == len(set(places)) >= now.threshold
        found = keys.recover_key_secret(dict(answers[asked][: now.threshold]))
        assert found == (secrets.seed if asked in now.sent else secrets.mask)


def test_too_few_shares_abort_the_round_and_say_nothing(library: Graph) -> None:
    job, _ = job_of(library, 12, Participation(secure_aggregation="masks"), colluders=3, steps=2)
    now = masked_round.find_masked_round(job, 0)
    assert now is not None
    assert now.threshold == 4
    every = range(12)
    board = masking.advertise_masking_keys(every, job, 0)
    answers = masking.answer_masking_shares(every, job, 0, 1, board, masking.share_masking_secrets(every, job, 0, board))
    with pytest.raises(RuntimeFailure, match="3 shares of client 0's secret came, 4 are needed"):
        unmasking.unmasking_sums(now, 0, {"gradient": np.zeros(4, np.uint32)}, board, [{0: answers[0][:3]}], 24)
    secret = masking._secrets(job, 0, 0, now).seed
    assert keys.recover_key_secret(dict(answers[0][:4])) == secret
    assert keys.recover_key_secret(dict(answers[0][:3])) != secret


def test_no_share_is_given_for_a_sum_of_too_few(library: Graph) -> None:
    job, _ = job_of(library, 12, Participation(secure_aggregation="masks"), steps=2)
    board = masking.advertise_masking_keys(range(12), job, 0)
    letters = masking.share_masking_secrets(range(12), job, 0, board)
    strict = dataclasses.replace(job, masks=SecureMasks(1, 13))
    masked_round._latest[strict.key, 0] = masked_round.find_masked_round(job, 0)  # type: ignore[assignment]
    with pytest.raises(PrivacyError, match="12 clients sent, 13 are needed"):
        masking.answer_masking_shares(range(12), strict, 0, 1, board, letters)


def test_no_key_of_a_stream_and_no_nonce_of_a_letter_is_used_twice() -> None:
    """Two parts under one stream would show their difference; two letters under one nonce, both and the key that signs them."""
    streams = set()
    for secret, round_, part in itertools.product(
        (bytes(32), bytes(31) + b"x"), (0, 1, 11), ("gradient", "1 gradient", "labels")
    ):
        numbers = np.zeros(4, dtype=np.uint64)
        keys.add_key_stream(numbers, secret, round_, part, 64, 1)
        streams.add(numbers.tobytes())
    assert len(streams) == 2 * 3 * 3
    nonces = {keys._letter(r, s, b"", o)[0] for r, s, o in itertools.product(range(3), (0, 1, 256), (0, 1, 256)) if s != o}
    assert len(nonces) == 3 * 3, "of a pair each end has its own"
    channel = keys.letter_key_channel(bytes(32))
    letter = keys.seal_with_key(channel, 2, 0, 1, b"shares")
    assert keys.open_with_key(channel, 2, 0, 1, letter) == b"shares"
    for round_, sender, recipient in ((1, 0, 1), (2, 1, 0), (2, 0, 2)):
        with pytest.raises(InvalidTag):
            keys.open_with_key(channel, round_, sender, recipient, letter)


def test_what_opens_one_round_opens_no_other(library: Graph) -> None:
    """Of who sent the seed is given away, of who did not the mask key: of one secret for all rounds both would be known."""
    job, _ = job_of(library, 12, Participation(secure_aggregation="masks"), steps=3)
    known: list[object] = []
    for other in (job, dataclasses.replace(job, key=f"{job.key} again", fingerprint="other settings")):
        for round_ in range(3):
            now = masked_round.find_masked_round(other, round_)
            assert now is not None
            own = [masking._secrets(other, client, round_, now) for client in now.asked]
            known += [part for one in own for part in (one.mask, one.seed, *map(tuple, one.coefficients))]
    assert len(known) == 2 * 3 * 12 * 4
    assert len(set(known)) == len(known)


def test_shares_give_a_secret_back_from_any_threshold_of_them() -> None:
    rng = np.random.default_rng(0)
    secret, coefficients = rng.bytes(32), [keys.key_field_element(rng.bytes(48)) for _ in range(4)]
    shares = dict(enumerate(keys.split_key_secret(secret, coefficients, 9), 1))
    for _ in range(20):
        places = rng.permutation(9)[:5] + 1
        assert keys.recover_key_secret({int(p): shares[int(p)] for p in places}) == secret
    assert pow(3, keys._PRIME - 1, keys._PRIME) == 1  # Fermat: 2^256 + 297 passes


def test_neighbours_grow_like_the_logarithm() -> None:
    found = {n: masked_round._ring_shape(n, round(0.93 * n), 1, rounds=1).neighbours for n in (100, 1_000, 10_000, 100_000)}
    assert found[1_000] < 20
    assert found[100_000] - found[10_000] <= 4
    assert masked_round._ring_shape(5, 5, 1, rounds=1) == masked_round._Shape(4, 2)  # few: all are neighbours of all
    near = masked_round._mask_neighbours(np.random.default_rng(0).permutation(50), 8)
    assert all(len(set(of_one)) == 8 and one not in of_one for one, of_one in near.items())
    assert all(one in near[other] for one, of_one in near.items() for other in of_one)


def test_what_may_fail_is_bounded_over_all_rounds() -> None:
    """Of 1,000 rounds each may fail with 2^−40 / 1,000 only: no run pays for its length with secrecy."""
    once, often = (masked_round._ring_shape(2_000, 1_900, 100, rounds=rounds) for rounds in (1, 1_000))
    assert often.neighbours >= once.neighbours
    assert (often.neighbours, often.threshold) != (once.neighbours, once.threshold)
    told = 2_000 * 1_000 * hypergeom.sf(often.threshold - 1, 1_999, 100, often.neighbours)
    assert told <= masked_round._SECRET < 2_000 * 1_000 * hypergeom.sf(once.threshold - 1, 1_999, 100, once.neighbours)
    with pytest.raises(PrivacyError, match="at least one round"):
        masked_round._ring_shape(100, 90, 1, rounds=0)


@pytest.mark.parametrize(("asked", "least", "colluders"), [(200, 180, 1), (200, 190, 20), (1_000, 930, 50)])
def test_rings_hold_where_clients_drop_out_and_collude(asked: int, least: int, colluders: int) -> None:
    shape = masked_round._ring_shape(asked, least, colluders, rounds=1)
    rng = np.random.default_rng(0)
    for _ in range(10):
        near = masked_round._mask_neighbours(rng.permutation(asked), shape.neighbours)
        gone = set(rng.permutation(asked)[: asked - least + colluders].tolist())
        bad = set(list(gone)[:colluders])
        assert all(len(bad.intersection(of_one)) < shape.threshold for one, of_one in near.items() if one not in bad)
        stays = set(range(asked)) - gone
        reached, ahead = set(), [min(stays)]
        while ahead:
            one = ahead.pop()
            if one not in reached:
                reached.add(one)
                ahead += [o for o in near[one] if o in stays]
        assert reached == stays


@pytest.mark.parametrize("clients", [10, 60])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_noise_behind_masks_costs_at_most_the_target(clients: int, epsilon: float, library: Graph) -> None:
    sizes = (library.num_nodes // clients,) * clients
    facts = public_facts(library.num_nodes, library.num_features, library.num_classes, sizes, Viewer.SERVER_SECURE_AGGREGATION)
    budget = Budget(epsilon, 1e-5)
    for colluders in (1, 3):
        ideal = features.plan(features.Params(steps=20), dataclasses.replace(facts, colluders=colluders), budget)
        hidden = secure_plan.make_masked_plan(ideal, budget, features.num_sent(ideal))
        assert 0.98 * epsilon < hidden.provable().epsilon <= epsilon
        (release,) = hidden.schedule.releases
        assert isinstance(release.mechanism, DiscreteGaussianShare)
        honest = release.mechanism.std * release.mechanism.step * np.sqrt(clients - colluders)
        plain = ideal.schedule.releases[0].mechanism.std * np.sqrt(clients - colluders)  # type: ignore[attr-defined]
        assert plain < honest < 1.15 * plain  # discrete noise, its zCDP price and rounding: never less, not much more
        assert hidden.guarantee.protection.colluders == (colluders if colluders > 1 else None)
        assert Assumption.IDEAL_SECURE_AGGREGATION not in hidden.guarantee.protection.assumptions


def test_the_price_is_that_of_honest_noise_alone(library: Graph) -> None:
    """The event says what ``least`` − colluders shares of the mechanism's own noise say; with ⅔ of it the target is missed."""
    job, _ = job_of(library, 12, Participation(secure_aggregation="masks"), colluders=2, steps=5)
    (release,) = job.plan.schedule.releases
    mechanism = release.mechanism
    assert isinstance(mechanism, DiscreteGaussianShare)
    sensitivity = release.bound.clip / mechanism.step  # type: ignore[attr-defined]  # one node's clipped gradient, in steps
    assert sensitivity == pytest.approx(round(sensitivity))
    failure = secure_plan._FAILURES * job.plan.guarantee.delta / 5
    event = discrete_gaussian_event(round(sensitivity), mechanism.std, 10, mechanism.dimension, failure)
    assert price(event, 1e-3).epsilon == pytest.approx(price(release.event, 1e-3).epsilon, rel=1e-9)
    weaker = discrete_gaussian_event(round(sensitivity), mechanism.std * 2 / 3, 10, mechanism.dimension, failure)
    assert price(weaker, 1e-3).epsilon > 1.3 * price(release.event, 1e-3).epsilon


def test_training_behind_masks_is_training(library: Graph) -> None:
    """Without noise only the fixed point differs from plain sums; the ledger holds the rounds in which each client answered."""
    settings = Participation(secure_aggregation="masks", sample="fixed", share=0.6, drop_out=0.2)
    job, partition = job_of(library, 20, settings, nonprivate, model="gcn", rounds=2, validation=0, client_optimiser="sgd")
    results = []
    for masks in (job.masks, None):
        runtime = SerialRuntime()
        plan = job.plan
        if masks is None:
            plan = nonprivate.plan(plan.params, plan.facts, BUDGET)
        shared = runtime.share("partition", partition)
        results.append(
            rounds.run_rounds(
                runtime, shared, plan, 0, ("x",), ("x",), rounds.RoundPrefixes(), attendance=job.attendance, masks=masks
            )
        )
    one, two = (found.state.model["parameters"] for found in results)
    assert np.abs(one - two).max() < 1e-6
    assert job.attendance is not None
    made = dict.fromkeys(range(20), 0)
    for line in results[0].releases:
        for first, last in line.clients:
            for c in range(first, last + 1):
                made[c] += line.of_one_client
    assert [made[c] for c in range(20)] == job.attendance.answered.sum(axis=0).tolist()


def test_settled_with_what_was_answered(library: Graph) -> None:
    job, partition = job_of(library, 20, Participation(secure_aggregation="masks", drop_out=0.3), steps=6)
    runtime = SerialRuntime()
    done = rounds.run_rounds(
        runtime, runtime.share("p", partition), job.plan, 3, ("x",), ("x",), rounds.RoundPrefixes(), attendance=job.attendance,
        masks=job.masks,
    )  # fmt: skip
    assert job.attendance is not None
    most = int(job.attendance.answered.sum(axis=0).max())
    spent = settle(job.plan.guarantee, done.releases).epsilon
    assert spent <= job.plan.provable().epsilon
    assert (spent == job.plan.provable().epsilon) == (most == job.plan.schedule.rounds)
    word = 4
    up = max(up for _, up in done.sizes)
    assert up > features.num_sent(job.plan) * job.plan.schedule.releases[0].mechanism.bits / 8  # type: ignore[attr-defined]
    assert up < features.num_sent(job.plan) * word + 20 * 200


@pytest.mark.parametrize(
    ("federation", "methods", "said"),
    [
        ("{resolution: 64}", "{method: features}", "resolution is for secure_aggregation: masks only"),
        ("{secure_aggregation: masks}\n    colluders: 9", "{method: features}", "at least 11 have to answer"),
        ("{secure_aggregation: masks}", "{method: sage_node}", "allowed|is for features, nonprivate"),
        ("{secure_aggregation: masks, resolution: 3}", "{method: features}", "greater than or equal to 4|at least 4"),
        ("{sample: poisson, share: 0.000001, least: 2}", "{method: features}", "none of 60 rounds has the 2 answers"),
        ("{secure_aggregation: mask}", "{method: features}", "ideal"),
    ],
)
def test_what_cannot_be_hidden_is_one_line(federation: str, methods: str, said: str, tmp_path: Path) -> None:
    assert sage_node.OFFERS.kind == "classifier"
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.format(clients=10, federation=federation, methods=methods))
    with pytest.raises(Exception, match=said) as caught:
        run(path, out=tmp_path / "out")
    assert len(str(caught.value).splitlines()) <= 2


def test_a_scenario_says_what_was_carried_out(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    federation = "{secure_aggregation: masks, drop_out: 0.2}\n    colluders: 2"
    path.write_text(SCENARIO.format(clients=12, federation=federation, methods="{method: features, steps: 4}"))
    run(path, out=tmp_path / "out")
    ledger = (tmp_path / "out" / "ledger.jsonl").read_text()
    assert "masked-secure-aggregation" in ledger
    account = json.loads(ledger.splitlines()[0])
    assert '"colluders": 2' in json.dumps(account)
    assert "discrete Gaussian noise" in ledger
