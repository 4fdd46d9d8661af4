"""What a Python program's expressions can be worth when nothing is run, and what can be said of such values.

    UnresolvedValue         nothing is known but the source text
    PythonChoice            one of several values: branches that cannot be decided were joined
    AssumedValue            a value that holds unless somebody says otherwise from outside, with the sentence that says so
    PythonName              something imported that is not part of the program, by its dotted name
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
Args = tuple[Value, ...]
Keywords = dict[str, Value]
ValueStack = tuple[tuple[str, str], ...]  # what a statement depends on: (branch | loop, words)


@dataclass(eq=False)
class UnresolvedValue:
    """A value that the program does not decide."""

    source: str | ast.AST  # its expression, or words for it
    key: str | None = None  # the option that it is looked up by, where it is a subscript or ``.get`` with a constant key
    factors: tuple[Value, ...] = ()  # the factors, where it is a product

    @property
    def text(self) -> str:
        return self.source if isinstance(self.source, str) else ast.unparse(self.source)


@dataclass(frozen=True, eq=False)
class PythonChoice:
    """One of several values."""

    values: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class AssumedValue:
    """A value that rests on assumptions, with a sentence for each."""

    value: Value
    notes: tuple[str, ...]


@dataclass(frozen=True)
class PythonName:
    """Something of a library, by its dotted name."""

    dotted: str


class ItemsValue(list[Value]):
    """A list. born: the branches and loops that it was made in. whole: false once something unknown may have been added."""

    def __init__(self, values: Iterable[Value] = (), born: ValueStack = (), whole: bool = True) -> None:
        super().__init__(values)
        self.born, self.whole = born, whole


class TableValue(dict[str, Value]):
    """A dictionary with text keys, or a namespace; ``born`` and ``whole`` as of a list."""

    def __init__(self, values: Mapping[str, Value] | None = None, born: ValueStack = (), whole: bool = True) -> None:
        super().__init__(values or {})
        self.born, self.whole = born, whole


@dataclass(eq=False)
class ClassValue:
    """A class of the program."""

    node: ast.ClassDef  # its definition
    scope: ScopeValue  # the names of its body
    bases: tuple[Value, ...]  # what it inherits from

    @property
    def foreign(self) -> tuple[str, ...]:
        """The dotted names of all bases that are not part of the program."""
        found: list[str] = []
        for base in self.bases:
            found += base.foreign if isinstance(base, ClassValue) else [base.dotted] if isinstance(base, PythonName) else ["?"]
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
    """``name(args, keyword=…)``, and the object that it gives."""

    name: str  # the last part of the called expression
    dotted: str  # the whole of it
    args: tuple[Value, ...] = ()  # arguments by place
    keywords: Keywords = field(default_factory=dict)  # arguments by name; ``**`` where some are not known
    line: int = 0  # where it stands
    path: Path = Path()  # the file in which it stands
    owner: Value = None  # what the method belongs to; None for a function
    own: ClassValue | None = None  # the program's class, where an object of it is made
    stack: ValueStack = ()  # the undecided branches and loops that it stands in
    reached: bool = True  # false where it stands in a function that nothing calls
    function: str = ""  # the function that it stands in
    attributes: dict[str, Value] = field(default_factory=dict)  # what the program sets on the result afterwards
    set_at: dict[str, int] = field(default_factory=dict)  # attribute → the line that sets it
    parts: dict[int, PartValue] = field(default_factory=dict)  # place → one of several results
    decorates: FunctionValue | None = None  # the function, where the call is a decorator
    born: ValueStack = ()  # the branches and loops that the result was made in
    times: Value = 1  # how often the loops around it make it

    def get(self, name: str, place: int | None = None) -> Value:
        """The argument by keyword, or by place (that of ``catalogue.yaml`` where none is given); None where it is not given."""
        if name in self.keywords:
            return self.keywords[name]
        place = catalogue_places(self.name).get(name) if place is None else place
        return self.args[place] if place is not None and place < len(self.args) else None

    def held(self, name: str) -> Value:
        """What the object holds at the end: what is set on it later, else what it was made with."""
        return self.attributes[name] if name in self.attributes else self.get(name)

    def part(self, index: int) -> PartValue:
        return self.parts.setdefault(index, PartValue(self, index, born=self.born))

    @property
    def conditions(self) -> tuple[str, ...]:
        return tuple(words for kind, words in self.stack if kind == "branch")

    @property
    def repeated(self) -> str:
        """The loop of unknown length that it stands in, if any."""
        return next((words for kind, words in self.stack if kind == "loop"), "")


@dataclass(eq=False)
class PartValue:
    """One of several results of a call."""

    call: CallValue  # the call
    index: int  # which result it is, from 0
    attributes: dict[str, Value] = field(default_factory=dict)  # what the program sets on it afterwards
    set_at: dict[str, int] = field(default_factory=dict)  # attribute → the line that sets it
    born: ValueStack = ()  # the branches and loops that it was made in


@dataclass(frozen=True, eq=False)
class MethodValue:
    """An attribute of a value, as it stands before it is called."""

    owner: Value
    name: str
    node: ast.AST


@dataclass(eq=False)
class ScopeValue:
    """The names of a module, a class or a function."""

    path: Path  # the file
    parent: ScopeValue | None = None  # where names are looked up next; None for a module
    holds: str = ""  # the name of its function; ``class NAME`` for a class; empty for a module
    local: dict[str, Value] = field(default_factory=dict)  # name → value
    elsewhere: dict[str, ScopeValue] = field(default_factory=dict)  # names that ``global`` or ``nonlocal`` places elsewhere
    returned: list[Value] = field(default_factory=list)  # what its function returned so far
    born: ValueStack = ()  # the branches and loops that it was entered in

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
    """A function, a method or a lambda of the program."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda  # its definition
    scope: ScopeValue  # where it was defined
    defaults: Keywords = field(default_factory=dict)  # parameter → default
    options: Keywords = field(default_factory=dict)  # parameter → what the program's command line gives (click)
    first: tuple[Value, ...] = ()  # arguments that are given already: the object of a method, or those of ``partial``

    def on(self, owner: CallValue) -> FunctionValue:
        """The method of an object."""
        decorators = [] if isinstance(self.node, ast.Lambda) else self.node.decorator_list
        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in decorators)
        return self if static else FunctionValue(self.node, self.scope, self.defaults, self.options, (owner,))

    def partial(self, args: Args, keywords: Mapping[str, Value]) -> FunctionValue:
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
        case PythonName(), PythonName():
            return a == b
        case PythonChoice(), PythonChoice():
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
    return found[0] if len(found) == 1 else PythonChoice(tuple(found))


