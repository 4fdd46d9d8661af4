"""The abstract interpreter's state: what a program sets on its objects, the options of its command line, the files it reads."""

import ast
import math
import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from fedgraph.errors import PricingError
from fedgraph.pricing import parsers
from fedgraph.pricing import python_values as py
from fedgraph.pricing.parsers import parse_fact_name
from fedgraph.pricing.python_values import CallValue, TableValue, UnresolvedValue, Value, python_plain

PlainFunction: TypeAlias = Callable[..., Value]
_ROOTS = (math.sqrt, math.log, math.exp, math.ceil, math.floor)
PURE_FUNCTIONS: Mapping[str, PlainFunction] = {
    **{function.__name__: function for function in (float, int, str, bool, abs, round, max, min)},
    **{f"math.{function.__name__}": function for function in (*_ROOTS, math.log2, math.log10, math.pow)},
    **{f"numpy.{function.__name__}": function for function in _ROOTS},
    "os.path.join": posixpath.join,
}


@dataclass(frozen=True, eq=False)
class PythonAttributesView:
    """The attributes of an object as a dictionary (``vars``, ``__dict__``)."""

    owner: Value


@dataclass(frozen=True, eq=False)
class LoopPass:
    """A loop over something."""

    over: Value  # what it goes over
    times: Value  # how often the loops around it make it
    steps: tuple[CallValue, ...]  # calls of optimizers inside it
    reached: bool  # false where it stands in a function that nothing calls
    depth: int  # how many branches and loops it stands in

    def steps_of(self, taken: Callable[[Value], bool]) -> Value:
        """How often it steps with a taken optimizer each time; of branches that exclude each other, the one that steps more."""
        mine = [step for step in self.steps if taken(step.owner)]
        if any(kind == "loop" for step in mine for kind, _ in step.stack[self.depth + 1 :]):
            return UnresolvedValue("as often as a loop inside it runs")
        most: Counter[py.ValueStack] = Counter()
        for stack, count in Counter(step.stack for step in mine).items():
            most |= Counter({tuple((kind, words.removeprefix("not ")) for kind, words in stack): count})
        return max(1, most.total())


