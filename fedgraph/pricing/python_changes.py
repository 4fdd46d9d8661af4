"""The abstract interpreter's state: what a program sets on its objects, the options of its command line, the files it reads."""

import ast
import math
import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from fedgraph.errors import PricingError
from fedgraph.pricing import formats
from fedgraph.pricing import python_values as py
from fedgraph.pricing.formats import normal
from fedgraph.pricing.python_values import Call, Function, Items, Table, Unresolved, Value, elements, lift, plain, same, truth

Plain: TypeAlias = Callable[..., Value]
_ROOTS: Mapping[str, Plain] = {"sqrt": math.sqrt, "log": math.log, "exp": math.exp, "ceil": math.ceil, "floor": math.floor}
PURE: Mapping[str, Plain] = {
    "float": float, "int": int, "str": str, "bool": bool, "abs": abs, "round": round, "max": max, "min": min,
    **{f"math.{n}": f for n, f in (*_ROOTS.items(), ("log2", math.log2), ("log10", math.log10), ("pow", math.pow))},
    **{f"numpy.{n}": f for n, f in _ROOTS.items()}, "os.path.join": posixpath.join,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class View:
    """The attributes of an object as a dictionary (``vars``, ``__dict__``)."""

    owner: Value


@dataclass(frozen=True, eq=False)
class Pass:
    """A loop over something.

    Attributes:
        over: What it goes over.
        times: How often the loops around it make it.
        steps: Calls of optimizers inside it.
        reached: False where it stands in a function that nothing calls.
        depth: How many branches and loops it stands in.
    """

    over: Value
    times: Value
    steps: tuple[Call, ...]
    reached: bool
    depth: int

    def steps_of(self, taken: Callable[[Value], bool]) -> Value:
        """How often it steps with a taken optimizer each time; of branches that exclude each other, the one that steps more."""
        mine = [step for step in self.steps if taken(step.owner)]
        if any(kind == "loop" for step in mine for kind, _ in step.stack[self.depth + 1 :]):
            return Unresolved("as often as a loop inside it runs")
        stacks = Counter(step.stack for step in mine)
        most: dict[object, int] = {}
        for stack, count in stacks.items():
            place = tuple((kind, words.removeprefix("not ")) for kind, words in stack)
            most[place] = max(most.get(place, 0), count)
        return max(1, sum(most.values()))


class Changes:
    """The state of a program that is followed.

    Args:
        root: The folder of the program. Files outside of it are not read.
        read: Gives the text of one of its files.
        given: Answers to options of its command line, by normal name.
        config: The run configuration of a Flower app; None where there is none.
    """

    def __init__(
        self, root: Path, read: Callable[[Path], str], given: Mapping[str, Value], config: Mapping[str, Value] | None
    ) -> None:
        self.root, self.read, self.given, self.config = root, read, given, config
        self.calls: list[Call] = []
        self.stack: py.Stack = ()
        self.reached, self.again, self.steps = True, False, 0
        self.flags, self.environment = Table(), Table()
        self.waiting: list[Function] = []
        self.used: set[str] = set()
        self.options: dict[str, Value] = {}
        self.lengths: list[Value] = []
        self.looped: list[Value] = []
        self.iterated: list[Pass] = []
        self.times: Value = 1
        self.argv = False  # whether the program changes its own command line
        self.definitions: list[Function] = []
        self.classes: list[py.Class] = []
        self.skipped: dict[str, None] = {}
        self.replaced: dict[str, int] = {}  # functions of libraries that the program exchanges, and the line of it
        self.main: py.Scope | None = None
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

    def looped_since(self, born: py.Stack) -> bool:
        """Whether a loop is gone through that something born there does not stand in."""
        return any(kind == "loop" for kind, _ in self.stack[len(born) :])

    def weak(self, before: Value, value: Value, missing: bool, born: py.Stack, node: str | ast.AST) -> Value:
        """What a place holds after an assignment that may not be made, or is made again and again."""
        if self.stack == born or missing or same(before, value):
            return value
        if self.again and self.looped_since(born) and not isinstance(value, (Call, py.Part)):
            return Unresolved(f"{node if isinstance(node, str) else ast.unparse(node)}, which changes in a loop")
        return py.either(before, value)

    def set_name(self, held: dict[str, Value], key: str, value: Value, born: py.Stack) -> None:
        held[key] = self.weak(held.get(key), value, key not in held, born, key)

    def set_attribute(self, owner: Value, name: str, value: Value, node: ast.AST) -> None:
        for each in py.candidates(plain(owner)):
            match each:
                case py.Name(dotted="sys") if name == "argv":
                    self.argv = True
                case py.Name(dotted=dotted) if dotted.endswith("FLAGS"):
                    self.set_name(self.flags, name, value, ())
                case Table():
                    self.set_name(each, name, value, each.born)
                case py.Parser():
                    self.set_name(each.options, name, value, each.options.born)
                case Call() | py.Part():
                    before = each.attributes.get(name, Unresolved(f"{name} before line {_line_of(node)}"))
                    each.attributes[name] = self.weak(before, value, False, each.born, name)
                    each.set_at[name] = _line_of(node)
                case py.Name(dotted=dotted) if not py.is_plain(plain(value)):
                    self.replaced.setdefault(f"{dotted}.{name}", _line_of(node))
                case py.Scope():
                    self.set_name(each.local, name, value, each.born)
                case py.Class(scope=scope):
                    self.set_name(scope.local, name, value, scope.born)

    def set_all(self, owner: Value, held: Value, node: ast.AST) -> None:
        """Attributes set from a dictionary; ``?`` where it is not known."""
        known = held if isinstance(held, Table) and held.whole else {"?": Unresolved(node)}
        for key, value in known.items():
            self.set_attribute(owner, key, value, node)

    def assumed(self, name: str, default: Value, said: str, node: ast.AST) -> Value:
        """A default that somebody may change from outside, or what the user says it is."""
        if (key := normal(name)) in self.given:
            self.used.add(key)
            return self.given[key]
        if isinstance(plain(default), Unresolved):
            return default
        return py.Assumed(default, (f"{said} = {plain(default)!r}, its default (line {_line_of(node)})",))

    def loaded(self, source: Value) -> Value:
        """The data of a YAML, JSON, TOML or HOCON file of the program's folder, as ``open`` or ``Path`` names it.

        Returns:
            The data as the program holds them; ``NotImplemented`` where there is no such file, or it cannot be read.
        """
        inner = plain(source)
        for _ in range(4):
            if isinstance(inner, Call) and inner.name in ("open", "read", "read_text"):
                inner = plain(inner.get("file", 0) if inner.owner is None else inner.owner)
            elif isinstance(inner, Call) and inner.name == "Path":
                inner = plain(inner.get("path", 0))
        path = self.root / inner if isinstance(inner, str) and len(inner) < 500 and "\0" not in inner else self.root
        if path.suffix not in formats.SUFFIXES or not path.is_file() or not path.resolve().is_relative_to(self.root.resolve()):
            return NotImplemented
        try:
            return _as_held(formats.parsed_file(path, path.suffix, self.read(path))[0], self.stack)
        except PricingError:
            return NotImplemented

    def parser(
        self, parser: py.Parser, name: str, args: tuple[Value, ...], keywords: dict[str, Value], node: ast.expr
    ) -> Value:
        if name in ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"):
            return parser
        defaults: dict[str, Value] = {}
        if name == "set_defaults":
            defaults = {key: self.assumed(key, value, f"--{key}", node) for key, value in keywords.items()}
        elif name == "add_argument" and "**" not in keywords:
            defaults = self.argument(args, keywords, node)
        elif name in ("parse_args", "parse_known_args"):
            parsed = Table(parser.options, self.stack)
            for held in map(plain, (*args, *keywords.values())):  # words or a namespace in place of the command line
                words = [plain(v) for v in elements(held) or ()]
                if isinstance(held, Table) and held.whole:
                    parsed |= held
                elif elements(held) is not None and all(isinstance(word, str) for word in words):
                    parsed |= formats.command_line_options([str(word) for word in words])
                elif held is not None:
                    self.argv = True
            options = Table({name: Unresolved(node, name) for name in parsed}) if self.argv else parsed
            return options if name == "parse_args" else Items((options, Items()))
        elif name != "add_argument":
            return Unresolved(node)
        for key, value in defaults.items():
            self.options[key] = value
            self.set_name(parser.options, key, value, parser.options.born)
        return None

    def argument(self, args: tuple[Value, ...], keywords: Mapping[str, Value], node: ast.AST) -> dict[str, Value]:
        """An option of a parser, and its default."""
        flags = [flag for a in args if isinstance(flag := plain(a), str)]
        long = [flag for flag in flags if flag.startswith("--")] or flags
        named = plain(keywords.get("dest")) or (long[0].lstrip("-").replace("-", "_") if long else None)
        if not isinstance(named, str):
            return {}
        action, kind = plain(keywords.get("action")), keywords.get("type")
        default = keywords.get("default", {"store_true": False, "store_false": True}.get(str(action)))
        needed = truth(keywords.get("required")) is True or (bool(long) and not long[0].startswith("-"))
        if isinstance(kind, py.Name) and kind.dotted in PURE and isinstance(plain(default), str):
            default = lift(node, PURE[kind.dotted], default)
        default = Unresolved(f"--{named}, which has no default") if needed and default is None else default
        return {named: self.assumed(named, default, f"--{named.replace('_', '-')}", node)}


def _as_held(data: object, born: py.Stack) -> Value:
    """Plain data (of a YAML or JSON file) as a program holds it."""
    if isinstance(data, dict):
        return Table({str(key): _as_held(value, born) for key, value in data.items()}, born)
    if isinstance(data, list):
        return Items((_as_held(value, born) for value in data), born)
    return data


def _line_of(node: ast.AST) -> int:
    return node.lineno if isinstance(node, (ast.expr, ast.stmt)) else 0
