"""The abstract interpreter's expressions: what one is worth in a scope. ``python_program`` runs statements with it."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import TypeAlias

from fedgraph.errors import PricingError
from fedgraph.pricing import python_values as values
from fedgraph.pricing.python_values import (
    Assumed,
    Call,
    Choice,
    Class,
    Function,
    Items,
    Method,
    Name,
    Parser,
    Part,
    Scope,
    Stack,
    Table,
    Unresolved,
    Value,
    either,
    lift,
    plain,
)

MOST_STEPS, DEEPEST = 400_000, 40
Plain: TypeAlias = Callable[..., Value]
_BINARY: Mapping[type[ast.operator], Plain] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARE: Mapping[type[ast.cmpop], Plain] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_PURE: Mapping[str, Plain] = {
    "float": float, "int": int, "str": str, "bool": bool, "abs": abs, "round": round, "max": max, "min": min,
    **{f"math.{n}": getattr(math, n) for n in ("sqrt", "log", "exp", "ceil", "floor", "log2", "log10", "pow")},
    **{f"numpy.{n}": getattr(math, n) for n in ("sqrt", "log", "exp", "ceil", "floor")},
}  # fmt: skip
_CONSTANTS = {"math.pi": math.pi, "math.e": math.e, "math.inf": math.inf, "numpy.inf": math.inf, "numpy.pi": math.pi}
_TABLES = (
    "dict",
    "SimpleNamespace",
    "Namespace",
    "ConfigDict",
    "EasyDict",
    "edict",
    "OrderedDict",
    "AttrDict",
    "Munch",
    "DictConfig",
)


def _power(base: float, exponent: float) -> float:
    if abs(base) > 1e6 or abs(exponent) > 64:
        raise ValueError
    return float(base) ** exponent


class Expressions:
    """given: answers to options of a command line. config: the run configuration of a Flower app, None where there is none."""

    def __init__(self, given: Mapping[str, Value], config: Mapping[str, Value] | None) -> None:
        self.given, self.config = given, config
        self.calls: list[Call] = []
        self.stack: Stack = ()
        self.reached, self.again, self.steps, self.depth = True, False, 0, 0
        self.flags = Table()
        self.waiting: list[Function] = []
        self.used: set[str] = set()
        self.options: dict[str, Value] = {}
        self.lengths: list[int] = []

    # -- what statements give -------------------------------------------------------------------------------------------
    def enter(self, function: Function, args: tuple[Value, ...], keywords: Mapping[str, Value], node: ast.AST) -> Value:
        raise NotImplementedError

    def make(self, made: Class, args: tuple[Value, ...], keywords: Mapping[str, Value], node: ast.expr, scope: Scope) -> Value:
        raise NotImplementedError

    def step(self, node: ast.AST, scope: Scope) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            line = getattr(node, "lineno", 1)
            raise PricingError(f"{scope.path}:{line}: too much to follow; name the file that holds the privacy alone")

    # -- expressions ----------------------------------------------------------------------------------------------------
    def value(self, node: ast.expr | None, scope: Scope) -> Value:
        """What an expression is worth."""
        if node is None:
            return None
        self.step(node, scope)
        found = getattr(self, f"_{type(node).__name__.lower()}", None)
        if found is not None:
            result: Value = found(node, scope)
            return result
        for child in ast.iter_child_nodes(node):  # calls inside what is not understood are still made
            if isinstance(child, ast.expr):
                self.value(child, scope)
        return Unresolved(node)

    def _constant(self, node: ast.Constant, scope: Scope) -> Value:
        return node.value if values.is_plain(node.value) else Unresolved(node)

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        if node.id == "__name__":
            return "__main__"
        home = scope.home(node.id)
        return Name(node.id) if home is None else home.local[node.id]

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        return self.attribute(self.value(node.value, scope), node.attr, node)

    def attribute(self, owner: Value, name: str, node: ast.AST) -> Value:
        owner = plain(owner)
        if isinstance(owner, Choice):
            found = [self.attribute(v, name, node) for v in owner.values]
            return found[0] if all(values.same(found[0], f) for f in found[1:]) else Choice(tuple(found))
        if isinstance(owner, Name):
            if owner.dotted.rsplit(".", 1)[-1] == "FLAGS":
                return self.flags.get(name, Unresolved(node))
            return _CONSTANTS.get(f"{owner.dotted}.{name}", Name(f"{owner.dotted}.{name}"))
        if isinstance(owner, Scope):
            return owner.local.get(name, Unresolved(node))
        if isinstance(owner, Table) and not (
            name in ("get", "items", "keys", "values", "update", "pop", "copy") and name not in owner
        ):
            return owner[name] if name in owner else Method(owner, name, node)
        if isinstance(owner, (Call, Part)) and name in owner.attributes:
            return owner.attributes[name]
        own = owner.own if isinstance(owner, Call) else owner if isinstance(owner, Class) else None
        member = own.member(name) if own else None
        if isinstance(member, Function) and isinstance(owner, Call):
            return Function(member.node, member.scope, member.defaults, member.options, owner)
        if member is not None:
            return member
        if name == "run_config" and self.config is not None:
            return Table(self.config)
        if isinstance(owner, Call) and owner.name == "super" and isinstance(owner.owner, Call) and owner.owner.own:
            for base in owner.owner.own.bases:
                inherited = base.member(name) if isinstance(base, Class) else None
                if isinstance(inherited, Function):
                    return Function(inherited.node, inherited.scope, inherited.defaults, inherited.options, owner.owner)
        return Method(owner, name, node)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        owner, key = plain(self.value(node.value, scope)), plain(self.value(node.slice, scope))
        return self.item(owner, key, node)

    def item(self, owner: Value, key: Value, node: ast.AST) -> Value:
        if isinstance(owner, Method):
            owner = Unresolved(node)
        if isinstance(owner, Table) and isinstance(key, str) and key in owner:
            return owner[key]
        if (
            isinstance(owner, (Items, tuple))
            and isinstance(key, int)
            and -len(owner) <= key < len(owner)
            and (not isinstance(owner, Items) or owner.whole)
        ):
            return owner[key]
        if isinstance(owner, Name) and owner.dotted.endswith("environ"):
            return Unresolved(node)
        if isinstance(owner, Call) and isinstance(key, int) and owner.own is None:
            return owner.parts.setdefault(key, Part(owner, key, born=owner.born))
        return Unresolved(node, key if isinstance(key, str) else None)

    def _list(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Value:
        out = Items()
        out.born = self.stack
        for part in node.elts:
            if isinstance(part, ast.Starred):
                inner = plain(self.value(part.value, scope))
                out.extend(inner if isinstance(inner, (Items, tuple)) else ())
                out.whole = out.whole and (isinstance(inner, tuple) or (isinstance(inner, Items) and inner.whole))
            else:
                out.append(self.value(part, scope))
        return out

    _tuple = _set = _list

    def _dict(self, node: ast.Dict, scope: Scope) -> Value:
        out = Table()
        out.born = self.stack
        for key, value in zip(node.keys, node.values, strict=True):
            held = self.value(value, scope)
            name = plain(self.value(key, scope)) if key else None
            if key is None and isinstance(held, Table):
                out.update(held)
                out.whole = out.whole and held.whole
            elif isinstance(name, str):
                out[name] = held
            else:
                out.whole = False
        return out

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Value:
        inner = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            decided = values.truth(inner)
            return (
                Unresolved(node)
                if decided is None
                else Assumed(not decided, values.notes(inner))
                if values.notes(inner)
                else not decided
            )
        change: Plain = (
            operator.neg
            if isinstance(node.op, ast.USub)
            else operator.pos
            if isinstance(node.op, ast.UAdd)
            else operator.invert
        )
        return lift(node, change, inner)

    def _binop(self, node: ast.BinOp, scope: Scope) -> Value:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(left, Items) and isinstance(right, Items) and isinstance(node.op, ast.Add):
            out = Items([*left, *right])
            out.born, out.whole = self.stack, left.whole and right.whole
            return out
        if isinstance(left, Table) and isinstance(right, Table) and isinstance(node.op, ast.BitOr):
            return Table({**left, **right})
        if isinstance(left, str) or isinstance(right, str):
            return lift(node, lambda a, b: a + b if len(a) + len(b) < 10_000 else None, left, right)
        return lift(node, _power if isinstance(node.op, ast.Pow) else _BINARY.get(type(node.op), _power), left, right)

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Value:
        found: Value = None
        said: tuple[str, ...] = ()
        stop = isinstance(node.op, ast.Or)
        for index, part in enumerate(node.values):
            found = self.value(part, scope)
            said += values.notes(found)
            decided = values.truth(found)
            if decided is stop or index == len(node.values) - 1:
                break
            if decided is None:
                for rest in node.values[index + 1 :]:
                    self.value(rest, scope)
                return Unresolved(node)
        return Assumed(plain(found), said) if said else found

    def _compare(self, node: ast.Compare, scope: Scope) -> Value:
        left, right = self.value(node.left, scope), self.value(node.comparators[0], scope)
        kind = type(node.ops[0])
        if len(node.ops) > 1:
            return Unresolved(node)
        if kind in (ast.Is, ast.IsNot) and (left is None or right is None):
            other = plain(right if left is None else left)
            if isinstance(other, (Call, Part, Function, Class, Items, Table, Parser)):
                certain = not isinstance(other, Part)
                return kind is ast.IsNot if certain else Unresolved(node)
        if kind in (ast.In, ast.NotIn):
            inner = plain(right)
            known = isinstance(inner, (Items, Table)) and inner.whole and values.is_plain(plain(left))
            if known and isinstance(inner, (Items, Table)) and all(values.is_plain(plain(v)) for v in inner):
                inside = any(plain(left) == plain(v) for v in inner)
                return lift(node, lambda v: inside == (kind is ast.In), left)
            return Unresolved(node)
        return lift(node, _COMPARE[kind], left, right) if kind in _COMPARE else Unresolved(node)

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Value:
        test = self.value(node.test, scope)
        decided = values.truth(test)
        if decided is not None:
            found = self.value(node.body if decided else node.orelse, scope)
            said = values.notes(test)
            return Assumed(found, said) if said and values.is_plain(plain(found)) else found
        before = self.stack
        self.stack = (*before, ("branch", f"`{ast.unparse(node.test)}` (line {node.lineno})"))
        found = either(self.value(node.body, scope), self.value(node.orelse, scope))
        self.stack = before
        return found

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Value:
        found = self.value(node.value, scope)
        scope.local[node.target.id] = found
        return found

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Value:
        return Function(node, scope, self.defaults(node.args, scope))

    def _await(self, node: ast.Await, scope: Scope) -> Value:
        return self.value(node.value, scope)

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Value:
        parts = [self.value(p.value if isinstance(p, ast.FormattedValue) else p, scope) for p in node.values]
        if any(isinstance(p, ast.FormattedValue) and (p.format_spec or p.conversion != -1) for p in node.values):
            return Unresolved(node)
        return lift(node, lambda *texts: "".join(map(str, texts)), *parts)

    def _listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Value:
        first = node.generators[0]
        known = self.listed(self.value(first.iter, scope))
        inner = Scope(scope.path, scope, scope.holds)
        out = Items()
        out.born = self.stack
        if known is not None and len(node.generators) == 1 and isinstance(first.target, ast.Name) and len(known) <= 64:
            for each in known:
                inner.local[first.target.id] = each
                kept = [values.truth(self.value(test, inner)) for test in first.ifs]
                if False in kept:
                    continue
                out.whole = out.whole and None not in kept
                out.append(self.value(node.elt, inner))
            return out
        before = self.stack
        self.stack = (*before, ("loop", f"the loop at line {node.lineno}"))
        for name in (n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)):
            inner.local[name] = Unresolved(node)
        self.value(node.elt, inner)
        self.stack = before
        return Unresolved(node)

    _setcomp = _generatorexp = _listcomp

    def defaults(self, arguments: ast.arguments, scope: Scope) -> dict[str, Value]:
        places = [*arguments.posonlyargs, *arguments.args]
        named = zip(places[len(places) - len(arguments.defaults) :], arguments.defaults, strict=True)
        only = ((a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None)
        return {a.arg: self.value(d, scope) for a, d in (*named, *only)}

    def listed(self, value: Value) -> list[Value] | None:
        """The elements of what is looped over, where all of them are known."""
        inner = plain(value)
        if isinstance(inner, Table):
            return list(inner) if inner.whole else None
        return list(inner) if isinstance(inner, tuple) or (isinstance(inner, Items) and inner.whole) else None

    # -- calls ----------------------------------------------------------------------------------------------------------
    def _call(self, node: ast.Call, scope: Scope) -> Value:
        args: list[Value] = []
        keywords: dict[str, Value] = {}
        called = self.value(node.func, scope)
        for part in node.args:
            inner = self.value(part.value if isinstance(part, ast.Starred) else part, scope)
            known = self.listed(inner) if isinstance(part, ast.Starred) else [inner]
            args += known if known is not None else [Unresolved(part)]
            keywords |= {"**": Unresolved(part)} if known is None else {}
        for keyword in node.keywords:
            inner = self.value(keyword.value, scope)
            if keyword.arg:
                keywords[keyword.arg] = inner
            else:
                held = plain(inner)
                keywords |= held if isinstance(held, Table) else {}
                keywords |= {} if isinstance(held, Table) and held.whole else {"**": Unresolved(keyword.value)}
        return self.call(called, tuple(args), keywords, node, scope)

    def call(self, called: Value, args: tuple[Value, ...], keywords: dict[str, Value], node: ast.expr, scope: Scope) -> Value:
        """The result of a call."""
        called = plain(called)
        if isinstance(called, Choice):
            before, results = self.stack, []
            for each in called.values:
                self.stack = (*before, ("branch", f"which of several is called at line {node.lineno}"))
                results.append(self.call(each, args, keywords, node, scope))
            self.stack = before
            return Choice(tuple(results))
        if isinstance(called, Function):
            return self.enter(called, args, keywords, node)
        if isinstance(called, Class):
            return self.make(called, args, keywords, node, scope)
        if isinstance(called, Name):
            return self._imported(called.dotted, args, keywords, node, scope)
        if isinstance(called, Method):
            found = self._method(called, args, keywords, node)
            if found is not NotImplemented:
                return found
        name, dotted, owner = "?", "?", called
        if isinstance(called, Method):
            name, owner = called.name, called.owner
            dotted = ast.unparse(called.node)
        elif isinstance(node, ast.Call):
            dotted = ast.unparse(node.func)
            name = "()" if isinstance(called, (Call, Part)) else dotted.rsplit(".", 1)[-1]
        return self.record(Call(name, dotted, args, keywords, owner=owner), node, scope)

    def record(self, call: Call, node: ast.expr, scope: Scope) -> Call:
        call.line, call.path, call.stack, call.born = node.lineno, scope.path, self.stack, self.stack
        call.reached, call.function = self.reached, scope.holds
        self.calls.append(call)
        for value in (*call.args, *call.keywords.values()):
            self.escape(value)
        return call

    def escape(self, value: Value) -> None:
        """Somebody else gets it: a function may be called from outside."""
        for each in values.candidates(plain(value)):
            if isinstance(each, Function):
                self.waiting.append(each)
            elif isinstance(each, Items):
                for inner in each:
                    self.escape(inner)

    def _imported(
        self, dotted: str, args: tuple[Value, ...], keywords: dict[str, Value], node: ast.expr, scope: Scope
    ) -> Value:
        name = dotted.rsplit(".", 1)[-1]
        if dotted in _PURE and not keywords and args:
            inner = [a for v in args for a in (self.listed(v) or [v])] if dotted in ("max", "min") else list(args)
            return lift(node, _PURE[dotted], *inner)
        if dotted == "len" and len(args) == 1 and (known := self.listed(args[0])) is not None:
            return len(known)
        if dotted == "range" and 1 <= len(args) <= 3:
            ends = [plain(a) for a in args]
            whole = [e for e in ends if isinstance(e, int)]
            if len(whole) == len(ends) and (len(whole) < 3 or whole[2]):
                self.lengths.append(len(range(*whole)))
            if len(whole) == len(ends) and (len(whole) < 3 or whole[2]) and self.lengths[-1] <= 16:
                return tuple(Assumed(i, said) if (said := values.notes(args[-1])) else i for i in range(*whole))
        if (
            dotted in ("list", "tuple", "sorted", "reversed", "enumerate")
            and args
            and (known := self.listed(args[0])) is not None
        ):
            return (
                tuple(enumerate(known))
                if dotted == "enumerate"
                else tuple(reversed(known))
                if dotted == "reversed"
                else Items(known)
            )
        if name in _TABLES and all(isinstance(plain(a), Table) for a in args) and "**" not in keywords:
            out = Table({k: v for a in args if isinstance(held := plain(a), Table) for k, v in held.items()} | keywords)
            out.born = self.stack
            out.whole = all(held.whole for a in args if isinstance(held := plain(a), Table))
            return out
        if dotted.endswith("OmegaConf.create") and len(args) == 1 and isinstance(plain(args[0]), Table):
            return plain(args[0])
        if name == "ArgumentParser":
            parser = Parser()
            parents = self.listed(keywords.get("parents", ())) or []
            for parent in parents:
                parser.options.update(parent.options if isinstance(parent, Parser) else {})
            return parser
        if name.startswith("DEFINE_") and args and isinstance(args[0], str):
            default = keywords.get("default", args[1] if len(args) > 1 else None)
            self.flags[args[0]] = self.assumed(args[0], default, f"--{args[0]}", node)
            self.options[args[0]] = self.flags[args[0]]
            return Table({"value": self.flags[args[0]], "default": self.flags[args[0]]})
        if dotted in ("os.environ.get", "os.getenv", "environ.get", "getenv") and args and isinstance(args[0], str):
            default = args[1] if len(args) > 1 else keywords.get("default")
            return Unresolved(node) if default is None else self.assumed(args[0], default, f"the variable {args[0]}", node)
        if dotted == "super":
            return Call("super", "super", owner=home.local["self"] if (home := scope.home("self")) else None)
        if dotted in ("setattr", "builtins.setattr") and len(args) == 3 and isinstance(args[1], str):
            self.set_attribute(args[0], args[1], args[2], node)
            return None
        if dotted == "getattr" and len(args) >= 2 and isinstance(args[1], str):
            return self.attribute(args[0], args[1], node)
        if dotted in ("functools.partial", "partial") and args:
            return self.record(Call("partial", dotted, args, keywords, owner=args[0]), node, scope)
        return self.record(Call(name, dotted, args, keywords), node, scope)

    def assumed(self, name: str, default: Value, said: str, node: ast.AST) -> Value:
        """A default that somebody may change from outside, or what the user says it is."""
        if (key := values.normal(name)) in self.given:
            self.used.add(key)
            return self.given[key]
        if isinstance(plain(default), Unresolved):
            return default
        return Assumed(default, (f"{said} = {plain(default)!r}, its default (line {getattr(node, 'lineno', 0)})",))

    def _method(self, called: Method, args: tuple[Value, ...], keywords: dict[str, Value], node: ast.expr) -> Value:
        owner, name = called.owner, called.name
        if isinstance(owner, Parser):
            return self._parser(owner, name, args, keywords, node)
        if name == "get" and args and isinstance(key := plain(args[0]), str):
            default = args[1] if len(args) > 1 else keywords.get("default")
            if isinstance(owner, Table):
                return owner.get(key, default if owner.whole else Unresolved(node, key))
            if not isinstance(owner, (Call, Part)):
                return Unresolved(node, key)
        if isinstance(owner, Table):
            if name in ("items", "keys", "values") and owner.whole:
                return tuple(
                    {"items": (Items((k, v)) for k, v in owner.items()), "keys": owner.keys(), "values": owner.values()}[name]
                )
            if name in ("update", "setdefault", "pop", "clear", "__setitem__"):
                first = plain(args[0]) if args else None
                more = {**(first if isinstance(first, Table) else {}), **keywords}
                known = name == "update" and (not args or isinstance(plain(args[0]), Table)) and "**" not in keywords
                for key, value in more.items() if known else ():
                    self.set_item(owner, key, value)
                if not known:
                    owner.whole = False
                    for key in owner:
                        owner[key] = Unresolved(node, key)
                return None
            if name in ("copy", "to_dict", "copy_and_resolve_references"):
                return Table(owner)
        if isinstance(owner, Items):
            if name in ("append", "insert") and args:
                weak = self.stack != owner.born
                owner.append(either(None, args[-1]) if weak else args[-1])
                owner.whole = (
                    owner.whole and name == "append" and not any(kind == "loop" for kind, _ in self.stack[len(owner.born) :])
                )
                return None
            if name == "extend" and args:
                known_items = self.listed(args[0])
                owner.extend(known_items or ())
                owner.whole = owner.whole and known_items is not None and self.stack == owner.born
                return None
            if name in ("pop", "remove", "clear", "reverse", "sort"):
                owner[:] = [either(None, v) for v in owner]
                owner.whole = False
                return Unresolved(node)
        if (
            values.is_plain(plain(owner))
            and isinstance(plain(owner), str)
            and name in ("lower", "upper", "strip", "format", "split")
        ):
            return (
                lift(node, lambda text: getattr(text, name)(), owner)
                if name in ("lower", "upper", "strip") and not args
                else Unresolved(node)
            )
        return NotImplemented

    def _parser(self, parser: Parser, name: str, args: tuple[Value, ...], keywords: dict[str, Value], node: ast.expr) -> Value:
        if name in ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"):
            return parser
        if name == "set_defaults":
            for key, value in keywords.items():
                self.options[key] = self.assumed(key, value, f"--{key}", node)
                self.set_item(parser.options, key, self.options[key])
            return None
        if name == "add_argument":
            flags = [plain(a) for a in args if isinstance(plain(a), str)]
            long = [f for f in flags if isinstance(f, str) and f.startswith("--")] or [f for f in flags if isinstance(f, str)]
            named = plain(keywords.get("dest")) or (long[0].lstrip("-").replace("-", "_") if long else None)
            if not isinstance(named, str) or "**" in keywords:
                return None
            action = plain(keywords.get("action"))
            default = keywords.get("default", {"store_true": False, "store_false": True}.get(str(action)))
            needed = truthy(keywords.get("required")) or (bool(long) and not long[0].startswith("-"))
            kind = keywords.get("type")
            if isinstance(kind, Name) and kind.dotted in _PURE and isinstance(plain(default), str):
                default = lift(node, _PURE[kind.dotted], default)
            default = Unresolved(f"--{named}, which has no default") if needed and default is None else default
            self.options[named] = self.assumed(named, default, f"--{named.replace('_', '-')}", node)
            self.set_item(parser.options, named, self.options[named])
            return None
        if name in ("parse_args", "parse_known_args"):
            parsed = Table(parser.options)
            parsed.born = self.stack
            return parsed if name == "parse_args" else Items((parsed, Items()))
        return Unresolved(node)

    # -- changes --------------------------------------------------------------------------------------------------------
    def weak(self, before: Value, value: Value, missing: bool, born: Stack, node: str | ast.AST) -> Value:
        """What a place holds after an assignment that may not be made, or is made again and again."""
        if self.stack[: len(born)] == born and len(self.stack) == len(born):
            return value
        if missing or values.same(before, value):
            return value
        if self.again and any(kind == "loop" for kind, _ in self.stack[len(born) :]) and not isinstance(value, (Call, Part)):
            return Unresolved(f"{node if isinstance(node, str) else ast.unparse(node)}, which changes in a loop")
        return either(before, value)

    def set_item(self, owner: Table, key: str, value: Value) -> None:
        owner[key] = self.weak(owner.get(key), value, key not in owner, owner.born, key)

    def set_attribute(self, owner: Value, name: str, value: Value, node: ast.AST) -> None:
        for each in values.candidates(plain(owner)):
            if isinstance(each, Table):
                self.set_item(each, name, value)
            elif isinstance(each, Parser):
                self.set_item(each.options, name, value)
            elif isinstance(each, (Call, Part)):
                missing = name not in each.attributes
                before = Unresolved(f"{name} before line {getattr(node, 'lineno', 0)}") if missing else each.attributes[name]
                each.attributes[name] = self.weak(before, value, False, each.born, name)
                each.set_at[name] = getattr(node, "lineno", 0)
            elif isinstance(each, Scope):
                each.local[name] = self.weak(each.local.get(name), value, name not in each.local, each.born, name)
            elif isinstance(each, Class):
                held = each.scope.local
                held[name] = self.weak(held.get(name), value, name not in held, each.scope.born, name)


def truthy(value: Value) -> bool:
    return values.truth(value) is True
