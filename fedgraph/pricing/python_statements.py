"""The abstract interpreter's statements: assignments in order, branches joined, loops gone through until nothing changes."""

import ast
import operator
from collections.abc import Mapping

from fedgraph.pricing import python_values as py
from fedgraph.pricing.python_expressions import PythonExpressions
from fedgraph.pricing.python_state import LoopPass, PythonAttributesView
from fedgraph.pricing.python_values import ScopeValue, TableValue, UnresolvedValue, Value, python_plain, value_truth

NEXT, LEFT, MAYBE, ABORTED = "next", "left", "maybe left", "aborted"
MOST_PYTHON_STEPS = ("step", "apply_gradients", "minimize", "train_on_batch")
_LEAVES: Mapping[type[ast.stmt], str] = {ast.Raise: ABORTED, ast.Break: LEFT, ast.Continue: LEFT}
_EXITS = ("sys.exit", "exit", "quit", "os._exit", "os.abort")


class PythonStatements(PythonExpressions):
    """The interpreter with its statements. A block says how it goes on: ``NEXT``, ``LEFT``, ``MAYBE`` left, or ``ABORTED``."""

    def imports(self, node: ast.Import | ast.ImportFrom, scope: ScopeValue) -> None:
        raise NotImplementedError

    def block(self, body: list[ast.stmt], scope: ScopeValue) -> str:
        before, flow = self.stack, NEXT
        for statement in body:
            self.step(statement, scope)
            found = self.statement(statement, scope) or NEXT
            if found == MAYBE:
                flow = MAYBE
                self.stack = (*self.stack, ("branch", f"what line {statement.lineno} decides"))
            elif found != NEXT:
                flow = LEFT if flow == MAYBE else found
                break
        self.stack = before
        return flow

    def statement(self, node: ast.stmt, scope: ScopeValue) -> str | None:
        """Runs one statement; how it goes on where it is not with the next one."""
        match node:
            case ast.Expr(value=value):
                self.value(value, scope)
                return ABORTED if isinstance(value, ast.Call) and ast.unparse(value.func) in _EXITS else NEXT
            case ast.Assign(targets=targets, value=value):
                found = self.value(value, scope)
                for target in targets:
                    self.assign(target, found, scope)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.assign(target, self.value(value, scope), scope)
            case ast.AugAssign(target=target, op=op, value=value):
                copied: ast.expr = ast.parse(ast.unparse(target), mode="eval").body
                reading = ast.copy_location(ast.BinOp(copied, op, value), node)
                self.assign(target, self.value(ast.fix_missing_locations(reading), scope), scope)
            case ast.Import() | ast.ImportFrom():
                self.imports(node, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, scope)
            case ast.ClassDef():
                bases = tuple(python_plain(self.value(base, scope)) for base in node.bases)
                inner = ScopeValue(scope.path, scope, f"class {node.name}", born=self.stack)
                self.block(node.body, inner)
                scope.local[node.name] = made = py.ClassValue(node, inner, bases)
                self.classes.append(made)
            case ast.Return(value=value):
                scope.returned.append(self.value(value, scope))
                self.escape(scope.returned[-1])
                return LEFT
            case ast.Global(names=names):
                scope.elsewhere.update(dict.fromkeys(names, scope.module))
            case ast.Nonlocal(names=names):
                scope.elsewhere.update({name: home for name in names if (home := scope.above(name))})
            case ast.Delete(targets=targets):
                for target in targets:
                    self.assign(target, UnresolvedValue(target), scope)
            case ast.If(test=test, body=body, orelse=otherwise):
                found = self.value(test, scope)
                if (decided := value_truth(found)) is not None:
                    self.skipped |= dict.fromkeys(py.python_value_notes(found))
                    return self.block(body if decided else otherwise, scope)
                words = f"`{ast.unparse(test)}` (line {node.lineno})"
                return self.branches([(words, body), (f"not {words}", otherwise)], scope)
            case ast.Match():
                return self._match(node, scope)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    found = self.value(item.context_expr, scope)
                    if item.optional_vars is not None:
                        self.assign(item.optional_vars, found, scope)
                return self.block(body, scope)
            case ast.Try():
                return self._try(node, scope)
            case ast.For() | ast.AsyncFor():
                return self._for(node, scope)
            case ast.While(test=test, orelse=otherwise):
                return self.block(otherwise, scope) if value_truth(self.value(test, scope)) is False else self.loop(node, scope)
        return _LEAVES.get(type(node), NEXT)

    def assign(self, target: ast.expr, value: Value, scope: ScopeValue) -> None:
        match target:
            case ast.Name(id=name):
                home = scope.elsewhere.get(name, scope)
                if home is scope:
                    scope.local[name] = value
                else:
                    self.set_name(home.local, name, value, home.born)
            case ast.Attribute(value=owner, attr=name):
                self.set_attribute(self.value(owner, scope), name, value, target)
            case ast.Subscript(value=owner, slice=index):
                held, key = python_plain(self.value(owner, scope)), python_plain(self.value(index, scope))
                for each in py.value_candidates(held):
                    if isinstance(each, PythonAttributesView):
                        self.set_attribute(each.owner, key if isinstance(key, str) else "?", value, target)
                    elif isinstance(each, py.PythonName) and each.dotted.endswith("environ") and isinstance(key, str):
                        self.set_name(self.environment, key, value, ())
                    elif isinstance(each, TableValue) and isinstance(key, str):
                        self.set_name(each, key, value, each.born)
                    elif isinstance(each, TableValue):
                        each.whole = False
                        each.update({k: UnresolvedValue(target, k) for k in each})
                    elif isinstance(each, py.ItemsValue):
                        each[:] = [py.join_values(v, value) for v in each]
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                self._unpack(parts, python_plain(value), scope)
            case ast.Starred(value=inner):
                self.assign(inner, UnresolvedValue(target), scope)

    def _unpack(self, targets: list[ast.expr], value: Value, scope: ScopeValue) -> None:
        known = py.value_elements(value)
        for index, target in enumerate(targets):
            if known is not None and len(known) == len(targets):
                self.assign(target, known[index], scope)
            elif isinstance(value, py.CallValue) and value.own is None:
                self.assign(target, value.part(index), scope)
            else:
                self.assign(target, UnresolvedValue(target), scope)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: ScopeValue) -> None:
        function = py.FunctionValue(node, scope, self.defaults(node.args, scope))
        around = [self.value(d, scope) for d in node.decorator_list]
        decorators = [made for made in around if isinstance(made, py.CallValue)]
        for made in decorators:
            made.decorates = function
            function.options.update(self.argument(made.args, made.keywords, node) if made.name == "option" else {})
        self.definitions.append(function)
        scope.local[node.name] = function
        for wrapper in reversed(around):
            held = self.enter(wrapper, (scope.local[node.name],), {}, node) if isinstance(wrapper, py.FunctionValue) else None
            scope.local[node.name] = held if isinstance(held, py.FunctionValue) else scope.local[node.name]
        if any(made.name != "option" for made in decorators):
            self.waiting.append(function)

    def execute(self, text: Value, node: ast.expr, scope: ScopeValue) -> Value:
        """``exec``: its statements are followed like others; of a text that is not known, every plain name may change."""
        try:
            self.block(ast.parse(text).body if isinstance(text, str) else [], scope)
            unknown = not isinstance(text, str)
        except (SyntaxError, ValueError):
            unknown = True
        for home in (scope, scope.module) if unknown else ():
            for name in [k for k, v in home.local.items() if py.is_plain_value(python_plain(v))]:
                home.local[name] = UnresolvedValue(f"{name}, which exec may set")
        return None

    def branches(self, cases: list[tuple[str, list[ast.stmt]]], scope: ScopeValue) -> str:
        """Several blocks of which one is run; the names that they leave are joined."""
        before = dict(scope.local)
        after: list[dict[str, Value]] = []
        flows = []
        for words, body in cases:
            scope.local = dict(before)
            with self.under("branch", words):
                flows.append(self.block(body, scope))
            after += [scope.local] if flows[-1] in (NEXT, MAYBE) else []
        scope.local = _joined(after) if after else before
        going = {f for f in flows if f != ABORTED}
        return ABORTED if not going else going.pop() if len(going) == 1 else MAYBE

    def _match(self, node: ast.Match, scope: ScopeValue) -> str:
        subject = python_plain(self.value(node.subject, scope))
        cases: list[tuple[str, list[ast.stmt]]] = []
        for case in node.cases:
            match case.pattern:
                case ast.MatchValue(value=ast.Constant(value=literal)) if py.is_plain_value(subject):
                    if literal != subject:
                        continue
                    if case.guard is None and not cases:
                        return self.block(case.body, scope)
                case ast.MatchAs(pattern=None) if case.guard is None:
                    cases.append((f"a case of line {node.lineno}", case.body))
                    return self.branches(cases, scope) if len(cases) > 1 else self.block(case.body, scope)
            cases.append((f"a case of line {node.lineno}", case.body))
        return self.branches([*cases, (f"no case of line {node.lineno}", [])], scope)

    def _try(self, node: ast.Try, scope: ScopeValue) -> str:
        before = dict(scope.local)
        flow = self.block(node.body, scope)
        ends = [(flow, scope.local)]
        for handler in node.handlers:
            scope.local = _joined([before, ends[0][1]])
            if handler.name:
                scope.local[handler.name] = UnresolvedValue(handler.name)
            with self.under("branch", f"an exception at line {node.lineno}"):
                ends.append((self.block(handler.body, scope), scope.local))
        going = [names for f, names in ends if f in (NEXT, MAYBE)]
        scope.local = _joined(going) if going else before
        if going and going[0] is ends[0][1]:
            flow = self.block(node.orelse, scope) if node.orelse else flow
        after = self.block(node.finalbody, scope)
        flows = {flow, *(f for f, _ in ends[1:])} - {ABORTED}
        return after if after != NEXT else ABORTED if not flows else flows.pop() if len(flows) == 1 else MAYBE

    def _for(self, node: ast.For | ast.AsyncFor, scope: ScopeValue) -> str:
        before, made = len(self.lengths), len(self.calls)
        over = self.value(node.iter, scope)
        known, ranges = py.value_elements(over), self.lengths[before:]
        self.looped += ranges
        if known is None or len(known) > 16:
            self.assign(node.target, UnresolvedValue(node.iter), scope)
            flow = self.loop(node, scope, len(known) if known is not None else ranges[0] if ranges else None)
            steps = tuple(call for call in self.calls[made:] if call.name in MOST_PYTHON_STEPS)
            self.iterated.append(LoopPass(python_plain(over), self.times, steps, self.reached, len(self.stack)))
            return flow
        inside, flow = {type(n) for n in ast.walk(node)}, NEXT
        for each in known:
            self.assign(node.target, each, scope)
            found = self.block(node.body, scope)
            if found == ABORTED:
                return ABORTED
            flow = MAYBE if found in (LEFT, MAYBE) and ast.Return in inside else flow
            if found == LEFT and ast.Continue not in inside:
                break
        return flow if flow == MAYBE else self.block(node.orelse, scope)

    def loop(self, node: ast.For | ast.AsyncFor | ast.While, scope: ScopeValue, length: Value = None) -> str:
        """A loop of many times or unknown length: gone through twice, and what still changes then is not known."""
        before, count, passes = dict(scope.local), len(self.calls), len(self.iterated)
        again, times, words = self.again, self.times, f"the loop at line {node.lineno}"
        often = UnresolvedValue(f"as often as {words} runs") if length is None else length
        self.times = py.lift_over_values(node, operator.mul, times, often)
        with self.under("loop", words):
            self.block(node.body, scope)
            for name, value in scope.local.items():
                if name in before and not py.same_value(before[name], value):
                    scope.local[name] = UnresolvedValue(f"{name}, which changes in {words}")
            del self.calls[count:], self.iterated[passes:]
            self.again = True
            flow = self.block(node.body, scope)
        self.again, self.times = again, times
        scope.local = _joined([before, scope.local])
        return MAYBE if flow in (LEFT, MAYBE) and any(isinstance(n, ast.Return) for n in ast.walk(node)) else NEXT


def _joined(several: list[dict[str, Value]]) -> dict[str, Value]:
    out = dict(several[0])
    for other in several[1:]:
        for name, value in other.items():
            out[name] = py.join_values(out[name], value) if name in out else value
    return out
