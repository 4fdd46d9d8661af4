"""The abstract interpreter's statements: assignments in order, branches joined, loops gone through until nothing changes."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from fedgraph.pricing import python_values as values
from fedgraph.pricing.python_changes import Plain
from fedgraph.pricing.python_expressions import Expressions
from fedgraph.pricing.python_values import Call, Class, Function, Items, Part, Scope, Table, Unresolved, Value, either, plain

NEXT, LEFT, MAYBE, ABORTED = "next", "left", "maybe left", "aborted"
_EXITS = ("sys.exit", "exit", "quit", "os._exit", "os.abort")


class Statements(Expressions):
    def __init__(self, given: Mapping[str, Value], config: Mapping[str, Value] | None) -> None:
        super().__init__(given, config)
        self.definitions: list[Function] = []
        self.classes: list[Class] = []
        self.skipped: list[str] = []
        self.done: dict[type[ast.stmt], Plain] = {
            ast.Expr: self._do_expr, ast.Assign: self._do_assign, ast.AnnAssign: self._do_annassign, ast.If: self._do_if,
            ast.AugAssign: self._do_augassign, ast.FunctionDef: self._do_functiondef, ast.ClassDef: self._do_classdef,
            ast.AsyncFunctionDef: self._do_functiondef, ast.Return: self._do_return, ast.Raise: self._do_raise,
            ast.Break: self._do_break, ast.Continue: self._do_break, ast.Global: self._do_global, ast.With: self._do_with,
            ast.Nonlocal: self._do_nonlocal, ast.Delete: self._do_delete, ast.Match: self._do_match, ast.Try: self._do_try,
            ast.AsyncWith: self._do_with, ast.For: self._do_for, ast.AsyncFor: self._do_for, ast.While: self._do_while,
        }  # fmt: skip

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
        found = self.done.get(type(node))
        result = found(node, scope) if found else None
        return result if isinstance(result, str) else NEXT

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


def _loaded(target: ast.expr) -> ast.expr:
    copied: ast.expr = ast.parse(ast.unparse(target), mode="eval").body
    return copied


def _joined(several: list[dict[str, Value]]) -> dict[str, Value]:
    out = dict(several[0])
    for other in several[1:]:
        for name, value in other.items():
            out[name] = either(out[name], value) if name in out else value
    return out
