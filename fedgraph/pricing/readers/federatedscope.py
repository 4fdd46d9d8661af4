"""FederatedScope: a YAML configuration with ``nbafl``, ``sgdmf`` or ``vertical.protect_method: dp`` or ``op_boost``.

What is proven of each: ``docs/how_deployed_noise_is_priced.md``.
"""

import itertools
import math

import numpy as np

from fedgraph.errors import PricingError
from fedgraph.pricing import costs
from fedgraph.pricing.base import SERVER, Published, Reading, Row
from fedgraph.pricing.documents import Document
from fedgraph.pricing.formats import table
from fedgraph.pricing.options import Options
from fedgraph.privacy.shapes import Array

RATES, FEATURES = (0.1, 0.01, 0.001), (100.0, 10.0, 1.0)
WIDEST, TREES = 2000, ("xgb", "gbdt", "rf")
VERTICAL = ("labels and gradients, which this option does not touch", "who is in the data set",
            "sizes of buckets, and split values, which come from the raw data")  # fmt: skip


def read(document: Document) -> Reading:
    options = Options(document)
    nbafl, sgdmf, vertical = (options.table(name) for name in ("nbafl", "sgdmf", "vertical"))
    used = [name for name, held in (("nbafl", nbafl), ("sgdmf", sgdmf)) if held.flag("use")]
    method, parties = vertical.raw("protect_method"), vertical.flag("use")
    protected, kind = vertical.raw("protect_object"), vertical.raw("algo")
    if method in ("dp", "op_boost") and parties and protected == "feature_order" and kind in TREES:
        used.append(str(method))
    if not used:
        more = "; protect_method he encrypts and adds no noise" if method == "he" else ""
        if method in ("dp", "op_boost"):
            more = f"; protect_method {method} works with use: true, protect_object: feature_order, algo: {', '.join(TREES)}"
            more += f" (found {parties}, {protected}, {kind})"
        reason = f"no option of differential privacy is in use: clients send in clear{more}"
        return _clear(reason, "switch one on first", tuple(options.rest))
    if len(used) != 1:
        raise PricingError(f"{document.path}:1: {len(used)} of nbafl, sgdmf and vertical dp are in use; one is priced per file")
    rounds = options.table("federate").whole("total_round_num", None, 0)
    if used == ["nbafl"]:
        epsilon = nbafl.number("epsilon", 100.0, above=True) or 100.0
        nbafl.without_price(["mu", "w_clip", "constant"])
        nbafl.finish()
        reason = "clients add noise to weights that nothing bounds before they are sent: no sensitivity, no ε"
        claim = Published(epsilon, None, "total", "nbafl.epsilon; its documentation says the ε-DP guarantee used in NbAFL")
        return _clear(reason, "clip updates on the client first; no option does", tuple(options.rest), rounds or 1, claim)
    return (
        _sgdmf(document, options, sgdmf) if used == ["sgdmf"] else _vertical(document, vertical, tuple(options.rest), used[0])
    )


def _clear(reason: str, no_fix: str, rest: tuple[str, ...], rounds: int = 1, claim: Published | None = None) -> Reading:
    said = claim or Published(None, None, "none", "no ε is claimed")
    open_ = "every client's weights" if claim else "everything"
    return costs.in_clear("client", SERVER, reason, no_fix, rounds, "replace", published=(said,), not_priced=rest,
                          unprotected=(open_,))  # fmt: skip


def _sgdmf(document: Document, options: Options, held: Options) -> Reading:
    batch = options.table("dataloader").number("batch_size", None, above=True)
    users, train = options.table("model").number("num_user", None, above=True), options.table("train")
    steps, epochs = train.whole("local_update_steps", 1, 1) or 1, train.raw("batch_or_epoch") == "epoch"
    epsilon, stated = held.number("epsilon", 4.0, above=True) or 4.0, held.delta("delta", 0.5)
    constant = held.number("constant", 1.0, above=True) or 1.0
    held.without_price(["R"])
    held.finish()
    if stated is None or stated <= 0:
        raise held.error("delta", "delta: a number in (0, 1) is needed")
    question = "Which share of the users is a batch (dataloader.batch_size / model.num_user)?"
    known = min(1.0, batch / users) if batch and users else None
    share, at = document.answers.ask("batch share", question, RATES, known=known), min(stated, 1e-5)
    visits = 1 / share if epochs else max(1.0, math.ceil(steps * share) / steps / share)  # for each that is counted
    mu = epsilon * math.sqrt(visits / (share * constant * math.log(1 / stated))) / document.louder
    why = f"a rating may be in a batch of every pass, μ = {mu:.4g} in all, read at δ = {at:g}: δ = {stated:g} would let that "
    why += "share of runs fail"
    claim = Published(epsilon, stated, "total", f"sgdmf.epsilon and sgdmf.delta = {stated:g}")
    order = (
        "Noise on gradients of embeddings bounded by R^1.5 as the paper has it; visits compose; no amplification for shuffling."
    )
    row = Row("rating", "replace", SERVER, costs.gaussian(1 / mu), 1, at, why)
    return Reading((row,), (claim,), ("a user with several ratings",), tuple(options.rest), (order,),
                   {"sgdmf.epsilon": epsilon / document.louder}, people=users)  # fmt: skip


