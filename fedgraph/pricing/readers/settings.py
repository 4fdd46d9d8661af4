"""Settings of single systems: FLARE's filters, FederatedScope's YAML, the flags of pfl-research and of TensorFlow Privacy.

Their keys stand in ``catalogue.yaml``; a function of each says what they release. What is proven of each:
``docs/how_deployed_noise_is_priced.md``.
"""

import math
import re
from functools import partial
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import documents, readings
from fedgraph.pricing.documents import Document, Said, Table, table
from fedgraph.pricing.readings import TO_SERVER, WITH_MODELS, Claim, Reading, Row, Sums
from fedgraph.pricing.recorder import svt_epsilon
from fedgraph.privacy import Gaussian, PoissonGaussian, PureDP, Repeated, calibrate, price

_OFF = {f"no{flag}": flag for flag in ("dpsgd", "used_microbatching")}  # how a command line switches one off


def tensorflow_privacy(document: Document) -> Reading:
    """noise std = noise_multiplier·l2_norm_clip on the sum of microbatches.

    Where one clip bounds the mean of several examples, one that vanishes may turn it round: 2·clip.
    """
    flags = document.options({_OFF.get(k, k): v if k not in _OFF else False for k, v in document.data.items()})
    if flags.N is not None and flags.batch_size > flags.N:
        raise document.error(f"batch_size {flags.batch_size:g} is larger than N = {flags.N:g}", "batch_size")
    stated = 1e-6 if flags.delta is None and flags.microbatches is None else flags.delta  # the command's own default
    twice = flags.used_microbatching if flags.microbatches is None else flags.microbatches != flags.batch_size
    noise = flags.noise_multiplier * document.louder if flags.dpsgd else 0.0
    sums = Sums(noise, math.ceil(flags.epochs))
    rows = readings.rows_of_sums([[sums]], "example", readings.TO_RECIPIENT, document.ask("delta", stated), twice=twice)
    claim = Claim(None, stated, "total", "TFP prints its own statement for these flags")
    order = (
        readings.COMPOSED,
        "Batches are taken as shuffled, as the statement's first number; Poisson sampling would amplify.",
    )
    settings = {"noise_multiplier": noise} if noise else None
    return Reading(rows, (claim,), (readings.SELECTED,), (), order, settings, people=flags.N)


def pfl(document: Document) -> Reading:
    """The flags of a YAML file, or of a command line with ``--args_config``, whose YAML is read.

    The accountant prices its noise; a simulation with a small cohort adds cohort/noise_cohort of it, so that a real run of that
    size is worth less: both are priced.
    """
    flags, louder = document.options(_configured(document)), document.louder
    mechanism, rounds, epsilon, delta = (
        flags.central_privacy_mechanism, flags.central_num_iterations, flags.central_epsilon, flags.central_delta,
    )  # fmt: skip
    accounted = mechanism == "gaussian_moments_accountant"
    cohort, noised = flags.cohort_size, flags.noise_cohort_size if accounted else flags.cohort_size
    if max(cohort, noised) > flags.population:
        raise document.error(f"a cohort of {max(cohort, noised):g} out of a population of {flags.population:g}")
    if cohort > noised:
        raise document.error(f"cohort_size {cohort:g} above noise_cohort_size {noised:g}: pfl refuses it")
    if 0 in (delta, flags.local_delta):
        raise document.error("central_delta and local_delta: a number in (0, 1) is needed")
    rate = noised / flags.population
    rows: list[Row] = []
    claims: list[Claim] = []
    settings = None
    sums = partial(Sums, count=rounds, sampling="poisson")
    if mechanism in ("gaussian", "gaussian_moments_accountant"):
        noise = _noise(epsilon, delta, *((rate, rounds) if accounted else (1.0, 1))) * louder
        rows += readings.rows_of_sums([[sums(noise, rate=rate)]], "user", WITH_MODELS, delta)
        if cohort < noised:
            real = sums(noise * (cohort / noised), rate=cohort / flags.population)
            why = f"a real run with noise_scale = {cohort / noised:g}: {real.words}"
            rows.append(Row("user", "zero-out", WITH_MODELS, real.event(replaced=False), rounds, delta, why))
        spent = Repeated(PoissonGaussian(noise, rate, 1, False), rounds) if accounted else Gaussian(noise)
        settings = {"central_epsilon": price(spent, delta).epsilon}
    elif mechanism == "laplace":
        rows += readings.rows_of_sums([[sums(louder / epsilon, rate=rate, laplace=True)]], "user", WITH_MODELS, delta)
        settings = {"central_epsilon": epsilon / louder}
    if rows:
        claims.append(Claim(epsilon, delta, "total" if accounted else "per round", "the benchmark's flags"))
    if flags.local_privacy_mechanism in ("gaussian", "laplace"):
        laplace = flags.local_privacy_mechanism == "laplace"
        noise = 1 / flags.local_epsilon if laplace else _noise(flags.local_epsilon, flags.local_delta, 1.0, 1)
        at, local = 0.0 if laplace else flags.local_delta, Sums(noise * (1.0 if rows else louder), rounds, laplace=laplace)
        rows += readings.rows_of_sums([[local]], "user", TO_SERVER, at)
        claims.append(Claim(flags.local_epsilon, at, "per round", f"local {flags.local_privacy_mechanism}"))
    if not rows:
        rows = [
            readings.in_clear(
                "user", WITH_MODELS, f"central_privacy_mechanism {mechanism or 'none'} adds no noise", rounds=rounds
            )
        ]
    open_ = ("local metrics, unless they are privatised too", "the server, where the mechanism is applied centrally",
             "pfl's simulator draws users uniformly with replacement; the coins are those of a deployment")  # fmt: skip
    order = "Users are sampled by coins, statistics clipped, summed, noised; rounds compose adaptively; add/remove is zero-out."
    return Reading(tuple(rows), tuple(claims), open_, flags.rest, (order,), settings, people=flags.population)


