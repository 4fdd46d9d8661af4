"""pfl-research (Apple): a Python file with its accountants and mechanisms, or the flags (YAML) of its benchmarks.

    PLDPrivacyAccountant / PRVPrivacyAccountant / RDPPrivacyAccountant(num_compositions, sampling_probability, mechanism,
        epsilon, delta, noise_parameter, noise_scale)   two of epsilon, delta, noise_parameter; the third is found
    GaussianMechanism(clipping_bound, relative_noise_stddev), .construct_single_iteration(clipping_bound, epsilon, delta)
    AdaptiveClippingGaussianMechanism(…)                the clip follows a noisy quantile, which is part of the same release
    LaplaceMechanism(clipping_bound, epsilon)
    BandedMatrixFactorizationMechanism(clipping_bound, num_iterations, min_separation, make_privacy_accountant)
    JointPrivacyAccountant(mechanisms, accountants, num_compositions, sampling_probability, …, noise_parameters)

The accountant prices ``noise_parameter``; what is added in simulation is noise_scale·noise_parameter (a small cohort standing
for a large one), so a **real** run with noise_scale < 1 is worth less: both are priced. ``_pfl`` says what each is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, pfl_training, training
from fedgraph.pricing.base import MODELS, Facts, Published, Reading, Row
from fedgraph.pricing.costs import in_clear
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.pricing.pfl_training import Part, Said
from fedgraph.pricing.python_values import Call, plain
from fedgraph.pricing.questions import text

SYSTEM = "pfl-research"
VERSION = "pfl 0.2–0.6"
SOURCE = (
    "apple/pfl-research at c9d1f32 (2026-04-05): pfl/privacy/*.py, benchmarks/utils/argument_parsing.py; pfl 0.6.0 from the "
    "package index; read 2026-11-22"
)
SAID = (
    "pfl says that noise_scale (noise_cohort_size in its benchmarks) is for experiments with small cohorts that stand for "
    "large ones, that GaussianMechanism alone covers a user who takes part once, and that its banded mechanism needs a strict "
    "schedule of who takes part."
)
ACCOUNTANTS = ("PLDPrivacyAccountant", "PRVPrivacyAccountant", "RDPPrivacyAccountant")
BANDED, ADAPTIVE, LAPLACE = "BandedMatrixFactorizationMechanism", "AdaptiveClippingGaussianMechanism", "LaplaceMechanism"
SINGLE = "construct_single_iteration"
PLACES = {"epsilon": 3, "noise_parameter": 5, "noise_scale": 6}
KEYS = (
    *ACCOUNTANTS,
    BANDED,
    LAPLACE,
    SINGLE,
    "GaussianMechanism",
    "JointPrivacyAccountant",
    "construct_from_privacy_accountant",
    ADAPTIVE,
)
CENTRAL = ("none", "gaussian", "gaussian_moments_accountant", "laplace", "norm_clipping_only", "banded_matrix_factorization")
NO_PRICE = (
    "args_config", "seed", "data_path", "save_model_path", "restore_model_path", "wandb_project_id", "evaluation_frequency",
    "val_cohort_size", "learning_rate", "local_num_epochs", "local_batch_size", "local_learning_rate", "weight_by_samples",
    "central_eval_batch_size", "central_privacy_clipping_bound", "local_privacy_clipping_bound", "central_order", "local_order",
    "dataset", "model_name", "algorithm_name", "mean_datapoints_per_user", "datapoints_per_user_distribution",
    "partition_alpha", "add_all_arguments", "mu", "adafedprox_metric_name", "adafedprox_adapt_frequency",
    "scaffold_population", "use_cuda", "central_lr_num_warmup_iterations", "central_optimizer", "adaptivity_degree",
    "weighting", "weight_clip",
)  # fmt: skip


def recognises(document: Document) -> bool:
    if document.kind == "python":
        return any(name.split(".")[0] == "pfl" for name in document.imports)
    return document.kind in ("command", "namespace", "json", "yaml") and "central_privacy_mechanism" in document.data


def read(document: Document) -> Reading:
    if document.kind != "python":
        return _flags(document)
    joint = _only(document, "JointPrivacyAccountant")
    if joint is not None:
        return _joint(document, joint)
    several = [call for call in _taken(document) if call.name in (BANDED, LAPLACE, SINGLE) or ADAPTIVE in call.dotted]
    if document.made("JointMechanism") or len(several) > 1:
        raise PricingError(f"{document.path}: not priced: several mechanisms and no JointPrivacyAccountant that holds them all")
    call = several[0] if several else None
    if call is not None and call.name == LAPLACE:
        return _alone(document, call, "laplace", _need(document, call, "epsilon", 1), None)
    if call is not None and call.name == SINGLE:
        return _alone(document, call, "gaussian", _need(document, call, "epsilon", 1), _need(document, call, "delta", 2))
    accountant = _only(document, *ACCOUNTANTS)
    if call is not None and call.name == BANDED:
        return _banded(document, call, accountant)
    if accountant is None:
        return _mechanism(document, call)
    said, kind = _said(document, accountant)
    if kind == "laplace":
        if said.noise is None:
            message = "not priced: a Laplace accountant without noise_parameter; write the one it found"
            raise document.error(message, line=accountant.line)
        return pfl_training.laplace(said)
    return _gaussian(document, call, said)


def _only(document: Document, *names: str) -> Call | None:
    """The one call of these names; two different ones are an error."""
    found = [call for call in _taken(document) if call.name in names]
    if any((c.name, c.args, dict(c.keywords)) != (found[0].name, found[0].args, dict(found[0].keywords)) for c in found[1:]):
        lines = ", ".join(str(call.line) for call in found)
        raise PricingError(f"{document.path}: several accountants (lines {lines}); one file prices one run")
    return found[0] if found else None


def _taken(document: Document) -> list[Call]:
    """The calls that are reached, or all of a file that only defines."""
    names = {call.name for call in document.calls if call.name in KEYS or ADAPTIVE in call.dotted}
    return sorted((c for name in names for c in training.protections(document, name)[0]), key=lambda c: c.line)


def _need(document: Document, call: Call, name: str, position: int) -> float:
    value = document.number(call, name, position)
    if value is None or value <= 0:
        raise document.error(f"{call.name} needs {name} as a number > 0", line=call.line)
    return value


def _said(document: Document, call: Call) -> tuple[Said, str]:
    """What an accountant's call says, and its mechanism."""
    rounds = document.number(call, "num_compositions", 0, "rounds")
    rate = document.number(call, "sampling_probability", 1, "sampling rate")
    epsilon, delta = document.number(call, "epsilon", 3), document.number(call, "delta", 4)
    noise, scale = document.number(call, "noise_parameter", 5), document.number(call, "noise_scale", 6)
    kind = str(plain(call.get("mechanism", 2))).lower()
    for name, found in (("noise_parameter", noise), ("noise_scale", scale), ("epsilon", epsilon)):
        if found is None and call.get(name, PLACES[name]) is not None:
            raise document.error(
                f"{call.name}: {name} is {text(call.get(name, PLACES[name]))}; write it as a number", line=call.line
            )
    if kind not in ("gaussian", "laplace"):
        raise document.error(f"not priced: mechanism {call.get('mechanism', 2)!r}; allowed: gaussian, laplace", line=call.line)
    if noise is None and (epsilon is None or delta is None):
        raise document.error(f"{call.name} needs two of epsilon, delta, noise_parameter as numbers", line=call.line)
    scale = 1.0 if scale is None else scale
    if not 0 < scale <= 1 or (rate is not None and not 0 <= rate <= 1):
        raise document.error("noise_scale lies in (0, 1], sampling_probability in [0, 1]", line=call.line)
    if any(v is not None and v <= 0 for v in (noise, epsilon, delta)) or (delta is not None and delta >= 1):
        raise document.error("epsilon and noise_parameter are > 0, and δ lies in (0, 1)", line=call.line)
    return Said(call.name, noise, epsilon, delta, rate, int(rounds) if rounds else None, scale), kind


