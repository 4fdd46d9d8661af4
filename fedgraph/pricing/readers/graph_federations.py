"""FederatedScope, FedGraph (CMU) and OpenFGL: federated learning, also on graphs, with an option of privacy.

What is proven of FederatedScope's: ``docs/how_deployed_noise_is_priced.md``.
"""

import itertools
import math
from dataclasses import replace

import numpy as np

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, readings
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.options import Options
from fedgraph.pricing.parsers import parsed_mapping
from fedgraph.pricing.readings import PRICE_TO_SERVER, PRICE_TO_WORLD, PublishedReading, Reading, ReadingRow, reading_in_clear
from fedgraph.privacy.fields import ArrayField

_WIDEST, _TREES = 2000, ("xgb", "gbdt", "rf")
_VERTICAL = ("labels and gradients, which this option does not touch", "who is in the data set",
            "sizes of buckets, and split values, which come from the raw data")  # fmt: skip
_IN_CLEAR = {  # mechanism of FedGraph (CMU) → why nothing is proven of it, and how the sum is sent
    "off": ("use_dp is off", "use_dp is off: features' sums are in clear"),
    "local": ("signs flip, sizes stay in clear", "signs are flipped; the sizes of the values stay in clear"),
    "laplace": ("clipped in L2, noised for L1", "clipped in L2, but Laplace noise needs a bound in L1"),
}


def read_federatedscope_federation(document: PricedDocument) -> Reading:
    """A YAML configuration with ``nbafl``, ``sgdmf`` or ``vertical.protect_method: dp`` or ``op_boost``."""
    options = Options(document)
    nbafl, sgdmf, vertical = (options.table(name) for name in ("nbafl", "sgdmf", "vertical"))
    used = [name for name, held in (("nbafl", nbafl), ("sgdmf", sgdmf)) if held.flag("use")]
    method, parties = vertical.raw("protect_method"), vertical.flag("use")
    protected, kind = vertical.raw("protect_object"), vertical.raw("algo")
    if method in ("dp", "op_boost") and parties and protected == "feature_order" and kind in _TREES:
        used.append(str(method))
    if not used:
        more = "; protect_method he encrypts and adds no noise" if method == "he" else ""
        if method in ("dp", "op_boost"):
            more = f"; protect_method {method} works with use: true, protect_object: feature_order, algo: {', '.join(_TREES)}"
            more += f" (found {parties}, {protected}, {kind})"
        reason = f"no option of differential privacy is in use: clients send in clear{more}"
        return _clear(reason, "switch one on first", tuple(options.rest))
    if len(used) != 1:
        raise PricingError(f"{document.path}:1: {len(used)} of nbafl, sgdmf and vertical dp are in use; one is priced per file")
    rounds = options.table("federate").whole("total_round_num", None, 0)
    if used == ["nbafl"]:
        epsilon = nbafl.positive("epsilon", 100.0)
        nbafl.without_price(["mu", "w_clip", "constant"])
        nbafl.finish()
        reason = "clients add noise to weights that nothing bounds before they are sent: no sensitivity, no ε"
        words = "nbafl.epsilon; its documentation says the ε-DP guarantee used in NbAFL"
        claim = PublishedReading(epsilon, None, "total", words)
        return _clear(reason, "clip updates on the client first; no option does", tuple(options.rest), rounds or 1, claim)
    if used == ["sgdmf"]:
        return _sgdmf(document, options, sgdmf)
    return _vertical(document, vertical, tuple(options.rest), used[0])


def _clear(reason: str, no_fix: str, rest: tuple[str, ...], rounds: int = 1, claim: PublishedReading | None = None) -> Reading:
    said = claim or PublishedReading(None, None, "none", "no ε is claimed")
    open_ = "every client's weights" if claim else "everything"
    found = reading_in_clear("client", PRICE_TO_SERVER, reason, no_fix, rounds, "replace")
    return replace(found, published=(said,), not_priced=rest, unprotected=(open_,))


def _sgdmf(document: PricedDocument, options: Options, held: Options) -> Reading:
    batch = options.table("dataloader").number("batch_size", None, above=True)
    users, train = options.table("model").number("num_user", None, above=True), options.table("train")
    steps, epochs = train.count("local_update_steps", 1), train.raw("batch_or_epoch") == "epoch"
    epsilon, stated = held.positive("epsilon", 4.0), held.delta("delta", 0.5)
    constant = held.positive("constant", 1.0)
    theta = max(held.number("theta", -1.0, least=-1.0) or 0.0, 1.0)
    held.without_price(["R"])
    held.finish()
    if stated is None or stated <= 0:
        raise held.error("delta", "delta: a number in (0, 1) is needed")
    share = document.ask("batch share", min(1.0, batch / users) if batch and users else None)
    at, visits = min(stated, 1e-5), 1 / share if epochs else max(1.0, math.ceil(steps * share) / steps / share)  # as counted
    small = max(1.0, 4 * math.sqrt(2) / (batch or 64.0))  # a batch of fewer than six ratings moves by more than R^1.5
    mu = small * epsilon * math.sqrt(visits / (share * constant * math.log(1 / stated))) / document.louder
    why = f"a rating may be in a batch of every pass, μ = {mu / theta:.4g} in all, read at δ = {at:g}: δ = {stated:g} would "
    why += "let that share of runs fail"
    claim = PublishedReading(epsilon, stated, "total", f"sgdmf.epsilon and sgdmf.delta = {stated:g}")
    rows = [ReadingRow("rating", "replace", PRICE_TO_SERVER, costs.cost_of_gaussian(theta / mu), 1, at, why)]
    if theta > 1:
        all_of = f"a user with at most theta = {theta:g} ratings, to which the data have to be cut; μ = {mu:.4g} in all"
        rows.insert(0, ReadingRow("user", "replace", PRICE_TO_SERVER, costs.cost_of_gaussian(1 / mu), 1, at, all_of))
    open_ = "a user with several ratings" if theta == 1 else f"a user with more than {theta:g} ratings"
    return Reading(tuple(rows), (claim,), (open_,), tuple(options.rest), (document.words["sgdmf order"],),
                   {"sgdmf.epsilon": epsilon / document.louder}, people=users)  # fmt: skip


