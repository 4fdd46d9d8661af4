"""Settings of single systems: FederatedScope's YAML, the flags of pfl-research and those of TensorFlow Privacy.

What is proven of each: ``docs/how_deployed_noise_is_priced.md``.
"""

import itertools
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, documents, readings
from fedgraph.pricing.documents import Document
from fedgraph.pricing.facts import Options, Table, table
from fedgraph.pricing.readings import TO_SERVER, WITH_MODELS, Claim, Reading, Row, Setting, Sums
from fedgraph.privacy import ArrayField, Gaussian, calibrate

_WIDEST, _TREES = 2000, ("xgb", "gbdt", "rf")
_VERTICAL = ("labels and gradients, which this option does not touch", "who is in the data set",
            "sizes of buckets, and split values, which come from the raw data")  # fmt: skip
_CUT = "Batches are taken as shuffled, as the statement's first number; Poisson sampling would amplify."
_PFL = "Users are sampled by coins, statistics clipped, summed, noised; rounds compose adaptively; add/remove is zero-out."
_PFL_OPEN = ("local metrics, unless they are privatised too", "the server, where the mechanism is applied centrally",
             "pfl's simulator draws users uniformly with replacement; the coins are those of a deployment")  # fmt: skip


def tensorflow_privacy(document: Document) -> Reading:
    """The command line of ``compute_dp_sgd_privacy``, of its statement, or of a training script with the same flags.

    noise std = noise_multiplier·l2_norm_clip on the sum of microbatches; where one clip bounds the mean of several examples,
    vanishing may turn it round: 2·clip.
    """
    options = document.options
    count = "number_of_examples" if options.has("number_of_examples") else "N"  # the statement's own names are taken too
    passes = "num_epochs" if options.has("num_epochs") else "epochs"
    examples, batch = options.number(count, None, above=True), options.need("batch_size", above=True)
    multiplier, epochs = options.need("noise_multiplier"), options.need(passes, above=True)
    delta = options.delta("delta", None if options.has("microbatches") else 1e-6)  # its own default
    micro = options.number("microbatches", options.number("num_microbatches"), above=True)
    several = options.flag("used_microbatching", micro is None) if micro is None else micro != batch
    options.finish(count)
    if examples is not None and batch > examples:
        raise options.error("batch_size", f"batch_size {batch:g} is larger than N = {examples:g}")
    at = document.ask("delta", delta)
    sums = Sums(multiplier * document.louder, math.ceil(epochs), "none")
    rows = readings.rows_of_sums([[sums]], "example", readings.TO_RECIPIENT, at, twice=several)
    claim = Claim(None, delta, "total", "TFP prints its own statement for these flags")
    settings = {"noise_multiplier": multiplier * document.louder} if multiplier else None
    no_fix = "the noise is zero: set it first"
    order = (readings.COMPOSED, _CUT)
    return Reading(rows, (claim,), (readings.SELECTED,), (), order, settings, no_fix, people=examples)


