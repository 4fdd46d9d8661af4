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
from fedgraph.pricing.documents import Document, Said, Table
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
    flags = document.options(_configured(document))
    mechanism, rounds, epsilon, delta = (
        flags.central_privacy_mechanism, flags.central_num_iterations, flags.central_epsilon, flags.central_delta,
    )  # fmt: skip
    accounted = mechanism == "gaussian_moments_accountant"
    cohort, noised = flags.cohort_size, flags.noise_cohort_size if accounted else flags.cohort_size
    if max(cohort, noised) > flags.population:
        raise document.error(f"a cohort of {max(cohort, noised):g} out of a population of {flags.population:g}")
    if cohort > noised:
        raise document.error(f"cohort_size {cohort:g} above noise_cohort_size {noised:g}: pfl refuses it")
    if delta == 0:
        raise document.error("central_delta: a number in (0, 1) is needed")
    open_ = ("local metrics, unless they are privatised too", "the server, where the mechanism is applied centrally",
             "pfl's simulator draws users uniformly with replacement; the coins are those of a deployment")  # fmt: skip
    if mechanism not in ("gaussian", "gaussian_moments_accountant"):
        reason = f"central_privacy_mechanism {mechanism or 'none'} adds no noise"
        return Reading((readings.in_clear("user", WITH_MODELS, reason, rounds=rounds),), (), open_, flags.rest)
    rate = noised / flags.population
    noise = _noise(epsilon, delta, *((rate, rounds) if accounted else (1.0, 1))) * document.louder
    sums = partial(Sums, count=rounds, sampling="poisson")
    rows = list(readings.rows_of_sums([[sums(noise, rate=rate)]], "user", WITH_MODELS, delta))
    if cohort < noised:
        real = sums(noise * (cohort / noised), rate=cohort / flags.population)
        why = f"a real run with noise_scale = {cohort / noised:g}: {real.words}"
        rows.append(Row("user", "zero-out", WITH_MODELS, real.event(replaced=False), rounds, delta, why))
    spent = Repeated(PoissonGaussian(noise, rate, 1, False), rounds) if accounted else Gaussian(noise)
    settings = {"central_epsilon": price(spent, delta).epsilon}
    claim = Claim(epsilon, delta, "total" if accounted else "per round", "the benchmark's flags")
    order = "Users are sampled by coins, statistics clipped, summed, noised; rounds compose adaptively; add/remove is zero-out."
    return Reading(tuple(rows), (claim,), open_, flags.rest, (order,), settings, people=flags.population)


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
    """A YAML configuration with ``nbafl``, or without privacy."""
    said = document.options()
    if said.sgdmf.use:
        words = "sgdmf.use: noise on single ratings is not priced; describe it in a neutral YAML"
        raise document.error(words, "sgdmf", "use")
    rounds, reason, claim = (
        1,
        "no option of differential privacy is in use: clients send in clear",
        Claim(None, None, "none", "no ε is claimed"),
    )
    if said.nbafl.use:
        rounds = said.federate.total_round_num or 1
        reason = "clients add noise to weights that nothing bounds before they are sent: no sensitivity, no ε"
        claim = Claim(
            said.nbafl.epsilon, None, "total", "nbafl.epsilon; its documentation says the ε-DP guarantee used in NbAFL"
        )
    row = readings.in_clear("client", TO_SERVER, reason, "replace", rounds=rounds)
    return Reading((row,), (claim,), ("every client's weights",), said.rest)


# NVIDIA FLARE

_METRICS = ("validate", "evaluate", "cross_site_validation")  # tasks whose results are numbers, no model