def _noise(epsilon: float, delta: float, rate: float, rounds: int) -> float:
    """The noise multiplier at which so many Poisson-sampled sums cost (epsilon, delta), zero-out; never below it."""
    return calibrate.noise_multiplier_of(lambda m: Repeated(PoissonGaussian(m, rate, 1, False), rounds), epsilon, delta)


def _configured(document: Document) -> Table:
    """The flags of a command line over those of the YAML of its ``--args_config``, beside the file or where we stand."""
    name = document.data.get("args_config")
    if not isinstance(name, str) or document.kind != "command":
        return document.data
    if not (paths := [path for path in (document.path.parent / name, Path(name)) if path.is_file()]):
        message = f"args_config: there is no {name} beside this file or here; copy it or give its path"
        raise document.error(message, "args_config")
    return {**documents.read(paths[0]).data, **document.data}


def federatedscope(document: Document) -> Reading:
    """A YAML configuration with ``nbafl`` or ``sgdmf``."""
    said = document.options()
    if said.sgdmf.use and said.nbafl.use:
        raise PricingError(f"{document.path}:1: nbafl and sgdmf are both in use; one is priced per file")
    if said.sgdmf.use:
        return _sgdmf(document, said)
    rounds, reason = 1, "no option of differential privacy is in use: clients send in clear"
    claim = Claim(None, None, "none", "no ε is claimed")
    if said.nbafl.use:
        rounds = said.federate.total_round_num or 1
        reason = "clients add noise to weights that nothing bounds before they are sent: no sensitivity, no ε"
        words = "nbafl.epsilon; its documentation says the ε-DP guarantee used in NbAFL"
        claim = Claim(said.nbafl.epsilon, None, "total", words)
    row = readings.in_clear("client", TO_SERVER, reason, "replace", rounds=rounds)
    return Reading((row,), (claim,), ("every client's weights",), said.rest)


def _sgdmf(document: Document, said: Said) -> Reading:
    held, batch, users, steps = said.sgdmf, said.dataloader.batch_size, said.model.num_user, said.train.local_update_steps
    if held.delta <= 0:
        raise document.error("delta: a number in (0, 1) is needed", "sgdmf", "delta")
    theta = max(float(held.theta), 1.0)
    share = document.ask("batch share", min(1.0, batch / users) if batch and users else None)
    epochs = said.train.batch_or_epoch == "epoch"
    at = min(held.delta, 1e-5)
    visits = 1 / share if epochs else max(1.0, math.ceil(steps * share) / steps / share)  # as counted
    small = max(1.0, 4 * math.sqrt(2) / (batch or 64.0))  # a batch of fewer than six ratings moves by more than R^1.5
    mu = small * held.epsilon * math.sqrt(visits / (share * held.constant * math.log(1 / held.delta))) / document.louder
    why = (
        f"a rating may be in a batch of every pass, μ = {mu / theta:.4g} in all, read at δ = {at:g}: δ = {held.delta:g} would "
    )
    why += "let that share of runs fail"
    rows = [Row("rating", "replace", TO_SERVER, Gaussian(theta / mu), 1, at, why)]
    if theta > 1:
        all_of = f"a user with at most theta = {theta:g} ratings, to which the data have to be cut; μ = {mu:.4g} in all"
        rows.insert(0, Row("user", "replace", TO_SERVER, Gaussian(1 / mu), 1, at, all_of))
    claim = Claim(held.epsilon, held.delta, "total", f"sgdmf.epsilon and sgdmf.delta = {held.delta:g}")
    open_ = "a user with several ratings" if theta == 1 else f"a user with more than {theta:g} ratings"
    order = (
        "Noise on gradients of embeddings bounded by R^1.5 as the paper has it; visits compose; no amplification for shuffling."
    )
    settings = {"sgdmf.epsilon": held.epsilon / document.louder}
    return Reading(tuple(rows), (claim,), (open_,), said.rest, (order,), settings, people=users)