def value_candidates(value: Value) -> tuple[Value, ...]:
    return value.values if isinstance(value, PythonChoice) else (value,)


def value_holds(value: Value, wanted: Value) -> bool:
    """Whether a value is an object, may be it, has it in a list, or is made of it."""
    todo, seen = [value], set[int]()
    while todo:
        inner = python_plain(todo.pop())
        if inner is wanted:
            return True
        if id(inner) not in seen:
            seen.add(id(inner))
            todo += inner.values if isinstance(inner, PythonChoice) else inner if isinstance(inner, (ItemsValue, tuple)) else ()
            todo += (*inner.args, *inner.keywords.values()) if isinstance(inner, CallValue) else ()
    return False


def is_plain_value(value: Value) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def python_plain(value: Value) -> Value:
    """The value without the assumption that it rests on; an assumption on a choice stays a choice."""
    return python_plain(value.value) if isinstance(value, AssumedValue) else value


def assume_value(value: Value, said: tuple[str, ...]) -> Value:
    """A value that rests on the sentences ``said``; the value itself where there are none."""
    return AssumedValue(value, said) if said else value


def python_value_notes(value: Value) -> tuple[str, ...]:
    match value:
        case AssumedValue(value=inner, notes=notes):
            return tuple(dict.fromkeys((*notes, *python_value_notes(inner))))
        case PythonChoice(values=several):
            return tuple(dict.fromkeys(note for each in several for note in python_value_notes(each)))
    return ()


def lift_over_values(node: str | ast.AST, function: Callable[..., Value], *values: Value) -> Value:
    """``function`` of plain values, for every combination of candidates; else unresolved."""
    several = [value_candidates(python_plain(v)) for v in values]
    if math.prod(map(len, several)) > 64:
        return UnresolvedValue(node)
    each = (_lifted(node, function, [python_plain(v) for v in inner]) for inner in itertools.product(*several))
    found = functools.reduce(join_values, each)
    return found if isinstance(found, UnresolvedValue) else assume_value(found, python_value_notes(PythonChoice(values)))


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
    match python_plain(value):
        case PythonChoice(values=several):
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
    match python_plain(value):
        case tuple() | ItemsValue(whole=True) | TableValue(whole=True) as inner:
            return list(inner)
    return None
