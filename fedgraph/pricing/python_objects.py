"""The abstract interpreter's objects: attributes, items and calls of them."""

import ast
import functools
import math
from collections.abc import Callable, Mapping

from fedgraph.pricing import python_values as py
from fedgraph.pricing.python_state import PURE_FUNCTIONS, PlainFunction, PythonAttributesView, PythonState
from fedgraph.pricing.python_values import CallValue, FunctionValue, TableValue, UnresolvedValue, Value, python_plain

_LOOKS = ("print", "repr", "type", "id", "isinstance", "hasattr", "callable", "logging.info", "logger.info", "log")
_TEXT: Mapping[str, PlainFunction] = {"lower": str.lower, "upper": str.upper, "strip": str.strip}
_CONSTANTS = {"math.pi": math.pi, "math.e": math.e, "math.inf": math.inf, "numpy.inf": math.inf, "numpy.pi": math.pi}
_TABLES = ("dict", "SimpleNamespace", "Namespace", "ConfigDict", "EasyDict", "edict", "OrderedDict", "AttrDict", "Munch",
           "DictConfig")  # fmt: skip
_LISTED: Mapping[str, Callable[[list[Value]], Value]] = {
    "list": py.ItemsValue, "tuple": py.ItemsValue, "reversed": lambda known: tuple(reversed(known)),
    "enumerate": lambda known: tuple(enumerate(known)),
}  # fmt: skip
_OPENS = ("yaml.safe_load", "yaml.load", "yaml.full_load", "json.load", "json.loads", "tomllib.load", "OmegaConf.load")
_STARTS: Mapping[str, tuple[str, int, int]] = {  # what starts a function elsewhere: (its parameter, its place, that of args)
    "spawn": ("fn", 0, 1), "start_processes": ("fn", 0, 1), "notebook_launcher": ("function", 0, 1),
    "Process": ("target", 1, 3), "Thread": ("target", 1, 3),
}  # fmt: skip
_PATCHES = ("mock.patch", "patch.object", "monkeypatch.setattr")
_REPEATS = ("map", "starmap", "imap", "reduce", "filter", "scan", "fori_loop", "while_loop", "submit", "apply_async", "partial")
_HELD = ("get", "items", "keys", "values", "update", "pop", "copy")
_ENVIRONMENT = ("os.environ.get", "os.getenv", "environ.get", "getenv")