def _banded(document: Document, call: Call, accountant: Call | None) -> Reading:
    if accountant is None:
        raise document.error(f"{BANDED}: its accountant is not in this file", line=call.line)
    said, kind = _said(document, accountant)
    if kind != "gaussian":
        raise document.error(f"{BANDED} adds Gaussian noise; its accountant says {kind!r}", line=accountant.line)
    rounds, separation = document.number(call, "num_iterations", 1), document.number(call, "min_separation", 2)
    if any(v is not None and (v < 1 or v != int(v)) for v in (rounds, separation)) or separation == 1:
        raise document.error("num_iterations is a whole number ≥ 1, min_separation one ≥ 2", line=call.line)
    sampler = next((str(plain(c.get("sample_type", 0))) for c in document.made("get_user_sampler")), None)
    whole = int(rounds) if rounds is not None else None
    return pfl_training.banded(replace(said, rounds=whole), int(separation) if separation is not None else None, sampler)


def _gaussian(document: Document, adaptive: Call | None, said: Said) -> Reading:
    """Gaussian noise, the clip fixed or following a quantile; pfl's own condition on the noise of the clipping indicator."""
    if adaptive is None:
        return pfl_training.gaussian(said)
    indicator = document.number(adaptive, "clipping_indicator_noise_stddev", 2)  # third of both its constructors
    if indicator is not None and said.noise is not None and indicator <= said.noise:
        message = f"clipping_indicator_noise_stddev = {indicator:g} must lie above the noise_parameter {said.noise:g}"
        raise document.error(message, line=adaptive.line)
    more = " The quantile that moves the clip is a coordinate of the same release, whose joint norm is the clip."
    return pfl_training.gaussian(said, pfl_training.ORDER + more)


