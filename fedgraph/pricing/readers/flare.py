"""NVIDIA FLARE: privacy filters in a job, priced by its dearest site.

Read from a client's configuration (JSON, HOCON, YAML), a site's ``privacy.json``, or the folder of a job (``meta.json`` with
its apps). FLARE looks a chain up by the exact name of the task and by its direction: results leave a client by
``task_result_filters`` with direction ``out``. Filters on ``task_data_filters``, for another task, or on the server protect
nothing that a client sends. What is proven of ``SVTPrivacy``: ``docs/how_deployed_noise_is_priced.md``.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, readings
from fedgraph.pricing.documents import Document
from fedgraph.pricing.facts import Options, Table, Tree, table
from fedgraph.pricing.readings import TO_SERVER, Claim, Reading, Row, Setting
from fedgraph.pricing.recorder import svt_epsilon

_FILTERS = ("PercentilePrivacy", "SVTPrivacy", "GaussianPrivacy")
_KINDS = {"FULL": "WEIGHTS", "DIFF": "WEIGHT_DIFF"}
_METRICS = ("validate", "evaluate", "cross_site_validation")  # tasks whose results are numbers, no model
_BUDGETS = ("epsilon", "epsilon_threshold", "epsilon_query", "noise_var", "epsilon_release")
_CLEAR = "no noise is added, so no setting of this filter changes it; use DP-SGD (Opacus) on the clients or SVTPrivacy"


@dataclass(frozen=True)
class _Filter:
    """A filter, and its options."""

    name: str
    args: Table
    direction: str = "out"  # what a site's privacy.json says of it


@dataclass(frozen=True)
class _Chain:
    """Filters that stand on the results of tasks, in their order. ``*`` among the tasks stands for all."""

    tasks: tuple[str, ...]
    filters: tuple[_Filter, ...]


@dataclass(frozen=True)
class _Site:
    """What one site, or all of them alike, sends."""

    name: str  # the site, in words
    chains: tuple[_Chain, ...]  # filters on what leaves it
    tasks: tuple[str, ...] = ()  # tasks that its executors answer
    kind: str | None = None  # ``WEIGHTS`` or ``WEIGHT_DIFF``, the kind of data that it sends; None where that is not said


@dataclass
class _Job:
    """A job, as far as its files say."""

    sites: list[_Site] = field(default_factory=list)  # who sends results
    rounds: int | None = None  # how many rounds there are; None where that is not said
    aside: list[str] = field(default_factory=list)  # filters that protect nothing that is sent, each with the reason


@dataclass(frozen=True)
class _Svt:
    """One SVT filter."""

    epsilon: float  # its option epsilon
    per_round: Callable[[float], float]  # how many parameters there are → what a pass over them costs
    words: str  # what it does
    settings: dict[str, Setting]  # its options of noise


def read(document: Document) -> Reading:
    """The dearest site. ``GaussianPrivacy``: a filter of that name is not in the versions that are known."""
    job = _job(document)
    everything = [f.name for site in job.sites for chain in site.chains for f in chain.filters]
    others = tuple(dict.fromkeys((*(_other(name) for name in everything if name not in _FILTERS), *job.aside)))
    if "GaussianPrivacy" in everything:
        known = "not a filter of nvflare 2.5–2.9; describe yours in a neutral YAML"
        raise PricingError(f"{document.path}: GaussianPrivacy is {known}")

    def clear(reason: str) -> Reading:
        found = readings.in_clear("client", TO_SERVER, reason, _CLEAR, job.rounds or 1, "replace")
        return replace(found, unprotected=("the whole update",), not_priced=others)

    if not set(_FILTERS) & set(everything):
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
    row = Row("client", "replace", TO_SERVER, cost, total, 0.0, why)
    settings = {f"group {i}: {n}": v for i, svt in enumerate(found, 1) for n, v in svt.settings.items()}
    words = "SVTPrivacy: the option epsilon covers the selection only; NVFlare's accountant adds the release"
    claim = Claim(sum(svt.epsilon for svt in found), 0.0, "per round, option epsilon", words)
    several = "Several filters on one result: what stands before SVT it bounds itself, what stands after is post-processing."
    order = "A client's update is clipped per value, selected and noised; pure ε adds up over rounds; no amplification is used."
    open_ = ("tensors with a single value, which pass in clear", "numbers of steps and metrics")
    orders, settings = (order, several) if dearest[2] > 1 else (order,), found[0].settings if len(found) == 1 else settings
    return Reading((row,), (claim,), open_, others, orders, settings)


def _other(name: str) -> str:
    encrypts = "Encrypt" in name or name.startswith("HE")
    return f"{name} encrypts: whoever has the key sees the exact sum; it adds no noise" if encrypts else f"filter {name}"


def _site(document: Document, site: _Site) -> list[_Svt] | str:
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
            return f"SVTPrivacy filters {', '.join(_data_kinds(ours[0]))}, and clients send {site.kind or 'another kind'}"
        if not noised:
            return percentiles[0] if percentiles else f"{clear}: it is sent in clear"
        found.append(noised[0] if len(noised) == 1 else _cheapest(noised))
    return found


def _data_kinds(used: _Filter) -> list[str]:
    held = used.args.get("data_kinds")
    return [str(k).rsplit(".", 1)[-1] for k in held] if isinstance(held, list) and held else ["WEIGHT_DIFF", "WEIGHTS"]


def _applies(document: Document, site: _Site, used: _Filter) -> bool:
    """Whether a filter handles the kind of data that the site sends; others pass it unfiltered."""
    kinds = set(_data_kinds(used))
    if unknown := kinds - {"WEIGHTS", "WEIGHT_DIFF"}:
        message = f"{used.name}: data_kinds {', '.join(sorted(unknown))}; allowed: WEIGHTS, WEIGHT_DIFF"
        raise document.error(message, "task_result_filters")
    if len(kinds) == 2 or site.kind is not None:
        return len(kinds) == 2 or site.kind in kinds
    [kind] = kinds
    question = f"Do the clients send {kind} (params_transfer_type)? SVTPrivacy filters only that kind."
    return document.facts.whether(f"clients send {kind}", question)


def _options(document: Document, used: _Filter) -> Options:
    options = document.options_of(used.args, "task_result_filters", used.name)
    options.without_price("data_kinds")
    return options


def _percentile(document: Document, used: _Filter) -> str:
    options = _options(document, used)
    percentile, gamma = options.number("percentile", 10.0), options.number("gamma", 0.01)
    options.finish()
    return f"values above percentile {percentile:g}, clipped to ±{gamma:g}, are a function of the data: there is no noise"


def _svt(document: Document, used: _Filter) -> _Svt:
    options, louder = _options(document, used), document.louder
    fraction, noise_var = options.number("fraction", 0.1) or 0.0, options.number("noise_var", 0.1, above=True) or 0.1
    epsilon, release = options.number("epsilon", 0.1, above=True) or 0.1, options.number("epsilon_release", None, above=True)
    first, second = (options.number(name, None, above=True) for name in ("epsilon_threshold", "epsilon_query"))
    options.without_price("gamma", "tau", "replace")
    options.finish()
    if not 0 < fraction <= 1:
        raise options.error("fraction", f"fraction: found {fraction}; allowed: in (0, 1]")
    given, both = (first or 0.0) + (second or 0.0), first is not None and second is not None
    if (both and not math.isclose(given, epsilon)) or (not both and given >= epsilon):
        message = f"epsilon_threshold + epsilon_query = {given:g} for epsilon = {epsilon:g}: refused there"
        raise options.error("epsilon", message)

    def per_round(size: float) -> float:
        return svt_epsilon(size, fraction, epsilon, noise_var, first, second, release) / louder

    held = zip(_BUDGETS, (epsilon, first, second, noise_var if release is None else None, release), strict=True)
    spent = f"epsilon_release {release:g}" if release is not None else f"noise_var {noise_var:g} each"
    words = f"threshold and selection, then {fraction:g} of the values with Laplace noise, {spent}"
    return _Svt(epsilon, per_round, words, {name: value / louder for name, value in held if value is not None})


def _cheapest(several: list[_Svt]) -> _Svt:
    settings = {f"{i}. {name}": value for i, svt in enumerate(several, 1) for name, value in svt.settings.items()}
    words = f"the cheapest of {len(several)} SVT filters on one result"
    return _Svt(min(svt.epsilon for svt in several), lambda n: min(svt.per_round(n) for svt in several), words, settings)


def _job(document: Document) -> _Job:
    """The job of a document; ``PricingError`` for what FLARE would refuse."""
    if "apps" in document.data and "meta" in document.data:
        return _folder(document)
    job = _Job(rounds=_rounds(document, document.data))
    if "scopes" in document.data:
        _scopes(document, job)
    elif document.path.stem == "config_fed_server" or ("workflows" in document.data and "executors" not in document.data):
        job.aside += _of_the_server(document, document.data)
        job.sites.append(_Site("the clients", ()))
    else:
        job.sites.append(_client(document, "the clients", document.data, job))
    return job


def _client(document: Document, name: str, data: Table, job: _Job) -> _Site:
    chains = []
    for kind, held, filters in _groups(document, data):
        known = [f.name for f in filters if f.name in _FILTERS]
        if kind == "task_data_filters":
            job.aside += [f"{used} in task_data_filters: it filters what arrives, not what is sent" for used in known]
            continue
        if (direction := str(held.get("direction", "out")).lower()) not in ("in", "out", "inout"):
            raise document.error(f"direction: found {direction!r}; allowed: in, out, inout", "task_result_filters")
        tasks = held.get("tasks", "*")
        named = tuple(str(t) for t in tasks) if isinstance(tasks, list) else (str(tasks),)
        if direction == "in":
            job.aside += [f"{used} has direction in: it filters what arrives, not what is sent" for used in known]
        else:
            chains.append(_Chain(named, filters))
    return _Site(name, tuple(chains), *_executors(document, data))


def _groups(document: Document, data: Table) -> Iterator[tuple[str, Table, tuple[_Filter, ...]]]:
    """(key, group, its filters) of both lists of filters."""
    for kind in ("task_result_filters", "task_data_filters"):
        for group in map(table, _listed(document, data.get(kind), kind)):
            yield kind, group, _filters(document, group.get("filters"), "filters")


def _of_the_server(document: Document, data: Table) -> list[str]:
    words = "stands in the server's configuration, which clients do not read"
    return [f"{used.name} {words}" for _, _, filters in _groups(document, data) for used in filters]


def _executors(document: Document, data: Table) -> tuple[tuple[str, ...], str | None]:
    """(the tasks that are answered, the kind of data that is sent where it is said)."""
    tasks: list[str] = []
    kinds: set[str | None] = set()
    for held in _listed(document, data.get("executors"), "executors"):
        named, made = table(held).get("tasks"), table(held, "executor")
        tasks += [str(t) for t in named] if isinstance(named, list) else []
        transfer = table(made, "args").get("params_transfer_type")
        path = str(made.get("path") or made.get("class_path") or made.get("name") or "")
        kind = "WEIGHTS" if "ClientAPI" in path else None
        kinds.add(kind if transfer is None else _KINDS.get(str(transfer).rsplit(".", 1)[-1].upper()))
    return tuple(tasks), kinds.pop() if len(kinds) == 1 else None


def _scopes(document: Document, job: _Job) -> None:
    """The scope that the job runs in: the default one; of several without a default, it is asked."""
    default = document.data.get("default_scope")
    found = []
    for scope in map(table, _listed(document, document.data.get("scopes"), "scopes")):
        name, filters = str(scope.get("name")), _filters(document, scope.get("task_result_filters"), "scopes")
        arriving = [used.name for used in filters if used.direction == "in"]
        job.aside += [f"{used} of scope {name} has direction in: it filters what arrives" for used in arriving]
        for used in _filters(document, scope.get("task_data_filters"), "scopes"):
            job.aside.append(f"{used.name} in task_data_filters of scope {name}: it filters what arrives, not what is sent")
        found.append((name, tuple(used for used in filters if used.direction != "in")))
    private = [(name, filters) for name, filters in found if any(f.name in _FILTERS for f in filters)]
    if isinstance(default, str) and default not in [name for name, _ in found]:
        raise document.error(f"default_scope {default!r}: no scope has that name", "default_scope")
    if isinstance(default, str):
        chosen = dict(found)[default]
        job.aside += [f"scope {name}: a job without a scope runs in {default}" for name, _ in private if name != default]
    elif len(private) > 1:
        names = ", ".join(f"of scope {name}" for name, _ in private)
        raise PricingError(f"{document.path}: privacy filters {names}: a job runs in one scope; price a file with one")
    elif len(found) > 1 and private:
        name, filters_of_it = private[0]
        question = f"Does the job run in scope {name!r} (in its meta.json)? The site has {len(found)} scopes."
        chosen = filters_of_it if document.facts.whether(f"job in scope {name}", question) else ()
    else:
        chosen = private[0][1] if private else ()
    job.sites.append(_Site("the site", (_Chain(("train",), chosen),) if chosen else ()))


def _folder(document: Document) -> _Job:
    """Every app of the job that clients get, with the rounds of the server's."""
    placed, job = table(document.data, "meta", "deploy_map"), _Job()
    for name, held in table(document.data, "apps").items():
        where = placed.get(name)
        sites = [str(s) for s in where] if isinstance(where, list) else []
        server, client = (table(held, f"config_fed_{role}") for role in ("server", "client"))
        if server:
            job.rounds = job.rounds if job.rounds is not None else _rounds(document, server)
            job.aside += _of_the_server(document, server)
        if client and (not sites or any(s != "server" for s in sites)):
            label = f"app {name}" + (f" ({', '.join(s for s in sites if s != 'server')})" if sites else "")
            job.sites.append(_client(document, label, client, job))
    if not job.sites:
        raise PricingError(f"{document.path}: no app of this job has a config_fed_client")
    return job


def _filters(document: Document, listed: Tree, key: str) -> tuple[_Filter, ...]:
    out = []
    for entry in _listed(document, listed, key):
        if not isinstance(entry, dict):
            raise document.error(f"a filter is a mapping with name or path, found {entry!r}", "task_result_filters")
        name = str(entry.get("name") or entry.get("class_path") or entry.get("path") or "?").rsplit(".", 1)[-1]
        args = entry.get("args")
        if args is not None and not isinstance(args, dict):
            raise document.error(f"args of {name}: found {args!r}; a mapping is expected", "task_result_filters")
        out.append(_Filter(name, dict(args or {}), str(entry.get("direction", "out")).lower()))
    return tuple(out)


def _listed(document: Document, value: Tree, key: str) -> list[Tree]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise document.error(f"{key}: found {value!r}; a list is expected", key)
    return value


def _rounds(document: Document, data: Table) -> int | None:
    workflows = data.get("workflows")
    held = [data, *(table(each, "args") for each in (workflows if isinstance(workflows, list) else ()))]
    found = [r for r in (each.get("num_rounds") for each in held) if isinstance(r, int) and not isinstance(r, bool) and r >= 0]
    return sum(found) if found else None
