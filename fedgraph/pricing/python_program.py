"""Python files followed as a program, and never run: an abstract interpreter over ``ast``.

Assignments are made in order, branches that cannot be decided are both taken and joined (``PythonChoice``), short loops over
known values are unrolled, other loops are gone through until nothing changes any more, functions and classes of the program are
entered, and its own modules are followed as far as they stand below the same folder. What a command line or the environment may
change keeps its default, with a note (``AssumedValue``). A function that nothing calls is looked at last, and its calls say so.
"""

import ast
import functools
from collections.abc import Callable, Mapping
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import python_values as py
from fedgraph.pricing.python_statements import MAYBE, NEXT, PythonStatements
from fedgraph.pricing.python_values import ClassValue, FunctionValue, ScopeValue, UnresolvedValue, Value

_MOST_FILES = 50
DEEPEST = 40


class PythonProgram(PythonStatements):
    """A program that is followed.

    Args:
        path: The first file.
        text: Its text.
        read: Gives the text of another of its files.
        given: Answers to options of its command line.
        config: The run configuration of a Flower app.
        root: The folder that its modules stand in; the file's own where None.
        more: Other files of the same program, followed after it.
        written: Files that a notebook writes, with their texts.

    Attributes:
        calls: Calls in the order in which they are made.
        names: Dotted names of what is imported.
        module: The names of the first file at its end.
        standalone: Whether the first file does something besides defining.
        results: What functions return that others call.
        options: Options of its command line.
        looped: The lengths of loops over ``range`` that are known.
        iterated: What loops go over.
        used: The answers that took an option's place.
        skipped: Assumptions that decided about a branch.

    Raises:
        PricingError: One line, where a file is not Python or too large to follow.
    """

    def __init__(
        self,
        path: Path,
        text: str,
        read: Callable[[Path], str],
        given: Mapping[str, Value] | None = None,
        *,
        config: Mapping[str, Value] | None = None,
        root: Path | None = None,
        more: tuple[Path, ...] = (),
        written: Mapping[Path, str] | None = None,
    ) -> None:
        self.written = written or {}
        super().__init__(root or path.parent, lambda p: self.written[p] if p in self.written else read(p), given or {})
        self.config = config
        self.modules: dict[Path, ScopeValue] = {}
        self.names: set[str] = set()
        self.entered: set[ast.AST] = set()
        self.active: list[ast.AST] = []
        self.objects: list[py.CallValue] = []
        self.results: dict[str, Value] = {}
        try:
            self.module, tree = self.followed(path, text)
            does = (ast.If, ast.For, ast.While, ast.With, ast.Try)
            called = [s for s in tree.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
            self.standalone = bool(called) or any(isinstance(s, does) for s in tree.body) or bool(self.written)
            for other in (*more, *self.written):
                self.imported(other)
            self.finish()
        except RecursionError:
            raise PricingError(f"{path}:1: nested too deeply to follow") from None

    # -- modules --------------------------------------------------------------------------------------------------------
    def followed(self, path: Path, text: str) -> tuple[ScopeValue, ast.Module]:
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            raise PricingError(f"{path}:{error.lineno or 1}: not Python: {error.msg}") from None
        except (ValueError, MemoryError) as error:
            raise PricingError(f"{path}:1: not Python: {error}") from None
        self.modules[path.resolve()] = scope = ScopeValue(path)
        self.main = self.main or scope
        self.block(tree.body, scope)
        return scope, tree

    def imported(self, path: Path) -> ScopeValue:
        """A module of the program, followed once."""
        if path.resolve() in self.modules:
            return self.modules[path.resolve()]
        if len(self.modules) >= _MOST_FILES:
            raise PricingError(f"{self.root}: a program of more than {_MOST_FILES} Python files; name the one with its privacy")
        before, self.stack = self.stack, ()
        found, _ = self.followed(path, self.read(path))
        self.stack = before
        return found

    def _file(self, name: str, level: int, scope: ScopeValue) -> Path | None:
        parts = [p for p in name.split(".") if p]
        above = scope.path.parent
        for _ in range(level - 1):
            above = above.parent
        places = (above,) if level else (scope.path.parent, self.root, self.root / "src")
        bases = [place.joinpath(*parts) for place in places]
        files = (
            p for base in bases for p in (base.with_suffix(".py") if parts else base / "__init__.py", base / "__init__.py")
        )
        return next((path for path in files if path in self.written or self.holds(path)), None)

    def imports(self, node: ast.Import | ast.ImportFrom, scope: ScopeValue) -> None:
        if isinstance(node, ast.ImportFrom):
            return self._imports_from(node, scope)
        for alias in node.names:
            self.names.add(alias.name)
            path, head = self._file(alias.name, 0, scope), alias.name.partition(".")[0]
            whole = bool(alias.asname) or head == alias.name
            found = self.imported(path) if path and whole else py.PythonName(alias.name if alias.asname else head)
            scope.local[alias.asname or head] = found
        return None

    def _imports_from(self, node: ast.ImportFrom, scope: ScopeValue) -> None:
        path = self._file(node.module or "", node.level, scope)
        home = self.imported(path) if path else None
        for alias in node.names:
            dotted = f"{node.module or ''}.{alias.name}".lstrip(".")
            self.names.add(dotted)
            inside = self._file(f"{node.module or ''}.{alias.name}", node.level, scope)
            found: Value = UnresolvedValue(dotted) if home else py.PythonName(dotted)
            if alias.name == "*":
                scope.local.update(home.local if home else {})
                continue
            if home and alias.name in home.local:
                found = home.local[alias.name]
            elif inside and inside.name != "__init__.py":
                found = self.imported(inside)
            scope.local[alias.asname or alias.name] = found

    # -- functions and classes ------------------------------------------------------------------------------------------
    def enter(self, function: FunctionValue, args: py.Args, keywords: py.Keywords, node: ast.AST) -> Value:
        if self.active.count(function.node) > 1 or len(self.active) > DEEPEST:
            return UnresolvedValue(node)
        self.entered.add(function.node)
        inner = ScopeValue(function.scope.path, function.scope, function.name, born=self.stack)
        self.bind(function, args, keywords, inner)
        times = self.times
        if function.node in self.active:
            self.times = UnresolvedValue(f"as often as {function.name} calls itself")
        self.active.append(function.node)
        try:
            if isinstance(function.node, ast.Lambda):
                found = self.value(function.node.body, inner)
                self.escape(found)
                return found
            flow = self.block(function.node.body, inner)
        finally:
            self.active.pop()
            self.times = times
        result = functools.reduce(py.join_values, [*inner.returned, *([None] if flow in (NEXT, MAYBE) else [])])
        generator = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(function.node))
        return UnresolvedValue(node) if generator else result

    def bind(self, function: FunctionValue, args: py.Args, keywords: py.Keywords, inner: ScopeValue) -> None:
        """Parameters by place and by name; defaults, options of a command line, else unresolved."""
        arguments = function.node.args
        places = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        given = (*function.first, *args)
        local = dict(zip(places, given, strict=False))
        named = {*places, *(a.arg for a in arguments.kwonlyargs)}
        local |= {k: v for k, v in keywords.items() if k in named}
        for name in sorted(named - set(local)):
            if "**" in keywords or (name not in function.defaults and name not in function.options):
                local[name] = UnresolvedValue(f"{name} of {function.name}")
            else:
                local[name] = function.options.get(name, function.defaults.get(name))
        if arguments.vararg:
            local[arguments.vararg.arg] = tuple(given[len(places) :])
        if arguments.kwarg:
            rest = {k: v for k, v in keywords.items() if k not in named and k != "**"}
            local[arguments.kwarg.arg] = py.TableValue(rest, self.stack, whole="**" not in keywords)
        inner.local = local

    def make(self, made: ClassValue, args: py.Args, keywords: py.Keywords, node: ast.expr, scope: ScopeValue) -> Value:
        call = py.CallValue(made.node.name, made.node.name, args, keywords, own=made)
        self.record(call, node, scope)
        self.objects.append(call)
        start = made.member("__init__")
        fields = [s.target.id for s in made.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
        if isinstance(start, FunctionValue):
            self.enter(start.on(call), args, keywords, node)
        elif fields:  # a data class, or a class of settings
            call.attributes |= dict(zip(fields, args, strict=False)) | {k: v for k, v in keywords.items() if k != "**"}
            if isinstance(after := made.member("__post_init__"), FunctionValue):
                self.enter(after.on(call), (), {}, node)
        return call

    # -- the end --------------------------------------------------------------------------------------------------------
    def finish(self) -> None:
        """What others call, then methods of objects that were made, then what nothing calls."""
        self._called_back()
        for made in list(self.objects):
            self._methods(made)
        self._called_back()
        self.reached = False
        for function in list(self.definitions):
            if function.node not in self.entered and not function.scope.holds.startswith("class "):
                self._unknown(function)
        for each in self.classes:
            self._methods(py.CallValue(each.node.name, each.node.name, own=each))
        self._called_back()

    def _called_back(self) -> None:
        while self.waiting:
            function = self.waiting.pop(0)
            if function.node not in self.entered:
                self._unknown(function)

    def _methods(self, made: py.CallValue) -> None:
        for name in made.own.methods() if made.own else ():
            function = made.own.member(name) if made.own else None
            if isinstance(function, FunctionValue) and function.node not in self.entered:
                self._unknown(function.on(made))

    def _unknown(self, function: FunctionValue) -> None:
        """A function that is called with what nobody knows; a default may hold."""
        self.stack = ()
        plain = {k: v for k, v in function.defaults.items() if py.is_plain_value(v)}
        said = {k: py.AssumedValue(v, (f"{k} = {v!r}, the default of {function.name}",)) for k, v in plain.items()}
        often = UnresolvedValue(f"as often as {function.name} is called") if function.node in self.repeated else 1
        self.times, before = often, self.times
        self.results[function.name] = self.enter(function.partial((), said), (), {}, function.node)
        self.times = before