# NVIDIA FLARE

_METRICS = ("validate", "evaluate", "cross_site_validation")  # tasks whose results are numbers, no model
_BOTH = {"WEIGHTS", "WEIGHT_DIFF"}


def flare(document: Document) -> Reading:
    """The dearest site of a client's configuration (JSON, YAML), or of a job's folder (``meta.json`` with its apps).

    FLARE looks a chain up by the exact name of the task and by its direction. Filters on ``task_data_filters``, for another
    task, or on the server protect nothing that a client sends.
    """
    sites, server = _sites(document)
    known = [each for each in (*sites.values(), server) if each is not None]
    filters = [f for each in known for group in (*each.task_result_filters, *each.task_data_filters) for f in group.filters]
    others = dict.fromkeys(name for f in filters if (name := _class(f.name)) not in ("SVTPrivacy", "PercentilePrivacy"))
    if own := next((name for name in others if re.search("(?i)privacy|noise|gauss|laplac|dp", name)), None):
        words = f"{own} is not a filter of nvflare that is priced here; describe it in a neutral YAML"
        raise PricingError(f"{document.path}: {words}")
    aside = (f"filters {', '.join(others)}",) if others else ()
    said = [r for r in map(_rounds, [server, next(iter(sites.values()))]) if r is not None]
    found: list[list[Said]] = []
    for name, site in sites.items():
        chains = _chains(document, site)
        if isinstance(chains, str):
            row = readings.in_clear("client", TO_SERVER, f"{name}: {chains}", "replace", rounds=said[0] if said else 1)
            return Reading((row,), readings.without_claim("no ε is stated"), ("the whole update",), aside)
        found.append(chains)
    used = max(found, key=lambda chains: sum(_svt_epsilon(svt, 1e6) for svt in chains))
    size, total = document.ask("parameters"), int(document.ask("rounds", said[0] if said else None))
    why = "; and for other tasks ".join(
        f"threshold and selection, then {svt.fraction:g} of the values with Laplace noise, "
        + (f"noise_var {svt.noise_var:g} each" if svt.epsilon_release is None else f"epsilon_release {svt.epsilon_release:g}")
        for svt in used
    )
    spent = PureDP(sum(_svt_epsilon(svt, size) for svt in used) / document.louder)
    row = Row("client", "replace", TO_SERVER, spent, total, 0.0, why)
    words = "SVTPrivacy: the option epsilon covers the selection only; NVFlare's accountant adds the release"
    claim = Claim(sum(svt.epsilon for svt in used), 0.0, "per round, option epsilon", words)
    order = "A client's update is clipped per value, selected and noised; pure ε adds up over rounds; no amplification is used."
    settings = None
    if len(used) == 1:
        held = {name: vars(used[0])[name] for name in ("epsilon", "epsilon_threshold", "epsilon_query", "epsilon_release")}
        held |= {"noise_var": used[0].noise_var} if used[0].epsilon_release is None else {}
        settings = {name: value / document.louder for name, value in held.items() if value is not None}
    open_ = ("tensors with a single value, which pass in clear", "numbers of steps and metrics")
    return Reading((row,), (claim,), open_, aside, (order,), settings)


def _class(path: object) -> str:
    return str(path).rpartition(".")[2]


def _rounds(held: Said) -> int | None:
    """The rounds that a configuration and its workflows say; None where neither does."""
    said = [] if held is None else [held.num_rounds, *(table(each.args).get("num_rounds") for each in held.workflows)]
    found = [r for r in said if isinstance(r, int) and not isinstance(r, bool) and r >= 0]
    return sum(found) if found else None


