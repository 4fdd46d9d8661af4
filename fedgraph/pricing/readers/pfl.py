"""pfl-research (Apple): a Python file with its accountants and mechanisms, or the flags of its benchmarks (YAML, or a command
line with ``--args_config``, whose YAML is read). ``pfl_mechanisms`` says what each is worth.

The accountant prices ``noise_parameter``; a simulation adds noise_scale·noise_parameter (a small cohort standing for a large
one), so that a **real** run with noise_scale < 1 is worth less: both are priced.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import documents, pfl_mechanisms
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.open_facts import open_fact_text
from fedgraph.pricing.options import Options
from fedgraph.pricing.parsers import ParsedTree
from fedgraph.pricing.pfl_mechanisms import JointPflMechanismPart, PflMechanism
from fedgraph.pricing.python_values import CallValue, python_plain, value_elements
from fedgraph.pricing.readings import PRICE_WITH_MODELS, PublishedReading, Reading, reading_in_clear, reading_without_claim

_ACCOUNTANTS = ("PLDPrivacyAccountant", "PRVPrivacyAccountant", "RDPPrivacyAccountant")
_BANDED, _ADAPTIVE, _LAPLACE = "BandedMatrixFactorizationMechanism", "AdaptiveClippingGaussianMechanism", "LaplaceMechanism"
_WRAPPER = "CentrallyAppliedPrivacyMechanism"
_SINGLE, _JOINT = "construct_single_iteration", "JointPrivacyAccountant"
_PRICED: Mapping[str, Callable[[PricedDocument, PflMechanism], Reading]] = {
    "gaussian": pfl_mechanisms.single_pfl_mechanism,
    "gaussian_moments_accountant": pfl_mechanisms.gaussian_pfl_mechanism,
    "laplace": pfl_mechanisms.laplace_pfl_mechanism,
}
_KEYS = (*_ACCOUNTANTS, _BANDED, _LAPLACE, _SINGLE, "GaussianMechanism", _JOINT, "construct_from_privacy_accountant", _ADAPTIVE)
CENTRAL = ("none", "gaussian", "gaussian_moments_accountant", "laplace", "norm_clipping_only", "banded_matrix_factorization")


def read(document: PricedDocument) -> Reading:
    if document.kind != "python":
        return _flags(document)
    given = [c.get("postprocessors") or () for c in document.calls if c.reached and "postprocessors" in c.keywords]
    lists = [value_elements(each) for each in given]
    held = [inner for each in lists for value in each or () if isinstance(inner := python_plain(value), CallValue)]
    if lists and None not in lists and not any(c.name in (_WRAPPER, *_KEYS) or _ADAPTIVE in c.dotted for c in held):
        reason = "no mechanism stands in the postprocessors of the backend: statistics are sent in clear"
        return reading_in_clear("user", PRICE_WITH_MODELS, reason, "give the mechanism to the backend first")
    if (joint := _only(document, _JOINT)) is not None:
        return _joint(document, joint)
    several = [call for call in _taken(document) if call.name in (_BANDED, _LAPLACE, _SINGLE) or _ADAPTIVE in call.dotted]
    if document.made("JointMechanism") or len(several) > 1:
        raise PricingError(f"{document.path}: not priced: several mechanisms and no {_JOINT} that holds them all")
    call = several[0] if several else None
    if call is not None and call.name in (_LAPLACE, _SINGLE):
        # A mechanism without accountant: central where the file wraps it so, else applied by each user.
        kind = "laplace" if call.name == _LAPLACE else "gaussian"
        delta = document.need(call, "delta", above=0.0, below=1.0) if kind == "gaussian" else None
        said = PflMechanism(call.name, epsilon=document.need(call, "epsilon", above=0.0), delta=delta)
        priced = pfl_mechanisms.laplace_pfl_mechanism if kind == "laplace" else pfl_mechanisms.single_pfl_mechanism
        if any(python_plain(w.get("underlying_mechanism")) is call for w in document.made(_WRAPPER)):
            return priced(document, said)
        alone = "No CentrallyAppliedPrivacyMechanism wraps it in this file, so that each user applies it. "
        rows = pfl_mechanisms.local_pfl_mechanism(document, kind, said, document.louder)
        return replace(priced(document, replace(said, rate=1.0)), rows=tuple(rows), order=(alone + pfl_mechanisms.ORDER,))
    accountant = _only(document, *_ACCOUNTANTS)
    if call is not None and call.name == _BANDED:
        if accountant is None:
            raise document.error_at(call, f"{_BANDED}: its accountant is not in this file")
        said, kind = _said(document, accountant)
        if kind != "gaussian":
            raise document.error_at(accountant, f"{_BANDED} adds Gaussian noise; its accountant says {kind!r}")
        rounds, separation = document.number(call, "num_iterations"), document.number(call, "min_separation")
        if any(v is not None and (v < 1 or v != int(v)) for v in (rounds, separation)) or separation == 1:
            raise document.error_at(call, "num_iterations is a whole number ≥ 1, min_separation one ≥ 2")
        sampler = next((str(python_plain(c.get("sample_type"))) for c in document.made("get_user_sampler")), None)
        said = replace(said, rounds=int(rounds) if rounds is not None else None)
        return pfl_mechanisms.banded_pfl_mechanism(document, said, int(separation) if separation is not None else None, sampler)
    if accountant is None:
        return _mechanism(document, call)
    said, kind = _said(document, accountant)
    if kind == "laplace":
        if said.noise is None:
            message = "not priced: a Laplace accountant without noise_parameter; write the one it found"
            raise document.error_at(accountant, message)
        return pfl_mechanisms.laplace_pfl_mechanism(document, said)
    return _gaussian(document, call, said)


def _only(document: PricedDocument, *names: str) -> CallValue | None:
    """The one call of these names; two different ones are an error."""
    found = [call for call in _taken(document) if call.name in names]
    if any((c.name, c.args, dict(c.keywords)) != (found[0].name, found[0].args, dict(found[0].keywords)) for c in found[1:]):
        lines = ", ".join(str(call.line) for call in found)
        raise PricingError(f"{document.path}: several accountants (lines {lines}); one file prices one run")
    return found[0] if found else None


def _taken(document: PricedDocument) -> list[CallValue]:
    """The calls that are reached, or all of a file that only defines."""
    names = {call.name for call in document.calls if call.name in _KEYS or _ADAPTIVE in call.dotted}
    return sorted((c for name in sorted(names) for c in document.used(name)[0]), key=lambda c: c.line)


def _said(document: PricedDocument, call: CallValue) -> tuple[PflMechanism, str]:
    """What an accountant's call says, and its mechanism."""
    rounds = document.number(call, "num_compositions", "rounds")
    rate = document.number(call, "sampling_probability", "sampling rate")
    epsilon, delta, noise, scale = (document.number(call, n) for n in ("epsilon", "delta", "noise_parameter", "noise_scale"))
    for name, found in (("noise_parameter", noise), ("noise_scale", scale), ("epsilon", epsilon)):
        if found is None and call.held(name) is not None:
            raise document.error_at(call, f"{call.name}: {name} is {open_fact_text(call.held(name))}; write it as a number")
    if (kind := str(python_plain(call.get("mechanism"))).lower()) not in ("gaussian", "laplace"):
        raise document.error_at(call, f"not priced: mechanism {call.get('mechanism')!r}; allowed: gaussian, laplace")
    if noise is None and (epsilon is None or delta is None):
        raise document.error_at(call, f"{call.name} needs two of epsilon, delta, noise_parameter as numbers")
    scale = 1.0 if scale is None else scale
    if not 0 < scale <= 1 or (rate is not None and not 0 <= rate <= 1):
        raise document.error_at(call, "noise_scale lies in (0, 1], sampling_probability in [0, 1]")
    if any(v is not None and v <= 0 for v in (noise, epsilon, delta)) or (delta is not None and delta >= 1):
        raise document.error_at(call, "epsilon and noise_parameter are > 0, and δ lies in (0, 1)")
    run = [n for c in document.calls if c.reached and (n := document.number(c, "central_num_iterations", "rounds")) is not None]
    ran = int(sum(run)) if run and rounds and sum(run) > rounds else None
    return PflMechanism(call.name, noise, epsilon, delta, rate, int(rounds) if rounds else None, scale, run=ran), kind


