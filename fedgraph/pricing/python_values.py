"""What a Python program's expressions can be worth when nothing is run, and what can be said of such values.

    Unresolved     nothing is known but the source text
    Choice         one of several values: branches that cannot be decided were joined
    Assumed        a value that holds unless somebody says otherwise from outside, with the sentence that says so
    Name           something imported that is not part of the program, by its dotted name
    Call           the result of calling something that is not part of the program, or an object of one of its classes
    Part           one of several results of a call
    Method         an attribute of any of these, about to be called
    Items, Table   a list and a dictionary
    Function, Class, Parser   what the program defines

Numbers, texts, ``None``, true and false stand for themselves: they are *plain*.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fedgraph.pricing.catalogue import places

_MOST_CANDIDATES = 8
Value = object
Stack = tuple[tuple[str, str], ...]  # what a statement depends on: (branch | loop, words)


@dataclass(eq=False)
class Unresolved:
    """A value that the program does not decide.

    Attributes:
        source: Its expression, or words for it.
        key: The option that it is looked up by, where it is a subscript or ``.get`` with a constant key.
        factors: The factors, where it is a product.
    """

    source: str | ast.AST
    key: str | None = None
    factors: tuple[Value, ...] = ()

    @property
    def text(self) -> str:
        return self.source if isinstance(self.source, str) else ast.unparse(self.source)


@dataclass(frozen=True, eq=False)
class Choice:
    """One of several values."""

    values: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Assumed:
    """A value that rests on assumptions, with a sentence for each."""

    value: Value
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Name:
    """Something of a library, by its dotted name."""

    dotted: str


class Items(list[Value]):
    """A list.

    Args:
        values: Its elements.
        born: The branches and loops that it was made in.
        whole: False once something unknown may have been added.
    """

    def __init__(self, values: Iterable[Value] = (), born: Stack = (), whole: bool = True) -> None:
        super().__init__(values)
        self.born, self.whole = born, whole


class Table(dict[str, Value]):
    """A dictionary with text keys, or a namespace.

    Args:
        values: What it holds.
        born: The branches and loops that it was made in.
        whole: False once something unknown may have been added.
    """

    def __init__(self, values: Mapping[str, Value] | None = None, born: Stack = (), whole: bool = True) -> None:
        super().__init__(values or {})
        self.born, self.whole = born, whole


@dataclass(eq=False)
class Class:
    """A class of the program.

    Attributes:
        node: Its definition.
        scope: The names of its body.
        bases: What it inherits from.
    """

    node: ast.ClassDef
    scope: Scope
    bases: tuple[Value, ...]

    @property
    def foreign(self) -> tuple[str, ...]:
        """The dotted names of all bases that are not part of the program."""
        found: list[str] = []
        for base in self.bases:
            found += base.foreign if isinstance(base, Class) else [base.dotted] if isinstance(base, Name) else ["?"]
        return tuple(found)

    def member(self, name: str) -> Value | None:
        """A class attribute or a method, of this class or its own bases."""
        inherited = (v for b in self.bases if isinstance(b, Class) and (v := b.member(name)) is not None)
        return self.scope.local[name] if name in self.scope.local else next(inherited, None)

    def methods(self) -> list[str]:
        inherited = [name for base in self.bases if isinstance(base, Class) for name in base.methods()]
        return [*inherited, *(n for n, v in self.scope.local.items() if isinstance(v, Function))]


@dataclass(eq=False)
class Call:
    """``name(args, keyword=…)``, and the object that it gives.

    Attributes:
        name: The last part of the called expression.
        dotted: The whole of it.
        args: Arguments by place.
        keywords: Arguments by name; ``**`` where some are not known.
        line: Where it stands.
        path: The file in which it stands.
        owner: What the method belongs to; None for a function.
        own: The program's class, where an object of it is made.
        stack: The undecided branches and loops that it stands in.
        reached: False where it stands in a function that nothing calls.
        function: The function that it stands in.
        attributes: What the program sets on the result afterwards.
        set_at: Attribute → the line that sets it.
        parts: Place → one of several results.
        decorates: The function, where the call is a decorator.
        born: The branches and loops that the result was made in.
        times: How often the loops around it make it.
    """

    name: str
    dotted: str
    args: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)
    line: int = 0
    path: Path = Path()
    owner: Value = None
    own: Class | None = None
    stack: Stack = ()
    reached: bool = True
    function: str = ""
    attributes: dict[str, Value] = field(default_factory=dict)
    set_at: dict[str, int] = field(default_factory=dict)
    parts: dict[int, Part] = field(default_factory=dict)
    decorates: Function | None = None
    born: Stack = ()
    times: Value = 1

    def get(self, name: str, place: int | None = None) -> Value:
        """The argument by keyword, or by place (that of ``catalogue.yaml`` where none is given); None where it is not given."""
        if name in self.keywords:
            return self.keywords[name]
        place = places(self.name).get(name) if place is None else place
        return self.args[place] if place is not None and place < len(self.args) else None

    def held(self, name: str) -> Value:
        """What the object holds at the end: what is set on it later, else what it was made with."""
        return self.attributes[name] if name in self.attributes else self.get(name)

    @property
    def conditions(self) -> tuple[str, ...]:
        return tuple(words for kind, words in self.stack if kind == "branch")

    @property
    def repeated(self) -> str:
        """The loop of unknown length that it stands in, if any."""
        return next((words for kind, words in self.stack if kind == "loop"), "")


@dataclass(eq=False)
class Part:
    """One of several results of a call.

    Attributes:
        call: The call.
        index: Which result it is, from 0.
        attributes: What the program sets on it afterwards.
        set_at: Attribute → the line that sets it.
        born: The branches and loops that it was made in.
    """

    call: Call
    index: int
    attributes: dict[str, Value] = field(default_factory=dict)
    set_at: dict[str, int] = field(default_factory=dict)
    born: Stack = ()


@dataclass(frozen=True, eq=False)
class Method:
    """An attribute of a value, as it stands before it is called."""

    owner: Value
    name: str
    node: ast.AST


@dataclass(eq=False)
class Scope:
    """The names of a module, a class or a function.

    Attributes:
        path: The file.
        parent: Where names are looked up next; None for a module.
        holds: The name of its function; ``class NAME`` for a class; empty for a module.
        local: Name → value.
        elsewhere: Names that ``global`` or ``nonlocal`` places in another scope.
        returned: What its function returned so far.
        born: The branches and loops that it was entered in.
    """

    path: Path
    parent: Scope | None = None
    holds: str = ""
    local: dict[str, Value] = field(default_factory=dict)
    elsewhere: dict[str, Scope] = field(default_factory=dict)
    returned: list[Value] = field(default_factory=list)
    born: Stack = ()

    def home(self, name: str) -> Scope | None:
        """The scope that a name is read from; None where no scope has it. Names of a class are seen in its own body alone."""
        if name in self.elsewhere:
            return self.elsewhere[name] if name in self.elsewhere[name].local else None
        scope: Scope | None = self
        while scope is not None:
            if name in scope.local and (scope is self or not scope.holds.startswith("class ")):
                return scope
            scope = scope.parent
        return None

    def above(self, name: str) -> Scope | None:
        """The nearest scope around this one that holds a name."""
        outer = self.parent
        return outer if outer is None or name in outer.local else outer.above(name)

    @property
    def module(self) -> Scope:
        return self if self.parent is None else self.parent.module


@dataclass(eq=False)
class Function:
    """A function, a method or a lambda of the program.

    Attributes:
        node: Its definition.
        scope: Where it was defined.
        defaults: Parameter → default.
        options: Parameter → what the program's command line gives (click).
        first: Arguments that are given already: the object of a method, or those of ``partial``.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    defaults: Mapping[str, Value] = field(default_factory=dict)
    options: Mapping[str, Value] = field(default_factory=dict)  # what its command line gives (click)
    first: tuple[Value, ...] = ()  # the object of a method, the arguments of ``partial``

    def on(self, owner: Call) -> Function:
        """The method of an object."""
        decorators = [] if isinstance(self.node, ast.Lambda) else self.node.decorator_list
        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in decorators)
        return self if static else Function(self.node, self.scope, self.defaults, self.options, (owner,))

    def partial(self, args: tuple[Value, ...], keywords: Mapping[str, Value]) -> Function:
        """The function with some of its arguments given."""
        return Function(self.node, self.scope, {**self.defaults, **keywords}, self.options, (*self.first, *args))

    @property
    def name(self) -> str:
        return "lambda" if isinstance(self.node, ast.Lambda) else self.node.name


