"""A job of NVIDIA FLARE as data: which filters stand on what each site sends, for which tasks and kinds of data.

Read from a client's configuration (JSON, HOCON, YAML), a site's ``privacy.json``, the folder of a job (``meta.json`` with its
apps), or a Python file that builds a job (``FedJob.to…``, ``recipe.add_client_output_filter``). FLARE looks a chain up by the
exact name of the task and by its direction: results leave a client by ``task_result_filters`` with direction ``out``. Filters
on ``task_data_filters``, for another task, or on the server protect nothing that a client sends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fedgraph.errors import PricingError
from fedgraph.pricing.catalogue import catalogue_places
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.open_facts import open_fact_text
from fedgraph.pricing.parsers import ParsedTable, ParsedTree, parsed_mapping
from fedgraph.pricing.python_values import CallValue, ItemsValue, PythonName, Value, python_plain, value_candidates

KNOWN_FLARE_FILTERS = ("PercentilePrivacy", "SVTPrivacy", "GaussianPrivacy")
KINDS = {"FULL": "WEIGHTS", "DIFF": "WEIGHT_DIFF"}
_ADDERS = {  # method of a recipe → the direction that its filter stands in
    "add_client_output_filter": "out", "add_client_input_filter": "in",
    "add_server_output_filter": "server", "add_server_input_filter": "server",
}  # fmt: skip


@dataclass(frozen=True)
class FlareFilter:
    """A filter, and its options."""

    name: str
    args: ParsedTable
    direction: str = "out"  # what a site's privacy.json says of it


@dataclass(frozen=True)
class FlareChain:
    """Filters that stand on the results of tasks, in their order. ``*`` among the tasks stands for all."""

    tasks: tuple[str, ...]
    filters: tuple[FlareFilter, ...]


_Placed = dict[str, dict[tuple[str, ...], tuple[FlareFilter, ...]]]  # site → tasks → filters in their order


@dataclass(frozen=True)
class FlareJobSite:
    """What one site, or all of them alike, sends."""

    name: str  # the site, in words
    chains: tuple[FlareChain, ...]  # filters on what leaves it
    tasks: tuple[str, ...] = ()  # tasks that its executors answer
    kind: str | None = None  # ``WEIGHTS`` or ``WEIGHT_DIFF``, the kind of data that it sends; None where that is not said


@dataclass
class FlareJob:
    """A job, as far as its files say."""

    sites: list[FlareJobSite] = field(default_factory=list)  # who sends results
    rounds: int | None = None  # how many rounds there are; None where that is not said
    aside: list[str] = field(default_factory=list)  # filters that protect nothing that is sent, each with the reason


def read_flare_job(document: PricedDocument) -> FlareJob:
    """The job of a document; ``PricingError`` for what FLARE would refuse."""
    if document.kind == "python":
        return _read_python(document)
    if "apps" in document.data and "meta" in document.data:
        return _folder(document)
    job = FlareJob(rounds=_rounds(document, document.data))
    if "scopes" in document.data:
        _scopes(document, job)
    elif document.path.stem == "config_fed_server" or ("workflows" in document.data and "executors" not in document.data):
        job.aside += _of_the_server(document, document.data)
        job.sites.append(FlareJobSite("the clients", ()))
    else:
        job.sites.append(_client(document, "the clients", document.data, job))
    return job


def _client(document: PricedDocument, name: str, data: ParsedTable, job: FlareJob) -> FlareJobSite:
    chains = []
    for kind, held, filters in _groups(document, data):
        known = [f.name for f in filters if f.name in KNOWN_FLARE_FILTERS]
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
            chains.append(FlareChain(named, filters))
    return FlareJobSite(name, tuple(chains), *_executors(document, data))


def _groups(document: PricedDocument, data: ParsedTable) -> Iterator[tuple[str, ParsedTable, tuple[FlareFilter, ...]]]:
    """(key, group, its filters) of both lists of filters."""
    for kind in ("task_result_filters", "task_data_filters"):
        for group in map(parsed_mapping, _listed(document, data.get(kind), kind)):
            yield kind, group, _filters(document, group.get("filters"), "filters")


def _of_the_server(document: PricedDocument, data: ParsedTable) -> list[str]:
    words = "stands in the server's configuration, which clients do not read"
    return [f"{used.name} {words}" for _, _, filters in _groups(document, data) for used in filters]


def _executors(document: PricedDocument, data: ParsedTable) -> tuple[tuple[str, ...], str | None]:
    """(the tasks that are answered, the kind of data that is sent where it is said)."""
    tasks: list[str] = []
    kinds: set[str | None] = set()
    for held in _listed(document, data.get("executors"), "executors"):
        named, made = parsed_mapping(held).get("tasks"), parsed_mapping(held, "executor")
        tasks += [str(t) for t in named] if isinstance(named, list) else []
        transfer = parsed_mapping(made, "args").get("params_transfer_type")
        path = str(made.get("path") or made.get("class_path") or made.get("name") or "")
        kind = "WEIGHTS" if "ClientAPI" in path else None
        kinds.add(kind if transfer is None else KINDS.get(str(transfer).rsplit(".", 1)[-1].upper()))
    return tuple(tasks), kinds.pop() if len(kinds) == 1 else None


def _scopes(document: PricedDocument, job: FlareJob) -> None:
    """The scope that the job runs in: the default one; of several without a default, it is asked."""
    default = document.data.get("default_scope")
    found = []
    for scope in map(parsed_mapping, _listed(document, document.data.get("scopes"), "scopes")):
        name, filters = str(scope.get("name")), _filters(document, scope.get("task_result_filters"), "scopes")
        arriving = [used.name for used in filters if used.direction == "in"]
        job.aside += [f"{used} of scope {name} has direction in: it filters what arrives" for used in arriving]
        for used in _filters(document, scope.get("task_data_filters"), "scopes"):
            job.aside.append(f"{used.name} in task_data_filters of scope {name}: it filters what arrives, not what is sent")
        found.append((name, tuple(used for used in filters if used.direction != "in")))
    private = [(name, filters) for name, filters in found if any(f.name in KNOWN_FLARE_FILTERS for f in filters)]
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
        chosen = filters_of_it if document.answers.whether(f"job in scope {name}", question) else ()
    else:
        chosen = private[0][1] if private else ()
    job.sites.append(FlareJobSite("the site", (FlareChain(("train",), chosen),) if chosen else ()))


def _folder(document: PricedDocument) -> FlareJob:
    """Every app of the job that clients get, with the rounds of the server's."""
    placed, job = parsed_mapping(document.data, "meta", "deploy_map"), FlareJob()
    for name, held in parsed_mapping(document.data, "apps").items():
        where = placed.get(name)
        sites = [str(s) for s in where] if isinstance(where, list) else []
        server, client = (parsed_mapping(held, f"config_fed_{role}") for role in ("server", "client"))
        if server:
            job.rounds = job.rounds if job.rounds is not None else _rounds(document, server)
            job.aside += _of_the_server(document, server)
        if client and (not sites or any(s != "server" for s in sites)):
            label = f"app {name}" + (f" ({', '.join(s for s in sites if s != 'server')})" if sites else "")
            job.sites.append(_client(document, label, client, job))
    if not job.sites:
        raise PricingError(f"{document.path}: no app of this job has a config_fed_client")
    return job


