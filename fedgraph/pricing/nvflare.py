"""NVIDIA FLARE: privacy filters in a client's ``config_fed_client.json`` (or .conf as JSON, or YAML).

    PercentilePrivacy(percentile=10, gamma=0.01)     shares the largest values, clipped: a function of the data, no noise
    SVTPrivacy(fraction=0.1, epsilon=0.1, noise_var=0.1, gamma=1e-5, tau=1e-6)

SVT, with N parameters and c = ⌈N·fraction⌉ uploads: threshold noise Laplace(γ/ε₁), queries Laplace(2γc/ε₂), ε₁ + ε₂ = ε;
values in
[−γ, γ] are released with Laplace(2γc/ε₃), and ε₃ = c·noise_var unless epsilon_release is set. What is proven: each accepted
query costs ε₂/c; a pass may accept more than c (at most N), so selection costs at most ε₁ + ε₂·N/c; each of the c released
values moves by at most 2γ, which costs ε₃/c. Pure ε adds up over rounds.
"""

from __future__ import annotations

import math

from fedgraph.errors import PricingError
from fedgraph.pricing import _costs
from fedgraph.pricing._files import Document, Tree, table
from fedgraph.pricing._options import Options
from fedgraph.pricing.base import SERVER, Facts, Published, Reading, Row, Setting, Unknown

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
KNOWN = {"PercentilePrivacy", "SVTPrivacy", "GaussianPrivacy"}


def recognises(document: Document) -> bool:
    if document.kind not in ("json", "yaml"):
        return False
    return any(key in document.data for key in ("task_result_filters", "task_data_filters")) or "executors" in document.data


def read(document: Document) -> Reading:
    """The privacy filter on what clients send. ``GaussianPrivacy``: a filter of that name is not in the versions above."""
    filters = list(_filters(document))
    private = [f for f in filters if f[0] in KNOWN]
    others = tuple(f"filter {name}" for name, _ in filters if name not in KNOWN)
    rounds = _rounds(document.data)
    if len(private) > 1:
        raise PricingError(
            f"{document.path}: several privacy filters ({', '.join(n for n, _ in private)}); price one file of them"
        )
    if not private:
        return _clear("no privacy filter stands in task_result_filters: results are sent in clear", rounds, others)
    name, args = private[0]
    options = Options(document, args, ("task_result_filters", name))
    options.without_price(["data_kinds"])
    if name == "PercentilePrivacy":
        percentile, gamma = options.number("percentile", 10.0), options.number("gamma", 0.01)
        options.finish()
        why = f"values above percentile {percentile:g}, clipped to ±{gamma:g}, are a function of the data: there is no noise"
        return _clear(why, rounds, others)
    if name == "GaussianPrivacy":
        raise PricingError(f"{document.path}: GaussianPrivacy is not a filter of {VERSION}; describe yours in a neutral YAML")
    return _svt(options, rounds, others)


def _svt(options: Options, rounds: int | None, others: tuple[str, ...]) -> Reading:
    fraction, epsilon = options.number("fraction", 0.1), options.number("epsilon", 0.1, above=True)
    noise_var, release = options.number("noise_var", 0.1, above=True), options.number("epsilon_release", None, above=True)
    first, second = options.number("epsilon_threshold"), options.number("epsilon_query")
    options.without_price(["gamma", "tau", "replace"])
    options.finish()
    if fraction is None or epsilon is None or noise_var is None or not 0 < fraction <= 1:
        raise options.error("fraction", f"fraction: found {fraction}; allowed: in (0, 1]")

    def per_round(size: float, factor: float) -> float:
        uploads = math.ceil(size * fraction)
        one = (
            first if first is not None else epsilon - second if second is not None else epsilon / (1 + (2 * uploads) ** (2 / 3))
        )
        released = release if release is not None else uploads * noise_var
        return (one + (epsilon - one) * size / uploads + released) / factor

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        total = rounds if rounds is not None else int(facts["rounds"])
        cost = _costs.pure(per_round(facts["parameters"], factor))
        why = f"threshold and selection, then {fraction:g} of the values with Laplace noise, noise_var {noise_var:g} each"
        return (Row("client", "replace", SERVER, cost, total, 0.0, why),)

    def settings(factor: float) -> dict[str, Setting]:
        shown: dict[str, Setting] = {"epsilon": epsilon / factor}
        return shown | ({"epsilon_release": release / factor} if release is not None else {"noise_var": noise_var / factor})

    size = Unknown("parameters", "How many parameters does the model have? Each released value costs noise_var.", SIZES)
    words = "SVTPrivacy: the option epsilon covers the selection only; NVFlare's accountant adds the release"
    more = (Unknown("rounds", "How many rounds are run (num_rounds)?", (1000.0, 100.0, 10.0, 1.0)),) if rounds is None else ()
    return Reading(
        rows,
        (Published(epsilon, 0.0, "per round, option epsilon", words),),
        (size, *more),
        ("tensors with a single value, which pass in clear", "numbers of steps and metrics"),
        others,
        ("A client's update is clipped per value, selected and noised; pure ε adds up over rounds; no amplification is used.",),
        settings,
    )


def _clear(reason: str, rounds: int | None, others: tuple[str, ...]) -> Reading:
    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        return (Row("client", "replace", SERVER, _costs.unprotected(reason), rounds or 1, 0.0, reason),)

    none = "no noise is added, so no setting of this filter changes it; use DP-SGD (Opacus) on the clients or SVTPrivacy"
    return Reading(rows, (Published(None, None, "none", "no ε is stated"),), (), ("the whole update",), others, no_fix=none)


def _filters(document: Document) -> list[tuple[str, dict[str, Tree]]]:
    out: list[tuple[str, dict[str, Tree]]] = []
    for kind in ("task_result_filters", "task_data_filters"):
        for group in _listed(document, document.data.get(kind), kind):
            for entry in _listed(document, table(group).get("filters"), kind):
                if not isinstance(entry, dict):
                    raise document.error(f"a filter is a mapping with name or path, found {entry!r}", kind)
                name = str(entry.get("name") or entry.get("class_path") or entry.get("path") or "?").rsplit(".", 1)[-1]
                args = entry.get("args")
                if args is not None and not isinstance(args, dict):
                    raise document.error(f"args of {name}: found {args!r}; a mapping is expected", kind)
                out.append((name, dict(args or {})))
    return out


def _listed(document: Document, value: Tree, key: str) -> list[Tree]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise document.error(f"{key}: found {value!r}; a list is expected", key)
    return value


def _rounds(data: dict[str, Tree]) -> int | None:
    workflows = data.get("workflows")
    inside = [table(table(w).get("args")).get("num_rounds") for w in workflows] if isinstance(workflows, list) else []
    found = [r for r in (data.get("num_rounds"), *inside) if isinstance(r, int) and not isinstance(r, bool) and r >= 0]
    return found[0] if found else None
