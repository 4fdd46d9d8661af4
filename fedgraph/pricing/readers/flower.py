"""Flower: an app's ``pyproject.toml``, with what its Python files declare.

The files are parsed, never run. Read are declarations alone: the one mechanism that is called, the numbers that it gets as
they stand there (literals, constants, ``run_config`` keys of the ``pyproject.toml``), and where it is put: ``LocalDpMod`` in
the mods of training, ``DifferentialPrivacy…`` as the strategy that is started. Everything that may make it run otherwise is a
doubt; doubts are one question, and until it is answered the app is in clear. What is proven:
``docs/how_deployed_noise_is_priced.md``.
"""

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import documents, readings
from fedgraph.pricing.documents import Document, Table, Tree, table
from fedgraph.pricing.readers import finder
from fedgraph.pricing.readers.finder import called
from fedgraph.pricing.readings import TO_SERVER, WITH_MODELS, Claim, Reading, Row, Sums
from fedgraph.privacy import Gaussian

_CENTRAL = ("strategy", "noise_multiplier", "clipping_norm", "num_sampled_clients")
_PLACES = {f"DifferentialPrivacy{side}SideFixedClipping": _CENTRAL for side in ("Server", "Client")}
_PLACES["LocalDpMod"] = ("clipping_norm", "sensitivity", "epsilon", "delta")
_MASKS = ("secaggplus_mod", "secagg_mod")
_TOUCHED = re.compile(r"noise|clip|aggregate|sensitivity|epsilon|delta|strategy|stdv|__call__")
_BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.Match, ast.IfExp, ast.comprehension)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_MOST_FILES = 1000
_HEAVIEST = "weight of the heaviest client, in equal shares"


