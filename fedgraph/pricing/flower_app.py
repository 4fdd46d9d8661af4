"""A Flower app as a program: ``pyproject.toml`` and the two Python files it names, followed from their entry points.

What takes part is what is reached: the strategy that ``start`` (or ``ServerAppComponents``, ``LegacyContext``, ``start_server``
…) gets, and the chain of mods of each function that answers a training message: those of ``ClientApp(mods=…)``, then those of
``@app.train(mods=…)``. What ``@app.evaluate(mods=…)`` gets takes no part in training.
"""

import ast
import itertools
from dataclasses import dataclass, replace
from pathlib import Path

from fedgraph.pricing import documents
from fedgraph.pricing import python_values as values
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.open_facts import open_fact_text
from fedgraph.pricing.parsers import ParsedTable, ParsedTree, parsed_mapping
from fedgraph.pricing.python_values import CallValue, FunctionValue, ItemsValue, PythonName, Value, is_plain_value, python_plain

_COMPONENTS = ("tool", "flwr", "app", "components")
_STARTERS = ("ServerAppComponents", "ServerApp", "LegacyContext", "start_server", "start_simulation")


@dataclass(frozen=True)
class _Chain:
    """The mods that a reply of training passes."""

    what: str  # whose replies they are, in words
    mods: tuple[CallValue, ...]  # mods that are objects, such as ``LocalDpMod(…)``, also inside mods of the app's own
    names: frozenset[str]  # names of mods that are not part of the app
    whole: bool  # whether everything in the list is known
    order: tuple[str | FunctionValue, ...] = ()  # names of mods, and mods of the app's own, the outermost first

    def then(self, inner: "_Chain") -> "_Chain":
        """This chain around another one, which it takes its name from."""
        mods, order = (*self.mods, *inner.mods), (*self.order, *inner.order)
        return _Chain(inner.what, mods, self.names | inner.names, self.whole and inner.whole, order)

    def altered(self, document: PricedDocument, mod: str) -> str:
        """Why what a mod makes of a reply may not be what is sent: a mod of the app's own gets it afterwards."""
        for own in itertools.takewhile(lambda each: each != mod, self.order):
            if isinstance(own, FunctionValue):
                asked = f"{own.name} stands outside of {mod} in the mods of {self.what}: does it leave what is sent as it is?"
                if not document.answers.whether(f"replies kept by {own.name}", asked):
                    return f"{own.name} may change what is sent after {mod} (mods of {self.what})"
        return ""


@dataclass(frozen=True)
class FlowerApp:
    """A Flower app, as far as it is followed."""

    document: PricedDocument  # the file, with the app's program
    strategies: tuple[tuple[Value, int | None], ...]  # what runs, each with its rounds; None where they are not said
    chains: tuple[_Chain, ...] | None  # one for each function of the client that trains; None where no client is in these files
    clients: int | None  # how many nodes there are; None where that is not known
    queries: tuple[CallValue, ...] = ()  # functions that answer a query of the server

    @property
    def by_hand(self) -> list[CallValue]:
        """What sends messages beside the strategies."""
        return self.document.made("send_and_receive", "push_messages")

    @property
    def rounds(self) -> int | None:
        """Rounds of all strategies together; None where they are not known or something else sends messages, too."""
        found = [rounds for _, rounds in self.strategies] if not self.by_hand else []
        return sum(r for r in found if r is not None) if found and None not in found else None

    def ask_rounds(self) -> int:
        """The rounds, asked where they are not known."""
        more = f" Line {self.by_hand[0].line} sends messages by hand: count them, too." if self.by_hand else ""
        return int(self.document.ask("rounds", self.rounds, more=more))


