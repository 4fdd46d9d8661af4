"""A Python file that builds a job of NVIDIA FLARE: what ``job.to(…)`` and ``recipe.add_client_output_filter(…)`` add where."""

from collections.abc import Iterator

from fedgraph.pricing import python_values as values
from fedgraph.pricing.catalogue import places
from fedgraph.pricing.documents import Document
from fedgraph.pricing.flare_job import KINDS, KNOWN, Chain, Filter, Job, Site
from fedgraph.pricing.formats import Tree
from fedgraph.pricing.python_values import Call, Items, Name, Value, candidates, plain
from fedgraph.pricing.questions import text

_ADDERS = {
    "add_client_output_filter": ("out", "clients"), "add_client_input_filter": ("in", "clients"),
    "add_server_output_filter": ("server", ""), "add_server_input_filter": ("server", ""),
}  # fmt: skip


def read(document: Document) -> Job:
    """The job that a Python file builds; ``PricingError`` for what FLARE would refuse."""
    job = Job(rounds=_python_rounds(document))
    placed: dict[str, list[tuple[tuple[str, ...], Filter]]] = {}
    sites: set[str] = set()
    for call in document.made(*_ADDERS, "to", "to_clients", "to_server"):
        for used, direction, targets, tasks in _added(document, call, job):
            if direction == "site":
                sites |= set(targets)
            elif direction == "out":
                for target in targets:
                    placed.setdefault(target, []).append((tasks, used))
    # The kind of data that clients send: the transfer type of a recipe or a runner, FULL where it says none.
    kinds = set()
    for call in document.calls:
        value = plain(call.get("params_transfer_type"))
        if call.reached and ("params_transfer_type" in call.keywords or call.name.endswith(("Recipe", "ScriptRunner"))):
            kinds.add(KINDS.get("FULL" if value is None else _last(value).upper()))
    kind, everywhere = (kinds.pop() if len(kinds) == 1 else None), placed.pop("*", [])
    named = sorted((sites | set(placed)) - {"*", "server"})
    for site in named or ["*"]:
        held = [*everywhere, *placed.get(site, [])]
        chains = tuple(Chain(tasks, (used,)) for tasks, used in held)
        job.sites.append(Site("the clients" if site == "*" else site, _merged(chains), (), kind))
    if placed and len(named) == 1 and (count := _count(document)) is not None and count > 1:
        job.sites.append(Site(f"{count - 1} of {count} sites", (), (), kind))
    made = [c for c in document.made(*KNOWN) if not any(c.line == line for line in _job_lines(document))]
    job.aside += [f"{c.name} (line {c.line}) is made and given to nobody" for c in made]
    return job


def _job_lines(document: Document) -> set[int]:
    """The lines of filters that are given to somebody."""
    given = [call.get("filter", 0) for call in document.made(*_ADDERS, "to", "to_clients", "to_server")]
    given += [call.get("obj", 0) for call in document.made("to", "to_clients", "to_server")]
    return {held.line for value in given for held in candidates(plain(value)) if isinstance(held, Call)}


def _merged(chains: tuple[Chain, ...]) -> tuple[Chain, ...]:
    """Filters for the same tasks are one chain, in their order."""
    found: dict[tuple[str, ...], tuple[Filter, ...]] = {}
    for chain in chains:
        found[chain.tasks] = (*found.get(chain.tasks, ()), *chain.filters)
    return tuple(Chain(tasks, filters) for tasks, filters in found.items())


