"""The abstract interpreter's expressions: what one is worth in a scope. ``python_statements`` runs statements with it."""

import ast
import operator
from collections.abc import Mapping

from fedgraph.errors import PricingError
from fedgraph.pricing import python_values as py
from fedgraph.pricing.python_objects import PythonObjects
from fedgraph.pricing.python_state import PlainFunction
from fedgraph.pricing.python_values import FunctionValue, ScopeValue, TableValue, UnresolvedValue, Value, python_plain

_MOST_STEPS = 400_000


def _power(base: float, exponent: float) -> float:
    if abs(base) > 1e6 or abs(exponent) > 64:
        raise ValueError
    return float(base) ** exponent


_OPERATORS: Mapping[type[ast.AST], PlainFunction] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: _power,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip


class PythonExpressions(PythonObjects):
    """The interpreter with its expressions."""

    def step(self, node: ast.stmt | ast.expr, scope: ScopeValue) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise PricingError(f"{scope.path}:{node.lineno}: too much to follow; name the file that holds the privacy alone")

    def value(self, node: ast.expr | None, scope: ScopeValue) -> Value:
        """What an expression is worth."""
        if node is None:
            return None
        self.step(node, scope)
        match node:
            case ast.Constant(value=held):
                return held if py.is_plain_value(held) else UnresolvedValue(node)
            case ast.Name(id="__name__"):
                return "__main__"
            case ast.Name(id=name):
                return py.PythonName(name) if (home := scope.home(name)) is None else home.local[name]
            case ast.Attribute(value=owner, attr=name):
                return self.attribute(self.value(owner, scope), name, node)
            case ast.Subscript(value=owner, slice=key):
                return self.item(python_plain(self.value(owner, scope)), python_plain(self.value(key, scope)), node)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return self._list(parts, scope)
            case ast.Dict():
                return self._dict(node, scope)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                inner = self.value(part, scope)
                decided, said = py.value_truth(inner), py.python_value_notes(inner)
                return UnresolvedValue(node) if decided is None else py.assume_value(not decided, said)
            case ast.UnaryOp(op=sign, operand=part):
                return py.lift_over_values(node, _OPERATORS[type(sign)], self.value(part, scope))
            case ast.BinOp():
                return self._binop(node, scope)
            case ast.BoolOp():
                return self._boolop(node, scope)
            case ast.Compare():
                return self._compare(node, scope)
            case ast.IfExp():
                return self._ifexp(node, scope)
            case ast.NamedExpr(target=target, value=part):
                scope.local[target.id] = self.value(part, scope)
                return scope.local[target.id]
            case ast.Lambda(args=arguments):
                self.definitions.append(FunctionValue(node, scope, self.defaults(arguments, scope)))
                return self.definitions[-1]
            case ast.Await(value=part):
                return self.value(part, scope)
            case ast.JoinedStr(values=parts):
                inner_parts = [p.value if isinstance(p, ast.FormattedValue) else p for p in parts]
                texts = [self.value(part, scope) for part in inner_parts]
                if any(isinstance(p, ast.FormattedValue) and (p.format_spec or p.conversion != -1) for p in parts):
                    return UnresolvedValue(node)
                return py.lift_over_values(node, lambda *said: "".join(map(str, said)), *texts)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self._comprehension(node, scope)
            case ast.Call():
                return self._call(node, scope)
        for child in ast.iter_child_nodes(node):  # calls inside what is not understood are still made
            if isinstance(child, ast.expr):
                self.value(child, scope)
        return UnresolvedValue(node)

    def _list(self, parts: list[ast.expr], scope: ScopeValue) -> py.ItemsValue:
        out = py.ItemsValue(born=self.stack)
        for part in parts:
            if isinstance(part, ast.Starred):
                inner = self.value(part.value, scope)
                held = python_plain(inner)
                out.extend(held if isinstance(held, (py.ItemsValue, tuple)) else ())
                out.whole = out.whole and not isinstance(held, TableValue) and py.value_elements(inner) is not None
            else:
                out.append(self.value(part, scope))
        return out

    def _dict(self, node: ast.Dict, scope: ScopeValue) -> TableValue:
        out = TableValue(born=self.stack)
        for key, value in zip(node.keys, node.values, strict=True):
            held, name = self.value(value, scope), python_plain(self.value(key, scope)) if key else None
            if key is None and isinstance(held, TableValue):
                out.update(held)
                out.whole = out.whole and held.whole
            elif isinstance(name, str):
                out[name] = held
            else:
                out.whole = False
        return out

    def _binop(self, node: ast.BinOp, scope: ScopeValue) -> Value:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(left, py.ItemsValue) and isinstance(right, py.ItemsValue) and isinstance(node.op, ast.Add):
            return py.ItemsValue([*left, *right], self.stack, left.whole and right.whole)
        if isinstance(left, TableValue) and isinstance(right, TableValue) and isinstance(node.op, ast.BitOr):
            return TableValue({**left, **right})
        if isinstance(left, str) or isinstance(right, str):
            if not isinstance(node.op, ast.Add):
                return UnresolvedValue(node)
            return py.lift_over_values(node, lambda a, b: a + b if len(a) + len(b) < 10_000 else None, left, right)
        found = py.lift_over_values(node, _OPERATORS.get(type(node.op), _power), left, right)
        if isinstance(found, UnresolvedValue) and isinstance(node.op, ast.Mult):
            found.factors = (left, right)
        return found

    def _boolop(self, node: ast.BoolOp, scope: ScopeValue) -> Value:
        found: Value = None
        said: tuple[str, ...] = ()
        for index, part in enumerate(node.values, 1):
            found = self.value(part, scope)
            said += py.python_value_notes(found)
            decided = py.value_truth(found)
            if decided is isinstance(node.op, ast.Or) or index == len(node.values):
                break
            if decided is None:
                for rest in node.values[index:]:
                    self.value(rest, scope)
                return UnresolvedValue(node)
        return py.assume_value(python_plain(found), said) if said else found

    def _compare(self, node: ast.Compare, scope: ScopeValue) -> Value:
        left, right = self.value(node.left, scope), self.value(node.comparators[0], scope)
        kind = type(node.ops[0])
        if len(node.ops) > 1:
            return UnresolvedValue(node)
        if kind in (ast.Is, ast.IsNot) and (left is None or right is None):
            other = python_plain(right if left is None else left)
            if isinstance(other, py.PartValue):
                return UnresolvedValue(node)
            if isinstance(other, py.CallValue | FunctionValue | py.ClassValue | py.ItemsValue | TableValue | py.ParserValue):
                return kind is ast.IsNot
        if kind in (ast.In, ast.NotIn):
            inner = python_plain(right)
            known = py.value_elements(inner) if isinstance(inner, (py.ItemsValue, TableValue)) else None
            if known is None or not all(py.is_plain_value(python_plain(v)) for v in (left, *known)):
                return UnresolvedValue(node)
            inside = any(python_plain(left) == python_plain(v) for v in known)
            return py.lift_over_values(node, lambda v: inside == (kind is ast.In), left)
        return py.lift_over_values(node, _OPERATORS[kind], left, right) if kind in _OPERATORS else UnresolvedValue(node)

    def _ifexp(self, node: ast.IfExp, scope: ScopeValue) -> Value:
        test = self.value(node.test, scope)
        if (decided := py.value_truth(test)) is not None:
            found = self.value(node.body if decided else node.orelse, scope)
            return py.assume_value(found, py.python_value_notes(test)) if py.is_plain_value(python_plain(found)) else found
        with self.under("branch", f"`{ast.unparse(node.test)}` (line {node.lineno})"):
            return py.join_values(self.value(node.body, scope), self.value(node.orelse, scope))

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: ScopeValue) -> Value:
        first, inner = node.generators[0], ScopeValue(scope.path, scope, scope.holds)
        known, out = py.value_elements(self.value(first.iter, scope)), py.ItemsValue(born=self.stack)
        if known is not None and len(node.generators) == 1 and isinstance(first.target, ast.Name) and len(known) <= 64:
            for each in known:
                inner.local[first.target.id] = each
                kept = [py.value_truth(self.value(test, inner)) for test in first.ifs]
                if False not in kept:
                    out.whole = out.whole and None not in kept
                    out.append(self.value(node.elt, inner))
            return out
        with self.under("loop", f"the loop at line {node.lineno}"):
            for name in (n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)):
                inner.local[name] = UnresolvedValue(node)
            self.value(node.elt, inner)
        return UnresolvedValue(node)

    def defaults(self, arguments: ast.arguments, scope: ScopeValue) -> dict[str, Value]:
        places = [*arguments.posonlyargs, *arguments.args][::-1]
        held = [*zip(places, arguments.defaults[::-1], strict=False)][::-1]
        held += [(place, said) for place, said in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if said]
        return {place.arg: self.value(default, scope) for place, default in held}

    def _call(self, node: ast.Call, scope: ScopeValue) -> Value:
        args: list[Value] = []
        keywords: dict[str, Value] = {}
        called = self.value(node.func, scope)
        for part in node.args:
            inner = self.value(part.value if isinstance(part, ast.Starred) else part, scope)
            known = py.value_elements(inner) if isinstance(part, ast.Starred) else [inner]
            args += known if known is not None else [UnresolvedValue(part)]
            keywords |= {"**": UnresolvedValue(part)} if known is None else {}
        for keyword in node.keywords:
            inner = self.value(keyword.value, scope)
            match python_plain(inner):
                case _ if keyword.arg:
                    keywords[keyword.arg] = inner
                case TableValue(whole=True) as held:
                    keywords |= held
                case held:
                    keywords |= held if isinstance(held, TableValue) else {}
                    keywords["**"] = UnresolvedValue(keyword.value)
        return self.call(called, tuple(args), keywords, node, scope)
