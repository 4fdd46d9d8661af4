"""The abstract interpreter's objects: attributes, items and calls of them, and what a program changes on them."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from fedgraph.pricing import python_values as values
from fedgraph.pricing.python_changes import PURE, Changes, Plain
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
    Table,
    Unresolved,
    Value,
    either,
    lift,
    plain,
)

_LOOKS = ("print", "repr", "type", "id", "isinstance", "hasattr", "callable", "logging.info", "logger.info", "log")
_TEXT: Mapping[str, Plain] = {"lower": str.lower, "upper": str.upper, "strip": str.strip}
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


class Calls(Changes):
    def enter(self, function: Function, args: tuple[Value, ...], keywords: Mapping[str, Value], node: ast.AST) -> Value:
        raise NotImplementedError

    def make(self, made: Class, args: tuple[Value, ...], keywords: Mapping[str, Value], node: ast.expr, scope: Scope) -> Value:
        raise NotImplementedError

    def listed(self, value: Value) -> list[Value] | None:
        """The elements of what is looped over, where all of them are known."""
        inner = plain(value)
        if isinstance(inner, Table):
            return list(inner) if inner.whole else None
        return list(inner) if isinstance(inner, tuple) or (isinstance(inner, Items) and inner.whole) else None

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
        for value in (*call.args, *call.keywords.values()) if call.dotted not in _LOOKS else ():
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
        if dotted in PURE and not keywords and args:
            inner = [a for v in args for a in (self.listed(v) or [v])] if dotted in ("max", "min") else list(args)
            return lift(node, PURE[dotted], *inner)
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

    def _method(self, called: Method, args: tuple[Value, ...], keywords: dict[str, Value], node: ast.expr) -> Value:
        owner, name = called.owner, called.name
        if isinstance(owner, Parser):
            return self.parser(owner, name, args, keywords, node)
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
            return lift(node, _TEXT[name], owner) if name in ("lower", "upper", "strip") and not args else Unresolved(node)
        return NotImplemented
