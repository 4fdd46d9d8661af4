"""Python files followed as a program, and never run: an abstract interpreter over ``ast``.

Assignments are made in order, branches that cannot be decided are both taken and joined (``Choice``), short loops over known
values are unrolled, other loops are gone through until nothing changes any more, functions and classes of the program are
entered, and its own modules are followed as far as they stand below the same folder. What a command line or the environment
may change keeps its default, with a note (``Assumed``). A function that nothing calls is looked at last, and its calls say so.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import python_values as values
from fedgraph.pricing.python_expressions import DEEPEST, Expressions
from fedgraph.pricing.python_values import (
    Assumed,
    Call,
    Choice,
    Class,
    Function,
    Items,
    Name,
    Part,
    Scope,
    Table,
    Unresolved,
    Value,
    either,
    plain,
)

MOST_FILES = 50
NEXT, LEFT, MAYBE, ABORTED = "next", "left", "maybe left", "aborted"
_EXITS = ("sys.exit", "exit", "quit", "os._exit", "os.abort")


@dataclass(frozen=True)
class Program:
    """calls: in the order in which they are made. imports: dotted names. module: the names of the first file at its end.
    standalone: whether the first file does something besides defining. results: what functions
    return that others call. options: of its command line. loops: the lengths of loops over ``range`` that are known. used: the
    answers that took an option's place. skipped: assumptions that decided about a branch."""

    calls: tuple[Call, ...]
    imports: frozenset[str]
    module: Scope
    modules: Mapping[Path, Scope]
    standalone: bool
    results: Mapping[str, Value]
    options: Mapping[str, Value]
    loops: tuple[int, ...]
    used: frozenset[str]
    skipped: tuple[str, ...]


def follow(
    path: Path,
    text: str,
    read: Callable[[Path], str],
    given: Mapping[str, Value] | None = None,
    config: Mapping[str, Value] | None = None,
    root: Path | None = None,
    more: tuple[Path, ...] = (),
) -> Program:
    """The program of a file.

    Args:
        read: the text of another of its files.
        given: answers to options of its command line.
        config: the run configuration of a Flower app.
        root: the folder that its modules stand in; the file's own where None.
        more: other files of the same program, followed after it.

    Raises:
        PricingError: one line, where a file is not Python or too large to follow.
    """
    try:
        run = _Run(root or path.parent, read, given or {}, config)
        module = run.module(path, text)
        standalone = run.standalone(module)
        for other in more:
            run.imported(other)
        run.finish()
    except RecursionError:
        raise PricingError(f"{path}:1: nested too deeply to follow") from None
    skipped = tuple(dict.fromkeys(run.skipped))
    return Program(
        tuple(run.calls),
        frozenset(run.names),
        module,
        run.modules,
        standalone,
        run.results,
        run.options,
        tuple(run.lengths),
        frozenset(run.used),
        skipped,
    )


