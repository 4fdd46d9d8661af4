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

_FIXED = ("strategy", "noise_multiplier", "clipping_norm", "num_sampled_clients")
_ADAPTIVE = ("strategy", "noise_multiplier", "num_sampled_clients", "initial_clipping_norm", "target_clipped_quantile",
             "clip_norm_lr", "clipped_count_stddev")  # fmt: skip
_PLACES = {f"DifferentialPrivacy{side}Side{kind}Clipping": names for side in ("Server", "Client")
           for kind, names in (("Fixed", _FIXED), ("Adaptive", _ADAPTIVE))}  # fmt: skip
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
        """What a name stands for where it is read; other expressions stand for themselves."""
        return _value(self.trees[path or self.path], node) if isinstance(node, ast.Name) else node

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
    flwr = table(document.data, "tool", "flwr") or table(document.data, "flower")  # the section of Flower 1.8
    said = table(flwr, "app") if "components" in table(flwr, "app") else flwr
    components, roots = table(said, "components"), set()
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
    sizes = {name: _flat(held).get("options.num-supernodes") for name, held in federations.items() if isinstance(held, dict)}
    found = (
        sizes.get(str(federations["default"])) if "default" in federations else sizes.popitem()[1] if len(sizes) == 1 else None
    )
    clients = found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None
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
    started = [(p, n.func.value) for p, n in app.calls("start") if isinstance(n.func, ast.Attribute) and (n.args or n.keywords)]
    given = [(p, n) for p, n in app.nodes if isinstance(n, ast.Call) and called(n.func) not in _PLACES]
    started += [(p, k.value) for p, n in given for k in n.keywords if k.arg == "strategy"]
    if [app.once(node, path) for path, node in started] != [app.call]:
        yield "no file shows it as the one strategy that is started"
    wanted = "adaptiveclipping_mod" if _PLACES[app.name] is _ADAPTIVE else "fixedclipping_mod"
    if "ClientSide" in app.name and called((_first_mod(app) or (None, ast.Name("")))[1]) != wanted:
        yield f"no list of mods of training shows {wanted} alone, without which no update is clipped"
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
    document, adaptive = app.document, _PLACES[app.name] is _ADAPTIVE
    multiplier, sampled, count = app.need("noise_multiplier", -1e-300), app.need("num_sampled_clients", 0.5), 0.0
    if adaptive:
        stated = app.number(app.path, app.arguments.get("clipped_count_stddev"), "clipped_count_stddev")
        count = sampled / 20 if stated is None else stated
        if multiplier >= 2 * count:
            message = f"noise_multiplier {multiplier:g} ≥ 2·clipped_count_stddev {2 * count:g}: Flower refuses to run"
            raise document.error(message, line=app.call.lineno, path=app.path)
    else:
        app.need("clipping_norm", 0.0)
    rate, ratio = _participation(app, sampled)
    delta = document.ask("delta")
    rate, rounds = document.ask("share of clients in a round", rate), _rounds(app)
    scaled, spread, rows = multiplier * document.louder, count * document.louder, []
    for relation, times in (("zero-out", 1), ("replace", 2)):
        effective = scaled / ratio
        why = f"noise std = {scaled:g}·clip/{sampled:g} on the mean, which a client moves by {ratio:g}·clip/{sampled:g}"
        if adaptive:  # the update, moved by its clips, and the count of clipped updates, moved by one
            moved = ratio * times / (scaled**-2 - (2 * spread) ** -2) ** -0.5 if scaled else math.inf
            effective = times / math.hypot(moved, 1 / spread)
            why += f", and the count of clipped updates with std {spread:g}"
        event = Sums(effective, rounds, "fixed", rate, units=app.clients).event(times == 2)
        rows.append(Row("client", relation, WITH_MODELS, event, rounds, delta, why))
    told = "clips are noised at the server only" if "ClientSide" in app.name else "clipping and noise happen at the server"
    rows.append(readings.in_clear("client", TO_SERVER, f"{told}: it receives updates in clear", delta=delta, rounds=rounds))
    settings = {"noise_multiplier": scaled} | ({"clipped_count_stddev": spread} if adaptive else {})
    claim = readings.without_claim(f"{app.name} with noise multiplier {multiplier:g}; Flower computes no ε from its settings")
    unprotected = ("metrics and numbers of examples, which weigh the mean",)
    order = tuple(document.words[key] for key in ("averaged", "drawn"))
    return Reading(tuple(rows), claim, unprotected, (), order, settings, people=app.clients)