def _sites(document: Document) -> tuple[dict[str, Said], Said | None]:
    """(who sends results → its configuration, the server's)."""
    sites: dict[str, Said] = {}
    server: Said | None = None
    if document.path.stem == "config_fed_server" or "workflows" in document.data:
        raise PricingError(f"{document.path}: a server's: name the configuration of the clients, or the folder of the job")
    if "apps" not in document.data:
        return {"the clients": document.options()}, None
    for name, held in table(document.data, "apps").items():
        found = {key: document.options(value) for key, value in table(held).items()}
        placed = table(document.data, "meta", "deploy_map").get(name)
        server = found.get("config_fed_server", server)
        if "config_fed_client" in found and (not isinstance(placed, list) or any(site != "server" for site in placed)):
            sites[f"app {name}"] = found["config_fed_client"]
    if not sites:
        raise PricingError(f"{document.path}: no app of this job has a config_fed_client")
    return sites, server


def _chains(document: Document, site: Said) -> list[Said] | str:
    """Of each task whose result is a model, the SVT filter that costs least; or why one of them is in clear."""
    for group in site.task_result_filters:
        if group.direction.lower() not in ("in", "out", "inout"):
            words = f"direction: found {group.direction!r}; allowed: in, out, inout"
            raise document.error(words, "task_result_filters")
    groups = [([g.tasks] if isinstance(g.tasks, str) else g.tasks, g.filters)
              for g in site.task_result_filters if g.direction.lower() != "in"]  # fmt: skip
    covered = dict.fromkeys(task for tasks, _ in groups for task in tasks)
    named = [str(task) for each in site.executors if isinstance(each.tasks, list) for task in each.tasks]
    models = [task for task in named if task not in (*_METRICS, "*")] or ["train"]
    found = []
    for task in dict.fromkeys([*models, *(task for task in covered if task not in (*_METRICS, "*"))]):
        filters = next((held for tasks, held in groups if task in tasks), None)
        if filters is None:
            everywhere = next((held for tasks, held in groups if "*" in tasks), None)
            filters = everywhere if everywhere is not None and document.ask("filters of every task", task=task) else []
        ours = [_svt(document, table(f.args)) for f in filters if _class(f.name) == "SVTPrivacy"]
        noised = [svt for svt in ours if _applies(document, site, svt)]
        if not noised:
            return f"no SVTPrivacy filters what clients send as the result of the task {task!r}, so it goes without noise"
        found.append(min(noised, key=lambda svt: _svt_epsilon(svt, 1e6)))
    return found


def _svt(document: Document, args: Table) -> Said:
    """The options of ``SVTPrivacy``; an error where FLARE refuses them."""
    svt = document.options(args, "task_result_filters", part="svt")
    first, second = svt.epsilon_threshold, svt.epsilon_query
    given, both = (first or 0.0) + (second or 0.0), first is not None and second is not None
    if not math.isclose(given, svt.epsilon) if both else given >= svt.epsilon:
        words = f"epsilon_threshold + epsilon_query = {given:g} for epsilon = {svt.epsilon:g}: refused there"
    elif svt.fraction == 0 or _kinds(svt) - _BOTH:
        words = "fraction: allowed: in (0, 1]; data_kinds: allowed: WEIGHTS, WEIGHT_DIFF"
    else:
        return svt
    raise document.error(words, "task_result_filters")


def _svt_epsilon(svt: Said, size: float) -> float:
    """The pure ε of one result of so many values."""
    return svt_epsilon(size, svt.fraction, svt.epsilon, svt.noise_var, svt.epsilon_threshold, svt.epsilon_query,
                       svt.epsilon_release)  # fmt: skip


def _kinds(svt: Said) -> set[str]:
    """What a filter handles; it passes other kinds of data as they are."""
    said = svt.data_kinds or sorted(_BOTH)
    return set(map(_class, [said] if isinstance(said, str) else said))


def _sent(site: Said) -> str | None:
    """``WEIGHTS`` or ``WEIGHT_DIFF``, what all executors send; None where that is not said."""
    kinds = set()
    for made in (each.executor for each in site.executors):
        transfer = _class(table(made.args).get("params_transfer_type", "")).upper()
        own = "WEIGHTS" if "ClientAPI" in str(made.path) else None
        kinds.add({"FULL": "WEIGHTS", "DIFF": "WEIGHT_DIFF", "": own}.get(transfer))
    return kinds.pop() if len(kinds) == 1 else None


def _applies(document: Document, site: Said, svt: Said) -> bool:
    """Whether a filter handles the kind of data that the site sends."""
    kinds, sent = _kinds(svt), _sent(site)
    if kinds == _BOTH or sent is not None:
        return kinds == _BOTH or sent in kinds
    [kind] = kinds
    question = f"Do the clients send {kind} (params_transfer_type)? SVTPrivacy filters only that kind."
    return document.whether(f"clients send {kind}", question)