def pfl(document: Document) -> Reading:
    """The flags of pfl-research's benchmarks: YAML, or a command line with ``--args_config``, whose YAML is read.

    The accountant prices its noise; a simulation with a small cohort adds cohort/noise_cohort of it, so that a real run of that
    size is worth less: both are priced. Correlated noise (``banded_matrix_factorization``) is not priced.
    """
    options = document.options_of(_configured(document), ignored=documents.catalogue()[document.system].ignored)
    central = (
        "none",
        "gaussian",
        "gaussian_moments_accountant",
        "laplace",
        "norm_clipping_only",
        "banded_matrix_factorization",
    )
    mechanism = options.choice("central_privacy_mechanism", central, "none")
    each = options.choice("local_privacy_mechanism", ("none", "gaussian", "laplace", "norm_clipping_only"), "none")
    own = options.positive("local_epsilon", 1.0), options.delta("local_delta", 1e-5) or 1e-5
    rounds, cohort = options.count("central_num_iterations", 200), options.positive("cohort_size", 1000.0)
    wanted, population = options.positive("noise_cohort_size", 1000.0), options.positive("population", 1e7)
    epsilon, delta = options.positive("central_epsilon", 1.0), options.delta("central_delta", 1e-5) or 1e-5
    accounted = mechanism == "gaussian_moments_accountant"
    if mechanism == "banded_matrix_factorization":
        raise options.error(
            "central_privacy_mechanism", "not priced: banded_matrix_factorization; describe its noise in a neutral YAML"
        )
    if max(cohort, wanted if accounted else 0) > population:
        raise options.error("population", f"a cohort of {max(cohort, wanted):g} out of a population of {population:g}")
    if accounted and cohort > wanted:
        raise options.error("noise_cohort_size", f"cohort_size {cohort:g} above noise_cohort_size {wanted:g}: pfl refuses it")
    rate, louder = (wanted if accounted else cohort) / population, document.louder
    rows: list[Row] = []
    settings: dict[str, Setting] | None = None
    if mechanism in ("gaussian", "gaussian_moments_accountant"):
        once = partial(calibrate.noise_multiplier_of, Gaussian, epsilon, delta)
        std = (costs.noise_at_cost(epsilon, delta, rate, rounds) if accounted else once()) * louder
        rows += readings.rows_of_sums([[Sums(std, rounds, "poisson", rate)]], "user", WITH_MODELS, delta)
        if accounted and cohort < wanted:
            [real, _] = readings.rows_of_sums(
                [[Sums(std * cohort / wanted, rounds, "poisson", cohort / population)]], "user", WITH_MODELS, delta
            )
            rows.append(replace(real, why=f"a real run with noise_scale = {cohort / wanted:g}: {real.why}"))
        settings = {
            "central_epsilon": lambda: (
                (
                    costs.cost_of_poisson(std, rate)(rounds, delta) if accounted else costs.cost_of_gaussian(std)(1, delta)
                ).epsilon
            )
        }
    elif mechanism == "laplace":
        cost = partial(costs.cost_of_sampled_laplace, louder / epsilon, rate, fixed=False)
        why = f"noise scale = {louder / epsilon:.4g}·clip per coordinate, clip in L1, Poisson-sampled at rate {rate:g}"
        rows += [
            Row("user", relation, WITH_MODELS, cost(relation == "replace"), rounds, delta, why)
            for relation in ("zero-out", "replace")
        ]
        settings = {"central_epsilon": epsilon / louder}
    local = each in ("gaussian", "laplace")
    if local:
        times, (spent, at) = 1.0 if rows else louder, own
        std = (1 / spent if each == "laplace" else calibrate.noise_multiplier_of(Gaussian, spent, at)) * times
        for relation, replaced in (("zero-out", False), ("replace", True)):
            cost_ = (costs.cost_of_laplace if each == "laplace" else costs.cost_of_gaussian)(std, replaced)
            why = f"local {each} noise of {std:.4g}·clip, in every round"
            rows.append(Row("user", relation, TO_SERVER, cost_, rounds, 0.0 if each == "laplace" else at, why))
    if not rows:
        found = readings.in_clear(
            "user", WITH_MODELS, f"central_privacy_mechanism {mechanism!r} adds no noise", "choose a mechanism first", rounds
        )
        return replace(found, not_priced=options.rest)
    claims = (
        [Claim(epsilon, delta, "total" if accounted else "per round", "the benchmark's flags")]
        if mechanism in central[1:4]
        else []
    )
    claims += [Claim(own[0], 0.0 if each == "laplace" else own[1], "per round", f"local {each}")] if local else []
    return Reading(
        tuple(rows), tuple(claims), _PFL_OPEN, options.rest, (_PFL,), settings, "lower local_epsilon", people=population
    )


def _configured(document: Document) -> Table:
    """The flags of a command line over those of the YAML of its ``--args_config``, beside the file or where we stand."""
    name = document.data.get("args_config")
    if not isinstance(name, str) or document.kind not in ("command", "namespace"):
        return document.data
    if not (paths := [path for path in (document.path.parent / name, Path(name)) if path.is_file()]):
        message = f"args_config: there is no {name} beside this file or here; copy it or give its path"
        raise document.error(message, "args_config")
    return {**documents.read(paths[0]).data, **document.data}


