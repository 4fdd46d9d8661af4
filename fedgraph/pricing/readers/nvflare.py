"""NVIDIA FLARE: privacy filters in a client's ``config_fed_client.json`` (or .conf as JSON, or YAML), in a site's
``privacy.json`` with its scopes, or in a Python file that builds a job.

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
from dataclasses import dataclass

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, training
from fedgraph.pricing.base import SERVER, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.documents import Document, Tree, table
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
KNOWN = ("PercentilePrivacy", "SVTPrivacy", "GaussianPrivacy")
PLACES = {
    "SVTPrivacy": ("fraction", "epsilon", "noise_var", "gamma", "tau", "data_kinds", "replace", "epsilon_threshold",
                   "epsilon_query", "epsilon_release"),
    "PercentilePrivacy": ("percentile", "gamma", "data_kinds"),
}  # fmt: skip


@dataclass(frozen=True)
class Filter:
    """A filter and its options."""

    name: str
    args: dict[str, Tree]


Chain = tuple[str, tuple[Filter, ...]]  # (the tasks, the filters in their order)


@dataclass(frozen=True)
class Svt:
    """One SVT filter: what a pass costs (parameters, factor on all noise), and its options."""

    epsilon: float
    per_round: Callable[[float, float], float]
    words: str
    settings: Callable[[float], dict[str, Setting]]


def recognises(document: Document) -> bool:
    if document.kind == "python":
        return any(name.split(".")[0] == "nvflare" for name in document.imports)
    if document.kind not in ("json", "yaml"):
        return False
    keys = ("task_result_filters", "task_data_filters", "executors", "scopes")
    return any(key in document.data for key in keys)


def read(document: Document) -> Reading:
    """The privacy filters on what clients send. ``GaussianPrivacy``: a filter of that name is not in the versions above."""
    chains = _python(document) if document.kind == "python" else _chains(document)
    rounds = _rounds(document)
    others = tuple(f"filter {f.name}" for _, chain in chains for f in chain if f.name not in KNOWN)
    inward = tuple(
        f"{f.name} in task_data_filters: it filters what arrives, not what is sent"
        for _, chain in _grouped(document, document.data, "task_data_filters")
        for f in chain
        if f.name in KNOWN
    )
    private = [(tasks, [f for f in chain if f.name in KNOWN]) for tasks, chain in chains]
    private = [(tasks, chain) for tasks, chain in private if chain]
    if any(f.name == "GaussianPrivacy" for _, chain in private for f in chain):
        raise PricingError(f"{document.path}: GaussianPrivacy is not a filter of {VERSION}; describe yours in a neutral YAML")
    if not private:
        return _clear("no privacy filter stands in task_result_filters: results are sent in clear", rounds, (*others, *inward))
    found: list[Svt] = []
    for tasks, chain in private:
        percentiles = [_percentile(document, f) for f in chain if f.name == "PercentilePrivacy"]
        noised = [_svt(_options(document, f)) for f in chain if f.name == "SVTPrivacy"]
        if not noised:
            for_tasks = f" (tasks {tasks})" if len(private) > 1 else ""
            return _clear(f"{percentiles[0]}{for_tasks}", rounds, (*others, *inward))
        found.append(noised[0] if len(noised) == 1 else _cheapest(noised))
    return _priced(found, rounds, (*others, *inward), max(len(chain) for _, chain in private))


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
    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        return (Row("client", "replace", SERVER, costs.unprotected(reason), rounds or 1, 0.0, reason),)

    none = "no noise is added, so no setting of this filter changes it; use DP-SGD (Opacus) on the clients or SVTPrivacy"
    return Reading(rows, (Published(None, None, "none", "no ε is stated"),), (), ("the whole update",), others, no_fix=none)


def _chains(document: Document) -> list[Chain]:
    """The groups of ``task_result_filters``, of the file or of the one scope with privacy filters in it."""
    if "scopes" not in document.data:
        return _grouped(document, document.data, "task_result_filters")
    chains = []
    for scope in _listed(document, document.data.get("scopes"), "scopes"):
        name, held = str(table(scope).get("name")), table(scope)
        filters = _entries(document, _listed(document, held.get("task_result_filters"), "scopes"))
        if any(f.name in KNOWN for f in filters):
            chains.append((f"of scope {name}", filters))
    if len(chains) > 1:
        names = ", ".join(tasks for tasks, _ in chains)
        raise PricingError(f"{document.path}: privacy filters {names}: a job runs in one scope; price a file with one")
    return chains


def _grouped(document: Document, data: dict[str, Tree], kind: str) -> list[Chain]:
    out: list[Chain] = []
    for group in _listed(document, data.get(kind), kind):
        tasks = table(group).get("tasks")
        named = ", ".join(str(t) for t in tasks) if isinstance(tasks, list) else "*"
        out.append((named, _entries(document, _listed(document, table(group).get("filters"), kind))))
    return out


def _entries(document: Document, entries: list[Tree]) -> tuple[Filter, ...]:
    out = []
    for entry in entries:
        if not isinstance(entry, dict):
            raise document.error(f"a filter is a mapping with name or path, found {entry!r}", "task_result_filters")
        name = str(entry.get("name") or entry.get("class_path") or entry.get("path") or "?").rsplit(".", 1)[-1]
        args = entry.get("args")
        if args is not None and not isinstance(args, dict):
            raise document.error(f"args of {name}: found {args!r}; a mapping is expected", "task_result_filters")
        out.append(Filter(name, dict(args or {})))
    return tuple(out)


def _python(document: Document) -> list[Chain]:
    """The filters that a job file makes: one chain, each kind of filter with one set of numbers."""
    out = []
    for call in (c for c in document.calls if c.name in KNOWN):
        if len(call.args) > len(PLACES.get(call.name, ())) or "**" in call.keywords:
            raise document.error(f"{call.name}: write its options out by name", line=call.line)
        given = {**dict(zip(PLACES.get(call.name, ()), call.args, strict=False)), **call.keywords}
        args: dict[str, Tree] = {}
        for name, value in given.items():
            number = training.number(value)
            if number is None and name not in ("data_kinds", "replace") and value is not None:
                raise document.error(f"{call.name}: {name} is not a number in this file; write it out", line=call.line)
            args[name] = number
        out.append(Filter(call.name, args))
    return [("*", tuple(out))] if out else []


def _listed(document: Document, value: Tree, key: str) -> list[Tree]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise document.error(f"{key}: found {value!r}; a list is expected", key)
    return value


def _rounds(document: Document) -> int | None:
    if document.kind == "python":
        numbers = [training.number(call.keywords.get("num_rounds")) for call in document.calls if "num_rounds" in call.keywords]
        return int(numbers[0]) if len(numbers) == 1 and numbers[0] is not None else None
    workflows = document.data.get("workflows")
    inside = [table(table(w).get("args")).get("num_rounds") for w in workflows] if isinstance(workflows, list) else []
    named = (document.data.get("num_rounds"), *inside)
    found = [r for r in named if isinstance(r, int) and not isinstance(r, bool) and r >= 0]
    return found[0] if found else None