def flare(document: Document) -> Reading:
    """A client's configuration (JSON, YAML): what FLARE's filters do to the results of its tasks.

    FLARE looks a chain up by the exact name of the task and by its direction. Filters on ``task_data_filters``, for another
    task, or on the server protect nothing that a client sends.
    """
    if document.path.stem == "config_fed_server" or "workflows" in document.data:
        raise PricingError(f"{document.path}: a server's: name the configuration of the clients")
    site = document.options()
    filters = [f for group in (*site.task_result_filters, *site.task_data_filters) for f in group.filters]
    others = dict.fromkeys(name for f in filters if (name := _class(f.name)) not in ("SVTPrivacy", "PercentilePrivacy"))
    if own := next((name for name in others if re.search("(?i)privacy|noise|gauss|laplac|dp", name)), None):
        words = f"{own} is not a filter of nvflare that is priced here; describe it in a neutral YAML"
        raise PricingError(f"{document.path}: {words}")
    aside, used = ((f"filters {', '.join(others)}",) if others else ()), _chains(document, site)
    if isinstance(used, str):
        row = readings.in_clear("client", TO_SERVER, used, "replace", rounds=site.num_rounds or 1)
        return Reading((row,), readings.without_claim("no ε is stated"), ("the whole update",), aside)
    size, total = document.ask("parameters"), int(document.ask("rounds", site.num_rounds))
    why = "; and for other tasks ".join(
        f"threshold and selection, then {svt.fraction:g} of the values with Laplace noise, noise_var {svt.noise_var:g} each"
        for svt in used
    )
    spent = PureDP(sum(_svt_epsilon(svt, size) for svt in used) / document.louder)
    row = Row("client", "replace", TO_SERVER, spent, total, 0.0, why)
    words = "SVTPrivacy: the option epsilon covers the selection only; NVFlare's accountant adds the release"
    claim = Claim(sum(svt.epsilon for svt in used), 0.0, "per round, option epsilon", words)
    order = "A client's update is clipped per value, selected and noised; pure ε adds up over rounds; no amplification is used."
    settings = None
    if len(used) == 1:
        settings = {name: vars(used[0])[name] / document.louder for name in ("epsilon", "noise_var")}
    open_ = ("tensors with a single value, which pass in clear", "numbers of steps and metrics")
    return Reading((row,), (claim,), open_, aside, (order,), settings)


def _class(path: object) -> str:
    return str(path).rpartition(".")[2]


def _chains(document: Document, site: Said) -> list[Said] | str:
    """Of each task whose result is a model, the SVT filter that costs least; or why one of them is in clear."""
    groups = [group for group in site.task_result_filters if group.direction.lower() != "in"]
    tasks = [task for each in site.executors for task in each.tasks if task not in (*_METRICS, "*")] or ["train"]
    tasks += [task for group in groups for task in group.tasks if task not in (*_METRICS, "*")]
    found = []
    for task in dict.fromkeys(tasks):  # FLARE 2.9 looks the name up as it stands: ["*"] is the name of no task
        filters = next((group.filters for group in groups if task in group.tasks), ())
        ours = [
            document.options(f.args or {}, "task_result_filters", part="svt") for f in filters if _class(f.name) == "SVTPrivacy"
        ]
        if not (noised := [svt for svt in ours if svt.fraction and _applies(document, svt)]):
            return f"no SVTPrivacy filters what clients send as the result of the task {task!r}, so it goes without noise"
        found.append(min(noised, key=lambda svt: _svt_epsilon(svt, 1e6)))
    return found


def _svt_epsilon(svt: Said, size: float) -> float:
    """The pure ε of one result of so many values."""
    return svt_epsilon(size, svt.fraction, svt.epsilon, svt.noise_var, None, None, None)


def _applies(document: Document, svt: Said) -> bool:
    """Whether a filter handles the kind of data that the site sends; it passes other kinds as they are."""
    kinds = {"WEIGHTS", "WEIGHT_DIFF"} & set(map(_class, svt.data_kinds or ("WEIGHTS", "WEIGHT_DIFF")))
    question = f"Do the clients send {' and '.join(kinds)} (params_transfer_type)? SVTPrivacy filters only that kind."
    return len(kinds) == 2 or (len(kinds) == 1 and document.whether(f"clients send {min(kinds)}", question))