class _Run(Expressions):
    def __init__(
        self, root: Path, read: Callable[[Path], str], given: Mapping[str, Value], config: Mapping[str, Value] | None
    ) -> None:
        super().__init__(given, config)
        self.root, self.read = root, read
        self.modules: dict[Path, Scope] = {}
        self.trees: dict[Path, ast.Module] = {}
        self.names: set[str] = set()
        self.entered: set[ast.AST] = set()
        self.active: list[ast.AST] = []
        self.definitions: list[Function] = []
        self.classes: list[Class] = []
        self.objects: list[Call] = []
        self.skipped: list[str] = []
        self.results: dict[str, Value] = {}

    # -- modules --------------------------------------------------------------------------------------------------------
    def module(self, path: Path, text: str) -> Scope:
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            raise PricingError(f"{path}:{error.lineno or 1}: not Python: {error.msg}") from None
        except (ValueError, MemoryError) as error:
            raise PricingError(f"{path}:1: not Python: {error}") from None
        scope = Scope(path)
        self.modules[path.resolve()], self.trees[path] = scope, tree
        self.block(tree.body, scope)
        return scope

    def standalone(self, scope: Scope) -> bool:
        """Whether the file does more than define, import and set constants."""
        does = (ast.If, ast.For, ast.While, ast.With, ast.Try)
        return any(
            isinstance(s, does) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Call))
            for s in self.trees[scope.path].body
        )

    def imported(self, path: Path) -> Scope:
        """A module of the program, followed once."""
        if path.resolve() in self.modules:
            return self.modules[path.resolve()]
        if len(self.modules) >= MOST_FILES:
            raise PricingError(f"{self.root}: a program of more than {MOST_FILES} Python files; name the one with its privacy")
        before, self.stack = self.stack, ()
        found = self.module(path, self.read(path))
        self.stack = before
        return found

    def _file(self, name: str, level: int, scope: Scope) -> Path | None:
        parts = [p for p in name.split(".") if p]
        above = scope.path.parent
        for _ in range(level - 1):
            above = above.parent
        places = (above,) if level else (scope.path.parent, self.root, self.root / "src")
        for place in places:
            base = place.joinpath(*parts)
            for path in (base.with_suffix(".py") if parts else base / "__init__.py", base / "__init__.py"):
                if path.is_file() and path.resolve().is_relative_to(self.root.resolve()):
                    return path
        return None

    # -- statements -----------------------------------------------------------------------------------------------------
    def block(self, body: list[ast.stmt], scope: Scope) -> str:
        before, flow = self.stack, NEXT
        for statement in body:
            self.step(statement, scope)
            found = self.statement(statement, scope)
            if found == MAYBE:
                flow = MAYBE
                self.stack = (*self.stack, ("branch", f"what line {statement.lineno} decides"))
            elif found != NEXT:
                flow = LEFT if flow == MAYBE else found
                break
        self.stack = before
        return flow

    def statement(self, node: ast.stmt, scope: Scope) -> str:
        found = getattr(self, f"_do_{type(node).__name__.lower()}", None)
        result: str | None = found(node, scope) if found else NEXT
        return result or NEXT

    def _do_expr(self, node: ast.Expr, scope: Scope) -> str:
        self.value(node.value, scope)
        return ABORTED if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in _EXITS else NEXT

    def _do_assign(self, node: ast.Assign, scope: Scope) -> None:
        found = self.value(node.value, scope)
        for target in node.targets:
            self.assign(target, found, scope)

    def _do_annassign(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, scope), scope)

    def _do_augassign(self, node: ast.AugAssign, scope: Scope) -> None:
        reading = ast.copy_location(ast.BinOp(_loaded(node.target), node.op, node.value), node)
        self.assign(node.target, self.value(ast.fix_missing_locations(reading), scope), scope)

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            home = scope.elsewhere.get(target.id, scope)
            if home is scope:
                scope.local[target.id] = value
            else:
                home.local[target.id] = self.weak(
                    home.local.get(target.id), value, target.id not in home.local, home.born, target.id
                )
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.value(target.value, scope), target.attr, value, target)
        elif isinstance(target, ast.Subscript):
            owner, key = plain(self.value(target.value, scope)), plain(self.value(target.slice, scope))
            for each in values.candidates(owner):
                if isinstance(each, Table) and isinstance(key, str):
                    self.set_item(each, key, value)
                elif isinstance(each, Table):
                    each.whole = False
                    each.update({k: Unresolved(target, k) for k in each})
                elif isinstance(each, Items):
                    each[:] = [either(v, value) for v in each]
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, plain(value), scope)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, Unresolved(target), scope)

    def _unpack(self, targets: list[ast.expr], value: Value, scope: Scope) -> None:
        known = self.listed(value)
        for index, target in enumerate(targets):
            if known is not None and len(known) == len(targets):
                self.assign(target, known[index], scope)
            elif isinstance(value, Call) and value.own is None:
                self.assign(target, value.parts.setdefault(index, Part(value, index, born=value.born)), scope)
            else:
                self.assign(target, Unresolved(target), scope)

    def _do_import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            self.names.add(alias.name)
            path = self._file(alias.name, 0, scope)
            head = alias.name.partition(".")[0]
            scope.local[alias.asname or head] = (
                self.imported(path)
                if path and (alias.asname or head == alias.name)
                else Name(alias.name if alias.asname else head)
            )

    def _do_importfrom(self, node: ast.ImportFrom, scope: Scope) -> None:
        path = self._file(node.module or "", node.level, scope)
        home = self.imported(path) if path else None
        for alias in node.names:
            dotted = f"{node.module or ''}.{alias.name}".lstrip(".")
            self.names.add(dotted)
            if alias.name == "*":
                scope.local.update(home.local if home else {})
                continue
            inside = self._file(f"{node.module or ''}.{alias.name}", node.level, scope)
            if home and alias.name in home.local:
                found = home.local[alias.name]
            else:
                found = (
                    self.imported(inside)
                    if inside and inside.name != "__init__.py"
                    else Unresolved(dotted)
                    if home
                    else Name(dotted)
                )
            scope.local[alias.asname or alias.name] = found

    def _do_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        function = Function(node, scope, self.defaults(node.args, scope))
        options: dict[str, Value] = {}
        decorators = [self.value(d, scope) for d in node.decorator_list]
        for made in decorators:
            if isinstance(made, Call):
                made.decorates = function
                if made.name == "option":
                    flags = [a for a in made.args if isinstance(a, str)]
                    name = (
                        next((f for f in flags if f.startswith("--")), flags[0] if flags else "").lstrip("-").replace("-", "_")
                    )
                    options[name] = self.assumed(name, made.get("default"), f"--{name}", node)
        function.options = options
        scope.local[node.name] = function
        self.definitions.append(function)
        if any(isinstance(made, Call) and made.name != "option" for made in decorators):
            self.waiting.append(function)

    _do_asyncfunctiondef = _do_functiondef

    def _do_classdef(self, node: ast.ClassDef, scope: Scope) -> None:
        bases = tuple(plain(self.value(base, scope)) for base in node.bases)
        inner = Scope(scope.path, scope, f"class {node.name}", born=self.stack)
        self.block(node.body, inner)
        made = Class(node, inner, bases)
        scope.local[node.name] = made
        self.classes.append(made)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Value:
        found = super()._lambda(node, scope)
        if isinstance(found, Function):
            self.definitions.append(found)
        return found

    def _do_return(self, node: ast.Return, scope: Scope) -> str:
        found = self.value(node.value, scope)
        scope.returned.append(found)
        self.escape(found)
        return LEFT

    def _do_raise(self, node: ast.Raise, scope: Scope) -> str:
        return ABORTED

    def _do_break(self, node: ast.stmt, scope: Scope) -> str:
        return LEFT

    _do_continue = _do_break

    def _do_global(self, node: ast.Global, scope: Scope) -> None:
        scope.elsewhere.update(dict.fromkeys(node.names, scope.module))

    def _do_nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            outer = scope.parent
            while outer is not None and name not in outer.local:
                outer = outer.parent
            scope.elsewhere.update({name: outer} if outer else {})

    def _do_delete(self, node: ast.Delete, scope: Scope) -> None:
        for target in node.targets:
            self.assign(target, Unresolved(target), scope)

    def _do_if(self, node: ast.If, scope: Scope) -> str:
        test = self.value(node.test, scope)
        decided = values.truth(test)
        if decided is not None:
            self.skipped += values.notes(test)
            return self.block(node.body if decided else node.orelse, scope)
        words = f"`{ast.unparse(node.test)}` (line {node.lineno})"
        return self.branches([(words, node.body), (f"not {words}", node.orelse)], scope)

    def branches(self, cases: list[tuple[str, list[ast.stmt]]], scope: Scope) -> str:
        """Several blocks of which one is run; the names that they leave are joined."""
        before, stack = dict(scope.local), self.stack
        after: list[dict[str, Value]] = []
        flows = []
        for words, body in cases:
            scope.local = dict(before)
            self.stack = (*stack, ("branch", words))
            flow = self.block(body, scope)
            flows.append(flow)
            if flow in (NEXT, MAYBE):
                after.append(scope.local)
        self.stack = stack
        scope.local = _joined(after) if after else before
        going = [f for f in flows if f != ABORTED]
        if not going:
            return ABORTED
        return going[0] if len(set(going)) == 1 else MAYBE

    def _do_match(self, node: ast.Match, scope: Scope) -> str:
        subject = plain(self.value(node.subject, scope))
        cases: list[tuple[str, list[ast.stmt]]] = []
        for case in node.cases:
            pattern = case.pattern
            literal = isinstance(pattern, ast.MatchValue) and isinstance(pattern.value, ast.Constant)
            if (
                literal
                and values.is_plain(subject)
                and isinstance(pattern, ast.MatchValue)
                and isinstance(pattern.value, ast.Constant)
            ):
                if pattern.value.value == subject and case.guard is None and not cases:
                    return self.block(case.body, scope)
                if pattern.value.value != subject:
                    continue
            cases.append((f"a case of line {node.lineno}", case.body))
            if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and case.guard is None:
                return self.branches(cases, scope) if len(cases) > 1 else self.block(case.body, scope)
        return self.branches([*cases, (f"no case of line {node.lineno}", [])], scope)

    def _do_with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> str:
        for item in node.items:
            found = self.value(item.context_expr, scope)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, found, scope)
        return self.block(node.body, scope)

    _do_asyncwith = _do_with

    def _do_try(self, node: ast.Try, scope: Scope) -> str:
        before, stack = dict(scope.local), self.stack
        flow = self.block(node.body, scope)
        ends = [(flow, scope.local)]
        for handler in node.handlers:
            scope.local = _joined([before, ends[0][1]])
            if handler.name:
                scope.local[handler.name] = Unresolved(handler.name)
            self.stack = (*stack, ("branch", f"an exception at line {node.lineno}"))
            ends.append((self.block(handler.body, scope), scope.local))
        self.stack = stack
        going = [(f, names) for f, names in ends if f in (NEXT, MAYBE)]
        scope.local = _joined([names for _, names in going]) if going else before
        if going and going[0][1] is ends[0][1]:
            flow = self.block(node.orelse, scope) if node.orelse else flow
        after = self.block(node.finalbody, scope)
        flows = {flow, *(f for f, _ in ends[1:])} - {ABORTED}
        return after if after != NEXT else ABORTED if not flows else flows.pop() if len(flows) == 1 else MAYBE

    _do_trystar = _do_try

    def _do_for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> str:
        known = self.listed(self.value(node.iter, scope))
        if known is not None and len(known) <= 16:
            flow = NEXT
            for each in known:
                self.assign(node.target, each, scope)
                found = self.block(node.body, scope)
                if found == ABORTED:
                    return ABORTED
                if found in (LEFT, MAYBE):
                    jumps = any(isinstance(n, (ast.Return, ast.Break)) for n in ast.walk(node))
                    flow = MAYBE if jumps and any(isinstance(n, ast.Return) for n in ast.walk(node)) else flow
                    if found == LEFT and not any(isinstance(n, ast.Continue) for n in ast.walk(node)):
                        break
            return flow if flow == MAYBE else self.block(node.orelse, scope)
        self.assign(node.target, Unresolved(node.iter), scope)
        return self.loop(node, scope)

    _do_asyncfor = _do_for

    def _do_while(self, node: ast.While, scope: Scope) -> str:
        if values.truth(self.value(node.test, scope)) is False:
            return self.block(node.orelse, scope)
        return self.loop(node, scope)

    def loop(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> str:
        """A loop of unknown length: gone through twice, and what still changes then is not known."""
        before, stack, count, again = dict(scope.local), self.stack, len(self.calls), self.again
        self.stack = (*stack, ("loop", f"the loop at line {node.lineno}"))
        self.block(node.body, scope)
        for name, value in scope.local.items():
            if name in before and not values.same(before[name], value):
                scope.local[name] = Unresolved(f"{name}, which changes in the loop at line {node.lineno}")
        del self.calls[count:]
        self.again = True
        flow = self.block(node.body, scope)
        self.again, self.stack = again, stack
        scope.local = _joined([before, scope.local])
        returns = any(isinstance(n, ast.Return) for n in ast.walk(node))
        return MAYBE if flow in (LEFT, MAYBE) and returns else NEXT

    # -- functions and classes ------------------------------------------------------------------------------------------
    def enter(self, function: Function, args: tuple[Value, ...], keywords: Mapping[str, Value], node: ast.AST) -> Value:
        if self.active.count(function.node) > 1 or len(self.active) > DEEPEST:
            return Unresolved(node)
        self.entered.add(function.node)
        inner = Scope(function.scope.path, function.scope, function.name, born=self.stack)
        self.bind(function, args, keywords, inner)
        self.active.append(function.node)
        try:
            if isinstance(function.node, ast.Lambda):
                found = self.value(function.node.body, inner)
                self.escape(found)
                return found
            flow = self.block(function.node.body, inner)
        finally:
            self.active.pop()
        results = [*inner.returned, *([None] if flow in (NEXT, MAYBE) else [])]
        result = results[0]
        for other in results[1:]:
            result = either(result, other)
        generator = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(function.node))
        return Unresolved(node) if generator else result

    def bind(self, function: Function, args: tuple[Value, ...], keywords: Mapping[str, Value], inner: Scope) -> None:
        """Parameters by place and by name; defaults, options of a command line, else unresolved."""
        arguments = function.node.args
        places = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        bound = isinstance(function.bound, Call) and not _static(function)
        given = (function.bound, *args) if bound else args
        local = dict(zip(places, given, strict=False))
        named = {*places, *(a.arg for a in arguments.kwonlyargs)}
        local |= {k: v for k, v in keywords.items() if k in named}
        for name in sorted(named - set(local)):
            if "**" in keywords or (name not in function.defaults and name not in function.options):
                local[name] = Unresolved(f"{name} of {function.name}")
            else:
                local[name] = function.options.get(name, function.defaults.get(name))
        if arguments.vararg:
            local[arguments.vararg.arg] = tuple(given[len(places) :])
        if arguments.kwarg:
            rest = Table({k: v for k, v in keywords.items() if k not in named and k != "**"})
            rest.whole = "**" not in keywords
            rest.born = self.stack
            local[arguments.kwarg.arg] = rest
        inner.local = local

    def make(self, made: Class, args: tuple[Value, ...], keywords: Mapping[str, Value], node: ast.expr, scope: Scope) -> Value:
        call = Call(made.node.name, made.node.name, args, keywords, own=made)
        self.record(call, node, scope)
        self.objects.append(call)
        start = made.member("__init__")
        fields = [s.target.id for s in made.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
        if isinstance(start, Function):
            self.enter(Function(start.node, start.scope, start.defaults, bound=call), args, keywords, node)
        elif fields:  # a data class, or a class of settings
            call.attributes |= dict(zip(fields, args, strict=False)) | {k: v for k, v in keywords.items() if k != "**"}
            if isinstance(after := made.member("__post_init__"), Function):
                self.enter(Function(after.node, after.scope, after.defaults, bound=call), (), {}, node)
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
            self._methods(Call(each.node.name, each.node.name, own=each))
        self._called_back()

    def _called_back(self) -> None:
        while self.waiting:
            function = self.waiting.pop(0)
            if function.node not in self.entered:
                self._unknown(function)

    def _methods(self, made: Call) -> None:
        for name in made.own.methods() if made.own else ():
            function = made.own.member(name) if made.own else None
            if isinstance(function, Function) and function.node not in self.entered:
                self._unknown(Function(function.node, function.scope, function.defaults, function.options, made))

    def _unknown(self, function: Function) -> None:
        """A function that is called with what nobody knows; a default may hold."""
        self.stack = ()
        said = {
            k: Assumed(v, (f"{k} = {v!r}, the default of {function.name}",))
            for k, v in function.defaults.items()
            if values.is_plain(v)
        }
        called = Function(function.node, function.scope, {**function.defaults, **said}, function.options, function.bound)
        self.results[function.name] = self.enter(called, (), {}, function.node)


def _static(function: Function) -> bool:
    decorators = [] if isinstance(function.node, ast.Lambda) else function.node.decorator_list
    return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in decorators)


def _loaded(target: ast.expr) -> ast.expr:
    copied: ast.expr = ast.parse(ast.unparse(target), mode="eval").body
    return copied


def _joined(several: list[dict[str, Value]]) -> dict[str, Value]:
    out = dict(several[0])
    for other in several[1:]:
        for name, value in other.items():
            out[name] = either(out[name], value) if name in out else value
    return out


__all__ = ["Call", "Choice", "Items", "Program", "follow"]