def _gaussian(document: PricedDocument, adaptive: CallValue | None, said: PflMechanism) -> Reading:
    """Gaussian noise, the clip fixed or following a quantile; pfl's own condition on the noise of the clipping indicator."""
    if adaptive is None:
        return pfl_mechanisms.gaussian_pfl_mechanism(document, said)
    held = adaptive.get("clipping_indicator_noise_stddev", 2)  # third of both its constructors
    indicator = document.answers.number(held, "clipping_indicator_noise_stddev", adaptive.line)
    if indicator is not None and said.noise is not None and indicator <= said.noise:
        message = f"clipping_indicator_noise_stddev = {indicator:g} must lie above the noise_parameter {said.noise:g}"
        raise document.error_at(adaptive, message)
    more = " The quantile that moves the clip is a coordinate of the same release, whose joint norm is the clip."
    return pfl_mechanisms.gaussian_pfl_mechanism(document, said, pfl_mechanisms.ORDER + more)


def _mechanism(document: PricedDocument, adaptive: CallValue | None) -> Reading:
    call = next((c for c in _taken(document) if c.name == "GaussianMechanism"), None)
    if call is None and (dead := document.dead(*_KEYS)):
        stands = f"{dead.name} stands in {dead.function}() (line {dead.line}), which nothing calls"
        reason = f"{stands}: statistics are sent in clear"
        return reading_in_clear("user", PRICE_WITH_MODELS, reason, "give the mechanism to the algorithm first")
    if call is None:
        raise PricingError(f"{document.path}: no accountant and no mechanism of pfl with numbers stands here")
    return _gaussian(document, adaptive, PflMechanism(call.name, document.need(call, "relative_noise_stddev", least=0.0)))