class PythonObjects(PythonState):
    """The interpreter with its objects."""

    def enter(self, function: FunctionValue, args: py.Args, keywords: py.Keywords, node: ast.AST) -> Value:
        raise NotImplementedError

    def execute(self, text: Value, node: ast.expr, scope: py.ScopeValue) -> Value:
        raise NotImplementedError

    def make(self, made: py.ClassValue, args: py.Args, keywords: py.Keywords, node: ast.expr, scope: py.ScopeValue) -> Value:
        raise NotImplementedError

    def attribute(self, owner: Value, name: str, node: ast.AST) -> Value:
        match python_plain(owner):
            case py.PythonChoice(values=several):
                found = [self.attribute(v, name, node) for v in several]
                return found[0] if all(py.same_value(found[0], f) for f in found[1:]) else py.PythonChoice(tuple(found))
            case py.PythonName(dotted=dotted) if dotted.rsplit(".", 1)[-1] == "FLAGS":
                method = py.MethodValue(self.flags, name, node) if name == "set_default" else UnresolvedValue(node)
                return self.flags.get(name, method)
            case py.PythonName(dotted=dotted):
                return _CONSTANTS.get(f"{dotted}.{name}", py.PythonName(f"{dotted}.{name}"))
            case py.ScopeValue(local=local):
                return local.get(name, UnresolvedValue(node))
            case inner if name == "__dict__":
                return PythonAttributesView(inner)
            case TableValue() as held if name in held or name not in _HELD:
                return held[name] if name in held else py.MethodValue(held, name, node)
            case (CallValue() | py.PartValue()) as held if name in held.attributes:
                return held.attributes[name]
            case inner:
                return self._member(inner, name, node)

    def _member(self, owner: Value, name: str, node: ast.AST) -> Value:
        """A method or an attribute of a class of the program, or what a call of something else has."""
        own = owner.own if isinstance(owner, CallValue) else owner if isinstance(owner, py.ClassValue) else None
        if (member := own.member(name) if own else None) is not None:
            return member.on(owner) if isinstance(member, FunctionValue) and isinstance(owner, CallValue) else member
        if name == "run_config" and self.config is not None:
            return TableValue(self.config)
        match owner:
            case CallValue(name="super", owner=CallValue(own=py.ClassValue(bases=bases)) as made):
                every = (base.member(name) for base in bases if isinstance(base, py.ClassValue))
                if (inherited := next((each for each in every if isinstance(each, FunctionValue)), None)) is not None:
                    return inherited.on(made)
        return py.MethodValue(owner, name, node)

    def item(self, owner: Value, key: Value, node: ast.AST) -> Value:
        if isinstance(owner, TableValue) and isinstance(key, str) and key in owner:
            return owner[key]
        if isinstance(owner, py.PythonName) and owner.dotted == "sys.modules" and key == "__main__":
            return self.main
        known = py.value_elements(owner) if isinstance(owner, (py.ItemsValue, tuple)) else None
        if known is not None and isinstance(key, int) and -len(known) <= key < len(known):
            return known[key]
        if isinstance(owner, CallValue) and isinstance(key, int) and owner.own is None:
            return owner.part(key)
        outside = isinstance(owner, py.MethodValue) or (isinstance(owner, py.PythonName) and owner.dotted.endswith("environ"))
        return UnresolvedValue(node, key if not outside and isinstance(key, str) else None)

    def call(self, called: Value, args: py.Args, keywords: py.Keywords, node: ast.expr, scope: py.ScopeValue) -> Value:
        """The result of a call."""
        name, dotted, owner = "?", "?", python_plain(called)
        match owner:
            case py.PythonChoice(values=several):
                with self.under("branch", f"which of several is called at line {node.lineno}"):
                    return py.PythonChoice(tuple(self.call(each, args, keywords, node, scope) for each in several))
            case FunctionValue():
                return self.enter(owner, args, keywords, node)
            case py.ClassValue():
                return self.make(owner, args, keywords, node, scope)
            case py.PythonName(dotted=imported):
                return self._imported(imported, args, keywords, node, scope)
            case py.MethodValue(owner=inner, name=name, node=asked):
                found = self._method(inner, name, args, keywords, node)
                if found is not NotImplemented:
                    return found
                owner, dotted = inner, ast.unparse(asked)
            case _ if isinstance(node, ast.Call):
                dotted = ast.unparse(node.func)
                name = "()" if isinstance(owner, (CallValue, py.PartValue)) else dotted.rsplit(".", 1)[-1]
        return self.record(CallValue(name, dotted, args, keywords, owner=owner), node, scope)

    def record(self, call: CallValue, node: ast.expr, scope: py.ScopeValue) -> CallValue:
        call.line, call.path, call.stack, call.born, call.times = node.lineno, scope.path, self.stack, self.stack, self.times
        call.reached, call.function = self.reached, scope.holds
        self.calls.append(call)
        if call.dotted.endswith(_PATCHES) and call.args:
            parts = [v.dotted if isinstance(v, py.PythonName) else str(v) for v in map(python_plain, call.args[:2])]
            self.replaced.setdefault(".".join(parts), call.line)
        if call.name in _STARTS:
            self._start(call, node)
        for value in (*call.args, *call.keywords.values()) if call.dotted not in _LOOKS else ():
            self.repeated |= {value.node} if call.name in _REPEATS and isinstance(value, FunctionValue) else set()
            self.escape(value)
        return call

    def _start(self, call: CallValue, node: ast.expr) -> None:
        """A function that runs in processes of its own, with the arguments that it gets there."""
        named, place, third = _STARTS[call.name]
        function, given = python_plain(call.get(named, place)), py.value_elements(call.get("args", third) or ())
        if isinstance(function, FunctionValue):
            rank = (UnresolvedValue("the rank of a process"),) if named == "fn" else ()
            self.enter(function, (*rank, *(given or ())), {} if given is not None else {"**": UnresolvedValue(node)}, node)

    def escape(self, value: Value) -> None:
        """Somebody else gets it: a function may be called from outside."""
        for each in py.value_candidates(python_plain(value)):
            if isinstance(each, FunctionValue):
                self.waiting.append(each)
            for inner in each if isinstance(each, py.ItemsValue) else ():
                self.escape(inner)

    def _imported(self, dotted: str, args: py.Args, keywords: py.Keywords, node: ast.expr, scope: py.ScopeValue) -> Value:
        made = CallValue(dotted.rsplit(".", 1)[-1], dotted, args, keywords)
        name, first, default = made.name, python_plain(args[0]) if args else None, made.get("default", 1)
        known = py.value_elements(first) if args else None
        if dotted in PURE_FUNCTIONS and not keywords and args:
            inner = [a for v in args for a in (py.value_elements(v) or [v])] if dotted in ("max", "min") else list(args)
            return py.lift_over_values(node, PURE_FUNCTIONS[dotted], *inner)
        if dotted == "len" and len(args) == 1 and known is not None:
            return len(known)
        if dotted == "range" and (steps := self._range(args)) is not None:
            return steps
        if dotted in _LISTED and known is not None:
            return _LISTED[dotted](known)
        if dotted == "sorted" and known:
            numbers = [v for v in known if isinstance(v, (int, float))]
            plainly = not keywords and len(numbers) == len(known)
            return py.ItemsValue(sorted(numbers) if plainly else [functools.reduce(py.join_values, known)] * len(known))
        tables = [each for a in args if isinstance(each := python_plain(a), TableValue)]
        if name in _TABLES and "**" not in keywords and len(tables) == len(args):
            held = {k: v for each in tables for k, v in each.items()} | keywords
            return TableValue(held, self.stack, all(each.whole for each in tables))
        if dotted.endswith("OmegaConf.create") and len(args) == 1 and isinstance(first, TableValue):
            return first
        if dotted.endswith(_OPENS) and args and (loaded := self.loaded(args[0])) is not NotImplemented:
            return loaded
        if name == "ArgumentParser":
            parser = py.ParserValue()
            for parent in py.value_elements(keywords.get("parents", ())) or []:
                parser.options.update(parent.options if isinstance(parent, py.ParserValue) else {})
            return parser
        if name.startswith("DEFINE_") and args and isinstance(args[0], str):
            self.options[args[0]] = self.flags[args[0]] = self.assumed(args[0], default, f"--{args[0]}", node)
            return TableValue({"value": self.flags[args[0]], "default": self.flags[args[0]]})
        if dotted in _ENVIRONMENT and args and isinstance(key := args[0], str):
            if default is None or key in self.environment:
                return self.environment.get(key, UnresolvedValue(node))
            return self.assumed(key, default, f"the variable {key}", node)
        if dotted == "super":
            return CallValue("super", "super", owner=home.local["self"] if (home := scope.home("self")) else None)
        if dotted in ("setattr", "builtins.setattr", "object.__setattr__") and len(args) == 3:
            self.set_attribute(args[0], args[1] if isinstance(args[1], str) else "?", args[2], node)
            return None
        if dotted in ("vars", "locals", "globals"):
            return PythonAttributesView(first if args else scope.module if dotted == "globals" else scope)
        if dotted == "exec" and args:
            return self.execute(first, node, scope)
        if dotted == "getattr" and len(args) >= 2 and isinstance(args[1], str):
            return self.attribute(args[0], args[1], node)
        if dotted in ("functools.partial", "partial") and args:
            if isinstance(first, FunctionValue):
                return first.partial(args[1:], keywords)
            made.owner = args[0]
        return self.record(made, node, scope)

    def _range(self, args: py.Args) -> tuple[Value, ...] | None:
        """The numbers of a short range; the length of a longer one is kept."""
        whole = [e for a in args if isinstance(e := python_plain(a), int)]
        if not 1 <= len(whole) <= 3 or len(whole) != len(args) or whole[2:] == [0]:
            return None
        length, said = len(range(*whole)), py.python_value_notes(py.PythonChoice(args))
        self.lengths.append(py.assume_value(length, said))
        return tuple(py.assume_value(i, said) for i in range(*whole)) if length <= 16 else None

    def _method(self, owner: Value, name: str, args: py.Args, keywords: py.Keywords, node: ast.expr) -> Value:
        """A method of a parser, a table, a list or a text; ``NotImplemented`` for others."""
        if isinstance(owner, py.ParserValue):
            return self.parser(owner, name, args, keywords, node)
        if isinstance(owner, py.PythonName) and owner.dotted == "sys.argv":
            self.argv = True
        if owner is self.flags and name == "set_default" and len(args) == 2 and isinstance(key := python_plain(args[0]), str):
            self.set_name(self.flags, key, args[1], ())
            return None
        if name == "__setattr__" and len(args) == 2:
            self.set_attribute(owner, args[0] if isinstance(args[0], str) else "?", args[1], node)
            return None
        if isinstance(owner, PythonAttributesView) and name == "update":
            given = TableValue(keywords) if not args else python_plain(args[0])
            known = given if isinstance(given, TableValue) and given.whole else {"?": UnresolvedValue(node)}
            for key, value in known.items():
                self.set_attribute(owner.owner, key, value, node)
            return None
        if name == "get" and args and isinstance(key := python_plain(args[0]), str):
            if isinstance(owner, TableValue):
                default = args[1] if len(args) > 1 else keywords.get("default")
                return owner.get(key, default if owner.whole else UnresolvedValue(node, key))
            return NotImplemented if isinstance(owner, (CallValue, py.PartValue)) else UnresolvedValue(node, key)
        if isinstance(owner, TableValue):
            return self._table_method(owner, name, args, keywords, node)
        if isinstance(owner, py.ItemsValue):
            return self._list_method(owner, name, args, node)
        if isinstance(python_plain(owner), str) and name in ("lower", "upper", "strip", "format", "split"):
            return py.lift_over_values(node, _TEXT[name], owner) if name in _TEXT and not args else UnresolvedValue(node)
        return NotImplemented

    def _table_method(self, owner: TableValue, name: str, args: py.Args, keywords: py.Keywords, node: ast.expr) -> Value:
        first = python_plain(args[0]) if args else None
        if name in ("items", "keys", "values") and owner.whole:
            pairs: list[Value] = [py.ItemsValue((k, v)) for k, v in owner.items()]
            return tuple(pairs if name == "items" else owner.keys() if name == "keys" else owner.values())
        if name in ("pop", "setdefault") and isinstance(first, str) and owner.whole and self.stack == owner.born:
            found = owner.get(first, args[1] if len(args) > 1 else keywords.get("default"))
            owner.pop(first, None)
            owner |= {first: found} if name == "setdefault" else {}
            return found
        if name == "update" and (not args or isinstance(first, TableValue)) and "**" not in keywords:
            for key, value in {**(first if isinstance(first, TableValue) else {}), **keywords}.items():
                self.set_name(owner, key, value, owner.born)
            return None
        if name in ("update", "setdefault", "pop", "clear", "__setitem__"):
            owner.whole = False
            owner |= {key: UnresolvedValue(node, key) for key in owner}
            return None if name in ("update", "clear") else UnresolvedValue(node)
        return TableValue(owner) if name in ("copy", "to_dict", "copy_and_resolve_references") else NotImplemented

    def _list_method(self, owner: py.ItemsValue, name: str, args: py.Args, node: ast.expr) -> Value:
        if name in ("append", "insert") and args:
            owner.append(py.join_values(None, args[-1]) if self.stack != owner.born else args[-1])
            owner.whole = owner.whole and name == "append" and not self.looped_since(owner.born)
        elif name == "extend" and args:
            more = py.value_elements(args[0])
            owner.extend(more or ())
            owner.whole = owner.whole and more is not None and self.stack == owner.born
        elif name in ("pop", "remove", "clear", "reverse", "sort"):
            owner[:] = [py.join_values(None, v) for v in owner]
            owner.whole = False
            return UnresolvedValue(node)
        else:
            return NotImplemented
        return None
