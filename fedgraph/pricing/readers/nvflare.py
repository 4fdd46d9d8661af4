"""NVIDIA FLARE: privacy filters in a job (``flare_job``), priced by its dearest site.

What is proven of ``SVTPrivacy``, and of several filters: ``docs/how_deployed_noise_is_priced.md``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, flare_job
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.flare_job import KNOWN_FLARE_FILTERS, FlareFilter, FlareJobSite
from fedgraph.pricing.options import Options
from fedgraph.pricing.readings import PRICE_TO_SERVER, PublishedReading, Reading, ReadingRow, ReadingSetting, reading_in_clear

_METRICS = ("validate", "evaluate", "cross_site_validation")  # tasks whose results are numbers, no model
_BUDGETS = ("epsilon", "epsilon_threshold", "epsilon_query", "noise_var", "epsilon_release")
_CLEAR = "no noise is added, so no setting of this filter changes it; use DP-SGD (Opacus) on the clients or SVTPrivacy"


@dataclass(frozen=True)
class _Svt:
    """One SVT filter."""

    epsilon: float  # its option epsilon
    per_round: Callable[[float], float]  # how many parameters there are → what a pass over them costs
    words: str  # what it does
    settings: dict[str, ReadingSetting]  # its options of noise


def read(document: PricedDocument) -> Reading:
    """The dearest site. ``GaussianPrivacy``: a filter of that name is not in the versions that are known."""
    job = flare_job.read_flare_job(document)
    everything = [f.name for site in job.sites for chain in site.chains for f in chain.filters]
    others = tuple(dict.fromkeys((*(_other(name) for name in everything if name not in KNOWN_FLARE_FILTERS), *job.aside)))
    if "GaussianPrivacy" in everything:
        known = "not a filter of nvflare 2.5–2.9; describe yours in a neutral YAML"
        raise PricingError(f"{document.path}: GaussianPrivacy is {known}")

    def clear(reason: str) -> Reading:
        found = reading_in_clear("client", PRICE_TO_SERVER, reason, _CLEAR, job.rounds or 1, "replace")
        return replace(found, unprotected=("the whole update",), not_priced=others)

    if not set(KNOWN_FLARE_FILTERS) & set(everything):
        why = f" ({'; '.join(job.aside)})" if job.aside else ""
        return clear(f"no privacy filter stands on the results that clients send{why}")
    dearest: tuple[float, list[_Svt], int] = (-1.0, [], 0)
    for site in job.sites:
        found = _site(document, site)
        if isinstance(found, str):
            return clear(f"{site.name}: {found}")
        longest = max((len(chain.filters) for chain in site.chains), default=0)
        dearest = max(dearest, (sum(svt.per_round(1e6) for svt in found), found, longest), key=lambda each: each[0])
    if not dearest[1]:
        return clear("no client is in this job")
    found = dearest[1]
    size, total = document.ask("parameters"), int(document.ask("rounds", job.rounds))
    cost = costs.cost_of_pure(sum(svt.per_round(size) for svt in found))
    why = "; and for other tasks ".join(svt.words for svt in found)
    row = ReadingRow("client", "replace", PRICE_TO_SERVER, cost, total, 0.0, why)
    settings = {f"group {i}: {n}": v for i, svt in enumerate(found, 1) for n, v in svt.settings.items()}
    words = "SVTPrivacy: the option epsilon covers the selection only; NVFlare's accountant adds the release"
    claim = PublishedReading(sum(svt.epsilon for svt in found), 0.0, "per round, option epsilon", words)
    several = "Several filters on one result: what stands before SVT it bounds itself, what stands after is post-processing."
    order = "A client's update is clipped per value, selected and noised; pure ε adds up over rounds; no amplification is used."
    open_ = ("tensors with a single value, which pass in clear", "numbers of steps and metrics")
    orders, settings = (order, several) if dearest[2] > 1 else (order,), found[0].settings if len(found) == 1 else settings
    return Reading((row,), (claim,), open_, others, orders, settings)


def _other(name: str) -> str:
    encrypts = "Encrypt" in name or name.startswith("HE")
    return f"{name} encrypts: whoever has the key sees the exact sum; it adds no noise" if encrypts else f"filter {name}"


def _site(document: PricedDocument, site: FlareJobSite) -> list[_Svt] | str:
    """The SVT filters of each task whose result is a model, or why one of them is in clear."""
    covered = [t for chain in site.chains for t in chain.tasks]
    models = [t for t in site.tasks if t not in _METRICS and t != "*"]
    needed = list(dict.fromkeys([*(models or ["train"]), *(t for t in covered if t != "*" and t not in _METRICS)]))
    found = []
    for task in needed:
        clear = f"no privacy filter stands on the result of the task {task!r}"
        if (chain := next((c for c in site.chains if task in c.tasks), None)) is None:
            chain = next((c for c in site.chains if "*" in c.tasks), None)
            if chain is None or not document.ask("filters of every task", task=task):
                said = f"; filters stand on {', '.join(dict.fromkeys(covered))}" if covered else ""
                return f"{clear}{said}: it is sent in clear"
        ours = [f for f in chain.filters if f.name == "SVTPrivacy"]
        noised = [_svt(document, f) for f in ours if _applies(document, site, f)]
        percentiles = [_percentile(document, f) for f in chain.filters if f.name == "PercentilePrivacy"]
        if not noised and ours:
            return f"SVTPrivacy filters {', '.join(_kinds(ours[0]))}, and clients send {site.kind or 'another kind'}"
        if not noised:
            return percentiles[0] if percentiles else f"{clear}: it is sent in clear"
        found.append(noised[0] if len(noised) == 1 else _cheapest(noised))
    return found


def _kinds(used: FlareFilter) -> list[str]:
    held = used.args.get("data_kinds")
    return [str(k).rsplit(".", 1)[-1] for k in held] if isinstance(held, list) and held else ["WEIGHT_DIFF", "WEIGHTS"]


def _applies(document: PricedDocument, site: FlareJobSite, used: FlareFilter) -> bool:
    """Whether a filter handles the kind of data that the site sends; others pass it unfiltered."""
    kinds = set(_kinds(used))
    if unknown := kinds - {"WEIGHTS", "WEIGHT_DIFF"}:
        message = f"{used.name}: data_kinds {', '.join(sorted(unknown))}; allowed: WEIGHTS, WEIGHT_DIFF"
        raise document.error(message, "task_result_filters")
    if len(kinds) == 2 or site.kind is not None:
        return len(kinds) == 2 or site.kind in kinds
    [kind] = kinds
    question = f"Do the clients send {kind} (params_transfer_type)? SVTPrivacy filters only that kind."
    return document.answers.whether(f"clients send {kind}", question)


def _options(document: PricedDocument, used: FlareFilter) -> Options:
    options = Options(document, used.args, ("task_result_filters", used.name))
    options.without_price(["data_kinds"])
    return options


def _percentile(document: PricedDocument, used: FlareFilter) -> str:
    options = _options(document, used)
    percentile, gamma = options.number("percentile", 10.0), options.number("gamma", 0.01)
    options.finish()
    return f"values above percentile {percentile:g}, clipped to ±{gamma:g}, are a function of the data: there is no noise"


def _svt(document: PricedDocument, used: FlareFilter) -> _Svt:
    options, louder = _options(document, used), document.louder
    fraction, noise_var = options.number("fraction", 0.1) or 0.0, options.number("noise_var", 0.1, above=True) or 0.1
    epsilon, release = options.number("epsilon", 0.1, above=True) or 0.1, options.number("epsilon_release", None, above=True)
    first, second = (options.number(name, None, above=True) for name in ("epsilon_threshold", "epsilon_query"))
    options.without_price(["gamma", "tau", "replace"])
    options.finish()
    if not 0 < fraction <= 1:
        raise options.error("fraction", f"fraction: found {fraction}; allowed: in (0, 1]")
    given, both = (first or 0.0) + (second or 0.0), first is not None and second is not None
    if (both and not math.isclose(given, epsilon)) or (not both and given >= epsilon):
        message = f"epsilon_threshold + epsilon_query = {given:g} for epsilon = {epsilon:g}: refused there"
        raise options.error("epsilon", message)

    def per_round(size: float) -> float:
        uploads = math.ceil(size * fraction)
        one = epsilon / (1 + (2 * uploads) ** (2 / 3)) if second is None else epsilon - second
        one = one if first is None else first
        released = release if release is not None else uploads * noise_var
        return (one + (epsilon - one) * size / uploads + released) / louder

    held = zip(_BUDGETS, (epsilon, first, second, noise_var if release is None else None, release), strict=True)
    spent = f"epsilon_release {release:g}" if release is not None else f"noise_var {noise_var:g} each"
    words = f"threshold and selection, then {fraction:g} of the values with Laplace noise, {spent}"
    return _Svt(epsilon, per_round, words, {name: value / louder for name, value in held if value is not None})


def _cheapest(several: list[_Svt]) -> _Svt:
    settings = {f"{i}. {name}": value for i, svt in enumerate(several, 1) for name, value in svt.settings.items()}
    words = f"the cheapest of {len(several)} SVT filters on one result"
    return _Svt(min(svt.epsilon for svt in several), lambda n: min(svt.per_round(n) for svt in several), words, settings)