def _joint(document: PricedDocument, call: CallValue) -> Reading:
    def listed(name: str, count: int) -> list[float | None]:
        value = python_plain(call.get(name))
        values = value if isinstance(value, list) else [value] * count
        if len(values) != count:
            raise document.error_at(call, f"{name}: {len(values)} values for {count} mechanisms")
        return [document.answers.number(v, name, call.line) for v in values]

    held = python_plain(call.get("mechanisms"))
    kinds = [str(python_plain(k)).lower() for k in held] if isinstance(held, list) else []
    if not kinds or set(kinds) - {"gaussian", "laplace"}:
        raise document.error_at(call, f"{_JOINT}: mechanisms is a list of 'gaussian' and 'laplace'")
    rounds, rates, noises = (listed(n, len(kinds)) for n in ("num_compositions", "sampling_probability", "noise_parameters"))
    parts = tuple(
        JointPflMechanismPart(k, n, q, int(r))
        for k, n, q, r in zip(kinds, noises, rates, rounds, strict=True)
        if n is not None and q is not None and r is not None and n > 0 and 0 <= q <= 1 and r >= 1
    )
    if len(parts) < len(kinds):
        needs = "numbers in noise_parameters, num_compositions, sampling_probability"
        message = f"not priced: {_JOINT} without {needs}: print the noise_parameters that it found and write them there"
        raise document.error(message, line=call.line)
    epsilon, delta = (document.number(call, name) for name in ("total_epsilon", "total_delta"))
    return pfl_mechanisms.joint_pfl_mechanism(document, PflMechanism(call.name, None, epsilon, delta), parts)


def _configured(document: PricedDocument) -> dict[str, ParsedTree]:
    """The flags of a command line over those of the YAML of its ``--args_config``, beside the file or where we stand."""
    name = document.data.get("args_config")
    if not isinstance(name, str) or document.kind not in ("command", "namespace"):
        return document.data
    if not (paths := [path for path in (document.path.parent / name, Path(name)) if path.is_file()]):
        message = f"args_config: there is no {name} beside this file or here; copy it or give its path"
        raise document.error(message, "args_config")
    return {**documents.read_priced_document(paths[0]).data, **document.data}


def _flags(document: PricedDocument) -> Reading:
    options = Options(document, _configured(document))
    mechanism = options.choice("central_privacy_mechanism", CENTRAL, "none")
    each = options.choice("local_privacy_mechanism", ("none", "gaussian", "laplace", "norm_clipping_only"), "none")
    own = (options.number("local_epsilon", 1.0, above=True) or 1.0, options.delta("local_delta", 1e-5) or 1e-5)
    said, separation = _run(options, mechanism), options.whole("min_separation", 48, 2)
    rest = tuple(options.rest)
    if mechanism in _PRICED:
        found = _PRICED[mechanism](document, said)
    elif mechanism == "banded_matrix_factorization":
        found = pfl_mechanisms.banded_pfl_mechanism(document, said, separation, None)
    else:
        why = f"central_privacy_mechanism {mechanism!r} adds no noise"
        found = reading_in_clear("user", PRICE_WITH_MODELS, why, "choose a mechanism first", said.rounds or 1)
        found = replace(found, published=reading_without_claim(f"{said.name}: no ε"))
    found = replace(found, not_priced=rest)
    if each in ("none", "norm_clipping_only"):
        return found
    central = mechanism not in ("none", "norm_clipping_only")
    louder = 1.0 if central else document.louder
    local = pfl_mechanisms.local_pfl_mechanism(document, each, replace(said, epsilon=own[0], delta=own[1]), louder)
    claim = PublishedReading(own[0], 0.0 if each == "laplace" else own[1], "per round", f"{said.name}: local {each}")
    if central:
        return replace(found, rows=(*found.rows, *local), published=(*found.published, claim))
    return replace(found, rows=tuple(local), published=(claim,), unprotected=pfl_mechanisms.UNPROTECTED[:1],
                   order=(pfl_mechanisms.ORDER,), settings=None, no_fix="lower local_epsilon")  # fmt: skip


def _run(options: Options, mechanism: str) -> PflMechanism:
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
    rate = cohort / population
    said = PflMechanism(pfl_mechanisms.FLAGS, None, epsilon, delta, rate, rounds, people=population)
    return said if not accounted else replace(said, rate=wanted / population, scale=cohort / wanted, trained=rate)