def federatedscope(document: Document) -> Reading:
    """A YAML configuration with ``nbafl``, ``sgdmf`` or ``vertical.protect_method: dp`` or ``op_boost``."""
    options = document.options
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
        return _clear(reason, "switch one on first", options.rest)
    if len(used) != 1:
        raise PricingError(f"{document.path}:1: {len(used)} of nbafl, sgdmf and vertical dp are in use; one is priced per file")
    rounds = options.table("federate").whole("total_round_num", None, 0)
    if used == ["nbafl"]:
        epsilon = nbafl.positive("epsilon", 100.0)
        nbafl.without_price("mu", "w_clip", "constant")
        nbafl.finish()
        reason = "clients add noise to weights that nothing bounds before they are sent: no sensitivity, no ε"
        words = "nbafl.epsilon; its documentation says the ε-DP guarantee used in NbAFL"
        claim = Claim(epsilon, None, "total", words)
        return _clear(reason, "clip updates on the client first; no option does", options.rest, rounds or 1, claim)
    if used == ["sgdmf"]:
        return _sgdmf(document, options, sgdmf)
    return _vertical(document, vertical, options.rest, used[0])


def _clear(reason: str, no_fix: str, rest: tuple[str, ...], rounds: int = 1, claim: Claim | None = None) -> Reading:
    said = claim or Claim(None, None, "none", "no ε is claimed")
    open_ = "every client's weights" if claim else "everything"
    found = readings.in_clear("client", TO_SERVER, reason, no_fix, rounds, "replace")
    return replace(found, published=(said,), not_priced=rest, unprotected=(open_,))


def _sgdmf(document: Document, options: Options, held: Options) -> Reading:
    batch = options.table("dataloader").number("batch_size", None, above=True)
    users, train = options.table("model").number("num_user", None, above=True), options.table("train")
    steps, epochs = train.count("local_update_steps", 1), train.raw("batch_or_epoch") == "epoch"
    epsilon, stated = held.positive("epsilon", 4.0), held.delta("delta", 0.5)
    constant = held.positive("constant", 1.0)
    theta = max(held.number("theta", -1.0, least=-1.0) or 0.0, 1.0)
    held.without_price("R")
    held.finish()
    if stated is None or stated <= 0:
        raise held.error("delta", "delta: a number in (0, 1) is needed")
    share = document.ask("batch share", min(1.0, batch / users) if batch and users else None)
    at, visits = min(stated, 1e-5), 1 / share if epochs else max(1.0, math.ceil(steps * share) / steps / share)  # as counted
    small = max(1.0, 4 * math.sqrt(2) / (batch or 64.0))  # a batch of fewer than six ratings moves by more than R^1.5
    mu = small * epsilon * math.sqrt(visits / (share * constant * math.log(1 / stated))) / document.louder
    why = f"a rating may be in a batch of every pass, μ = {mu / theta:.4g} in all, read at δ = {at:g}: δ = {stated:g} would "
    why += "let that share of runs fail"
    claim = Claim(epsilon, stated, "total", f"sgdmf.epsilon and sgdmf.delta = {stated:g}")
    rows = [Row("rating", "replace", TO_SERVER, costs.cost_of_gaussian(theta / mu), 1, at, why)]
    if theta > 1:
        all_of = f"a user with at most theta = {theta:g} ratings, to which the data have to be cut; μ = {mu:.4g} in all"
        rows.insert(0, Row("user", "replace", TO_SERVER, costs.cost_of_gaussian(1 / mu), 1, at, all_of))
    open_ = "a user with several ratings" if theta == 1 else f"a user with more than {theta:g} ratings"
    return Reading(tuple(rows), (claim,), (open_,), options.rest, (document.words["sgdmf order"],),
                   {"sgdmf.epsilon": epsilon / document.louder}, people=users)  # fmt: skip


def _vertical(document: Document, held: Options, rest: tuple[str, ...], method: str) -> Reading:
    listed = held.raw("protect_args")
    held_args = table(listed[0]) if isinstance(listed, list) and listed else {}
    args = document.options_of(held_args, "vertical", "protect_args")
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
            claim = Claim(sum(names.values()), 0.0, "per feature", "protect_args")
            return _clear(document.words["range"], "op_boost has no option for a public range", rest, 1, claim)
    why = f"{words} in {features} features at ε = {spent:g} each; they add up"
    settings = {f"vertical.protect_args[0].{name}": value / document.louder for name, value in names.items()}
    claim = Claim(sum(names.values()), 0.0, "per feature", f"protect_args {', '.join(names)}")
    row = Row("record", "replace", TO_SERVER, costs.cost_of_pure(spent), features, 0.0, why)
    return Reading((row,), (claim,), _VERTICAL, rest, settings=settings)


def _op_boost(document: Document, args: Options) -> tuple[float, dict[str, float]]:
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