@dataclass
class _App:
    """The Python files of an app, parsed, with what ``pyproject.toml`` sets, and the one mechanism that they call."""

    document: Document
    trees: dict[Path, ast.Module]
    config: Table  # ``run_config``, flat
    clients: int | None  # how many nodes there are; None where that is not said
    path: Path = field(init=False)  # the file of the mechanism
    call: ast.Call = field(init=False)  # the mechanism

    @property
    def name(self) -> str:
        return called(self.call.func)

    @property
    def nodes(self) -> Iterator[tuple[Path, ast.AST]]:
        return ((path, node) for path, tree in self.trees.items() for node in ast.walk(tree))

    def calls(self, *names: str) -> list[tuple[Path, ast.Call]]:
        return [(path, n) for path, n in self.nodes if isinstance(n, ast.Call) and called(n.func) in names]

    def once(self, node: ast.expr | None, path: Path | None = None) -> ast.expr | None:
        """What a name stands for: its one value, or that of the last of plain lines of one body before it; else None."""
        if not isinstance(node, ast.Name):
            return node
        nodes = list(ast.walk(self.trees[path or self.path]))
        stored = [n for n in nodes if isinstance(n, ast.Name) and n.id == node.id and not isinstance(n.ctx, ast.Load)]
        named = [n for n in nodes if isinstance(n, (ast.arg, ast.alias, ast.FunctionDef, ast.ClassDef))]
        given = [*stored, *(n for n in named if node.id in (vars(n).get("arg"), vars(n).get("name"), vars(n).get("asname")))]
        for body in (n.body for n in nodes if isinstance(n, (ast.Module, ast.FunctionDef))):
            lines = [n for n in body if isinstance(n, (ast.Assign, ast.AnnAssign)) and _target(n) in given]
            if lines and len(lines) == len(given):
                here = next((n for n in body if node in ast.walk(n)), None)
                later = here is None or any(isinstance(n, _FUNCTIONS) and node in ast.walk(n) for n in ast.walk(here))
                before = [n.value for n in lines if here is not None and not later and n.lineno < here.lineno]
                return lines[0].value if len(lines) == 1 else before[-1] if before else None
        return None

    def number(self, path: Path, node: ast.expr | None, name: str) -> float | None:
        """The number that stands there; where it is no declaration, what the user says, or a question."""
        if node is None:
            return None
        if (value := self.declared(path, node)) is not None:
            return value
        question = f"Which value has {name}? {path.name}:{node.lineno} says {ast.unparse(node)}, which it does not declare."
        return self.document.ask(name, None, question, (1e-7, 1e-5) if name == "delta" else (1.0, 10.0))

    def declared(self, path: Path, node: ast.expr | None) -> float | None:
        """The number that stands there; None where it is no declaration."""
        value = self._declared(path, node)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def _declared(self, path: Path, node: ast.expr | None, depth: int = 8) -> Tree:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                number = self._declared(path, inner, depth - 1)
                return -number if isinstance(number, (int, float)) else None
            case ast.Call(func=ast.Name(id="float" | "int" as kind), args=[inner]) if depth:
                number = self._declared(path, inner, depth - 1)
                return None if not isinstance(number, (int, float)) else float(number) if kind == "float" else int(number)
            case ast.Subscript(value=held, slice=ast.Constant(value=str() as key)):
                return self._configured(path, held, key)
            case ast.Call(func=ast.Attribute(attr="get", value=held), args=[ast.Constant(value=str() as key), *default]):
                other = self._declared(path, default[0], depth - 1) if depth and default else None
                return self._configured(path, held, key, other)
            case ast.Name() if depth:
                return self._declared(path, self.once(node, path), depth - 1)
        return None

    def _configured(self, path: Path, held: ast.expr, key: str, default: Tree = None) -> Tree:
        """What ``run_config`` holds at a key, or ``default``; None where ``held`` is another mapping."""
        config = self.once(held, path)
        if not isinstance(config, ast.Attribute) or config.attr != "run_config":
            return None
        if (answer := self.document.known(key)) is None and key in self.config:
            said = f"run_config {key} = {self.config[key]!r} (pyproject.toml), which flwr run --run-config may change"
            self.document.notes[said] = None
        return self.config.get(key, default) if answer is None else answer

    @cached_property
    def arguments(self) -> dict[str | None, ast.expr]:
        """What the mechanism is called with, by name."""
        call = self.call
        if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
            raise self.document.error(f"{self.name}: write its options out by name", line=call.lineno, path=self.path)
        return {**dict(zip(_PLACES[self.name], call.args, strict=False)), **{k.arg: k.value for k in call.keywords}}

    def need(self, name: str, above: float, below: float = math.inf) -> float:
        value = self.number(self.path, self.arguments.get(name), name)
        if value is None or not above < value < below:
            limit = f"{f'> {above:g}' if above >= 0 else '≥ 0'}{f' and < {below:g}' if below < math.inf else ''}"
            message = f"{self.name} needs {name} as a number {limit}, found {value}"
            raise self.document.error(message, line=self.call.lineno, path=self.path)
        return value

    def place(self, path: Path, node: ast.expr | ast.stmt) -> str:
        return f"{path.name}:{node.lineno}"


def read(document: Document) -> Reading:
    """The one mechanism that the app declares; several are refused, none is in clear."""
    app = _app(document)
    made = app.calls(*_PLACES)
    if len(made) != 1:
        spoken = [(p, n) for p, n in app.nodes if isinstance(n, (ast.Name, ast.Attribute)) and called(n) in finder.CALLS]
        if not spoken:
            return _in_clear(app, document.words["neither"])
        names = ", ".join(f"{called(node)} ({app.place(path, node)})" for path, node in spoken[:5])
        words = f"{names}: a price needs one mechanism of Flower, called with its options; record a client's run with --run"
        raise PricingError(f"{document.path}: {words}, or describe it in a neutral YAML")
    [(app.path, app.call)] = made
    doubts = [*_doubts(app), *(_doubts_of_mods(app) if app.name == "LocalDpMod" else _doubts_of_strategy(app))]
    asked = (
        f"{'; '.join(doubts)}: does {app.name} all the same clip and noise everything that training sends, as it is declared?"
    )
    if doubts and not document.whether("runs as declared", asked):
        return _in_clear(app, f"{app.name} ({app.place(app.path, app.call)}): {doubts[0]}")
    return _local(app) if app.name == "LocalDpMod" else _central(app)


