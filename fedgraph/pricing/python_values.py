"""What a Python program's expressions can be worth when nothing is run, and what can be said of such values.

    UnresolvedValue         nothing is known but the source text
    ChoiceValue             one of several values: branches that cannot be decided were joined
    AssumedValue            a value that holds unless somebody says otherwise from outside, with the sentence that says so
    NameValue               something imported that is not part of the program, by its dotted name
    CallValue               the result of calling what is not part of the program, or an object of one of its classes
    PartValue               one of several results of a call
    MethodValue             an attribute of any of these, about to be called
    ItemsValue, TableValue  a list and a dictionary
    FunctionValue, ClassValue, ParserValue  what the program defines

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

from fedgraph.pricing.catalogue import catalogue_places

_MOST_CANDIDATES = 8
Value = object
ValueStack = tuple[tuple[str, str], ...]  # what a statement depends on: (branch | loop, words)


@dataclass(eq=False)
class UnresolvedValue:
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
class ChoiceValue:
    """One of several values."""

    values: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class AssumedValue:
    """A value that rests on assumptions, with a sentence for each."""

    value: Value
    notes: tuple[str, ...]


@dataclass(frozen=True)
class NameValue:
    """Something of a library, by its dotted name."""

    dotted: str


class ItemsValue(list[Value]):
    """A list.

    Args:
        values: Its elements.
        born: The branches and loops that it was made in.
        whole: False once something unknown may have been added.
    """

    def __init__(self, values: Iterable[Value] = (), born: ValueStack = (), whole: bool = True) -> None:
        super().__init__(values)
        self.born, self.whole = born, whole


class TableValue(dict[str, Value]):
    """A dictionary with text keys, or a namespace.

    Args:
        values: What it holds.
        born: The branches and loops that it was made in.
        whole: False once something unknown may have been added.
    """

    def __init__(self, values: Mapping[str, Value] | None = None, born: ValueStack = (), whole: bool = True) -> None:
        super().__init__(values or {})
        self.born, self.whole = born, whole


@dataclass(eq=False)
class ClassValue:
    """A class of the program.

    Attributes:
        node: Its definition.
        scope: The names of its body.
        bases: What it inherits from.
    """

    node: ast.ClassDef
    scope: ScopeValue
    bases: tuple[Value, ...]

    @property
    def foreign(self) -> tuple[str, ...]:
        """The dotted names of all bases that are not part of the program."""
        found: list[str] = []
        for base in self.bases:
            found += base.foreign if isinstance(base, ClassValue) else [base.dotted] if isinstance(base, NameValue) else ["?"]
        return tuple(found)

    def member(self, name: str) -> Value | None:
        """A class attribute or a method, of this class or its own bases."""
        inherited = (v for b in self.bases if isinstance(b, ClassValue) and (v := b.member(name)) is not None)
        return self.scope.local[name] if name in self.scope.local else next(inherited, None)

    def methods(self) -> list[str]:
        inherited = [name for base in self.bases if isinstance(base, ClassValue) for name in base.methods()]
        return [*inherited, *(n for n, v in self.scope.local.items() if isinstance(v, FunctionValue))]


@dataclass(eq=False)
class CallValue:
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
    own: ClassValue | None = None
    stack: ValueStack = ()
    reached: bool = True
    function: str = ""
    attributes: dict[str, Value] = field(default_factory=dict)
    set_at: dict[str, int] = field(default_factory=dict)
    parts: dict[int, PartValue] = field(default_factory=dict)
    decorates: FunctionValue | None = None
    born: ValueStack = ()
    times: Value = 1

    def get(self, name: str, place: int | None = None) -> Value:
        """The argument by keyword, or by place (that of ``catalogue.yaml`` where none is given); None where it is not given."""
        if name in self.keywords:
            return self.keywords[name]
        place = catalogue_places(self.name).get(name) if place is None else place
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
class PartValue:
    """One of several results of a call.

    Attributes:
        call: The call.
        index: Which result it is, from 0.
        attributes: What the program sets on it afterwards.
        set_at: Attribute → the line that sets it.
        born: The branches and loops that it was made in.
    """

    call: CallValue
    index: int
    attributes: dict[str, Value] = field(default_factory=dict)
    set_at: dict[str, int] = field(default_factory=dict)
    born: ValueStack = ()


@dataclass(frozen=True, eq=False)
class MethodValue:
    """An attribute of a value, as it stands before it is called."""

    owner: Value
    name: str
    node: ast.AST


@dataclass(eq=False)
class ScopeValue:
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
    parent: ScopeValue | None = None
    holds: str = ""
    local: dict[str, Value] = field(default_factory=dict)
    elsewhere: dict[str, ScopeValue] = field(default_factory=dict)
    returned: list[Value] = field(default_factory=list)
    born: ValueStack = ()

    def home(self, name: str) -> ScopeValue | None:
        """The scope that a name is read from; None where no scope has it. Names of a class are seen in its own body alone."""
        if name in self.elsewhere:
            return self.elsewhere[name] if name in self.elsewhere[name].local else None
        scope: ScopeValue | None = self
        while scope is not None:
            if name in scope.local and (scope is self or not scope.holds.startswith("class ")):
                return scope
            scope = scope.parent
        return None

    def above(self, name: str) -> ScopeValue | None:
        """The nearest scope around this one that holds a name."""
        outer = self.parent
        return outer if outer is None or name in outer.local else outer.above(name)

    @property
    def module(self) -> ScopeValue:
        return self if self.parent is None else self.parent.module


@dataclass(eq=False)
class FunctionValue:
    """A function, a method or a lambda of the program.

    Attributes:
        node: Its definition.
        scope: Where it was defined.
        defaults: Parameter → default.
        options: Parameter → what the program's command line gives (click).
        first: Arguments that are given already: the object of a method, or those of ``partial``.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: ScopeValue
    defaults: Mapping[str, Value] = field(default_factory=dict)
    options: Mapping[str, Value] = field(default_factory=dict)  # what its command line gives (click)
    first: tuple[Value, ...] = ()  # the object of a method, the arguments of ``partial``

    def on(self, owner: CallValue) -> FunctionValue:
        """The method of an object."""
        decorators = [] if isinstance(self.node, ast.Lambda) else self.node.decorator_list
        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in decorators)
        return self if static else FunctionValue(self.node, self.scope, self.defaults, self.options, (owner,))

    def partial(self, args: tuple[Value, ...], keywords: Mapping[str, Value]) -> FunctionValue:
        """The function with some of its arguments given."""
        return FunctionValue(self.node, self.scope, {**self.defaults, **keywords}, self.options, (*self.first, *args))

    @property
    def name(self) -> str:
        return "lambda" if isinstance(self.node, ast.Lambda) else self.node.name


