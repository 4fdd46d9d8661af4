"""FederatedScope: a YAML configuration with ``nbafl``, ``sgdmf`` or ``vertical.protect_method: dp``.

nbafl      std = w_clip·T·constant/(n·ε) on every uploaded weight. Clients do not clip before they upload (the server clips
what it
           broadcasts), so that one client's upload is bounded by nothing: ∞ for the server.
sgdmf      std = σ·R^1.5 on gradients of embeddings, σ = q·√(constant·T·ln(1/δ))/ε with q = batch/users, T all steps. Batches
are
           shuffled: a user's rating is visited q·T times, and μ = √(qT)/σ = ε/√(q·constant·ln(1/δ)).
vertical   each sample's bucket order answered at ε per feature: pure ε times the number of features.
"""

from __future__ import annotations

import math

from fedgraph.errors import PricingError
from fedgraph.pricing import costs
from fedgraph.pricing.base import SERVER, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options

SYSTEM = "FederatedScope"
VERSION = "federatedscope 0.3.0"
SOURCE = (
    "alibaba/FederatedScope at 480b67de (2023-10-19): core/configs/cfg_differential_privacy.py, "
    "core/trainers/trainer_nbafl.py, "
    "mf/trainer/trainer_sgdmf.py, vertical_fl/README.md; read 2026-11-21"
)
SAID = (
    "Its tables call epsilon and delta the parameters used in DP (defaults 100; 4 with δ = 0.5) and refer to the papers "
    "for proofs."
)
RATES, FEATURES = (0.1, 0.01, 0.001), (100.0, 10.0, 1.0)


def recognises(document: Document) -> bool:
    keys = document.data
    return document.kind == "yaml" and (bool({"nbafl", "sgdmf"} & set(keys)) or ("federate" in keys and "vertical" in keys))


def read(document: Document) -> Reading:
    options = Options(document, document.data)
    nbafl, sgdmf, vertical = options.table("nbafl"), options.table("sgdmf"), options.table("vertical")
    used = [name for name, table in (("nbafl", nbafl), ("sgdmf", sgdmf)) if table.flag("use")]
    if vertical.raw("protect_method") == "dp":
        used.append("vertical")
    if not used:
        return _clear("no option of differential privacy is in use: clients send in clear", tuple(options.rest))
    if len(used) != 1:
        raise PricingError(f"{document.path}:1: {len(used)} of nbafl, sgdmf and vertical dp are in use; one is priced per file")
    federate = options.table("federate")
    rounds = federate.whole("total_round_num", None, 0)
    rest = tuple(options.rest)
    if used == ["nbafl"]:
        return _nbafl(nbafl, rounds, rest)
    return _sgdmf(sgdmf, _share(options), tuple(options.rest)) if used == ["sgdmf"] else _vertical(vertical, rest)


def _clear(reason: str, rest: tuple[str, ...]) -> Reading:
    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        return (Row("client", "replace", SERVER, costs.unprotected(reason), 1, 0.0, reason),)

    return Reading(
        rows, (Published(None, None, "none", "no ε is claimed"),), (), ("everything",), rest, no_fix="switch one on first"
    )


def _nbafl(table: Options, rounds: int | None, rest: tuple[str, ...]) -> Reading:
    epsilon = table.number("epsilon", 100.0, above=True) or 100.0
    table.without_price(["mu", "w_clip", "constant"])
    table.finish()
    reason = "clients add noise to weights that nothing bounds before they are sent: no sensitivity, no ε"

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        return (Row("client", "replace", SERVER, costs.unprotected(reason), rounds or 1, 0.0, reason),)

    published = (Published(epsilon, None, "total", "nbafl.epsilon; its documentation says the ε-DP guarantee used in NbAFL"),)
    return Reading(
        rows, published, (), ("every client's weights",), rest, no_fix="clip updates on the client first; no option does"
    )


def _share(options: Options) -> float | None:
    """dataloader.batch_size / model.num_user, where the file has both."""
    batch = options.table("dataloader").number("batch_size", None, above=True)
    users = options.table("model").number("num_user", None, above=True)
    return min(1.0, batch / users) if batch and users else None


def _sgdmf(table: Options, known: float | None, rest: tuple[str, ...]) -> Reading:
    epsilon, stated = table.number("epsilon", 4.0, above=True) or 4.0, table.delta("delta", 0.5)
    constant = table.number("constant", 1.0, above=True) or 1.0
    table.without_price(["R"])
    table.finish()
    if stated is None or stated <= 0:
        raise table.error("delta", "delta: a number in (0, 1) is needed")
    at = min(stated, 1e-5)

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        share = known if known is not None else facts["batch share"]
        mu = epsilon / math.sqrt(share * constant * math.log(1 / stated)) / factor
        why = (
            f"ratings visited batch by batch, μ = {mu:.4g} in all, read at δ = {at:g}: δ = {stated:g} would let that share "
            "of runs fail"
        )
        return (Row("rating", "replace", SERVER, costs.gaussian(1 / mu), 1, at, why),)

    def settings(factor: float) -> dict[str, Setting]:
        return {"sgdmf.epsilon": epsilon / factor}

    claim = (Published(epsilon, stated, "total", f"sgdmf.epsilon and sgdmf.delta = {stated:g}"),)
    asked = (Unknown("batch share", "Which share of the users is a batch (dataloader.batch_size / model.num_user)?", RATES),)
    order = (
        (
            "Noise on gradients of embeddings bounded by R^1.5 as the paper has it; visits compose; no amplification for "
            "shuffling."
        ),
    )
    unknown = () if known is not None else asked
    return Reading(rows, claim, unknown, ("a user with several ratings",), rest, order, settings)


def _vertical(table: Options, rest: tuple[str, ...]) -> Reading:
    args = table.raw("protect_args")
    first = args[0] if isinstance(args, list) and args and isinstance(args[0], dict) else {}
    epsilon = first.get("epsilon")
    if not isinstance(epsilon, (int, float)) or isinstance(epsilon, bool) or epsilon <= 0:
        raise table.error(
            "protect_args", f"protect_args needs an epsilon > 0, found {epsilon!r} (without it the order is in clear: ∞)"
        )

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        count = int(facts["features"])
        why = f"one sample's bucket in {count} features at ε = {epsilon / factor:g} each; they add up"
        return (Row("record", "replace", SERVER, costs.pure(epsilon / factor), count, 0.0, why),)

    def settings(factor: float) -> dict[str, Setting]:
        return {"vertical.protect_args[0].epsilon": epsilon / factor}

    asked = (Unknown("features", "How many features does one party order and send?", FEATURES),)
    unprotected = ("labels and gradients, which this option does not touch", "who is in the data set")
    return Reading(rows, (Published(float(epsilon), 0.0, "per feature", "protect_args epsilon"),), asked, unprotected, rest,
                   settings=settings)  # fmt: skip
