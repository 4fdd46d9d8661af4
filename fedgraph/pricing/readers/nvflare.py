"""NVIDIA FLARE: privacy filters in a job (``flare_job``): a client's configuration, a site's ``privacy.json``, the folder of a
job, or a Python file that builds one. The price is that of the dearest site.

    PercentilePrivacy(percentile=10, gamma=0.01)     shares the largest values, clipped: a function of the data, no noise
    SVTPrivacy(fraction=0.1, epsilon=0.1, noise_var=0.1, gamma=1e-5, tau=1e-6)

SVT, with N parameters and c = ⌈N·fraction⌉ uploads: threshold noise Laplace(γ/ε₁), queries Laplace(2γc/ε₂), ε₁ + ε₂ = ε;
values in
[−γ, γ] are released with Laplace(2γc/ε₃), and ε₃ = c·noise_var unless epsilon_release is set. What is proven: each accepted
query costs ε₂/c; a pass may accept more than c (at most N), so selection costs at most ε₁ + ε₂·N/c; each of the c released
values moves by at most 2γ, which costs ε₃/c. Pure ε adds up over rounds.

Several filters. Those of one group are a chain on the same result: what stands before SVT is a function of the client's data,
and SVT bounds every value itself; what stands after it is post-processing. So the chain costs what its cheapest SVT costs.
Groups of different tasks are different results: they add up. Filters in ``task_data_filters`` see what arrives, and protect
nothing that is sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, flare_job, flare_python
from fedgraph.pricing.base import SERVER, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.command_lines import Tree
from fedgraph.pricing.costs import in_clear
from fedgraph.pricing.documents import Document
from fedgraph.pricing.flare_job import Filter, Site
from fedgraph.pricing.options import Options

SYSTEM = "NVIDIA FLARE"
VERSION = "nvflare 2.5–2.9"
SOURCE = (
    "NVIDIA/NVFlare at f3b7c1bff (2026-08-21): nvflare/app_common/filters/{percentile,svt}_privacy.py and "
    "docs/user_guide/admin_guide/security/differential_privacy.rst; read 2026-11-21"
)
SAID = (
    "NVFlare's guide calls SVTPrivacy a practical filter-level accountant that is not equivalent to DP-SGD accounting, "
    "says that "
    "its accountant sums threshold, query and release budgets, and points to Opacus for stronger privacy; it presents "
    "PercentilePrivacy as a sharing policy (Shokri & Shmatikov 2015) and states no ε for it."
)
SIZES = (1e9, 1e8, 7e6, 1e5)


@dataclass(frozen=True)
class Svt:
    """One SVT filter: what a pass costs (parameters, factor on all noise), and its options."""

    epsilon: float
    per_round: Callable[[float, float], float]
    words: str
    settings: Callable[[float], dict[str, Setting]]


def recognises(document: Document) -> bool:
    if document.kind == "python":
        ours = any(name.split(".")[0] == "nvflare" for name in document.imports)
        return ours and (
            bool(document.made(*flare_job.KNOWN)) or not any(n.split(".")[0] == "opacus" for n in document.imports)
        )
    if document.kind not in ("json", "yaml"):
        return False
    keys = ("task_result_filters", "task_data_filters", "executors", "scopes", "apps")
    return any(key in document.data for key in keys)


def read(document: Document) -> Reading:
    """The dearest site. ``GaussianPrivacy``: a filter of that name is not in the versions above."""
    job = flare_python.read(document) if document.kind == "python" else flare_job.read(document)
    everything = [f for site in job.sites for chain in site.chains for f in chain.filters]
    others = tuple(dict.fromkeys((*(_other(f.name) for f in everything if f.name not in flare_job.KNOWN), *job.aside)))
    if any(f.name == "GaussianPrivacy" for f in everything):
        raise PricingError(f"{document.path}: GaussianPrivacy is not a filter of {VERSION}; describe yours in a neutral YAML")
    if not any(f.name in flare_job.KNOWN for f in everything):
        why = f" ({'; '.join(job.aside)})" if job.aside else ""
        return _clear(f"no privacy filter stands on the results that clients send{why}", job.rounds, others)
    dearest: tuple[list[Svt], int] | None = None
    for site in job.sites:
        found = _site(document, site)
        if isinstance(found, str):
            return _clear(f"{site.name}: {found}", job.rounds, others)
        if dearest is None or _worth(found) > _worth(dearest[0]):
            dearest = found, max(len(chain.filters) for chain in site.chains)
    if dearest is None:
        return _clear("no client is in this job", job.rounds, others)
    return _priced(dearest[0], job.rounds, others, dearest[1])


def _worth(found: list[Svt]) -> float:
    return sum(svt.per_round(1e6, 1.0) for svt in found)


def _other(name: str) -> str:
    if "Encrypt" in name or name.startswith("HE"):
        return f"{name} encrypts: whoever has the key sees the exact sum; it adds no noise"
    return f"filter {name}"


def _site(document: Document, site: Site) -> list[Svt] | str:
    """The SVT filters of each task whose result is a model, or why one of them is in clear."""
    covered = [t for chain in site.chains for t in chain.tasks]
    models = [t for t in site.tasks if t not in flare_job.METRICS and t != "*"]
    needed = list(dict.fromkeys([*(models or ["train"]), *(t for t in covered if t != "*" and t not in flare_job.METRICS)]))
    found = []
    for task in needed:
        chain = next((c for c in site.chains if task in c.tasks), None)
        if chain is None:
            chain = next((c for c in site.chains if "*" in c.tasks), None)
            asked = (
                f"Does this version of FLARE apply filters of tasks ['*'] to the task {task!r}? Version 2.9 looks the name up "
                "as it stands, and finds none."
            )
            if chain is None or not document.answers.whether("filters of every task", asked):
                said = f"; filters stand on {', '.join(dict.fromkeys(covered))}" if covered else ""
                return f"no privacy filter stands on the result of the task {task!r}{said}: it is sent in clear"
        noised = [_svt(_options(document, f)) for f in chain.filters if f.name == "SVTPrivacy" and _applies(document, site, f)]
        percentiles = [_percentile(document, f) for f in chain.filters if f.name == "PercentilePrivacy"]
        if not noised:
            skipped = [f for f in chain.filters if f.name == "SVTPrivacy"]
            sent = (
                f"SVTPrivacy filters {', '.join(map(str, _kinds(skipped[0])))}, and clients send {site.kind or 'another kind'}"
                if skipped
                else ""
            )
            return sent or (
                percentiles[0]
                if percentiles
                else f"no privacy filter stands on the result of the task {task!r}: it is sent in clear"
            )
        found.append(noised[0] if len(noised) == 1 else _cheapest(noised))
    return found


def _kinds(used: Filter) -> list[Tree]:
    held = used.args.get("data_kinds")
    return held if isinstance(held, list) and held else ["WEIGHT_DIFF", "WEIGHTS"]


def _applies(document: Document, site: Site, used: Filter) -> bool:
    """Whether a filter handles the kind of data that the site sends; others pass it unfiltered."""
    kinds = {str(k).rsplit(".", 1)[-1] for k in _kinds(used)}
    if unknown := kinds - {"WEIGHTS", "WEIGHT_DIFF"}:
        raise document.error(
            f"{used.name}: data_kinds {', '.join(sorted(unknown))}; allowed: WEIGHTS, WEIGHT_DIFF", "task_result_filters"
        )
    if len(kinds) == 2 or site.kind in kinds:
        return True
    if site.kind is not None:
        return False
    kind = kinds.pop()
    return document.answers.whether(
        f"clients send {kind}", f"Do the clients send {kind} (params_transfer_type)? SVTPrivacy filters only that kind."
    )


def _options(document: Document, used: Filter) -> Options:
    options = Options(document, used.args, ("task_result_filters", used.name))
    options.without_price(["data_kinds"])
    return options


def _percentile(document: Document, used: Filter) -> str:
    options = _options(document, used)
    percentile, gamma = options.number("percentile", 10.0), options.number("gamma", 0.01)
    options.finish()
    return f"values above percentile {percentile:g}, clipped to ±{gamma:g}, are a function of the data: there is no noise"


def _svt(options: Options) -> Svt:
    fraction, epsilon = options.number("fraction", 0.1), options.number("epsilon", 0.1, above=True)
    noise_var, release = options.number("noise_var", 0.1, above=True), options.number("epsilon_release", None, above=True)
    first, second = options.number("epsilon_threshold", None, above=True), options.number("epsilon_query", None, above=True)
    options.without_price(["gamma", "tau", "replace"])
    options.finish()
    if fraction is None or epsilon is None or noise_var is None or not 0 < fraction <= 1:
        raise options.error("fraction", f"fraction: found {fraction}; allowed: in (0, 1]")
    given = (first or 0.0) + (second or 0.0)
    if given >= epsilon and not (first and second and math.isclose(given, epsilon)):
        raise options.error(
            "epsilon", f"epsilon_threshold + epsilon_query = {given:g} for epsilon = {epsilon:g}: refused there"
        )
    if first and second and not math.isclose(given, epsilon):
        raise options.error(
            "epsilon", f"epsilon_threshold + epsilon_query = {given:g} for epsilon = {epsilon:g}: refused there"
        )

    def per_round(size: float, factor: float) -> float:
        uploads = math.ceil(size * fraction)
        one = (
            first if first is not None else epsilon - second if second is not None else epsilon / (1 + (2 * uploads) ** (2 / 3))
        )
        released = release if release is not None else uploads * noise_var
        return (one + (epsilon - one) * size / uploads + released) / factor

    def settings(factor: float) -> dict[str, Setting]:
        shown: dict[str, Setting] = {"epsilon": epsilon / factor}
        shown |= {"epsilon_threshold": first / factor} if first is not None else {}
        shown |= {"epsilon_query": second / factor} if second is not None else {}
        return shown | ({"epsilon_release": release / factor} if release is not None else {"noise_var": noise_var / factor})

    spent = f"epsilon_release {release:g}" if release is not None else f"noise_var {noise_var:g} each"
    words = f"threshold and selection, then {fraction:g} of the values with Laplace noise, {spent}"
    return Svt(epsilon, per_round, words, settings)


def _cheapest(several: list[Svt]) -> Svt:
    def settings(factor: float) -> dict[str, Setting]:
        return {f"{i}. {name}": value for i, svt in enumerate(several, 1) for name, value in svt.settings(factor).items()}

    words = f"the cheapest of {len(several)} SVT filters on one result"
    return Svt(min(svt.epsilon for svt in several), lambda n, f: min(svt.per_round(n, f) for svt in several), words, settings)


def _priced(found: list[Svt], rounds: int | None, others: tuple[str, ...], longest: int) -> Reading:
    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        total = rounds if rounds is not None else int(facts["rounds"])
        cost = costs.pure(sum(svt.per_round(facts["parameters"], factor) for svt in found))
        why = "; and for other tasks ".join(svt.words for svt in found)
        return (Row("client", "replace", SERVER, cost, total, 0.0, why),)

    def settings(factor: float) -> dict[str, Setting]:
        if len(found) == 1:
            return found[0].settings(factor)
        return {f"group {i}: {n}": v for i, svt in enumerate(found, 1) for n, v in svt.settings(factor).items()}

    size = Unknown("parameters", "How many parameters does the model have? Each released value costs noise_var.", SIZES)
    words = "SVTPrivacy: the option epsilon covers the selection only; NVFlare's accountant adds the release"
    more = (Unknown("rounds", "How many rounds are run (num_rounds)?", (1000.0, 100.0, 10.0, 1.0)),) if rounds is None else ()
    order = [
        "A client's update is clipped per value, selected and noised; pure ε adds up over rounds; no amplification is used."
    ]
    if longest > 1:
        order.append(
            "Several filters on one result: what stands before SVT it bounds itself, what stands after is post-processing."
        )
    return Reading(
        rows,
        (Published(sum(svt.epsilon for svt in found), 0.0, "per round, option epsilon", words),),
        (size, *more),
        ("tensors with a single value, which pass in clear", "numbers of steps and metrics"),
        others,
        tuple(order),
        settings,
    )


def _clear(reason: str, rounds: int | None, others: tuple[str, ...]) -> Reading:
    none = "no noise is added, so no setting of this filter changes it; use DP-SGD (Opacus) on the clients or SVTPrivacy"
    return replace(
        in_clear("client", SERVER, reason, none, rounds or 1, "replace"), unprotected=("the whole update",), not_priced=others
    )
