"""Flower: an app's ``pyproject.toml``, with what its Python files declare.

The files are parsed, never run. Read are declarations alone: the one mechanism that is called, the numbers that it gets as
they stand there (literals, constants, ``run_config`` keys of the ``pyproject.toml``), and where it is put: ``LocalDpMod`` in
the mods of training, ``DifferentialPrivacy…`` as the strategy that is started. What is made under a condition, set again,
inherited from or sent by hand is a question. What is proven: ``docs/how_deployed_noise_is_priced.md``.
"""

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import documents, readings
from fedgraph.pricing.documents import Document
from fedgraph.pricing.facts import Table, Tree, table
from fedgraph.pricing.readers import finder
from fedgraph.pricing.readings import TO_SERVER, WITH_MODELS, Claim, Reading, Row, Sums
from fedgraph.privacy import Gaussian

_LOCAL = {"LocalDpMod": ("clipping_norm", "sensitivity", "epsilon", "delta")}
_FIXED = ("strategy", "noise_multiplier", "clipping_norm", "num_sampled_clients")
_ADAPTIVE = ("strategy", "noise_multiplier", "num_sampled_clients", "initial_clipping_norm", "target_clipped_quantile",
             "clip_norm_lr", "clipped_count_stddev")  # fmt: skip
_CENTRAL = {f"DifferentialPrivacy{side}Side{kind}Clipping": names for side in ("Server", "Client")
            for kind, names in (("Fixed", _FIXED), ("Adaptive", _ADAPTIVE))}  # fmt: skip
_COMPONENTS = ("tool", "flwr", "app", "components")
_HIDDEN = ("SecAggPlusWorkflow", "secaggplus_mod", "SecAggWorkflow", "secagg_mod")
_BY_HAND = ("send_and_receive", "push_messages")
_TOUCHED = re.compile(r"noise|clip|aggregate|sensitivity|epsilon|delta|strategy|stdv|__call__")
_BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.Match, ast.IfExp, ast.comprehension)
_HEAVIEST = "weight of the heaviest client, in equal shares"