def _vertical(document: PricedDocument, held: Options, rest: tuple[str, ...], method: str) -> Reading:
    listed = held.raw("protect_args")
    held_args = parsed_mapping(listed[0]) if isinstance(listed, list) and listed else {}
    args = Options(document, held_args, ("vertical", "protect_args"))
    features = int(document.ask("features"))
    if method == "dp":
        epsilon, buckets = args.number("epsilon", None, above=True), args.count("bucket_num", 100)
        if epsilon is None:
            raise held.error("protect_args", "protect_args needs an epsilon > 0 (without it the order is in clear: ∞)")
        spent, names = buckets * epsilon / document.louder, {"epsilon": epsilon}
        words = f"ranks are cut into {buckets} buckets: a sample that moves takes one other along at each of their edges,"
    else:
        spent, names = _op_boost(document, args)
        words = "one sample's value among the whole numbers of a public range"
        if not document.ask("range is public"):
            claim = PublishedReading(sum(names.values()), 0.0, "per feature", "protect_args")
            return _clear(document.words["range"], "op_boost has no option for a public range", rest, 1, claim)
    why = f"{words} in {features} features at ε = {spent:g} each; they add up"
    settings = {f"vertical.protect_args[0].{name}": value / document.louder for name, value in names.items()}
    claim = PublishedReading(sum(names.values()), 0.0, "per feature", f"protect_args {', '.join(names)}")
    row = ReadingRow("record", "replace", PRICE_TO_SERVER, costs.cost_of_pure(spent), features, 0.0, why)
    return Reading((row,), (claim,), _VERTICAL, rest, settings=settings)


def _op_boost(document: PricedDocument, args: Options) -> tuple[float, dict[str, float]]:
    """(ε of one value: the largest logarithm of a ratio of its answers' probabilities, the options that hold it)."""
    kind = args.choice("algo", ("global", "adjusting"), "global")
    low, high = args.count("lower_bound", 1, 0), args.count("upper_bound", 100, 0)
    if not low < high <= low + _WIDEST:
        raise args.error("upper_bound", f"upper_bound: found {high}; allowed: above lower_bound {low}, by at most {_WIDEST:,}")
    values = np.arange(low, high + 1.0)
    if kind == "global":
        epsilon = args.positive("epsilon", 2.0)
        logs, names = _answers(values, values, epsilon / document.louder), {"epsilon": epsilon}
        return float((logs.max(axis=0) - logs.min(axis=0)).max()), names
    names = {name: args.positive(name, 2.0) for name in ("epsilon_prt", "epsilon_ner")}
    first, second = names.values()
    parts = args.count("partition_num", 10)
    cuts = np.percentile(np.arange(low - 1, high + 1), np.linspace(0, 100, parts + 1))
    edges = [int(cut) for cut in np.round(cuts)]
    if (np.diff(edges) < 1).any():
        message = f"partition_num: found {parts}; allowed: up to one for each whole number of the range"
        raise args.error("partition_num", message)
    own = np.searchsorted(edges, values).astype(np.float64) - 1  # edges[k] < value ≤ edges[k + 1]
    chosen = _answers(own, np.arange(float(parts)), first / document.louder)
    inside = [_answers(values, np.arange(a + 1.0, b + 1), second / document.louder) for a, b in itertools.pairwise(edges)]
    logs = np.concatenate([chosen[:, [k]] + part for k, part in enumerate(inside)], axis=1)
    return float((logs.max(axis=0) - logs.min(axis=0)).max()), names


def _answers(held: ArrayField, allowed: ArrayField, epsilon: float) -> ArrayField:
    """ln P(answer | value) of an answer ∝ e^(−|value − answer|·ε/2); a row for each value."""
    weights = -np.abs(held[:, None] - allowed[None, :]) * epsilon / 2
    return np.asarray(weights - np.logaddexp.reduce(weights, axis=1, keepdims=True))