def _alone(document: Document, call: Call, kind: str, epsilon: float, delta: float | None) -> Reading:
    """A mechanism without accountant: central where the file wraps it so, else applied by each user."""
    said = Said(call.name, epsilon=epsilon, delta=delta)
    found = pfl_training.laplace(said) if kind == "laplace" else pfl_training.single(said)
    wrappers = document.made("CentrallyAppliedPrivacyMechanism")
    if any(plain(w.get("underlying_mechanism", 0)) is call for w in wrappers):
        return found
    alone = f"No CentrallyAppliedPrivacyMechanism wraps it in this file, so that each user applies it. {pfl_training.ORDER}"
    unknowns = tuple(u for u in found.unknowns if u.name != "sampling rate")
    return replace(found, rows=pfl_training.local(kind, epsilon, delta, None), unknowns=unknowns, order=(alone,))


def _mechanism(document: Document, adaptive: Call | None) -> Reading:
    call = next((c for c in _taken(document) if c.name == "GaussianMechanism"), None)
    if call is None and (dead := document.dead(*KEYS)):
        reason = (
            f"{dead.name} stands in {dead.function}() (line {dead.line}), which nothing calls: statistics are sent in clear"
        )
        return in_clear("user", MODELS, reason, "give the mechanism to the algorithm first")
    if call is None:
        raise PricingError(f"{document.path}: no accountant and no mechanism of pfl with numbers stands here")
    noise = document.number(call, "relative_noise_stddev", 1)
    if noise is None or noise < 0:
        raise document.error("GaussianMechanism needs relative_noise_stddev as a number ≥ 0", line=call.line)
    return _gaussian(document, adaptive, Said(call.name, noise))


def _joint(document: Document, call: Call) -> Reading:
    def listed(name: str, position: int, count: int) -> list[float | None]:
        value = plain(call.get(name, position))
        values = value if isinstance(value, list) else [value] * count
        if len(values) != count:
            raise document.error(f"{name}: {len(values)} values for {count} mechanisms", line=call.line)
        return [document.answers.number(v, name, call.line) for v in values]

    kinds = plain(call.get("mechanisms", 0))
    if not isinstance(kinds, list) or not kinds or any(str(plain(k)).lower() not in ("gaussian", "laplace") for k in kinds):
        raise document.error("JointPrivacyAccountant: mechanisms is a list of 'gaussian' and 'laplace'", line=call.line)
    rounds, rates, noises = (
        listed(name, at, len(kinds))
        for name, at in (("num_compositions", 2), ("sampling_probability", 3), ("noise_parameters", 9))
    )
    parts = tuple(
        Part(str(plain(k)).lower(), n, q, int(r))
        for k, n, q, r in zip(kinds, noises, rates, rounds, strict=True)
        if n is not None and q is not None and r is not None and n > 0 and 0 <= q <= 1 and r >= 1
    )
    if len(parts) < len(kinds):
        raise document.error(
            "not priced: JointPrivacyAccountant without numbers in noise_parameters, num_compositions, sampling_probability: "
            "print the noise_parameters that it found and write them there",
            line=call.line,
        )
    epsilon, delta = document.number(call, "total_epsilon", 4), document.number(call, "total_delta", 5)
    return pfl_training.joint(Said(call.name, epsilon=epsilon, delta=delta), parts, "noise_parameters")