def read_flower_app(document: PricedDocument) -> FlowerApp:
    """The app of a ``pyproject.toml`` or of one Python file. ``PricingError`` where a part that it names is not there."""
    if document.kind == "python":
        return _assembled(document, None, _simulated(document))
    flwr, answers = parsed_mapping(document.data, "tool", "flwr"), document.answers
    components = parsed_mapping(flwr, "app", "components")
    files: dict[str, tuple[Path, str]] = {}
    for role in ("serverapp", "clientapp"):
        reference = components.get(role)
        if not isinstance(reference, str):
            raise document.error(f"missing [tool.flwr.app.components] {role}", *_COMPONENTS)
        files[role] = (_python_file(document, role, reference), reference.partition(":")[2] or "app")
    (server, _), (client, name) = files["serverapp"], files["clientapp"]
    # A value of ``run_config``: the answer to it, or what the file says until somebody says otherwise.
    known: dict[str, Value] = {}
    for key, held in _flat(parsed_mapping(flwr, "app", "config")).items():
        value = held if is_plain_value(held) else None
        said = f"run_config {key} = {value!r} (pyproject.toml), which flwr run --run-config may change"
        answer = answers.known(key)
        known[key] = values.AssumedValue(value, (said,)) if answer is None and value is not None else answer
    program = document.follow(server, documents.priced_document_text(server), known, document.path.parent, client)
    found = program.modules[client.resolve()].local.get(name) if client.resolve() in program.modules else None
    if found is None:
        raise document.error(f"clientapp: {client.name} has no {name!r}", *_COMPONENTS, "clientapp")
    return _assembled(replace(document, followed=program), found, _nodes(document, flwr))


def _python_file(document: PricedDocument, role: str, reference: str) -> Path:
    parts = reference.partition(":")[0].split(".")
    if not all(part.isidentifier() for part in parts):
        raise document.error(f"{role} = {reference!r} is not package.module:name", *_COMPONENTS, role)
    bases = [base.joinpath(*parts) for base in (document.path.parent, document.path.parent / "src")]
    for path in (path for base in bases for path in (base.with_suffix(".py"), base / "__init__.py")):
        if path.is_file():
            return path
    raise document.error(f"{role} = {reference!r}: there is no {'/'.join(parts)}.py beside this file", *_COMPONENTS, role)


def _nodes(document: PricedDocument, flwr: ParsedTable) -> int | None:
    """The nodes of the default federation, or of the only one; of several without a default it is asked."""
    federations = parsed_mapping(flwr.get("federations"))
    sizes = {name: _flat(held).get("options.num-supernodes") for name, held in federations.items() if isinstance(held, dict)}
    known = {name: s for name, s in sizes.items() if isinstance(s, int) and not isinstance(s, bool) and s > 0}
    if isinstance(named := federations.get("default"), str):
        return known.get(named)
    counts = sorted(set(known.values()))
    if counts and len(sizes) > 1 and (len(counts) > 1 or len(sizes) > len(counts)):
        words = f"{len(sizes)} federations and no default: how many clients has the one that is run?"
        return int(document.answers.ask("clients in all", words, tuple(float(c) for c in counts), float(counts[0])))
    return counts[0] if counts else None


def _simulated(document: PricedDocument) -> int | None:
    """The nodes that a simulation in the file is started with."""
    names = {"run_simulation": "num_supernodes", "start_simulation": "num_clients"}
    found = (document.number(call, names[call.name], "clients in all") for call in document.made(*names))
    return next((int(number) for number in found if number is not None and number >= 1), None)


def _assembled(document: PricedDocument, client: Value, clients: int | None) -> FlowerApp:
    program, strategies = document.program, _strategies(document)
    apps = [python_plain(client)] if client is not None else [c for c in program.calls if c.name == "ClientApp" and c.reached]
    if client is None and not apps and document.made("start_client", "start_numpy_client", "start_simulation"):
        return FlowerApp(document, strategies, (_Chain("the client", (), frozenset(), True),), clients)
    chains = tuple(chain for app in apps for chain in _chains(document, app)) if apps else None
    answered = [c for c in program.calls if c.name == "query" and c.decorates is not None]
    return FlowerApp(document, strategies, chains, clients, tuple(c for c in answered if any(c.owner is a for a in apps)))


def _strategies(document: PricedDocument) -> tuple[tuple[Value, int | None], ...]:
    """What is started, with its rounds; the same object started twice runs both."""
    answers, found = document.answers, []
    default: float | None
    for call in document.program.calls:
        if not call.reached or call.own is not None:
            continue
        if call.name == "start" and isinstance(python_plain(call.owner), (CallValue, values.PythonChoice)):
            said, default, line, strategy = call.get("num_rounds"), 3.0, call.line, call.owner
        elif call.name in _STARTERS and call.get("strategy") is not None:
            config, strategy = python_plain(call.get("config")), call.get("strategy")
            own = config if isinstance(config, CallValue) and config.name == "ServerConfig" else None
            said, line, default = (own.get("num_rounds"), own.line, 1.0) if own else (None, call.line, None)
        else:
            continue
        rounds = default if said is None else answers.number(said, "rounds", line)
        found.append((python_plain(strategy), (int(rounds) if rounds is not None and rounds >= 0 else None), call))
    taken = [(strategy, rounds) for strategy, rounds, call in found if answers.taken(call)]
    if (looped := next((call for _, _, call in found if call.repeated), None)) is not None:
        question = f"How often is {looped.name} (line {looped.line}) called by {looped.repeated}?"
        often = int(answers.ask("runs", question, (100.0, 10.0, 1.0)))
        taken = [(strategy, rounds * often if rounds is not None else None) for strategy, rounds in taken]
    return tuple(taken)