@dataclass(eq=False)
class ParserValue:
    """A parser of a command line; options: what is not given has the default."""

    options: TableValue = field(default_factory=TableValue)


def same_value(a: Value, b: Value) -> bool:
    """Whether two values are certainly the same."""
    match a, b:
        case UnresolvedValue(), UnresolvedValue():
            return a.source is b.source
        case AssumedValue(), AssumedValue():
            return a.notes == b.notes and same_value(a.value, b.value)
        case NameValue(), NameValue():
            return a == b
        case ChoiceValue(), ChoiceValue():
            return same_value(a.values, b.values)
        case ((list() | tuple()), (list() | tuple())):
            return type(a) is type(b) and len(a) == len(b) and all(map(same_value, a, b))
    return a is b or (is_plain_value(a) and type(a) is type(b) and a == b)


def join_values(a: Value, b: Value) -> Value:
    """One of both: the value itself where they are the same, else a choice of at most eight candidates."""
    found: list[Value] = []
    for value in (*value_candidates(a), *value_candidates(b)):
        if not any(same_value(value, seen) for seen in found):
            found.append(value)
    if len(found) > _MOST_CANDIDATES:
        return UnresolvedValue(f"one of more than {_MOST_CANDIDATES} values")
    return found[0] if len(found) == 1 else ChoiceValue(tuple(found))