@dataclass(eq=False)
class Parser:
    """A parser of a command line; options: what is not given has the default."""

    options: Table = field(default_factory=Table)


def same(a: Value, b: Value) -> bool:
    """Whether two values are certainly the same."""
    match a, b:
        case Unresolved(), Unresolved():
            return a.source is b.source
        case Assumed(), Assumed():
            return a.notes == b.notes and same(a.value, b.value)
        case Name(), Name():
            return a == b
        case Choice(), Choice():
            return same(a.values, b.values)
        case ((list() | tuple()), (list() | tuple())):
            return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a is b or (is_plain(a) and type(a) is type(b) and a == b)


def either(a: Value, b: Value) -> Value:
    """One of both: the value itself where they are the same, else a choice of at most eight candidates."""
    found: list[Value] = []
    for value in (*candidates(a), *candidates(b)):
        if not any(same(value, seen) for seen in found):
            found.append(value)
    if len(found) > _MOST_CANDIDATES:
        return Unresolved(f"one of more than {_MOST_CANDIDATES} values")
    return found[0] if len(found) == 1 else Choice(tuple(found))


def candidates(value: Value) -> tuple[Value, ...]:
    return value.values if isinstance(value, Choice) else (value,)


def holds(value: Value, wanted: Value) -> bool:
    """Whether a value is an object, may be it, has it in a list, or is made of it."""
    todo, seen = [value], set[int]()
    while todo:
        inner = plain(todo.pop())
        if inner is wanted:
            return True
        if id(inner) not in seen:
            seen.add(id(inner))
            several = inner.values if isinstance(inner, Choice) else inner if isinstance(inner, (Items, tuple)) else ()
            todo += (*inner.args, *inner.keywords.values()) if isinstance(inner, Call) else several
    return False