def _chains(document: PricedDocument, app: Value) -> list[_Chain]:
    """One chain for each function that answers a training message."""
    if isinstance(app, values.PythonChoice):
        return [chain for each in app.values for chain in _chains(document, each)]
    if not isinstance(app, CallValue) or app.name != "ClientApp":
        return [_Chain(f"the client app, {open_fact_text(app)}", (), frozenset(), False)]
    if app.get("client_fn") is not None:
        return [_mods(document, "client_fn", app.get("mods"))]
    first, out = _mods(document, "the client app", app.get("mods")), []
    for call in document.program.calls:
        if call.name == "train" and call.owner is app and call.decorates is not None:
            action = python_plain(call.get("action")) or "default"
            out.append(first.then(_mods(document, f"train ({action}, line {call.line})", call.get("mods"))))
    return out or [first]


def _mods(document: PricedDocument, what: str, value: Value) -> _Chain:
    """The chain of a list of mods. A mod that is there only perhaps is none."""
    inner = python_plain(value)
    if isinstance(inner, values.PythonChoice):
        each = [_mods(document, what, v) for v in inner.values]
        common = [call for call in each[0].mods if all(any(call is c for c in other.mods) for other in each[1:])]
        names_of_all = frozenset.intersection(*(chain.names for chain in each))
        return _Chain(what, tuple(common), names_of_all, False, max((chain.order for chain in each), key=len))
    if not isinstance(inner, (ItemsValue, tuple)):
        return _Chain(what, (), frozenset(), whole=inner is None)
    calls: list[CallValue] = []
    names: set[str] = set()
    order: list[str | FunctionValue] = []
    whole = inner.whole if isinstance(inner, ItemsValue) else True
    for mod in inner:
        held = python_plain(mod)
        if isinstance(held, CallValue):
            calls.append(held)
            called = held.own.member("__call__") if held.own else None
            order.append(called if isinstance(called, FunctionValue) else held.name)
        elif isinstance(held, PythonName):
            names.add(held.dotted.rsplit(".", 1)[-1])
            order.append(held.dotted.rsplit(".", 1)[-1])
        elif isinstance(held, FunctionValue):
            inside, used = _wrapped(document, held)
            calls += inside
            names |= used
            order += [held] if not inside and not used else [*(c.name for c in inside), *used]
        else:
            whole = False
    return _Chain(what, tuple(calls), frozenset(names), whole, tuple(order))


def _wrapped(document: PricedDocument, mod: FunctionValue) -> tuple[list[CallValue], set[str]]:
    """The mods that a mod of the app's own hands its message to, certainly, with the ``call_next`` that it got."""
    node = mod.node
    if isinstance(node, ast.Lambda) or len(node.args.args) != 3:
        return [], set()
    first = next((s for s in node.body if any(isinstance(n, ast.Return) for n in ast.walk(s))), None)
    handed = first.value if isinstance(first, ast.Return) else None
    last = handed.args[-1] if isinstance(handed, ast.Call) and len(handed.args) == 3 else None
    if handed is None or not isinstance(last, ast.Name) or last.id != node.args.args[2].arg:
        return [], set()
    calls = [c for c in document.program.calls if len(c.args) == 3]
    inside = [c for c in calls if c.line == handed.lineno and c.path == mod.scope.path]
    owners = [python_plain(c.owner) for c in inside if c.name == "()"]
    return [o for o in owners if isinstance(o, CallValue)], {c.name for c in inside if c.name != "()"}


def _flat(held: ParsedTree, at: str = "") -> ParsedTable:
    out: ParsedTable = {}
    for key, value in held.items() if isinstance(held, dict) else ():
        name = f"{at}{key}"
        out |= _flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return out