def _filters(document: PricedDocument, listed: ParsedTree, key: str) -> tuple[FlareFilter, ...]:
    out = []
    for entry in _listed(document, listed, key):
        if not isinstance(entry, dict):
            raise document.error(f"a filter is a mapping with name or path, found {entry!r}", "task_result_filters")
        name = str(entry.get("name") or entry.get("class_path") or entry.get("path") or "?").rsplit(".", 1)[-1]
        args = entry.get("args")
        if args is not None and not isinstance(args, dict):
            raise document.error(f"args of {name}: found {args!r}; a mapping is expected", "task_result_filters")
        out.append(FlareFilter(name, dict(args or {}), str(entry.get("direction", "out")).lower()))
    return tuple(out)


def _listed(document: PricedDocument, value: ParsedTree, key: str) -> list[ParsedTree]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise document.error(f"{key}: found {value!r}; a list is expected", key)
    return value


def _rounds(document: PricedDocument, data: ParsedTable) -> int | None:
    workflows = data.get("workflows")
    held = [data, *(parsed_mapping(each, "args") for each in (workflows if isinstance(workflows, list) else ()))]
    found = [r for r in (each.get("num_rounds") for each in held) if isinstance(r, int) and not isinstance(r, bool) and r >= 0]
    return sum(found) if found else None


def _read_python(document: PricedDocument) -> FlareJob:
    """The job that a Python file builds; ``PricingError`` for what FLARE would refuse."""
    job = FlareJob(rounds=_rounds_of_calls(document))
    placed: _Placed = {}
    calls = document.made(*_ADDERS, "to", "to_clients", "to_server")
    for call in calls:
        _place(document, call, job, placed)
    # The kind of data that clients send: the transfer type of a recipe or a runner, FULL where it says none.
    kinds = set()
    for call in document.calls:
        value = python_plain(call.get("params_transfer_type"))
        if call.reached and ("params_transfer_type" in call.keywords or call.name.endswith(("Recipe", "ScriptRunner"))):
            kinds.add(KINDS.get("FULL" if value is None else _last(value).upper()))
    kind, everywhere = (kinds.pop() if len(kinds) == 1 else None), placed.pop("*", {})
    named = sorted(set(placed) - {"server"})
    for site in named or ["*"]:
        own = placed.get(site, {})
        chains = tuple(FlareChain(t, (*everywhere.get(t, ()), *own.get(t, ()))) for t in {**everywhere, **own})
        job.sites.append(FlareJobSite("the clients" if site == "*" else site, chains, (), kind))
    if any(placed.values()) and len(named) == 1:
        count = int(max(_numbers(document, ["n_clients", "num_clients", "min_clients"], "clients in all"), default=1))
        job.sites += [FlareJobSite(f"{count - 1} of {count} sites", (), (), kind)] if count > 1 else []
    given = [held for call in calls for name in ("filter", "obj") for held in value_candidates(python_plain(call.get(name, 0)))]
    lines = {held.line for held in given if isinstance(held, CallValue)}
    made = [call for call in document.made(*KNOWN_FLARE_FILTERS) if call.line not in lines]
    job.aside += [f"{call.name} (line {call.line}) is made and given to nobody" for call in made]
    return job