def _flags(document: Document) -> Reading:
    options = Options(document, document.data)
    mechanism = options.choice("central_privacy_mechanism", CENTRAL, "none")
    each = options.choice("local_privacy_mechanism", ("none", "gaussian", "laplace", "norm_clipping_only"), "none")
    own = (options.number("local_epsilon", 1.0, above=True) or 1.0, options.delta("local_delta", 1e-5) or 1e-5)
    said, separation = _run(options, mechanism), options.whole("min_separation", 48, 2)
    options.without_price(NO_PRICE)
    priced: dict[str, Callable[[Said], Reading]] = {
        "gaussian": pfl_training.single,
        "gaussian_moments_accountant": pfl_training.gaussian,
        "laplace": pfl_training.laplace,
        "banded_matrix_factorization": lambda s: pfl_training.banded(s, separation, None),
    }
    found = replace(priced[mechanism](said) if mechanism in priced else _open(said, mechanism), not_priced=tuple(options.rest))
    if each in ("none", "norm_clipping_only"):
        return found
    central, local = found.rows, pfl_training.local(each, *own, said.rounds)
    claim = Published(own[0], 0.0 if each == "laplace" else own[1], "per round", f"{said.name}: local {each}")
    if mechanism not in priced:
        no_fix, order = "lower local_epsilon", (pfl_training.ORDER,)
        return replace(
            found,
            rows=local,
            published=(claim,),
            unprotected=pfl_training.UNPROTECTED[:1],
            order=order,
            settings=None,
            no_fix=no_fix,
        )

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        return (*central(facts, factor), *local(facts, 1.0))

    return replace(found, rows=rows, published=(*found.published, claim))


def _run(options: Options, mechanism: str) -> Said:
    """What the benchmarks' flags say of the run, with the defaults of their parser."""
    rounds, cohort = options.whole("central_num_iterations", 200, 1), options.number("cohort_size", 1000.0, above=True) or 1e3
    wanted = options.number("noise_cohort_size", 1000.0, above=True) or 1e3
    population = options.number("population", 1e7, above=True) or 1e7
    epsilon, delta = options.number("central_epsilon", 1.0, above=True), options.delta("central_delta", 1e-5)
    accounted = mechanism in ("gaussian_moments_accountant", "banded_matrix_factorization")
    if max(cohort, wanted if accounted else 0) > population:
        raise options.error("population", f"a cohort of {max(cohort, wanted):g} out of a population of {population:g}")
    if accounted and cohort > wanted:
        raise options.error("noise_cohort_size", f"cohort_size {cohort:g} above noise_cohort_size {wanted:g}: pfl refuses it")
    said = Said(pfl_training.FLAGS, None, epsilon, delta, cohort / population, rounds)
    if not accounted:
        return said
    return replace(said, rate=wanted / population, scale=cohort / wanted, trained=cohort / population)


def _open(said: Said, mechanism: str) -> Reading:
    """No central mechanism, or only a clip."""

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        why = f"central_privacy_mechanism {mechanism!r} adds no noise"
        return (Row("user", "zero-out", MODELS, costs.unprotected(why), said.rounds or 1, said.delta or 1e-5, why),)

    claim = Published(None, None, "none", f"{said.name}: no ε")
    return Reading(rows, (claim,), unprotected=("everything",), no_fix="choose a mechanism first")