def value_candidates(value: Value) -> tuple[Value, ...]:
    return value.values if isinstance(value, ChoiceValue) else (value,)


def value_holds(value: Value, wanted: Value) -> bool:
    """Whether a value is an object, may be it, has it in a list, or is made of it."""
    todo, seen = [value], set[int]()
    while todo:
        inner = plain_value(todo.pop())
        if inner is wanted:
            return True
        if id(inner) not in seen:
            seen.add(id(inner))
            several = (
                inner.values if isinstance(inner, ChoiceValue) else inner if isinstance(inner, (ItemsValue, tuple)) else ()
            )
            todo += (*inner.args, *inner.keywords.values()) if isinstance(inner, CallValue) else several
    return False


def is_plain_value(value: Value) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def plain_value(value: Value) -> Value:
    """The value without the assumption that it rests on; an assumption on a choice stays a choice."""
    return plain_value(value.value) if isinstance(value, AssumedValue) else value


def assume_value(value: Value, said: tuple[str, ...]) -> Value:
    """A value that rests on the sentences ``said``; the value itself where there are none."""
    return AssumedValue(value, said) if said else value


def value_notes(value: Value) -> tuple[str, ...]:
    if isinstance(value, AssumedValue):
        return tuple(dict.fromkeys((*value.notes, *value_notes(value.value))))
    if isinstance(value, ChoiceValue):
        return tuple(dict.fromkeys(n for v in value.values for n in value_notes(v)))
    return ()


def lift_over_values(node: str | ast.AST, function: Callable[..., Value], *values: Value) -> Value:
    """``function`` of plain values, for every combination of candidates; else unresolved."""
    said = tuple(dict.fromkeys(n for v in values for n in value_notes(v)))
    combinations = list(itertools.islice(itertools.product(*(value_candidates(plain_value(v)) for v in values)), 65))
    if len(combinations) > 64:
        return UnresolvedValue(node)
    found = functools.reduce(join_values, (_lifted(node, function, [plain_value(v) for v in each]) for each in combinations))
    return found if isinstance(found, UnresolvedValue) else assume_value(found, said)


def _lifted(node: str | ast.AST, function: Callable[..., Value], inner: list[Value]) -> Value:
    """``function`` of one combination; infinite only where something in it is."""
    try:
        one = function(*inner) if all(is_plain_value(v) for v in inner) else UnresolvedValue(node)
    except (ArithmeticError, ValueError, TypeError, KeyError, IndexError, AttributeError, MemoryError):
        return UnresolvedValue(node)
    infinite = any(v in ("inf", "-inf", "Infinity", math.inf, -math.inf) for v in inner if is_plain_value(v))
    return UnresolvedValue(node) if isinstance(one, float) and not math.isfinite(one) and not infinite else one


def value_truth(value: Value) -> bool | None:
    """True, False, or None where it is not decided."""
    match plain_value(value):
        case ChoiceValue(values=several):
            found = {value_truth(v) for v in several}
            return found.pop() if len(found) == 1 else None
        case ItemsValue() | TableValue() as held:
            return bool(held) if held.whole or held else None
        case FunctionValue() | ClassValue() | ParserValue():
            return True
        case CallValue(own=own):
            return True if own else None
        case inner:
            return bool(inner) if is_plain_value(inner) or isinstance(inner, tuple) else None


def value_elements(value: Value) -> list[Value] | None:
    """The elements of what is looped over; None where not all of them are known."""
    inner = plain_value(value)
    known = isinstance(inner, tuple) or (isinstance(inner, (ItemsValue, TableValue)) and inner.whole)
    return list(inner) if known and isinstance(inner, (tuple, ItemsValue, TableValue)) else None
