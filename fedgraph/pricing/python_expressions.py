"""The abstract interpreter's expressions: what one is worth in a scope. ``python_statements`` runs statements with it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping

from fedgraph.errors import PricingError
from fedgraph.pricing import python_values as values
from fedgraph.pricing.python_calls import Calls
from fedgraph.pricing.python_changes import Plain
from fedgraph.pricing.python_values import (
    Assumed,
    Call,
    Class,
    Function,
    Items,
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

MOST_STEPS = 400_000
_BINARY: Mapping[type[ast.operator], Plain] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARE: Mapping[type[ast.cmpop], Plain] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip


def _power(base: float, exponent: float) -> float:
    if abs(base) > 1e6 or abs(exponent) > 64:
        raise ValueError
    return float(base) ** exponent


class Expressions(Calls):
    def __init__(self, given: Mapping[str, Value], config: Mapping[str, Value] | None) -> None:
        super().__init__(given, config)
        self.understood: dict[type[ast.expr], Plain] = {
            ast.Constant: self._constant, ast.Name: self._name, ast.Attribute: self._attribute, ast.Subscript: self._subscript,
            ast.List: self._list, ast.Tuple: self._list, ast.Set: self._list, ast.Dict: self._dict, ast.UnaryOp: self._unaryop,
            ast.BinOp: self._binop, ast.BoolOp: self._boolop, ast.Compare: self._compare, ast.IfExp: self._ifexp,
            ast.NamedExpr: self._namedexpr, ast.Lambda: self._lambda, ast.Await: self._await, ast.JoinedStr: self._joinedstr,
            ast.ListComp: self._listcomp, ast.SetComp: self._listcomp, ast.GeneratorExp: self._listcomp, ast.Call: self._call,
        }  # fmt: skip

    def step(self, node: ast.stmt | ast.expr, scope: Scope) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise PricingError(f"{scope.path}:{node.lineno}: too much to follow; name the file that holds the privacy alone")

    def value(self, node: ast.expr | None, scope: Scope) -> Value:
        """What an expression is worth."""
        if node is None:
            return None
        self.step(node, scope)
        if (understood := self.understood.get(type(node))) is not None:
            return understood(node, scope)
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

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        owner, key = plain(self.value(node.value, scope)), plain(self.value(node.slice, scope))
        return self.item(owner, key, node)

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

    def defaults(self, arguments: ast.arguments, scope: Scope) -> dict[str, Value]:
        places = [*arguments.posonlyargs, *arguments.args]
        named = zip(places[len(places) - len(arguments.defaults) :], arguments.defaults, strict=True)
        only = ((a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None)
        return {a.arg: self.value(d, scope) for a, d in (*named, *only)}

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