def _participation(app: _App, sampled: float) -> tuple[float | None, float]:
    """(share of the clients in a round, None where it is not known; the weight of the heaviest, in shares of the noise)."""
    real = rate = None
    inner = _inner(app)
    changed = any(isinstance(n, ast.FunctionDef) and n.name.startswith("configure_") for _, n in app.nodes)
    options = {str(k.arg): k.value for k in inner.keywords} if inner is not None and not inner.args else {"None": None}
    if app.clients is not None and not changed and "None" not in options:
        old = "fraction_fit" in options or "min_fit_clients" in options
        share, few = ("fraction_fit", "min_fit_clients") if old else ("fraction_train", "min_train_nodes")
        fraction = app.declared(app.path, options[share]) if share in options else 1.0
        least = app.declared(app.path, options[few]) if few in options else 2.0
        if fraction is not None and least is not None:
            drawn = max(math.floor(app.clients * fraction), least)
            rate, real = min(1.0, drawn / app.clients), min(drawn, app.clients)
    even = sampled / (real or sampled)
    question = "Do all clients report the same number of examples? FedAvg weights by it: the heaviest weight times the "
    question += "number of sampled clients (1 where all are equal)."
    tried = tuple(dict.fromkeys((sampled, min(4.0, sampled), min(2.0, sampled), even)))
    return rate, max(app.document.ask(_HEAVIEST, None, question, tried, worst=max(sampled, even)), even)


def _rounds(app: _App) -> int:
    """The rounds of the one start; asked where they are not declared."""
    starts = [(p, n) for p, n in app.calls("start", "ServerConfig") if called(n.func) != "start" or (n.args or n.keywords)]
    starts = [(p, n) for p, n in starts if isinstance(n.func, ast.Attribute) or called(n.func) == "ServerConfig"]
    said: list[float | None] = []
    for path, n in starts:
        place, default = (2, 3.0) if called(n.func) == "start" else (0, 1.0)
        held = {None if isinstance(a, ast.Starred) else at: a for at, a in enumerate(n.args)} | {
            k.arg: k.value for k in n.keywords
        }
        given = held.get("num_rounds", held.get(place))
        said.append(None if None in held else default if given is None else app.number(path, given, "rounds"))
    by_hand = app.calls("send_and_receive", "push_messages")
    more = f" {app.place(*by_hand[0])} sends messages by hand: count them, too." if by_hand else ""
    looped = any(isinstance(n, (ast.For, ast.While)) and any(s in ast.walk(n) for _, s in starts) for _, n in app.nodes)
    return int(app.document.ask("rounds", said[0] if len(said) == 1 and not by_hand and not looped else None, more=more))


def _in_clear(app: _App, reason: str) -> Reading:
    return Reading((readings.in_clear("client", TO_SERVER, reason),), unprotected=("everything",))


def _decorator(node: ast.expr) -> str:
    return called(node.func if isinstance(node, ast.Call) else node)


def _value(tree: ast.Module, name: ast.Name) -> ast.expr | None:
    """What a name stands for where it is read: its one value, or the last of plain lines of the same function before it."""
    inside = [f for f in ast.walk(tree) if isinstance(f, _FUNCTIONS) and name in ast.walk(f)]
    scope = next((f for f in reversed(inside) if _values(f, name.id)), tree)
    values = _values(scope, name.id)
    if len(values) == 1 or isinstance(scope, ast.Lambda) or (inside[-1] if inside else tree) is not scope:
        return values[0] if len(values) == 1 else None
    lines = [n for n in scope.body if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value in values]
    here = next((at for at, n in enumerate(scope.body) if name in ast.walk(n)), 0)
    before = [n.value for n in scope.body[:here] if n in lines]
    return before[-1] if before and len(lines) == len(values) else None


def _values(tree: ast.AST, name: str) -> list[ast.expr | None]:
    """What is assigned to a name anywhere in a tree; None for each place that is no plain assignment."""
    nodes = list(ast.walk(tree))
    made = [n for n in nodes if isinstance(n, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and n.value is not None]
    targets = [(n.value, t) for n in made for t in (n.targets if isinstance(n, ast.Assign) else [n.target])]
    plain = [value for value, target in targets if isinstance(target, ast.Name) and target.id == name]
    stored = [n for n in nodes if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)]
    other = [n for n in nodes if (isinstance(n, ast.arg) and n.arg == name) or (isinstance(n, ast.Global) and name in n.names)]
    return [*plain, *[None] * (len(stored) + len(other) - len(plain))]


def _flat(held: Tree, at: str = "") -> Table:
    out: Table = {}
    for key, value in held.items() if isinstance(held, dict) else ():
        name = f"{at}{key}"
        out |= _flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return out