def _app(document: Document) -> _App:
    flwr, roots = table(document.data, "tool", "flwr"), set()
    said = table(flwr, "app")
    components = table(said, "components")
    at = ("tool", "flwr", "app", "components")
    for role in ("serverapp", "clientapp"):
        if not isinstance(reference := components.get(role), str):
            raise document.error(f"missing [tool.flwr.app.components] {role}", *at)
        parts = reference.partition(":")[0].split(".")
        if not all(part.isidentifier() for part in parts):
            raise document.error(f"{role} = {reference!r} is not package.module:name", *at, role)
        bases = [base.joinpath(*parts) for base in (document.path.parent, document.path.parent / "src")]
        files = [path for base in bases for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()]
        if not files:
            raise document.error(f"{role} = {reference!r}: there is no {'/'.join(parts)}.py beside this file", *at, role)
        roots.add(files[0])
    folders = {path.parent for path in roots if path.parent.resolve() != document.path.parent.resolve()}
    others = sorted({inner for folder in folders for inner in folder.rglob("*.py")} - roots)
    if len(others) > _MOST_FILES:
        raise PricingError(f"{document.path}: an app of {len(others)} Python files and more; at most {_MOST_FILES} are read")
    trees = {path: finder.parsed(path, documents.text(path)) for path in (*sorted(roots), *others)}
    for tree in trees.values():  # names of ``from … import … as name`` are those of the module that they come from
        held = {a.asname: a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in held:
                node.id = held[node.id]
    federations = table(flwr, "federations")
    chosen = federations["default"] if "default" in federations else next(iter(federations)) if len(federations) == 1 else ""
    size = _flat(table(federations, str(chosen))).get("options.num-supernodes")
    clients = size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None
    return _App(document, trees, _flat(table(said, "config")), clients)


def _doubts(app: _App) -> Iterator[str]:
    """Why any mechanism may not be what runs."""
    tree = app.trees[app.path]
    if any(isinstance(n, _BRANCHES) and app.call in ast.walk(n) for n in ast.walk(tree)):
        yield "it is made under a condition or in a loop"
    for file, sent in app.calls("send_and_receive", "push_messages", "setattr"):
        yield f"{app.place(file, sent)} calls {called(sent.func)}"
    for file, node in app.nodes:
        if isinstance(node, ast.ClassDef) and any(called(base) in _PLACES for base in node.bases):
            yield f"{node.name} ({app.place(file, node)}) is a class of its own"
        elif isinstance(node, ast.FunctionDef) and any(_decorator(d) == "query" for d in node.decorator_list):
            yield f"query ({app.place(file, node)}) sends what it returns"
        elif (
            isinstance(node, ast.Attribute)
            and not isinstance(node.ctx, ast.Load)
            and (_TOUCHED.search(node.attr) or app.once(node.value, file) is app.call)
        ):
            yield f"{app.place(file, node)} sets {ast.unparse(node)}"


def _first_mod(app: _App) -> tuple[Path, ast.expr] | None:
    """The first of the one list of mods of training that does not hide sums, and its file; None where that is not shown."""
    lists = [(home, n, k.value) for home, n in app.calls("ClientApp", "train") for k in n.keywords if k.arg == "mods"]
    trained = [d for _, n in app.nodes if isinstance(n, ast.FunctionDef) for d in n.decorator_list if _decorator(d) == "train"]
    if not len(lists) == len(app.calls("ClientApp")) == 1:
        return None
    [(home, by, held)] = lists
    loads = [
        n for n in ast.walk(app.trees[home]) if isinstance(n, ast.Name) and n.id == called(held) and isinstance(n.ctx, ast.Load)
    ]
    alone = (not isinstance(held, ast.Name) or len(loads) == 1) and (called(by.func) != "train" or len(trained) == 1)
    listed = app.once(held, home)
    inside = [m for m in listed.elts if called(m) not in _MASKS] if isinstance(listed, (ast.List, ast.Tuple)) else []
    return (home, inside[0]) if alone and inside else None


def _doubts_of_mods(app: _App) -> Iterator[str]:
    """Why ``LocalDpMod`` may not be that mod, itself or in a function that calls it."""
    home, first = _first_mod(app) or (None, ast.Name(""))
    if home != app.path or not (app.once(first) is app.call or _hands_on(app, app.trees[app.path], called(first))):
        yield "no list of mods of training shows it alone"


def _hands_on(app: _App, top: ast.Module, name: str) -> bool:
    """Whether a function is one of three arguments that makes the mechanism and returns what it makes of these three."""
    for node in top.body:
        if isinstance(node, ast.FunctionDef) and node.name == name and isinstance(node.body[-1], ast.Return):
            handed, names = node.body[-1].value, [a.arg for a in node.args.args]
            plain = all(isinstance(s, (ast.Assign, ast.Expr)) for s in node.body[:-1])
            if plain and isinstance(handed, ast.Call) and [called(a) for a in handed.args] == names and len(names) == 3:
                return app.call in (handed.func, app.once(handed.func))
    return False


def _doubts_of_strategy(app: _App) -> Iterator[str]:
    """Why a strategy may not be the one that is started, its clients may not clip, or what it wraps may keep a state."""
    started = [(p, n.func) for p, n in app.calls("start") if n.args or n.keywords]
    shown = [app.once(n.value, path) if isinstance(n, ast.Attribute) else None for path, n in started] == [app.call]
    if not shown or app.calls("ServerAppComponents", "LegacyContext"):
        yield "no file shows it as the one strategy that is started"
    if "ClientSide" in app.name and called((_first_mod(app) or (None, ast.Name("")))[1]) != "fixedclipping_mod":
        yield "no list of mods of training shows fixedclipping_mod alone, without which no update is clipped"
    if _inner(app) is None:
        said = app.arguments.get("strategy")
        yield f"it wraps {ast.unparse(said) if said is not None else 'nothing'}, which is not known to be FedAvg's mean alone"


def _inner(app: _App) -> ast.Call | None:
    """The ``FedAvg`` or ``FedProx`` of Flower that a strategy wraps; None where it wraps something else."""
    inner = app.once(app.arguments.get("strategy"))
    kind = called(inner.func) if isinstance(inner, ast.Call) else ""
    own = any(isinstance(n, ast.ClassDef) and n.name == kind for _, n in app.nodes)
    return inner if isinstance(inner, ast.Call) and kind in ("FedAvg", "FedProx") and not own else None


def _local(app: _App) -> Reading:
    clip, delta = app.need("clipping_norm", 0.0), app.need("delta", 0.0, 1.0)
    sensitivity, epsilon = app.need("sensitivity", -1e-300), app.need("epsilon", 0.0)
    std = sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    rounds, made, rows = _rounds(app), std * app.document.louder, []
    for relation, move in (("zero-out", 1), ("replace", 2)):
        why = f"noise std = {made:.6g}, an update may move by {'2·' if move == 2 else ''}clip = {move * clip:g}"
        rows.append(Row("client", relation, TO_SERVER, Gaussian(made / clip / move), rounds, delta, why))
    order = "The update is clipped, then noised on the client; rounds compose adaptively; no amplification against the server."
    patient = "one patient among a client's: covered only as a part of the client's whole update, at the client's price"
    unprotected = ("the metrics and the number of examples that each reply carries", patient)
    claim = Claim(
        epsilon, delta, "per round", f"LocalDpMod with clip {clip:g}, sensitivity {sensitivity:g}: noise std = {std:.4g}"
    )
    return Reading(tuple(rows), (claim,), unprotected, (), (order,),
                   {"epsilon": epsilon / app.document.louder}, people=app.clients)  # fmt: skip


def _central(app: _App) -> Reading:
    multiplier, sampled = app.need("noise_multiplier", -1e-300), app.need("num_sampled_clients", 0.5)
    app.need("clipping_norm", 0.0)
    rate, ratio = _participation(app, sampled)
    delta = app.document.ask("delta")
    rate, rounds = app.document.ask("share of clients in a round", rate), _rounds(app)
    scaled = multiplier * app.document.louder
    why = f"noise std = {scaled:g}·clip/{sampled:g} on the mean, which a client moves by {ratio:g}·clip/{sampled:g}"
    sums, rows = Sums(scaled / ratio, rounds, "fixed", rate, units=app.clients), []
    for relation in ("zero-out", "replace"):
        rows.append(Row("client", relation, WITH_MODELS, sums.event(relation == "replace"), rounds, delta, why))
    told = "clips are noised at the server only" if "ClientSide" in app.name else "clipping and noise happen at the server"
    rows.append(readings.in_clear("client", TO_SERVER, f"{told}: it receives updates in clear", delta=delta, rounds=rounds))
    claim = readings.without_claim(f"{app.name} with noise multiplier {multiplier:g}; Flower computes no ε from its settings")
    unprotected = ("metrics and numbers of examples, which weigh the mean",)
    order = tuple(app.document.words[key] for key in ("averaged", "drawn"))
    return Reading(tuple(rows), claim, unprotected, (), order, {"noise_multiplier": scaled}, people=app.clients)


def _participation(app: _App, sampled: float) -> tuple[float | None, float]:
    """(share of the clients in a round, None where it is not known; the weight of the heaviest, in shares of the noise)."""
    real = rate = None
    inner = _inner(app)
    changed = any(isinstance(n, ast.FunctionDef) and n.name.startswith("configure_") for _, n in app.nodes)
    options = {str(k.arg): k.value for k in inner.keywords} if inner is not None and not inner.args else {"None": None}
    older = {"None", "fraction_fit", "min_fit_clients"} & set(options)
    if app.clients is not None and not changed and not older:
        declared = {name: app.declared(app.path, value) for name, value in options.items()}
        share, least = declared.get("fraction_train", 1.0), declared.get("min_train_nodes", 2.0)
        if share is not None and least is not None:
            drawn = max(math.floor(app.clients * share), least)
            rate, real = min(1.0, drawn / app.clients), min(drawn, app.clients)
    even = sampled / (real or sampled)
    question = "Do all clients report the same number of examples? FedAvg weights by it: the heaviest weight times the "
    question += "number of sampled clients (1 where all are equal)."
    tried = tuple(dict.fromkeys((sampled, min(4.0, sampled), min(2.0, sampled), even)))
    return rate, max(app.document.ask(_HEAVIEST, None, question, tried, worst=max(sampled, even)), even)


def _rounds(app: _App) -> int:
    """The rounds of the one start; asked where no number of it says them."""
    starts = [(p, n) for p, n in app.calls("start") if n.args or n.keywords]
    by_hand, said = app.calls("send_and_receive", "push_messages", "ServerConfig"), None
    looped = any(isinstance(n, (ast.For, ast.While)) and any(s in ast.walk(n) for _, s in starts) for _, n in app.nodes)
    if len(starts) == 1 and not by_hand and not looped:
        [(path, start)] = starts
        options = {k.arg: k.value for k in start.keywords}
        if "num_rounds" in options:
            said = app.number(path, options["num_rounds"], "rounds")
        elif None not in options and not start.args:
            said = 3.0
    more = f" {app.place(*by_hand[0])} calls {called(by_hand[0][1].func)}: count those, too." if by_hand else ""
    return int(app.document.ask("rounds", said, more=more))


def _in_clear(app: _App, reason: str) -> Reading:
    return Reading((readings.in_clear("client", TO_SERVER, reason),), unprotected=("everything",))


def _decorator(node: ast.expr) -> str:
    return called(node.func if isinstance(node, ast.Call) else node)


def _target(node: ast.Assign | ast.AnnAssign) -> ast.expr | None:
    return node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if len(node.targets) == 1 else None


def _flat(held: Tree, at: str = "") -> Table:
    out: Table = {}
    for key, value in held.items() if isinstance(held, dict) else ():
        name = f"{at}{key}"
        out |= _flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return out
