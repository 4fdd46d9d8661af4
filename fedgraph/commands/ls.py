"""``fedgraph ls``: what there is, one line each."""

import argparse
from collections.abc import Callable

from fedgraph import plugins
from fedgraph.scenario import shipped

HELP = "list scenarios, methods, data sets, partitions, tasks and systems that can be priced"
KINDS = ("scenarios", "methods", "data", "partitions", "tasks", "systems")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", choices=KINDS, help="only these (default: all)")


def run(options: argparse.Namespace) -> int:
    for kind in [options.kind] if options.kind else KINDS:
        lines = _LISTS[kind]()
        if not options.kind:
            print(f"{kind}:")
        width = max((len(name) for name, _ in lines), default=0)
        for name, said in lines:
            print(f"{'' if options.kind else '  '}{name:<{width}}  {said}".rstrip())
        if not options.kind:
            print()
    return 0


def first_sentence(text: str | None) -> str:
    """The first sentence of a docstring, on one line."""
    line = " ".join((text or "").split("\n\n")[0].split())
    return line.split(". ")[0].rstrip(".")


def _scenarios() -> list[tuple[str, str]]:
    return [(name, shipped.title(shipped.folder() / f"{name}.yaml")) for name in shipped.names()]


def _modules(package: str) -> list[tuple[str, str]]:
    return [(name, first_sentence(_docstring(package, name))) for name in plugins.names(package)]


def _docstring(package: str, name: str) -> str | None:
    """Read from the source: a list of names should not load torch."""
    import ast
    from importlib import util

    spec = util.find_spec(f"fedgraph.{package}.{name}")
    if spec is None or spec.origin is None:
        return None
    with open(spec.origin, encoding="utf-8") as file:
        return ast.get_docstring(ast.parse(file.read()))


def _data() -> list[tuple[str, str]]:
    from fedgraph import data
    from fedgraph.data.base import Published

    found = []
    for name in data.names():
        family, _, dataset = name.partition("/")
        entry = data.families()[family][dataset]
        title = entry.title if isinstance(entry, Published) else ""
        found.append((name, title or first_sentence(_docstring("data", family))))
    return found


_LISTS: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "scenarios": _scenarios,
    "methods": lambda: _modules("methods"),
    "data": _data,
    "partitions": lambda: _modules("partition"),
    "tasks": lambda: _modules("tasks"),
    "systems": lambda: _modules("pricing.readers"),
}