def _vertical(document: Document, held: Options, rest: tuple[str, ...], method: str) -> Reading:
    listed = held.raw("protect_args")
    args = Options(document, table(listed[0]) if isinstance(listed, list) and listed else {}, ("vertical", "protect_args"))
    features = int(document.answers.ask("features", "How many features does one party order and send?", FEATURES))
    if method == "dp":
        epsilon, buckets = args.number("epsilon", None, above=True), args.whole("bucket_num", 100, 1) or 1
        if epsilon is None:
            raise held.error("protect_args", "protect_args needs an epsilon > 0 (without it the order is in clear: ∞)")
        spent, names = buckets * epsilon / document.louder, {"epsilon": epsilon}
        words = f"ranks are cut into {buckets} buckets: a sample that moves takes one other along at each of their edges,"
    else:
        spent, names = _op_boost(document, args)
        words = "one sample's value among the whole numbers of a public range"
        question = "Is the range of every feature public (op_boost takes minimum and maximum of the data)?"
        if not document.answers.whether("range is public", question):
            reason = "values are mapped by minimum and maximum of the data: one sample that is one of them moves all others"
            return _clear(reason, "op_boost has no option for a public range", rest, 1,
                          Published(sum(names.values()), 0.0, "per feature", "protect_args"))  # fmt: skip
    why = f"{words} in {features} features at ε = {spent:g} each; they add up"
    settings = {f"vertical.protect_args[0].{name}": value / document.louder for name, value in names.items()}
    claim = Published(sum(names.values()), 0.0, "per feature", f"protect_args {', '.join(names)}")
    row = Row("record", "replace", SERVER, costs.pure(spent), features, 0.0, why)
    return Reading((row,), (claim,), VERTICAL, rest, settings=settings)


def _op_boost(document: Document, args: Options) -> tuple[float, dict[str, float]]:
    """(ε of one value: the largest logarithm of a ratio of its answers' probabilities, the options that hold it)."""
    kind = args.choice("algo", ("global", "adjusting"), "global")
    low, high = args.whole("lower_bound", 1, 0) or 0, args.whole("upper_bound", 100, 0) or 0
    if not low < high <= low + WIDEST:
        raise args.error("upper_bound", f"upper_bound: found {high}; allowed: above lower_bound {low}, by at most {WIDEST:,}")
    values = np.arange(low, high + 1.0)
    if kind == "global":
        epsilon = args.number("epsilon", 2.0, above=True) or 2.0
        logs = _answers(values, values, epsilon / document.louder)
        return float((logs.max(axis=0) - logs.min(axis=0)).max()), {"epsilon": epsilon}
    first, second = (args.number(name, 2.0, above=True) or 2.0 for name in ("epsilon_prt", "epsilon_ner"))
    parts = args.whole("partition_num", 10, 1) or 10
    cuts = np.percentile(np.arange(low - 1, high + 1), np.linspace(0, 100, parts + 1))
    edges = [int(cut) for cut in np.round(cuts)]
    if (np.diff(edges) < 1).any():
        raise args.error(
            "partition_num", f"partition_num: found {parts}; allowed: up to one for each whole number of the range"
        )
    own = np.searchsorted(edges, values).astype(np.float64) - 1  # edges[k] < value ≤ edges[k + 1]
    chosen = _answers(own, np.arange(float(parts)), first / document.louder)
    inside = [_answers(values, np.arange(a + 1.0, b + 1), second / document.louder) for a, b in itertools.pairwise(edges)]
    logs = np.concatenate([chosen[:, [k]] + part for k, part in enumerate(inside)], axis=1)
    return float((logs.max(axis=0) - logs.min(axis=0)).max()), {"epsilon_prt": first, "epsilon_ner": second}


def _answers(held: Array, allowed: Array, epsilon: float) -> Array:
    """ln P(answer | value) of an answer ∝ e^(−|value − answer|·ε/2); a row for each value."""
    weights = -np.abs(held[:, None] - allowed[None, :]) * epsilon / 2
    return np.asarray(weights - np.logaddexp.reduce(weights, axis=1, keepdims=True))