class PythonState:
    """The state of a program that is followed.

    Args:
        root: The folder of the program. Files outside of it are not read.
        read: Gives the text of one of its files.
        given: Answers to options of its command line, by normal name.
    """

    def __init__(self, root: Path, read: Callable[[Path], str], given: Mapping[str, Value]) -> None:
        self.root, self.read, self.given = root, read, given
        self.config: Mapping[str, Value] | None = None
        self.calls: list[CallValue] = []
        self.stack: py.ValueStack = ()
        self.reached, self.again, self.steps = True, False, 0
        self.flags, self.environment = TableValue(), TableValue()
        self.waiting: list[py.FunctionValue] = []
        self.used: set[str] = set()
        self.options: dict[str, Value] = {}
        self.lengths: list[Value] = []
        self.looped: list[Value] = []
        self.iterated: list[LoopPass] = []
        self.times: Value = 1
        self.argv = False  # whether the program changes its own command line
        self.definitions: list[py.FunctionValue] = []
        self.classes: list[py.ClassValue] = []
        self.skipped: dict[str, None] = {}
        self.replaced: dict[str, int] = {}  # functions of libraries that the program exchanges, and the line of it
        self.main: py.ScopeValue | None = None
        self.repeated: set[ast.AST] = set()  # functions that somebody else calls again and again

    @contextmanager
    def under(self, kind: Literal["branch", "loop"], words: str) -> Iterator[None]:
        """What is followed inside depends on a branch or a loop, too."""
        before = self.stack
        self.stack = (*before, (kind, words))
        try:
            yield
        finally:
            self.stack = before

    def looped_since(self, born: py.ValueStack) -> bool:
        """Whether a loop is gone through that something born there does not stand in."""
        return any(kind == "loop" for kind, _ in self.stack[len(born) :])

    def weak(self, before: Value, value: Value, missing: bool, born: py.ValueStack, node: str | ast.AST) -> Value:
        """What a place holds after an assignment that may not be made, or is made again and again."""
        if self.stack == born or missing or py.same_value(before, value):
            return value
        if self.again and self.looped_since(born) and not isinstance(value, (CallValue, py.PartValue)):
            return UnresolvedValue(f"{node if isinstance(node, str) else ast.unparse(node)}, which changes in a loop")
        return py.join_values(before, value)

    def set_name(self, held: dict[str, Value], key: str, value: Value, born: py.ValueStack) -> None:
        held[key] = self.weak(held.get(key), value, key not in held, born, key)

    def set_attribute(self, owner: Value, name: str, value: Value, node: ast.AST) -> None:
        for each in py.value_candidates(python_plain(owner)):
            match each:
                case py.PythonName(dotted="sys") if name == "argv":
                    self.argv = True
                case py.PythonName(dotted=dotted) if dotted.endswith("FLAGS"):
                    self.set_name(self.flags, name, value, ())
                case TableValue():
                    self.set_name(each, name, value, each.born)
                case py.ParserValue():
                    self.set_name(each.options, name, value, each.options.born)
                case CallValue() | py.PartValue():
                    before = each.attributes.get(name, UnresolvedValue(f"{name} before line {_line_of(node)}"))
                    each.attributes[name] = self.weak(before, value, False, each.born, name)
                    each.set_at[name] = _line_of(node)
                case py.PythonName(dotted=dotted) if not py.is_plain_value(python_plain(value)):
                    self.replaced.setdefault(f"{dotted}.{name}", _line_of(node))
                case py.ScopeValue():
                    self.set_name(each.local, name, value, each.born)
                case py.ClassValue(scope=scope):
                    self.set_name(scope.local, name, value, scope.born)

    def assumed(self, name: str, default: Value, said: str, node: ast.AST) -> Value:
        """A default that somebody may change from outside, or what the user says it is."""
        if (key := parse_fact_name(name)) in self.given:
            self.used.add(key)
            return self.given[key]
        if isinstance(python_plain(default), UnresolvedValue):
            return default
        return py.AssumedValue(default, (f"{said} = {python_plain(default)!r}, its default (line {_line_of(node)})",))

    def loaded(self, source: Value) -> Value:
        """The data of a YAML, JSON, TOML or HOCON file, as ``open`` or ``Path`` names it; else ``NotImplemented``."""
        inner = python_plain(source)
        for _ in range(4):
            if isinstance(inner, CallValue) and inner.name in ("open", "read", "read_text"):
                inner = python_plain(inner.get("file", 0) if inner.owner is None else inner.owner)
            elif isinstance(inner, CallValue) and inner.name == "Path":
                inner = python_plain(inner.get("path", 0))
        path = self.root / inner if isinstance(inner, str) and len(inner) < 500 and "\0" not in inner else self.root
        with suppress(PricingError):
            if path.suffix in parsers.PARSED_SUFFIXES and self.holds(path):
                return _as_held(parsers.parse_file(path, path.suffix, self.read(path))[0], self.stack)
        return NotImplemented

    def holds(self, path: Path) -> bool:
        """Whether a path is a file of the program's folder."""
        return path.is_file() and path.resolve().is_relative_to(self.root.resolve())

    def parser(self, parser: py.ParserValue, name: str, args: py.Args, keywords: py.Keywords, node: ast.expr) -> Value:
        if name in ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"):
            return parser
        defaults: dict[str, Value] = {}
        if name == "set_defaults":
            defaults = {key: self.assumed(key, value, f"--{key}", node) for key, value in keywords.items()}
        elif name == "add_argument" and "**" not in keywords:
            defaults = self.argument(args, keywords, node)
        elif name in ("parse_args", "parse_known_args"):
            parsed = TableValue(parser.options, self.stack)
            for held in map(python_plain, (*args, *keywords.values())):  # words or a namespace in place of the command line
                words = [python_plain(v) for v in py.value_elements(held) or ()]
                if isinstance(held, TableValue) and held.whole:
                    parsed |= held
                elif py.value_elements(held) is not None and all(isinstance(word, str) for word in words):
                    parsed |= parsers.parse_priced_command([str(word) for word in words])
                elif held is not None:
                    self.argv = True
            options = TableValue({name: UnresolvedValue(node, name) for name in parsed}) if self.argv else parsed
            return options if name == "parse_args" else py.ItemsValue((options, py.ItemsValue()))
        elif name != "add_argument":
            return UnresolvedValue(node)
        for key, value in defaults.items():
            self.options[key] = value
            self.set_name(parser.options, key, value, parser.options.born)
        return None

    def argument(self, args: py.Args, keywords: py.Keywords, node: ast.AST) -> dict[str, Value]:
        """An option of a parser, and its default."""
        flags = [flag for a in args if isinstance(flag := python_plain(a), str)]
        long = [flag for flag in flags if flag.startswith("--")] or flags
        named = python_plain(keywords.get("dest")) or (long[0].lstrip("-").replace("-", "_") if long else None)
        if not isinstance(named, str):
            return {}
        action, kind = python_plain(keywords.get("action")), keywords.get("type")
        default = keywords.get("default", {"store_true": False, "store_false": True}.get(str(action)))
        needed = py.value_truth(keywords.get("required")) is True or (bool(long) and not long[0].startswith("-"))
        if isinstance(kind, py.PythonName) and kind.dotted in PURE_FUNCTIONS and isinstance(python_plain(default), str):
            default = py.lift_over_values(node, PURE_FUNCTIONS[kind.dotted], default)
        default = UnresolvedValue(f"--{named}, which has no default") if needed and default is None else default
        return {named: self.assumed(named, default, f"--{named.replace('_', '-')}", node)}


def _as_held(data: object, born: py.ValueStack) -> Value:
    """Plain data (of a YAML or JSON file) as a program holds it."""
    if isinstance(data, dict):
        return TableValue({str(key): _as_held(value, born) for key, value in data.items()}, born)
    return py.ItemsValue((_as_held(value, born) for value in data), born) if isinstance(data, list) else data


def _line_of(node: ast.AST) -> int:
    return node.lineno if isinstance(node, (ast.expr, ast.stmt)) else 0