@dataclass
class _App:
    """The Python files of an app, parsed, with what ``pyproject.toml`` sets."""

    document: Document
    trees: Mapping[Path, ast.Module]
    config: Table  # ``run_config``, flat
    clients: int | None  # how many nodes there are; None where that is not said

    @property
    def nodes(self) -> Iterator[tuple[Path, ast.AST]]:
        return ((path, node) for path, tree in self.trees.items() for node in ast.walk(tree))

    def calls(self, *names: str) -> list[tuple[Path, ast.Call]]:
        return [(path, n) for path, n in self.nodes if isinstance(n, ast.Call) and _name(n.func) in names]

    def number(self, path: Path, node: ast.expr | None, name: str) -> float | None:
        """The number that stands there; where it is no declaration, what the user says, or a question."""
        value = self._declared(path, node)
        if node is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            return None if node is None else float(value)  # type: ignore[arg-type]
        question = f"Which value has {name}? {path.name}:{node.lineno} says {ast.unparse(node)}, which it does not declare."
        return self.document.facts.ask(name, question, (1.0, 10.0, 0.1))

    def _declared(self, path: Path, node: ast.expr | None, depth: int = 8) -> Tree:
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, (bool, int, float, str)) else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._declared(path, node.operand, depth - 1)
            return -value if isinstance(value, (int, float)) else None
        if isinstance(node, ast.Call) and _name(node.func) in ("float", "int") and len(node.args) == 1 and depth:
            value = self._declared(path, node.args[0], depth - 1)
            return value if isinstance(value, (int, float)) else None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and self._is_config(path, node.value):
            key = str(node.slice.value)
            if (answer := self.document.facts.known(key)) is not None:
                return answer
            if key in self.config:
                said = f"run_config {key} = {self.config[key]!r} (pyproject.toml), which flwr run --run-config may change"
                self.document.facts.notes[said] = None
            return self.config.get(key)
        if isinstance(node, ast.Name) and depth:
            once = _assigned(self.trees[path], node.id)
            return self._declared(path, once[0], depth - 1) if len(once) == 1 and once[0] is not None else None
        return None

    def _is_config(self, path: Path, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            once = _assigned(self.trees[path], node.id)
            return len(once) == 1 and once[0] is not None and self._is_config(path, once[0])
        return isinstance(node, ast.Attribute) and node.attr == "run_config"

    def argument(self, path: Path, call: ast.Call, name: str, places: tuple[str, ...]) -> ast.expr | None:
        if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
            raise self.document.error(f"{_name(call.func)}: write its options out by name", line=call.lineno, path=path)
        at = places.index(name) if name in places else len(call.args)
        return next((k.value for k in call.keywords if k.arg == name), call.args[at] if at < len(call.args) else None)

    def need(
        self, path: Path, call: ast.Call, name: str, places: tuple[str, ...], above: float, below: float = math.inf
    ) -> float:
        value = self.number(path, self.argument(path, call, name, places), name)
        if value is None or not above < value < below:
            message = f"{_name(call.func)} needs {name} as a number > {above:g}" + (
                f" and < {below:g}" if below < math.inf else ""
            )
            raise self.document.error(f"{message}, found {value}", line=call.lineno, path=path)
        return value


def read(document: Document) -> Reading:
    """The one mechanism that the app declares; several are refused, none is in clear."""
    app = _app(document)
    made = app.calls(*_LOCAL, *_CENTRAL)
    if len(made) > 1:
        names = ", ".join(f"{_name(call.func)} ({path.name}:{call.lineno})" for path, call in made)
        raise PricingError(
            f"{document.path}: several mechanisms, which contradict or compose: {names}; price one of them, or record the run"
        )
    if not made:
        if found := app.calls("make_private", "make_private_with_epsilon"):
            where = f"{found[0][0].name}:{found[0][1].lineno}"
            raise PricingError(f"{document.path}: Opacus trains inside the clients ({where}): record a client's run with --run")
        return _in_clear(app, document.words["neither"])
    [(path, call)] = made
    document.facts.place = (path, call.lineno)
    if odd := _odd(app, path, call):
        return _in_clear(app, odd)
    return _local(app, path, call) if _name(call.func) in _LOCAL else _central(app, path, call)


def _app(document: Document) -> _App:
    flwr = table(document.data, "tool", "flwr")
    components, roots = table(flwr, "app", "components"), set()
    for role in ("serverapp", "clientapp"):
        if not isinstance(reference := components.get(role), str):
            raise document.error(f"missing [tool.flwr.app.components] {role}", *_COMPONENTS)
        parts = reference.partition(":")[0].split(".")
        if not all(part.isidentifier() for part in parts):
            raise document.error(f"{role} = {reference!r} is not package.module:name", *_COMPONENTS, role)
        bases = [base.joinpath(*parts) for base in (document.path.parent, document.path.parent / "src")]
        files = [path for base in bases for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()]
        if not files:
            raise document.error(
                f"{role} = {reference!r}: there is no {'/'.join(parts)}.py beside this file", *_COMPONENTS, role
            )
        roots.add(files[0])
    folders = {path.parent for path in roots if path.parent.resolve() != document.path.parent.resolve()}
    others = sorted({inner for folder in folders for inner in folder.rglob("*.py")} - roots)[:100]
    trees = {path: _without_aliases(finder.parsed(path, documents.text(path))) for path in (*sorted(roots), *others)}
    federations = table(flwr, "federations")
    sizes = {name: _flat(held).get("options.num-supernodes") for name, held in federations.items() if isinstance(held, dict)}
    known = {name: s for name, s in sizes.items() if isinstance(s, int) and not isinstance(s, bool) and s > 0}
    default, counts = federations.get("default"), sorted(set(known.values()))
    if isinstance(default, str):
        clients = known.get(default)
    elif len(sizes) > 1 and counts:
        words = f"{len(sizes)} federations and no default: how many clients has the one that is run?"
        clients = int(document.facts.ask("clients in all", words, tuple(float(c) for c in counts), float(counts[0])))
    else:
        clients = counts[0] if counts else None
    return _App(document, trees, _flat(table(flwr, "app", "config")), clients)


def _without_aliases(tree: ast.Module) -> ast.Module:
    """The same program, in which names of ``from … import … as name`` are those of the module that they come from."""
    held = {a.asname: a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in held:
            node.id = held[node.id]
    return tree


def _odd(app: _App, path: Path, call: ast.Call) -> str:
    """Why the mechanism may not be what runs: each a question, taken as no."""
    whether, name, held = app.document.facts.whether, _name(call.func), _names_of(app.trees[path], call)
    under = [n for n in ast.walk(app.trees[path]) if isinstance(n, _BRANCHES) and call in ast.walk(n)]
    asked = f"{path.name}:{call.lineno} makes {name} under a condition or in a loop: is it made, once?"
    if under and not whether(f"{name} is made", asked):
        return f"{name} (line {call.lineno}) is made under a condition or in a loop"
    for file, sent in app.calls(*_BY_HAND):
        asked = f"{file.name}:{sent.lineno} sends messages. Are replies unused?"
        if not whether(f"replies of line {sent.lineno} thrown away", asked):
            return f"messages are sent by hand ({file.name}:{sent.lineno})"
    for file, node in app.nodes:
        if isinstance(node, ast.ClassDef) and any(_name(base) in (*_LOCAL, *_CENTRAL) for base in node.bases):
            return f"{node.name} ({file.name}:{node.lineno}) changes {name} in a way not followed here"
        if isinstance(node, ast.FunctionDef) and any(_decorator(d) == "query" for d in node.decorator_list):
            return f"query ({file.name}:{node.lineno}) sends what it returns, which no mechanism noises"
        if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
            continue
        asked = f"{file.name}:{node.lineno} sets {ast.unparse(node)}: does {name} still clip and add the same noise?"
        own = _TOUCHED.search(node.attr) or _name(node.value) in held
        if own and not whether(f"mechanism kept at {file.name} {node.lineno}", asked):
            return f"line {node.lineno} of {file.name} sets {ast.unparse(node)}, which is not followed"
    return ""


def _local(app: _App, path: Path, call: ast.Call) -> Reading:
    places = _LOCAL["LocalDpMod"]
    if not _in_mods(app, path, call):
        here = f"LocalDpMod ({path.name}:{call.lineno})"
        asked = f"No list of mods shows it: does every reply of training pass {here}, and no other mod after it?"
        if not app.document.facts.whether("LocalDpMod on every train", asked):
            return _in_clear(app, f"{here} is made, and no list of mods of training shows it alone")
    clip, delta = app.need(path, call, "clipping_norm", places, 0.0), app.need(path, call, "delta", places, 0.0, 1.0)
    sensitivity, epsilon = (app.need(path, call, each, places, -1e-300) for each in ("sensitivity", "epsilon"))
    std = sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon if epsilon > 0 else math.inf
    rounds, made, rows = _rounds(app), std * app.document.louder, []
    for relation, move in (("zero-out", 1), ("replace", 2)):
        mu = move * clip / made if made else math.inf
        size = f"{'2·' if move == 2 else ''}clip = {move * clip:g} (μ = {mu:.6g} a round)"
        why = f"noise std = {made:.6g}, an update may move by {size}"
        rows.append(Row("client", relation, TO_SERVER, Gaussian(made / clip / move), rounds, delta, why))
    typed = "is a number the user types; the clip bounds what a client can change"
    typed = f"The option sensitivity = {sensitivity:g} {typed}, {clip:g}."
    order = "The update is clipped, then noised on the client; rounds compose adaptively; no amplification against the server."
    patient = "one patient among a client's: covered only as a part of the client's whole update, at the client's price"
    unprotected = ("the metrics and the number of examples that each reply carries", patient, *_hidden(app))
    words = f"LocalDpMod with clip {clip:g}, sensitivity {sensitivity:g}: noise std = {std:.4g}"
    claim = Claim(epsilon, delta, "per round", words)
    return Reading(tuple(rows), (claim,), unprotected, (), (order, *([typed] if sensitivity != clip else [])),
                   {"epsilon": epsilon / app.document.louder}, people=app.clients)  # fmt: skip


def _in_mods(app: _App, path: Path, call: ast.Call) -> bool:
    """Whether the one list of mods of training holds the mechanism first: itself, its name, or a function that calls it."""
    lists = [(home, n, k.value) for home, n in app.calls("ClientApp", "train") for k in n.keywords if k.arg == "mods"]
    trained = [d for _, n in app.nodes if isinstance(n, ast.FunctionDef) for d in n.decorator_list if _decorator(d) == "train"]
    if len(lists) != 1 or len(app.calls("ClientApp")) != 1 or lists[0][0] != path:
        return False
    (_, by, held), top = lists[0], app.trees[path]
    if _name(by.func) == "train" and len(trained) != 1:
        return False
    if isinstance(held, ast.Name):
        loads = [n for n in ast.walk(top) if isinstance(n, ast.Name) and n.id == held.id and isinstance(n.ctx, ast.Load)]
        once = _assigned(top, held.id)
        held = once[0] if len(loads) == len(once) == 1 and once[0] is not None else held
    inside = [m for m in held.elts if _name(m) not in _HIDDEN] if isinstance(held, (ast.List, ast.Tuple)) else []
    if not inside:
        return False
    first = inside[0]
    if first is call or _is(top, first, call):
        return True
    # def mod(message, context, call_next): made = LocalDpMod(…); return made(message, context, call_next)
    for node in top.body:
        if isinstance(node, ast.FunctionDef) and isinstance(first, ast.Name) and node.name == first.id:
            plain = all(isinstance(s, (ast.Assign, ast.Expr)) for s in node.body[:-1])
            handed = node.body[-1].value if isinstance(node.body[-1], ast.Return) else None
            names = [a.arg for a in node.args.args]
            if plain and isinstance(handed, ast.Call) and [_name(a) for a in handed.args] == names and len(names) == 3:
                return handed.func is call or _is(node, handed.func, call) or _is(top, handed.func, call)
    return False


def _is(tree: ast.AST, name: ast.expr, call: ast.Call) -> bool:
    """Whether a name is assigned once in a tree, and to this call."""
    return isinstance(name, ast.Name) and len(once := _assigned(tree, name.id)) == 1 and once[0] is call


def _central(app: _App, path: Path, call: ast.Call) -> Reading:
    document, name, places, tree = app.document, _name(call.func), _CENTRAL[_name(call.func)], app.trees[path]
    adaptive, whether = places is _ADAPTIVE, document.facts.whether
    held = _names_of(tree, call)
    strategies = [n.func.value for _, n in app.calls("start") if isinstance(n.func, ast.Attribute)]
    given = [n for _, n in app.nodes if isinstance(n, ast.Call) and _name(n.func) not in _CENTRAL]
    strategies += [k.value for n in given for k in n.keywords if k.arg == "strategy"]
    ours = [s for s in strategies if s is call or _name(s) in held]
    alone = len(ours) == len(strategies) == 1 and (not held or len(_assigned(tree, held[0])) == 1)
    if not alone and not whether("strategy with noise", f"Is {name} (line {call.lineno}) the one strategy that is started?"):
        return _in_clear(app, f"no file shows {name} (line {call.lineno}) as the one strategy that is started")
    wanted = "adaptiveclipping_mod" if adaptive else "fixedclipping_mod"
    lists = [n for _, n in app.nodes if isinstance(n, (ast.List, ast.Tuple))]
    clipped = "ClientSide" not in name or any(_name(item) == wanted for n in lists for item in n.elts)
    if not clipped and not whether(wanted, f"Does every client have {wanted} in the mods of its training?"):
        return _in_clear(app, f"no file shows {wanted} on the client; without it no update is clipped")
    under = app.argument(path, call, "strategy", places)
    once = _assigned(tree, under.id) if isinstance(under, ast.Name) else [under]
    inner = once[0] if len(once) == 1 else None
    kind = _name(inner.func) if isinstance(inner, ast.Call) else ""
    own = [n for _, n in app.nodes if isinstance(n, ast.ClassDef) and n.name == kind]
    if not isinstance(inner, ast.Call) or kind not in ("FedAvg", "FedProx") or own:
        said = kind or (ast.unparse(under) if under is not None else "nothing")
        asked = f"{name} wraps {said}: is it FedAvg's mean of the round, with no state of its own?"
        if not whether(f"{said} averages and keeps nothing", asked):
            kept = "which keeps a state without noise or is no mean that is known here"
            return _in_clear(app, f"{name} (line {call.lineno}) wraps {said}, {kept}")
        inner = None
    multiplier = app.need(path, call, "noise_multiplier", places, -1e-300)
    sampled, count = app.need(path, call, "num_sampled_clients", places, 0.5), 0.0
    if adaptive:
        stated = app.number(path, app.argument(path, call, "clipped_count_stddev", places), "clipped_count_stddev")
        count = sampled / 20 if stated is None else stated
        if multiplier >= 2 * count:
            message = f"noise_multiplier {multiplier:g} ≥ 2·clipped_count_stddev {2 * count:g}: Flower refuses to run"
            raise document.error(message, line=call.lineno, path=path)
    else:
        app.need(path, call, "clipping_norm", places, 0.0)
    rate, ratio = _participation(app, path, inner, sampled)
    above = f" There are {app.clients or 0:,} clients: a δ above {1 / (app.clients or 1):g} says nothing of one of them."
    delta = document.ask("delta", None, many=above if app.clients else "")
    rate, rounds = document.ask("share of clients in a round", rate), _rounds(app)
    scaled, spread, rows = multiplier * document.louder, count * document.louder, []
    for relation, replaced in (("zero-out", False), ("replace", True)):
        effective = scaled / ratio
        why = f"noise std = {scaled:g}·clip/{sampled:g} on the mean, which a client moves by {ratio:g}·clip/{sampled:g}"
        if adaptive:  # the update, moved by its clips, and the count of clipped updates, moved by one
            times = 2 if replaced else 1
            moved = ratio * times / (scaled**-2 - (2 * spread) ** -2) ** -0.5 if scaled else math.inf
            effective = times / math.hypot(moved, 1 / spread)
            why += f", and the count of clipped updates with std {spread:g}"
        event = Sums(effective, rounds, "fixed", rate, units=app.clients).event(replaced)
        rows.append(Row("client", relation, WITH_MODELS, event, rounds, delta, why))
    told = "clips are noised at the server only" if "ClientSide" in name else "clipping and noise happen at the server"
    rows.append(readings.in_clear("client", TO_SERVER, f"{told}: it receives updates in clear", delta=delta, rounds=rounds))
    settings = {"noise_multiplier": scaled} | ({"clipped_count_stddev": spread} if adaptive else {})
    claim = readings.without_claim(f"{name} with noise multiplier {multiplier:g}; Flower computes no ε from its settings")
    unprotected = ("metrics and numbers of examples, which weigh the mean", *_hidden(app))
    order = tuple(document.words[key] for key in ("averaged", "drawn"))
    return Reading(tuple(rows), claim, unprotected, (), order, settings, people=app.clients)


def _participation(app: _App, path: Path, inner: ast.Call | None, sampled: float) -> tuple[float | None, float]:
    """(share of the clients in a round, None where it is not known; the weight of the heaviest, in shares of the noise)."""
    real = rate = None
    changed = any(isinstance(n, ast.FunctionDef) and n.name.startswith("configure_") for _, n in app.nodes)
    if inner is not None and app.clients is not None and not changed:
        options = {k.arg: k.value for k in inner.keywords}
        old = "fraction_fit" in options or "min_fit_clients" in options
        share, few = ("fraction_fit", "min_fit_clients") if old else ("fraction_train", "min_train_nodes")
        said = app.number(path, options.get(share), share), app.number(path, options.get(few), few)
        if not inner.args and None not in options:
            fraction, least = (default if v is None else v for v, default in zip(said, (1.0, 2.0), strict=True))
            drawn = max(math.floor(app.clients * fraction), least)
            rate, real = min(1.0, drawn / app.clients), min(drawn, app.clients)
    even = sampled / (real or sampled)
    question = "Do all clients report the same number of examples? FedAvg weights by it: the heaviest weight times the "
    question += "number of sampled clients (1 where all are equal)."
    if even != 1 and real:
        question += f" They are {real:g} and the noise is for {sampled:g}: equal clients weigh {even:.4g}."
    tried = tuple(dict.fromkeys((sampled, min(4.0, sampled), min(2.0, sampled), even)))
    return rate, max(app.document.facts.ask(_HEAVIEST, question, tried, max(sampled, even)), even)


def _rounds(app: _App) -> int:
    """The rounds of the one start; asked where they are not declared."""
    said: list[float | None] = []
    for path, node in app.calls("start", "ServerConfig"):
        if isinstance(node.func, ast.Attribute) or _name(node.func) == "ServerConfig":
            held = next((k.value for k in node.keywords if k.arg == "num_rounds"), None)
            default = 3.0 if _name(node.func) == "start" else 1.0
            said.append(default if held is None else app.number(path, held, "rounds"))
    by_hand = app.calls(*_BY_HAND)
    more = f" Line {by_hand[0][1].lineno} sends messages by hand: count them, too." if by_hand else ""
    starts = [node for _, node in app.calls("start")]
    loops = [n for _, n in app.nodes if isinstance(n, (ast.For, ast.While)) if any(c in starts for c in ast.walk(n))]
    known = said[0] if len(said) == 1 and said[0] is not None and not by_hand and not loops else None
    return int(app.document.ask("rounds", known, more=more))


def _in_clear(app: _App, reason: str) -> Reading:
    no_fix = "add LocalDpMod to the mods of training, or start a DifferentialPrivacy… strategy"
    return Reading((readings.in_clear("client", TO_SERVER, reason),), unprotected=("everything", *_hidden(app)), no_fix=no_fix)


def _hidden(app: _App) -> tuple[str, ...]:
    """What secure aggregation does, where the app names it."""
    named = {_name(n) for t in app.trees.values() for n in ast.walk(t) if isinstance(n, (ast.Name, ast.Attribute))}
    return tuple(f"{name} {app.document.words['hidden']}" for name in _HIDDEN if name in named)[:1]


def _names_of(tree: ast.AST, call: ast.Call) -> list[str]:
    """The names that a call is assigned to."""
    made = [t for n in ast.walk(tree) if isinstance(n, ast.Assign) and n.value is call for t in n.targets]
    return [t.id for t in made if isinstance(t, ast.Name)]


def _decorator(node: ast.expr) -> str:
    return _name(node.func if isinstance(node, ast.Call) else node)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _assigned(tree: ast.AST, name: str) -> list[ast.expr | None]:
    """What is assigned to a name, anywhere in a tree; None for what is no plain assignment."""
    return list(_values(tree, name))


def _values(tree: ast.AST, name: str) -> Iterator[ast.expr | None]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    yield node.value
                elif any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(target)):
                    yield None
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and isinstance(node.target, ast.Name) and node.target.id == name:
            yield node.value
        elif isinstance(node, (ast.AugAssign, ast.For, ast.comprehension)):
            if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node.target)):
                yield None
        elif isinstance(node, ast.arg) and node.arg == name:
            yield None


def _flat(held: Tree, at: str = "") -> Table:
    out: Table = {}
    for key, value in held.items() if isinstance(held, dict) else ():
        name = f"{at}{key}"
        out |= _flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return out