def read_fedgraph_cmu_federation(document: PricedDocument) -> Reading:
    """FedGraph (CMU): its configuration dictionary as YAML or JSON, with ``use_dp``.

    Before training, clients' sums of neighbours' features are clipped to dp_clip_norm, added, and noised **by the server**:
    Gaussian std = √(2 ln(1.25/δ))·dp_sensitivity/ε, Laplace scale dp_sensitivity/ε, or "local", which flips signs. Model
    updates of every round are sent as they are. Its accountant adds up ε and δ of the one noisy sum.
    """
    options = Options(document)
    used, mechanism = options.flag("use_dp"), options.choice("dp_mechanism", ("gaussian", "laplace", "local"), "gaussian")
    epsilon, delta = options.positive("dp_epsilon", 1.0), options.delta("dp_delta", 1e-5) or 0.0
    sensitivity, clip = options.number("dp_sensitivity", 1.0) or 0.0, options.positive("dp_clip_norm", 1.0)
    rounds, clear = options.count("global_rounds", 100, 0), "model updates of every round are sent in clear"
    if mechanism == "gaussian" and not 0 < delta < 1:
        raise options.error("dp_delta", f"dp_delta: found {delta}; allowed: in (0, 1)")
    if (reason := _IN_CLEAR.get(mechanism if used else "off")) is not None:
        cost, why = costs.cost_of_unprotected(reason[0]), reason[1]
    else:
        std = costs.classic_gaussian_std(sensitivity, epsilon, delta) * document.louder
        why = f"one noised sum: std {std:.4g}, a client moves it by dp_clip_norm = {clip:g}"
        cost = costs.cost_of_gaussian(std / clip)
    rows = (
        readings.row_in_clear("client", "zero-out", PRICE_TO_SERVER, clear, max(rounds, 1)),
        ReadingRow("client", "zero-out", f"{PRICE_TO_WORLD}, of the feature sum alone", cost, 1, delta, why),
    )
    claim = f"dp_epsilon with dp_sensitivity {sensitivity:g}, by {mechanism}"
    unprotected = ("the model path: gradients or weights of all rounds",
                   "client sums, which the server receives before it adds noise")  # fmt: skip
    return Reading(rows, (PublishedReading(epsilon if used else None, delta, "total", claim),), unprotected,
    tuple(options.rest),
                   (document.words["order"],), no_fix=document.words["no fix"])  # fmt: skip


def read_openfgl_federation(document: PricedDocument) -> Reading:
    """OpenFGL: a command line or namespace with ``dp_mech`` gaussian or laplace.

    Code: gradients of nodes clipped to C, averaged over n; after local training every tensor gets noise for sensitivity
    2·lr·C/n at ε/(rounds·fraction) and δ likewise. What is proven: with one epoch of plain SGD a node that enters the loss of k
    nodes moves an upload by at most 2·lr·C·k/n (all tensors together). With momentum, Adam (the default) or several epochs
    later gradients differ too, and 2·lr·C/n bounds nothing. A message of one round moves by k times what the code counts; the
    degree is not in the code.
    """
    options = Options(document)
    mechanism = options.choice("dp_mech", ("gaussian", "laplace", "no_dp"))
    rounds, fraction = options.count("num_rounds", 100, 0), options.positive("client_frac", 1.0)
    optimiser, epochs = str(options.raw("optim") or "adam"), options.whole("num_epochs", 3, 0)
    epsilon, delta = options.number("dp_eps", None, above=True), options.delta("dp_delta")
    options.without_price(["grad_clip", "lr"])
    rest, claim = tuple(options.rest), (PublishedReading(epsilon, delta, "total", "dp_eps over all rounds"),)
    if mechanism == "no_dp" or optimiser != "sgd" or epochs != 1:
        reason = f"optim = {optimiser}, num_epochs = {epochs}: later steps differ in every gradient, so 2·lr·C/n bounds nothing"
        reason = "dp_mech no_dp: updates are sent in clear" if mechanism == "no_dp" else reason
        found = reading_in_clear("node", PRICE_TO_SERVER, reason, document.words["no fix"], rounds, "replace")
        return replace(found, published=claim, not_priced=rest, unprotected=("every upload",))
    if epsilon is None or (mechanism == "gaussian" and not delta):
        message = "missing options dp_eps and dp_delta; OpenFGL reads them without declaring them, and stops"
        raise options.error("dp_eps", message)
    times, reach = rounds * fraction, document.ask("nodes that a node reaches")
    each, each_delta = epsilon / times, (delta or 0.0) / times
    why = f"a node enters the clipped gradients of {reach:g} nodes; ε/{times:g} and δ/{times:g} are spent per round by the code"
    if mechanism == "gaussian":
        cost = costs.cost_of_gaussian(costs.classic_gaussian_std(1.0, each, each_delta) * document.louder / reach)
    else:
        cost = costs.cost_of_pure(each * reach / document.louder)
    row = ReadingRow("node", "replace", PRICE_TO_SERVER, cost, math.ceil(times), delta or 0.0, why)
    more = ("edges between nodes beyond that reach", "sizes and metrics")
    order, settings = (document.words["order"],), {"dp_eps": epsilon / document.louder}
    return Reading((row,), claim, more, rest, order, settings)