def is_plain(value: Value) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def plain(value: Value) -> Value:
    """The value without the assumption that it rests on; an assumption on a choice stays a choice."""
    return plain(value.value) if isinstance(value, Assumed) else value


def assume(value: Value, said: tuple[str, ...]) -> Value:
    """A value that rests on the sentences ``said``; the value itself where there are none."""
    return Assumed(value, said) if said else value


def notes(value: Value) -> tuple[str, ...]:
    if isinstance(value, Assumed):
        return tuple(dict.fromkeys((*value.notes, *notes(value.value))))
    if isinstance(value, Choice):
        return tuple(dict.fromkeys(n for v in value.values for n in notes(v)))
    return ()


def lift(node: str | ast.AST, function: Callable[..., Value], *values: Value) -> Value:
    """``function`` of plain values, for every combination of candidates; else unresolved."""
    said = tuple(dict.fromkeys(n for v in values for n in notes(v)))
    combinations = list(itertools.islice(itertools.product(*(candidates(plain(v)) for v in values)), 65))
    if len(combinations) > 64:
        return Unresolved(node)
    found = functools.reduce(either, (_lifted(node, function, [plain(v) for v in each]) for each in combinations))
    return found if isinstance(found, Unresolved) else assume(found, said)


def _lifted(node: str | ast.AST, function: Callable[..., Value], inner: list[Value]) -> Value:
    """``function`` of one combination; infinite only where something in it is."""
    try:
        one = function(*inner) if all(is_plain(v) for v in inner) else Unresolved(node)
    except (ArithmeticError, ValueError, TypeError, KeyError, IndexError, AttributeError, MemoryError):
        return Unresolved(node)
    infinite = any(v in ("inf", "-inf", "Infinity", math.inf, -math.inf) for v in inner if is_plain(v))
    return Unresolved(node) if isinstance(one, float) and not math.isfinite(one) and not infinite else one


def truth(value: Value) -> bool | None:
    """True, False, or None where it is not decided."""
    match plain(value):
        case Choice(values=several):
            found = {truth(v) for v in several}
            return found.pop() if len(found) == 1 else None
        case Items() | Table() as held:
            return bool(held) if held.whole or held else None
        case Function() | Class() | Parser():
            return True
        case Call(own=own):
            return True if own else None
        case inner:
            return bool(inner) if is_plain(inner) or isinstance(inner, tuple) else None


def elements(value: Value) -> list[Value] | None:
    """The elements of what is looped over; None where not all of them are known."""
    inner = plain(value)
    known = isinstance(inner, tuple) or (isinstance(inner, (Items, Table)) and inner.whole)
    return list(inner) if known and isinstance(inner, (tuple, Items, Table)) else None