def _place(document: PricedDocument, call: CallValue, job: FlareJob, placed: _Placed) -> None:
    """The filter that a call adds, at its sites. Where it adds something else, its sites are known then."""
    inner = python_plain(call.get("filter" if call.name in _ADDERS else "obj"))
    used = inner.name if isinstance(inner, CallValue) else ""
    said = call.get("clients") if call.name in _ADDERS else call.get("target") if call.name == "to" else None
    target = _words(said, ("*",))
    if call.name in _ADDERS:
        direction = _ADDERS[call.name]
    elif used not in KNOWN_FLARE_FILTERS:
        for site in target if call.name == "to" else ():
            placed.setdefault(site, {})
        return
    else:
        said = python_plain(call.get("filter_type"))
        word = _last(said)
        if word.upper() not in ("TASK_RESULT", "TASK_DATA"):
            found = "nothing" if said is None else open_fact_text(said)
            raise document.error_at(call, f"{used}: filter_type is {found}; FLARE needs FilterType.TASK_RESULT or TASK_DATA")
        direction = "out" if word.upper() == "TASK_RESULT" else "in"
        direction = "server" if call.name == "to_server" or target == ("server",) else direction
    if not isinstance(inner, CallValue):
        return
    if direction != "out":
        why = "it filters what arrives, not what is sent" if direction == "in" else "it stands on the server"
        job.aside += [f"{used} (line {inner.line}): {why}"] if used in KNOWN_FLARE_FILTERS else []
    elif not document.answers.taken(call):
        job.aside.append(f"{used} (line {call.line}) is only added where {' and '.join(call.conditions)} holds")
    else:
        kept, tasks = FlareFilter(used, _args(document, inner)), _words(call.get("tasks"), ("*",))
        for site in target:
            there = placed.setdefault(site, {})
            there[tasks] = (*there.get(tasks, ()), kept)


def _words(value: Value, default: tuple[str, ...]) -> tuple[str, ...]:
    """Names in a list, or one name; undecided ones are taken as a name that nothing else has."""
    if (inner := python_plain(value)) is None:
        return default
    if isinstance(inner, (ItemsValue, tuple)) and (not isinstance(inner, ItemsValue) or inner.whole):
        return tuple(held if isinstance(held := python_plain(v), str) else open_fact_text(v) for v in inner)
    return (inner if isinstance(inner, str) else open_fact_text(inner),)


def _args(document: PricedDocument, call: CallValue) -> ParsedTable:
    if call.name not in KNOWN_FLARE_FILTERS:
        return {}
    parameters = list(catalogue_places(call.name))
    if len(call.args) > len(parameters) or "**" in call.keywords:
        raise document.error_at(call, f"{call.name}: write its options out by name")
    args: ParsedTable = {}
    for name in {**dict(zip(parameters, call.args, strict=False)), **call.keywords, **call.attributes}:
        held = python_plain(call.held(name))
        if name == "data_kinds" and held is not None:
            kinds = held if isinstance(held, (ItemsValue, tuple)) else ()
            args[name] = [_last(python_plain(kind)) for kind in kinds] or ["?"]
        elif name not in ("replace", "data_kinds") and held is not None:
            if (number := document.number(call, name)) is None:
                raise document.error_at(call, f"{call.name}: {name} is not a number in this file; write it out")
            args[name] = number
    return args


def _last(value: Value) -> str:
    """The last part of a name, or a text."""
    return value.dotted.rsplit(".", 1)[-1] if isinstance(value, PythonName) else value if isinstance(value, str) else "?"


def _numbers(document: PricedDocument, names: Sequence[str], asked: str) -> list[float]:
    """What calls that are reached say by these keywords. asked: the fact's name."""
    said = [(call, name) for call in document.calls if call.reached for name in names if name in call.keywords]
    return [number for call, name in said if (number := document.number(call, name, asked)) is not None]


def _rounds_of_calls(document: PricedDocument) -> int | None:
    numbers = _numbers(document, ["num_rounds"], "rounds")
    if len(numbers) > 1:
        question = f"How many rounds are run in all? The file says {' and '.join(f'{n:g}' for n in numbers)}."
        return int(document.answers.ask("rounds", question, (sum(numbers), max(numbers)), sum(numbers)))
    return int(numbers[0]) if numbers else None