def _added(document: Document, call: Call, job: Job) -> Iterator[tuple[Filter, str, tuple[str, ...], tuple[str, ...]]]:
    """(filter, direction, sites, tasks) of what a call adds; direction ``site`` where it adds something else to sites."""
    held = call.get("filter") if call.name in _ADDERS else call.get("obj")
    target: tuple[str, ...] = ("*",) if call.name != "to" else _words(call.get("target"), ("*",))
    inner = plain(held)
    used = inner.name if isinstance(inner, Call) else ""
    if call.name in _ADDERS:
        direction, key = _ADDERS[call.name]
        target = _words(call.get(key), ("*",)) if key else ("server",)
    elif used not in KNOWN:
        yield Filter(used, {}), "site", tuple(t for t in target if t != "server") if call.name == "to" else (), ()
        return
    else:
        said = plain(call.get("filter_type"))
        word = _last(said)
        if word.upper() not in ("TASK_RESULT", "TASK_DATA"):
            found = "nothing" if said is None else text(said)
            message = f"{used}: filter_type is {found}; FLARE needs FilterType.TASK_RESULT or TASK_DATA"
            raise document.error(message, line=call.line)
        direction = "out" if word.upper() == "TASK_RESULT" else "in"
        direction = "server" if call.name == "to_server" or target == ("server",) else direction
    if isinstance(inner, values.Choice) or (not isinstance(inner, Call)):
        return
    if direction in ("in", "server"):
        why = "it filters what arrives, not what is sent" if direction == "in" else "it stands on the server"
        job.aside += [f"{used} (line {inner.line}): {why}"] if used in KNOWN else []
        return
    if not document.answers.taken(call):
        job.aside.append(f"{used} (line {call.line}) is only added where {' and '.join(call.conditions)} holds")
        return
    yield Filter(used, _args(document, inner)), "out", target, _words(call.get("tasks"), ("*",))


def _words(value: Value, default: tuple[str, ...]) -> tuple[str, ...]:
    """Names in a list, or one name; undecided ones are taken as a name that nothing else has."""
    inner = plain(value)
    if inner is None:
        return default
    if isinstance(inner, (Items, tuple)) and (not isinstance(inner, Items) or inner.whole):
        return tuple(held if isinstance(held := plain(v), str) else text(v) for v in inner)
    return (inner if isinstance(inner, str) else text(inner),)


def _args(document: Document, call: Call) -> dict[str, Tree]:
    parameters = list(places(call.name))
    if call.name not in KNOWN:
        return {}
    if len(call.args) > len(parameters) or "**" in call.keywords:
        raise document.error(f"{call.name}: write its options out by name", line=call.line)
    args: dict[str, Tree] = {}
    for name in {**dict(zip(parameters, call.args, strict=False)), **call.keywords, **call.attributes}:
        held = plain(call.held(name))
        if name == "data_kinds" and held is not None:
            kinds = held if isinstance(held, (Items, tuple)) else ()
            args[name] = [_last(plain(kind)) for kind in kinds] or ["?"]
        elif name not in ("replace", "data_kinds") and held is not None:
            number = document.number(call, name)
            if number is None:
                raise document.error(f"{call.name}: {name} is not a number in this file; write it out", line=call.line)
            args[name] = number
    return args


def _last(value: Value) -> str:
    """The last part of a name, or a text."""
    return value.dotted.rsplit(".", 1)[-1] if isinstance(value, Name) else value if isinstance(value, str) else "?"


def _count(document: Document) -> int | None:
    """How many clients there are, where the file says one number."""
    names = ("n_clients", "num_clients", "min_clients")
    calls = [c for c in document.calls if c.reached]
    found = [document.number(c, n, "clients in all") for c in calls for n in names if n in c.keywords]
    return max((int(f) for f in found if f is not None), default=None)


def _python_rounds(document: Document) -> int | None:
    said = [c for c in document.calls if "num_rounds" in c.keywords and c.reached]
    numbers = [n for c in said if (n := document.number(c, "num_rounds", "rounds")) is not None]
    if len(numbers) > 1:
        words, several = " and ".join(f"{n:g}" for n in numbers), (sum(numbers), max(numbers))
        return int(
            document.answers.ask("rounds", f"How many rounds are run in all? The file says {words}.", several, several[0])
        )
    return int(numbers[0]) if numbers else None
